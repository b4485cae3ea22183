//! The board of `crew watch`: every loop on this machine, those that need a person first, and the
//! effect of each key. It keeps what is shown; `cmd/watch.rs` reads, draws and acts.

mod draw;

use std::path::Path;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub use self::draw::draw_board;
use crate::report::line;
use engine::evidence::describe_evidence;
use engine::record::{
    Doing, EndReason, Ending, Loop, LoopId, LoopStep, MESSAGE_CHARS, Outcome, Status,
};
use engine::text::{
    clean_text, clock_time, format_age, format_briefly, one_line, quote_words, with_reason,
};
use engine::usage::Usage;
use engine::view::columns::{short_folder, task_text};
use engine::view::{
    BoardGroup, IterationLine, LoopView, asked_for_help, at_dialog, state_of_the_checks,
};

/// How many hours an ended loop stays on the board.
const ENDED_HOURS: i64 = 24;
/// How long an ended loop that needs a person stays on the board, in hours.
const BLOCKED_HOURS: i64 = 7 * 24;
/// The maximum number of characters in a row's news or task; the terminal cuts them further.
const NEWS_CHARS: usize = 200;

/// The request of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoardRequest {
    Quit,
    /// Read a page about a loop into [`Board::open`].
    Open(TextKind, LoopId),
    Pause(LoopId),
    /// Resumes the loop, with a message for its agent.
    Resume(LoopId, Option<String>),
    Cancel(LoopId),
    Tell(LoopId, String),
}

/// A text about a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Page,
    Log,
    Diff,
}

/// A text that fills the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenText {
    pub kind: TextKind,
    pub id: LoopId,
    lines: Vec<String>,
    /// The first line that is shown; `None` follows the end as lines are added.
    top: Option<usize>,
}

/// The input in the last line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Typing {
    /// A one-letter answer to this question, which confirms the request.
    Answer(String, BoardRequest),
    /// A message for the agent.
    Message(LoopId, String),
}

/// The contents of the board, with what is selected and typed on it.
#[derive(Debug, Default)]
pub struct Board {
    rows: Vec<BoardRow>,
    /// The loop that the keys apply to.
    pub chosen: Option<LoopId>,
    /// The text that fills the screen.
    pub open: Option<OpenText>,
    typing: Option<Typing>,
    /// The result of the last request, until the next key.
    pub notice: Option<String>,
    /// The last iterations of the chosen loop.
    pub iterations: Vec<IterationLine>,
    /// The last activity of its agent.
    pub activity: Vec<String>,
    /// How many characters of an id distinguish all loops of this machine.
    id_chars: usize,
    /// How many records cannot be read.
    pub unreadable: u64,
    shows_keys: bool,
}

/// The minimum number of characters of an id that are shown.
const ID_CHARS: usize = 4;

impl Board {
    /// Replaces the rows. While the user is choosing, no row moves except those that no longer need
    /// a person.
    pub fn update_rows(&mut self, mut rows: Vec<BoardRow>, ids: &[LoopId], is_choosing: bool) {
        if is_choosing || self.typing.is_some() {
            for row in &mut rows {
                let needs_you = BoardGroup::NeedsYou;
                if let Some(before) = self.rows.iter().find(|before| before.id == row.id)
                    && (row.place.0 == needs_you || before.place.0 != needs_you)
                {
                    row.place = before.place;
                }
            }
        }
        // A fleet's loops are together, after all others of their group.
        rows.sort_by_cached_key(|BoardRow { place: (group, rank), fleet, id, .. }| {
            (*group, fleet.clone(), *rank, id.clone())
        });
        self.id_chars = id_chars_needed(ids);
        let at = self.chosen_index();
        self.rows = rows;
        if self.chosen_index().is_none() {
            let near = at.unwrap_or(0).min(self.rows.len().saturating_sub(1));
            self.chosen = self.rows.get(near).map(|row| row.id.clone());
        }
    }

    /// Opens a page; a page that is already open keeps its position and gets these lines.
    pub fn show_text(&mut self, kind: TextKind, id: LoopId, lines: Vec<String>) {
        match &mut self.open {
            Some(open) if open.kind == kind && open.id == id => open.lines = lines,
            open => {
                let top = if kind == TextKind::Log { None } else { Some(0) };
                *open = Some(OpenText { kind, id, lines, top });
            }
        }
    }

    /// Handles a key on a screen of `height` rows, and returns its request.
    pub fn press_key(&mut self, key: KeyEvent, height: usize) -> Option<BoardRequest> {
        self.notice = None;
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return is_interrupt(key).then_some(BoardRequest::Quit);
        }
        let key = key.code;
        if std::mem::take(&mut self.shows_keys) {
            return None;
        }
        if let Some(typing) = self.typing.take() {
            return self.continue_typing(typing, key);
        }
        let page = height.saturating_sub(3).max(1);
        match key {
            KeyCode::Char('q') => return Some(BoardRequest::Quit),
            KeyCode::Char('?') => self.shows_keys = true,
            KeyCode::Esc => self.open = None,
            KeyCode::Up | KeyCode::Char('k') => self.move_by(1, false, page),
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1, true, page),
            KeyCode::PageUp => self.move_by(page, false, page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.move_by(page, true, page),
            KeyCode::Home | KeyCode::Char('g') => self.move_by(usize::MAX, false, page),
            KeyCode::End | KeyCode::Char('G') => self.move_by(usize::MAX, true, page),
            _ => return self.press_for_chosen(key),
        }
        None
    }

    fn press_for_chosen(&mut self, key: KeyCode) -> Option<BoardRequest> {
        let id = self.open.as_ref().map(|open| &open.id).or(self.chosen.as_ref())?.clone();
        match key {
            KeyCode::Enter => Some(BoardRequest::Open(TextKind::Page, id)),
            KeyCode::Char('l') => Some(BoardRequest::Open(TextKind::Log, id)),
            KeyCode::Char('d') => Some(BoardRequest::Open(TextKind::Diff, id)),
            KeyCode::Char('p') => Some(BoardRequest::Pause(id)),
            KeyCode::Char('t') => self.begin_typing(Typing::Message(id, String::new())),
            KeyCode::Char('r') => self.ask_to_confirm(
                format!("resume {}", self.short_id(&id)),
                BoardRequest::Resume(id, None),
            ),
            KeyCode::Char('c') => self
                .ask_to_confirm(format!("cancel {}", self.short_id(&id)), BoardRequest::Cancel(id)),
            _ => None,
        }
    }

    fn ask_to_confirm(&mut self, what: String, request: BoardRequest) -> Option<BoardRequest> {
        self.begin_typing(Typing::Answer(what + "? y/n", request))
    }

    fn begin_typing(&mut self, typing: Typing) -> Option<BoardRequest> {
        self.typing = Some(typing);
        None
    }

    fn continue_typing(&mut self, typing: Typing, key: KeyCode) -> Option<BoardRequest> {
        match (typing, key) {
            (Typing::Answer(_, request), KeyCode::Char('y' | 'Y')) => Some(request),
            (Typing::Answer(..), _) | (_, KeyCode::Esc) => None,
            (Typing::Message(_, text), KeyCode::Enter) if text.trim().is_empty() => None,
            (Typing::Message(id, text), KeyCode::Enter) => {
                if self.rows.iter().any(|row| row.id == id && row.is_resumed_by_words) {
                    let what = format!("resume {} with that message", self.short_id(&id));
                    return self.ask_to_confirm(what, BoardRequest::Resume(id, Some(text)));
                }
                Some(BoardRequest::Tell(id, text))
            }
            (Typing::Message(id, mut text), key) => {
                match key {
                    KeyCode::Backspace => drop(text.pop()),
                    KeyCode::Char(typed) if text.chars().count() < MESSAGE_CHARS => {
                        text.push(typed);
                    }
                    _ => {}
                }
                self.begin_typing(Typing::Message(id, text))
            }
        }
    }

    /// Scrolls the open text, or moves the choice.
    fn move_by(&mut self, by: usize, is_down: bool, page: usize) {
        let last = match &self.open {
            Some(open) => open.lines.len().saturating_sub(page),
            None => self.rows.len().saturating_sub(1),
        };
        let from = match &self.open {
            Some(open) => open.top.unwrap_or(last),
            None => self.chosen_index().unwrap_or(last),
        };
        let to = if is_down { from.saturating_add(by).min(last) } else { from.saturating_sub(by) };
        match &mut self.open {
            Some(open) if open.kind == TextKind::Log && to >= last => open.top = None,
            Some(open) => open.top = Some(to),
            None => self.chosen = self.rows.get(to).map(|row| row.id.clone()),
        }
    }

    /// The part of an id that is shown.
    fn short_id<'a>(&self, id: &'a LoopId) -> &'a str {
        &id.as_str()[..self.id_chars.min(id.as_str().len())]
    }

    fn chosen_index(&self) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        self.rows.iter().position(|row| row.id == *chosen)
    }
}

/// Whether the key is Ctrl-C.
pub fn is_interrupt(key: KeyEvent) -> bool {
    key == KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)
}

/// How many characters distinguish each of the ids from all others, at least [`ID_CHARS`].
fn id_chars_needed(ids: &[LoopId]) -> usize {
    let mut ids: Vec<&str> = ids.iter().map(LoopId::as_str).collect();
    ids.sort_unstable();
    let shared = ids.windows(2).map(|pair| {
        pair[0].bytes().zip(pair[1].bytes()).take_while(|(one, other)| one == other).count()
    });
    shared.max().map_or(ID_CHARS, |shared| ID_CHARS.max(shared + 1))
}

/// The row of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardRow {
    id: LoopId,
    /// The fleet whose task it works on.
    fleet: Option<String>,
    group: BoardGroup,
    /// The folder, such as "~/w/api", or the name of the fleet's task.
    folder: String,
    /// The iteration and its limit: "3/10".
    count: String,
    /// How long it has been in this state, or when it begins or ended: "22m", "09:10".
    when: String,
    usage: Usage,
    news: String,
    task: String,
    is_completed: bool,
    /// Whether a message for its agent resumes it: it has ended and is not a task, whose fleet
    /// keeps the message.
    is_resumed_by_words: bool,
    /// Its heading and its rank below it, smallest first. The heading is its group's, except while
    /// no row may move.
    place: (BoardGroup, i64),
}

impl BoardRow {
    /// The row of a loop; `None` if it ended so long ago that only `crew history` lists it.
    pub fn from_view(facts: &LoopView<'_>, home: Option<&Path>) -> Option<Self> {
        let (record, group) = (facts.record, facts.board_group());
        let hours = if group == BoardGroup::NeedsYou { BLOCKED_HOURS } else { ENDED_HOURS };
        if !record.is_live() && (facts.now.to_utc() - record.last_at()).num_hours() >= hours {
            return None;
        }
        let last = record.last_at().timestamp_millis();
        let rank = match group {
            BoardGroup::NeedsYou => last,
            BoardGroup::Running => record.started_at.timestamp_millis(),
            BoardGroup::Waiting => {
                record.state.wait().due().map_or(i64::MAX, |due| due.timestamp_millis())
            }
            BoardGroup::Ended => -last,
        };
        Some(Self {
            id: record.id.clone(),
            fleet: record.fleet.as_ref().map(|task| task.name.clone()),
            group,
            folder: clean_text(&match &record.fleet {
                Some(task) => task.to_string(),
                None => short_folder(record, home),
            }),
            count: facts.iteration_text(),
            when: time_text(facts, group),
            usage: record.state.work().usage().clone(),
            news: one_line(&clean_text(&news_text(facts)), NEWS_CHARS),
            task: one_line(&clean_text(&task_text(record)), NEWS_CHARS),
            is_completed: record.outcome() == Some(Outcome::Completed),
            is_resumed_by_words: !record.is_live() && facts.task.is_none(),
            place: (group, rank),
        })
    }
}

fn time_text(facts: &LoopView<'_>, group: BoardGroup) -> String {
    let (record, now) = (facts.record, facts.now);
    let since = match (group, record.state.wait().due()) {
        (BoardGroup::Running, _) => return format_briefly(facts.running_ms),
        (BoardGroup::Ended, _) => return clock_time(record.last_at(), now),
        (BoardGroup::Waiting, Some(due)) if record.state.status() == Status::Waiting => {
            return clock_time(due, now);
        }
        (BoardGroup::Waiting, _) => record.last_at(),
        (BoardGroup::NeedsYou, _) => {
            facts.dialog.map_or_else(|| record.last_at(), |dialog| dialog.since)
        }
    };
    let spoken = format_age((now.to_utc() - since).num_milliseconds());
    spoken.trim_end_matches(" ago").to_owned()
}

fn news_text(facts: &LoopView<'_>) -> String {
    let record = facts.record;
    let iteration = record.iteration();
    if let Some(dialog) = facts.dialog {
        return at_dialog(dialog, facts.now);
    }
    if facts.owner_is_gone {
        return format!("owner gone: its {} has ended", record.driver().program());
    }
    if let Some(ending) = record.state.end().ending() {
        return end_text(record, ending) + record.state.git().left_in_a_list();
    }
    match record.state.status() {
        Status::Paused => format!("paused before iteration {iteration}"),
        Status::Waiting => {
            let why = record.state.wait().wait_reason().as_deref().unwrap_or("waits");
            format!("{why} · then iteration {iteration}")
        }
        _ => {
            let mut parts = Vec::new();
            if facts.is_pausing {
                parts.push("pauses when the iteration ends".to_owned());
            }
            parts.extend(record.fallback_until(facts.now));
            // While the agent works, what its last iteration found is the news.
            let doing = facts.doing.as_ref().filter(|doing| doing.step != LoopStep::Agent);
            parts.extend(doing.map(Doing::doing_words));
            match record.state.seen().evidence() {
                Some(evidence) => parts.extend(describe_evidence(evidence)),
                None => parts.push("first iteration".to_owned()),
            }
            parts.extend(line::in_a_row(record));
            parts.join(" · ")
        }
    }
}

/// "completed, proven", "exhausted · 2 of 5 tests fail", what a blocked agent needs.
fn end_text(record: &Loop, ending: &Ending) -> String {
    let outcome = ending.outcome.label();
    if let Some(needs) = asked_for_help(record) {
        return format!("{outcome}: {}", quote_words(needs));
    }
    match (ending.proof, state_of_the_checks(record)) {
        (Some(proof), _) => format!("{outcome}, {}", proof.label()),
        (None, Some(checks)) => format!("{outcome} · {checks}"),
        (None, None) => match &ending.reason {
            reason if reason.names_its_outcome() => reason.to_string(),
            EndReason::Refused(refusal) => with_reason(outcome, &refusal.to_string()),
            reason => with_reason(outcome, &reason.to_string()),
        },
    }
}

#[cfg(test)]
mod tests;

//! The board of `crew watch`: every loop of this machine, what needs a person first, and what a key
//! does there. It holds what is shown and asks for nothing; `cmd/watch` reads, draws and obeys.

mod draw;
mod row;

pub use self::draw::{BoardScreen, lines};
pub use self::row::{BoardFacts, BoardGroup, BoardRow};
use crate::engine::record::{LoopId, MESSAGE_CHARS};
use crate::engine::text::clean;

/// A key, as far as the board knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardKey {
    Char(char),
    /// Ctrl-C.
    Interrupt,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
}

/// What a key asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoardOrder {
    Quit,
    /// Read a text about a loop into [`Board::open`].
    Open(TextKind, LoopId),
    Pause(LoopId),
    /// Resumes it, with a message for its agent.
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
    pub lines: Vec<String>,
    /// The first line that is shown.
    top: usize,
    /// Whether the end is shown, also when lines are added.
    is_at_end: bool,
}

/// What is being typed in the last line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Typing {
    /// An answer of one letter, to this order.
    Answer(BoardOrder),
    /// A message for the agent.
    Message(LoopId, String),
}

/// What is known of the chosen loop, beneath the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Its last iterations, a line each, for this width.
    pub iterations: Vec<String>,
    /// What its agent did last.
    pub activity: Vec<String>,
}

/// The board.
#[derive(Debug, Default)]
pub struct Board {
    rows: Vec<BoardRow>,
    chosen: Option<LoopId>,
    open: Option<OpenText>,
    typing: Option<Typing>,
    /// The result of the last order, until the next key.
    notice: Option<String>,
    detail: Chosen,
    /// How much of an id tells all loops of this machine apart.
    id_chars: usize,
    /// Records that cannot be read.
    unreadable: usize,
    shows_keys: bool,
}

/// The fewest characters of an id that are shown.
const ID_CHARS: usize = 4;

impl Board {
    /// How many records of loops cannot be read.
    pub fn miss(&mut self, unreadable: usize) {
        self.unreadable = unreadable;
    }

    /// Takes the loops as they are now. With `keeps_order` no row moves: somebody is choosing.
    pub fn update(&mut self, mut rows: Vec<BoardRow>, ids: &[LoopId], keeps_order: bool) {
        let by_place =
            |one: &BoardRow, other: &BoardRow| (one.place, &one.id).cmp(&(other.place, &other.id));
        rows.sort_by(by_place);
        if keeps_order || self.typing.is_some() {
            for row in &mut rows {
                if let Some(before) = self.rows.iter().find(|it| it.id == row.id) {
                    row.place = before.place;
                }
            }
            rows.sort_by(by_place);
        }
        self.id_chars = telling_apart(ids);
        let at = self.at();
        self.rows = rows;
        if self.at().is_none() {
            let near = at.unwrap_or(0).min(self.rows.len().saturating_sub(1));
            self.chosen = self.rows.get(near).map(|row| row.id.clone());
        }
    }

    /// Chooses a loop, if it is there.
    pub fn choose(&mut self, id: &LoopId) {
        if self.rows.iter().any(|row| row.id == *id) {
            self.chosen = Some(id.clone());
        }
    }

    /// The chosen loop.
    pub fn chosen(&self) -> Option<&LoopId> {
        self.chosen.as_ref()
    }

    /// The text that fills the screen.
    pub fn open(&self) -> Option<&OpenText> {
        self.open.as_ref()
    }

    /// Shows a text, or the same one as it is now, at the place where it was left.
    pub fn show(&mut self, kind: TextKind, id: LoopId, lines: Vec<String>) {
        match &mut self.open {
            Some(open) if open.kind == kind && open.id == id => open.lines = lines,
            open => {
                let is_at_end = kind == TextKind::Log;
                *open = Some(OpenText { kind, id, lines, top: 0, is_at_end });
            }
        }
    }

    /// Tells what an order came to.
    pub fn tell(&mut self, notice: String) {
        self.notice = Some(notice);
    }

    /// What is beneath the list.
    pub fn detail(&mut self, detail: Chosen) {
        self.detail = detail;
    }

    /// What a key asks for, on a screen of so many rows.
    pub fn press(&mut self, key: BoardKey, height: usize) -> Option<BoardOrder> {
        self.notice = None;
        if key == BoardKey::Interrupt {
            return Some(BoardOrder::Quit);
        }
        if std::mem::take(&mut self.shows_keys) {
            return None;
        }
        if let Some(typing) = self.typing.take() {
            return self.typed(typing, key);
        }
        let page = height.saturating_sub(3).max(1);
        match key {
            BoardKey::Char('q') => return Some(BoardOrder::Quit),
            BoardKey::Char('?') => self.shows_keys = true,
            BoardKey::Escape => self.open = None,
            BoardKey::Up | BoardKey::Char('k') => self.step(1, false, page),
            BoardKey::Down | BoardKey::Char('j') => self.step(1, true, page),
            BoardKey::PageUp => self.step(page, false, page),
            BoardKey::PageDown | BoardKey::Char(' ') => self.step(page, true, page),
            BoardKey::Home | BoardKey::Char('g') => self.step(usize::MAX, false, page),
            BoardKey::End | BoardKey::Char('G') => self.step(usize::MAX, true, page),
            _ => return self.about_the_chosen(key),
        }
        None
    }

    fn about_the_chosen(&mut self, key: BoardKey) -> Option<BoardOrder> {
        let id = self.open.as_ref().map(|open| &open.id).or(self.chosen.as_ref())?.clone();
        let row = self.rows.iter().find(|row| row.id == id);
        let is_completed = row.is_some_and(|row| row.is_completed);
        let refusal = row.and_then(|row| row.fleets_refusal.as_ref());
        let is_in_vain = match key {
            BoardKey::Char('t') => is_completed && refusal.is_none(),
            BoardKey::Char('r') => is_completed,
            _ => false,
        };
        if is_in_vain {
            self.notice = Some(format!("loop {id} is completed: nothing is left to resume"));
            return None;
        }
        if let (BoardKey::Char('r'), Some(refusal)) = (key, refusal) {
            self.notice = Some(clean(&refusal.replace("\nhint:", " ·")));
            return None;
        }
        match key {
            BoardKey::Enter => Some(BoardOrder::Open(TextKind::Page, id)),
            BoardKey::Char('l') => Some(BoardOrder::Open(TextKind::Log, id)),
            BoardKey::Char('d') => Some(BoardOrder::Open(TextKind::Diff, id)),
            BoardKey::Char('p') => Some(BoardOrder::Pause(id)),
            BoardKey::Char('t') => self.begin(Typing::Message(id, String::new())),
            BoardKey::Char('r') => self.begin(Typing::Answer(BoardOrder::Resume(id, None))),
            BoardKey::Char('c') => self.begin(Typing::Answer(BoardOrder::Cancel(id))),
            _ => None,
        }
    }

    fn begin(&mut self, typing: Typing) -> Option<BoardOrder> {
        self.typing = Some(typing);
        None
    }

    fn typed(&mut self, typing: Typing, key: BoardKey) -> Option<BoardOrder> {
        match (typing, key) {
            (Typing::Answer(order), BoardKey::Char('y' | 'Y')) => Some(order),
            (Typing::Answer(_), _) | (_, BoardKey::Escape) => None,
            (Typing::Message(_, text), BoardKey::Enter) if text.trim().is_empty() => None,
            (Typing::Message(id, text), BoardKey::Enter) => {
                let has_to_resume = |row: &BoardRow| row.is_over && row.fleets_refusal.is_none();
                if self.rows.iter().any(|row| row.id == id && has_to_resume(row)) {
                    return self.begin(Typing::Answer(BoardOrder::Resume(id, Some(text))));
                }
                Some(BoardOrder::Tell(id, text))
            }
            (Typing::Message(id, mut text), key) => {
                match key {
                    BoardKey::Backspace => drop(text.pop()),
                    BoardKey::Char(typed) if text.chars().count() < MESSAGE_CHARS => {
                        text.push(typed);
                    }
                    _ => {}
                }
                self.begin(Typing::Message(id, text))
            }
        }
    }

    /// Moves the choice, or the open text.
    fn step(&mut self, by: usize, is_down: bool, page: usize) {
        let moved = |from: usize, last: usize| {
            if is_down { from.saturating_add(by).min(last) } else { from.saturating_sub(by) }
        };
        if let Some(open) = &mut self.open {
            let last = open.lines.len().saturating_sub(page);
            let from = if open.is_at_end { last } else { open.top };
            open.top = moved(from, last);
            open.is_at_end = open.kind == TextKind::Log && open.top == last;
        } else if let Some(at) = self.at() {
            self.chosen = Some(self.rows[moved(at, self.rows.len() - 1)].id.clone());
        }
    }

    fn at(&self) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        self.rows.iter().position(|row| row.id == *chosen)
    }
}

/// How many characters of the ids, at least [`ID_CHARS`], differ in all of them.
fn telling_apart(ids: &[LoopId]) -> usize {
    let mut ids: Vec<&str> = ids.iter().map(LoopId::as_str).collect();
    ids.sort_unstable();
    let same = |pair: &[&str]| {
        pair[0].bytes().zip(pair[1].bytes()).take_while(|(one, other)| one == other).count()
    };
    ids.windows(2).map(|pair| same(pair) + 1).max().unwrap_or(0).max(ID_CHARS)
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;

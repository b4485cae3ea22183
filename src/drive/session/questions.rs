//! Questions of the agent and dialogs of the client, in a session with a loop. If the user is not
//! there, a question must not stop the loop for the night: the agent is told to decide, and the
//! question is kept. A dialog cannot be answered by crew: it is recorded, so that people see it.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::EventResult;
use super::stop::is_ours;
use crate::clients::{self, AskedQuestion, Hook, PendingCall, Transcript};
use crate::engine::journal::Event;
use crate::engine::record::{Dialog, Loop, LoopId, Question, Status, keep_questions};
use crate::engine::text::{clip, count};
use crate::world::clock;
use crate::world::files::disk::{self, Durability};
use crate::world::store::{self, Home, read_pointer};

/// The longest wait for the loop's lock: the agent waits for the answer.
const RECORDED_WITHIN: Duration = Duration::from_millis(500);
/// How much of a transcript's end is searched for the tool that waits, in bytes.
const TAIL_BYTES: u64 = 1 << 20;
/// The most transcripts of subagents that are listed, and that are read.
const AGENTS_MAX: usize = 1000;
const AGENTS_READ: usize = 8;
/// The file of a loop whose time is when the user last typed in its session.
const TYPED: &str = "typed";

/// Notes that the user has typed something in a session that has a loop.
pub fn note_typing(home: &Home, hook: &Hook<'_>) {
    let Some(session_id) = &hook.session_id else { return };
    if let Ok(Some(id)) = read_pointer(&home.session_pointer(session_id)) {
        // Without it the user is not asked, which no loop depends on.
        let _ = disk::write(&home.loop_file(&id, TYPED), b"", Durability::Process);
    }
}

/// How long ago the user typed something; `None` if that was never seen.
fn typed_ago(home: &Home, id: &LoopId) -> Option<Duration> {
    let (_, nanoseconds) = disk::stamp(&home.loop_file(id, TYPED))?;
    let seconds = i64::try_from(nanoseconds / 1_000_000_000).ok()?;
    // A time in the future is now: the clock was set back.
    let ago = clock::now().wall.timestamp().saturating_sub(seconds);
    Some(Duration::from_secs(u64::try_from(ago).unwrap_or(0)))
}

/// The loop of this session and client at which somebody works.
fn working(home: &Home, hook: &Hook<'_>) -> Result<Option<Loop>> {
    let Some(session_id) = &hook.session_id else { return Ok(None) };
    let Some(id) = read_pointer(&home.session_pointer(session_id))? else { return Ok(None) };
    let record = store::load(home, &id)?;
    Ok((is_at_work(&record) && is_ours(&record, hook)).then_some(record))
}

/// Answers a question, or leaves it to the user.
pub fn ask(home: &Home, hook: &Hook<'_>, asked: &[AskedQuestion]) -> Result<EventResult> {
    let Some(mut record) = working(home, hook)? else { return Ok(EventResult::Silent) };
    if !record.contract.questions.defers(typed_ago(home, &record.id)) {
        return Ok(EventResult::Silent);
    }
    let iteration = record.iteration();
    let kept = |it: &AskedQuestion| Question::new(iteration, &it.question, &it.options);
    let questions: Vec<Question> = asked.iter().map(kept).collect();
    let what = match questions.as_slice() {
        [] => "asked the user; told to decide".to_owned(),
        [only] => format!("asked \"{}\" in iteration {iteration}; told to decide", only.text),
        [first, rest @ ..] => {
            let (first, more) = (clip(&first.text, 200), count(rest.len() as u64, "question"));
            format!("asked \"{first}\" and {more} more in iteration {iteration}; told to decide")
        }
    };
    keep_questions(&mut record.state.asked, questions.clone());
    // The agent must not wait, also where the question cannot be recorded.
    let recorded = change(home, &record.id, &what, |record| {
        keep_questions(&mut record.state.asked, questions);
    });
    Ok(EventResult::Deferred(Box::new(recorded.unwrap_or(record))))
}

/// Records that the client waits at a dialog, for `tool` if the client says so. Without a
/// transcript nothing would tell when it was answered: it is not recorded then.
pub fn dialog(home: &Home, hook: &Hook<'_>, tool: Option<&str>) -> Result<EventResult> {
    let Some(record) = working(home, hook)? else { return Ok(EventResult::Silent) };
    let Some((transcript, call)) = pending(hook, tool) else { return Ok(EventResult::Silent) };
    let (call, found) = call.map(|it| (it.id, it.tool)).unzip();
    let tool = tool.map(str::to_owned).or(found);
    let is_question = tool.is_some() && tool.as_deref() == hook.abilities().question_tool;
    let dialog = Dialog {
        since: clock::now().wall,
        tool: tool.filter(|_| !is_question),
        call: call.filter(|id| !id.is_empty()),
        is_question,
        transcript_bytes: disk::size(&transcript),
        transcript,
    };
    let record = change(home, &record.id, "the client waits at a dialog", |record| {
        record.state.session.dialog = Some(dialog);
    })?;
    Ok(EventResult::AtDialog(Box::new(record)))
}

/// The transcript, of the session or of a subagent, whose agent waits for a tool, and the call: of
/// those where `tool` waits, or else any, the one that was written to last. If none says so, the
/// session's.
fn pending(hook: &Hook<'_>, tool: Option<&str>) -> Option<(PathBuf, Option<PendingCall>)> {
    let (main, reader) = hook.transcript.as_deref().zip(hook.reader())?;
    let folder = (reader.agents)(main);
    let names = disk::names(&folder, AGENTS_MAX).into_iter();
    let agents = names.filter(|name| (reader.is_an_agents)(name)).map(|name| folder.join(name));
    let mut files: Vec<PathBuf> = agents.chain([main.to_owned()]).collect();
    files.sort_by_key(|file| Reverse(disk::stamp(file).map(|(_, time)| time)));
    let waiting = files.into_iter().take(AGENTS_READ).filter_map(|file| {
        let (tail, _) = disk::read_end(&file, 0, TAIL_BYTES).ok()?;
        let calls = (reader.pending_calls)(&tail);
        let is_named = |call: &&PendingCall| Some(call.tool.as_str()) == tool;
        let named = calls.iter().find(is_named).cloned();
        let call = named.clone().or_else(|| calls.into_iter().next())?;
        Some((named.is_none(), (file, Some(call))))
    });
    let best = waiting.min_by_key(|(is_other, _)| *is_other).map(|(_, found)| found);
    best.or_else(|| disk::is_file(main).then(|| (main.to_owned(), None)))
}

/// Changes what is kept for people, in a loop that still works.
fn change(home: &Home, id: &LoopId, what: &str, change: impl FnOnce(&mut Loop)) -> Result<Loop> {
    let held = store::hold(home, id, RECORDED_WITHIN)?;
    let mut record = held.load()?;
    if !is_at_work(&record) {
        return Ok(record);
    }
    change(&mut record);
    Ok(held.record(record, |next| Event::changed(what, next))?)
}

// Whether the client still waits at the dialog that was recorded last. No event says that a dialog
// was answered, but the transcript then has the result of its call.

/// How much of a transcript's end is searched for that result, in bytes.
const SINCE_BYTES: u64 = 1 << 20;

/// The dialog at which a loop's client still waits.
pub fn waiting_dialog(record: &Loop) -> Option<&Dialog> {
    record
        .state
        .session
        .dialog
        .as_ref()
        .filter(|dialog| is_at_work(record) && still_waits(record, dialog))
}

/// Whether the call has no result yet. Others of the same message may get theirs before it.
pub fn still_waits(record: &Loop, dialog: &Dialog) -> bool {
    let (file, known) = (&dialog.transcript, dialog.transcript_bytes);
    if disk::size(file) == known {
        return true;
    }
    let reader = clients::of(&record.state.owner).abilities().transcript.as_ref();
    let Some((reader, call)) = reader.zip(dialog.call.as_deref()) else { return false };
    let since = disk::read_end(file, known, SINCE_BYTES);
    since.is_ok_and(|(since, is_cut)| !is_cut && !(reader.has_result)(&since, call))
}

/// Whether the agent, or a job that it left behind, may be at work.
pub fn is_at_work(record: &Loop) -> bool {
    matches!(record.state.status, Status::Running | Status::Waiting)
}

// Whether the user broke off the agent's turn (Esc), which no event reports. The client leaves a
// mark in the transcript, or, where the agent had not answered yet, takes its prompt back without
// one. Then only the next prompt shows it: it has a turn of its own, although the turn that began
// the loop has not come to its end.

/// The most that is read of the transcript to find an answer of the agent, in bytes.
const ANSWER_WITHIN: u64 = 8 << 20;
/// How far from the transcript's end the mark of an interruption is searched for, in bytes.
const MARK_WITHIN: u64 = 64 << 10;

/// Whether the prompt of this event follows an interruption of the loop's running iteration. What
/// is typed while the agent works is part of its turn, and steers it.
pub fn broke_off(record: &Loop, hook: &Hook<'_>) -> bool {
    is_marked(record, hook.transcript.as_deref(), hook.reader()) || is_taken_back(record, hook)
}

/// Whether the transcript holds the client's mark since the last boundary.
pub fn is_marked(record: &Loop, file: Option<&Path>, reader: Option<&Transcript>) -> bool {
    file.zip(reader).is_some_and(|(file, reader)| {
        let tail = disk::read_end(file, record.state.session.transcript_bytes, MARK_WITHIN);
        tail.is_ok_and(|(tail, _)| (reader.interrupted)(&tail))
    })
}

/// Whether this event is of another turn than the start or resume, no stop of which was seen.
/// Later turns may be a companion's: of those the record knows no more than their last stop.
fn is_taken_back(record: &Loop, hook: &Hook<'_>) -> bool {
    let memory = &record.state.session;
    let is_another = || {
        let turns = memory.prompt_id.as_ref().zip(hook.turn.as_ref());
        turns.is_some_and(|(began, now)| began != now)
    };
    hook.abilities().steers_within_the_turn && memory.last_stop.is_none() && is_another()
}

/// Whether a loop's first prompt was taken back before the agent answered a word of it. Nothing is
/// lost with such a loop. Without a transcript nobody knows.
pub fn came_to_nothing(record: &Loop, hook: &Hook<'_>) -> bool {
    let is_its_first = record.state.status == Status::Running && record.state.boundaries == 0;
    is_its_first && is_taken_back(record, hook) && has_no_answer(record, hook) == Some(true)
}

fn has_no_answer(record: &Loop, hook: &Hook<'_>) -> Option<bool> {
    let (file, reader) = (hook.transcript.as_deref()?, hook.reader()?);
    let mut answers = 0;
    let each = |line: &str, cut: bool| {
        let is_one =
            if cut { (reader.may_hold_a_message)(line) } else { (reader.message)(line).is_some() };
        answers += u32::from(is_one);
    };
    let start = record.state.session.transcript_bytes;
    let (_, has_more) = disk::read_lines(file, start, ANSWER_WITHIN, each).ok()?;
    Some(answers == 0 && !has_more)
}

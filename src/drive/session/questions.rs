//! The agent's questions and the client's dialogs, in a session with a loop. If the user is not
//! there, a question must not stop the loop for the night: the agent has to decide, and the
//! question is kept. A dialog cannot be answered by crew: it is recorded, so that people see it.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::{EventResult, owned_id, session_loop};
use crate::drive::transcript::is_at_work;
use engine::record::{Dialog, Loop, LoopId, Question};
use engine::text::count;
use readers::clients::{AskedQuestion, Hook, PendingCall};
use world::clock;
use world::files::disk::{self, Durability};
use world::store::{self, Home};

/// The longest wait for the loop's lock: the agent waits for the answer.
const RECORDED_WITHIN: Duration = Duration::from_millis(500);
/// How much of a transcript's end is searched for the waiting tool, in bytes.
const TAIL_BYTES: u64 = 1 << 20;
/// The maximum number of transcripts of subagents listed, and read.
const AGENTS_MAX: usize = 1000;
const AGENTS_READ: usize = 8;
/// The file of a loop whose modification time is when the user last typed in its session.
const TYPED: &str = "typed";

/// Notes that the user has typed something in a session that has a loop.
pub fn note_typing(home: &Home, hook: &Hook<'_>) {
    if let Ok(Some(id)) = owned_id(home, hook) {
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

/// Answers a question, or leaves it to the user.
pub fn handle_question(
    home: &Home,
    hook: &Hook<'_>,
    asked: &[AskedQuestion],
) -> Result<EventResult> {
    let ours = session_loop(home, hook)?.filter(is_at_work);
    let Some(mut record) = ours else { return Ok(EventResult::Silent) };
    if !record.contract.questions.defers(typed_ago(home, &record.id)) {
        return Ok(EventResult::Silent);
    }
    let iteration = record.iteration();
    let questions: Vec<Question> = asked
        .iter()
        .map(|asked| Question::new(iteration, &asked.question, &asked.options))
        .collect();
    let what = match questions.as_slice() {
        [] => "asked the user; has to decide itself".to_owned(),
        [first, rest @ ..] => {
            let others = match rest.len() {
                0 => String::new(),
                others => format!(" and {} more", count(others as u64, "question")),
            };
            let first = first.text();
            format!("asked \"{first}\"{others} in iteration {iteration}; has to decide itself")
        }
    };
    record.state.add_questions(questions.clone());
    // The agent must not wait, also where the question cannot be recorded.
    let recorded = change_loop(home, &record.id, &what, |record| {
        record.state.add_questions(questions);
    });
    Ok(EventResult::Deferred(Box::new(recorded.unwrap_or(record))))
}

/// Records that the client waits at a dialog, for `tool` if the client names it. Without a
/// transcript nothing shows when it was answered, so it is not recorded.
pub fn handle_dialog(home: &Home, hook: &Hook<'_>, tool: Option<&str>) -> Result<EventResult> {
    let ours = session_loop(home, hook)?.filter(is_at_work);
    let Some(record) = ours else { return Ok(EventResult::Silent) };
    let Some((transcript, call)) = pending_call(hook, tool) else { return Ok(EventResult::Silent) };
    let (call, found) = call.map(|call| (call.id, call.tool)).unzip();
    let tool = tool.map(str::to_owned).or(found);
    let is_question = tool.is_some() && tool.as_deref() == hook.client.question_tool();
    let dialog = Dialog {
        since: clock::now().wall,
        tool: if is_question { None } else { tool },
        call: call.filter(|id| !id.is_empty()),
        is_question,
        transcript_bytes: disk::size(&transcript),
        transcript,
    };
    let record = change_loop(home, &record.id, "the client waits at a dialog", |record| {
        record.state.session_mut().dialog = Some(dialog);
    })?;
    Ok(EventResult::AtDialog(Box::new(record)))
}

/// The transcript, of the session or of a subagent, whose agent waits for a tool, and the call:
/// among those that wait for `tool`, or otherwise all, the one that was written to last. If none
/// waits, the session's.
fn pending_call(hook: &Hook<'_>, tool: Option<&str>) -> Option<(PathBuf, Option<PendingCall>)> {
    let (main, reader) = hook.readable_transcript()?;
    let folder = (*reader.agents())(main);
    let names = disk::names(&folder, AGENTS_MAX).into_iter();
    let agents = names.filter(|name| (*reader.is_an_agents())(name)).map(|name| folder.join(name));
    let mut files: Vec<PathBuf> = agents.chain([main.to_owned()]).collect();
    files.sort_by_key(|file| Reverse(disk::stamp(file).map(|(_, time)| time)));
    let waiting = files.into_iter().take(AGENTS_READ).filter_map(|file| {
        let (tail, _) = disk::read_end(&file, 0, TAIL_BYTES).ok()?;
        let calls = (*reader.pending_calls())(&tail);
        let named = calls.iter().find(|call| Some(call.tool.as_str()) == tool).cloned();
        let call = named.clone().or_else(|| calls.into_iter().next())?;
        Some((named.is_none(), (file, Some(call))))
    });
    match waiting.min_by_key(|(is_other, _)| *is_other) {
        Some((_, found)) => Some(found),
        None if disk::is_file(main) => Some((main.to_owned(), None)),
        None => None,
    }
}

/// Changes data kept for people, in a loop that is still at work.
fn change_loop(
    home: &Home,
    id: &LoopId,
    what: &str,
    change: impl FnOnce(&mut Loop),
) -> Result<Loop> {
    let held = store::hold_loop(home, id, RECORDED_WITHIN)?;
    let record = held.load()?;
    if !is_at_work(&record) {
        return Ok(record);
    }
    Ok(held.change(&record, what, change)?)
}

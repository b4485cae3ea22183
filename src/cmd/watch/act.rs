//! Carries out the requests of the board: the same as the verbs of these names, with the answer in
//! one line.

use std::path::PathBuf;

use anyhow::Result;

use crate::cmd::control::not_for_an_agent;
use crate::cmd::{actor, control as replies, leave_to_a_person, refuse_an_agent, terminal_reading};
use crate::drive::failure::failure_of;
use crate::drive::resume::{refuse_a_task, refuse_the_spent};
use crate::drive::{control, end};
use crate::fleet::events::FleetRequest;
use crate::fleet::record::TaskRequest;
use crate::fleet::verbs::task_of;
use crate::report::board::BoardRequest;
use engine::record::{Actor, LoopId, ProcessIdentity};
use world::files::disk;
use world::process::{Call, identity};
use world::store::{self, Home};

/// The size of the end of a crew's output that is searched for its last line, in bytes.
const END: u64 = 4 << 10;

/// A crew that was started to resume a loop.
#[derive(Debug)]
pub struct Resuming {
    process: ProcessIdentity,
    output: PathBuf,
}

impl Resuming {
    /// The last words of a crew that has ended; `None` while it works.
    pub fn last_line(&self) -> Option<String> {
        if identity::is_alive(&self.process) {
            return None;
        }
        let start = disk::size(&self.output).saturating_sub(END);
        let (text, _) = disk::read_end(&self.output, start, END).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        // An error has its hint on the lines after it.
        let error = lines.iter().rposition(|line| line.starts_with("crew: "));
        let from = error.unwrap_or(lines.len().saturating_sub(1));
        let words = lines[from..].join(" · ");
        Some(if words.is_empty() { "the crew that resumed it has ended".to_owned() } else { words })
    }
}

/// Carries out a request and describes the result in a line.
pub fn carry_out(home: &Home, request: &BoardRequest, resuming: &mut Vec<Resuming>) -> String {
    let done = match request {
        BoardRequest::Pause(id) => pause_loop(home, id),
        BoardRequest::Cancel(id) => cancel_loop(home, id),
        BoardRequest::Tell(id, words) => tell_agent(home, id, words),
        BoardRequest::Resume(id, words) => {
            resume_loop(home, id, words.as_deref()).map(|(started, answer)| {
                resuming.extend(started);
                answer
            })
        }
        BoardRequest::Quit | BoardRequest::Open(..) => Ok(String::new()),
    };
    let text =
        done.unwrap_or_else(|error| format!("crew: {}", failure_of(&error).join_with(" · ")));
    text.lines().next().unwrap_or_default().to_owned()
}

fn pause_loop(home: &Home, id: &LoopId) -> Result<String> {
    if let Some(named) = task_of(home, id)? {
        let request = TaskRequest::Pause { now: false };
        return named.send_request(home, &FleetRequest::Task(request), actor());
    }
    control::pause_loop(home, id, actor(), false).map(|paused| replies::describe_pause(&paused))
}

fn cancel_loop(home: &Home, id: &LoopId) -> Result<String> {
    if let Some(named) = task_of(home, id)? {
        let by_agent = actor() == Actor::Agent;
        let request = TaskRequest::Cancel { now: true, by_agent, reason: None };
        return named.send_request(home, &FleetRequest::Task(request), actor());
    }
    let attempt = end::cancel_loop(home, id, actor(), None)?;
    Ok(replies::describe_cancel(&attempt, terminal_reading()))
}

fn tell_agent(home: &Home, id: &LoopId, words: &str) -> Result<String> {
    refuse_an_agent(not_for_an_agent())?;
    if let Some(named) = task_of(home, id)? {
        return named.send_message(home, words, Actor::User);
    }
    let record = control::add_message(home, id, words)?;
    Ok(format!("loop {id}: {}", replies::describe_delivery(&record)))
}

/// Resumes a loop, with a message for its agent. A task is resumed by its fleet, any other loop in
/// a separate crew, because its checks run first and may take minutes.
fn resume_loop(
    home: &Home,
    id: &LoopId,
    words: Option<&str>,
) -> Result<(Option<Resuming>, String)> {
    leave_to_a_person("resume a loop")?;
    if let Some(named) = task_of(home, id)? {
        return Ok((None, named.resume_tasks(home, words, false)?));
    }
    let record = store::load(home, id)?;
    refuse_a_task(home, &record)?;
    refuse_the_spent(&record, "crew resume")?;
    let output = home.loop_file(id, "run.log");
    // A message may begin with a hyphen.
    let message = words.map(|words| format!("--tell={words}"));
    let call = Call::crew(home, &record.place.folder)?.args(["resume", id.as_str()]).args(message);
    let process = call.detach(&output)?;
    let answer = format!(
        "loop {id} is resumed by process {}, which writes to {}",
        process.pid,
        output.display()
    );
    Ok((Some(Resuming { process, output }), answer))
}

//! What the board's orders do: the same as the verbs of the same names, with the answer in a line.

use std::path::PathBuf;

use anyhow::Result;

use crate::cmd::control::NOT_FOR_AN_AGENT;
use crate::cmd::{actor, control as replies, reading, refuse_an_agent};
use crate::drive::resume::{refuse_a_task, refuse_the_spent};
use crate::drive::{control, end};
use crate::engine::record::{Actor, LoopId, ProcessIdentity};
use crate::exit;
use crate::fleet::verbs;
use crate::report::board::BoardOrder;
use crate::world::files::disk;
use crate::world::process::{Call, identity};
use crate::world::store::{self, Home};

/// How much of the output of a crew is searched for its last line, in bytes.
const END: u64 = 4 << 10;

/// A crew that was started to resume a loop.
#[derive(Debug)]
pub struct Resuming {
    process: ProcessIdentity,
    output: PathBuf,
}

impl Resuming {
    /// The last line of a crew that has ended; `None` while it works.
    pub fn ended(&self) -> Option<String> {
        if identity::is_alive(&self.process) {
            return None;
        }
        let start = disk::size(&self.output).saturating_sub(END);
        let (text, _) = disk::read_end(&self.output, start, END).unwrap_or_default();
        let mut lines = text.lines().rev().filter(|line| !line.trim().is_empty());
        let last = lines.next().unwrap_or("the crew that resumed it has ended");
        let fault = lines.next().filter(|_| last.starts_with("hint: "));
        Some(fault.map_or_else(|| last.to_owned(), |fault| format!("{fault} · {last}")))
    }
}

/// Obeys, and says in a line what came of it.
pub fn act(home: &Home, order: &BoardOrder, resuming: &mut Vec<Resuming>) -> String {
    let done = match order {
        BoardOrder::Pause(id) => {
            control::pause(home, id, actor(), false).map(|paused| replies::paused(&paused))
        }
        BoardOrder::Cancel(id) => end::cancel(home, id, actor(), None)
            .map(|attempt| replies::cancelled(&attempt, reading())),
        BoardOrder::Tell(id, words) => tell(home, id, words),
        BoardOrder::Resume(id, words) => {
            resume(home, id, words.as_deref()).map(|(started, told)| {
                resuming.push(started);
                told
            })
        }
        BoardOrder::Quit | BoardOrder::Open(..) => Ok(String::new()),
    };
    let text = done.unwrap_or_else(|error| exit::message(&error).replace("\nhint:", " ·"));
    text.lines().next().unwrap_or_default().to_owned()
}

fn tell(home: &Home, id: &LoopId, words: &str) -> Result<String> {
    refuse_an_agent(NOT_FOR_AN_AGENT)?;
    let task = store::load(home, id)?.fleet;
    let task = task.map(|task| verbs::resolve(home, &format!("{}/{}", task.name, task.task)));
    if let Some(Ok(Some(named))) = task {
        return named.tell(home, words, Actor::User);
    }
    let record = control::tell(home, id, words)?;
    Ok(format!("loop {id}: {}", replies::told(&record)))
}

/// Resumes a loop in a crew of its own, with a message for its agent: its checks run first, which
/// may take minutes.
fn resume(home: &Home, id: &LoopId, words: Option<&str>) -> Result<(Resuming, String)> {
    refuse_an_agent("an agent cannot resume a loop\nhint: a person can, in a terminal")?;
    let record = store::load(home, id)?;
    refuse_a_task(home, &record)?;
    refuse_the_spent(&record, "crew resume")?;
    let output = home.loop_file(id, "run.log");
    // A message may begin with a hyphen.
    let told = words.map(|words| format!("--tell={words}"));
    let call = Call::crew(home, &record.place.folder)?.args(["resume", id.as_str()]).args(told);
    let process = call.detach(&output)?;
    let told = format!(
        "loop {id} is resumed by process {}, which writes to {}",
        process.pid,
        output.display()
    );
    Ok((Resuming { process, output }, told))
}

//! The process driver: every iteration is a fresh process of the agent's command line, so its
//! context is always clean, and crew is what lasts. It repeats until the record says that the loop
//! is over or paused. It judges no iteration: the boundary does, as in a session.

mod attempt;
mod ledger;
pub mod round;
pub mod steps;
pub mod waits;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::ledger::Ledger;
use self::round::IterationGate;
use super::find::{own_process, owner_is};
use super::windows::LoopTurn;
use super::{page, tree};
use engine::events::{EventSink, RunEvent};
use engine::failure::Failure;
use engine::git::GitBaseline;
use engine::record::{Loop, LoopId, Owner, Run, Status};
use world::clock::Deadline;
use world::host;
use world::process::signals::Signals;
use world::process::{Call, descendants};
use world::store::{self, Home, LOCK_WAIT, view};

/// Drives a loop that this process owns until it is over, or paused: then it returns `None`. A
/// failure on the way does not lose it: what cannot be recorded is remembered. Each iteration waits
/// at `gate`, if there is one.
///
/// # Errors
/// If another owner has taken it, or a newer crew has written its record, which is left unchanged.
pub fn drive_loop(
    home: &Home,
    record: Loop,
    signals: &Signals,
    sink: &mut dyn EventSink,
    gate: Option<Box<dyn IterationGate + '_>>,
) -> Result<Option<Loop>> {
    // Before orphans are adopted: the process that keeps the machine awake must not count as one.
    let is_wanted = record.contract.run.as_ref().is_some_and(|run| !run.may_sleep);
    let awake = is_wanted.then(host::keep_awake).flatten();
    if let Some((by, _)) = &awake {
        let note =
            format!("keeping this machine awake ({by}); awake = false in settings lets it sleep");
        sink.on_event(&RunEvent::Noted(&note));
    }
    // Without this an agent's orphans outlive their iteration; it fails only on a system without
    // the call.
    let _ = descendants::adopt_orphans();
    let sink = RefCell::new(&mut *sink as &mut dyn EventSink);
    let mut runner = Runner::new(home, record, signals, &sink, gate);
    // Its last process may have been cut off between its last record and the steps that follow it.
    let pending = runner.ledger.record.state.git.pending;
    if !pending.is_empty() {
        runner.do_pending(pending);
    }
    runner.run_iterations()
}

/// A run in progress.
struct Runner<'a> {
    home: &'a Home,
    ledger: Ledger<'a>,
    signals: &'a Signals,
    sink: &'a RefCell<&'a mut dyn EventSink>,
    /// As recorded when this process took the loop, because an agent can write the record too.
    trusted: Option<GitBaseline>,
    /// The former owner's page, for the first iteration here; `None` for a loop that begins.
    handoff: Option<PathBuf>,
    /// Whether the next iteration skips the delay: the first one here, and one right after a wait.
    is_rested: bool,
    /// Whether a person asks for the next iteration: it tries whatever the rate window says.
    is_typed: bool,
    /// What was reported because no commit of the loop has it: repositories in the working tree,
    /// and files of the user that are gone, or are ignored no longer.
    reported: BTreeSet<PathBuf>,
    /// The last limit of each account that was met here.
    met: Vec<LoopTurn>,
    /// The other branch that was reported; empty for a detached head.
    elsewhere: Option<String>,
    /// The gate of its fleet; `None` for a run that a person typed.
    gate: Option<Box<dyn IterationGate + 'a>>,
}

impl<'a> Runner<'a> {
    fn new(
        home: &'a Home,
        record: Loop,
        signals: &'a Signals,
        sink: &'a RefCell<&'a mut dyn EventSink>,
        gate: Option<Box<dyn IterationGate + 'a>>,
    ) -> Self {
        Self {
            home,
            trusted: record.trusted.clone(),
            ledger: Ledger::new(home, record, sink),
            signals,
            sink,
            handoff: None,
            is_rested: true,
            is_typed: gate.is_none(),
            reported: BTreeSet::new(),
            met: Vec::new(),
            elsewhere: None,
            gate,
        }
    }

    fn run_iterations(&mut self) -> Result<Option<Loop>> {
        self.handoff = view::newest_handoff(&self.ledger.record).map(|(page, _)| page);
        loop {
            if !self.ledger.reload() {
                let id = &self.ledger.record.id;
                bail!(Failure::new(
                    format!("loop {id} has another owner now"),
                    format!("crew status {id}")
                ));
            }
            if tree::is_at_rest(&self.ledger.record) && self.ledger.save_record() {
                continue;
            }
            if let Some(error) = self.ledger.refused.take() {
                return Err(error);
            }
            match self.ledger.record.state.status {
                Status::Finished => return Ok(Some(self.finish_record())),
                Status::Paused => {
                    self.emit_event(&RunEvent::Paused(&self.ledger.record));
                    return Ok(None);
                }
                Status::Waiting => self.wait_until_due(),
                Status::Running => self.run_round(),
            }
        }
    }

    /// The terms, as the agent whose turn it is has them.
    fn run_terms(&self) -> Run {
        let record = &self.ledger.record;
        let run = record.contract.run.clone().unwrap_or_default();
        if let Some(agent) = record.worker() { run.as_done_by(agent) } else { run }
    }

    fn emit_event(&self, event: &RunEvent<'_>) {
        view::record_step(self.home, &self.ledger.record, event);
        self.sink.borrow_mut().on_event(event);
    }

    /// Reports what a person should know, and what changes nothing.
    fn emit_note(&self, what: &str) {
        self.emit_event(&RunEvent::Noted(what));
    }

    /// One tick of time. Returns whether a person asked for the end.
    fn must_stop(&self) -> bool {
        self.sink.borrow_mut().on_tick();
        self.signals.times() > 0
    }

    /// Whether a request breaks the iteration off.
    fn is_broken_off(&self) -> bool {
        store::breaks_off(self.home, &self.ledger.record.id)
    }

    /// The end as recorded: a boundary of this run wound the loop up, or the process that ended it
    /// from outside did.
    fn finish_record(&self) -> Loop {
        let page = page::read_page(self.home, &self.ledger.record);
        if self.ledger.record.state.git.pending.reaction {
            self.react_to_the_end();
        }
        let (record, saved) = (&self.ledger.record, !self.ledger.is_behind());
        self.emit_event(&RunEvent::Finished { record, page: &page, saved });
        record.clone()
    }
}

// Hands a loop to a separate crew process, which outlives the terminal it was started from. The
// loop has an owner at every moment: the old one records the new one, which begins only when it
// finds itself in the record.

/// How long the new crew waits for the loop.
const WITHIN: Duration = Duration::from_secs(10);

/// Starts the new crew with `flags` and makes it the owner. Returns the loop, and the file with
/// that crew's output.
pub fn hand_over(home: &Home, record: &Loop, flags: &[&str]) -> Result<(Loop, PathBuf)> {
    let output = home.loop_file(&record.id, "run.log");
    let arguments = [&["drive", record.id.as_str()], flags].concat();
    let process = Call::crew(home, &record.place.folder)
        .and_then(|call| call.args(arguments).detach(&output))
        .context("cannot start a crew in the background")?;
    let held = store::hold_loop(home, &record.id, LOCK_WAIT)?;
    let record = held.load()?;
    let owner = Owner { process, ..record.state.owner.clone() };
    Ok((held.change(&record, "detached", |next| next.state.name_owner(owner))?, output))
}

/// Waits until this process is the loop's owner.
pub fn take_record(home: &Home, id: &LoopId) -> Result<Loop> {
    let me = own_process()?.process;
    let found = Deadline::after(WITHIN).poll(Duration::from_millis(20), || {
        let found = store::load(home, id).ok()?;
        owner_is(&found.state.owner, &me).then_some(found)
    });
    found.with_context(|| format!("loop {id} was not handed to this process"))
}

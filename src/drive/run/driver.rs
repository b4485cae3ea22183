//! Drives a loop: carries out what `step.rs` decides, and gathers the facts it needs. Can also hand
//! the loop to a separate crew process, which outlives the terminal it was started from.

use std::cell::RefCell;
use std::mem;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};

use super::git;
use super::git::Checkout;
use super::ledger::Ledger;
use super::ledger::{AgentRunner, Workspace};
use super::machine::ThisMachine;
use super::ports::RecordChange;
use super::ports::{Admission, Checks, IterationGate, IterationRun};
use super::step::{ChoicePoint, DriveEffect, DriveEvent, DriveQuestion, RunMemory, Step, step_run};
use crate::drive::boundary::{Boundary, DriverNotes};
use crate::drive::find::{own_process, owner_is};
use crate::drive::windows::LoopTurn;
use crate::drive::{tree, windows};
use engine::boundary::facts::{AgentOutcome, ApiError, Facts, ProcessEnd};
use engine::evidence::said::PromptSize;
use engine::failure::Failure;
use engine::journal::NoteKind;
use engine::record::{AccountId, Loop, LoopId, LoopMoment, Owner, Status};
use engine::usage::Usage;
use engine::view::events::{EventSink, RunEvent};
use world::clock::{Deadline, RetryPolicy};
use world::process::signals::Signals;
use world::process::{Call, descendants};
use world::store::{Home, LOCK_WAIT, view};
use world::{clock, host, store};

/// The time between two checks of signals and the clock in a sleep.
const STEP: Duration = Duration::from_millis(100);
/// Milliseconds between two checks of requests and of the rate window, which read files.
const LOOK_MS: u64 = 500;
/// The time between two requests to be admitted, because many runs may wait in a queue.
const ASKS: RetryPolicy =
    RetryPolicy::growing(Duration::from_millis(10), Duration::from_millis(200));

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
    let machine = ThisMachine(home);
    let mut checkout = Checkout::new(home, &record);
    let handoff = view::newest_handoff(&record).map(|(page, _)| page);
    let mut ledger = Ledger::new((&machine, &machine), record, signals, &sink);
    // Its last process may have been cut off between its last record and the steps that follow it.
    let pending = ledger.record.state.git().pending;
    if !pending.is_empty() {
        git::do_pending(&mut ledger, &machine, &mut checkout, pending);
    }
    let actors = Actors { checks: &machine, agents: &machine, workspace: &mut checkout, gate };
    Driver::new(ledger, actors, handoff).run_iterations()
}

/// The ports through which a run acts.
struct Actors<'a> {
    checks: &'a dyn Checks,
    agents: &'a dyn AgentRunner,
    workspace: &'a mut dyn Workspace,
    /// The gate of its fleet; `None` for a run that the user started.
    gate: Option<Box<dyn IterationGate + 'a>>,
}

/// A run in progress.
struct Driver<'a> {
    ledger: Ledger<'a>,
    memory: RunMemory,
    actors: Actors<'a>,
    /// The former owner's page, for the first iteration here; `None` for a loop that begins.
    handoff: Option<PathBuf>,
}

impl<'a> Driver<'a> {
    fn new(ledger: Ledger<'a>, actors: Actors<'a>, handoff: Option<PathBuf>) -> Self {
        let has_gate = actors.gate.is_some();
        let memory = RunMemory { is_rested: true, is_typed: !has_gate, has_gate, met: Vec::new() };
        Self { ledger, memory, actors, handoff }
    }

    fn run_iterations(&mut self) -> Result<Option<Loop>> {
        let mut next = self.load_record()?;
        loop {
            let now = self.ledger.clock.now();
            let Step { effects, then } = step_run(&mut self.memory, &self.ledger.record, next, now);
            for effect in effects {
                self.take_effect(effect);
            }
            next = match then {
                DriveQuestion::Load => self.load_record()?,
                DriveQuestion::End => return Ok(self.end_run()),
                question => self.answer(&question),
            };
        }
    }

    /// Reads changes that others made to the record, or at the end records what is only in memory.
    fn load_record(&mut self) -> Result<DriveEvent> {
        loop {
            if !self.ledger.reload() {
                let id = &self.ledger.record.id;
                bail!(Failure::new(
                    format!("loop {id} has another owner now"),
                    format!("crew status {id}")
                ));
            }
            if !(tree::is_at_rest(&self.ledger.record) && self.ledger.save_record()) {
                break;
            }
        }
        match self.ledger.refused.take() {
            Some(error) => Err(error),
            None => Ok(DriveEvent::Loaded),
        }
    }

    /// The recorded end: a boundary of this run ended the loop, or a process outside did. `None`
    /// for a loop that is paused.
    fn end_run(&self) -> Option<Loop> {
        let record = &self.ledger.record;
        if record.state.status() == Status::Paused {
            self.ledger.emit(&RunEvent::Paused(record));
            return None;
        }
        let page = self.ledger.store.read_page(record);
        if record.state.git().pending.reaction {
            self.ledger.react_to_the_end(self.actors.checks);
        }
        let saved = !self.ledger.is_behind();
        self.ledger.emit(&RunEvent::Finished { record, page: &page, saved });
        Some(record.clone())
    }

    fn take_effect(&mut self, effect: DriveEffect) {
        let (ledger, actors) = (&mut self.ledger, &mut self.actors);
        match effect {
            DriveEffect::Change(change) => ledger.write(&change),
            DriveEffect::Note(what) => ledger.emit_note(&what),
            DriveEffect::Journal(what) => ledger.store.add_note(&ledger.record.id, &what),
            DriveEffect::ReportStop => ledger.emit(&RunEvent::Stopping),
            DriveEffect::ReportDelay(until) => {
                ledger.emit(&RunEvent::Delayed { record: &ledger.record, until });
            }
            DriveEffect::ReportWait => {
                ledger.emit(&RunEvent::Waiting(&ledger.record));
                if let Some(gate) = &mut actors.gate {
                    gate.wait_began(&ledger.record);
                }
                // A key pressed before the wait does not end it.
                ledger.clock.enter_was_pressed();
            }
            DriveEffect::FollowPerson => actors.workspace.follow_person(ledger),
            DriveEffect::CloseTree => actors.workspace.close(&ledger.record),
            DriveEffect::HandOn(kind) => self.handoff = ledger.store.hand_on(&ledger.record, kind),
            DriveEffect::React(on) => drop(ledger.react(actors.checks, on, false)),
            DriveEffect::TakeOver { after, counted, process } => {
                let began = mem::replace(&mut ledger.record, *after);
                ledger.store.show_record(&ledger.record);
                if counted {
                    self.handoff = None;
                    report_iteration(ledger, &began, process.as_ref());
                }
            }
            DriveEffect::KeepWork(git) => actors.workspace.keep_work(ledger, git.commit, git.push),
            DriveEffect::WindUp if ledger.is_behind() => {}
            DriveEffect::WindUp => ledger.store.wind_up(&ledger.record),
            DriveEffect::LeaveGate => {
                let gate = actors.gate.as_mut();
                if let Some(ending) = gate.and_then(|gate| gate.iteration_ended(&ledger.record))
                    && ledger.record.is_live()
                {
                    ledger.write(&RecordChange::End(ending));
                }
            }
        }
    }

    fn answer(&mut self, question: &DriveQuestion) -> DriveEvent {
        match question {
            DriveQuestion::Load | DriveQuestion::End => DriveEvent::Loaded,
            DriveQuestion::Sleep { until, is_wait } => sleep_until(&self.ledger, *until, *is_wait),
            DriveQuestion::LookAround if self.ledger.is_asked() => read_request(&self.ledger),
            DriveQuestion::LookAround => {
                DriveEvent::Looked(self.actors.workspace.missing_reason(&self.ledger.record.place))
            }
            DriveQuestion::Choose(at) => self.find_turns(*at),
            DriveQuestion::AskGate => self.ask_gate(),
            DriveQuestion::Work => self.run_iteration(),
        }
    }

    /// The turns of the agents that are limited, up to the first unlimited one. If the user
    /// requested the iteration, the first agent tries.
    fn find_turns(&self, at: ChoicePoint) -> DriveEvent {
        let record = &self.ledger.record;
        let (mut limited, mut free) = (Vec::new(), None);
        for agent in record.able_agents() {
            let account = windows::account_with(record, Some(agent));
            let turn = if self.memory.is_typed { None } else { self.turn_of(&account) };
            let Some(turn) = turn else {
                free = Some(agent.name.clone());
                break;
            };
            limited.push(turn);
        }
        DriveEvent::Chosen(at, limited, free, self.ledger.clock.local_time())
    }

    /// The turn for which an account holds the loop back: by its window or, where that could not be
    /// written, by the limit that was met here.
    fn turn_of(&self, account: &AccountId) -> Option<LoopTurn> {
        let store = self.ledger.store;
        let turn = store.take_turn(account, &self.ledger.record.id);
        if turn.is_some() || store.read_window(account).is_some() {
            return turn;
        }
        let now = self.ledger.clock.now().wall;
        self.memory.met.iter().find(|met| met.account == *account && met.at > now).cloned()
    }

    /// Waits at the gate until it answers, or a request arrives.
    fn ask_gate(&mut self) -> DriveEvent {
        let Some(gate) = &mut self.actors.gate else {
            return DriveEvent::Admitted(Admission::Granted);
        };
        let (ledger, mut awaited) = (&mut self.ledger, None);
        let answered = clock::retry(
            ASKS,
            || false,
            || match gate.admit(&ledger.record) {
                Admission::Later(why) => {
                    if awaited.is_none() {
                        ledger.emit_note(&format!("waits for {why}"));
                        awaited = Some(why);
                    }
                    if ledger.must_stop() || ledger.is_asked() { Ok(None) } else { Err(()) }
                }
                answer => Ok(Some(answer)),
            },
        );
        let answer = answered.ok().flatten();
        if let (Some(Admission::Granted), Some(why)) = (&answer, awaited) {
            ledger.write(&RecordChange::Begin(format!("the wait for {why} is over")));
        }
        for note in gate.take_notes() {
            ledger.emit_note(&note);
        }
        match answer {
            // The fleet may have left messages for the agent.
            Some(Admission::Granted) if !(ledger.reload() && ledger.record.is_live()) => {
                DriveEvent::Asked(None, None)
            }
            Some(answer) => DriveEvent::Admitted(answer),
            None => read_request(ledger),
        }
    }

    /// One iteration: the user's commands before it, the rebase, the agent, and its boundary.
    fn run_iteration(&mut self) -> DriveEvent {
        let failed = self.ledger.react(self.actors.checks, LoopMoment::IterationStart, true);
        if self.ledger.is_asked() {
            return DriveEvent::CalledOff(false);
        }
        let attempt = match failed {
            Some(why) => IterationRun::from_end(ProcessEnd::Skipped(why)),
            None if !self.rebase_branch() => return DriveEvent::CalledOff(false),
            None => self.run_agent(),
        };
        let usage = attempt.usage.clone().filter(|usage| *usage != Usage::default());
        if let Some(judged) = self.judge_iteration(attempt) {
            return DriveEvent::Judged(Box::new(judged));
        }
        // Somebody ended the loop while the agent was at work: its usage still counts.
        if let Some(usage) = usage
            && let Err(error) = self.ledger.store.count_late(&self.ledger.record.id, &usage)
        {
            self.ledger.emit_note(&format!(
                "the cost and tokens of the last iteration could not be counted: {error:#}"
            ));
        }
        close_if_at_rest(&self.ledger, &*self.actors.workspace);
        DriveEvent::CalledOff(true)
    }

    /// Whether the branch can be worked on, and no request has arrived.
    fn rebase_branch(&mut self) -> bool {
        let Some(onto) = self.ledger.run_terms().git.rebase else { return true };
        self.actors.workspace.rebase(&mut self.ledger, &onto, self.actors.gate.as_deref())
            && !self.ledger.is_asked()
    }

    /// Runs the agent, and the user's commands after it.
    fn run_agent(&mut self) -> IterationRun {
        let run = self.ledger.run_terms();
        let ledger = &mut self.ledger;
        ledger.emit(&RunEvent::IterationStarted(&ledger.record));
        let agents = self.actors.agents;
        let prepared = agents.prepare(&ledger.record, &run, self.handoff.as_deref());
        let (prompt, launch) = match prepared {
            Ok(prepared) => prepared,
            Err(why) => return IterationRun::from_end(ProcessEnd::NotStarted(why)),
        };
        if prompt.size.is_over() {
            let PromptSize { tokens, budget } = prompt.size;
            ledger.emit(&RunEvent::OverBudget { tokens, budget });
        }
        mark_as_delivered(ledger);
        let mut attempt = agents.run(ledger, &run, (&prompt.text, &launch));
        if ledger.signals.times() == 0 {
            let ended_well = attempt.ended_well();
            attempt.seen.agent.failed_around =
                ledger.react(self.actors.checks, LoopMoment::IterationEnd, ended_well);
        }
        attempt
    }

    /// Judges and records. `None` when another process owns the record by now.
    fn judge_iteration(&mut self, attempt: IterationRun) -> Option<(Boundary, Facts)> {
        let open = self.ledger.open_boundary()?;
        let (ledger, checks) = (&self.ledger, self.actors.checks);
        let IterationRun { mut seen, usage } = attempt;
        let signalled = ledger.signals.times() > 0;
        // An immediate pause has said that this iteration is repeated, however it has ended since.
        if signalled || open.before.state.status() == Status::Paused {
            seen.agent.process = Some(ProcessEnd::BrokenOff(ledger.signals.first()));
        }
        seen.agent.fallback_at = find_fallback_time(ledger, &seen.agent);
        let tell = |event: &RunEvent<'_>| ledger.emit(event);
        let stop = || (ledger.must_stop() && !signalled) || ledger.is_broken_off();
        let mut left = checks.look(&open, seen, usage);
        let facts = checks.run(&open, left.clone(), &stop, &tell).or_else(|| {
            // A signal or a request ended a check: all that is known of the iteration is what the
            // agent left, and that it was broken off.
            left.seen.agent.process = Some(ProcessEnd::BrokenOff(ledger.signals.first()));
            (left.seen.request, left.protected) = (open.read_request(), None);
            checks.run(&open, left, &|| false, &tell)
        })?;
        let lost = self.actors.workspace.lost_ending(&ledger.record);
        let notes = DriverNotes { lost, ..DriverNotes::default() };
        let (boundary, error) = ledger.store.judge(open, facts.clone(), notes)?;
        if let Some(error) = error {
            self.ledger.keep_in_memory(error);
        }
        Some((boundary, facts))
    }
}

/// The user's pending request.
fn read_request(ledger: &Ledger<'_>) -> DriveEvent {
    let request = ledger.store.read_request(&ledger.record.id);
    DriveEvent::Asked(ledger.signals.first(), request)
}

/// Sleeps until then in short steps, so that a laptop that is opened after a reset continues
/// immediately.
fn sleep_until(ledger: &Ledger<'_>, until: DateTime<Utc>, is_wait: bool) -> DriveEvent {
    let (clock, store, state) = (ledger.clock, ledger.store, &ledger.record.state);
    let is_after_a_crash =
        is_wait && state.counts().crashes() > 0 && state.counts().transient_errors() == 0;
    let until = if is_after_a_crash { clock.after_a_crash(until) } else { until };
    let mut looked_ms = None;
    loop {
        let now = clock.now();
        if now.wall >= until {
            return DriveEvent::Rested { is_typed: false };
        }
        if is_wait && clock.enter_was_pressed() {
            return DriveEvent::Rested { is_typed: true };
        }
        if ledger.must_stop() {
            return read_request(ledger);
        }
        if looked_ms.is_none_or(|looked| now.awake_ms.saturating_sub(looked) >= LOOK_MS) {
            if ledger.is_asked() {
                return read_request(ledger);
            }
            // Not at the first look: whoever waits for the same turn again must still sleep.
            if is_wait && looked_ms.is_some() && store.window_has_moved(&ledger.record) {
                return DriveEvent::Rested { is_typed: false };
            }
            looked_ms = Some(now.awake_ms);
        }
        let left = (until - now.wall).to_std().unwrap_or_default();
        clock.sleep(STEP.min(left));
    }
}

fn report_iteration(ledger: &Ledger<'_>, began: &Loop, process: Option<&ProcessEnd>) {
    let after = &ledger.record;
    let exit = match process {
        Some(ProcessEnd::Exit(code)) => Some(*code),
        _ => None,
    };
    ledger.emit(&match process {
        Some(ProcessEnd::Skipped(why)) => RunEvent::Skipped { record: began, why },
        _ => RunEvent::IterationEnded { after, exit, ends: after.outcome() },
    });
}

/// Closes the tree after an immediate pause, and perhaps a cancel after it, that another process
/// recorded while the agent or a check still ran here.
fn close_if_at_rest(ledger: &Ledger<'_>, workspace: &dyn Workspace) {
    let Ok(found) = ledger.store.load(&ledger.record.id) else { return };
    let is_open = match found.state.status() {
        Status::Paused => true,
        Status::Finished => !workspace.is_closed(&found),
        Status::Running | Status::Waiting => false,
    };
    if is_open {
        workspace.close(&found);
    }
}

/// Marks the user's messages as part of the prompt of the iteration that begins: the queued ones,
/// and those that the last boundary left.
fn mark_as_delivered(ledger: &mut Ledger<'_>) {
    let state = &ledger.record.state;
    let count = state.exchange().messages().len();
    let has_words = state.seen().evidence().as_ref().is_some_and(|last| !last.words.is_empty());
    if count != state.exchange().in_prompt() || has_words {
        let change = |record: &mut Loop| record.state.mark_in_prompt(count);
        ledger.write(&RecordChange::Edit(NoteKind::Delivered.into(), &change));
    }
}

/// When another agent may work, if the one that worked reached a limit of its account.
fn find_fallback_time(ledger: &Ledger<'_>, outcome: &AgentOutcome) -> Option<DateTime<Utc>> {
    let (record, now) = (&ledger.record, ledger.clock.now().wall);
    if !matches!(outcome.error, Some(ApiError::Transient { is_limit: true, .. })) {
        return None;
    }
    let worker = record.one_of_several()?;
    let others = record.able_agents().filter(|agent| agent.name != worker.name);
    let free = others.map(|agent| {
        let window = ledger.store.read_window(&windows::account_with(record, Some(agent)));
        window.map_or(now, |window| window.until.max(now))
    });
    free.min()
}

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
    let owner = Owner { process, ..record.state.owner().clone() };
    Ok((held.change(&record, "detached", |next| next.state.name_owner(owner))?, output))
}

/// Waits until this process is the loop's owner.
pub fn take_record(home: &Home, id: &LoopId) -> Result<Loop> {
    let me = own_process()?.process;
    let found = Deadline::after(WITHIN).poll(Duration::from_millis(20), || {
        let found = store::load(home, id).ok()?;
        owner_is(found.state.owner(), &me).then_some(found)
    });
    found.with_context(|| format!("loop {id} was not handed to this process"))
}

#[cfg(test)]
#[path = "driver_twins_tests.rs"]
mod twins;

#[cfg(test)]
#[path = "driver_wait_tests.rs"]
mod wait_tests;

#[cfg(test)]
#[path = "driver_fallback_tests.rs"]
mod fallback_tests;

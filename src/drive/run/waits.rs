//! Waits between two iterations: the delay, the wait for the model's service or after a crash, and
//! the wait for the loop's turn after a limit of its account.
//! They check the wall clock in short steps, so that a lid that opens after a reset continues at
//! once, and end as soon as a person asks.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Runner;
use crate::drive::end::handoff;
use crate::drive::windows::{self, LoopTurn};
use crate::drive::{control, tree};
use engine::boundary::decide::{Decision, wait_or_end};
use engine::boundary::facts::{AgentOutcome, ApiError, ControlRequest};
use engine::boundary::limits::time_left_ms;
use engine::events::RunEvent;
use engine::record::{
    AccountId, Agent, EndReason, Ending, FallbackAgent, Loop, LoopMoment, Outcome, Status,
};
use engine::text::clock_time;
use world::clock::{self, Stopwatch};
use world::store::{self, Home, journal};
use world::terminal;

/// The time between two checks of signals and the clock.
const STEP: Duration = Duration::from_millis(100);
/// Milliseconds between two looks for a request and at the rate window, which read files.
const LOOK_MS: u64 = 500;

/// How a sleep between two iterations ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rested {
    /// It is due, or the rate window is another.
    Due,
    /// A person pressed Enter.
    Typed,
    /// A signal came, a request was left, or another process changed the record.
    Asked,
}

impl Runner<'_> {
    /// Begins to wait for this loop's turn after a limit that another one met, which counts as
    /// nothing.
    pub(super) fn await_turn(&mut self, turn: &LoopTurn) {
        let decision = wait_or_end(&self.ledger.record, clock::now(), turn.at, &turn.why);
        if let Decision::Finish(ending) = decision {
            return self.ledger.end_record(&ending);
        }
        let what = format!("waits for its turn: {}", turn.why);
        self.ledger.change_record(what, |record| turn.hold_back(record));
        tree::close_tree(self.home, &self.ledger.record);
        self.react_to(LoopMoment::Wait);
    }

    /// Sleeps until the wait is over, a person cuts it short with Enter, or the rate window is
    /// another, then starts the iteration.
    pub(super) fn wait_until_due(&mut self) {
        self.emit_event(&RunEvent::Waiting(&self.ledger.record));
        if let Some(gate) = &mut self.gate {
            gate.wait_began(&self.ledger.record);
        }
        self.is_rested = true;
        // A key pressed before the wait does not end it.
        terminal::enter_was_pressed();
        let state = &self.ledger.record.state;
        let due = state.due.unwrap_or_else(|| clock::now().wall);
        let is_after_a_crash = state.crashes > 0 && state.transient_errors == 0;
        let due = if is_after_a_crash { clock::after_a_crash(due) } else { due };
        loop {
            let rested = self.sleep_until(due, true);
            // Whoever ended the wait wants the iteration now.
            self.is_typed = rested != Rested::Due;
            if rested == Rested::Asked {
                return self.obey_request();
            }
            match self.choose_agent() {
                Some(turn) if turn.is_awaited_by(&self.ledger.record) => {}
                Some(turn) => return self.await_turn(&turn),
                None => break,
            }
        }
        if self.ledger.record.state.status == Status::Waiting {
            self.ledger.begin_iteration("the wait is over");
            self.follow_the_person();
        }
    }

    /// Lets the delay between two iterations pass, as long as the loop has time; false when
    /// somebody asked for something else.
    pub(super) fn wait_delay(&mut self) -> bool {
        let delay = self.run_terms().pace.delay_s.saturating_mul(1000);
        if self.is_rested {
            return true;
        }
        if delay == 0 {
            let git = self.run_terms().git;
            if git.commit || git.push {
                self.ledger.begin_iteration("the last iteration's work is kept");
            }
            return true;
        }
        let left = time_left_ms(&self.ledger.record, clock::now().awake_ms).unwrap_or(u64::MAX);
        let most = i64::MAX / 1_000_000;
        let rest =
            TimeDelta::milliseconds(i64::try_from(delay.min(left)).unwrap_or(most).min(most));
        let until = clock::now().wall + rest;
        self.emit_event(&RunEvent::Delayed { record: &self.ledger.record, until });
        let is_over = self.sleep_until(until, false) != Rested::Asked;
        if is_over {
            self.ledger.begin_iteration("the delay is over");
            self.follow_the_person();
        }
        is_over
    }

    /// Sleeps until `due`. Enter and the rate window cut a wait short, but no delay.
    fn sleep_until(&self, due: DateTime<Utc>, is_wait: bool) -> Rested {
        let mut looked: Option<Stopwatch> = None;
        while clock::now().wall < due {
            if is_wait && terminal::enter_was_pressed() {
                return Rested::Typed;
            }
            if self.must_stop() {
                return Rested::Asked;
            }
            if looked.is_none_or(|looked| looked.elapsed_ms() >= LOOK_MS) {
                if self.is_asked() {
                    return Rested::Asked;
                }
                // Not at the first look: whoever waits for the same turn again must still sleep.
                if is_wait && looked.is_some() && windows::has_moved(self.home, &self.ledger.record)
                {
                    return Rested::Due;
                }
                looked = Some(Stopwatch::start());
            }
            let left = (due - clock::now().wall).to_std().unwrap_or_default();
            clock::sleep(STEP.min(left));
        }
        Rested::Due
    }

    /// Ends the loop between two iterations.
    pub(super) fn end_run(&mut self, outcome: Outcome, reason: EndReason) {
        self.ledger.end_record(&Ending::new(outcome, reason));
    }

    /// Whether a request is left, or the record differs from the known one.
    pub(super) fn is_asked(&self) -> bool {
        let known = &self.ledger.record;
        if store::pending_request(self.home, &known.id).is_some() {
            return true;
        }
        !self.ledger.is_behind()
            && store::load(self.home, &known.id)
                .is_ok_and(|found| !found.is_live() || found.state.status != known.state.status)
    }

    /// Obeys what was asked for between two iterations: a signal interrupts, a cancel ends, a pause
    /// pauses.
    pub(super) fn obey_request(&mut self) {
        if let Some(signal) = self.signals.first() {
            self.emit_event(&RunEvent::Stopping);
            return self.end_run(Outcome::Interrupted, EndReason::Signalled(signal));
        }
        match store::pending_request(self.home, &self.ledger.record.id) {
            Some(ControlRequest::Cancel { by, reason }) => {
                self.ledger.end_record(&Ending::cancelled(by, reason.as_deref()));
            }
            Some(ControlRequest::Pause) if self.ledger.record.state.status != Status::Paused => {
                self.ledger.pause_record();
            }
            Some(ControlRequest::Pause) | None => {}
        }
    }
}

// Chooses who works next in a run: its agent or, while the account of that one is at a limit, the
// first of its fallbacks without one. A change is reported and journalled, and the next agent gets
// the loop's current page. It judges no iteration, and costs none.

/// The agent that printed the log of an iteration; `None` in a session.
pub fn who_worked(home: &Home, record: &Loop, iteration: u32) -> Option<Agent> {
    let run = record.contract.run.as_ref()?;
    if run.fallback.is_empty() || iteration > record.state.completed {
        return Some(record.worker().unwrap_or(&run.agent).clone());
    }
    let mut name = None;
    let _ = journal::read_entries(&home.loop_file(&record.id, "journal.jsonl"), |entry| {
        let evidence = entry.event.state().and_then(|state| state.evidence.as_ref());
        let evidence = evidence.filter(|evidence| evidence.iteration == iteration);
        name = evidence.and_then(|evidence| evidence.agent.clone()).or(name.take());
    });
    let found = run.agents().find(|agent| Some(&agent.name) == name.as_ref());
    Some(found.unwrap_or(&run.agent).clone())
}

impl Runner<'_> {
    /// Gives the next iteration to the first agent whose turn it is. If it is nobody's, returns the
    /// first turn that comes. Where a person asked for the iteration, the first agent tries.
    pub(super) fn choose_agent(&mut self) -> Option<LoopTurn> {
        let mut turns: Vec<LoopTurn> = Vec::new();
        let agents: Vec<Agent> = self.ledger.record.able_agents().cloned().collect();
        for agent in agents {
            let account = windows::account_with(&self.ledger.record, Some(&agent));
            let turn = if self.is_typed { None } else { self.turn_of(&account) };
            let Some(turn) = turn else {
                let until = turns.first().map(|turn| turn.at);
                let fallback = until.map(|until| FallbackAgent { agent: agent.name, until });
                self.hand_to(fallback.as_ref());
                return None;
            };
            turns.push(turn);
        }
        turns.into_iter().min_by_key(|turn| turn.at)
    }

    /// The turn for which an account holds the loop back: by its window or, where that could not be
    /// written, by the limit that was met here.
    fn turn_of(&self, account: &AccountId) -> Option<LoopTurn> {
        let turn = windows::turn_after_window(self.home, account, &self.ledger.record.id);
        if turn.is_some() || store::windows::read_window(self.home, account).is_some() {
            return turn;
        }
        let now = clock::now().wall;
        self.met.iter().find(|met| met.account == *account && met.at > now).cloned()
    }

    /// Records who works from here on, and that it begins at once, if that is a change.
    fn hand_to(&mut self, next: Option<&FallbackAgent>) {
        let record = &self.ledger.record;
        let before = record.state.agents.stand_in.as_ref();
        if before == next {
            return;
        }
        let own = record.contract.run.as_ref().map_or("", |run| run.agent.name.as_str());
        let what = match next {
            Some(FallbackAgent { agent, until }) => {
                let until = clock_time(*until, clock::local_time());
                format!("{agent} takes over: {own} is limited until {until}")
            }
            None => format!("{own} is back"),
        };
        let is_another = before.map(|before| &before.agent) != next.map(|next| &next.agent);
        if is_another {
            self.handoff = handoff::hand_on(self.home, record, "takeover");
            self.emit_note(&what);
        }
        self.ledger.change_record(what, |record| {
            record.state.hand_to_agent(next.cloned());
            if record.state.status == Status::Waiting {
                control::start_iteration(record);
            }
        });
    }

    /// When another agent may work, if the one that worked met a limit of its account.
    pub(super) fn fallback_until(&self, outcome: &AgentOutcome) -> Option<DateTime<Utc>> {
        let record = &self.ledger.record;
        if !matches!(outcome.error, Some(ApiError::Transient { is_limit: true, .. })) {
            return None;
        }
        let worker = record.one_of_several()?;
        let others = record.able_agents().filter(|agent| agent.name != worker.name);
        let free = others.map(|agent| {
            let account = windows::account_with(record, Some(agent));
            windows::closed_window(self.home, &account)
                .map_or(clock::now().wall, |window| window.until)
        });
        free.min()
    }

    /// Leaves the wait for the end of a limit that another agent makes needless, or waits for that
    /// one instead.
    pub(super) fn hand_to_fallback(&mut self, until: DateTime<Utc>, why: String) {
        self.is_rested = true;
        let account = windows::account_of(&self.ledger.record);
        self.met.retain(|met| met.account != account);
        self.met.push(LoopTurn { account, at: until, why });
        if let Some(turn) = self.choose_agent() {
            self.await_turn(&turn);
        }
    }

    /// Takes a fallback off a loop that continues, because only a person can help it.
    pub(super) fn lose_the_stand_in(&mut self, decision: &Decision, why: &str) {
        let Some(fallback) = self.ledger.record.working_fallback() else { return };
        if matches!(decision, Decision::Finish(_)) {
            return;
        }
        let agent = fallback.agent.clone();
        let what = format!("{agent} is out of this loop: {why}");
        self.emit_note(&what);
        self.ledger.change_record(what, |record| record.state.lose_agent(agent.clone()));
        self.is_rested = true;
    }
}

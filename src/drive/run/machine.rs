//! The ports of a run, implemented by this machine.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, FixedOffset, Utc};

use super::ports::{Checks, Clock, JudgedBoundary, LoopStore, RecordChange, Tell};
use crate::drive::boundary::{DriverNotes, Open};
use crate::drive::end::handoff;
use crate::drive::find::is_ours;
use crate::drive::windows::LoopTurn;
use crate::drive::{boundary, end, page, windows};
use engine::boundary::facts::{AgentFacts, ControlRequest, Facts};
use engine::boundary::window::RateWindow;
use engine::evidence::{TAIL_CHARS, Verdict};
use engine::record::{AccountId, Loop, LoopId, LoopMoment, LoopStep, Moment, Reaction};
use engine::text::{plain_text, tail_of};
use engine::usage::Usage;
use engine::view::Page;
use engine::view::events::RunEvent;
use engine::words::programs::{ReactionEnd, loop_document, reaction_variables};
use world::process::{Call, ExitCause, FinishedProcess, Stop};
use world::store::{Home, LOCK_WAIT, StoreError, view};
use world::{clock, store, terminal};

/// This machine, with crew's files in a home.
#[derive(Clone, Copy)]
pub struct ThisMachine<'a>(pub &'a Home);

impl Clock for ThisMachine<'_> {
    fn now(&self) -> Moment {
        clock::now()
    }

    fn local_time(&self) -> DateTime<FixedOffset> {
        clock::local_time()
    }

    fn sleep(&self, step: Duration) {
        clock::sleep(step);
    }

    fn after_a_crash(&self, due: DateTime<Utc>) -> DateTime<Utc> {
        clock::after_a_crash(due)
    }

    fn enter_was_pressed(&self) -> bool {
        terminal::enter_was_pressed()
    }
}

impl LoopStore for ThisMachine<'_> {
    fn load(&self, id: &LoopId) -> Result<Loop, StoreError> {
        store::load(self.0, id)
    }

    fn write(&self, id: &LoopId, change: &RecordChange<'_>) -> Result<()> {
        if let RecordChange::End(ending) = change {
            return end::end_loop(self.0, id, ending.clone(), LOCK_WAIT).map(drop);
        }
        let held = store::hold_loop(self.0, id, LOCK_WAIT)?;
        let found = held.load()?;
        if is_ours(&found) && change.suits(&found) {
            let next =
                held.change(&found, change.note(), |next| change.apply(clock::now(), next))?;
            let _ = view::write_view(&next);
        }
        Ok(())
    }

    fn recover(&self, known: &Loop, memory: &Loop) -> Result<Loop> {
        let recovered = boundary::recover_record(self.0, known, memory);
        // The space that is given up may be enough for the last record.
        if recovered.is_err() && store::give_up_room(self.0, &memory.id) {
            return self.recover(known, memory);
        }
        let record = recovered?;
        end::complete_end(self.0, &record);
        Ok(record)
    }

    fn read_request(&self, id: &LoopId) -> Option<ControlRequest> {
        store::pending_request(self.0, id)
    }

    fn breaks_off(&self, id: &LoopId) -> bool {
        store::breaks_off(self.0, id)
    }

    fn open_boundary(&self, behind: Option<&Loop>, record: &Loop) -> Result<Option<Open>> {
        match behind {
            None => boundary::open_counting(self.0, &record.id),
            Some(known) => boundary::reopen_boundary(self.0, known, record),
        }
    }

    fn open_in_memory(&self, record: &Loop) -> Open {
        Open::for_record(self.0, record.clone(), None)
    }

    fn judge(&self, open: Open, facts: Facts, notes: DriverNotes) -> Option<JudgedBoundary> {
        open.record_or_remember(facts, notes)
    }

    fn read_window(&self, account: &AccountId) -> Option<RateWindow> {
        store::windows::read_window(self.0, account)
    }

    fn take_turn(&self, account: &AccountId, by: &LoopId) -> Option<LoopTurn> {
        windows::turn_after_window(self.0, account, by)
    }

    fn window_has_moved(&self, record: &Loop) -> bool {
        windows::has_moved(self.0, record)
    }

    fn show_step(&self, record: &Loop, event: &RunEvent<'_>) {
        view::record_step(self.0, record, event);
    }

    fn show_record(&self, record: &Loop) {
        let _ = view::write_view(record);
    }

    fn add_note(&self, id: &LoopId, what: &str) {
        let _ = store::note_in_journal(self.0, id, what);
    }

    fn hand_on(&self, record: &Loop, kind: &str) -> Option<PathBuf> {
        handoff::hand_on(self.0, record, kind)
    }

    fn read_page(&self, record: &Loop) -> Page {
        page::read_page(self.0, record)
    }

    fn wind_up(&self, record: &Loop) {
        end::wind_up(self.0, record.clone());
    }

    fn count_late(&self, id: &LoopId, usage: &Usage) -> Result<()> {
        end::count_late(self.0, id, usage)
    }

    fn end_reaction(&self, id: &LoopId) {
        let _ = end::amend_record(self.0, id, "reacted to the end", |record| {
            record.state.git_mut().pending.reaction = false;
        });
    }
}

impl Checks for ThisMachine<'_> {
    fn look(&self, open: &Open, seen: AgentFacts, usage: Option<Usage>) -> Facts {
        open.gather_facts(seen, usage)
    }

    fn run(&self, open: &Open, facts: Facts, stop: Stop<'_>, tell: Tell<'_>) -> Option<Facts> {
        open.gather_checked(facts, stop, tell)
    }

    fn react(&self, of: &Loop, on: LoopMoment, tell: Tell<'_>, stop: Stop<'_>) -> Vec<ReactionEnd> {
        let reactions = of.contract.run.iter().flat_map(|run| &run.reactions);
        let step = match on {
            LoopMoment::IterationStart => LoopStep::PreHook,
            _ => LoopStep::PostHook,
        };
        let mut ends = Vec::new();
        for reaction in reactions.filter(|reaction| reaction.on == on) {
            if stop() {
                break;
            }
            tell(&RunEvent::StepStarted(step, &reaction.run));
            ends.push(run_reaction(self.0, of, reaction, stop));
        }
        ends
    }
}

fn run_reaction(home: &Home, subject: &Loop, reaction: &Reaction, stop: Stop<'_>) -> ReactionEnd {
    let on = reaction.on;
    let mut variables = reaction_variables(subject, on);
    variables.extend(subject.state.owner().search_path.clone().map(|path| ("PATH", path)));
    let input = loop_document(subject, on, clock::local_time()).to_string() + "\n";
    let ended = Call::shell(&reaction.run, &subject.place.folder)
        .envs(variables)
        .input(input.as_bytes())
        .within(Duration::from_secs(reaction.timeout_s))
        .noted(home.groups_folder(&subject.id))
        .run(stop);
    let (verdict, exit) = match ended.as_ref().map(FinishedProcess::cause) {
        Ok(ExitCause::Exit(0)) => (Verdict::Passed, Some(0)),
        Ok(ExitCause::Exit(code)) => (Verdict::Failed, Some(code)),
        Ok(ExitCause::TimedOut) => (Verdict::TimedOut, None),
        Ok(_) => (Verdict::Unknown, None),
        Err(_) => (Verdict::Failed, None),
    };
    let elapsed_ms = ended.as_ref().map_or(0, FinishedProcess::elapsed_ms);
    let output = ended.map_or_else(|error| error.to_string(), |ended| plain_text(&ended.text()));
    let tail = tail_of(&output, TAIL_CHARS);
    ReactionEnd { on, run: reaction.run.clone(), verdict, exit, elapsed_ms, tail }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;

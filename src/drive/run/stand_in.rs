//! Who works next in a run: its agent or, while the account of that one is at a limit, the first of
//! its fallbacks that is at none. A change is told and journalled, and whoever comes gets the page
//! of where the loop stands. It judges no iteration, and costs none.

use chrono::{DateTime, Utc};

use super::Runner;
use crate::drive::control;
use crate::drive::end::handoff;
use crate::drive::windows::{self, LoopTurn};
use crate::engine::boundary::decide::Decision;
use crate::engine::boundary::facts::{AgentOutcome, ApiError};
use crate::engine::events::RunEvent;
use crate::engine::record::{AccountId, Agent, Loop, StandIn, Status};
use crate::engine::text::clock_time;
use crate::world::clock;
use crate::world::store::{Home, journal};

/// The agent that printed the log of an iteration; `None` in a session.
pub fn who_worked(home: &Home, record: &Loop, iteration: u32) -> Option<Agent> {
    let run = record.contract.run.as_ref()?;
    if run.fallback.is_empty() || iteration > record.state.completed {
        return Some(record.worker().unwrap_or(&run.agent).clone());
    }
    let mut name = None;
    let _ = journal::each(&home.loop_file(&record.id, "journal.jsonl"), |entry| {
        let evidence = entry.event.state().and_then(|state| state.evidence.as_ref());
        let agent = evidence.filter(|it| it.iteration == iteration);
        name = agent.and_then(|it| it.agent.clone()).or(name.take());
    });
    let found = run.agents().find(|agent| Some(&agent.name) == name.as_ref());
    Some(found.unwrap_or(&run.agent).clone())
}

impl Runner<'_> {
    /// Gives the next iteration to the first agent whose turn it is. If it is nobody's, returns the
    /// first turn that comes. Where a person asked for the iteration, the first agent tries.
    pub(super) fn choose(&mut self) -> Option<LoopTurn> {
        let mut turns: Vec<LoopTurn> = Vec::new();
        let agents: Vec<Agent> = self.ledger.record.able_agents().cloned().collect();
        for agent in agents {
            let turn = || self.turn(&windows::account_with(&self.ledger.record, Some(&agent)));
            let Some(turn) = (!self.is_typed).then(turn).flatten() else {
                let until = turns.first().map(|turn| turn.at);
                let stand_in = until.map(|until| StandIn { agent: agent.name, until });
                self.hand_to(stand_in.as_ref());
                return None;
            };
            turns.push(turn);
        }
        turns.into_iter().min_by_key(|turn| turn.at)
    }

    /// The turn for which an account holds the loop back: by its window or, where that could not be
    /// written, by the limit that was met here.
    fn turn(&self, account: &AccountId) -> Option<LoopTurn> {
        let is_unshared = |met: &&LoopTurn| {
            met.account == *account
                && met.at > clock::now().wall
                && !windows::is_shared(self.home, account)
        };
        let turn = windows::turn(self.home, account, &self.ledger.record.id);
        turn.or_else(|| self.met.iter().find(is_unshared).cloned())
    }

    /// Records who works from here on, and that it begins at once, if that is a change.
    fn hand_to(&mut self, next: Option<&StandIn>) {
        let record = &self.ledger.record;
        let before = record.state.agents.stand_in.as_ref();
        if before == next {
            return;
        }
        let own = record.contract.run.as_ref().map_or("", |run| run.agent.name.as_str());
        let what = match next {
            Some(StandIn { agent, until }) => {
                let until = clock_time(*until, clock::local());
                format!("{agent} takes over: {own} is limited until {until}")
            }
            None => format!("{own} is back"),
        };
        let is_another = before.map(|it| &it.agent) != next.map(|it| &it.agent);
        if is_another {
            self.handoff = handoff::hand_on(self.home, record, "takeover");
            self.tell(&RunEvent::Noted(&what));
        }
        self.ledger.change(&what, |record| {
            record.state.agents.stand_in = next.cloned();
            if is_another {
                // Those were another service's.
                record.state.transient_errors = 0;
            }
            if record.state.status == Status::Waiting {
                control::begun(record);
            }
        });
    }

    /// When another agent may work, if the one that worked met a limit of its account.
    pub(super) fn relief(&self, outcome: &AgentOutcome) -> Option<DateTime<Utc>> {
        let record = &self.ledger.record;
        let met = matches!(outcome.error, Some(ApiError::Transient { is_limit: true, .. }));
        let worker = record.one_of_several().filter(|_| met)?;
        let others = record.able_agents().filter(|agent| agent.name != worker.name);
        let free = others.map(|agent| {
            let account = windows::account_with(record, Some(agent));
            windows::closed(self.home, &account).map_or(clock::now().wall, |window| window.until)
        });
        free.min()
    }

    /// Leaves the wait for the end of a limit that another agent makes needless, or waits for that
    /// one instead.
    pub(super) fn relieve(&mut self, until: DateTime<Utc>, why: String) {
        self.is_rested = true;
        let account = windows::account_of(&self.ledger.record);
        self.met.retain(|met| met.account != account);
        self.met.push(LoopTurn { account, at: until, why });
        if let Some(turn) = self.choose() {
            self.await_turn(turn);
        }
    }

    /// Takes a stand-in off a loop that goes on, because only a person can help it.
    pub(super) fn lose_the_stand_in(&mut self, decision: &Decision, why: &str) {
        let stand_in = self.ledger.record.stand_in().map(|it| it.agent.clone());
        let Some(agent) = stand_in.filter(|_| !matches!(decision, Decision::Finish(_))) else {
            return;
        };
        let what = format!("{agent} is out of this loop: {why}");
        self.tell(&RunEvent::Noted(&what));
        self.ledger.change(&what, |record| record.state.agents.out.push(agent.clone()));
        self.is_rested = true;
    }
}

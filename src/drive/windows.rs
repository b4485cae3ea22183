//! What loops do with the rate window of their account, which all loops of this machine share: the
//! loop that meets a limit closes it, the others wait for their turns, and an answer clears it. A
//! window that cannot be read or written stops no loop: then each only has its own wait.

use chrono::{DateTime, Utc};

use engine::boundary::facts::AgentFacts;
use engine::boundary::window::{MetLimit, RateWindow, was_answered};
use engine::record::{AccountId, Agent, Driver, Loop, LoopId, Status};
use readers::clients;
use world::clock;
use world::store::{Home, windows};

/// When a loop may start that may not start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopTurn {
    pub account: AccountId,
    pub at: DateTime<Utc>,
    /// "limit met by loop k3vq7xwa: usage limit reached".
    pub why: String,
}

impl LoopTurn {
    /// Whether the loop waits for exactly this one already: a turn that could not be written is the
    /// same each time.
    pub fn is_awaited_by(&self, record: &Loop) -> bool {
        let state = &record.state;
        let is_waiting = state.status() == Status::Waiting && state.wait().due() == Some(self.at);
        is_waiting && state.wait().window().as_ref() == Some(&self.account)
    }

    /// Makes the loop wait for its turn, in its record.
    pub fn hold_back(&self, record: &mut Loop) {
        record.state.begin_wait(self.at, self.why.clone(), Some(self.account.clone()));
    }
}

/// The account of a loop: its agent's in a run, its client's in a session.
pub fn account_of(record: &Loop) -> AccountId {
    account_with(record, record.worker())
}

/// The account of a loop that runs this agent.
pub fn account_with(record: &Loop, agent: Option<&Agent>) -> AccountId {
    match (&record.contract.run, agent, record.driver()) {
        (Some(run), Some(agent), Driver::Process) => AccountId::of_agent(run, agent),
        _ => AccountId {
            name: clients::client_of(record.state.owner()).program().to_owned(),
            model: None,
        },
    }
}

/// The window of an account, if it is closed now.
pub fn closed_window(home: &Home, account: &AccountId) -> Option<RateWindow> {
    windows::read_window(home, account).filter(|window| window.is_closed(clock::now().wall))
}

/// Shares what a boundary shows of the account's limit: a limit that was met closes the window for
/// every loop, an answer to an iteration that began in it clears it. Returns what the user should
/// know. `next` is the record after the boundary.
pub fn learn_window(
    home: &Home,
    before: &Loop,
    seen: &AgentFacts,
    next: &mut Loop,
) -> Option<String> {
    let (account, now) = (account_of(before), clock::now().wall);
    if let Some(limit) = MetLimit::from_boundary(before, seen, next) {
        if *limit.until() > now {
            let _ = windows::change_window(home, &account, |known| {
                *known = Some(RateWindow::after_limit(known.take(), account.clone(), limit, now));
            });
        }
        if next.state.status() == Status::Waiting {
            next.state.name_window(Some(account));
        }
        return None;
    }
    if !was_answered(&seen.agent) {
        return None;
    }
    let began = before.state.time().began().wall;
    // Nearly always there is nothing to clear, and no lock to take.
    windows::read_window(home, &account).filter(|known| known.is_disproved_by(began, now))?;
    let cleared = windows::change_window(home, &account, |known| {
        let window = known.clone().filter(|known| known.is_disproved_by(began, now))?;
        *known = Some(window.clone().when_opened(&before.id, now));
        Some(window)
    });
    let reason = cleared.ok().flatten()?.wait_reason();
    Some(format!("the service answers again: no loop waits for the {reason} any longer"))
}

/// The turn for which a loop must wait before crew starts an iteration by itself; `None` where it
/// may start now.
pub fn turn_after_window(home: &Home, account: &AccountId, by: &LoopId) -> Option<LoopTurn> {
    let now = clock::now().wall;
    let known =
        windows::read_window(home, account).filter(|window| window.may_hold_back(by, now))?;
    // Without the file's lock the turn is not recorded, and another loop may get the same one.
    windows::change_window(home, account, |known| claim_turn(known, account, by, now))
        .unwrap_or_else(|_| claim_turn(&mut Some(known), account, by, now))
}

fn claim_turn(
    known: &mut Option<RateWindow>,
    account: &AccountId,
    by: &LoopId,
    now: DateTime<Utc>,
) -> Option<LoopTurn> {
    let window = known.as_mut()?;
    let at = window.take_turn(by, now)?;
    Some(LoopTurn { account: account.clone(), at, why: window.wait_reason() })
}

/// The turn of a session whose agent has just stopped. An agent that was answered in the window is
/// not held back, because its boundary clears it.
pub fn turn_after(home: &Home, before: &Loop) -> Option<LoopTurn> {
    let account = account_of(before);
    let window = closed_window(home, &account)?;
    let clears = window.is_disproved_by(before.state.time().began().wall, clock::now().wall);
    if clears { None } else { turn_after_window(home, &account, &before.id) }
}

/// Whether a loop that waits for a turn should check again: the window of an account that it may
/// use was cleared, or closed again.
pub fn has_moved(home: &Home, record: &Loop) -> bool {
    let (Some(due), Some(own)) = (record.state.wait().due(), record.state.wait().window()) else {
        return false;
    };
    let agents = record.able_agents().map(|agent| account_with(record, Some(agent)));
    std::iter::once(own.clone()).chain(agents).any(|account| {
        windows::read_window(home, &account).is_some_and(|window| window.has_moved(&record.id, due))
    })
}

//! What loops do with the rate window of their account, which all loops of this machine share: the
//! loop that meets a limit closes it, and the others wait for their turns. A window that cannot be
//! read or written stops no loop; then each only has its own wait.
#![allow(dead_code, reason = "the drivers use it from the next commits on")]

use chrono::{DateTime, Utc};

use crate::clients;
use crate::engine::record::{Agent, Driver, Loop, LoopId};
use crate::engine::window::{AccountId, MetLimit, RateWindow};
use crate::world::clock;
use crate::world::store::{Home, windows};

/// Why a loop may not start now, and when it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopTurn {
    pub at: DateTime<Utc>,
    /// The window's words: "usage limit reached, met by loop k3vq7xwa".
    pub why: String,
}

/// The account of a loop with one of its agents; a session's is its client.
pub fn account_of(record: &Loop, agent: Option<&Agent>) -> AccountId {
    match (&record.contract.run, record.driver()) {
        (Some(run), Driver::Process) => AccountId::of(run, agent.unwrap_or(&run.agent)),
        _ => AccountId { name: clients::of(&record.state.owner).name().to_owned(), model: None },
    }
}

/// The window of an account, if it stands now.
pub fn closed(home: &Home, account: &AccountId) -> Option<RateWindow> {
    windows::read(home, account).filter(|window| window.is_closed(clock::now().wall))
}

/// Closes the window of an account for every loop.
pub fn close(home: &Home, account: &AccountId, limit: MetLimit) {
    let after = |known| {
        let next = RateWindow::after(known, account.clone(), limit, clock::now().wall);
        (Some(next), ())
    };
    let _ = windows::change(home, account, after);
}

/// Clears the window of an account if an iteration that began then shows that its limit is over.
/// Returns the window that stood until now.
pub fn open(
    home: &Home,
    account: &AccountId,
    by: &LoopId,
    began: DateTime<Utc>,
) -> Option<RateWindow> {
    let disproved = |known: Option<RateWindow>| {
        known.filter(|window| window.is_disproved_by(began, clock::now().wall))
    };
    // Nearly always there is nothing to clear, and no lock to take.
    disproved(windows::read(home, account))?;
    let cleared = |known| match disproved(known) {
        Some(window) => (Some(window.clone().opened(by, clock::now().wall)), Some(window)),
        None => (None, None),
    };
    windows::change(home, account, cleared).ok().flatten()
}

/// The turn for which a loop must wait before crew starts its next iteration by itself; `None`
/// where it may start now.
pub fn turn(home: &Home, account: &AccountId, by: &LoopId) -> Option<LoopTurn> {
    let now = clock::now().wall;
    let known = windows::read(home, account).filter(|window| window.free_from() > now)?;
    let claimed = |known: Option<RateWindow>| match known {
        Some(mut window) => {
            let turn = window.turn(by, now).map(|at| LoopTurn { at, why: window.reason() });
            (Some(window), turn)
        }
        None => (None, None),
    };
    // Without the file's lock the turn is not recorded, and another loop may take the same.
    windows::change(home, account, claimed).unwrap_or_else(|_| claimed(Some(known)).1)
}

/// Whether a loop that waits for its turn until `due` should look again.
pub fn has_moved(home: &Home, account: &AccountId, by: &LoopId, due: DateTime<Utc>) -> bool {
    windows::read(home, account).is_some_and(|window| window.has_moved(by, due))
}

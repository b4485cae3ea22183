//! The task of a loop for tests, defined in one place. Not compiled into the program.

#![expect(clippy::unwrap_used, reason = "only tests call this")]

use super::TaskId;
use crate::record::TaskOfFleet;

/// A name.
pub fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

/// A task of the fleet `billing-cleanup`.
pub fn a_task(name: &str) -> TaskOfFleet {
    TaskOfFleet { name: "billing-cleanup".to_owned(), task: id(name) }
}

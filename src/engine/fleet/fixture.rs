//! The task of a loop for tests, defined in one place. Not compiled into the program.

use super::TaskId;
use crate::engine::record::TaskOfFleet;

/// A name.
pub fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

/// A task of the fleet `billing-cleanup`.
pub fn a_task(name: &str) -> TaskOfFleet {
    TaskOfFleet { name: "billing-cleanup".to_owned(), task: id(name) }
}

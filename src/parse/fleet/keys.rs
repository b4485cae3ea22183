//! The keys of a fleet's files that are no options of `crew run`, and where each belongs. What a
//! key takes is not known here.

use super::options::is_option;

/// The keys of a task that are no options of `crew run`.
pub(super) const TASK_KEYS: [&str; 3] = ["after", "priority", "touches"];
/// The keys of fleet.toml above its first table.
pub(super) const TOP_KEYS: [&str; 5] = ["name", "base", "slots", "max-cost", "setup"];
/// The tables of fleet.toml.
pub(super) const TABLES: [&str; 2] = ["task", "land"];
/// The only key of `[land]`.
pub(super) const CHECK: &str = "check";

/// Where a key belongs that holds for all tasks; `None` if a task may have it, or nothing does.
pub(super) fn home_of(name: &str) -> Option<&'static str> {
    let is_whole = TOP_KEYS.contains(&name) && !is_option(name);
    match name {
        CHECK => Some("under [land] in fleet.toml"),
        name if is_whole || TABLES.contains(&name) => Some("in fleet.toml"),
        _ => None,
    }
}

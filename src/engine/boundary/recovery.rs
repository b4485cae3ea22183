//! Merges the record a driver continued in memory with the changes that others made to it on disk
//! meanwhile. Counters come from memory; what a person asked for comes from disk. Nothing here
//! decides or counts.

use crate::engine::record::{Loop, Status};

/// The record to write. `known` is the last common version, `memory` is the driver's, `found` is
/// the one on disk now.
pub fn reconciled(known: &Loop, memory: &Loop, found: &Loop) -> Loop {
    let mut next = memory.clone();
    if found.state.generation <= known.state.generation {
        return next;
    }
    next.state.generation = memory.state.generation.max(found.state.generation);
    next.contract.limits = found.contract.limits.clone();
    let told = &found.state.messages;
    let since = told.strip_prefix(known.state.messages.as_slice()).unwrap_or(told);
    let missing = since.iter().filter(|word| !memory.state.messages.contains(word));
    next.state.messages.extend(missing.cloned());
    if matches!(found.state.status, Status::Paused | Status::Finished) {
        next.state.status = found.state.status;
        next.state.ending.clone_from(&found.state.ending);
        next.state.due = None;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixture::a_loop;
    use crate::engine::record::{Actor, Ending};

    /// The common version, and the memory two iterations later.
    fn apart() -> (Loop, Loop) {
        let mut known = a_loop();
        known.state.generation = 4;
        known.state.messages = vec!["be brief".to_owned()];
        let mut memory = known.clone();
        memory.state.generation = 6;
        memory.state.completed = 2;
        memory.state.messages = Vec::new();
        (known, memory)
    }

    #[test]
    fn a_disk_that_stood_still_takes_the_memory() {
        let (known, memory) = apart();
        assert_eq!(reconciled(&known, &memory, &known), memory);
    }

    #[test]
    fn what_a_person_asked_for_on_disk_is_kept_and_what_memory_counted_too() {
        let (known, memory) = apart();
        let mut found = known.clone();
        found.state.generation = 7;
        found.contract.limits.max_iterations = 3;
        found.state.messages.push("use tabs".to_owned());
        let next = reconciled(&known, &memory, &found);
        assert_eq!(next.contract.limits.max_iterations, 3);
        assert_eq!(next.state.messages, ["use tabs"]);
        assert_eq!((next.state.generation, next.state.completed), (7, 2));
        assert_eq!(next.state.status, Status::Running);
    }

    #[test]
    fn a_loop_that_was_ended_or_paused_on_disk_stays_so() {
        let (known, memory) = apart();
        for status in [Status::Paused, Status::Finished] {
            let mut found = known.clone();
            found.state.generation = 5;
            found.state.status = status;
            found.state.ending =
                (status == Status::Finished).then(|| Ending::cancelled(Actor::User, None));
            let next = reconciled(&known, &memory, &found);
            assert_eq!((next.state.status, &next.state.ending), (status, &found.state.ending));
            assert_eq!(next.state.completed, 2);
        }
    }
}

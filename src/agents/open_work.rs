//! What an agent has started and not finished: tool calls, background tasks and hooks. Past a fixed
//! number, further names are not remembered.

use std::collections::{BTreeMap, HashSet};

/// The most names remembered of each kind; with so many open, more make no difference.
const OPEN_MAX: usize = 10_000;
/// The longest name remembered, in bytes; no client uses a longer one.
const NAME_BYTES: usize = 200;

/// What may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// A call whose result was not reported. At the end of a turn every call is over.
    Tool,
    /// The agent's own work in the background.
    Task,
    /// It belongs to the client.
    Hook,
}

/// The names of what is open, by kind.
#[derive(Debug, Default)]
pub(super) struct OpenWork(BTreeMap<Work, HashSet<String>>);

impl OpenWork {
    pub(super) fn is_any(&self, kinds: &[Work]) -> bool {
        kinds.iter().filter_map(|kind| self.0.get(kind)).any(|names| !names.is_empty())
    }

    pub(super) fn begin(&mut self, kind: Work, id: &str) {
        let names = self.0.entry(kind).or_default();
        if !id.is_empty() && id.len() <= NAME_BYTES && names.len() < OPEN_MAX {
            names.insert(id.to_owned());
        }
    }

    pub(super) fn end(&mut self, kind: Work, id: &str) {
        self.0.entry(kind).or_default().remove(id);
    }

    pub(super) fn clear(&mut self, kind: Work) {
        self.0.remove(&kind);
    }
}

#[cfg(test)]
mod tests {
    use super::Work::{Hook, Task, Tool};
    use super::*;

    #[test]
    fn what_is_begun_is_open_until_it_is_ended() {
        let mut open = OpenWork::default();
        let is_any = |open: &OpenWork| open.is_any(&[Tool, Task, Hook]);
        open.begin(Tool, "one");
        open.begin(Tool, "two");
        open.end(Tool, "one");
        assert!(is_any(&open));
        open.clear(Tool);
        assert!(!is_any(&open));
        open.begin(Task, "dev server");
        open.clear(Tool);
        assert!(is_any(&open) && !open.is_any(&[Tool]));
        open.clear(Task);
        open.begin(Task, "other");
        open.end(Task, "dev server");
        assert!(is_any(&open));
        open.clear(Task);
        assert!(!is_any(&open));
    }

    #[test]
    fn no_output_makes_it_grow_without_bound() {
        let mut open = OpenWork::default();
        open.begin(Tool, &"x".repeat(NAME_BYTES + 1));
        open.begin(Tool, "");
        assert!(!open.is_any(&[Tool]));
        for id in 0..2 * OPEN_MAX {
            open.begin(Tool, &id.to_string());
        }
        assert_eq!(open.0[&Tool].len(), OPEN_MAX);
    }
}

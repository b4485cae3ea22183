//! What an agent has started and not finished: tool calls, background tasks and hooks. Past a fixed
//! number, further names are not remembered.

use std::collections::HashSet;

/// The most names remembered of each kind; with so many open, more make no difference.
const OPEN_MAX: usize = 10_000;
/// The longest name remembered, in bytes; no client uses a longer one.
const NAME_BYTES: usize = 200;

/// The names of what is open.
#[derive(Debug, Default)]
pub(super) struct OpenWork {
    tools: HashSet<String>,
    tasks: HashSet<String>,
    hooks: HashSet<String>,
}

impl OpenWork {
    pub(super) fn is_any(&self) -> bool {
        self.is_any_work() || !self.hooks.is_empty()
    }

    /// The agent's own work; a hook belongs to the client.
    pub(super) fn is_any_work(&self) -> bool {
        self.is_any_tool() || !self.tasks.is_empty()
    }

    pub(super) fn is_any_tool(&self) -> bool {
        !self.tools.is_empty()
    }

    pub(super) fn tool(&mut self, id: &str) {
        add(&mut self.tools, id);
    }

    pub(super) fn close(&mut self, id: &str) {
        self.tools.remove(id);
    }

    /// At the end of a turn every call is over, even if its result was not reported.
    pub(super) fn close_all_tools(&mut self) {
        self.tools.clear();
    }

    pub(super) fn task(&mut self, id: &str) {
        add(&mut self.tasks, id);
    }

    pub(super) fn close_task(&mut self, id: &str) {
        self.tasks.remove(id);
    }

    pub(super) fn hook(&mut self, id: &str) {
        add(&mut self.hooks, id);
    }

    pub(super) fn close_hook(&mut self, id: &str) {
        self.hooks.remove(id);
    }

    /// Replaces the list of running tasks.
    pub(super) fn tasks_are<'id>(&mut self, ids: impl Iterator<Item = &'id str>) {
        self.tasks.clear();
        ids.for_each(|id| add(&mut self.tasks, id));
    }
}

fn add(names: &mut HashSet<String>, id: &str) {
    if !id.is_empty() && id.len() <= NAME_BYTES && names.len() < OPEN_MAX {
        names.insert(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_begun_is_open_until_it_is_ended() {
        let mut open = OpenWork::default();
        open.tool("one");
        open.tool("two");
        open.close("one");
        assert!(open.is_any());
        open.close_all_tools();
        assert!(!open.is_any());
        open.task("dev server");
        open.close_all_tools();
        assert!(open.is_any());
        open.tasks_are(["other"].into_iter());
        open.close_task("dev server");
        assert!(open.is_any());
        open.tasks_are(std::iter::empty());
        assert!(!open.is_any());
    }

    #[test]
    fn no_output_makes_it_grow_without_bound() {
        let mut open = OpenWork::default();
        open.tool(&"x".repeat(NAME_BYTES + 1));
        open.tool("");
        assert!(!open.is_any());
        for id in 0..2 * OPEN_MAX {
            open.tool(&id.to_string());
        }
        assert_eq!(open.tools.len(), OPEN_MAX);
    }
}

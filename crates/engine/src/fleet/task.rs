//! The tasks of a fleet and where their work goes. A name that git or a file system would not take
//! as part of a branch is refused here.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

pub use crate::id::{MAX_TASK_ID_BYTES, TaskId};

/// The executor that is this machine.
pub const LOCAL: &str = "local";

/// The remote of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// Its name in the repository that started the fleet.
    pub name: String,
    pub url: String,
}

impl Remote {
    /// The ref by which a repository knows one of its branches.
    pub fn tracking_ref(&self, branch: &str) -> String {
        format!("refs/remotes/{}/{branch}", self.name)
    }
}

/// What becomes of a task's branch once its loop is completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LandingMode {
    /// It stays a branch.
    #[default]
    No,
    /// It is checked on the main branch and pushed there.
    Main,
    /// A pull request is opened.
    Pr,
}

/// The priority of a task that names none.
pub const USUAL_PRIORITY: u8 = 5;
/// The most urgent priority; 0 is the least.
pub const MAX_PRIORITY: u8 = 9;

/// A task of a fleet, complete: the words of `[task]` in fleet.toml are among its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetTask {
    pub id: TaskId,
    /// What the agent is asked to do.
    pub prompt: String,
    /// Options of `crew run`, one a word with its value; after a word `--`, the agent's own words.
    pub words: Vec<String>,
    /// The tasks whose work it builds on.
    pub after: Vec<TaskId>,
    /// Globs of the paths it changes, from the root of the checkout.
    pub touches: Vec<String>,
    /// From 0 to [`MAX_PRIORITY`], the most urgent.
    pub priority: u8,
    /// Twelve hexadecimal digits of a hash over all that runs: prompt, words and setup.
    pub revision: String,
}

impl FleetTask {
    /// Which of two tasks starts first: by priority, then by name.
    pub fn compare_turn(&self, other: &Self) -> Ordering {
        other.priority.cmp(&self.priority).then_with(|| self.id.cmp(&other.id))
    }
}

#[cfg(test)]
mod task_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_a_task_if_git_takes_it_as_part_of_a_branch() {
        let long = "x".repeat(MAX_TASK_ID_BYTES);
        for name in ["auth", "issue-12", "v1.2_b", "A", "7", "a.lock.b", "lock", &long] {
            let id: TaskId = name.parse().unwrap();
            assert_eq!(id.to_string(), name);
        }
        let longer = format!("{long}x");
        let refused =
            ["", "my task", "a/b", "é", "a~", "-n", ".a", "a..b", "a.", "a.lock", &longer];
        let told: Vec<String> =
            refused.iter().map(|name| name.parse::<TaskId>().unwrap_err()).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        "" cannot be a part of a branch: it is empty
        "my task" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` may stand in it
        "a/b" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` may stand in it
        "é" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` may stand in it
        "a~" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` may stand in it
        "-n" cannot be a part of a branch: it begins with `.` or `-`
        ".a" cannot be a part of a branch: it begins with `.` or `-`
        "a..b" cannot be a part of a branch: it holds `..`
        "a." cannot be a part of a branch: it ends in `.` or `.lock`
        "a.lock" cannot be a part of a branch: it ends in `.` or `.lock`
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" cannot be a part of a branch: it has more than 60 bytes
        "#);
    }

    #[test]
    fn names_sort_as_a_person_counts() {
        let sorted = [
            "2x", "10x", "a", "a1", "a1b", "a2", "a2-9", "a2-10", "a10", "a-1", "t0", "t02", "t2",
            "t10",
        ];
        let mut ids: Vec<TaskId> = sorted.iter().rev().map(|name| name.parse().unwrap()).collect();
        ids.sort();
        assert_eq!(ids.iter().map(TaskId::as_str).collect::<Vec<_>>(), sorted);
    }

    proptest! {
        #[test]
        fn the_order_of_names_holds_for_any_three(names in prop::array::uniform3("[a1-20]{1,5}")) {
            let ids: Vec<TaskId> =
                names.iter().filter_map(|name| name.parse().ok()).collect();
            prop_assume!(ids.len() == 3);
            let [a, b, c] = [&ids[0], &ids[1], &ids[2]];
            prop_assert_eq!(a.cmp(b), b.cmp(a).reverse());
            prop_assert_eq!(a.cmp(b) == Ordering::Equal, a == b);
            prop_assert!(a > b || b > c || a <= c, "{} {} {}", a, b, c);
        }
    }

    #[test]
    fn a_record_with_a_name_that_git_refuses_is_not_read() {
        let read = |text| serde_json::from_str::<TaskId>(text).map(|id| id.to_string()).ok();
        assert_eq!(read("\"auth\"").as_deref(), Some("auth"));
        assert_eq!(read("\"../auth\""), None);
    }
}

//! What the other rooms know about fleets: the tasks, what one attempt passes to the next, why a
//! landing is refused, and the queue for a machine's slots.

use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use minijinja::context;
use serde::{Deserialize, Serialize};

pub use crate::record::Carried;
pub use crate::record::id::{MAX_TASK_ID_BYTES, TaskId};
use crate::record::{Check, Role};
use crate::text::templates::render_template;
use crate::text::{self, join_first_names};

/// The name of the executor that runs tasks on this machine.
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
/// The most urgent priority; 0 is the least urgent.
pub const MAX_PRIORITY: u8 = 9;

/// A task of a fleet, complete: the words of `[task]` in fleet.toml are among its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetTask {
    pub id: TaskId,
    /// What the agent is asked to do.
    pub prompt: String,
    /// Options of `crew run`, one word each with its value; the words after `--` are the agent's
    /// own.
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

/// The maximum number of files that a sentence names.
const NAMED_MAX: usize = 5;
/// Names the ignored files that new working trees get: a landing may not change it.
pub const INCLUDE: &str = ".worktreeinclude";

/// Why a branch may not land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refusal {
    /// These files changed on the main branch too.
    Conflict(Vec<String>),
    /// A check fails on the main branch as it would be. Where `run` is empty no command did, and
    /// `output` is a sentence.
    Red { run: String, output: String },
    /// It changes this path, which only a person may.
    Folder(String),
    /// The main branch kept moving, or lost commits that this branch still has.
    Moved(String),
    /// What it refers to, a commit of a submodule or a file of git LFS, is not on its remote.
    Incomplete(String),
    /// The host of the remote does not open a pull request.
    Request(String),
}

impl Refusal {
    /// Whether the task's own loop may settle it.
    pub fn can_be_settled(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Red { .. })
    }

    /// The reason on one line, beginning with its kind.
    pub fn full_reason(&self) -> String {
        let kind = match self {
            Self::Conflict(_) => "conflict",
            Self::Red { .. } => "red",
            Self::Folder(_) => "tasks folder",
            Self::Moved(_) => "moved",
            Self::Incomplete(_) => "incomplete",
            Self::Request(_) => "pull request",
        };
        format!("{kind}: {}", self.reason_text())
    }

    /// The reason without its kind.
    pub fn reason_text(&self) -> String {
        match self {
            Self::Conflict(files) => {
                format!("{} changed on main too", join_first_names(files, NAMED_MAX))
            }
            Self::Red { run, output } if run.is_empty() => output.clone(),
            Self::Red { run, .. } => format!("`{run}` fails on main with this work"),
            Self::Folder(path) => format!("it changes {path}, which only a person may land"),
            Self::Moved(why) | Self::Incomplete(why) | Self::Request(why) => why.clone(),
        }
    }

    /// The refusal without the output of a command, which its message does not include.
    pub fn without_output(&self) -> Self {
        match self {
            Self::Red { run, .. } if !run.is_empty() => {
                Self::Red { run: run.clone(), output: String::new() }
            }
            refusal => refusal.clone(),
        }
    }
}

/// The first path that belongs to the fleet itself or to crew: the task folder and its parents, the
/// list of files for new working trees, and crew's own folder. Paths that differ only in case count
/// as the same, as on case-insensitive disks.
pub fn touches_the_fleet<'a>([folder, own]: [&str; 2], changed: &'a [String]) -> Option<&'a str> {
    let folder = folder.to_lowercase();
    let first = changed.iter().find(|path| {
        let path = path.to_lowercase();
        let is_on = [&*folder, own].iter().any(|top| is_below(&path, top) || is_below(top, &path));
        is_on || path == INCLUDE
    });
    first.map(String::as_str)
}

fn is_below(path: &str, top: &str) -> bool {
    let rest = path.strip_prefix(top);
    !top.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The message to the loop about a landing that was refused, once the main branch is merged into
/// its own, with these files in conflict.
pub fn refusal_evidence(refusal: &Refusal, conflicts: &[String]) -> String {
    render_template("sent_back.j2", &context! { refusal, conflicts })
}

/// The check that the loop of a conflict gets: none of these files may keep a marker.
pub fn without_markers(files: &[String]) -> Option<Check> {
    if files.is_empty() {
        return None;
    }
    let files: Vec<String> =
        files.iter().map(|file| format!("'{}'", file.replace('\'', r"'\''"))).collect();
    let run = format!("! grep -nEs '^(<{{7,}}|>{{7,}}) ' -- {}", files.join(" "));
    Some(Check::new(run, Role::Verify))
}

/// The maximum number of slots of one machine.
pub const SLOTS_MAX: u32 = 1024;
/// After each wait of this length a ticket becomes one priority more urgent, so that every loop
/// gets its turn.
const AGEING: TimeDelta = TimeDelta::minutes(10);

/// A place in the queue, encoded in its file's name:
/// `<priority>-<arrival>-<process>-<counter>-<slots>`, the arrival in microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotTicket {
    // Equally urgent tickets are sorted by these fields, in this order.
    arrived_us: u64,
    process: u32,
    counter: u32,
    priority: u8,
    slots: u32,
}

impl SlotTicket {
    /// The ticket of a loop that came `at` that time and may use the first `slots` slots. `counter`
    /// tells apart the tickets of one process. What is out of range becomes the nearest in it.
    pub fn new(priority: u8, slots: u32, at: DateTime<Utc>, process: u32, counter: u32) -> Self {
        Self {
            arrived_us: to_microseconds(at),
            process,
            counter,
            priority: priority.min(MAX_PRIORITY),
            slots: slots.clamp(1, SLOTS_MAX),
        }
    }

    /// The ticket that a file's name encodes; `None` for any other name.
    pub fn of_name(name: &str) -> Option<Self> {
        let parts: Vec<&str> = name.split('-').collect();
        let &[priority, arrived_us, process, counter, slots] = parts.as_slice() else {
            return None;
        };
        let ticket = Self {
            arrived_us: arrived_us.parse().ok()?,
            process: process.parse().ok()?,
            counter: counter.parse().ok()?,
            priority: priority.parse().ok().filter(|priority| *priority <= MAX_PRIORITY)?,
            slots: slots.parse().ok().filter(|slots| (1..=SLOTS_MAX).contains(slots))?,
        };
        // `+7` and `007` are numbers, too, but no ticket is written like that.
        (ticket.to_string() == name).then_some(ticket)
    }

    /// How long it has waited; zero if the clock was set back since.
    pub fn time_waited(&self, now: DateTime<Utc>) -> TimeDelta {
        let waited = to_microseconds(now).saturating_sub(self.arrived_us);
        TimeDelta::microseconds(i64::try_from(waited).unwrap_or(i64::MAX))
    }

    /// The tickets of `queue` that come before this one, the first one first.
    pub fn those_before(&self, queue: Vec<Self>, now: DateTime<Utc>) -> Vec<Self> {
        let mine = self.rank(now);
        let mut before: Vec<Self> =
            queue.into_iter().filter(|ticket| ticket.rank(now) < mine).collect();
        before.sort_by_cached_key(|ticket| ticket.rank(now));
        before
    }

    fn rank(&self, now: DateTime<Utc>) -> (Reverse<u64>, Self) {
        (Reverse(self.urgency(now)), self.clone())
    }

    /// The slots that it may take behind `before`: those that none of them may use. So only the
    /// first in the queue takes one, unless its loop may use fewer slots than those behind it.
    pub fn may_take(&self, before: &[Self]) -> Range<u32> {
        before.iter().map(|ticket| ticket.slots).max().unwrap_or(0)..self.slots
    }

    /// Its priority, plus what its waiting time has added.
    fn urgency(&self, now: DateTime<Utc>) -> u64 {
        let aged = self.time_waited(now).num_seconds() / AGEING.num_seconds();
        let urgency = u64::from(self.priority).saturating_add(u64::try_from(aged).unwrap_or(0));
        urgency.min(MAX_PRIORITY.into())
    }
}

fn to_microseconds(at: DateTime<Utc>) -> u64 {
    u64::try_from(at.timestamp_micros()).unwrap_or(0)
}

impl fmt::Display for SlotTicket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arrived_us, process, counter, priority, slots } = self;
        write!(out, "{priority}-{arrived_us}-{process}-{counter}-{slots}")
    }
}

/// The memory that one slot is meant to have, in bytes: an agent and its checks.
const SLOT_BYTES: u64 = 2_000_000_000;
/// The maximum number of slots that a machine gets unless a person asks for more.
const DEFAULT_MAX: u64 = 4;

/// A number of slots, with a sentence that says why: "2 slots: half of 4 cores".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlotCount {
    pub count: u32,
    pub why: String,
}

/// The slots of a machine for which no number was given: half its cores, one for every 2 GB of its
/// memory if that is known, at most 4 and at least 1.
pub fn default_slots(cores: usize, memory_bytes: Option<u64>) -> SlotCount {
    let cores = cores as u64;
    let by_cores = (cores / 2, "half of", text::count(cores, "core"));
    let by_memory = memory_bytes.map(|bytes| {
        let tenths = bytes / 100_000_000;
        let memory = format!("{}.{} GB of memory", tenths / 10, tenths % 10);
        (bytes / SLOT_BYTES, "2 GB for each, of", memory)
    });
    let by_default = (DEFAULT_MAX, "the most", "unless more are asked for".to_owned());
    let limits = [Some(by_cores), by_memory, Some(by_default)].into_iter().flatten();
    let (limit, rule, of) = limits.min_by_key(|(limit, ..)| *limit).unwrap_or_default();
    let (count, rule) = match u32::try_from(limit) {
        Ok(0) | Err(_) => (1, "the least, with"),
        Ok(limit) => (limit, rule),
    };
    SlotCount { count, why: format!("{}: {rule} {of}", text::count(count, "slot")) }
}

// How often a fleet is polled: often while something changes, less and less often while nothing
// does. A remote and a cluster serve many others, too. No clock is read here.

/// The interval from one poll to the next.
#[derive(Debug)]
pub struct Pace {
    least: Duration,
    most: Duration,
    pause: Duration,
}

impl Pace {
    /// An interval that begins at `least` and grows to `most`.
    pub fn from_bounds(least: Duration, most: Duration) -> Self {
        Self { least, most, pause: least }
    }

    /// The interval after a poll. It doubles as long as nothing has changed.
    pub fn next_pause(&mut self, has_changed: bool) -> Duration {
        if has_changed {
            self.pause = self.least;
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(self.most);
        pause
    }
}

#[cfg(test)]
mod task_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_a_task_if_git_accepts_it_in_a_branch() {
        let long = "x".repeat(MAX_TASK_ID_BYTES);
        for name in ["auth", "issue-12", "v1.2_b", "A", "7", "a.lock.b", "lock", &long] {
            let id: TaskId = name.parse().unwrap();
            assert_eq!(id.to_string(), name);
        }
        let longer = format!("{long}x");
        let refused =
            ["", "my task", "a/b", "é", "a~", "-n", ".a", "a..b", "a.", "a.lock", &longer];
        let shown: Vec<String> =
            refused.iter().map(|name| name.parse::<TaskId>().unwrap_err()).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        "" cannot be a part of a branch: it is empty
        "my task" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` are allowed in it
        "a/b" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` are allowed in it
        "é" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` are allowed in it
        "a~" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` are allowed in it
        "-n" cannot be a part of a branch: it begins with `.` or `-`
        ".a" cannot be a part of a branch: it begins with `.` or `-`
        "a..b" cannot be a part of a branch: it holds `..`
        "a." cannot be a part of a branch: it ends in `.` or `.lock`
        "a.lock" cannot be a part of a branch: it ends in `.` or `.lock`
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" cannot be a part of a branch: it has more than 60 bytes
        "#);
    }

    #[test]
    fn task_names_are_sorted_naturally() {
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

#[cfg(test)]
mod landing_tests {
    use super::*;

    #[test]
    fn the_fleets_own_files_are_its_folder_and_the_list_of_files() {
        let changed = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let table: [(&str, &[&str], Option<&str>); 12] = [
            ("tasks", &["src/a.rs", "tasks/b.md"], Some("tasks/b.md")),
            ("tasks", &["tasks/deep/b.md"], Some("tasks/deep/b.md")),
            ("tasks", &["tasks"], Some("tasks")),
            ("tasks", &["tasks2/b.md", "src/tasks/b.md"], None),
            ("plans/tasks", &["plans/b.md"], None),
            ("tasks", &[".worktreeinclude"], Some(".worktreeinclude")),
            ("", &["a.md"], None),
            ("tasks", &["TASKS/a.md"], Some("TASKS/a.md")),
            ("plans/Tasks", &["plans/tasks/b.md"], Some("plans/tasks/b.md")),
            ("plans/tasks", &["plans"], Some("plans")),
            ("tasks", &[".WorktreeInclude"], Some(".WorktreeInclude")),
            ("tasks", &["own/settings.json", "own/branches"], Some("own/branches")),
        ];
        for (folder, paths, expected) in table {
            let paths: Vec<String> = changed(paths);
            assert_eq!(
                touches_the_fleet([folder, "own/branches"], &paths),
                expected,
                "{folder} {paths:?}"
            );
        }
    }

    #[test]
    fn the_loop_of_a_conflict_learns_its_files_and_gets_a_check_for_their_markers() {
        let files = vec!["it's.rs".to_owned(), "b.rs".to_owned()];
        let check = without_markers(&files).unwrap();
        assert_eq!(check.run, r"! grep -nEs '^(<{7,}|>{7,}) ' -- 'it'\''s.rs' 'b.rs'");
        insta::assert_snapshot!(refusal_evidence(&Refusal::Conflict(files.clone()), &files), @"
        Your work was complete on its own branch. The main branch has moved since, and is now merged into this branch.

        These files have conflicts: it's.rs, b.rs. The merge is committed with their markers (<<<<<<<, =======, >>>>>>>). A binary file, a link, or a file that one side deleted has no markers: your version of it is in the tree, and git show HEAD^2:FILE shows the other. Resolve each file so that both changes hold, remove every marker, and commit the change on top of the merge. A file that no later commit changes counts as not resolved.

        Fix what no longer holds, and change nothing else.
        ");
    }

    #[test]
    fn a_refusal_names_its_kind_first_and_only_a_conflict_or_a_failed_check_is_sent_back() {
        let red = Refusal::Red { run: "cargo test".to_owned(), output: "1 failed".to_owned() };
        let files = ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
        let refusals = [
            Refusal::Conflict(files),
            red,
            Refusal::Folder("tasks/a.md".to_owned()),
            Refusal::Moved("main moved 8 times".to_owned()),
            Refusal::Incomplete("a commit of lib is on no remote".to_owned()),
            Refusal::Request("gh pr create fails".to_owned()),
        ];
        let without_a_command =
            Refusal::Red { run: String::new(), output: "f is another".to_owned() };
        assert_eq!(without_a_command.full_reason(), "red: f is another");
        let has_named_its_loop = "\n\nWith both, it is not accepted: f is another.\n\n";
        assert!(refusal_evidence(&without_a_command, &[]).contains(has_named_its_loop));
        let shown = refusals.map(|it| format!("{} {}", it.can_be_settled(), it.full_reason()));
        insta::assert_snapshot!(shown.join("\n"), @"
        true conflict: a, b, c, d, e and 1 more changed on main too
        true red: `cargo test` fails on main with this work
        false tasks folder: it changes tasks/a.md, which only a person may land
        false moved: main moved 8 times
        false incomplete: a commit of lib is on no remote
        false pull request: gh pr create fails
        ");
    }
}

#[cfg(test)]
mod slots_tests;

#[cfg(test)]
mod pace_tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_a_maximum_and_a_change_resets_it() {
        let mut pace = Pace::from_bounds(Duration::from_secs(1), Duration::from_secs(15));
        let changes = [true, true, false, false, false, false, false, true, false];
        let pauses = changes.map(|has_changed| pace.next_pause(has_changed).as_secs());
        assert_eq!(pauses, [1, 1, 2, 4, 8, 15, 15, 1, 2]);
        let mut even = Pace::from_bounds(Duration::from_millis(100), Duration::from_millis(100));
        assert_eq!([false, true, false].map(|it| even.next_pause(it).as_millis()), [100; 3]);
    }
}

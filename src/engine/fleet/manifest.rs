//! A fleet as it was started: its tasks, its terms, and the requests of a person. It is written by
//! a person's command alone. A job reads it and takes nothing from a branch. A name that git or a
//! file system would not take as part of a branch is refused here, and so is a record of a newer
//! crew.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::engine::git::GitBaseline;
use crate::engine::record::{Actor, Check, Ending, TaskOfFleet};
use crate::engine::text::within;

/// The format of fleets and leases that this crew writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;
/// The engine that is this machine.
pub const LOCAL: &str = "local";

/// A fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    pub schema: u32,
    /// The crew version that wrote it.
    pub made_by: String,
    pub name: String,
    /// The working tree in which it was started, on the machine that started it.
    pub repository: PathBuf,
    /// The folder of the tasks, below the working tree's root: no task may change it.
    pub folder: String,
    /// The commit that tasks start from: a branch here, or one of the remote.
    pub base: String,
    /// The most iterations at once; 0 leaves it to each machine.
    pub slots: u32,
    /// What all tasks together may cost; 0 means no limit.
    pub max_cost_micros: u64,
    /// Runs once in each new working tree.
    pub setup: Option<String>,
    /// The text of `.worktreeinclude` when the fleet was started.
    pub include: Option<String>,
    /// The limits that a person typed; they go before those of the file.
    pub typed: TypedTerms,
    /// What runs its jobs: `local`, `slurm` or `slurm:HOST`.
    pub engine: String,
    /// Where leases and branches are kept for other machines; `None` keeps everything here.
    pub remote: Option<Remote>,
    pub landing: LandingMode,
    /// Run with a task's own checks on the main branch as it will be.
    #[serde(default)]
    pub land_checks: Vec<Check>,
    /// What a person ordered for all tasks.
    pub order: Option<FleetOrder>,
    /// What a person ordered for single tasks.
    #[serde(default)]
    pub orders: BTreeMap<TaskId, FleetOrder>,
    /// When it was started first, which also tells it from another machine's fleet of its name.
    pub started_at: DateTime<Utc>,
    /// When it was started last, which lifted every pause before that.
    pub ran_at: Option<DateTime<Utc>>,
    /// The programs that the configuration of `repository` names, as the fleet found them: no step
    /// runs one that was planted since. Other machines have their own.
    pub trusted: Option<GitBaseline>,
}

/// What was typed last of the limits of a fleet; `None` leaves them to its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedTerms {
    pub slots: Option<u32>,
    pub max_cost_micros: Option<u64>,
}

impl TypedTerms {
    /// With what was typed before, where nothing was typed now; a 0 is typed to lift a limit, once.
    pub fn or(self, before: Self) -> Self {
        Self {
            slots: self.slots.or(before.slots).filter(|slots| *slots > 0),
            max_cost_micros: self.max_cost_micros.or(before.max_cost_micros).filter(|it| *it > 0),
        }
    }
}

/// The remote of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// Its name in the repository that started the fleet.
    pub name: String,
    pub url: String,
}

impl Remote {
    /// The ref by which a repository knows one of its branches.
    pub fn tracked(&self, branch: &str) -> String {
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

/// What a person ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetOrder {
    pub what: FleetRequest,
    pub by: Actor,
    pub reason: Option<String>,
}

/// What can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetRequest {
    /// No iteration begins until the fleet is run again.
    Pause,
    Cancel,
}

impl FleetOrder {
    /// How it ends a task.
    pub fn ending(&self) -> Ending {
        Ending::cancelled(self.by, self.reason.as_deref())
    }
}

impl Fleet {
    /// Whether its jobs are processes of this machine.
    pub fn is_local(&self) -> bool {
        self.engine == LOCAL
    }

    /// The same fleet, which lands as it was started last.
    pub fn landing_as(&self, newest: &Self) -> Self {
        let Self { landing, setup, include, land_checks, .. } = newest.clone();
        Self { setup, include, landing, land_checks, ..self.clone() }
    }

    /// The same fleet with what the record of this machine has of its own.
    pub fn with_own(self, here: Self) -> Self {
        let Self { repository, trusted, remote, .. } = here;
        Self { repository, trusted, remote: remote.or(self.remote), ..self }
    }

    /// The order that holds for a task; a cancel before a pause.
    pub fn order_of(&self, task: &TaskId) -> Option<&FleetOrder> {
        let both = [self.orders.get(task), self.order.as_ref()].into_iter().flatten();
        both.min_by_key(|order| order.what == FleetRequest::Pause)
    }

    /// The order that ends a task, if one holds.
    pub fn cancel_of(&self, task: &TaskId) -> Option<&FleetOrder> {
        self.order_of(task).filter(|order| order.what == FleetRequest::Cancel)
    }

    /// One of its tasks, as the record of that task's loop names it.
    pub fn task(&self, id: &TaskId) -> TaskOfFleet {
        TaskOfFleet { name: self.name.clone(), folder: self.folder.clone(), task: id.clone() }
    }

    /// The ref of that name in its memory at a remote.
    pub fn lease(&self, name: &str) -> String {
        format!("refs/crew/{}/{name}", self.name)
    }

    /// The branch of a task.
    pub fn branch(&self, task: &TaskId) -> String {
        self.branch_of(&task.to_string())
    }

    /// The branches of the tasks of that name, which may be a pattern.
    pub fn branch_of(&self, name: &str) -> String {
        format!("fleet/{}/{name}", self.name)
    }
}

/// The longest name of a task, in bytes: branches and folders are made of it.
pub const MAX_TASK_ID_BYTES: usize = 60;
/// The most characters of a refused name that a message repeats.
const SHOWN_CHARACTERS: usize = 40;
/// The priority of a task that names none.
pub const USUAL_PRIORITY: u8 = 5;
/// The most urgent priority; 0 is the least.
pub const MAX_PRIORITY: u8 = 9;

/// The name of a task, which is that of its file without `.md`. Safe as a part of a branch, of a
/// ref and of a path. The names of fleets follow the same rules. They sort as a person counts: t2
/// before t10.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct TaskId(String);

impl TaskId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Ord for TaskId {
    fn cmp(&self, other: &Self) -> Ordering {
        pieces(&self.0).cmp(pieces(&other.0)).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for TaskId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A name's numbers and what is between them, which comes after any number. Of two numbers the one
/// with more digits is larger.
fn pieces(name: &str) -> impl Iterator<Item = (usize, &[u8])> {
    let runs = name.as_bytes().chunk_by(|one, next| one.is_ascii_digit() == next.is_ascii_digit());
    runs.map(|run| {
        if !run[0].is_ascii_digit() {
            return (usize::MAX, run);
        }
        let zeros = run.iter().take_while(|digit| **digit == b'0').count();
        (run.len() - zeros, &run[zeros..])
    })
}

impl fmt::Display for TaskId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for TaskId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
        let fault = if text.is_empty() {
            "it is empty"
        } else if text.len() > MAX_TASK_ID_BYTES {
            "it has more than 60 bytes"
        } else if !text.chars().all(is_allowed) {
            "only letters from a to z, digits, `-`, `_` and `.` may stand in it"
        } else if text.starts_with(['.', '-']) {
            "it begins with `.` or `-`"
        } else if text.contains("..") {
            "it holds `..`"
        } else if text.ends_with('.') || is_lock(text) {
            "it ends in `.` or `.lock`"
        } else {
            return Ok(Self(text.to_owned()));
        };
        let shown = within(text, SHOWN_CHARACTERS);
        Err(format!("{shown:?} cannot be a part of a branch: {fault}"))
    }
}

/// Whether git would take it for the lock of another ref.
fn is_lock(text: &str) -> bool {
    text.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("lock"))
}

impl TryFrom<String> for TaskId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

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
    pub fn turn(&self, other: &Self) -> Ordering {
        other.priority.cmp(&self.priority).then_with(|| self.id.cmp(&other.id))
    }
}

/// What holds for all tasks of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetTerms {
    /// The fleet's name, if it is not that of its folder; a valid [`TaskId`].
    pub name: Option<String>,
    /// The branch that tasks start from.
    pub base: Option<String>,
    /// How many tasks may run at once; at least 1.
    pub slots: Option<u32>,
    /// Millionths of a US dollar for the whole fleet; 0 is no limit.
    pub max_cost_micros: Option<u64>,
    /// The command for `sh -c` that prepares a new working tree.
    pub setup: Option<String>,
    /// The options of `[task]`, in the form of [`FleetTask::words`].
    pub words: Vec<String>,
    /// Commands for `sh -c` that must pass on the base before a task's work lands there.
    pub land_check: Vec<String>,
}

/// Why a record cannot be used: which one, the cause, and a hint.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordFault(String);

impl RecordFault {
    /// The record `name` is broken. `away` says how it is put out of the way.
    pub fn broken(name: &str, why: &str, away: &str) -> Self {
        Self(format!(
            "{name} cannot be read: {why}\nhint: {away}, and crew fleet run records it anew"
        ))
    }
}

/// A task whose lease cannot be used. A person is needed: nobody knows how far it is, or whether
/// something works on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableLease {
    pub task: TaskId,
    /// The cause and the way out, on one line.
    pub why: String,
}

impl UnreadableLease {
    /// That of a task, by the error of reading its record `name`, which a row has no room for.
    pub fn of(task: TaskId, name: &str, error: &dyn fmt::Display) -> Self {
        Self { task, why: error.to_string().replace(name, "its record").replace("\nhint: ", "; ") }
    }
}

/// Reads the record `name`. `away` says how a broken one is put out of the way.
pub fn read_record<T: DeserializeOwned>(
    name: &str,
    bytes: &[u8],
    away: &str,
) -> Result<T, RecordFault> {
    #[derive(Deserialize)]
    struct Format {
        schema: u32,
    }
    let broken = |error: serde_json::Error| RecordFault::broken(name, &error.to_string(), away);
    let Format { schema } = serde_json::from_slice(bytes).map_err(broken)?;
    if schema > SCHEMA {
        return Err(RecordFault(format!("{name} was made by a newer crew\nhint: update crew")));
    }
    serde_json::from_slice(bytes).map_err(broken)
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

#[cfg(test)]
mod stored_tests {
    use super::*;
    use crate::engine::fleet::fixture::{a_fleet, a_lease};
    use crate::engine::fleet::lease::Lease;

    fn told<T: DeserializeOwned>(bytes: &[u8]) -> String {
        read_record::<T>("a.json", bytes, "move it away").err().unwrap().to_string()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let lease = serde_json::to_vec(&a_lease("a")).unwrap();
        assert_eq!(read_record::<Lease>("a.json", &lease, "").unwrap(), a_lease("a"));
        let fleet = serde_json::to_vec(&a_fleet()).unwrap();
        assert_eq!(read_record::<Fleet>("fleet.json", &fleet, "").unwrap(), a_fleet());
    }

    #[test]
    fn a_newer_record_is_refused_by_name_whatever_it_holds_and_a_broken_one_with_its_cause() {
        let newer = "a.json was made by a newer crew\nhint: update crew";
        for rest in ["", ", \"task\": 7"] {
            let bytes = format!("{{\"schema\": 2{rest}}}");
            assert_eq!(told::<Lease>(bytes.as_bytes()), newer);
            assert_eq!(told::<Fleet>(bytes.as_bytes()), newer);
        }
        insta::assert_snapshot!(told::<Lease>(b"{"), @"
        a.json cannot be read: EOF while parsing an object at line 1 column 1
        hint: move it away, and crew fleet run records it anew
        ");
        let lease = UnreadableLease::of("a".parse().unwrap(), "a.json", &told::<Lease>(b"{}"));
        insta::assert_snapshot!(lease.why, @"its record cannot be read: missing field `schema` at line 1 column 2; move it away, and crew fleet run records it anew");
    }
}

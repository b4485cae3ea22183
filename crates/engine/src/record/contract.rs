//! What the user asked for, fixed at the start: task, promise, checks and limits. Only a person can
//! change its limits, with `crew set`; no file of the checkout is read again for a running loop.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::claim::promise::Promise;
use crate::evidence::{Role, Verdict};
use crate::record::id::TaskId;
use crate::record::outcome::Proof;

use crate::record::{CheckMemory, Loop};
use crate::test_changes::{ACCEPT, Baseline, ProofTerms, Prove, TestChanges};
use crate::text::{one_line, variant_name};
use crate::usage::{Earlier, Usage};

/// A user who typed this recently in a session is considered present.
const PRESENT: Duration = Duration::from_secs(600);

/// The fixed part of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The user's words, byte for byte.
    pub task: String,
    /// What the agent must say to claim success; `None` after `--no-promise`.
    pub promise: Option<Promise>,
    /// The checks in the order given. A command may have several roles; it still runs only once at
    /// a boundary.
    pub checks: Vec<Check>,
    pub limits: Limits,
    /// Globs of paths that the agent must not change.
    pub protect: Vec<String>,
    /// The weakest proof that completes the loop; `None` accepts any.
    pub require: Option<Proof>,
    /// What a changed test does to a claim.
    pub test_changes: TestChanges,
    /// Who answers what the agent asks in a session.
    pub questions: QuestionMode,
    /// Whether the user's terminal gets neither a notice nor a title.
    pub silent: bool,
    /// Whether and how the work is tried before the loop ends.
    pub trial: ProofTerms,
    /// How iterations run as fresh processes; `None` for a loop that no process has driven yet.
    pub run: Option<Run>,
}

/// The first check of each command.
fn each_command<'a>(checks: impl Iterator<Item = &'a Check>) -> impl Iterator<Item = &'a Check> {
    let mut known = BTreeSet::new();
    checks.filter(move |check| known.insert(&check.run))
}

impl Contract {
    /// The checks that run before the first iteration, each command once. The result of a gate
    /// counts only after an iteration.
    pub fn before_the_first(&self) -> impl Iterator<Item = &Check> {
        each_command(self.checks.iter().filter(|check| check.role != Role::Gate))
    }

    /// The checks of these roles, one role after the other, each command once.
    pub fn commands_of(&self, roles: &[Role]) -> impl Iterator<Item = &Check> {
        each_command(roles.iter().flat_map(|role| self.of_role(*role)))
    }

    /// The checks of one role, in the order given.
    pub fn of_role(&self, role: Role) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.role == role)
    }

    /// Every role of a command.
    pub fn roles_of(&self, run: &str) -> Vec<Role> {
        self.checks.iter().filter(|check| check.run == run).map(|check| check.role).collect()
    }

    /// Whether a fresh process may be ended for its time or its silence.
    pub fn bounds_an_iteration(&self) -> bool {
        let pace = self.run.as_ref().map(|run| run.pace);
        pace.is_some_and(|pace| pace.timeout_s > 0 || pace.idle_timeout_s > 0)
    }

    /// Whether the checks run without the work before the loop ends.
    pub fn runs_without_work(&self) -> bool {
        let asks = self.trial.prove == Prove::Proven || self.require == Some(Proof::Proven);
        asks && !self.checks.is_empty()
    }

    /// Whether the checks run on the tree as the loop found it where none was seen to fail.
    pub fn looks_back(&self) -> bool {
        let asks = match self.require {
            // That they failed there is not enough.
            Some(Proof::Proven) => false,
            Some(_) => true,
            None => self.trial.prove != Prove::Off,
        };
        asks && !self.checks.is_empty()
    }

    /// The checks, each command once.
    pub fn unique_checks(&self) -> impl Iterator<Item = &Check> {
        each_command(self.checks.iter())
    }

    /// Whether checks alone end the loop; a claim ends nothing then.
    pub fn has_until(&self) -> bool {
        self.of_role(Role::Until).next().is_some()
    }

    /// Whether anything but a limit can complete the loop.
    pub fn can_complete(&self) -> bool {
        self.promise.is_some() || self.has_until()
    }
}

/// A command crew runs itself. Only its exit status decides whether it passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Run by `sh -c`.
    pub run: String,
    pub role: Role,
    /// Seconds until the check is ended and counts as failed.
    pub timeout_s: u64,
    /// The exit status that passes.
    pub success_exit_code: i32,
    /// Whether it also passes where nothing fails that passed before the loop.
    pub no_worse: bool,
}

/// Seconds a check may take unless its contract says otherwise.
pub const CHECK_TIMEOUT_S: u64 = 600;

impl Check {
    /// A check with the built-in timeout that passes on exit status 0.
    pub fn new(run: impl Into<String>, role: Role) -> Self {
        Self {
            run: run.into(),
            role,
            timeout_s: CHECK_TIMEOUT_S,
            success_exit_code: 0,
            no_worse: false,
        }
    }
}

/// The place of a loop, fixed at the start: the agent's `cd`, `git switch` or worktree does not
/// move it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The working tree's root; without git the folder in which the client was started.
    pub checkout: PathBuf,
    /// Where checks run: the folder the loop was started from.
    pub folder: PathBuf,
    /// The branch the loop started on; `None` without git or on a detached HEAD.
    pub branch: Option<String>,
    /// Below the checkout, the folder of all branches. It is the same for all loops and not in the
    /// record.
    #[serde(skip)]
    pub branches: &'static str,
    /// The name of the loop's folder in it, with the view, the task and the handoffs.
    pub branch_dir: String,
    /// git's own folder, as git named it when fresh processes first drove the loop; `None` until
    /// then, and without git.
    pub repository: Option<PathBuf>,
    /// `HEAD` at the start, for "since the start"; `None` without git or without a commit.
    pub head: Option<String>,
    /// Where the task and the handoffs are if the branch folder is not writable; `None` if it is.
    pub apart: Option<PathBuf>,
    /// Whether the checkout is a clone that crew has made, in which git works in the folder `.git`
    /// and nowhere else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_clone: bool,
}

impl Place {
    /// The folder of this loop's readable files in the checkout.
    pub fn branch_folder(&self) -> PathBuf {
        self.checkout.join(self.branches).join(&self.branch_dir)
    }

    /// The folder of the files the agent is asked to read: the task and the handoffs.
    pub fn reading_folder(&self) -> PathBuf {
        self.apart.clone().unwrap_or_else(|| self.branch_folder())
    }

    /// The file with the exact task, for the agent to read.
    pub fn task_file(&self) -> PathBuf {
        self.reading_folder().join("task.md")
    }
}

/// The limits of a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub max_iterations: u32,
    /// Failed iterations in a row that abort the loop.
    pub failure_threshold: u32,
    /// Iterations in a row without progress that stall the loop.
    pub stall: u32,
    /// Awake seconds over all iterations.
    pub max_duration_s: u64,
    /// Seconds a single wait for the model's service may last.
    pub max_wait_s: u64,
    /// Millionths of a US dollar.
    pub max_cost_micros: u64,
    /// Tokens of every kind.
    pub max_tokens: u64,
}

// What crew must know of an agent's command line to start it and to read it. It is copied into the
// contract at the start: a loop keeps the agent it began with, whatever the settings say later.

/// An agent's command-line tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name in `--agent`; absent in a file where it is the key.
    #[serde(default)]
    pub name: String,
    /// The program and its fixed arguments; they never pass through a shell.
    pub command: Vec<String>,
    #[serde(default)]
    pub prompt: PromptVia,
    #[serde(default)]
    pub dialect: Dialect,
    /// The arguments that ask for each kind of permissions. A missing kind cannot be asked for.
    #[serde(default)]
    pub permissions: BTreeMap<Permissions, Vec<String>>,
    /// The option that limits an iteration's turns, such as `--max-turns`; `None` if there is none.
    pub max_turns: Option<String>,
    /// The option that names its model, such as `--model`; `None` if there is none.
    pub model: Option<String>,
    /// The argument that allows a command, which replaces `{check}`, or `{words}` where only
    /// a command of plain words can be named: `--allow=Bash({check})`; `None` if there is none.
    pub allow: Option<String>,
    /// Variables that it is started with, besides crew's own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The option that names a file in which it leaves what it used; `None` if there is none.
    pub usage_file: Option<String>,
    /// What it prints before an answer, such as `> `; `None` if it prints nothing there.
    pub answer_mark: Option<String>,
    /// The arguments with which its program only says whether it is logged in, by its exit status;
    /// empty if it cannot say.
    #[serde(default)]
    pub login: Vec<String>,
}

/// How the prompt reaches the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptVia {
    /// On standard input, which is then closed.
    #[default]
    Stdin,
    /// As the last argument; the system limits its length.
    Argument,
}

/// How the agent's output is read: the name of the reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dialect(pub Cow<'static, str>);

impl Dialect {
    /// The name of the reader of plain text.
    pub const PLAIN: &str = "text";
    /// The reader of plain text, where the last part of the output is the final message.
    pub const TEXT: Self = Self(Cow::Borrowed(Self::PLAIN));
}

impl Default for Dialect {
    fn default() -> Self {
        Self::TEXT
    }
}

/// What the agent may do without asking, from the narrowest to the widest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// The permissions of the agent's own settings.
    Default,
    /// Edits in the checkout.
    #[default]
    AcceptEdits,
    /// Whatever the agent itself judges to be safe.
    Auto,
    /// All tools.
    Bypass,
}

impl Permissions {
    /// All permissions, from the narrowest to the widest.
    pub const ALL: [Self; 4] = [Self::Default, Self::AcceptEdits, Self::Auto, Self::Bypass];

    /// The word used in options and files.
    pub fn label(self) -> &'static str {
        variant_name(&self)
    }
}

// The fixed parts of a loop that runs in fresh processes, besides the task, promise, checks and
// limits of its contract: the agent, the recipe of its prompts, and the steps around an iteration.
// A running loop never takes them from the settings again.

/// The process driver's part of the contract.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The procedure it was started with; `None` for a task.
    pub procedure: Option<String>,
    pub agent: Agent,
    /// The agents that replace it while its account is at a limit, the first choice first.
    pub fallback: Vec<Agent>,
    pub permissions: Permissions,
    /// The model requested from the agent; `None` leaves the choice to the agent.
    pub model: Option<String>,
    /// The name of the account whose limits it shares; `None` means the agent's program.
    pub account: Option<String>,
    /// Arguments after the agent's own: the words that a person typed after `--`.
    pub words: Vec<String>,
    pub recipe: Recipe,
    pub pace: IterationTimes,
    /// The maximum number of turns of the agent in one iteration; 0 means no limit.
    pub max_turns: u32,
    /// The tokens of a prompt above which crew warns; 0 means never.
    pub token_budget: u64,
    /// The percentage of its context after which an iteration is followed by a handoff page; 0
    /// means never.
    pub redline: u8,
    pub git: GitSteps,
    pub reactions: Vec<Reaction>,
    /// Lets the machine sleep while the loop works.
    pub may_sleep: bool,
}

/// A phase of one iteration, in the order of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Context,
    Observe,
    Orient,
    Decide,
    /// The work itself; takes the place of the task if there is none.
    Act,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 5] =
        [Self::Context, Self::Observe, Self::Orient, Self::Decide, Self::Act];

    /// The word used in files, options and, in capitals, as a heading of a prompt.
    pub fn label(self) -> &'static str {
        variant_name(&self)
    }
}

/// The parts of a prompt besides the task: the fragments of each phase, in the order given. A phase
/// without any may be absent or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recipe(pub BTreeMap<Phase, Vec<Fragment>>);

impl Recipe {
    /// The fragments of a phase.
    pub fn fragments_of(&self, phase: Phase) -> &[Fragment] {
        self.0.get(&phase).map_or(&[], Vec::as_slice)
    }
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fragment {
    /// A person's words, byte for byte.
    Text(String),
    /// An absolute path, read again for every iteration: a template if its name ends in `.j2`,
    /// else literal.
    File(PathBuf),
    /// One of crew's own templates, by name.
    BuiltIn(String),
}

/// The times of an iteration, in seconds; 0 means "none" for each.
#[expect(clippy::struct_field_names, reason = "each name ends with its unit")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationTimes {
    /// The longest an iteration may take.
    pub timeout_s: u64,
    /// The longest the agent may print nothing while none of its tool calls is open.
    pub idle_timeout_s: u64,
    /// The pause between two iterations.
    pub delay_s: u64,
}

/// What crew does with git around an iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSteps {
    /// Commits what an iteration changed.
    pub commit: bool,
    /// Pushes after an iteration.
    pub push: bool,
    /// The branch to rebase onto before an iteration, if it moved; `None` if there is none.
    pub rebase: Option<String>,
    /// The branch to push, if a person resumed the loop on a different branch from the one it
    /// started on; else `None`.
    pub branch: Option<String>,
}

/// A user's command at a moment of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    pub on: LoopMoment,
    /// Run by `sh -c`.
    pub run: String,
    /// Seconds until it is ended and counts as failed.
    pub timeout_s: u64,
}

/// The moments that a reaction can be set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopMoment {
    /// Before an iteration; a failure skips it.
    IterationStart,
    /// After an iteration; a failure makes the iteration a failure.
    IterationEnd,
    /// When the loop begins to wait for the model's service or after a crash.
    Wait,
    /// When half of the stall limit has passed without progress.
    Stall,
    /// When the loop is over.
    Finish,
}

impl LoopMoment {
    /// All moments, in the order of a loop's life.
    pub const ALL: [Self; 5] =
        [Self::IterationStart, Self::IterationEnd, Self::Wait, Self::Stall, Self::Finish];

    /// The word used in files and variables.
    pub fn label(self) -> &'static str {
        variant_name(&self)
    }
}

/// Who answers a question that the agent asks in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionMode {
    /// The user, if there; otherwise the agent itself.
    #[default]
    Auto,
    /// The user, however long that takes.
    Ask,
    /// The agent itself.
    Defer,
}

impl QuestionMode {
    /// All modes, the default first.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Ask, Self::Defer];

    /// Whether the agent must decide by itself. `typed` is how long ago the user typed something;
    /// `None` if that was never seen.
    pub fn defers(self, typed: Option<Duration>) -> bool {
        match self {
            Self::Auto => typed.is_none_or(|ago| ago > PRESENT),
            Self::Ask => false,
            Self::Defer => true,
        }
    }
}

// The task of a fleet that a loop works on, and the commands by which a person resumes and answers
// it. It does not know the status of that task.

/// A task, by its fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOfFleet {
    /// The fleet's name.
    pub name: String,
    pub task: TaskId,
}

impl TaskOfFleet {
    /// The command that continues or retries the task. If the fleet has no coordinator, that
    /// command prints the one that starts the fleet with all of its options.
    pub fn resume_command(&self) -> String {
        format!("crew resume {self}")
    }

    /// How the user lifts a limit on cost or tokens. A limit of the fleet gives each task a part.
    pub fn without_usage_limits(&self) -> String {
        format!(
            "to continue without it: max-cost: 0 and max-tokens: 0 in the task's file \
             (--max-cost 0 lifts the fleet's), then {}",
            self.resume_command()
        )
    }

    /// The command that sends the task's agent a message, which follows it.
    pub fn tell_command(&self) -> String {
        format!("crew tell {self}")
    }

    /// The command that accepts the tests and check settings of the task as its agent left them.
    pub fn accept_test_changes(&self) -> String {
        format!("{} {ACCEPT}", self.resume_command())
    }
}

impl fmt::Display for TaskOfFleet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.name, self.task)
    }
}

/// The maximum number of characters kept of the last sighting.
const LAST_CHARS: usize = 120;

/// What the loops of a task have used so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    pub completed: u32,
    pub consecutive_failures: u32,
    pub iterations_without_progress: u32,
    pub awake_ms: u64,
    pub usage: Usage,
    pub times: Earlier,
    /// What each check has shown, so that a proof counts all attempts.
    pub checks: BTreeMap<String, CheckMemory>,
    /// The tests and check configuration as its loop found them, on the machine where they were
    /// recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// What was last seen of it, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last: String,
}

impl Carried {
    /// What a loop has used, with what it was given at its start.
    pub fn from_record(record: &Loop) -> Self {
        let state = &record.state;
        let mut times = record.earlier;
        record.elapsed_ms.iter().for_each(|ms| times.add_time(*ms));
        Self {
            completed: state.counts().completed(),
            consecutive_failures: state.counts().consecutive_failures(),
            iterations_without_progress: state.counts().iterations_without_progress(),
            awake_ms: state.time().awake_ms(),
            usage: record.use_so_far(),
            times,
            checks: state.seen().checks().clone(),
            baseline: state.seen().baseline().clone(),
            last: describe_last(record),
        }
    }

    /// Adds it to a loop that begins, whose limits are those of the task.
    pub fn give_to(&self, record: &mut Loop) {
        record.state.take_over(self);
        record.earlier = self.times;
    }
}

/// What the last iteration showed, in one line: a check that failed, or whether anything changed.
fn describe_last(record: &Loop) -> String {
    let Some(evidence) = record.state.seen().evidence() else { return String::new() };
    let failed = evidence.checks.iter().find(|check| check.verdict != Verdict::Passed);
    failed.map_or_else(
        || evidence.progress_words(["files changed", "nothing changed", ""]),
        |check| one_line(&format!("{} {}", check.run, check.what_happened()), LAST_CHARS),
    )
}

#[cfg(test)]
#[path = "contract_tests.rs"]
mod tests;

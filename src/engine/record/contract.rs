//! What the user asked for, fixed at the start: task, promise, checks and limits. The agent can
//! read it and cannot change it; no file of the checkout is read again for a running loop.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::outcome::Proof;
use super::question::QuestionMode;
use super::run::Run;
use crate::engine::claim::promise::Promise;
use crate::engine::test_changes::TestChanges;
use crate::engine::test_changes::trial::{Prove, TrialTerms};
use crate::engine::text::word;

/// The fixed part of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The user's words, byte for byte.
    pub task: String,
    /// What the agent must say to claim success; `None` after `--no-promise`.
    pub promise: Option<Promise>,
    /// In the order given. A command may have several roles; it still runs once a boundary.
    pub checks: Vec<Check>,
    pub limits: Limits,
    /// Globs of paths that the agent must not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// The weakest proof that completes the loop; `None` accepts any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require: Option<Proof>,
    /// What a changed test does to a claim.
    #[serde(default, skip_serializing_if = "TestChanges::is_refuse")]
    pub test_changes: TestChanges,
    /// Who answers what the agent asks in a session.
    #[serde(default, skip_serializing_if = "QuestionMode::is_auto")]
    pub questions: QuestionMode,
    /// Whether the user's terminal gets no notice and no title.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// Whether and how the work is tried before the loop ends.
    #[serde(default, skip_serializing_if = "TrialTerms::are_usual")]
    pub trial: TrialTerms,
    /// How iterations run as fresh processes; `None` for a loop that no process has driven yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

impl Contract {
    /// The checks that run before the first iteration, each command once. A gate's result counts
    /// only after one.
    pub fn before_the_first(&self) -> impl Iterator<Item = &Check> {
        let mut known = BTreeSet::new();
        let first = self.checks.iter().filter(|check| check.role != Role::Gate);
        first.filter(move |check| known.insert(&check.run))
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

    /// Whether the work is taken away on trial before the loop ends.
    pub fn is_tried(&self) -> bool {
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
    pub fn commands(&self) -> impl Iterator<Item = &Check> {
        let mut known = BTreeSet::new();
        self.checks.iter().filter(move |check| known.insert(&check.run))
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

/// When a check runs, and what its failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Must pass before a claim is believed.
    Verify,
    /// As `Verify`, and runs after every iteration; if it fails, the iteration is a failure.
    Gate,
    /// Ends the loop when it passes; no claim is needed.
    Until,
}

impl Role {
    /// All of them, in the order contracts list checks.
    pub const ALL: [Self; 3] = [Self::Verify, Self::Gate, Self::Until];

    /// The word used in messages, options and files.
    pub fn label(self) -> &'static str {
        word(&self)
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
    /// Whether it also passes when it fails in nothing that passed as the loop found it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_worse: bool,
}

/// Seconds a check may take unless its contract says otherwise.
pub const CHECK_TIMEOUT_S: u64 = 600;

impl Check {
    /// A `verify` that also passes when nothing got worse.
    pub fn no_worse(run: impl Into<String>) -> Self {
        Self { no_worse: true, ..Self::new(run, Role::Verify) }
    }

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
    /// The folder in it that holds the view, the task and the handoffs.
    pub branch_dir: String,
    /// git's own folder, as git named it when fresh processes first drove the loop; `None` until
    /// then, and without git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<PathBuf>,
    /// `HEAD` at the start, for "since the start"; `None` without git or without a commit.
    pub head: Option<String>,
    /// Where the task and the handoffs are if the branch folder is not writable; `None` if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<PathBuf>,
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

    /// The file that holds the exact task, for the agent to read.
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

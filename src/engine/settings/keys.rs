//! Every setting that a settings file may hold, one row each: where it is written,
//! what kind of value it takes, its default, and which of two values is wider. Readers, tiers,
//! trust, `crew config` and the file of `crew init` use these rows. A name without a row here is
//! not a setting.

use super::{Kind, Value};
use crate::engine::claim::promise::Promise;
use crate::engine::record::{Permissions, QuestionMode, Role};
use crate::engine::test_changes::TestChanges;
use crate::engine::test_changes::trial::{Prove, TRIAL_TIMEOUT_S};

/// The group that a setting belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The limits of every loop.
    Bound,
    /// Other terms of every loop.
    Term,
    /// The limits of an iteration in a fresh process.
    Process,
    /// The steps around such an iteration.
    Step,
    Agent,
    Wait,
    Keep,
}

/// Which values are wider than what a person allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wider {
    /// Greater values; for a number 0, "none", is the greatest.
    More,
    Less,
    /// On, or on with another word.
    On,
    /// Any other value.
    Other,
    /// Any other value, and off if the user says nothing.
    OtherOrOff,
    /// Every value, because it is a command or part of one.
    All,
    Nothing,
}

/// Everything about one setting.
#[derive(Debug)]
pub struct KeyRow {
    key: Key,
    pub part: Part,
    /// The name in its own table.
    pub name: &'static str,
    pub kind: Kind,
    wider: Wider,
    /// The default of a number or a switch.
    built_in: u64,
    /// A sensible value, as a file writes it.
    pub example: &'static str,
    /// Its description in the file of `crew init`; empty if it has none.
    pub help: &'static str,
}

/// The settings, a row each: what a key is for, its part, name, kind, which values are wider, its
/// default, an example, and its description in the file of `crew init`.
macro_rules! settings {
    ($(
        $(#[$doc:meta])*
        $key:ident: $part:ident, $name:literal, $kind:ident $(($role:path))?, $wider:ident,
        $built_in:expr, $example:literal, $help:literal;
    )+) => {
        /// A setting, in the order of display.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Key {
            $($(#[$doc])* $key,)+
        }

        /// A misspelled name is compared with the rows in this order.
        const ROWS: &[KeyRow] = &[$(KeyRow {
            key: Key::$key,
            part: Part::$part,
            name: $name,
            kind: Kind::$kind $(($role))?,
            wider: Wider::$wider,
            built_in: $built_in,
            example: $example,
            help: $help,
        }),+];
    };
}

settings! {
    MaxIterations: Bound, "max_iterations", Iterations, More, 10, "15",
        "iterations after which a loop ends";
    FailureThreshold: Bound, "failure_threshold", Iterations, More, 3, "3",
        "failed iterations in a row after which it is aborted";
    Stall: Bound, "stall", Iterations, More, 5, "3",
        "iterations in a row without progress after which it is stalled";
    MaxDuration: Bound, "max_duration", Seconds, More, 12 * 3600, "\"12h\"",
        "time after which it ends, not counting sleep";
    MaxCost: Bound, "max_cost", Micros, More, 0, "5.00",
        "US dollars after which it ends, such as 5.00";
    MaxTokens: Bound, "max_tokens", Tokens, More, 0, "\"500k\"",
        "tokens after which it ends, such as \"500k\"";
    /// For one iteration.
    Timeout: Process, "timeout", Seconds, More, 3600, "\"10m\"",
        "the longest an iteration may take";
    /// For the agent's silence.
    IdleTimeout: Process, "idle_timeout", Seconds, More, 900, "\"15m\"",
        "the longest the agent may be silent while no tool call is open";
    /// Between two iterations; the only limit where less is wider.
    Delay: Step, "delay", Seconds, Less, 0, "\"30s\"", "the wait between two iterations";
    /// For one iteration.
    MaxTurns: Process, "max_turns", Turns, More, 0, "50",
        "the most turns of the agent in one iteration";
    /// For a prompt; crew warns above it.
    TokenBudget: Process, "token_budget", Tokens, Nothing, 100_000, "\"100k\"",
        "tokens above which a prompt causes a warning";
    /// For the context of one iteration; past it the next prompt has a handoff page.
    Redline: Process, "redline", Percent, Nothing, 80, "\"80%\"",
        "how full a context may be before a handoff page follows it";
    MaxWait: Wait, "max", Seconds, More, 12 * 3600, "\"12h\"",
        "the longest wait for a rate limit or an outage";
    /// For the iteration logs of all loops.
    KeepLogs: Keep, "logs", Bytes, More, 2 << 30, "\"2GiB\"", "";
    /// For the snapshots of all working trees.
    KeepSnapshots: Keep, "snapshots", Bytes, More, 10 << 30, "\"10GiB\"", "";
    /// For the age of the oldest log and snapshot.
    KeepDays: Keep, "days", Days, More, 90, "90", "";
    Promise: Term, "completion_promise", Promise, OtherOrOff, 0, "\"ALL DONE\"",
        "what the agent says when it is done";
    /// The weakest proof that completes a loop.
    Require: Term, "require", Proof, Nothing, 0, "\"checked\"",
        "a loop completes only if a check that had failed now passes";
    /// What a changed test does to a claim.
    TestChanges: Term, "test_changes", TestChanges, Other, 0, "\"report\"",
        "a changed test that failed at the start refuses no end, it only lowers the proof";
    /// Who answers what the agent asks.
    Questions: Term, "questions", Questions, Other, 0, "\"defer\"",
        "the agent decides what it would ask; \"ask\": it waits for you";
    /// Whether the user's terminal gets notices.
    Notices: Term, "notices", Switch, Nothing, 1, "false", "no notices on your terminal";
    /// Whether the work is tried before a loop ends.
    Prove: Term, "prove", Prove, Less, 0, "\"proven\"",
        "before a loop completes, run the checks without its work, to see whether a test fails";
    /// For a whole trial.
    ProveTimeout: Term, "prove_timeout", Seconds, More, TRIAL_TIMEOUT_S, "\"15m\"",
        "the time limit of what runs in the scratch folder";
    /// What prepares the folder of a trial.
    Setup: Term, "setup", Name, All, 0, "\"npm ci\"",
        "prepares the scratch folder where checks run on another state of the tree";
    /// Globs of paths that are tests.
    Tests: Term, "tests", Words, Nothing, 0, "[\"checks/**\"]",
        "paths that are tests, in addition to those known by their names";
    /// Tests and check configuration that are the task.
    MayChange: Term, "may_change", Words, All, 0, "[\"tests/golden/**\"]",
        "tests and check settings that are the task, and so count as work";
    /// The name of the agent that fresh processes run.
    Agent: Agent, "agent", Name, Other, 0, "", "";
    /// The agents that stand in for it while it is at a limit, in their order.
    Fallback: Agent, "fallback", Agents, Other, 0, "", "";
    Model: Agent, "model", Model, Other, 0, "\"opus\"", "";
    /// The name of the account whose limits all its loops share.
    Account: Agent, "account", Name, Other, 0, "\"work\"", "";
    /// For the agent, after its own.
    Arguments: Agent, "args", Words, All, 0, "[\"--effort\", \"high\"]", "";
    Permissions: Agent, "permissions", Permissions, More, 0, "\"accept-edits\"", "";
    Commit: Step, "commit", Switch, On, 0, "true", "commit after each iteration what it changed";
    Push: Step, "push", Switch, On, 0, "true", "push after each iteration";
    /// The branch to rebase onto.
    Rebase: Step, "rebase", Branch, On, 0, "\"main\"",
        "before an iteration, rebase onto this branch if it has moved";
    /// Whether the machine is kept awake while a run works.
    Awake: Step, "awake", Switch, Nothing, 1, "true", "let this machine sleep while an agent works";
    Verify: Term, "verify", Commands(Role::Verify), All, 0, "", "";
    Gate: Term, "gate", Commands(Role::Gate), All, 0, "", "";
    Until: Term, "until", Commands(Role::Until), All, 0, "", "";
    /// Globs of paths that the agent must not change.
    Protect: Term, "protect", Globs, Nothing, 0, "", "";
}

impl Key {
    /// All keys, in the order in which a misspelled name is compared with them.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.key)
    }

    /// Its row.
    pub fn row(self) -> &'static KeyRow {
        &ROWS[self as usize]
    }

    /// Its own table.
    pub fn table(self) -> &'static str {
        match self.row().part {
            Part::Wait => "wait",
            Part::Keep => "keep",
            _ => "loop",
        }
    }

    /// Its name in a table of a settings file; `None` if it may not be in that table.
    pub fn name_in(self, table: &str) -> Option<&'static str> {
        (self.table() == table).then(|| self.row().name)
    }

    /// Its value if no setting names one.
    pub fn built_in(self) -> Option<Value> {
        let number = self.row().built_in;
        match self.row().kind {
            Kind::Switch => Some(Value::Switch(number > 0)),
            Kind::Promise => Some(Value::Promise(Promise::default())),
            Kind::TestChanges => Some(Value::TestChanges(TestChanges::default())),
            Kind::Questions => Some(Value::Questions(QuestionMode::default())),
            Kind::Prove => Some(Value::Prove(Prove::default())),
            Kind::Permissions => Some(Value::Permissions(Permissions::default())),
            Kind::Branch => Some(Value::Off),
            Kind::Proof
            | Kind::Name
            | Kind::Model
            | Kind::Words
            | Kind::Agents
            | Kind::Commands(_)
            | Kind::Globs => None,
            _ => Some(Value::Number(number)),
        }
    }

    /// Whether `value` is wider than what the user allowed; `None` if the user says nothing.
    pub fn is_wider(self, value: &Value, allowed: Option<&Value>) -> bool {
        if self.row().wider == Wider::OtherOrOff && allowed.is_none() {
            return *value == Value::Off;
        }
        let allowed = allowed.cloned().or_else(|| self.built_in());
        match (self.row().wider, value, allowed) {
            (Wider::Nothing, ..) | (Wider::On, Value::Off | Value::Switch(false), _) => false,
            (Wider::More, Value::Permissions(value), Some(Value::Permissions(allowed))) => {
                *value > allowed
            }
            (Wider::More, Value::Number(value), Some(Value::Number(allowed))) => {
                allowed != 0 && (*value == 0 || *value > allowed)
            }
            (Wider::Less, Value::Number(value), Some(Value::Number(allowed))) => *value < allowed,
            (Wider::Less, Value::Prove(value), Some(Value::Prove(allowed))) => *value < allowed,
            (Wider::On | Wider::Other | Wider::OtherOrOff, own, Some(allowed)) => *own != allowed,
            _ => true,
        }
    }
}

//! Every setting that a settings file may hold, one row each: where it is written,
//! what kind of value it takes, its default, and which of two values is wider. Readers, tiers,
//! trust, `crew config` and the file of `crew init` use these rows. A name without a row here is
//! not a setting.

use super::{Kind, Value};
use crate::engine::claim::promise::Promise;
use crate::engine::record::{Permissions, QuestionMode, Role};
use crate::engine::test_changes::TestChanges;
use crate::engine::test_changes::trial::{Prove, TRIAL_TIMEOUT_S};

/// A setting, in the order of display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    MaxIterations,
    FailureThreshold,
    Stall,
    MaxDuration,
    MaxCost,
    MaxTokens,
    /// For one iteration.
    Timeout,
    /// For the agent's silence.
    IdleTimeout,
    /// Between two iterations; the only limit where less is wider.
    Delay,
    /// For one iteration.
    MaxTurns,
    /// For a prompt; crew warns above it.
    TokenBudget,
    /// For the context of one iteration; past it the next prompt has a handoff page.
    Redline,
    MaxWait,
    /// For the iteration logs of all loops.
    KeepLogs,
    /// For the snapshots of all working trees.
    KeepSnapshots,
    /// For the age of the oldest log and snapshot.
    KeepDays,
    Promise,
    /// The weakest proof that completes a loop.
    Require,
    /// What a changed test does to a claim.
    TestChanges,
    /// Who answers what the agent asks.
    Questions,
    /// Whether the user's terminal gets notices.
    Notices,
    /// Whether the work is tried before a loop ends.
    Prove,
    /// For a whole trial.
    ProveTimeout,
    /// What prepares the folder of a trial.
    Setup,
    /// Globs of paths that are tests.
    Tests,
    /// Tests and check configuration that are the task.
    MayChange,
    /// The name of the agent that fresh processes run.
    Agent,
    /// The agents that stand in for it while it is at a limit, in their order.
    Fallback,
    Model,
    /// The name of the account whose limits all its loops share.
    Account,
    /// For the agent, after its own.
    Arguments,
    Permissions,
    Commit,
    Push,
    /// The branch to rebase onto.
    Rebase,
    /// Whether the machine is kept awake while a run works.
    Awake,
    Verify,
    Gate,
    Until,
    /// Globs of paths that the agent must not change.
    Protect,
}

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

const fn row(key: Key, part: Part, name: &'static str, kind: Kind, wider: Wider) -> KeyRow {
    let (built_in, example, help) = (0, "", "");
    KeyRow { key, part, name, kind, wider, built_in, example, help }
}

impl KeyRow {
    const fn says(self, built_in: u64, example: &'static str, help: &'static str) -> Self {
        Self { built_in, example, help, ..self }
    }
}

/// A misspelled name is compared with the rows in this order.
const ROWS: [KeyRow; 40] =
    {
        use Kind::{
            Branch, Bytes, Commands, Days, Globs, Iterations, Micros, Name, Percent, Proof,
        };
        use Kind::{Seconds, Switch, Tokens, Turns, Words};
        use Part::{Bound, Keep, Process, Step, Term, Wait};
        use Wider::{All, Less, More, Nothing, On, Other, OtherOrOff};
        [
        row(Key::MaxIterations, Bound, "max_iterations", Iterations, More)
            .says(10, "15", "iterations after which a loop ends"),
        row(Key::MaxDuration, Bound, "max_duration", Seconds, More)
            .says(12 * 3600, "\"12h\"", "time after which it ends, not counting sleep"),
        row(Key::MaxCost, Bound, "max_cost", Micros, More)
            .says(0, "5.00", "US dollars after which it ends, such as 5.00"),
        row(Key::MaxTokens, Bound, "max_tokens", Tokens, More)
            .says(0, "\"500k\"", "tokens after which it ends, such as \"500k\""),
        row(Key::Promise, Term, "completion_promise", Kind::Promise, OtherOrOff).says(
            0,
            "\"ALL DONE\"",
            "what the agent says when it is done",
        ),
        row(Key::Require, Term, "require", Proof, Nothing).says(
            0,
            "\"checked\"",
            "a loop completes only if a check that had failed now passes",
        ),
        row(Key::TestChanges, Term, "test_changes", Kind::TestChanges, Other).says(
            0,
            "\"report\"",
            "a changed test that failed at the start refuses no end, it only lowers the proof",
        ),
        row(Key::Questions, Term, "questions", Kind::Questions, Other).says(
            0,
            "\"defer\"",
            "the agent decides what it would ask; \"ask\": it waits for you",
        ),
        row(Key::Notices, Term, "notices", Switch, Nothing).says(
            1,
            "false",
            "no notices on your terminal",
        ),
        row(Key::Prove, Term, "prove", Kind::Prove, Less).says(
            0,
            "\"proven\"",
            "before a loop completes, run the checks without its work, to see whether a test fails",
        ),
        row(Key::ProveTimeout, Term, "prove_timeout", Seconds, More).says(
            TRIAL_TIMEOUT_S,
            "\"15m\"",
            "the time limit of what runs in the scratch folder",
        ),
        row(Key::Setup, Term, "setup", Name, All).says(
            0,
            "\"npm ci\"",
            "prepares the scratch folder where checks run on another state of the tree",
        ),
        row(Key::Tests, Term, "tests", Words, Nothing).says(
            0,
            "[\"checks/**\"]",
            "paths that are tests, in addition to those known by their names",
        ),
        row(Key::MayChange, Term, "may_change", Words, All).says(
            0,
            "[\"tests/golden/**\"]",
            "tests and check settings that are the task, and so count as work",
        ),
        row(Key::FailureThreshold, Bound, "failure_threshold", Iterations, More)
            .says(3, "3", "failed iterations in a row after which it is aborted"),
        row(Key::Stall, Bound, "stall", Iterations, More)
            .says(5, "3", "iterations in a row without progress after which it is stalled"),
        row(Key::Verify, Term, "verify", Commands(Role::Verify), All),
        row(Key::Gate, Term, "gate", Commands(Role::Gate), All),
        row(Key::Until, Term, "until", Commands(Role::Until), All),
        row(Key::Timeout, Process, "timeout", Seconds, More)
            .says(3600, "\"10m\"", "the longest an iteration may take"),
        row(Key::IdleTimeout, Process, "idle_timeout", Seconds, More)
            .says(900, "\"15m\"", "the longest the agent may be silent while no tool call is open"),
        row(Key::Delay, Step, "delay", Seconds, Less)
            .says(0, "\"30s\"", "the wait between two iterations"),
        row(Key::MaxTurns, Process, "max_turns", Turns, More)
            .says(0, "50", "the most turns of the agent in one iteration"),
        row(Key::TokenBudget, Process, "token_budget", Tokens, Nothing)
            .says(100_000, "\"100k\"", "tokens above which a prompt causes a warning"),
        row(Key::Redline, Process, "redline", Percent, Nothing)
            .says(80, "\"80%\"", "how full a context may be before a handoff page follows it"),
        row(Key::Agent, Part::Agent, "agent", Name, Other),
        row(Key::Fallback, Part::Agent, "fallback", Kind::Agents, Other),
        row(Key::Model, Part::Agent, "model", Kind::Model, Other)
            .says(0, "\"opus\"", ""),
        row(Key::Account, Part::Agent, "account", Name, Other)
            .says(0, "\"work\"", ""),
        row(Key::Arguments, Part::Agent, "args", Words, All).says(
            0,
            "[\"--effort\", \"high\"]",
            "",
        ),
        row(Key::Permissions, Part::Agent, "permissions", Kind::Permissions, More)
            .says(0, "\"accept-edits\"", ""),
        row(Key::Commit, Step, "commit", Switch, On)
            .says(0, "true", "commit after each iteration what it changed"),
        row(Key::Push, Step, "push", Switch, On)
            .says(0, "true", "push after each iteration"),
        row(Key::Rebase, Step, "rebase", Branch, On)
            .says(0, "\"main\"", "before an iteration, rebase onto this branch if it has moved"),
        row(Key::Awake, Step, "awake", Switch, Nothing)
            .says(1, "true", "let this machine sleep while an agent works"),
        row(Key::Protect, Term, "protect", Globs, Nothing),
        row(Key::MaxWait, Wait, "max", Seconds, More)
            .says(12 * 3600, "\"12h\"", "the longest wait for a rate limit or an outage"),
        row(Key::KeepLogs, Keep, "logs", Bytes, More)
            .says(2 << 30, "\"2GiB\"", ""),
        row(Key::KeepSnapshots, Keep, "snapshots", Bytes, More)
            .says(10 << 30, "\"10GiB\"", ""),
        row(Key::KeepDays, Keep, "days", Days, More).says(90, "90", ""),
    ]
    };

impl Key {
    /// All keys, in the order in which a misspelled name is compared with them.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.key)
    }

    /// Its row.
    pub fn row(self) -> &'static KeyRow {
        ROWS.iter().find(|row| row.key == self).expect("a row for each key")
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

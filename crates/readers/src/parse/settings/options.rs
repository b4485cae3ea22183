//! Every option of a loop, defined once. clap reads them from a command line, for a terminal and
//! for `/crew:loop`; serde reads them from settings, procedures and the built-in defaults. An
//! absent option changes nothing.

use derive_getters::Getters;
use std::sync::LazyLock;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::parse::amounts::{
    Bytes, Count, Limit, OrOff, Percent, Seconds, TokenCount, Unit, deserialize_texts, parse_text,
};
use engine::boundary::limits::{LimitChange, LimitChanges, LimitName};
use engine::claim::promise::Promise;
use engine::record::{Permissions, Proof, QuestionMode};
use engine::test_changes::{Prove, TestChanges};
use engine::text::variant_name;

/// The headings of the options in a page of help.
pub const START: &str = "Start";
const DONE_WHEN: &str = "Done when";
/// The heading for claims and tests.
pub const CLAIMS: &str = "Claims and tests";
const LIMITS: &str = "Limits";
/// The heading for the agent.
pub const AGENT: &str = "Agent";
/// The heading for git.
pub const GIT: &str = "Git";
/// The heading for this run alone.
pub const THIS_RUN: &str = "This run";

/// All options of a loop that settings may contain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopOptions {
    #[serde(flatten)]
    pub limits: LimitOptions,
    #[serde(flatten)]
    pub terms: TermOptions,
    #[serde(flatten)]
    pub process: ProcessOptions,
    #[serde(flatten)]
    pub file_terms: FileTerms,
    #[serde(flatten)]
    pub file_process: FileProcess,
}

/// The limits of every loop.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = LIMITS)]
#[serde(rename_all = "kebab-case", default)]
pub struct LimitOptions {
    /// At most N iterations (10; 0 = no limit)
    ///
    /// A procedure may have its own number.
    #[arg(long, short = 'n', value_name = "N")]
    pub max_iterations: Option<Limit<{ Unit::Count as usize }>>,
    /// At most D: 90m, 12h (12h; 0 = no limit)
    ///
    /// Time when the machine sleeps does not count.
    #[arg(long, value_name = "D")]
    pub max_duration: Option<Limit<{ Unit::Seconds as usize }>>,
    /// At most this many dollars: 5, 2.50 (0 = no limit)
    ///
    /// By the client's prices.
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<Limit<{ Unit::Dollars as usize }>>,
    /// At most N tokens: 500k, 2M (0 = no limit)
    ///
    /// Tokens of every kind.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<Limit<{ Unit::Tokens as usize }>>,
    /// Abort after N failures in a row (3; 0 = off)
    ///
    /// A failure is an iteration that failed.
    #[arg(long, value_name = "N")]
    pub failure_threshold: Option<Limit<{ Unit::Count as usize }>>,
    /// Stop after N without progress (5; 0 = off)
    ///
    /// The loop ends as stalled after N iterations in a row without progress.
    #[arg(long, value_name = "N")]
    pub stall: Option<Limit<{ Unit::Count as usize }>>,
}

/// The other terms of every loop.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = DONE_WHEN)]
#[serde(rename_all = "kebab-case", default)]
pub struct TermOptions {
    /// Who answers the agent's questions: auto, ask, defer
    ///
    /// In a session, auto is you, if you typed in the last 10 minutes, else the agent itself; ask
    /// is you; defer is the agent itself.
    #[arg(long, value_name = "MODE", help_heading = START, hide_possible_values = true)]
    #[arg(value_parser = one_of(QuestionMode::ALL))]
    pub questions: Option<QuestionMode>,
    /// Must pass before a claim counts (auto finds a command)
    ///
    /// May be repeated. auto is the test command found here.
    #[arg(long, value_name = "CMD", value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts", skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// Like --verify, and also runs after every iteration
    #[arg(long, value_name = "CMD", value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts", skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<String>,
    /// Ends the loop when it passes; no claim needed
    #[arg(long, value_name = "CMD", value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts", skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<String>,
    /// Like --verify; tests that failed before may still fail
    ///
    /// Passes also when no test fails that passed at the start. May be repeated.
    #[arg(long, value_name = "CMD", value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts", skip_serializing_if = "Vec::is_empty")]
    pub no_worse: Vec<String>,
    /// The lowest proof that completes it: checked or proven
    ///
    /// checked: a check had failed and now passes.
    #[arg(long, value_name = "PROOF", hide_possible_values = true)]
    #[arg(value_parser = one_of(Proof::REQUIRED))]
    #[serde(deserialize_with = "deserialize_required")]
    pub require: Option<Proof>,
    /// Before it completes, run the checks without the work
    ///
    /// A test that then fails proves the work.
    #[arg(long, num_args = 0, default_missing_value = "proven")]
    #[arg(value_parser = one_of(Prove::ALL))]
    pub prove: Option<Prove>,
    /// What the agent must say (COMPLETE)
    ///
    /// Without it, the one tag in the task counts, else COMPLETE.
    #[arg(long, value_name = "TEXT", help_heading = CLAIMS)]
    pub completion_promise: Option<OrOff<Promise>>,
    /// No claim ends the loop
    #[arg(long, conflicts_with = "completion_promise", help_heading = CLAIMS)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_promise: bool,
    /// If tests changed: refuse the claim, or report
    ///
    /// This concerns a test that failed at the start and, unchanged, still fails. report only
    /// lowers the proof.
    #[arg(long, value_name = "MODE", help_heading = CLAIMS, hide_possible_values = true)]
    #[arg(value_parser = one_of(TestChanges::ALL))]
    pub test_changes: Option<TestChanges>,
    /// Tests or settings that are the task: a glob
    ///
    /// Changes to these tests and check settings count as work.
    #[arg(long, value_name = "GLOB", help_heading = CLAIMS, value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts", skip_serializing_if = "Vec::is_empty")]
    pub may_change: Vec<String>,
}

/// The options of fresh processes, which `crew run` and `crew resume` share.
#[derive(Getters, Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = AGENT)]
#[serde(rename_all = "kebab-case", default)]
pub struct ProcessOptions {
    /// The agent's name: one that crew knows, or yours
    #[arg(long, value_name = "NAME", value_parser = parse_text)]
    agent: Option<String>,
    /// Who takes over when its account is at a limit
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',', value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts", skip_serializing_if = "Vec::is_empty")]
    fallback: Vec<String>,
    /// The agent's model
    #[arg(long, value_name = "MODEL", value_parser = parse_text)]
    model: Option<String>,
    /// Permissions: accept-edits, default, auto, bypass
    ///
    /// What the agent may do without asking (accept-edits; claude may run the checks too).
    #[arg(long, value_name = "KIND", hide_possible_values = true)]
    #[arg(value_parser = one_of(Permissions::ALL))]
    permissions: Option<Permissions>,
    /// The time limit of one iteration (60m; 0 = none)
    #[arg(long, value_name = "D", help_heading = LIMITS)]
    timeout: Option<Seconds>,
    /// The longest silence of the agent (15m; 0 = none)
    ///
    /// It counts only while no tool call is open.
    #[arg(long, value_name = "D", help_heading = LIMITS)]
    idle_timeout: Option<Seconds>,
    /// Wait this long between two iterations (0)
    #[arg(long, value_name = "D", help_heading = LIMITS)]
    delay: Option<Seconds>,
    /// Commit what an iteration changed
    ///
    /// What you had not committed before stays out until the agent changes it.
    #[arg(long, help_heading = GIT)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    commit: bool,
    /// Push after an iteration
    #[arg(long, help_heading = GIT)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    push: bool,
    /// Rebase onto BRANCH before an iteration if it has moved
    #[arg(long, value_name = "BRANCH", help_heading = GIT)]
    rebase: Option<OrOff<String>>,
}

/// The terms of every loop that only a settings file has.
#[derive(Getters, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct FileTerms {
    /// The time limit of all that runs in the scratch folder; 0 = no limit.
    prove_timeout: Option<Seconds>,
    /// A command that prepares the scratch folder.
    setup: Option<String>,
    /// Globs of paths that are tests, in addition to those known by their names.
    #[serde(deserialize_with = "deserialize_texts", skip_serializing_if = "Vec::is_empty")]
    tests: Vec<String>,
    /// Globs of paths that the agent must not change.
    #[serde(deserialize_with = "deserialize_texts", skip_serializing_if = "Vec::is_empty")]
    protect: Vec<String>,
    /// Whether your terminal shows notices.
    notices: Option<bool>,
    /// The longest wait for a rate limit or an outage; 0 = no limit.
    #[serde(rename = "wait.max")]
    max_wait: Option<Seconds>,
    /// How much of the logs of all loops is kept; 0 = no limit.
    #[serde(rename = "keep.logs")]
    keep_logs: Option<Bytes>,
    /// How much of the snapshots of all working trees is kept; 0 = no limit.
    #[serde(rename = "keep.snapshots")]
    keep_snapshots: Option<Bytes>,
    /// For how many days both are kept; 0 = no limit.
    #[serde(rename = "keep.days")]
    keep_days: Option<Count>,
}

/// The settings of fresh processes that only a settings file has.
#[derive(Getters, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct FileProcess {
    /// The name of the account whose limits all its loops share.
    account: Option<String>,
    /// More words for the agent, after its own: a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The maximum number of turns of the agent in one iteration; 0 = no limit.
    max_turns: Option<Count>,
    /// The size of a prompt above which crew warns; 0 = never.
    token_budget: Option<TokenCount>,
    /// How full a context may be before a handoff page follows it; 0 = never.
    redline: Option<Percent>,
    /// Whether the machine is kept awake while a run works.
    awake: Option<bool>,
}

/// Reads a proof that a loop may require.
fn deserialize_required<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Proof>, D::Error> {
    let proof = Proof::deserialize(source)?;
    if !Proof::REQUIRED.contains(&proof) {
        return Err(D::Error::custom("expected checked or proven"));
    }
    Ok(Some(proof))
}

/// Returns a parser of the words for these variants.
pub fn one_of<T: Serialize + Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(all.each_ref().map(variant_name));
    words.try_map(move |typed| {
        all.into_iter().find(|one| variant_name(one) == typed).ok_or("one of the words")
    })
}

impl LimitOptions {
    /// The typed changes, by limit.
    pub fn limit_changes(&self) -> LimitChanges {
        fn limit_change<const UNIT: usize>(limit: Option<Limit<UNIT>>) -> Option<LimitChange> {
            let Limit { amount, adds } = limit?;
            Some(if adds { LimitChange::By(amount.0) } else { LimitChange::To(amount.0) })
        }
        // Taken apart, so that no option can be left out.
        let Self { max_iterations, max_duration, max_cost, max_tokens, failure_threshold, stall } =
            *self;
        let all = [
            (LimitName::MaxIterations, limit_change(max_iterations)),
            (LimitName::FailureThreshold, limit_change(failure_threshold)),
            (LimitName::Stall, limit_change(stall)),
            (LimitName::MaxDuration, limit_change(max_duration)),
            (LimitName::MaxCost, limit_change(max_cost)),
            (LimitName::MaxTokens, limit_change(max_tokens)),
        ];
        all.into_iter().filter_map(|(limit, change)| Some((limit, change?))).collect()
    }
}

/// Which values allow more than the user has allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Widens {
    /// Greater values; for an amount, 0 ("none") is the greatest.
    More,
    Less,
    /// On, or on with another word.
    On,
    /// Any other value.
    Other,
    /// Any other value, and `off` if the user sets none.
    OtherOrOff,
    /// Every value, because it is a command or part of one.
    Every,
    Nothing,
}

/// A key of a settings file: its name, with the table before it unless that is `[loop]`; what it
/// counts; which of its values need a person's trust in a project's file; what is built in; and its
/// line in a new project file.
#[derive(Getters, Debug, Deserialize)]
pub struct Key {
    name: &'static str,
    unit: Option<Unit>,
    /// The unit of its number, for programs.
    counts: &'static str,
    widens: Widens,
    /// Its default value, as TOML; empty if there is none.
    built_in: &'static str,
    /// The value in a new project file; empty where that is the built-in one.
    example: &'static str,
    /// The comment on it in a new project file.
    comment: &'static str,
}

/// The keys of a settings file, as `crew config` lists them; a test checks that the file is read.
pub static KEYS: LazyLock<Vec<Key>> =
    LazyLock::new(|| serde_json::from_slice(include_bytes!("keys.json")).unwrap_or_default());

impl Key {
    /// The key of `table` with this name; people also write `_` for `-`.
    pub fn find_in_table(table: &str, name: &str) -> Option<&'static Self> {
        let name = name.replace('_', "-");
        KEYS.iter().find(|key| key.split_name() == (table, &name))
    }

    /// The table, and the name in it.
    pub fn split_name(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("loop", self.name))
    }

    /// The line for it in a new project file.
    pub fn project_file_line(&self) -> String {
        let value = if self.example.is_empty() { self.built_in } else { self.example };
        let line = format!("# {} = {}", self.split_name().1, value.replace('\'', "\""));
        if self.comment.is_empty() {
            return line;
        }
        format!("{line:31}  # {}", self.comment.replace('`', "\""))
    }

    /// Whether it is one of the options of fresh processes.
    pub fn is_of_processes(&self) -> bool {
        let line = self.project_file_line();
        let read = toml::from_str::<LoopOptions>(line.trim_start_matches("# "));
        let unset = LoopOptions::default();
        read.is_ok_and(|options| {
            options.process != unset.process || options.file_process != unset.file_process
        })
    }
}

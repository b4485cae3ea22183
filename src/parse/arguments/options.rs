//! Every option of a start, a resume and a change of limits, defined once: clap parses them, for a
//! terminal and for `/crew:loop`, and generates the help from them. `None` means that the option
//! was not typed.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::values::{self, Amount};
use crate::engine::boundary::limits::LimitChange;
use crate::engine::record::{Permissions, Proof, QuestionMode};
use crate::engine::settings::Key;
use crate::engine::test_changes::TestChanges;
use crate::parse::amounts;

const START: &str = "Start";
const DONE_WHEN: &str = "Done when";
const CLAIMS: &str = "Claims and tests";
const LIMITS: &str = "Limits";
const AGENT: &str = "Agent";
const GIT: &str = "Git";
const THIS_RUN: &str = "This run";

/// The limits: `u64` at a start, `LimitChange` where `+N` adds to what is there.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = LIMITS)]
pub struct LimitArgs<T: Amount> {
    /// At most N iterations (10; 0 = no limit)
    ///
    /// A procedure may have its own number.
    #[arg(long, short = 'n', value_name = "N", value_parser = values::count::<T>)]
    pub max_iterations: Option<T>,
    /// At most D: 90m, 12h (12h; 0 = no limit)
    ///
    /// Sleep of the machine does not count.
    #[arg(long = "max-duration", value_name = "D", value_parser = values::duration::<T>)]
    pub max_duration_s: Option<T>,
    /// At most this many dollars: 5, 2.50 (0 = no limit)
    ///
    /// By the client's prices.
    #[arg(long = "max-cost", value_name = "USD", value_parser = values::dollars::<T>)]
    pub max_cost_micros: Option<T>,
    /// At most N tokens: 500k, 2M (0 = no limit)
    ///
    /// Tokens of every kind.
    #[arg(long, value_name = "N", value_parser = values::tokens::<T>)]
    pub max_tokens: Option<T>,
    /// Abort after N failures in a row (3; 0 = off)
    ///
    /// Failed iterations.
    #[arg(long, value_name = "N", value_parser = values::count::<T>)]
    pub failure_threshold: Option<T>,
    /// Stop after N without progress (5; 0 = off)
    ///
    /// So many iterations in a row: the loop then ends as stalled.
    #[arg(long, value_name = "N", value_parser = values::count::<T>)]
    pub stall: Option<T>,
}

/// Whether the settings of the checkout count.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
#[command(next_help_heading = START)]
pub struct ProjectArgs {
    /// Ignore .claude/crew.toml
    #[arg(long)]
    pub no_project: bool,
}

/// What `/crew:loop` and `crew run` share.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = DONE_WHEN)]
pub struct LoopArgs {
    /// What to do; or a procedure: build, plan, fix, audit, bootstrap
    ///
    /// A task has two words or more. A procedure may be one from your settings.
    #[arg(value_name = "TASK", help_heading = None, value_parser = values::text)]
    pub task: Option<String>,
    /// Read the task from FILE
    #[arg(long, value_name = "FILE", conflicts_with = "task", help_heading = START)]
    pub prompt_file: Option<String>,
    /// First end the loop that runs here
    #[arg(long, help_heading = START)]
    pub replace: bool,
    /// Who answers the agent's questions: auto, ask, defer
    ///
    /// In a session. auto: you, if you typed in the last 10 minutes, else the agent itself; ask:
    /// you; defer: the agent itself.
    #[arg(long, value_name = "MODE", value_parser = questions(), hide_possible_values = true)]
    #[arg(help_heading = START)]
    pub questions: Option<QuestionMode>,
    /// Must pass before a claim counts (auto finds a command)
    ///
    /// May be repeated. auto is the test command found here.
    #[arg(long, value_name = "CMD")]
    pub verify: Vec<String>,
    /// Like --verify, and also runs after every iteration
    #[arg(long, value_name = "CMD")]
    pub gate: Vec<String>,
    /// Ends the loop when it passes; no claim needed
    #[arg(long, value_name = "CMD")]
    pub until: Vec<String>,
    /// Like --verify; tests that failed before may still fail
    ///
    /// Passes also when no test fails that passed at the start. May be repeated.
    #[arg(long, value_name = "CMD")]
    pub no_worse: Vec<String>,
    /// The lowest proof that completes it: checked or proven
    ///
    /// checked: a check had failed and now passes.
    #[arg(long, value_name = "PROOF", value_parser = values::proof)]
    pub require: Option<Proof>,
    /// Before it completes, run the checks without the work
    ///
    /// A test that then fails proves the work.
    #[arg(long)]
    pub prove: bool,
    #[command(flatten)]
    pub limits: LimitArgs<u64>,
    /// What the agent must say (COMPLETE)
    ///
    /// Or the one tag in the task.
    #[arg(long, value_name = "TEXT", help_heading = CLAIMS)]
    pub completion_promise: Option<String>,
    /// No claim ends the loop
    #[arg(long, conflicts_with = "completion_promise", help_heading = CLAIMS)]
    pub no_promise: bool,
    /// Time limit of --prove (15m; 0 = no limit)
    ///
    /// The time limit of what runs in the scratch folder.
    #[arg(long, value_name = "D", value_parser = amounts::duration, help_heading = CLAIMS)]
    pub prove_timeout: Option<Duration>,
    /// If tests changed: refuse the claim, or report
    ///
    /// When the agent changed a test that failed at the start, and as it was it still fails.
    /// report only lowers the proof.
    #[arg(long, value_name = "MODE", value_parser = test_changes(), hide_possible_values = true)]
    #[arg(help_heading = CLAIMS)]
    pub test_changes: Option<TestChanges>,
    /// Tests or settings that are the task: a glob
    ///
    /// Changes to these tests and check settings count as work.
    #[arg(long, value_name = "GLOB", help_heading = CLAIMS)]
    pub may_change: Vec<String>,
    #[command(flatten)]
    pub project: ProjectArgs,
}

/// The phases of a prompt, in the order typed: texts, files, or `builtin:NAME`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = START)]
pub struct RecipeArgs {
    /// Put TEXT before the task; may be repeated
    ///
    /// As may the phases below, which replace the procedure's.
    #[arg(long, short, value_name = "TEXT")]
    pub context: Vec<String>,
    /// Phase 1: what to look at
    #[arg(long, value_name = "TEXT")]
    pub observe: Vec<String>,
    /// Phase 2: what to conclude from it
    #[arg(long, value_name = "TEXT")]
    pub orient: Vec<String>,
    /// Phase 3: how to choose what to do
    #[arg(long, value_name = "TEXT")]
    pub decide: Vec<String>,
    /// Phase 4: what to do
    #[arg(long, value_name = "TEXT")]
    pub act: Vec<String>,
}

/// `crew run`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = START)]
pub struct RunArgs {
    #[command(flatten)]
    pub start: LoopArgs,
    #[command(flatten)]
    pub recipe: RecipeArgs,
    /// Show the prompt and its size, and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// List the procedures, or show what one sends
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub options: RunOptions,
    #[arg(
        long,
        value_name = "NAME",
        help_heading = GIT,
        help = "Work in <repo>.worktrees/NAME on branch NAME"
    )]
    pub worktree: Option<String>,
}

/// What `crew run` and `crew resume` share.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = AGENT)]
pub struct RunOptions {
    /// The agent's name, one of those below
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Any command that reads a prompt on its input
    #[arg(long, value_name = "CMD", conflicts_with = "agent")]
    pub agent_cmd: Option<String>,
    /// Who takes over at a limit of its account
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    pub fallback: Option<Vec<String>>,
    /// The agent's model
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Options of the agent itself, after everything else
    #[arg(last = true, value_name = "WORDS", help_heading = None, value_parser = values::words)]
    pub words: Option<::std::vec::Vec<String>>,
    /// Permissions: accept-edits, default, auto, bypass
    ///
    /// What the agent may do without asking (accept-edits; claude may run the checks too).
    #[arg(long, value_name = "KIND", value_parser = permissions(), hide_possible_values = true)]
    pub permissions: Option<Permissions>,
    /// The time limit of one iteration (60m; 0 = none)
    #[arg(long, value_name = "D", value_parser = amounts::duration, help_heading = LIMITS)]
    pub timeout: Option<Duration>,
    /// The longest silence of the agent (15m; 0 = none)
    ///
    /// While no tool call is open.
    #[arg(long, value_name = "D", value_parser = amounts::duration, help_heading = LIMITS)]
    pub idle_timeout: Option<Duration>,
    /// Wait this long between two iterations (0)
    #[arg(long, value_name = "D", value_parser = amounts::duration, help_heading = LIMITS)]
    pub delay: Option<Duration>,
    /// Commit what an iteration changed
    ///
    /// What you had not committed before stays out until the agent changes it.
    #[arg(long, help_heading = GIT)]
    pub commit: bool,
    /// Push after an iteration
    #[arg(long, help_heading = GIT)]
    pub push: bool,
    /// Rebase onto BRANCH before an iteration, when it moved
    #[arg(long, value_name = "BRANCH", help_heading = GIT)]
    pub rebase: Option<String>,
    /// Run in the background, independent of this terminal
    #[arg(long, help_heading = THIS_RUN)]
    pub detach: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What a run sounds like.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = THIS_RUN)]
pub struct OutputArgs {
    /// Print events as JSON on standard output
    ///
    /// The lines for people then go to standard error.
    #[arg(long)]
    pub json: bool,
    /// Also show what the agent does
    #[arg(long, short)]
    pub verbose: bool,
    /// Only what went wrong, and how it ended if not completed
    #[arg(long, short)]
    pub quiet: bool,
}

/// `crew set`.
#[derive(Args, Clone, Debug)]
pub struct SetArgs {
    /// A loop's id or its start, or a procedure; if absent, the loop here
    ///
    /// Else the only live one.
    #[arg(value_name = "LOOP")]
    pub name: Option<String>,
    #[command(flatten)]
    pub limits: LimitArgs<LimitChange>,
}

/// `/crew:resume`.
#[derive(Args, Clone, Debug)]
pub struct ResumeHereArgs {
    #[command(flatten)]
    pub set: SetArgs,
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// What a person decides of a loop that resumes, in a session and in a terminal.
#[derive(Args, Clone, Debug)]
pub struct AnswerArgs {
    /// Accept tests and check settings as they are now
    #[arg(long, help_heading = CLAIMS)]
    pub accept_test_changes: bool,
    /// A message for the agent: the answer to its BLOCKED
    #[arg(long, value_name = "TEXT", help_heading = START)]
    pub tell: Option<String>,
}

/// `crew resume`.
#[derive(Args, Clone, Debug)]
pub struct ResumeArgs {
    #[command(flatten)]
    pub set: SetArgs,
    #[command(flatten)]
    pub answer: AnswerArgs,
    #[command(flatten)]
    pub options: RunOptions,
    #[command(flatten)]
    pub project: ProjectArgs,
    /// End the wait of a running loop: it tries at once
    ///
    /// Enter at its terminal does too.
    #[arg(long, help_heading = START)]
    pub now: bool,
    /// Show the prompt it would get, and change nothing
    #[arg(long, conflicts_with = "now", help_heading = START)]
    pub dry_run: bool,
}

impl<T: Amount> LimitArgs<T> {
    /// What was typed, by its setting.
    pub fn by_key(&self) -> impl Iterator<Item = (Key, T)> {
        // Taken apart, so that no option can be left out.
        let Self {
            max_iterations,
            max_duration_s,
            max_cost_micros,
            max_tokens,
            failure_threshold,
            stall,
        } = self;
        let all = [
            (Key::MaxIterations, max_iterations),
            (Key::FailureThreshold, failure_threshold),
            (Key::Stall, stall),
            (Key::MaxDuration, max_duration_s),
            (Key::MaxCost, max_cost_micros),
            (Key::MaxTokens, max_tokens),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)))
    }
}

fn test_changes() -> impl TypedValueParser<Value = TestChanges> {
    PossibleValuesParser::new(TestChanges::ALL.map(TestChanges::label)).map(|label| {
        let mode = TestChanges::ALL.into_iter().find(|mode| mode.label() == label);
        mode.unwrap_or_default()
    })
}

fn questions() -> impl TypedValueParser<Value = QuestionMode> {
    PossibleValuesParser::new(QuestionMode::ALL.map(QuestionMode::label)).map(|label| {
        let mode = QuestionMode::ALL.into_iter().find(|mode| mode.label() == label);
        mode.unwrap_or_default()
    })
}

fn permissions() -> impl TypedValueParser<Value = Permissions> {
    PossibleValuesParser::new(Permissions::ALL.map(Permissions::label)).map(|label| {
        let kind = Permissions::ALL.into_iter().find(|kind| kind.label() == label);
        kind.unwrap_or_default()
    })
}

//! What people may type in addition to the options of a loop: the task, the phases, what one
//! command does, and the fleet's commands. Also finds the option that a token names.

use derive_getters::Getters;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Arg, Args, Command, Subcommand};
use serde::Deserialize;

use crate::parse::amounts::{MARK, Unit, deserialize_texts, parse_text};
use crate::parse::settings::is_branch;
use crate::parse::settings::merge::clamp_to_u32;
use crate::parse::settings::options::{
    AGENT, CLAIMS, GIT, LimitOptions, LoopOptions, ProcessOptions, START, THIS_RUN, TermOptions,
};
use engine::fleet::LandingMode;

/// What `/crew:loop` and `crew run` share.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = START)]
pub struct LoopArgs {
    /// What to do; or a procedure: build, plan, fix, audit, bootstrap
    ///
    /// A task has two words or more. A procedure may be one from your settings.
    #[arg(value_name = "TASK", help_heading = None, value_parser = parse_text)]
    #[arg(num_args = 0.., allow_negative_numbers = true)]
    pub task: Vec<String>,
    /// Read the task from FILE
    #[arg(long, value_name = "FILE", conflicts_with = "task", help_heading = START)]
    pub prompt_file: Option<String>,
    /// First end the loop that runs here
    #[arg(long, help_heading = START)]
    pub replace: bool,
    #[command(flatten)]
    pub terms: TermOptions,
    #[command(flatten)]
    pub limits: LimitOptions,
    /// Ignore .claude/crew.toml
    #[arg(long, help_heading = START)]
    pub no_project: bool,
}

/// The phases of a prompt, as typed: strings, files, or `builtin:NAME`.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize)]
#[command(next_help_heading = START)]
#[serde(default)]
pub struct RecipeArgs {
    /// Put TEXT before the task; may be repeated
    ///
    /// So may the phases below, which replace the procedure's.
    #[arg(long, short, value_name = "TEXT", value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts")]
    pub context: Vec<String>,
    /// Phase 1: what to look at
    #[arg(long, value_name = "TEXT", value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts")]
    pub observe: Vec<String>,
    /// Phase 2: what to conclude from it
    #[arg(long, value_name = "TEXT", value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts")]
    pub orient: Vec<String>,
    /// Phase 3: how to choose what to do
    #[arg(long, value_name = "TEXT", value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts")]
    pub decide: Vec<String>,
    /// Phase 4: what to do
    #[arg(long, value_name = "TEXT", value_parser = parse_text)]
    #[serde(deserialize_with = "deserialize_texts")]
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
        help = "Work in REPO.worktrees/NAME on branch NAME"
    )]
    pub worktree: Option<String>,
}

/// What `crew run` and `crew resume` share.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = AGENT)]
pub struct RunOptions {
    #[command(flatten)]
    pub process: ProcessOptions,
    /// Any command that reads a prompt on its input
    #[arg(long, value_name = "CMD", conflicts_with = "agent", value_parser = parse_text)]
    pub agent_cmd: Option<String>,
    /// Options of the agent itself, after everything else
    #[arg(last = true, value_name = "WORDS", help_heading = None)]
    pub words: Option<Vec<String>>,
    /// Run in the background, independent of this terminal
    #[arg(long, help_heading = THIS_RUN)]
    pub detach: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How much a run prints.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
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
#[derive(Getters, Args, Clone, Debug)]
pub struct SetArgs {
    /// A loop's id or its start, or a procedure; if absent, the loop here
    ///
    /// Else the only live one.
    #[arg(value_name = "LOOP")]
    name: Option<String>,
    #[command(flatten)]
    limits: LimitOptions,
}

/// `/crew:resume`.
#[derive(Getters, Args, Clone, Debug)]
pub struct ResumeHereArgs {
    #[command(flatten)]
    set: SetArgs,
    #[command(flatten)]
    answer: AnswerArgs,
}

/// What a person decides about a loop that resumes, in a session or a terminal.
#[derive(Getters, Args, Clone, Debug)]
pub struct AnswerArgs {
    /// Accept tests and check settings as they are now
    #[arg(long, help_heading = CLAIMS)]
    accept_test_changes: bool,
    /// A message for the agent: the answer to its BLOCKED
    #[arg(long, value_name = "TEXT", help_heading = START)]
    tell: Option<String>,
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
    /// Ignore .claude/crew.toml
    #[arg(long, help_heading = START)]
    pub no_project: bool,
    /// End a running loop's wait: it tries at once
    ///
    /// Enter at its terminal does too.
    #[arg(long, help_heading = START, conflicts_with = "accept_test_changes")]
    pub now: bool,
    /// Show the prompt it would get, and change nothing
    #[arg(long, conflicts_with = "now", help_heading = START)]
    pub dry_run: bool,
}

impl LoopArgs {
    /// The task, whose words a shell may have split.
    pub fn task(&self) -> Option<String> {
        if self.task.is_empty() { None } else { Some(self.task.join(" ")) }
    }
}

impl RunOptions {
    /// The agent's extra arguments; an empty list removes the loop's own.
    pub fn agent_words(&self) -> Option<Vec<String>> {
        let words = self.words.as_ref()?.iter().filter(|word| *word != MARK);
        Some(words.cloned().collect())
    }
}

impl RunArgs {
    /// The options of the loop.
    pub fn loop_options(&self) -> LoopOptions {
        let LoopArgs { limits, terms, .. } = self.start.clone();
        let process = self.options.process.clone();
        LoopOptions { limits, terms, process, ..LoopOptions::default() }
    }
}

pub(super) static LOOP: LazyLock<Command> =
    LazyLock::new(|| build_command::<LoopArgs>("/crew:loop"));
pub(super) static RUN: LazyLock<Command> = LazyLock::new(|| build_command::<RunArgs>("crew run"));
pub(super) static RESUME: LazyLock<Command> =
    LazyLock::new(|| build_command::<ResumeArgs>("crew resume"));
pub(super) static RESUME_HERE: LazyLock<Command> =
    LazyLock::new(|| build_command::<ResumeHereArgs>("/crew:resume"));

fn build_command<A: Args>(name: &'static str) -> Command {
    let mut command = A::augment_args(Command::new(name)).no_binary_name(true);
    command.build();
    command
}

/// The text up to the first white space.
pub(super) fn first_word(text: &str) -> &str {
    &text[..text.find(char::is_whitespace).unwrap_or(text.len())]
}

/// The option of a command that a token names, and the offset of a value that is attached to it.
pub(super) fn find_option(
    command: &'static Command,
    token: &str,
) -> Option<(&'static Arg, Option<usize>)> {
    let name = token.split('=').next().unwrap_or(token);
    let equals = if name.len() < token.len() { Some(name.len() + 1) } else { None };
    command.get_arguments().find_map(|arg| {
        if arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long)) {
            return Some((arg, equals));
        }
        let rest = name.strip_prefix('-')?.strip_prefix(arg.get_short()?)?;
        match rest {
            "" => Some((arg, equals)),
            _ if takes_value(arg) && !rest.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                Some((arg, Some(name.len() - rest.len())))
            }
            _ => None,
        }
    })
}

/// Whether an option needs a value.
pub fn takes_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|values| values.takes_values())
}

/// Whether this is a dash that editors and chat clients substitute for hyphens.
pub(super) fn is_typographic_dash(character: char) -> bool {
    matches!(character, '\u{2010}'..='\u{2015}' | '\u{2212}')
}

/// The option that a token would name if its typographic dash were the hyphens it was typed as.
pub(super) fn behind_typographic_dash(token: &str) -> Option<String> {
    let name = token.trim_start_matches(|c| c == '-' || is_typographic_dash(c));
    if name.is_empty() || !token[..token.len() - name.len()].contains(is_typographic_dash) {
        return None;
    }
    let name = name.split('=').next()?;
    let short = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if name == "h" || short == "n" {
        return Some(format!("-{short}"));
    }
    let mut all = [&RUN, &RESUME].into_iter().flat_map(|command| command.get_arguments());
    if all.any(|arg| arg.get_long() == Some(name)) { Some(format!("--{name}")) } else { None }
}

/// `crew fleet`.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct FleetArgs {
    /// Print the JSON schema of fleet.toml and task files
    #[arg(long)]
    schema: bool,
    #[command(subcommand)]
    pub command: Option<FleetCommand>,
}

/// The subcommands of `crew fleet`. A single task has the subcommands of a loop.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Start a folder of tasks, or continue it; what ended stays ended
    ///
    /// A task whose process has disappeared is started again.
    #[command(after_help = AFTER_RUN)]
    Run(FleetRunArgs),
    /// Show a fleet, with what needs you at the top
    #[command(after_help = "Examples:\n  crew fleet status\n  crew fleet status billing --json")]
    Status(FleetStatusArgs),
    /// Remove the branches, refs and clones of tasks that are over
    ///
    /// This covers tasks that landed, were cancelled or were given up. Work that exists nowhere
    /// else stays.
    #[command(after_help = "Examples:\n  crew fleet clean\n  crew fleet clean billing --yes")]
    Clean(FleetCleanArgs),
    /// Make one attempt at a task, as an executor does
    #[command(hide = true)]
    Attempt {
        /// The file of its spec; - reads the spec from standard input
        #[arg(value_name = "SPEC")]
        spec: PathBuf,
    },
}

/// `crew fleet clean`.
#[derive(Getters, Args, Clone, Debug)]
pub struct FleetCleanArgs {
    /// The fleet's name; if absent, this repository's newest
    ///
    /// Outside a repository, the only one.
    #[arg(value_name = "FLEET")]
    fleet: Option<String>,
    /// Remove the listed items without asking
    #[arg(long)]
    yes: bool,
}

const AFTER_RUN: &str = include_str!("fleet_run.txt").trim_ascii_end();

/// `crew fleet run`.
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a person types")]
pub struct FleetRunArgs {
    /// The folder of the tasks
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// N iterations at once (half the cores, at most 4)
    ///
    /// On this machine at most one for each 2 GB.
    #[arg(long, value_name = "N", value_parser = parse_nonzero)]
    pub slots: Option<u32>,
    /// A limit in dollars for all tasks (0 = no limit)
    #[arg(long = "max-cost", value_name = "USD", value_parser = parse_dollars)]
    pub max_cost_micros: Option<u64>,
    /// Push each task's branch after every iteration
    #[arg(long)]
    pub push: bool,
    /// Land completed tasks on main; pr: pull requests
    ///
    /// Each is checked there before it is pushed.
    #[arg(long, value_name = "pr", num_args = 0..=1, default_missing_value = "main")]
    #[arg(value_parser = parse_landing)]
    pub land: Option<LandingMode>,
    /// What runs them: local, slurm, slurm:HOST, or NAME
    ///
    /// slurm:HOST by ssh to its login node; NAME is an [executor.NAME] in your settings.
    #[arg(long, value_name = "EXECUTOR", value_parser = parse_executor)]
    pub on: Option<String>,
    /// Take over the fleet from a lost coordinator
    ///
    /// This works once its record at the remote has not changed for 5 minutes.
    #[arg(long)]
    pub replace_coordinator: bool,
    /// Show what would run and be pushed; start nothing
    ///
    /// It also shows the order, and writes nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Trust the listed items without asking
    #[arg(long)]
    pub yes: bool,
    /// The base if fleet.toml names none; a checkout during the run does not change it. It cannot
    /// be typed.
    #[arg(skip)]
    pub base: Option<String>,
}

/// `crew fleet status`.
#[derive(Args, Clone, Debug)]
pub struct FleetStatusArgs {
    /// The fleet's name; if absent, this repository's newest
    ///
    /// Outside a repository, the only one.
    #[arg(value_name = "FLEET")]
    pub fleet: Option<String>,
    /// Print JSON, for programs; the object has a "schema"
    #[arg(long)]
    pub json: bool,
    /// Redraw it until the fleet is done
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
}

/// Reads what runs the jobs of a fleet. Whether the user's settings have an executor of this name
/// is checked at the start.
fn parse_executor(text: &str) -> Result<String, &'static str> {
    if parse_cluster(text).is_ok() || (is_branch(text) && !text.contains(':')) {
        Ok(text.to_owned())
    } else {
        Err("local, slurm, slurm:HOST, or the NAME of an [executor.NAME] in your settings")
    }
}

/// Reads how completed tasks land. People easily type a folder after the option.
fn parse_landing(text: &str) -> Result<LandingMode, &'static str> {
    match text {
        "main" => Ok(LandingMode::Main),
        "pr" => Ok(LandingMode::Pr),
        _ => Err("pr or nothing; the folder is before it: crew fleet run FOLDER --land"),
    }
}

/// Reads a whole number.
pub fn parse_count(text: &str) -> Result<u32, String> {
    Unit::Count.parse_text(text).map(clamp_to_u32)
}

/// Reads a count of at least one.
pub(super) fn parse_nonzero(text: &str) -> Result<u32, String> {
    let number = parse_count(text)?;
    if number == 0 { Err("at least 1".to_owned()) } else { Ok(number) }
}

/// Reads US dollars, in millionths.
pub(super) fn parse_dollars(text: &str) -> Result<u64, String> {
    Unit::Dollars.parse_text(text)
}

/// Reads the number of an iteration.
pub fn parse_iteration(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "the number of an iteration, such as 3")
}

/// Reads Slurm as an executor: its commands here or on a login node.
pub fn parse_cluster(text: &str) -> Result<String, &'static str> {
    match text.strip_prefix("slurm:") {
        Some(host) if !host.is_empty() && !host.starts_with('-') => Ok(text.to_owned()),
        None if text == "slurm" => Ok(text.to_owned()),
        _ => Err("slurm, or slurm:HOST"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_slurm_here_or_on_a_host_whose_name_is_not_an_option() {
        for (text, is_known) in [
            ("slurm", true),
            ("slurm:login.example", true),
            ("slurm:me@login", true),
            ("slurm:", false),
            ("slurm:-oProxyCommand=id", false),
            ("slurmy", false),
            ("manual", false),
        ] {
            assert_eq!(parse_cluster(text).is_ok(), is_known, "{text}");
        }
    }
}

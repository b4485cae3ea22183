//! The command line: the subcommands, their arguments and their help, without behaviour.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ColorChoice, Command, CommandFactory as _, Parser, Subcommand};

use crate::demo::DemoArgs;
use crate::drive::installation::install::InstallScope;
use crate::report::help;
use engine::record::Outcome;
use engine::text::is_word_of;
use readers::agents;
use readers::parse::amounts;
use readers::parse::arguments::{
    FleetArgs, OutputArgs, ResumeArgs, RunArgs, SetArgs, parse_cluster, parse_count,
    parse_iteration,
};
use readers::parse::settings::options::one_of;

/// The help of each subcommand below its options, after a line `== NAME`.
const BELOW: &str = include_str!("report/help/verbs.txt");

/// Keeps a coding agent working until the job is proved done.
#[derive(Debug, Parser)]
#[command(name = "crew", version, override_help = help::TERMINAL)]
#[command(mut_subcommands(with_examples))]
pub struct Cli {
    /// When words have a colour: auto (on a terminal), always or never
    #[arg(long, global = true, hide = true, value_name = "WHEN", default_value_t)]
    color: ColorChoice,
    #[command(subcommand)]
    pub verb: Verb,
}

/// Adds a subcommand's examples and notes to its help.
fn with_examples(verb: Command) -> Command {
    let mut parts = BELOW.split("== ").filter_map(|part| part.split_once('\n'));
    match parts.find(|(name, _)| *name == verb.get_name()) {
        Some((_, text)) => verb
            .after_help(text.trim_ascii().replace("{agents}", &agents::known_names().join(", "))),
        None => verb,
    }
}

/// Removes the default from the help of an option for an existing loop: without the option the
/// loop's own value stays.
fn without_default(arg: Arg) -> Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
    let Some((what, rest)) = help.split_once(" (") else { return arg };
    let Some((_, zero)) = rest.split_once("; 0 = ") else { return arg };
    let short = format!("{what} (0 = {zero}");
    let long = arg.get_long_help().map_or_else(|| help.clone(), ToString::to_string);
    arg.long_help(long.replacen(&help, &short, 1)).help(short)
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Keep an agent working in fresh processes until the job is proved done
    Run(Box<RunArgs>),
    /// Drive a loop that another process started
    #[command(hide = true)]
    Drive(DriveArgs),
    /// Show the status of a loop
    Status(StatusArgs),
    /// List the loops that are over, newest first
    History(HistoryArgs),
    /// Show the whole story of a loop
    Show(ShowArgs),
    /// Show what a loop changed, or some of its iterations
    Diff {
        /// A loop's id or its start; then an iteration N, or N..M
        #[arg(value_names = ["LOOP", "N[..M]"], num_args = 0..=2)]
        words: Vec<String>,
        /// A summary: each file with the number of its changed lines
        #[arg(long)]
        stat: bool,
    },
    /// Restore the working tree as it was after an iteration
    Back {
        /// A loop's id or its start; then an iteration, or back-N to undo
        ///
        /// back-N is the snapshot that a return saved.
        #[arg(value_names = ["LOOP", "N"], num_args = 0..=2)]
        words: Vec<String>,
    },
    /// Run a loop's checks without its work, in a scratch folder; exit 1 unless a test then fails
    Prove {
        /// A loop's id or its start; if absent, the one here or the only live one
        #[arg(value_name = "LOOP")]
        name: Option<String>,
    },
    /// Show every loop of this machine on a board; off a terminal, one loop until it ends
    Watch {
        /// A loop's id or its start, to open its page; if absent, all
        ///
        /// Off a terminal the loop of this working tree.
        #[arg(value_name = "LOOP")]
        name: Option<String>,
    },
    /// Pause a loop after the running iteration
    Pause {
        /// A loop's id or its start; if absent, the one here or the only live one
        #[arg(value_name = "LOOP")]
        name: Option<String>,
        /// End the agent of a run at once; its iteration is repeated later
        #[arg(long)]
        now: bool,
    },
    /// End a loop; needs no model, and nothing the agent does can undo it
    Cancel {
        /// A loop's id or its start; if absent, the one here or the only live one
        #[arg(value_name = "LOOP")]
        name: Option<String>,
        /// Why, for the handoff
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a paused or ended loop in fresh processes
    #[command(mut_args(without_default))]
    Resume(Box<ResumeArgs>),
    /// Send the agent a message with its next prompt
    Tell {
        /// The message; quote what your shell would change
        ///
        /// A task (shop/vat) or a fleet may come before it.
        #[arg(value_name = "TEXT", required = true)]
        words: Vec<String>,
        /// A loop's id or its start; if absent, the loop here
        ///
        /// Else the only live one.
        #[arg(long = "loop", value_name = "LOOP")]
        name: Option<String>,
    },
    /// Change the limits of a live loop
    #[command(mut_args(without_default))]
    Set(SetArgs),
    /// Write a page for the next worker
    Handoff {
        /// What was done and what is next
        ///
        /// Before it the page's type, if it is one of task, phase, review, session and blocked.
        #[arg(value_name = "DESCRIPTION", required = true)]
        words: Vec<String>,
        /// The page's type: task, phase, review, session, blocked
        ///
        /// Another word becomes part of its name. Without one it is task.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// A loop's id or its start; if absent, the loop here
        ///
        /// Else the only live one.
        #[arg(long = "loop", value_name = "LOOP")]
        name: Option<String>,
    },
    /// Install the plugin in Claude Code
    Install(InstallArgs),
    /// Undo an install; the records of loops are kept
    Uninstall {
        /// What is removed: user, local or project (user)
        ///
        /// user and local: the plugin on this machine; project: the entry in the settings of this
        /// repository.
        #[arg(long, value_enum, default_value_t = InstallScope::User)]
        #[arg(hide_possible_values = true, hide_default_value = true)]
        scope: InstallScope,
        /// The client's program, if not `claude` on PATH
        #[arg(long, value_name = "PATH")]
        client: Option<PathBuf>,
        /// Also while a loop runs in a session
        #[arg(long)]
        yes: bool,
    },
    /// Find what keeps loops from running, each with its fix; exit 1 if something is broken
    Doctor(DoctorArgs),
    /// Write this project's settings file, with the checks found here
    Init,
    /// Show every setting in force here, and where it came from
    Config {
        /// Print JSON, for programs; the object has a "schema"
        #[arg(long)]
        json: bool,
        /// Print the JSON schema of a settings file, for editors
        #[arg(long, conflicts_with = "json")]
        schema: bool,
    },
    /// Allow this project's settings file to run its commands on this machine
    Trust {
        /// Trust the listed items without asking
        #[arg(long)]
        yes: bool,
        /// Withdraw all trust in this working tree
        #[arg(long, conflicts_with = "yes")]
        forget: bool,
    },
    /// Run many loops at once: a folder of tasks
    Fleet(FleetArgs),
    /// Remove the records of loops that are over, with their logs and snapshots
    Clean(CleanArgs),
    /// Watch a whole loop in a scratch repository, with a scripted agent
    Demo(DemoArgs),
    /// Print completions for a shell
    Completions {
        #[arg(value_parser = PossibleValuesParser::new(["bash", "zsh", "fish"]))]
        shell: String,
    },
    /// Print a page for man(1)
    Man {
        /// The command the page is for; crew itself if absent
        #[arg(value_name = "COMMAND")]
        verbs: Vec<String>,
    },
    /// Print the version, as --version does
    #[command(hide = true)]
    Version,
}

/// `crew status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// A loop's id or its start; if absent, the one here or the only live one
    #[arg(value_name = "LOOP", conflicts_with = "all")]
    pub name: Option<String>,
    /// Every loop of this machine, newest first
    #[arg(long)]
    pub all: bool,
    /// What happened on this machine, and what needs you: 12h
    #[arg(long, value_name = "D", value_parser = amounts::parse_duration, conflicts_with_all = ["all", "name"])]
    pub since: Option<Duration>,
    /// Print JSON, for programs; every object has a "schema"
    #[arg(long)]
    pub json: bool,
    /// One short line for a status bar, if a loop is live
    #[arg(long, conflicts_with_all = ["all", "json", "since"])]
    pub line: bool,
}

/// `crew history`.
#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// List the loops of the whole machine
    #[arg(long)]
    pub all: bool,
    /// Only loops that ended this way: completed, stalled …
    #[arg(long, value_name = "OUTCOME", value_parser = one_of(Outcome::ALL), hide_possible_values = true)]
    pub outcome: Option<Outcome>,
    /// Only loops that worked within this time: 90m, 2d
    #[arg(long, value_name = "D", value_parser = amounts::parse_duration)]
    pub since: Option<Duration>,
    /// At most N loops; 0 = all
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_count)]
    pub limit: u32,
    /// Print JSON, for programs; every object has a "schema"
    #[arg(long)]
    pub json: bool,
}

/// `crew show`.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a person types")]
pub struct ShowArgs {
    /// A loop's id or its start; if absent, the one here or the only live one
    #[arg(value_name = "LOOP")]
    pub name: Option<String>,
    /// One iteration with all its evidence
    #[arg(long, value_name = "N", value_parser = parse_iteration)]
    pub iteration: Option<u32>,
    /// Only the last N iterations
    #[arg(long, value_name = "N", value_parser = parse_iteration, conflicts_with_all = ["iteration", "log"])]
    pub last: Option<u32>,
    /// Only failed, timed-out, skipped, interrupted, no-progress
    #[arg(long, value_name = "KIND", value_parser = ["failed", "timed-out", "skipped", "interrupted", "no-progress"])]
    #[arg(hide_possible_values = true, conflicts_with_all = ["iteration", "log"])]
    pub only: Option<String>,
    /// The prompt that iteration N was started with
    #[arg(long, requires = "iteration", conflicts_with_all = ["log", "json"])]
    pub prompt: bool,
    /// What the agent did in that iteration, or in the latest
    #[arg(long, conflicts_with_all = ["html", "json"])]
    pub log: bool,
    /// With `--log`: its output, as it printed it
    #[arg(long, requires = "log")]
    pub raw: bool,
    /// With `--log`: keep following until the loop is over
    #[arg(short, long, requires = "log")]
    pub follow: bool,
    /// Write the story as one self-contained HTML page
    #[arg(long, value_name = "FILE", conflicts_with = "iteration")]
    pub html: Option<PathBuf>,
    /// Print JSON, for programs; the object has a "schema"
    #[arg(long, conflicts_with = "html")]
    pub json: bool,
}

/// `crew clean`.
#[derive(Debug, clap::Args)]
pub struct CleanArgs {
    /// Loops that are over, of any age
    #[arg(value_name = "LOOP")]
    pub names: Vec<String>,
    /// Only loops that ended longer ago than this: 90m (30d)
    ///
    /// 30d unless a loop is named.
    #[arg(long, value_name = "D", value_parser = amounts::parse_duration)]
    pub older_than: Option<Duration>,
    /// Remove without asking
    #[arg(long)]
    pub yes: bool,
}

/// `crew doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Print JSON, for programs; the object has a "schema"
    #[arg(long)]
    pub json: bool,
    /// The client's program, where it is not `claude` on PATH
    #[arg(long, value_name = "PATH", conflicts_with_all = ["on", "node"])]
    pub client: Option<PathBuf>,
    /// Look at a compute node of a cluster: slurm or slurm:HOST
    ///
    /// It starts one small job there; slurm:HOST by ssh to its login node.
    #[arg(long, value_name = "EXECUTOR", value_parser = parse_cluster)]
    pub on: Option<String>,
    /// With --on: the agent to look for (the one used here)
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Reports on this machine as a compute node to the crew that asks with --on
    #[arg(long, hide = true, requires = "json", conflicts_with = "on")]
    pub node: bool,
    /// With --node: the address of the fleet's remote
    #[arg(long, hide = true, value_name = "URL", requires = "node")]
    pub remote: Option<String>,
}

/// `crew drive`.
#[derive(Debug, clap::Args)]
pub struct DriveArgs {
    #[arg(value_name = "LOOP")]
    pub id: String,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `crew install`.
#[derive(Debug, clap::Args)]
pub struct InstallArgs {
    /// Who gets it: user, local or project (user)
    ///
    /// You everywhere, you in this repository, or everybody who works in this repository.
    #[arg(long, value_enum, default_value_t = InstallScope::User)]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub scope: InstallScope,
    /// Also show the loop in the client's status line
    ///
    /// It changes your own settings.
    #[arg(long)]
    pub status_line: bool,
    /// Also add completions for your shell and man pages
    ///
    /// In your home, without asking. The shell is the one that SHELL names.
    #[arg(long)]
    pub shell_files: bool,
    /// With `--scope project`: crew's repository
    ///
    /// The address is written into the settings.
    #[arg(long, value_name = "ADDRESS")]
    pub marketplace: Option<String>,
    /// The client's program, if not `claude` on PATH
    #[arg(long, value_name = "PATH")]
    pub client: Option<PathBuf>,
}

/// The options of `crew run` and `crew resume` that people use. Their help shows these, and with
/// `--all` every option.
const SHOWN: &str = "prompt_file dry_run tell now verify gate until require max_iterations max_duration \
    max_cost timeout agent model fallback permissions commit push worktree detach verbose quiet";

/// The commands as their help shows them.
pub fn command_with_brief_help() -> Command {
    let all = Cli::command().mut_subcommand("run", hide_rare_options);
    all.mut_subcommand("resume", hide_rare_options)
}

/// A command, and all commands below it that are not hidden.
pub fn with_those_below(command: &Command) -> Vec<Command> {
    let mut all = vec![command.clone()];
    for verb in command.get_subcommands() {
        if !verb.is_hide_set() && verb.get_name() != "help" {
            all.extend(with_those_below(verb));
        }
    }
    all
}

fn is_shown(arg: &Arg) -> bool {
    arg.is_positional() || is_word_of(SHOWN, arg.get_id().as_str())
}

/// Hides the options that few people use, and counts them below the others.
fn hide_rare_options(verb: Command) -> Command {
    let others = verb.get_arguments().filter(|arg| !is_shown(arg)).count();
    let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
    let all = format!("`crew {} --help --all`", verb.get_name());
    let more = format!("{after}\n\n{all} lists the other {others} options.");
    verb.mut_args(|arg| if is_shown(&arg) { arg } else { arg.hide(true) }).after_help(more)
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;

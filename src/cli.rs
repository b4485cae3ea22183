//! What may be typed at a terminal: the verbs, their arguments and their help. It has no behaviour.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ColorChoice, Parser, Subcommand};

use crate::demo::DemoArgs;
use crate::drive::install::InstallScope;
use crate::engine::record::Outcome;
use crate::parse::amounts;
use crate::parse::arguments::{
    DoctorArgs, FleetVerb, OutputArgs, ResumeArgs, RunArgs, SetArgs, iteration, outcomes, whole,
};
use crate::report::help;

const AFTER_RUN: &str = include_str!("report/help/run.txt").trim_ascii_end();
const AFTER_RESUME: &str = include_str!("report/help/resume.txt").trim_ascii_end();
const AFTER_TELL: &str = "Examples:
  crew tell \"use the existing parser\"
  crew tell --fleet shop --task vat \"port 8080\"";
const AFTER_SET: &str = include_str!("report/help/set.txt").trim_ascii_end();

const AFTER_CLEAN: &str = include_str!("report/help/clean.txt").trim_ascii_end();

/// Keeps a coding agent working until the job is proved done.
#[derive(Debug, Parser)]
#[command(name = "crew", version, override_help = help::TERMINAL)]
pub struct Cli {
    /// When words have a colour: auto (on a terminal), always or never
    #[arg(long, global = true, hide = true, value_name = "WHEN", default_value_t)]
    pub color: ColorChoice,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The help of an option of a loop that exists: without the option its value stays, so the value
/// that a start would take is left out.
fn without_default(arg: Arg) -> Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
    let Some((what, rest)) = help.split_once(" (") else { return arg };
    let Some((_, zero)) = rest.split_once("; 0 = ") else { return arg };
    let short = format!("{what} (0 = {zero}");
    let long = arg.get_long_help().map_or_else(|| help.clone(), ToString::to_string);
    arg.long_help(long.replacen(&help, &short, 1)).help(short)
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Keep an agent working in fresh processes until the job is proved done
    #[command(after_help = AFTER_RUN)]
    Run(Box<RunArgs>),
    /// Drive a loop that another process started
    #[command(hide = true)]
    Drive(DriveArgs),
    /// Show the status of a loop
    #[command(
        after_help = "Examples:\n  crew status\n  crew status k3v9\n  crew status --since 12h\n  \
                      crew status --all --json"
    )]
    Status(StatusArgs),
    /// List the loops that are over, newest first
    #[command(after_help = "Examples:\n  crew history --outcome stalled --since 2d --json")]
    History(HistoryArgs),
    /// Show the whole story of a loop
    #[command(
        after_help = "Examples:\n  crew show k3v9 --iteration 4 --prompt\n  crew show --log -f"
    )]
    Show(ShowArgs),
    /// Show what a loop changed, or some of its iterations
    #[command(
        after_help = "Examples:\n  crew diff\n  crew diff 4          what iteration 4 changed\n  \
                      crew diff k3v9 2..6  from the end of 2 to the end of 6; 0 is as found"
    )]
    Diff {
        /// A loop's id or its start; then an iteration N, or N..M
        #[arg(value_names = ["LOOP", "N[..M]"], num_args = 0..=2)]
        words: Vec<String>,
        /// A summary: each file with the number of its changed lines
        #[arg(long)]
        stat: bool,
    },
    /// Restore the working tree as it was after an iteration
    #[command(
        after_help = "The present tree is saved as a snapshot first; HEAD and branches stay.\n\n\
                      Examples:\n  crew back 3\n  crew back k3v9 0     as the loop found it"
    )]
    Back {
        /// A loop's id or its start; then an iteration, or back-N to undo
        ///
        /// back-N is the snapshot that a return saved.
        #[arg(value_names = ["LOOP", "N"], num_args = 0..=2)]
        words: Vec<String>,
    },
    /// Run a loop's checks without its work, in a scratch folder; exit 1 unless a test then fails
    #[command(after_help = "Examples:\n  crew prove\n  crew prove k3v9")]
    Prove {
        /// A loop's id or its start; if absent, the one here or the only live one
        #[arg(value_name = "LOOP")]
        name: Option<String>,
    },
    /// Show every loop of this machine on a board; off a terminal, one loop until it ends
    #[command(after_help = "Examples:\n  crew watch\n  crew watch k3v9\n  crew watch k3v9 | cat")]
    Watch {
        /// A loop's id or its start, to open its page; if absent, all
        ///
        /// Off a terminal the loop of this working tree.
        #[arg(value_name = "LOOP")]
        name: Option<String>,
    },
    /// Pause a loop after the running iteration
    #[command(after_help = "Examples:\n  crew pause\n  crew pause k3v9 --now")]
    Pause {
        /// A loop's id or its start; if absent, the one here or the only live one
        #[arg(value_name = "LOOP")]
        name: Option<String>,
        /// End the agent of a run at once; its iteration is repeated later
        #[arg(long)]
        now: bool,
    },
    /// End a loop; needs no model, and nothing the agent does can undo it
    #[command(
        after_help = "Examples:\n  crew cancel\n  crew cancel k3v9 --reason \"wrong branch\""
    )]
    Cancel {
        /// A loop's id or its start; if absent, the one here or the only live one
        #[arg(value_name = "LOOP")]
        name: Option<String>,
        /// Why, for the handoff
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a paused or ended loop in fresh processes
    #[command(mut_args(without_default), after_help = AFTER_RESUME)]
    Resume(Box<ResumeArgs>),
    /// Send the agent a message with its next prompt
    #[command(after_help = AFTER_TELL)]
    Tell {
        /// The message; quote what your shell would change
        #[arg(value_name = "TEXT", required_unless_present = "accept_test_changes")]
        words: Vec<String>,
        /// A loop's id or its start; if absent, the loop here
        ///
        /// Else the only live one.
        #[arg(long = "loop", value_name = "LOOP")]
        name: Option<String>,
        /// Every task of this fleet that is not over
        ///
        /// Or that is blocked.
        #[arg(long, value_name = "NAME", conflicts_with = "name")]
        fleet: Option<String>,
        /// Only this task of the fleet
        ///
        /// One that ended reads it once it is tried again.
        #[arg(long, value_name = "TASK", requires = "fleet")]
        task: Option<String>,
        /// Accept the tests and check settings of that task
        ///
        /// As its agent changed them.
        #[arg(long, requires = "task")]
        accept_test_changes: bool,
    },
    /// Change the limits of a live loop
    #[command(mut_args(without_default), after_help = AFTER_SET)]
    Set(SetArgs),
    /// Write a page for the next worker
    #[command(
        after_help = "Examples:\n  crew handoff \"the parser is done, its tests are next\"\n  \
                      crew handoff review \"look at the parser first\""
    )]
    Handoff {
        /// What was done and what is next
        ///
        /// Before it the page's type, if it is one of task, phase, review, session and blocked.
        #[arg(value_name = "DESCRIPTION", required = true)]
        words: Vec<String>,
        /// The page's type: task, phase, review, session, blocked
        ///
        /// Or another word; part of its name. task if absent.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// A loop's id or its start; if absent, the loop here
        ///
        /// Else the only live one.
        #[arg(long = "loop", value_name = "LOOP")]
        name: Option<String>,
    },
    /// Install the plugin in Claude Code
    #[command(after_help = "Examples:\n  crew install\n  crew install --scope local\n  \
                      crew install --scope project --marketplace https://HOST/OWNER/crew.git")]
    Install(InstallArgs),
    /// Undo an install; the records of loops are kept
    #[command(after_help = "While a loop runs in a session it is refused, unless you say --yes: \
                            nobody would judge\nthat loop any more.\n\nExamples:\n  crew uninstall\n  crew uninstall --scope project")]
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
    #[command(after_help = "Examples:\n  crew doctor\n  crew doctor --json\n  \
                      crew doctor --on slurm:login.example")]
    Doctor(DoctorArgs),
    /// Write this project's settings file, with the checks found here
    #[command(after_help = "Writes .claude/crew.toml and trusts its commands on this machine. It \
                      never\n\
                      overwrites an existing file.")]
    Init,
    /// Show every setting in force here, and where it came from
    #[command(after_help = "Examples:\n  crew config\n  crew config --json")]
    Config {
        /// Print JSON, for programs; the object has a "schema"
        #[arg(long)]
        json: bool,
    },
    /// Allow this project's settings file to run its commands on this machine
    #[command(
        after_help = "Lists what needs trust: the exact commands of .claude/crew.toml, limits \
                      above your\n\
                      own, a promise that differs from yours. \
                      Then asks, and trusts what it listed;\n\
                      a changed \
                      text needs trust again. An agent cannot run this.\n\n\
                      Examples:\n  crew trust\n  crew trust --yes      where nobody can answer, as in CI\n  \
                      crew trust --forget"
    )]
    Trust {
        /// Trust what is listed without asking
        #[arg(long)]
        yes: bool,
        /// Withdraw all trust in this working tree
        #[arg(long, conflicts_with = "yes")]
        forget: bool,
    },
    /// Run many loops at once: a folder of tasks
    #[command(subcommand)]
    Fleet(FleetVerb),
    /// Remove the records of loops that are over, with their logs and snapshots
    #[command(after_help = AFTER_CLEAN)]
    Clean(CleanArgs),
    /// Watch a whole loop in a scratch repository, with a scripted agent
    Demo(DemoArgs),
    /// Print completions for a shell
    #[command(after_help = "Examples:\n  source <(crew completions bash)\n  \
                      crew completions fish > ~/.config/fish/completions/crew.fish")]
    Completions {
        #[arg(value_parser = PossibleValuesParser::new(["bash", "zsh", "fish"]))]
        shell: String,
    },
    /// Print a page for man(1)
    #[command(after_help = "Examples:\n  crew man | man -l -\n  crew man fleet run | man -l -")]
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
    #[arg(long, value_name = "D", value_parser = amounts::duration, conflicts_with_all = ["all", "name"])]
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
    /// List those of the whole machine
    #[arg(long)]
    pub all: bool,
    /// Only loops that ended this way: completed, stalled …
    #[arg(long, value_name = "OUTCOME", value_parser = outcomes(), hide_possible_values = true)]
    pub outcome: Option<Outcome>,
    /// Only loops that worked within this time: 90m, 2d
    #[arg(long, value_name = "D", value_parser = amounts::duration)]
    pub since: Option<Duration>,
    /// At most N loops; 0 = all
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole)]
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
    #[arg(long, value_name = "N", value_parser = iteration)]
    pub iteration: Option<u32>,
    /// Only the last N iterations
    #[arg(long, value_name = "N", value_parser = iteration, conflicts_with_all = ["iteration", "log"])]
    pub last: Option<u32>,
    /// Only some: failed, timed-out, no-progress
    #[arg(long, value_name = "KIND", value_parser = ["failed", "timed-out", "no-progress"])]
    #[arg(hide_possible_values = true, conflicts_with_all = ["iteration", "log"])]
    pub only: Option<String>,
    /// The prompt that iteration N was started with
    #[arg(long, requires = "iteration", conflicts_with_all = ["log", "json"])]
    pub prompt: bool,
    /// What the agent did in that iteration, or in the latest
    #[arg(long, conflicts_with_all = ["html", "json"])]
    pub log: bool,
    /// With `--log`: its output, byte for byte
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
    #[arg(long, value_name = "D", value_parser = amounts::duration)]
    pub older_than: Option<Duration>,
    /// Remove without asking
    #[arg(long)]
    pub yes: bool,
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
    /// With `--scope project`: crew's repository
    ///
    /// The address is written into the settings.
    #[arg(long, value_name = "ADDRESS")]
    pub marketplace: Option<String>,
    /// The client's program, if not `claude` on PATH
    #[arg(long, value_name = "PATH")]
    pub client: Option<PathBuf>,
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;

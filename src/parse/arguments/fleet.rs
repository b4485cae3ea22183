//! What may be typed after `crew fleet`: the options of a start, and which fleet and tasks are
//! meant. It has no behaviour.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::{self, cluster};
use crate::parse::settings::is_branch;

/// The verbs of fleets. What concerns one task has the verbs of a loop.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Start a folder of tasks, or continue it; what ended stays ended
    ///
    /// What is gone is taken up.
    #[command(after_help = AFTER_RUN)]
    Run(FleetRunArgs),
    /// Show a fleet, what needs you first
    #[command(after_help = "Examples:\n  crew fleet status\n  crew fleet status billing --json")]
    Status(FleetStatusArgs),
    /// Remove the branches, refs and clones of tasks that are over
    ///
    /// Of those that landed, were cancelled or given up. Work that is nowhere else stays.
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
#[derive(Args, Clone, Debug)]
pub struct FleetCleanArgs {
    /// The fleet's name; if absent, this repository's newest
    ///
    /// Outside a repository the only one.
    #[arg(value_name = "FLEET")]
    pub fleet: Option<String>,
    /// Remove what is listed without asking
    #[arg(long)]
    pub yes: bool,
}

/// The verbs of the old rooms.
#[derive(Debug, Subcommand)]
pub enum FleetVerb {
    /// Start a folder of tasks, or continue it; what ended stays ended
    ///
    /// What is gone is taken up.
    #[command(after_help = AFTER_RUN)]
    Run(FleetRunArgs),
    /// Show how a fleet stands, what needs you first
    #[command(after_help = "Examples:\n  crew fleet status\n  crew fleet status billing --json")]
    Status(FleetStatusArgs),
    /// Show the whole story of a task's loop
    #[command(after_help = "Examples:\n  crew fleet show vat-rounding")]
    Show {
        /// The task
        #[arg(value_name = "TASK")]
        task: String,
        #[command(flatten)]
        which: WhichFleet,
    },
    /// Let no iteration begin until the fleet is run again
    #[command(after_help = "Examples:\n  crew fleet pause\n  crew fleet pause vat-rounding --now")]
    Pause(FleetOrderArgs),
    /// End tasks, or all of them; no executor's memory undoes it
    #[command(
        after_help = "Examples:\n  crew fleet cancel vat-rounding\n  crew fleet cancel --now"
    )]
    Cancel {
        #[command(flatten)]
        order: FleetOrderArgs,
        /// Why, for the handoffs
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Remove what this machine keeps of a fleet; branches stay
    ///
    /// Its terms, leases and logs; the tasks' working trees and the remote stay, too.
    #[command(after_help = AFTER_FORGET)]
    Forget {
        /// The fleet
        #[arg(value_name = "NAME")]
        fleet: String,
    },
    /// Make one attempt at a task, by its spec
    #[command(hide = true)]
    Attempt {
        /// The file of its spec; - reads the spec from standard input
        #[arg(value_name = "SPEC")]
        spec: PathBuf,
    },
    /// Make one attempt at a task, as an executor does
    ///
    /// Safe to start at any moment, any number of times.
    #[command(after_help = "Examples:\n  crew fleet job billing vat-rounding")]
    Job {
        /// The fleet
        #[arg(value_name = "FLEET")]
        fleet: String,
        /// The task
        #[arg(value_name = "TASK")]
        task: String,
        /// The fleet's remote, on a machine that did not start it
        #[arg(long, value_name = "URL")]
        remote: Option<String>,
    },
}

const AFTER_RUN: &str = include_str!("../../report/help/fleet_run.txt").trim_ascii_end();

const AFTER_FORGET: &str = "\
It is refused while a task of the fleet runs here. It prints what stays: branches, working trees, and \
what is on the remote, with the commands that remove it.

Examples:
  crew fleet forget billing";

/// `crew fleet run`.
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a person types")]
pub struct FleetRunArgs {
    /// The folder of the tasks
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// At most N iterations at once (half the cores, up to 4)
    ///
    /// On this machine; one for each 2 GB.
    #[arg(long, value_name = "N", value_parser = values::some)]
    pub slots: Option<u32>,
    /// At most this many dollars for all tasks (0 = no limit)
    #[arg(long = "max-cost", value_name = "USD", value_parser = values::dollars)]
    pub max_cost_micros: Option<u64>,
    /// Push each task's branch after every iteration
    #[arg(long)]
    pub push: bool,
    /// Land completed tasks on main; pr opens pull requests
    ///
    /// Each is checked there before it is pushed.
    #[arg(long, value_name = "pr", num_args = 0..=1, default_missing_value = "main")]
    #[arg(value_parser = landing)]
    pub land: Option<String>,
    /// What runs the jobs: local, slurm, slurm:HOST, or a NAME
    ///
    /// slurm:HOST by ssh to its login node; NAME is that of an [executor.NAME] in your settings.
    #[arg(long, value_name = "EXECUTOR", value_parser = executor)]
    pub on: Option<String>,
    /// Take the fleet from a coordinator that is gone
    ///
    /// Once its record at the remote has not changed for 5 minutes.
    #[arg(long)]
    pub replace_coordinator: bool,
    /// Show what would run and be pushed; start nothing
    ///
    /// In which order, too. It writes nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Trust what is listed without asking
    #[arg(long)]
    pub yes: bool,
}

/// Which fleet is meant.
#[derive(Args, Clone, Debug, Default)]
pub struct WhichFleet {
    /// The fleet's name; if absent, this repository's newest
    ///
    /// Outside a repository the only one.
    #[arg(long, value_name = "NAME")]
    pub fleet: Option<String>,
}

/// `crew fleet status`.
#[derive(Args, Clone, Debug)]
pub struct FleetStatusArgs {
    /// The fleet's name; if absent, this repository's newest
    ///
    /// Outside a repository the only one.
    #[arg(value_name = "FLEET")]
    pub fleet: Option<String>,
    /// Print JSON, for programs; the object has a "schema"
    #[arg(long)]
    pub json: bool,
    /// Redraw it until the fleet is done
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
}

/// `crew fleet pause` and `crew fleet cancel`.
#[derive(Args, Clone, Debug)]
pub struct FleetOrderArgs {
    /// The tasks; if absent, all of them
    #[arg(value_name = "TASK")]
    pub tasks: Vec<String>,
    #[command(flatten)]
    pub which: WhichFleet,
    /// End the running iterations at once
    #[arg(long)]
    pub now: bool,
}

/// What runs the jobs of a fleet. Whether the user's settings have an executor of this name is
/// found out at the start.
fn executor(text: &str) -> Result<String, &'static str> {
    let is_name = |text: &str| is_branch(text) && !text.contains(':');
    if cluster(text).is_ok() || is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("local, slurm, slurm:HOST, or the NAME of an [executor.NAME] in your settings")
    }
}

/// How completed tasks land. A folder behind the option is easily typed.
fn landing(text: &str) -> Result<String, &'static str> {
    match text {
        "main" | "pr" => Ok(text.to_owned()),
        _ => Err("pr or nothing; the folder is before it: crew fleet run FOLDER --land"),
    }
}

//! What may be typed after `crew fleet`. It has no behaviour.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::{self, parse_cluster};
use crate::parse::settings::is_branch;
use engine::fleet::LandingMode;

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

/// The verbs of fleets. What concerns one task has the verbs of a loop.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Start a folder of tasks, or continue it; what ended stays ended
    ///
    /// A task whose process is gone is started again.
    #[command(after_help = AFTER_RUN)]
    Run(FleetRunArgs),
    /// Show a fleet, what needs you first
    #[command(after_help = "Examples:\n  crew fleet status\n  crew fleet status billing --json")]
    Status(FleetStatusArgs),
    /// Remove the branches, refs and clones of tasks that are over
    ///
    /// It takes the tasks that landed, were cancelled or were given up. Work that is nowhere else
    /// stays.
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
    #[arg(long, value_name = "N", value_parser = values::parse_nonzero)]
    pub slots: Option<u32>,
    /// A limit in dollars for all tasks (0 = no limit)
    #[arg(long = "max-cost", value_name = "USD", value_parser = values::parse_dollars)]
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
    /// slurm:HOST by ssh to its login node; NAME is that of an [executor.NAME] in your settings.
    #[arg(long, value_name = "EXECUTOR", value_parser = parse_executor)]
    pub on: Option<String>,
    /// Take the fleet from a coordinator that is gone
    ///
    /// This works once its record at the remote has not changed for 5 minutes.
    #[arg(long)]
    pub replace_coordinator: bool,
    /// Show what would run and be pushed; start nothing
    ///
    /// It also shows the order, and writes nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Trust what is listed without asking
    #[arg(long)]
    pub yes: bool,
    /// The base where fleet.toml names none: what is checked out while the fleet runs does not
    /// change it. Nobody types that.
    #[arg(skip)]
    pub base: Option<String>,
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

/// What runs the jobs of a fleet. Whether the user's settings have an executor of this name is
/// found out at the start.
fn parse_executor(text: &str) -> Result<String, &'static str> {
    if parse_cluster(text).is_ok() || (is_branch(text) && !text.contains(':')) {
        Ok(text.to_owned())
    } else {
        Err("local, slurm, slurm:HOST, or the NAME of an [executor.NAME] in your settings")
    }
}

/// How completed tasks land. A folder behind the option is easily typed.
fn parse_landing(text: &str) -> Result<LandingMode, &'static str> {
    match text {
        "main" => Ok(LandingMode::Main),
        "pr" => Ok(LandingMode::Pr),
        _ => Err("pr or nothing; the folder is before it: crew fleet run FOLDER --land"),
    }
}

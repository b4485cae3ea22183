//! What may be typed. No behaviour.

use clap::{Parser, Subcommand};

/// Keeps a coding agent working until the job is proved done.
#[derive(Debug, Parser)]
#[command(
    name = "crew",
    version,
    disable_help_subcommand = true,
    after_help = "In Claude Code: /crew:loop \"task\" --max-iterations 15 --verify \"cargo test\"\n\
                  Try it here:    crew demo"
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show how a loop stands, or how it ended
    #[command(
        after_help = "Examples:\n  crew status\n  crew status k3v9\n  crew status --all --json"
    )]
    Status(Status),
    /// End a loop; needs no model, and nothing in flight can undo it
    #[command(
        after_help = "Examples:\n  crew cancel\n  crew cancel k3v9 --reason \"wrong branch\""
    )]
    Cancel(Cancel),
    /// Watch a whole loop in a scratch repository, with a scripted agent
    Demo,
}

/// `crew status`.
#[derive(Debug, clap::Args)]
pub struct Status {
    /// A loop's id or the beginning of one; the loop of this working tree if absent
    #[arg(value_name = "LOOP", conflicts_with = "all")]
    pub name: Option<String>,
    /// Every loop of this machine, the newest first
    #[arg(long)]
    pub all: bool,
    /// For programs; every object carries "schema"
    #[arg(long)]
    pub json: bool,
}

/// `crew cancel`.
#[derive(Debug, clap::Args)]
pub struct Cancel {
    /// A loop's id or the beginning of one; the loop of this working tree if absent
    #[arg(value_name = "LOOP")]
    pub name: Option<String>,
    /// Why, for the handoff
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

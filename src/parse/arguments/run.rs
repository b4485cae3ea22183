//! The options that only `crew run` and `crew resume` have, one row each, and what they hold.

use std::time::Duration;

use super::flags::{Flag, once, repeated, switch};
use super::usage::UsageError;
use super::values::Value;
use crate::engine::agent::Permissions;
use crate::parse::spelling::shown;

/// What was typed of `crew run`'s own options: `None` means not typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch a person types")]
pub struct RunOptions {
    /// `--context`, `-c`, in the order typed: a text, a file, or `builtin:NAME`.
    pub context: Vec<String>,
    /// `--observe`, `--orient`, `--decide`, `--act`, likewise.
    pub observe: Vec<String>,
    pub orient: Vec<String>,
    pub decide: Vec<String>,
    pub act: Vec<String>,
    /// `--agent`: a name.
    pub agent: Option<String>,
    /// `--agent-cmd`: a command line, not yet split.
    pub agent_cmd: Option<String>,
    /// `--permissions`.
    pub permissions: Option<Permissions>,
    /// `--timeout`, `--idle-timeout`, `--delay`: zero is none.
    pub timeout: Option<Duration>,
    pub idle_timeout: Option<Duration>,
    pub delay: Option<Duration>,
    /// `--max-turns`: 0 is no limit.
    pub max_turns: Option<u32>,
    /// `--commit`, `--push`.
    pub commit: bool,
    pub push: bool,
    /// `--rebase`: a branch.
    pub rebase: Option<String>,
    /// `--no-awake`.
    pub no_awake: bool,
    /// `--worktree`: a name.
    pub worktree: Option<String>,
    /// `--dry-run`, `--list`, `--detach`.
    pub dry_run: bool,
    pub list: bool,
    pub detach: bool,
    /// `--json`, `--verbose`, `-v`, `--quiet`, `-q`.
    pub json: bool,
    pub verbose: bool,
    pub quiet: bool,
}

/// The rows. Short names are in `SHORT`.
pub(super) static FLAGS: [&Flag; 23] = [
    &repeated("--context", "--context \"read AGENTS.md first\"", |typed| &mut typed.run.context),
    &repeated("--observe", "--observe \"look at the tests\"", |typed| &mut typed.run.observe),
    &repeated("--orient", "--orient notes.md", |typed| &mut typed.run.orient),
    &repeated("--decide", "--decide \"take one task\"", |typed| &mut typed.run.decide),
    &repeated("--act", "--act \"make it pass\"", |typed| &mut typed.run.act),
    &once("--agent", "--agent claude", |typed, value| {
        typed.run.agent = Some(value.text);
        Ok(())
    }),
    &once("--agent-cmd", "--agent-cmd \"my-agent --yes\"", |typed, value| {
        typed.run.agent_cmd = Some(value.text);
        Ok(())
    }),
    &once("--permissions", "--permissions accept-edits", |typed, value| {
        permissions(&value).map(|kind| typed.run.permissions = Some(kind))
    }),
    &once("--timeout", "--timeout 60m", |typed, value| {
        value.duration().map(|time| typed.run.timeout = Some(time))
    }),
    &once("--idle-timeout", "--idle-timeout 15m", |typed, value| {
        value.duration().map(|time| typed.run.idle_timeout = Some(time))
    }),
    &once("--delay", "--delay 30s", |typed, value| {
        value.duration().map(|time| typed.run.delay = Some(time))
    }),
    &once("--max-turns", "--max-turns 50", |typed, value| {
        value.count().map(|count| typed.run.max_turns = Some(count))
    }),
    &switch("--commit", |typed| typed.run.commit = true),
    &switch("--push", |typed| typed.run.push = true),
    &once("--rebase", "--rebase main", |typed, value| {
        typed.run.rebase = Some(value.text);
        Ok(())
    }),
    &once("--worktree", "--worktree fix-login", |typed, value| {
        typed.run.worktree = Some(value.text);
        Ok(())
    }),
    &switch("--no-awake", |typed| typed.run.no_awake = true),
    &switch("--dry-run", |typed| typed.run.dry_run = true),
    &switch("--list", |typed| typed.run.list = true),
    &switch("--detach", |typed| typed.run.detach = true),
    &switch("--json", |typed| typed.run.json = true),
    &switch("--verbose", |typed| typed.run.verbose = true),
    &switch("--quiet", |typed| typed.run.quiet = true),
];

/// The options that say how a loop begins: a resumed one has begun.
pub(super) const ONLY_STARTS: [&str; 8] = [
    "--context",
    "--observe",
    "--orient",
    "--decide",
    "--act",
    "--worktree",
    "--dry-run",
    "--list",
];

/// The short names.
pub(super) const SHORT: [(&str, &str); 3] =
    [("-c", "--context"), ("-v", "--verbose"), ("-q", "--quiet")];

fn permissions(value: &Value) -> Result<Permissions, UsageError> {
    let found = Permissions::ALL.into_iter().find(|kind| kind.label() == value.text);
    found.ok_or_else(|| UsageError::BadValue {
        flag: value.flag.name,
        value: shown(&value.text),
        wanted: "default, accept-edits, auto or bypass",
        example: value.flag.example,
    })
}

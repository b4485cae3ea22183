//! Which options the pages of help show: those that people use, unless all are asked for.

use clap::{Arg, Command, CommandFactory as _};

use crate::cli::Cli;
use crate::engine::text::words_of;

/// The options of `crew run` and `crew resume` that people use. Their pages of help show these, and
/// with `--all` every option.
const SHOWN: &str = "prompt_file dry_run tell now verify gate until require max_iterations max_duration \
    max_cost timeout agent model fallback permissions commit push worktree detach verbose quiet";

/// The commands as their pages of help show them.
pub fn shown() -> Command {
    ["run", "resume"].into_iter().fold(Cli::command(), |all, verb| all.mut_subcommand(verb, brief))
}

fn brief(verb: Command) -> Command {
    let is_shown = |arg: &Arg| arg.is_positional() || words_of(SHOWN).any(|it| it == arg.get_id());
    let others = verb.get_arguments().filter(|arg| !is_shown(arg)).count();
    let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
    let all = format!("`crew {} --help --all`", verb.get_name());
    let more = format!("{after}\n\n{all} lists the other {others} options.");
    verb.mut_args(|arg| if is_shown(&arg) { arg } else { arg.hide(true) }).after_help(more)
}

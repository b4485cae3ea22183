//! `crew run`: a loop of fresh processes, from the first iteration to the page at its end.

use anyhow::{Result, bail};

use super::drive::{drive_or_detach, show_prompt};
use super::reporter::Reporter;
use super::resume::resume;
use super::{checkout, home, print};
use crate::clients::variables::inside_an_agent;
use crate::drive::find;
use crate::drive::owner::owner_is_gone;
use crate::drive::run::pending::settle;
use crate::drive::start::run::{Prepared, begin, first_prompt, prepare};
use crate::drive::start::{procedures, settings};
use crate::drive::tree;
use crate::engine::record::{Loop, LoopId, Outcome};
use crate::engine::settings::merge::merge;
use crate::engine::text::{clip, count};
use crate::exit::Exit;
use crate::parse::arguments::{OutputArgs, RunArgs, RunOptions, UsageError, resume_of};
use crate::prompts::procedures as prompts;
use crate::world::git::snapshots::Snapshots;
use crate::world::git::snapshots::prune::prune;
use crate::world::process::signals::Signals;
use crate::world::store::{Home, logs};
use crate::world::{env, terminal};

/// The most characters of a task that a question shows.
const TASK_CHARS: usize = 60;

/// Runs a loop, shows its first prompt, or lists procedures.
pub fn run(arguments: &RunArgs) -> Result<Exit> {
    let is_bare = arguments.start.task.is_none() && arguments.start.prompt_file.is_none();
    if is_bare && !arguments.list {
        bail!(no_task(&arguments.options));
    }
    let home = home()?;
    if arguments.list {
        return list(&home, arguments);
    }
    if !arguments.dry_run && inside_an_agent(&env::raw) {
        bail!(
            "an agent cannot start a loop\n\
             hint: a person can, in a terminal; /crew:loop is for sessions"
        );
    }
    let options = &arguments.options;
    let prepared = prepare(&home, arguments.clone(), &env::current_folder()?)?;
    if arguments.dry_run {
        return show(&home, &prepared);
    }
    if let Some(interrupted) = chosen_to_resume(&home, &prepared, options) {
        return resume(&resume_of(interrupted.as_str())?);
    }
    let keep = prepared.keep;
    logs::keep::prune(&home, keep.bytes, keep.days);
    let signals = Signals::listen()?;
    let mut reporter = Reporter::new(options.output);
    let here = home.checkout_pointer(&prepared.place.checkout);
    if let Some(left) = find::named_by(&home, &here).ok().flatten()
        && !left.is_live()
        && left.fleet.is_none()
        && !left.state.git.pending.is_empty()
        && !tree::has_moved(&home, &left)
    {
        settle(&home, &left, &signals, &mut reporter)?;
    }
    let record = begin(&home, prepared, &signals, &mut reporter)?;
    prune(&home, &Snapshots::of(&home, &record), keep.snapshots, keep.days);
    drive_or_detach(&home, record, options, &signals, &mut reporter)
}

/// Asks at a terminal whether the loop that was interrupted in this working tree is to be resumed
/// instead of a new one begun. Silence begins the new one, which is what was typed.
fn chosen_to_resume(home: &Home, prepared: &Prepared, options: &RunOptions) -> Option<LoopId> {
    let OutputArgs { json, quiet, .. } = options.output;
    if json || quiet || options.detach || prepared.replace || !terminal::is_interactive() {
        return None;
    }
    let found = find::of_working_tree(home, &prepared.place.checkout).ok().flatten();
    let was_interrupted = |it: &Loop| {
        it.outcome() == Some(Outcome::Interrupted) || it.is_live() && owner_is_gone(home, it)
    };
    let found = found.filter(|it| it.fleet.is_none() && was_interrupted(it))?;
    let done = count(found.state.completed, "iteration");
    let what = clip(found.procedure().unwrap_or(&found.contract.task), TASK_CHARS);
    print::offer(&format!(
        "loop {} was interrupted after {done}: {what}\n\
         Resume it instead of beginning a new one? [y/N] ",
        found.id
    ));
    let answer = terminal::answer().ok().flatten().unwrap_or_default().to_lowercase();
    ["y", "yes"].contains(&answer.as_str()).then_some(found.id)
}

/// The error when no task was typed.
fn no_task(options: &RunOptions) -> UsageError {
    let why = match options.words {
        Some(_) => ": words after `--` go to the agent; the task stands before them",
        None => "",
    };
    UsageError::new(
        format!("run needs a task{why}"),
        "crew run \"fix the failing tests\" --verify \"cargo test\", or a procedure: crew run build -n 10",
    )
}

fn show(home: &Home, prepared: &Prepared) -> Result<Exit> {
    for note in &prepared.notes {
        print::err(&format!("crew: {note}"));
    }
    let (subject, prompt, launches) = first_prompt(home, prepared)?;
    show_prompt(&subject, &prompt, &launches);
    Ok(Exit::SUCCESS)
}

fn list(home: &Home, arguments: &RunArgs) -> Result<Exit> {
    let known = settings::look(home, &checkout()?, !arguments.start.project.no_project)?;
    let settings = merge(&known.layers, None);
    let Some(name) = &arguments.start.task else {
        print::folded(&prompts::list(&procedures::own(&settings)));
        return Ok(Exit::SUCCESS);
    };
    match procedures::of(&settings, name) {
        Some(procedure) => print::folded(&prompts::page(&procedure)),
        None => bail!(UsageError::new(
            format!("there is no procedure `{name}`"),
            "crew run --list names them"
        )),
    }
    Ok(Exit::SUCCESS)
}

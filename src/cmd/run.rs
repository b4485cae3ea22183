//! `crew run`: a loop of fresh processes, from the first iteration to the page at its end.

use anyhow::{Result, bail};

use super::voice::{Manner, Voice};
use super::{checkout, home, print};
use crate::cli::Words;
use crate::drive::process::handover::{Detached, hand_over};
use crate::drive::process::start::{Prepared, begin, first_prompt, prepare};
use crate::drive::process::{End, drive};
use crate::drive::{procedures, settings};
use crate::engine::looped::Loop;
use crate::engine::outcome::Outcome;
use crate::engine::settings::merge::merge;
use crate::exit::Exit;
use crate::parse::arguments::{LoopArguments, RunOptions, words};
use crate::prompts::procedures as prompts;
use crate::report::{dry_run, help};
use crate::world::home::Home;
use crate::world::unix::Signals;
use crate::world::{env, logs};

/// Reads the words and runs, shows or lists.
pub fn run(typed: &Words) -> Result<Exit> {
    let arguments = match words::run(&typed.words) {
        Ok(arguments) => arguments,
        Err(error) => {
            print::err(&format!("crew: {error}"));
            return Ok(Exit::Usage);
        }
    };
    let is_bare = arguments.task.is_none() && arguments.prompt_file.is_none();
    if arguments.help {
        print::out(help::RUN);
        return Ok(Exit::Success);
    }
    if is_bare && !arguments.run.list {
        print::err(&format!("crew: {}", no_task(&arguments.run)));
        return Ok(Exit::Usage);
    }
    let home = home()?;
    if arguments.run.list {
        return list(&home, &arguments);
    }
    if !arguments.run.dry_run && env::inside_an_agent() {
        bail!(
            "an agent cannot start a loop of its own\n\
             hint: a person can, in a terminal; /crew:loop is for sessions"
        );
    }
    let options = arguments.run.clone();
    let prepared = prepare(&home, arguments, &env::current_folder()?)?;
    if options.dry_run {
        return show(&home, &prepared);
    }
    let _ = logs::keep::prune(&home, prepared.keep.bytes, prepared.keep.days);
    let signals = Signals::listen()?;
    let mut voice = Voice::new(manner(&options));
    let record = begin(&home, prepared, &signals, &mut voice)?;
    go(&home, record, &options, &signals, &mut voice)
}

/// What is missing where no task was typed.
fn no_task(options: &RunOptions) -> String {
    let why = match options.words {
        Some(_) => ": words after `--` are the agent's own, and the task stands before them",
        None => "",
    };
    format!(
        "crew run needs a task{why}\n\
         hint: crew run \"fix the failing tests\" --verify \"cargo test\"; crew run --list names the procedures, \
         crew run --help the options"
    )
}

/// Drives a loop that this process has begun or taken, here or in a crew of its own.
pub fn go(
    home: &Home,
    record: Loop,
    options: &RunOptions,
    signals: &Signals,
    voice: &mut Voice,
) -> Result<Exit> {
    // A person who asked for the end while the checks ran wants no crew that goes on out of reach.
    if options.detach && signals.times() == 0 && record.is_live() {
        let flags = [("--json", options.json), ("-v", options.verbose), ("-q", options.quiet)];
        let flags: Vec<&str> = flags.iter().filter(|(_, on)| *on).map(|(flag, _)| *flag).collect();
        let Detached { record, pid, output } = hand_over(home, &record, &flags)?;
        let id = &record.id;
        let told = format!(
            "loop {id} runs on in process {pid}; what it says is in {}\n\
             watch: crew watch {id} · crew show {id} --log -f · stop: crew cancel {id}",
            output.display()
        );
        let say = if options.json { print::err } else { print::out };
        say(&told);
        return Ok(Exit::Success);
    }
    let end = drive(home, record, signals, voice);
    Ok(match end {
        End::Finished(ended) => match (ended.record.outcome(), signals.exit_code()) {
            (Some(Outcome::Interrupted), Some(code)) => Exit::Signalled(code),
            (Some(outcome), _) => Exit::of(outcome),
            (None, _) => Exit::Error,
        },
        End::Paused => Exit::Interrupted,
        End::Taken(id) => bail!("loop {id} has another owner now\nhint: crew status {id}"),
        End::Refused(error) => return Err(error),
    })
}

/// What a run is to sound like.
pub fn manner(options: &RunOptions) -> Manner {
    Manner { json: options.json, quiet: options.quiet, verbose: options.verbose }
}

fn show(home: &Home, prepared: &Prepared) -> Result<Exit> {
    for note in &prepared.notes {
        print::err(&format!("crew: {note}"));
    }
    let (subject, prompt, launch) = first_prompt(home, prepared)?;
    let budget = prompt.size.budget;
    let page = dry_run::page(&subject, &launch.program, &launch.arguments, &prompt.text, budget);
    print::out(&page);
    Ok(Exit::Success)
}

fn list(home: &Home, arguments: &LoopArguments) -> Result<Exit> {
    let known = settings::look(home, &checkout()?, !arguments.no_project)?;
    let settings = merge(&known.layers, settings::environment(), None);
    let Some(name) = &arguments.task else {
        print::out(&prompts::list(&procedures::own(&settings)));
        return Ok(Exit::Success);
    };
    match procedures::of(&settings, name) {
        Some(procedure) => print::out(&prompts::page(&procedure)),
        None => bail!("there is no procedure `{name}`\nhint: crew run --list names them"),
    }
    Ok(Exit::Success)
}

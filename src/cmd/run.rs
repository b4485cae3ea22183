//! `crew run`: a loop of fresh processes, from the first iteration to the page at its end.

use anyhow::{Result, bail};

use super::reporter::Reporter;
use super::{checkout, home, print};
use crate::clients::variables::inside_an_agent;
use crate::drive::run::handover::{Detached, hand_over};
use crate::drive::run::{RunEnd, drive};
use crate::drive::start::run::{Prepared, begin, first_prompt, prepare};
use crate::drive::start::{procedures, settings};
use crate::engine::record::{Loop, Outcome};
use crate::engine::settings::merge::merge;
use crate::exit::Exit;
use crate::parse::arguments::{OutputArgs, RunArgs, RunOptions, UsageError};
use crate::prompts::procedures as prompts;
use crate::report::dry_run;
use crate::world::env;
use crate::world::git::snapshots::Snapshots;
use crate::world::git::snapshots::prune::prune;
use crate::world::process::signals::Signals;
use crate::world::store::{Home, logs};

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
    let keep = prepared.keep;
    logs::keep::prune(&home, keep.bytes, keep.days);
    let signals = Signals::listen()?;
    let mut reporter = Reporter::new(options.output);
    let record = begin(&home, prepared, &signals, &mut reporter)?;
    prune(&home, &Snapshots::of(&home, &record), keep.snapshots, keep.days);
    drive_or_detach(&home, record, options, &signals, &mut reporter)
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

/// Drives a loop that this process has begun or taken, here or in a separate crew process.
pub fn drive_or_detach(
    home: &Home,
    record: Loop,
    options: &RunOptions,
    signals: &Signals,
    reporter: &mut Reporter,
) -> Result<Exit> {
    // A person who asked for the end while the checks ran does not want a crew that continues out
    // of reach.
    if options.detach && signals.times() == 0 && record.is_live() {
        let OutputArgs { json, verbose, quiet } = options.output;
        let flags = [("--json", json), ("-v", verbose), ("-q", quiet)];
        let flags: Vec<&str> = flags.iter().filter(|(_, on)| *on).map(|(flag, _)| *flag).collect();
        let Detached { record, pid, output } = hand_over(home, &record, &flags)?;
        let id = &record.id;
        let told = format!(
            "loop {id} runs in the background, process {pid}; its output is in {}\n\
             watch: crew watch {id} · crew show {id} --log -f · stop: crew cancel {id}",
            output.display()
        );
        let say = if json { print::err } else { print::out };
        say(&told);
        return Ok(Exit::SUCCESS);
    }
    let end = drive(home, record, signals, reporter, None);
    Ok(match end {
        RunEnd::Finished(ended) => match (ended.record.outcome(), signals.exit_code()) {
            (Some(Outcome::Interrupted), Some(code)) => Exit::signalled(code),
            (Some(outcome), _) => Exit::of(outcome),
            (None, _) => Exit::ERROR,
        },
        RunEnd::Paused => Exit::INTERRUPTED,
        RunEnd::Taken(id) => bail!("loop {id} has another owner now\nhint: crew status {id}"),
        RunEnd::Refused(error) => return Err(error),
    })
}

fn show(home: &Home, prepared: &Prepared) -> Result<Exit> {
    for note in &prepared.notes {
        print::err(&format!("crew: {note}"));
    }
    let (subject, prompt, launches) = first_prompt(home, prepared)?;
    let budget = prompt.size.budget;
    let commands: Vec<(&str, &[String])> =
        launches.iter().map(|it| (it.program.as_str(), it.arguments.as_slice())).collect();
    let page = dry_run::page(&subject, &commands, &prompt.text, budget);
    print::out(&page);
    Ok(Exit::SUCCESS)
}

fn list(home: &Home, arguments: &RunArgs) -> Result<Exit> {
    let known = settings::look(home, &checkout()?, !arguments.start.project.no_project)?;
    let settings = merge(&known.layers, settings::environment(), None);
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

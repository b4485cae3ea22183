//! `crew run`, `crew resume` and `crew drive`: begin, resume or take over a loop of fresh processes
//! and drive it to the page at its end. `crew fleet attempt` does so for a task, as an executor.

use super::print::Reporter;
use super::{
    current_checkout, find_requested, find_task_or_fleet, print, refuse_an_agent, terminal_home,
};
use crate::cli::DriveArgs;
use crate::drive::end::prove;
use crate::drive::find::{self, find_resumable, owner_is_gone};
use crate::drive::prompt::Prompt;
use crate::drive::resume::{preview_resume, refuse_a_task, resume_here};
use crate::drive::run::settle_steps;
use crate::drive::run::{self, hand_over, take_record};
use crate::drive::start::establish::Prepared;
use crate::drive::start::run::{begin_run, first_prompt, prepare_run};
use crate::drive::start::terms;
use crate::drive::{control, tree};
use crate::exit::Exit;
use crate::fleet::attempt::{self, AttemptResult};
use crate::fleet::spec::{AttemptEnd, AttemptSpec};
use crate::fleet::verbs::Named;
use crate::report::page::dry_run_page;
use anyhow::{Context as _, Error, Result, bail};
use clap::ColorChoice;
use engine::failure::Failure;
use engine::record::{Loop, LoopId, Outcome};
use engine::text::{clip_line, count};
use readers::agents::Launch;
use readers::clients::inside_an_agent;
use readers::parse::arguments::{OutputArgs, ResumeArgs, RunArgs, RunOptions, resume_of};
use readers::parse::settings::merge::merge_layers;
use readers::prompts::procedures;
use std::io::stdin;
use std::path::Path;
use world::files::disk;
use world::git::snapshots::{Snapshots, prune_snapshots};
use world::process::signals::Signals;
use world::store::Home;
use world::{env, logs, terminal};

/// The maximum number of characters in a task that a question shows.
const TASK_CHARS: usize = 60;

/// Runs a loop, shows its first prompt, or lists procedures.
pub fn run_loop(arguments: &RunArgs) -> Result<Exit> {
    let is_bare = arguments.start.task.is_empty() && arguments.start.prompt_file.is_none();
    if is_bare && !arguments.list {
        bail!(no_task(&arguments.options));
    }
    let home = terminal_home()?;
    if arguments.list {
        return list_procedures(&home, arguments);
    }
    if !arguments.dry_run && inside_an_agent(&env::raw) {
        bail!(Failure::new(
            "an agent cannot start a loop",
            "a person can, in a terminal; /crew:loop is for sessions"
        ));
    }
    let options = &arguments.options;
    let prepared = prepare_run(&home, arguments.clone(), &env::current_folder()?)?;
    if arguments.dry_run {
        return show_first_prompt(&home, &prepared);
    }
    if let Some(interrupted) = chosen_to_resume(&home, &prepared, options) {
        return resume_loop(&resume_of(interrupted.as_str())?);
    }
    let keep = prepared.keep;
    logs::prune_logs(&home, *keep.bytes(), *keep.days());
    let signals = Signals::listen()?;
    let mut reporter = Reporter::new(options.output);
    let here = home.checkout_pointer(&prepared.place.checkout);
    if let Some(left) = find::named_by(&home, &here).ok().flatten()
        && !left.is_live()
        && left.fleet.is_none()
        && !left.state.git().pending.is_empty()
        && !tree::has_moved(&home, &left)
    {
        settle_steps(&home, &left, &signals, &mut reporter)?;
    }
    let record = begin_run(&home, prepared, &signals, &mut reporter)?;
    prune_snapshots(&home, &Snapshots::of(&home, &record), *keep.snapshots(), *keep.days());
    drive_or_detach(&home, record, options, &signals, &mut reporter)
}

/// Asks at a terminal whether to resume the loop that was interrupted in this working tree instead
/// of beginning a new one. Without an answer the new one begins, as typed.
fn chosen_to_resume(home: &Home, prepared: &Prepared, options: &RunOptions) -> Option<LoopId> {
    let OutputArgs { json, quiet, .. } = options.output;
    if json || quiet || options.detach || prepared.replace || !terminal::is_interactive() {
        return None;
    }
    let found = find::of_working_tree(home, &prepared.place.checkout).ok().flatten()?;
    let was_interrupted = found.outcome() == Some(Outcome::Interrupted)
        || found.is_live() && owner_is_gone(home, &found);
    if found.fleet.is_some() || !was_interrupted {
        return None;
    }
    let done = count(found.state.counts().completed(), "iteration");
    let what = clip_line(found.procedure().unwrap_or(&found.contract.task), TASK_CHARS);
    let question = format!(
        "loop {} was interrupted after {done}: {what}\n\
         Resume it instead of beginning a new one?",
        found.id
    );
    if print::agrees(&question).unwrap_or(false) { Some(found.id) } else { None }
}

/// The error when no task was typed.
fn no_task(options: &RunOptions) -> Failure {
    let why = match options.words {
        Some(_) => ": words after `--` go to the agent; the task comes before them",
        None => "",
    };
    Failure::usage(
        format!("run needs a task{why}"),
        "crew run \"fix the failing tests\" --verify \"cargo test\", or a procedure: crew run build -n 10",
    )
}

fn show_first_prompt(home: &Home, prepared: &Prepared) -> Result<Exit> {
    for note in &prepared.notes {
        print::err(&format!("crew: {note}"));
    }
    let (subject, prompt, launches) = first_prompt(home, prepared)?;
    show_prompt(&subject, &prompt, &launches);
    Ok(Exit::SUCCESS)
}

fn list_procedures(home: &Home, arguments: &RunArgs) -> Result<Exit> {
    let known = terms::load_settings(home, &current_checkout()?, !arguments.start.no_project)?;
    let settings = merge_layers(&known.layers, None).map_err(Error::msg)?;
    let Some(name) = &arguments.start.task() else {
        print::folded(&procedures::render_list(&settings));
        return Ok(Exit::SUCCESS);
    };
    match procedures::render_page(&settings, name) {
        Some(page) => print::folded(&page),
        None => bail!(Failure::usage(
            format!("there is no procedure `{name}`"),
            "crew run --list names them"
        )),
    }
    Ok(Exit::SUCCESS)
}

/// Takes the requested loop into this process and drives it.
pub fn resume_loop(arguments: &ResumeArgs) -> Result<Exit> {
    if !arguments.dry_run {
        refuse_an_agent(Failure::new(
            "an agent cannot resume a loop",
            "a person can, in a terminal or with /crew:resume",
        ))?;
    }
    let name = arguments.set.name().as_deref();
    if !arguments.dry_run
        && let Some(named) = find_task_or_fleet(&terminal_home()?, name)?
    {
        return resume_task(&terminal_home()?, &named, arguments);
    }
    let (home, record) = find_requested(name)?;
    let mut record = find_resumable(&home, record, name);
    if record.procedure().is_some() && record.procedure() == name {
        print::err(&format!("crew: this is loop {}: {}", record.id, record.status_word()));
    }
    let changes = arguments.set.limits().limit_changes();
    if arguments.now && end_wait(&home, &record.id, arguments)? {
        return Ok(Exit::SUCCESS);
    }
    refuse_a_task(&home, &record)?;
    if arguments.dry_run {
        let (record, prompt, launches) = preview_resume(&home, record, arguments, &changes)?;
        show_prompt(&record, &prompt, &launches);
        return Ok(Exit::SUCCESS);
    }
    let signals = Signals::listen()?;
    let mut reporter = Reporter::new(arguments.options.output);
    if !record.is_live() && !record.state.git().pending_steps().is_empty() {
        record = settle_steps(&home, &record, &signals, &mut reporter)?;
        if record.outcome() == Some(Outcome::Completed) {
            return match record.state.git().describe_undone() {
                Some(undone) => bail!("loop {} is completed, but {undone}", record.id),
                None => Ok(Exit::SUCCESS),
            };
        }
    }
    let resumed = resume_here(&home, &record, arguments, &changes, &|| signals.times() > 0)?;
    let record = resumed.begin_resumed(&home, &signals, &mut reporter)?;
    drive_or_detach(&home, record, &arguments.options, &signals, &mut reporter)
}

/// Asks the coordinator to resume a task, or all tasks of a fleet. The other options of a resume
/// are in the task's file.
fn resume_task(home: &Home, named: &Named, arguments: &ResumeArgs) -> Result<Exit> {
    let ResumeArgs { set, answer, options, no_project, now, .. } = arguments;
    if *options != RunOptions::default() || *no_project || !set.limits().limit_changes().is_empty()
    {
        let folder = &named.record.terms.folder;
        bail!(Failure::usage(
            "a task is resumed by its fleet, with the options of its file",
            format!(
                "change them in {folder}, which a running fleet reads again; only --tell, --now and \
                 --accept-test-changes can be given here"
            )
        ));
    }
    let here = match &named.task {
        Some(task) if *now => named.loop_of(home, task),
        None if *now => Some(named.own_loop(home)?),
        _ => None,
    };
    let is_woken = here.map_or(Ok(false), |record| end_wait(home, &record.id, arguments))?;
    if !is_woken {
        print::out(&named.resume_tasks(
            home,
            answer.tell().as_deref(),
            *answer.accept_test_changes(),
        )?);
    }
    Ok(Exit::SUCCESS)
}

/// Ends the wait of a loop and applies the limits and the message that were typed with it; `false`
/// if the loop does not wait.
fn end_wait(home: &Home, id: &LoopId, arguments: &ResumeArgs) -> Result<bool> {
    let (changes, words) =
        (arguments.set.limits().limit_changes(), arguments.answer.tell().as_deref());
    let Some(woken) = control::wake_loop(home, id, &changes, words)? else { return Ok(false) };
    let iteration = woken.iteration();
    print::out(&format!("loop {id}: the wait is over, iteration {iteration} begins"));
    Ok(true)
}

/// Takes a loop over and drives it, or proves it if it is over. The output is kept in a file.
pub fn drive_loop(arguments: &DriveArgs) -> Result<Exit> {
    print::set_colour(ColorChoice::Never);
    let home = terminal_home()?;
    let signals = Signals::listen()?;
    let id = arguments.id.parse().map_err(Error::msg)?;
    if let Some(record) = prove::find_own_proof(&home, &id)? {
        prove::prove_in_background(&home, &record, &|| signals.times() > 0)?;
        return Ok(Exit::SUCCESS);
    }
    let record = take_record(&home, &id)?;
    let mut reporter = Reporter::new(arguments.output);
    drive_or_detach(&home, record, &RunOptions::default(), &signals, &mut reporter)
}

/// Drives a loop that this process has begun or taken, here or in a separate crew process.
pub fn drive_or_detach(
    home: &Home,
    record: Loop,
    options: &RunOptions,
    signals: &Signals,
    reporter: &mut Reporter,
) -> Result<Exit> {
    // A person who interrupted the checks does not want a crew that continues in the background.
    if options.detach && signals.times() == 0 && record.is_live() {
        let OutputArgs { json, verbose, quiet } = options.output;
        let flags = [("--json", json), ("-v", verbose), ("-q", quiet)];
        let flags: Vec<&str> = flags.iter().filter(|(_, on)| *on).map(|(flag, _)| *flag).collect();
        let (record, output) = hand_over(home, &record, &flags)?;
        let (id, pid) = (&record.id, record.state.owner().process.pid);
        let say = if json { print::err } else { print::out };
        say(&format!(
            "loop {id} runs in the background, process {pid}; its output is in {}\n\
             watch: crew watch {id} · crew show {id} --log -f · stop: crew cancel {id}",
            output.display()
        ));
        return Ok(Exit::SUCCESS);
    }
    let Some(ended) = run::drive_loop(home, record, signals, reporter, None)? else {
        return Ok(Exit::INTERRUPTED);
    };
    Ok(match (ended.outcome(), signals.exit_code()) {
        (Some(Outcome::Interrupted), Some(code)) => Exit::from_signal(code),
        (Some(outcome), _) => Exit::for_outcome(outcome),
        (None, _) => Exit::ERROR,
    })
}

/// Shows the agents that would get a prompt, and the prompt.
pub fn show_prompt(subject: &Loop, prompt: &Prompt, launches: &[Launch]) {
    let commands =
        launches.iter().map(|Launch { program, arguments, .. }| (&**program, &**arguments));
    let commands: Vec<(&str, &[String])> = commands.collect();
    print::out(&dry_run_page(subject, &commands, &prompt.text, prompt.size.budget));
}

/// The largest spec that is read, in bytes: a prompt of 256 KiB and as many checks.
const SPEC_BYTES: u64 = 8 << 20;

/// Runs the attempt that a spec describes; `-` reads the spec from standard input.
pub fn run_attempt(file: &Path) -> Result<Exit> {
    if inside_an_agent(&env::raw) {
        bail!(Failure::new("an agent cannot make an attempt", "a person can, with crew fleet run"));
    }
    // The output is kept in a file.
    print::set_colour(ColorChoice::Never);
    let bytes = if file == Path::new("-") {
        disk::read_stream(stdin(), SPEC_BYTES)?
    } else {
        let read = disk::read(file, SPEC_BYTES)?;
        read.with_context(|| format!("there is no spec {}", file.display()))?
    };
    let spec: AttemptSpec = serde_json::from_slice(&bytes).context(
        "the spec cannot be read: crew fleet run writes it, for the same version of crew",
    )?;
    let (task, signals) = (spec.task.clone(), Signals::listen()?);
    let mut reporter = Reporter::new(OutputArgs::default());
    Ok(match attempt::run_attempt(&terminal_home()?, spec, &signals, &mut reporter)? {
        AttemptResult::Over(AttemptEnd::Ended(ending)) => {
            print::err(&format!("crew: {task} is {}: {}", ending.outcome.label(), ending.reason));
            Exit::for_outcome(ending.outcome)
        }
        AttemptResult::Over(AttemptEnd::Paused) => Exit::INTERRUPTED,
        AttemptResult::Over(AttemptEnd::Interrupted) => {
            signals.exit_code().map_or(Exit::INTERRUPTED, Exit::from_signal)
        }
        AttemptResult::Over(AttemptEnd::Failed { reason, needs_person }) => {
            print::err(&format!("crew: {task} cannot continue: {reason}"));
            if needs_person { Exit::for_outcome(Outcome::Blocked) } else { Exit::ERROR }
        }
        AttemptResult::Elsewhere => {
            print::err(&format!("crew: {task} is left to the process that works on it"));
            Exit::SUCCESS
        }
        AttemptResult::Fenced => {
            print::err(&format!("crew: another attempt has {task}; this one pushed nothing more"));
            Exit::FENCED
        }
    })
}

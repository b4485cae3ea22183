//! `crew fleet`: many loops at once. An agent may look at a fleet and end it, never start one.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use ratatui::crossterm::event::KeyCode;
use ratatui::text::Text;

use super::print::FullScreen;
use super::{leave_to_a_person, print, run, setup, terminal_home, terminal_reading};
use crate::drive::failure::failure_of;
use crate::exit::Exit;
use crate::fleet::attempt::remote::fetch_result;
use crate::fleet::coordinator::{CoordinatorEnd, coordinate_fleet};
use crate::fleet::files::FleetFiles;
use crate::fleet::record::{FleetRecord, TaskRequest};
use crate::fleet::status::FleetStatus;
use crate::fleet::store::remote_refs::RemoteAccess;
use crate::fleet::tasks::plan_page;
use crate::fleet::tasks::{DescribedFleet, describe_fleet};
use crate::fleet::verbs::Named;
use crate::fleet::verbs::clean::FleetLeftovers;
use crate::fleet::{preflight, store, verbs};
use crate::report::board::is_interrupt;
use crate::report::colour;
use crate::report::layout::Reading;
use crate::report::show::story_lines;
use engine::failure::Failure;
use engine::fleet::{Refusal, TaskId};
use engine::journal::story::Story;
use engine::record::Outcome;
use readers::parse::arguments::{FleetCleanArgs, FleetCommand, FleetRunArgs, FleetStatusArgs};
use world::files::disk;
use world::process::signals::Signals;
use world::store::Home;
use world::{clock, env, terminal};

/// The widest page.
const COLUMNS_MAX: usize = 120;
/// The rows below a page on a terminal: the shell's prompt.
const PROMPT_ROWS: usize = 2;
/// The time between two looks of `--watch`.
const LOOK: Duration = Duration::from_millis(500);
/// The maximum number of leftovers that a clean lists.
const LISTED_MAX: usize = 30;
/// The maximum number of lines in a log or a journal printed.
const END_LINES: usize = 20;
/// The size of the end of a log that is read, in bytes.
const LOG_BYTES: u64 = 16 << 10;

/// Runs a verb of fleets.
pub fn run_fleet_verb(command: &FleetCommand) -> Result<Exit> {
    match command {
        FleetCommand::Run(arguments) => run_fleet(arguments),
        FleetCommand::Status(FleetStatusArgs { fleet, json, watch }) => {
            let home = terminal_home()?;
            let record = verbs::find_fleet(&home, fleet.as_deref(), &env::current_folder()?)?;
            show_fleet(&home, record, *json, *watch)
        }
        FleetCommand::Clean(arguments) => clean_fleet(arguments),
        FleetCommand::Attempt { spec } => run::run_attempt(spec),
    }
}

/// Starts or continues a fleet, and returns when nothing runs and nothing can start.
fn run_fleet(arguments: &FleetRunArgs) -> Result<Exit> {
    leave_to_a_person("start a fleet")?;
    let home = terminal_home()?;
    let described = describe_fleet(&home, arguments, &env::current_folder()?)?;
    let DescribedFleet { terms, tasks, notes, untrusted, .. } = &described;
    for note in notes {
        print::err(&format!("crew: {note}"));
    }
    let known = store::read_local(&home, &terms.name)?;
    if arguments.dry_run || !untrusted.is_empty() {
        let columns = terminal_reading().width.min(COLUMNS_MAX);
        print::page(&plan_page::render_plan(
            &described,
            known.as_ref(),
            columns,
            arguments.dry_run,
        ));
    }
    if arguments.dry_run {
        return Ok(Exit::SUCCESS);
    }
    home.make_folders()
        .with_context(|| format!("cannot keep fleets in {}", home.root().display()))?;
    if !untrusted.is_empty() {
        let yes = arguments.yes;
        setup::ask_trust(&terms.repository, untrusted, yes, "go?", "started", "crew fleet run")?;
    }
    // This asks the remote, with git's current settings.
    for note in preflight::check_start(&home, terms, tasks)? {
        print::err(&format!("crew: {note}"));
    }
    let (name, signals) = (terms.name.clone(), Signals::listen()?);
    let end = coordinate_fleet(&home, described, arguments, &signals, &mut |line: &str| {
        print::stamped(line);
    })?;
    let record = store::read_local(&home, &name)?.context("the fleet's record is gone")?;
    print::out("");
    // A person who is in a hurry gets no page.
    if signals.times() < 2 {
        show_fleet(&home, record.clone(), false, false)?;
    }
    Ok(match (end, signals.exit_code()) {
        (CoordinatorEnd::Interrupted, Some(code)) => Exit::from_signal(code),
        (CoordinatorEnd::Interrupted, None) => Exit::INTERRUPTED,
        (CoordinatorEnd::Done, _) => exit_of(&record),
    })
}

/// The exit code of a fleet that no longer runs.
fn exit_of(record: &FleetRecord) -> Exit {
    let FleetRecord { tasks, request, terms, .. } = record;
    if tasks.values().all(|task| task.is_done(terms.landing)) {
        return Exit::SUCCESS;
    }
    let outcomes = tasks.values().map(|task| task.ending().map(|ending| ending.outcome));
    let outcomes: Vec<Option<Outcome>> = outcomes.collect();
    let is_cancelled = request.as_ref().is_some_and(TaskRequest::is_cancel);
    let is_paused = tasks.iter().any(|(id, task)| {
        let request = record.request_of(id).filter(|request| !request.is_cancel());
        task.ending().is_none() && request.is_some()
    });
    if is_cancelled || outcomes.iter().all(|outcome| *outcome == Some(Outcome::Cancelled)) {
        Exit::for_outcome(Outcome::Cancelled)
    } else if outcomes.contains(&Some(Outcome::Blocked)) {
        Exit::for_outcome(Outcome::Blocked)
    } else if is_paused {
        Exit::INTERRUPTED
    } else {
        Exit::for_outcome(Outcome::Exhausted)
    }
}

/// Shows a fleet; `watches` repeats this until it is over and nobody coordinates it.
pub fn show_fleet(home: &Home, mut record: FleetRecord, json: bool, watches: bool) -> Result<Exit> {
    if watches {
        let screen = if FullScreen::is_possible() { Some(FullScreen::open()?) } else { None };
        let Some(last) = watch_fleet(home, record, screen)? else { return Ok(Exit::SUCCESS) };
        record = last;
    }
    let status = FleetStatus::read_status(home, &record);
    if json {
        print::json(&serde_json::to_value(&status)?);
    } else {
        let rows = terminal::count_rows().map(|rows| usize::from(rows).saturating_sub(PROMPT_ROWS));
        let at = Reading { width: terminal_reading().width.min(COLUMNS_MAX), ..terminal_reading() };
        print::page(&status.render_page(at, rows, None).join("\n"));
    }
    Ok(Exit::SUCCESS)
}

/// Shows a fleet until it is over and nobody coordinates it; `None` if a person leaves earlier.
fn watch_fleet(
    home: &Home,
    mut record: FleetRecord,
    mut screen: Option<FullScreen>,
) -> Result<Option<FleetRecord>> {
    let (name, mut unseen) = (record.terms.name.clone(), None);
    loop {
        let status = FleetStatus::read_status(home, &record);
        if !store::is_coordinated(home, &name) && (status.is_over() || screen.is_none()) {
            return Ok(Some(record));
        }
        match &mut screen {
            None => clock::sleep(LOOK),
            Some(screen) => {
                let (width, rows) = screen.size()?;
                let lines = status.render_page(
                    Reading { width, ..terminal_reading() },
                    Some(rows),
                    unseen.as_deref(),
                );
                let lines: Text<'_> = lines.iter().map(|line| colour::board_spans(line)).collect();
                screen.draw(|frame| frame.render_widget(lines, frame.area()))?;
                if let Some(key) = screen.next_key(LOOK)?
                    && (matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || is_interrupt(key))
                {
                    return Ok(None);
                }
            }
        }
        // A record that cannot be read leaves the page as it was.
        match verbs::read_fleet(home, &name) {
            Ok(Some(now)) => (record, unseen) = (now, None),
            Ok(None) => bail!(Failure::new(
                format!("the fleet {name} no longer exists"),
                "crew status lists them"
            )),
            Err(error) => unseen = Some(failure_of(&error).with_hint()),
        }
    }
}

fn clean_fleet(arguments: &FleetCleanArgs) -> Result<Exit> {
    leave_to_a_person("remove what a fleet left")?;
    let home = terminal_home()?;
    let record = verbs::find_fleet(&home, arguments.fleet().as_deref(), &env::current_folder()?)?;
    let (name, signals) = (&record.terms.name, Signals::listen()?);
    let found = FleetLeftovers::find_leftovers(&home, &record, &signals)?;
    print_what_stays(&found.stays);
    let lines = found.render_lines();
    if lines.is_empty() {
        print::out(&format!(
            "nothing to remove: no task of the fleet {name} landed or was given up"
        ));
        return Ok(Exit::SUCCESS);
    }
    for line in lines.iter().take(LISTED_MAX) {
        print::out(&format!("  {line}"));
    }
    if lines.len() > LISTED_MAX {
        print::out(&format!("  … {} more", lines.len() - LISTED_MAX));
    }
    print::confirm(*arguments.yes(), "Remove all of it?", "removed", "crew fleet clean")?;
    let stays = found.remove_files()?;
    print_what_stays(&stays);
    let again = match store::read_local(&home, name)? {
        None => format!("; {} starts all of its tasks again", record.terms.run_command()),
        Some(_) => String::new(),
    };
    print::out(&format!("the fleet {name} is cleaned{again}"));
    Ok(if stays.is_empty() { Exit::SUCCESS } else { Exit::ERROR })
}

fn print_what_stays(stays: &[String]) {
    for why in stays {
        print::err(&format!("crew: kept: {why}"));
    }
}

/// A task's status in its fleet, in one line.
pub fn line_of_task(home: &Home, named: &Named, id: &TaskId) -> String {
    let line = FleetStatus::read_status(home, &named.record).line_of(id);
    format!("task {} · {}\n", named.record.full_name(id), colour::mark_head(&line))
}

/// Shows a task whose loop is not on this machine: its status in the fleet, what its attempt left
/// at the remote, and the end of its log. The JSON is that of the fleet, with this task alone.
pub fn show_task(home: &Home, named: &Named, id: &TaskId, json: bool) -> Result<Exit> {
    if json {
        let status = FleetStatus::read_status(home, &named.record).with_only(id);
        print::json(&serde_json::to_value(&status)?);
        return Ok(Exit::SUCCESS);
    }
    print::page(&line_of_task(home, named, id));
    print_refused_landing(named, id);
    let (terms, signals) = (&named.record.terms, Signals::listen()?);
    let number = named.record.task(id).map_or(0, |task| task.attempt);
    if number > 0 {
        print::out(&format!("branch {}", named.record.branch(id, number)));
    }
    if let (Some(access), false) =
        (RemoteAccess::for_terms(terms, &signals), named.record.is_local())
    {
        let refs = access.refs()?;
        let found = fetch_result(&refs, &terms.name, id, number)?;
        let journal = found.and_then(|found| found.journal).unwrap_or_default();
        let mut story = Story::with_pick(None);
        for entry in journal.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            story.add_entry(entry);
        }
        if !journal.is_empty() {
            let lines = story_lines(&story, terminal_reading());
            print::page(&format!("\nthe end of its loop's journal:\n{lines}"));
        }
    }
    let log = FleetFiles::new(home, &terms.name).log(id, number);
    if let Ok((text, _)) = disk::read_end(&log, 0, LOG_BYTES) {
        print_end(&format!("the end of {}:", log.display()), &text);
    }
    Ok(Exit::SUCCESS)
}

/// Prints the end of the output of the check that kept a task from landing. The page of its loop
/// does not have it.
pub fn print_refused_landing(named: &Named, id: &TaskId) {
    let task = named.record.task(id).filter(|task| task.landed().is_none());
    if let Some(Refusal::Red { run, output }) =
        task.and_then(|task| task.refused.sent_back.as_ref())
        && !output.trim().is_empty()
    {
        let base = &named.record.terms.base;
        print_end(&format!("on {base} with its work, `{run}` printed last:"), output);
        print::out("");
    }
}

/// Prints the last lines of a text below a heading, if it has any.
fn print_end(heading: &str, text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    if !lines.is_empty() {
        print::out(&format!("\n{heading}"));
    }
    for line in &lines[lines.len().saturating_sub(END_LINES)..] {
        print::out(&format!("  {line}"));
    }
}

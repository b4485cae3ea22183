//! The subcommands: each resolves its arguments, calls a driver or a reader, and prints. No other
//! room prints.

pub mod complete;
mod control;
mod fleet;
pub mod hook;
mod past;
pub mod print;
mod run;
mod setup;
mod show;
mod status;
mod watch;

use crate::cli::Verb;
use crate::drive::find::{find_loops, is_here};
use crate::drive::page::loop_view;
use crate::exit::Exit;
use crate::fleet::verbs::{self, Named};
use crate::report::help;
use crate::report::layout::Reading;
use crate::report::list::{self, ListReading};
use anyhow::{Result, bail};
use engine::failure::Failure;
use engine::record::{Actor, Loop, LoopId};
use engine::text::{EscapedLine, clean_text, distinct_texts};
use engine::view::LoopView;
use readers::clients::inside_an_agent;
use readers::parse::arguments::FleetArgs;
use std::io;
use std::path::{Path, PathBuf};
use world::files::disk;
use world::store::{self, Home, StoreError};
use world::{clock, env, git, terminal};

/// Runs a subcommand.
pub fn dispatch(verb: &Verb) -> Result<Exit> {
    match verb {
        Verb::Run(arguments) => run::run_loop(arguments),
        Verb::Drive(arguments) => run::drive_loop(arguments),
        Verb::Status(arguments) => status::show_status(arguments),
        Verb::History(arguments) => past::show_history(arguments),
        Verb::Show(arguments) => show::show_story(arguments),
        Verb::Diff { words, stat } => past::show_difference(words, *stat),
        Verb::Back { words } => past::restore_tree(words),
        Verb::Prove { name } => past::prove_loop(name.as_deref()),
        Verb::Watch { name } => watch::watch_loops(name.as_deref()),
        Verb::Pause { name, now } => control::pause_loop(name.as_deref(), *now),
        Verb::Cancel { name, reason } => control::cancel_loop(name.as_deref(), reason.as_deref()),
        Verb::Resume(arguments) => run::resume_loop(arguments),
        Verb::Tell { words, name } => control::tell_agent(words, name.as_deref()),
        Verb::Set(arguments) => control::set_limits(arguments),
        Verb::Handoff { words, kind, name } => {
            control::write_handoff(words, kind.as_deref(), name.as_deref())
        }
        Verb::Install(arguments) => setup::install_plugin(arguments),
        Verb::Uninstall { scope, client, yes } => {
            setup::uninstall_plugin(*scope, client.as_deref(), *yes)
        }
        Verb::Doctor(arguments) => setup::run_doctor(arguments),
        Verb::Init => setup::init_settings(),
        Verb::Config { schema: true, .. } => Ok(print_schema(help::SETTINGS_SCHEMA)),
        Verb::Config { json, .. } => setup::show_config(*json),
        Verb::Trust { yes, forget } => setup::trust_project(*yes, *forget),
        Verb::Fleet(FleetArgs { command: Some(command), .. }) => fleet::run_fleet_verb(command),
        Verb::Fleet(_) => Ok(print_schema(help::FLEET_SCHEMA)),
        Verb::Clean(arguments) => past::clean_records(arguments),
        Verb::Demo(arguments) => setup::play_demo(arguments),
        Verb::Completions { shell } => complete::print_script(shell),
        Verb::Man { verbs } => setup::print_man_page(verbs),
        Verb::Version => Ok(setup::print_version()),
    }
}

/// Prints a JSON schema.
fn print_schema(text: &str) -> Exit {
    print::out(text.trim_end());
    Exit::SUCCESS
}

/// The width of a page outside a terminal, in columns: no line is broken.
const FILE_COLUMNS: u16 = 10_000;
/// The width of a page in a client, in columns, because a client wraps longer lines.
const CLIENT_COLUMNS: usize = 80;

/// How a page is read in this terminal, or wherever this output goes.
fn terminal_reading() -> Reading {
    let columns = terminal::count_columns().unwrap_or(FILE_COLUMNS);
    Reading { width: columns.into(), ..client_reading() }
}

/// How a page is read in a client.
fn client_reading() -> Reading {
    let local = clock::local_time();
    Reading { width: CLIENT_COLUMNS, now: local.to_utc(), offset: *local.offset() }
}

/// How a list is read in this terminal; `home` is the folder that is shown as `~`.
fn list_reading(home: Option<&Path>) -> ListReading<'_> {
    ListReading { reading: terminal_reading(), home }
}

/// A list of loops for this terminal: those of each fleet below its name, after all others.
fn list_loops(home: &Home, loops: &[Loop]) -> String {
    if loops.is_empty() {
        // Loops that cannot be read were named instead.
        let has_unreadable = store::look_at_all(home).is_ok_and(|(_, others)| !others.is_empty());
        return if has_unreadable { String::new() } else { help::NO_LOOPS.to_owned() };
    }
    let user = env::path("HOME");
    let mut views: Vec<LoopView<'_>> = loops.iter().map(|record| loop_view(home, record)).collect();
    views.sort_by_key(|view| (fleet_of(view.record), !view.record.is_live()));
    let mut lists = Vec::new();
    for views in views.chunk_by(|one, other| fleet_of(one.record) == fleet_of(other.record)) {
        let list = list::render_list(list::STANDING, views, list_reading(user.as_deref()));
        lists.push(match fleet_of(views[0].record) {
            Some(name) => format!("fleet {name}\n{list}"),
            None => list,
        });
    }
    lists.join("\n")
}

/// The name of the fleet whose task a loop works on.
fn fleet_of(record: &Loop) -> Option<&str> {
    record.fleet.as_ref().map(|task| task.name.as_str())
}

/// The home of the terminal this was typed in.
fn terminal_home() -> Result<Home> {
    let home = any_home()?;
    let root = home.root();
    if disk::is_file(root) {
        bail!(Failure::new(
            format!("cannot keep loops in {}: it is not a folder", root.display()),
            "set CREW_HOME to a folder"
        ));
    }
    Ok(home)
}

/// The home, even if it cannot be used, because the doctor finds out why.
fn any_home() -> Result<Home> {
    if env::path("CREW_HOME").is_none()
        && let Some(named) = env::text("CREW_HOME")
    {
        bail!(Failure::usage(
            format!("CREW_HOME is `{}`, which is not an absolute path", EscapedLine(&named)),
            "export CREW_HOME=\"$HOME/.local/state/crew\", or unset it"
        ));
    }
    let home = Home::of_terminal();
    let hint = "set HOME, or CREW_HOME to a folder";
    home.ok_or_else(|| Failure::new("HOME is not set", hint).into())
}

/// Fails inside an agent, which may only lower limits.
fn refuse_an_agent(refusal: Failure) -> Result<()> {
    if inside_an_agent(&env::raw) { Err(refusal.into()) } else { Ok(()) }
}

/// Fails inside an agent, and names what only the user can do in a terminal.
fn leave_to_a_person(what: &str) -> Result<()> {
    refuse_an_agent(Failure::new(format!("an agent cannot {what}"), "a person can, in a terminal"))
}

/// Who typed this command, an agent or the user; the record names it.
fn actor() -> Actor {
    if inside_an_agent(&env::raw) { Actor::Agent } else { Actor::User }
}

/// The task or fleet with that name, if there is one.
fn find_named(home: &Home, name: Option<&str>) -> Result<Option<Named>> {
    match name {
        Some(name) => verbs::resolve_name(home, name),
        None => Ok(None),
    }
}

/// The requested task or fleet, found by its name or by the loop that works on it.
fn find_task_or_fleet(home: &Home, name: Option<&str>) -> Result<Option<Named>> {
    if let Some(named) = find_named(home, name)? {
        return Ok(Some(named));
    }
    let folder = env::current_folder()?;
    match &*find_loops(home, name, &folder).unwrap_or_default() {
        [record] if name.is_some() || is_here(record, &folder) => verbs::task_of(home, &record.id),
        _ => Ok(None),
    }
}

/// The home, and the requested loop in it; for a task, that of its newest attempt. If several loops
/// match, the error lists them.
fn find_requested(name: Option<&str>) -> Result<(Home, Loop)> {
    let (home, folder) = (terminal_home()?, env::current_folder()?);
    if let Some(named) = find_named(&home, name)? {
        let record = named.own_loop(&home)?;
        return Ok((home, record));
    }
    let mut found = find_loops(&home, name, &folder)?;
    match found.len() {
        0 => bail!(Failure::new("there is no loop here", help::START_ONE)),
        1 => {}
        _ => {
            bail!(Failure::usage(
                MANY,
                format!("{}\n{}", hint_at_names(&found), first_of(&home, &found))
            ))
        }
    }
    let record = found.remove(0);
    // A few letters, or none, may match a loop elsewhere that nobody expects.
    if name != Some(record.id.as_str()) && !is_here(&record, &folder) {
        let there = record.place.checkout.display();
        print::err(&format!("crew: this is loop {} in {there}", record.id));
    }
    Ok((home, record))
}

/// The error if several loops match what was typed.
const MANY: &str = "more than one loop matches";
/// The maximum number of matching loops that are listed.
const LISTED_MAX: usize = 5;

/// A hint on what to name instead; the loops may be those of a fleet.
fn hint_at_names(loops: &[Loop]) -> String {
    let fleets = distinct_texts(loops.iter().filter_map(fleet_of).map(str::to_owned));
    let fleets = fleets.iter().map(|name| format!("; crew fleet status {name} shows its tasks"));
    format!("name one of these{}", fleets.collect::<String>())
}

/// The first loops in a list, with the number of the others.
fn first_of(home: &Home, loops: &[Loop]) -> String {
    let list = list_loops(home, &loops[..loops.len().min(LISTED_MAX)]);
    match loops.len().saturating_sub(LISTED_MAX) {
        0 => list,
        more => format!("{}\n… {more} more: crew status --all", list.trim_end()),
    }
}

/// Applies `ours` to the requested loop and prints its page. A newer crew's loop gets `theirs`: the
/// request that every version of crew writes and honours.
fn apply_request(
    name: Option<&str>,
    ours: impl FnOnce(&Home, &LoopId) -> Result<String>,
    (what, theirs): (&str, impl FnOnce(&Home, &LoopId) -> io::Result<()>),
) -> Result<Exit> {
    let answer = match find_requested(name) {
        Ok((home, record)) => ours(&home, &record.id)?,
        Err(error) => match error.downcast_ref() {
            Some(StoreError::Newer { id, made_by, is_over: true }) => clean_text(&format!(
                "loop {id} is already over; crew {made_by}, a newer version, recorded it"
            )),
            Some(StoreError::Newer { id, made_by, .. }) => {
                theirs(&terminal_home()?, id)?;
                clean_text(&format!("loop {id}: {what}; crew {made_by}, which runs it, acts on it"))
            }
            _ => return Err(error),
        },
    };
    print::page(&answer);
    Ok(Exit::SUCCESS)
}

/// All loops, the newest first. Reports why the others cannot be read.
fn read_all(home: &Home) -> Result<Vec<Loop>> {
    let (loops, others) = store::look_at_all(home)?;
    for error in others {
        print::err(&format!("crew: {error}"));
    }
    Ok(loops)
}

/// The working tree in which this was typed; without git the current folder.
fn current_checkout() -> Result<PathBuf> {
    let folder = env::current_folder()?;
    match git::find_top(&folder) {
        Some(top) => Ok(top),
        None => Ok(disk::real_path(&folder)?),
    }
}

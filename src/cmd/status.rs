//! `crew status`: the status of a loop, or of all loops. It only reads.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;

use super::watch::loop_views;
use super::{
    MANY, find_named, first_of, fleet, hint_at_names, list_loops, list_reading, print, read_all,
    terminal_home, terminal_reading,
};
use crate::cli::StatusArgs;
use crate::drive::end::complete_end;
use crate::drive::find::{find_loops, named_by, of_other_trees, of_working_tree};
use crate::drive::find::{on_another_host, owner_is_gone};
use crate::drive::page::{loop_view, read_page};
use crate::exit::Exit;
use crate::fleet::verbs::{Named, newest_here};
use crate::report::list::WindowRow;
use crate::report::{events, help, line, list, morning, page};
use engine::failure::Failure;
use engine::record::{Loop, Status};
use engine::view::LoopView;
use readers::clients::StatusLineInput;
use readers::clients::inside_an_agent;
use world::store::{self, Home};
use world::{clock, env, terminal};

/// Shows one loop or all of them.
pub fn show_status(arguments: &StatusArgs) -> Result<Exit> {
    if arguments.line {
        if let Ok(home) = terminal_home() {
            show_line(&home, arguments.name.as_deref());
        }
        return Ok(Exit::SUCCESS);
    }
    let home = terminal_home()?;
    if let Some(since) = arguments.since {
        return show_morning(&home, since, arguments.json);
    }
    if let Some(named) = find_named(&home, arguments.name.as_deref())? {
        return show_task(&home, named, arguments.json);
    }
    let folder = env::current_folder()?;
    let is_named = arguments.name.is_some();
    let loops = if arguments.all {
        read_all(&home)?
    } else {
        find_loops(&home, arguments.name.as_deref(), &folder)?
    };
    // Without a name nothing is ambiguous.
    let is_ambiguous = is_named && loops.len() > 1;
    if is_ambiguous {
        print::failure(&Failure::usage(MANY, hint_at_names(&loops)));
    }
    let exit = if is_ambiguous { Exit::USAGE } else { Exit::SUCCESS };
    if arguments.json {
        if let ([record], false) = (&*loops, arguments.all) {
            complete_end(&home, record);
        }
        show_json(&home, &loops);
        return Ok(exit);
    }
    match &*loops {
        [record] if !arguments.all => {
            show_loop(&home, record);
            let mut beside = if is_named { Vec::new() } else { of_other_trees(&home, &folder) };
            beside.retain(|other| other.is_live() && other.id != record.id);
            if !beside.is_empty() {
                print::page(&format!("\nin other working trees:\n{}", list_loops(&home, &beside)));
            }
        }
        [] if !arguments.all => print::out(&help::no_loop_here()),
        loops => {
            let list =
                if arguments.all { list_loops(&home, loops) } else { first_of(&home, loops) };
            print::page(&list);
            show_windows(&home);
        }
    }
    if !is_named && !arguments.all {
        point_to_a_fleet(&home, &folder);
    }
    Ok(exit)
}

/// Shows what happened on this machine within this time, and what needs a person.
fn show_morning(home: &Home, since: Duration, as_json: bool) -> Result<Exit> {
    let since = clock::now().wall - TimeDelta::from_std(since)?;
    let mut loops = read_all(home)?;
    loops.retain(|record| record.is_live() || record.last_at() >= since);
    if as_json {
        show_json(home, &loops);
        return Ok(Exit::SUCCESS);
    }
    let user = env::path("HOME");
    let at = list_reading(user.as_deref());
    let views = loop_views(home, &loops.iter().collect::<Vec<_>>());
    let rows = terminal::count_rows().map_or(usize::MAX, usize::from);
    print::page(&morning::render_morning(
        &views,
        &|record| read_page(home, record),
        since,
        at,
        rows,
    ));
    Ok(Exit::SUCCESS)
}

/// Names the fleet of this repository, whose loops work in other trees.
fn point_to_a_fleet(home: &Home, folder: &Path) {
    if let Some(fleet) = newest_here(home, folder) {
        print::out(&format!("\nfleet {fleet}: crew fleet status shows its tasks"));
    }
}

/// Shows a fleet, or the loop of one of its tasks with the task's status in the fleet.
fn show_task(home: &Home, named: Named, json: bool) -> Result<Exit> {
    let Some(id) = named.task.clone() else {
        return fleet::show_fleet(home, named.record, json, false);
    };
    let found = named.loop_of(home, &id);
    match found {
        Some(record) if json => show_json(home, &[record]),
        Some(record) => {
            print::page(&fleet::line_of_task(home, &named, &id));
            show_loop(home, &record);
        }
        None if json => show_json(home, &[]),
        None => print::page(&fleet::line_of_task(home, &named, &id)),
    }
    Ok(Exit::SUCCESS)
}

/// Prints the line of a live loop: the named one, else that of the session whose client runs this,
/// else that of this working tree. A status bar has no room for errors: what cannot be read is left
/// out.
fn show_line(home: &Home, name: Option<&str>) {
    let session = match name {
        // Only a client hands over a session; a shell's input belongs to the next reader.
        None if inside_an_agent(&env::raw) => StatusLineInput::parse(&terminal::offered_input()),
        _ => StatusLineInput::default(),
    };
    let folder =
        session.folder().clone().or_else(|| env::current_folder().ok()).unwrap_or_default();
    let of_the_session = session.session_id().as_ref().and_then(|id| {
        named_by(home, &home.session_pointer(id)).ok().flatten().filter(Loop::is_live)
    });
    let found = match name {
        Some(_) => match find_loops(home, name, &folder).as_deref() {
            Ok([only]) => Some(only.clone()),
            _ => None,
        },
        None => of_the_session.or_else(|| of_working_tree(home, &folder).ok().flatten()),
    };
    if let Some(record) = found.filter(Loop::is_live) {
        print::out(&line::short_line(&loop_view(home, &record)));
    }
}

fn show_loop(home: &Home, record: &Loop) {
    complete_end(home, record);
    print::page(&page::render_page(&read_page(home, record), terminal_reading()));
    if record.is_live()
        && let Some(why) = on_another_host(record)
    {
        print::failure(&why);
    }
    show_windows(home);
}

/// Prints loops as JSON.
fn show_json(home: &Home, loops: &[Loop]) {
    let views: Vec<LoopView<'_>> = loops.iter().map(|record| loop_view(home, record)).collect();
    let mut value = events::status_json(&views);
    value["windows"] = list::windows_json(&waiting_windows(home));
    print::json(&value);
}

/// The rate windows of this machine, with the loops that wait for them.
fn waiting_windows(home: &Home) -> Vec<WindowRow> {
    let windows = store::windows::list_windows(home);
    let mut loops = if windows.is_empty() { Vec::new() } else { store::load_all(home) };
    loops.retain(|record| record.state.status() == Status::Waiting && !owner_is_gone(home, record));
    list::window_rows(&windows, &loops, clock::now().wall)
}

fn show_windows(home: &Home) {
    let lines = list::windows_text(&waiting_windows(home), terminal_reading());
    if !lines.is_empty() {
        print::out("");
        print::folded(lines.trim_end());
    }
}

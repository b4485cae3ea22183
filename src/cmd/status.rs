//! `crew status`: the status of a loop, or how it ended. It only reads.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{MANY, all, first_of, home, listed, listing, print, reading, which};
use crate::cli::StatusArgs;
use crate::clients::LineFor;
use crate::clients::variables::inside_an_agent;
use crate::drive::end::complete;
use crate::drive::find::{Found, find, named_by, of_other_trees, of_working_tree};
use crate::drive::fleet::find::newest_here;
use crate::drive::owner::{elsewhere, owner_is_gone};
use crate::drive::page::read;
use crate::drive::session::dialog::waiting_dialog;
use crate::engine::record::{Loop, Status};
use crate::engine::window::RateWindow;
use crate::exit::Exit;
use crate::report::morning::{self, MorningLoop};
use crate::report::{help, json as report, line, page, windows as report_windows};
use crate::world::store::{self, Home};
use crate::world::{clock, env, input, terminal};

/// Shows one loop or all of them.
pub fn status(arguments: &StatusArgs) -> Result<Exit> {
    if arguments.line {
        if let Ok(home) = home() {
            show_line(&home, arguments.name.as_deref());
        }
        return Ok(Exit::SUCCESS);
    }
    let home = home()?;
    if let Some(since) = arguments.since {
        return show_morning(&home, since, arguments.json);
    }
    if arguments.all {
        show_list(&home, all(&home)?, arguments.json);
        return Ok(Exit::SUCCESS);
    }
    let folder = env::current_folder()?;
    match find(&home, arguments.name.as_deref(), &folder)? {
        Found::One(record) => {
            let id = record.id.clone();
            show(&home, *record, arguments.json);
            if !arguments.json {
                show_windows(&home);
            }
            if arguments.name.is_none() && !arguments.json {
                let mut beside = of_other_trees(&home, &folder);
                beside.retain(|it| it.is_live() && it.id != id);
                if !beside.is_empty() {
                    print::page(&format!("\nin other working trees:\n{}", listed(&home, &beside)));
                }
                point_to_a_fleet(&home, &folder);
            }
            Ok(Exit::SUCCESS)
        }
        Found::None => {
            if arguments.json {
                show_list(&home, Vec::new(), true);
            } else {
                print::out(&help::no_loop_here());
                point_to_a_fleet(&home, &folder);
            }
            Ok(Exit::SUCCESS)
        }
        Found::Many(loops) => {
            // If nobody named one, none is ambiguous.
            let is_ambiguous = arguments.name.is_some();
            if is_ambiguous {
                print::err(&format!("crew: {MANY}\nhint: {}", which(&loops)));
            }
            if arguments.json {
                show_list(&home, loops, true);
            } else {
                print::page(&first_of(&home, &loops));
                show_windows(&home);
                if !is_ambiguous {
                    point_to_a_fleet(&home, &folder);
                }
            }
            Ok(if is_ambiguous { Exit::USAGE } else { Exit::SUCCESS })
        }
    }
}

/// The most loops whose pages are read for the morning: each compares a working tree.
const PAGES: usize = 20;

/// Shows what happened since then on this machine, and what needs a person.
fn show_morning(home: &Home, since: Duration, as_json: bool) -> Result<Exit> {
    let now = clock::now().wall;
    let since = TimeDelta::from_std(since)?;
    let mut loops = all(home)?;
    loops.retain(|record| record.is_live() || now - record.last_at() <= since);
    if as_json {
        show_list(home, loops, true);
        return Ok(Exit::SUCCESS);
    }
    let told = loops.into_iter().enumerate().map(|(index, record)| MorningLoop {
        is_held: owner_is_gone(home, &record) || waiting_dialog(&record).is_some(),
        page: if index < PAGES { Some(read(home, &record)) } else { None },
        record,
    });
    let told: Vec<MorningLoop> = told.collect();
    let rows = terminal::rows().map_or(usize::MAX, usize::from);
    let user = env::path("HOME");
    print::page(&morning::text(&told, now - since, listing(user.as_deref()), rows));
    Ok(Exit::SUCCESS)
}

/// Names the fleet of this repository: its loops work in other trees.
fn point_to_a_fleet(home: &Home, folder: &Path) {
    if let Some(fleet) = newest_here(home, folder) {
        print::out(&format!("\nfleet {}: crew fleet status shows its tasks", fleet.name));
    }
}

/// The line of a live loop: of the named one, else of the session whose client runs this, else of
/// this working tree. An error has no place in a prompt or a status bar: what cannot be read is
/// left out.
fn show_line(home: &Home, name: Option<&str>) {
    let session = match name {
        // Only a client hands over a session; a shell's input is left to what reads it next.
        None if inside_an_agent(&env::raw) => LineFor::read(&input::offered()),
        _ => LineFor::default(),
    };
    let folder = session.folder.or_else(|| env::current_folder().ok()).unwrap_or_default();
    let of_the_session = session.session_id.and_then(|id| {
        named_by(home, &home.session_pointer(&id)).ok().flatten().filter(Loop::is_live)
    });
    let found = match name {
        Some(_) => match find(home, name, &folder) {
            Ok(Found::One(record)) => Some(*record),
            _ => None,
        },
        None => of_the_session.or_else(|| of_working_tree(home, &folder).ok().flatten()),
    };
    if let Some(record) = found.filter(Loop::is_live) {
        let gone = owner_is_gone(home, &record);
        let pausing = if !gone && store::is_pausing(home, &record) { " · pausing" } else { "" };
        let dialog = waiting_dialog(&record).filter(|_| !gone).map_or("", |_| " · at a dialog");
        print::out(&format!("{}{pausing}{dialog}", line::short(&record, gone, clock::local())));
    }
}

fn show(home: &Home, record: Loop, as_json: bool) {
    complete(home, &record);
    if as_json {
        let gone = owner_is_gone(home, &record);
        print::json(&with_orders(home, &[(record, gone)]));
        return;
    }
    print::page(&page::text(&read(home, &record), reading()));
    if let Some(why) = elsewhere(&record).filter(|_| record.is_live()) {
        print::err(&format!("crew: {why}"));
    }
}

fn with_orders(home: &Home, told: &[(Loop, bool)]) -> Value {
    let mut value = report::status(told);
    let (windows, loops) = shared(home);
    value["windows"] = report_windows::json(&windows, &loops, clock::now().wall);
    for (index, (record, _)) in told.iter().enumerate() {
        value["loops"][index]["pausing"] = store::is_pausing(home, record).into();
        value["loops"][index]["dialog"] = json!(waiting_dialog(record));
    }
    value
}

fn show_list(home: &Home, loops: Vec<Loop>, as_json: bool) {
    if as_json {
        let told = loops.into_iter().map(|record| {
            let gone = owner_is_gone(home, &record);
            (record, gone)
        });
        print::json(&with_orders(home, &told.collect::<Vec<_>>()));
    } else {
        print::page(&listed(home, &loops));
        show_windows(home);
    }
}

/// The rate windows of this machine, and the loops that may wait for them.
fn shared(home: &Home) -> (Vec<RateWindow>, Vec<Loop>) {
    let windows = store::windows::all(home);
    let loops = if windows.is_empty() { Vec::new() } else { store::load_all(home) };
    let waits = |it: &Loop| it.state.status == Status::Waiting && !owner_is_gone(home, it);
    (windows, loops.into_iter().filter(waits).collect())
}

fn show_windows(home: &Home) {
    let (windows, loops) = shared(home);
    let lines = report_windows::lines(&windows, &loops, reading());
    if !lines.is_empty() {
        print::out("");
        print::folded(lines.trim_end());
    }
}

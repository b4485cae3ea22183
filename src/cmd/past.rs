//! The verbs for what loops left: `crew history`; `crew diff`; `crew back`, which restores the
//! working tree of an iteration; `crew prove`, which runs the checks without the work; and `crew
//! clean`, which removes records.

use super::{
    current_checkout, find_named, find_requested, leave_to_a_person, list_reading, print, read_all,
    terminal_home,
};
use crate::cli::{CleanArgs, HistoryArgs};
use crate::drive;
use crate::drive::end::clean;
use crate::drive::failure::failure_of;
use crate::drive::find::is_here;
use crate::drive::tree::back::{self, diff_of_iteration, unseen_changes_note};
use crate::exit::Exit;
use crate::fleet::store as fleets;
use crate::report::list;
use anyhow::{Error, Result, bail};
use engine::failure::Failure;
use engine::record::{Loop, Totals};
use engine::test_changes::WithoutWork;
use engine::text::{EscapedLine, count, format_briefly, format_size, join_first_names};
use engine::view::LoopView;
use readers::parse::requests::parse_iterations;
use std::time::Duration;
use world::process::signals::Signals;
use world::store::{self, Home, removal};
use world::{clock, env, git, terminal};

/// The columns of a summary off a terminal.
const STAT_COLUMNS: u16 = 100;

/// Prints what the requested loop changed, or the iterations that the last word names; on a
/// terminal through the pager of the user's git.
pub fn show_difference(words: &[String], is_summary: bool) -> Result<Exit> {
    let of = words.last().and_then(|word| parse_iterations(word));
    if let (None, Some(word)) = (of, words.last().filter(|word| word.contains(".."))) {
        bail!(Failure::usage(format!("`{word}` is not a range of iterations"), "crew diff 2..6"));
    }
    let names = &words[..words.len() - usize::from(of.is_some())];
    let ([] | [_]) = names else {
        bail!(Failure::usage(
            format!("`{}` is not an iteration", names[1]),
            "crew diff LOOP 4, crew diff LOOP 2..6"
        ))
    };
    let name = names.first().map(String::as_str);
    let columns = terminal::count_columns().unwrap_or(STAT_COLUMNS);
    let summary = if is_summary { Some(columns) } else { None };
    if let (Some(named), None) = (find_named(&terminal_home()?, name)?, of)
        && let Some(text) = named.fetched_difference(&terminal_home()?, summary)?
    {
        print::show_difference(&text, terminal_home()?.root())?;
        return Ok(Exit::SUCCESS);
    }
    let (home, record) = find_requested(name)?;
    let text = diff_of_iteration(&home, &record, of, summary)?;
    if of.is_none()
        && let Some(unseen) = unseen_changes_note(&home, &record)
    {
        print::aside(&unseen);
    } else if text.is_empty() {
        print::aside("no changes");
    }
    print::show_difference(&text, home.root())?;
    Ok(Exit::SUCCESS)
}

/// Lists the loops that ended in this repository, or on this machine, newest first, with their
/// totals.
pub fn show_history(arguments: &HistoryArgs) -> Result<Exit> {
    let folder = env::current_folder()?;
    let mut here = git::head::list_roots(&folder);
    here.push(current_checkout()?);
    let shared = git::shared_folder(&folder);
    let home = terminal_home()?;
    // The clone of a task has a repository of its own, and is gone after its landing.
    let mut fleets = fleets::list_names(&home)?;
    fleets.retain(|name| {
        let fleet = fleets::read_local(&home, name).ok().flatten();
        fleet.is_some_and(|fleet| here.contains(&fleet.terms.repository))
    });
    let mut loops = read_all(&home)?;
    let now = clock::local_time();
    loops.retain(|record| {
        let age = (now.to_utc() - record.last_at()).to_std().unwrap_or_default();
        // The repository also identifies a working tree that is gone.
        let is_of_repository = match (&record.place.repository, &shared) {
            (Some(own), Some(shared)) => own.starts_with(shared),
            _ => false,
        };
        !record.is_live()
            && (arguments.all
                || here.contains(&record.place.checkout)
                || is_of_repository
                || record.fleet.as_ref().is_some_and(|task| fleets.contains(&task.name)))
            && arguments.outcome.is_none_or(|outcome| record.outcome() == Some(outcome))
            && arguments.since.is_none_or(|since| age <= since)
    });
    let totals = Totals::from_loops(&loops);
    if arguments.limit > 0 {
        loops.truncate(usize::try_from(arguments.limit).unwrap_or(usize::MAX));
    }
    let views: Vec<LoopView<'_>> =
        loops.iter().map(|record| LoopView::from_record(record, now)).collect();
    if arguments.json {
        print::json(&list::history_json(&views, &totals));
    } else if loops.is_empty() {
        let is_any = arguments.outcome.is_none() && arguments.since.is_none();
        let what = if is_any { "no loop has" } else { "no such loop has" };
        let place = if arguments.all { "on this machine" } else { "here" };
        print::out(&format!("{what} ended {place}\n"));
    } else {
        let user = env::path("HOME");
        let at = list_reading(user.as_deref());
        print::page(&list::render_history(&views, &totals, at, arguments.all));
    }
    Ok(Exit::SUCCESS)
}

/// The maximum number of files named of those written, and of those removed.
const FILES_NAMED: usize = 10;

/// Restores the working tree of an iteration, which the last word names.
pub fn restore_tree(words: &[String]) -> Result<Exit> {
    leave_to_a_person("bring the working tree back")?;
    let (name, word) = match words {
        [word] => (None, word),
        [name, word] => (Some(name.as_str()), word),
        _ => bail!(Failure::usage("back needs an iteration", "crew back 3")),
    };
    if !back::is_target(word) {
        bail!(Failure::usage(format!("`{word}` is not an iteration"), "crew back 3"));
    }
    let (home, record) = find_requested(name)?;
    if name.is_none() && !is_here(&record, &env::current_folder()?) {
        let id = &record.id;
        bail!(Failure::usage("no loop works in this folder", format!("crew back {id} {word}")));
    }
    let restored = back::restore_iteration(&home, &record, word)?;
    let has_git = record.place.head.is_some() || record.branch().is_some();
    let git = if has_git { "; HEAD and the branch are as they were" } else { "" };
    let mut lines = vec![
        format!("back at {word}{git}"),
        format!("  written  {}", name_files(&restored.written)),
        format!("  removed  {}", name_files(&restored.removed)),
        format!("  undo     crew back {} {}", record.id, restored.kept_as),
    ];
    let left = restored.left.iter().map(|left| format!("  left     {}", left.display()));
    lines.extend(left);
    print::out(&lines.join("\n"));
    Ok(Exit::SUCCESS)
}

fn name_files(paths: &[String]) -> String {
    match paths {
        [] => "nothing".to_owned(),
        _ => format!(
            "{}: {}",
            count(paths.len() as u64, "file"),
            join_first_names(paths, FILES_NAMED)
        ),
    }
}

/// Runs the checks without the requested loop's work and prints the result. The exit code is 0 only
/// for `proven`.
pub fn prove_loop(name: Option<&str>) -> Result<Exit> {
    leave_to_a_person("have its own work proven")?;
    let (home, record) = find_requested(name)?;
    let signals = Signals::listen()?;
    let (trial, proof) = drive::end::prove::prove_by_hand(&home, &record, &|| signals.times() > 0)?;
    let had = record.state.end().ending().as_ref().and_then(|ending| ending.proof);
    let (text, exit) = match trial {
        WithoutWork::Proven(how) => (format!("proven: {how}"), Exit::SUCCESS),
        WithoutWork::Failed(why) | WithoutWork::Impossible(why) => {
            let other = proof.filter(|proof| Some(*proof) != had);
            let other = other.map(|proof| format!("; its proof is `{}` now", proof.label()));
            (format!("not proven: {why}{}", other.unwrap_or_default()), Exit::ERROR)
        }
    };
    print::out(&format!("loop {}: {text}", record.id));
    Ok(exit)
}

/// The age from which an ended loop is removed without being named.
const AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Removes the loops that were named, or those that ended long ago.
pub fn clean_records(arguments: &CleanArgs) -> Result<Exit> {
    leave_to_a_person("remove records")?;
    let home = terminal_home()?;
    let mut refused = clean::finish_removals(&home);
    store::windows::remove_over(&home, clock::now().wall);
    let age = match arguments.older_than {
        None if arguments.names.is_empty() => Some(AGE),
        older_than => older_than,
    };
    let (loops, kept) = loops_to_remove(&home, arguments, age)?;
    if loops.is_empty() {
        let age =
            format_briefly(u64::try_from(age.unwrap_or_default().as_millis()).unwrap_or(u64::MAX));
        print::folded(&match kept {
            0 => format!("nothing to remove: no loop ended more than {age} ago"),
            kept => format!(
                "nothing to remove: {} ended more than {age} ago, but can still be resumed where \
                 it ran; crew clean LOOP removes one all the same",
                count(kept as u64, "loop")
            ),
        });
        return Ok(print_refusals(&refused));
    }
    list_removable(&home, &loops);
    let question = "Remove their records, logs and snapshots?";
    print::confirm(arguments.yes, question, "removed", "crew clean")?;
    let cleaned = clean::remove_loops(&home, &loops);
    print::out(&format!(
        "removed {} with all snapshots, {} freed",
        count(cleaned.removed, "loop"),
        format_size(cleaned.freed)
    ));
    refused.extend(cleaned.refused);
    Ok(print_refusals(&refused))
}

/// Prints why loops stay, and returns the exit code.
fn print_refusals(refused: &[Error]) -> Exit {
    for error in refused {
        print::failure(&failure_of(error));
    }
    if refused.is_empty() { Exit::SUCCESS } else { Exit::ERROR }
}

/// The ended loops to remove: those that were named, or all, of the requested age. With `--yes`
/// names must be whole ids. Also returns how many loops of that age are kept because an open client
/// could resume them.
fn loops_to_remove(
    home: &Home,
    arguments: &CleanArgs,
    age: Option<Duration>,
) -> Result<(Vec<Loop>, usize)> {
    let names = &arguments.names;
    if names.is_empty() {
        return Ok(clean::ended_before(read_all(home)?, age.unwrap_or(AGE)));
    }
    let mut loops: Vec<Loop> = Vec::new();
    for name in names {
        let (_, record) = find_requested(Some(name))?;
        if arguments.yes && record.id.as_str() != name {
            bail!(Failure::usage(
                format!(
                    "with --yes a loop is named by its whole id, not by `{}`",
                    EscapedLine(name)
                ),
                format!("crew clean {} --yes", record.id)
            ));
        }
        if record.is_live() {
            let (id, status) = (&record.id, record.status_word());
            bail!(Failure::new(
                format!("loop {id} is {status}, so its record stays"),
                format!("crew cancel {id} ends it")
            ));
        }
        if !loops.iter().any(|known| known.id == record.id) {
            loops.push(record);
        }
    }
    Ok(match age {
        Some(age) => clean::ended_before(loops, age),
        None => (loops, 0),
    })
}

fn list_removable(home: &Home, loops: &[Loop]) {
    let user = env::path("HOME");
    let at = list_reading(user.as_deref());
    // The size that removing them would free does not include their snapshots.
    let views = loops.iter().map(|record| LoopView {
        bytes: removal::loop_bytes(home, &record.id),
        ..LoopView::from_record(record, at.reading.clock())
    });
    print::page(&list::render_list(list::REMOVABLE, &views.collect::<Vec<_>>(), at));
}

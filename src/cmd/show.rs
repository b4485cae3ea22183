//! `crew show`: the whole story of a loop, from its record and its journal; both are only read.

use std::path::Path;

use anyhow::{Result, bail};

use super::{follow, print, reading, requested};
use crate::cli::ShowArgs;
use crate::drive::owner::owner_is_gone;
use crate::drive::page;
use crate::engine::doctor::shell_word;
use crate::engine::journal::story::Story;
use crate::engine::page::{Page, Step};
use crate::engine::record::Loop;
use crate::exit::Exit;
use crate::parse::arguments::UsageError;
use crate::parse::fragment::plain;
use crate::report::show as words;
use crate::report::show::StoryPage;
use crate::world::env;
use crate::world::files::disk::{self, Durability};
use crate::world::git::drafts;
use crate::world::git::snapshots::Snapshots;
use crate::world::store::{Home, logs};

/// Shows the requested loop, one iteration of it, or what its agent printed.
pub fn show(arguments: &ShowArgs) -> Result<Exit> {
    let (home, record) = requested(arguments.name.as_deref())?;
    if arguments.log {
        let shown = follow::LogView {
            iteration: arguments.iteration,
            follow: arguments.follow,
            raw: arguments.raw,
        };
        follow::log(&home, record, shown)?;
        return Ok(Exit::SUCCESS);
    }
    if let Some(file) = &arguments.before {
        return before(&home, &record, file);
    }
    let story = page::story(&home, &record, arguments.iteration)?;
    if let Some(number) = arguments.iteration {
        iteration(&home, &record, &story, number, arguments.json)?;
        return Ok(Exit::SUCCESS);
    }
    let page = page::of(&home, &record, &story);
    let known = story_page(&home, &record, &story, &page);
    if let Some(file) = &arguments.html {
        refuse_a_folder(&record, file)?;
        let page = words::html::html(&known);
        disk::write(file, page.as_bytes(), Durability::Process)?;
        print::out(&format!("story of loop {}: {}", record.id, file.display()));
    } else if arguments.json {
        print::json(&words::json(&known));
    } else {
        print::out(&words::page(&known));
    }
    Ok(Exit::SUCCESS)
}

/// Shows the loop of a task. One that its fleet has given up would name the way of a loop that goes
/// on: `steps` are the way out then.
pub fn of_task(home: &Home, record: &Loop, steps: Vec<Step>) -> Result<()> {
    let story = page::story(home, record, None)?;
    let mut page = page::of(home, record, &story);
    let mut steps = steps.into_iter().filter(|_| record.is_live());
    if let Some(next) = steps.next() {
        (page.next, page.then) = (next, steps.next());
    }
    print::out(&words::page(&story_page(home, record, &story, &page)));
    Ok(())
}

fn story_page<'a>(
    home: &Home,
    record: &'a Loop,
    story: &'a Story,
    page: &'a Page,
) -> StoryPage<'a> {
    let owner_is_gone = owner_is_gone(home, record);
    StoryPage { record, owner_is_gone, story, page, reading: reading() }
}

/// A page is written to a file, and none has the name of a folder.
fn refuse_a_folder(record: &Loop, file: &Path) -> Result<()> {
    if !disk::is_folder(file) {
        return Ok(());
    }
    let (id, inside) = (&record.id, file.join(format!("{}.html", record.id)));
    bail!(UsageError::new(
        format!("{} is a folder, and --html needs the path of a file", file.display()),
        format!("crew show {id} --html {}", shell_word(&inside.display().to_string()))
    ))
}

/// Prints the run's copy of a file; a path starts at this folder, or at the checkout's root.
fn before(home: &Home, record: &Loop, file: &Path) -> Result<Exit> {
    let here = env::current_folder()?;
    let here = disk::real_path(&here).unwrap_or(here).join(file);
    let here = plain(&here).unwrap_or(here);
    let inside = here.strip_prefix(&record.place.checkout).unwrap_or(file);
    let kept = match drafts::before(home, &record.id, inside)? {
        None => drafts::before(home, &record.id, file)?,
        kept => kept,
    };
    let snapshots = Snapshots::of(home, record);
    let as_found = || {
        let path = inside.to_str()?;
        snapshots.named(&record.id, "0").and_then(|found| snapshots.blob(&found, path))
    };
    let Some(kept) = kept.or_else(as_found) else {
        bail!(
            "loop {} keeps no copy of {}: git ignored it when the loop began, it is too large, or it \
             was not there\nhint: git show HEAD:FILE for what is committed",
            record.id,
            file.display()
        );
    };
    print::bytes(&kept);
    Ok(Exit::SUCCESS)
}

fn iteration(home: &Home, record: &Loop, story: &Story, number: u32, as_json: bool) -> Result<()> {
    let log = Some(logs::path(home, &record.id, number)).filter(|log| disk::exists(log));
    let log = log.as_deref();
    let Some(picked) = story.picked() else {
        let id = &record.id;
        if number != record.iteration() || !record.is_live() {
            let ended = record.state.completed;
            bail!("loop {id} has no iteration {number}: {ended} ended\nhint: crew show {id}");
        }
        let hint = match log {
            Some(log) => format!("crew show {id} --log -f, or {}", log.display()),
            None => "crew watch".to_owned(),
        };
        bail!("iteration {number} of loop {id} is not over\nhint: {hint}");
    };
    if as_json {
        print::json(&words::iteration_json(record, picked, log));
    } else {
        print::folded(&words::iteration(record, picked, log));
    }
    Ok(())
}

//! `crew show`: the whole story of a loop, from its record and its journal; both are only read.

use std::path::Path;

use anyhow::{Result, bail};

use super::{follow, print, reading, requested};
use crate::cli::ShowArgs;
use crate::drive::page;
use crate::engine::doctor::shell_word;
use crate::engine::evidence::{IterationStatus, Progress};
use crate::engine::journal::story::{Chapter, Iteration, Story, What};
use crate::engine::record::Loop;
use crate::engine::view::{Page, Step, lines};
use crate::exit::Exit;
use crate::parse::arguments::UsageError;
use crate::report::show as words;
use crate::report::show::StoryPage;
use crate::world::files::disk::{self, Durability};
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
    if let Some(number) = arguments.iteration.filter(|_| arguments.prompt) {
        return prompt(&home, &record, number);
    }
    let mut story = page::story(&home, &record, arguments.iteration)?;
    if let Some(number) = arguments.iteration {
        iteration(&home, &record, &story, number, arguments.json)?;
        return Ok(Exit::SUCCESS);
    }
    let mut page = page::of(&home, &record, &story);
    if arguments.only.is_some() || arguments.last.is_some() {
        let newest = arguments.last.map_or(usize::MAX, |last| last as usize);
        let is_wanted = |it: &Iteration| match arguments.only.as_deref() {
            Some("failed") => it.evidence.status == IterationStatus::Failed,
            Some("timed-out") => it.evidence.status == IterationStatus::TimedOut,
            Some(_) => it.evidence.progress == Progress::None,
            None => true,
        };
        let is_kept =
            |it: &Chapter| matches!(&it.what, What::Iteration(iteration) if is_wanted(iteration));
        story.chapters.keep(is_kept, newest);
        (page.iterations, page.earlier) = (lines(&record, &story, newest), 0);
    }
    let known = story_page(&home, &record, &story, &page);
    if let Some(file) = &arguments.html {
        refuse_a_folder(&record, file)?;
        let page = words::html::html(&known);
        disk::write(file, page.as_bytes(), Durability::Process)?;
        print::out(&format!("story of loop {}: {}", record.id, file.display()));
    } else if arguments.json {
        print::json(&words::json(&known));
    } else {
        print::page(&words::page(&known));
    }
    Ok(Exit::SUCCESS)
}

/// Prints the prompt that an iteration was started with.
fn prompt(home: &Home, record: &Loop, number: u32) -> Result<Exit> {
    let Some(text) = logs::read_prompt(home, &record.id, number) else {
        bail!(
            "no prompt of iteration {number} of loop {0} is kept: crew run keeps those of its iterations, \
             and deletes them with its logs\nhint: crew show {0}",
            record.id
        );
    };
    print::out(text.trim_end());
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
    print::page(&words::page(&story_page(home, record, &story, &page)));
    Ok(())
}

fn story_page<'a>(
    home: &Home,
    record: &'a Loop,
    story: &'a Story,
    page: &'a Page,
) -> StoryPage<'a> {
    StoryPage { view: page::view(home, record), story, page, reading: reading() }
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
        print::folded_heads(&words::iteration(record, picked, log, reading().offset));
    }
    Ok(())
}

//! `crew show`: the whole story of a loop, from its record and its journal, which are only read.

use super::{find_named, find_requested, fleet, log, print, terminal_home, terminal_reading};
use crate::cli::ShowArgs;
use crate::drive::page;
use crate::exit::Exit;
use crate::report::show as words;
use crate::report::show::StoryPage;
use anyhow::{Result, bail};
use engine::doctor::shell_word;
use engine::evidence::Progress;
use engine::failure::Failure;
use engine::journal::story::{Chapter, Story, StoryEvent};
use engine::record::Loop;
use engine::text::variant_name;
use engine::view::{Page, newest_lines};
use std::path::Path;
use world::files::disk::{self, Durability};
use world::logs;
use world::store::Home;

/// Shows the requested loop, one iteration of it, or what its agent printed.
pub fn show_story(arguments: &ShowArgs) -> Result<Exit> {
    let home = terminal_home()?;
    if let Some(named) = find_named(&home, arguments.name.as_deref())? {
        let ShowArgs { iteration, last, only, html, .. } = arguments;
        let is_part = arguments.log || iteration.is_some() || last.is_some() || only.is_some();
        // These parts are only in the record of the loop; below they fail where that is elsewhere.
        let is_of_its_loop = is_part || html.is_some();
        let Some(id) = named.task.clone() else {
            if is_of_its_loop {
                named.own_loop(&home)?;
            }
            return fleet::show_fleet(&home, named.record, arguments.json, false);
        };
        if !is_of_its_loop && named.loop_of(&home, &id).is_none() {
            return fleet::show_task(&home, &named, &id, arguments.json);
        }
        if !is_of_its_loop && !arguments.json {
            print::page(&fleet::line_of_task(&home, &named, &id));
            fleet::print_refused_landing(&named, &id);
        }
    }
    let (home, record) = find_requested(arguments.name.as_deref())?;
    if arguments.log {
        log::print_log(&home, record, arguments)?;
        return Ok(Exit::SUCCESS);
    }
    if arguments.prompt
        && let Some(number) = arguments.iteration
    {
        return print_prompt(&home, &record, number);
    }
    let mut story = page::read_story(&home, &record, arguments.iteration)?;
    if let Some(number) = arguments.iteration {
        return show_iteration(&home, &record, &story, number, arguments.json);
    }
    let mut page = page::page_of_story(&home, &record, &story, false);
    if arguments.only.is_some() || arguments.last.is_some() {
        let newest = arguments.last.map_or(usize::MAX, |last| last as usize);
        let only = arguments.only.as_deref();
        story.chapters.keep(|chapter| is_iteration(chapter, only), newest);
        (page.iterations, page.earlier) = (newest_lines(&record, &story, newest), 0);
    }
    let known = story_page(&home, &record, &story, &page);
    if let Some(file) = &arguments.html {
        refuse_a_folder(&record, file)?;
        let page = words::html::render_html(&known);
        disk::write(file, page.as_bytes(), Durability::Process)?;
        print::out(&format!("story of loop {}: {}", record.id, file.display()));
    } else if arguments.json {
        print::json(&words::story_json(&known));
    } else {
        print::page(&words::story_page(&known));
    }
    Ok(Exit::SUCCESS)
}

/// Whether a chapter is an iteration, of the kind that `--only` names.
fn is_iteration(chapter: &Chapter, only: Option<&str>) -> bool {
    let StoryEvent::Iteration(iteration) = chapter.what() else { return false };
    match only {
        Some("no-progress") => iteration.evidence.progress == Progress::None,
        Some(kind) => variant_name(&iteration.evidence.status) == kind.replace('-', "_"),
        None => true,
    }
}

/// Prints the prompt that an iteration was started with.
fn print_prompt(home: &Home, record: &Loop, number: u32) -> Result<Exit> {
    let Some(text) = logs::read_prompt(home, &record.id, number) else {
        let id = &record.id;
        bail!(Failure::new(
            format!(
                "no prompt of iteration {number} of loop {id} is kept: crew run keeps those of its \
                 iterations, and deletes them with its logs"
            ),
            format!("crew show {id}")
        ));
    };
    print::out(text.trim_end());
    Ok(Exit::SUCCESS)
}

fn story_page<'a>(
    home: &Home,
    record: &'a Loop,
    story: &'a Story,
    page: &'a Page,
) -> StoryPage<'a> {
    StoryPage { view: page::loop_view(home, record), story, page, reading: terminal_reading() }
}

/// Fails if the path for the HTML page is a folder.
fn refuse_a_folder(record: &Loop, file: &Path) -> Result<()> {
    if !disk::is_folder(file) {
        return Ok(());
    }
    let (id, inside) = (&record.id, file.join(format!("{}.html", record.id)));
    bail!(Failure::usage(
        format!("{} is a folder, and --html needs the path of a file", file.display()),
        format!("crew show {id} --html {}", shell_word(&inside.display().to_string()))
    ))
}

fn show_iteration(
    home: &Home,
    record: &Loop,
    story: &Story,
    number: u32,
    json: bool,
) -> Result<Exit> {
    let log = logs::log_path(home, &record.id, number);
    let log = if disk::exists(&log) { Some(&*log) } else { None };
    let Some(picked) = story.picked() else {
        let id = &record.id;
        if number != record.iteration() || !record.is_live() {
            let ended = record.state.counts().completed();
            bail!(Failure::new(
                format!("loop {id} has no iteration {number}: {ended} ended"),
                format!("crew show {id}")
            ));
        }
        let hint = match log {
            Some(log) => format!("crew show {id} --log -f, or {}", log.display()),
            None => "crew watch".to_owned(),
        };
        bail!(Failure::new(format!("iteration {number} of loop {id} is not over"), hint));
    };
    if json {
        print::json(&words::iteration_json(record, picked, log));
    } else {
        print::folded_heads(&words::iteration_page(record, picked, log, terminal_reading().offset));
    }
    Ok(Exit::SUCCESS)
}

//! `crew show`: the whole story of a loop, from its record and its journal, which are only read; or
//! the log of an iteration: what its agent did, or what it printed, once or as it grows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::{find_named, find_requested, fleet, print, terminal_home, terminal_reading};
use crate::cli::ShowArgs;
use crate::drive::find::{gone_reason, owner_is_gone};
use crate::drive::page;
use crate::drive::run::who_worked;
use crate::exit::Exit;
use crate::report::show as words;
use crate::report::show::StoryPage;
use engine::doctor::shell_word;
use engine::evidence::Progress;
use engine::failure::Failure;
use engine::journal::story::{Chapter, Story, StoryEvent};
use engine::record::{Agent, Driver, Loop};
use engine::text::{decode_line, variant_name};
use engine::view::{Page, newest_lines};
use readers::agents;
use readers::agents::activity::Activity;
use readers::agents::{OutputReader, activity};
use world::files::disk;
use world::files::disk::Durability;
use world::logs::Tail;
use world::process::{ERRORS_MARK, LineCutter, LinePiece};
use world::store::Home;
use world::{clock, logs, store};

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
        print_log(&home, record, arguments)?;
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

/// The maximum number of bytes shown of a log; no more are kept.
const SHOWN: u64 = 20 << 20;
/// The bytes of earlier output that `-f` shows.
const BEFORE: u64 = 16 << 10;
/// The same for an agent's events, of which only a small part is shown.
const BEFORE_EVENTS: u64 = 128 << 10;
/// The time between two looks at a log.
const LOOK: Duration = Duration::from_millis(200);
/// The longest line that is waited for, in bytes.
const LINE: usize = 64 << 10;
/// The line in place of output that cannot be rendered, because its agent is unknown.
const OTHER: &str = "here is more, perhaps of another agent: crew show --log --raw";
/// The longest event that is read, in bytes; the rest of a longer line is left out.
const EVENT: usize = 8 << 20;

/// Prints the log of an iteration, the latest without a number: what the agent did, or with `--raw`
/// what it printed. `--follow` continues, across iterations, until the loop is over or its owner is
/// gone.
pub fn print_log(home: &Home, record: Loop, shown: &ShowArgs) -> Result<()> {
    let iteration = shown.iteration.unwrap_or_else(|| latest_iteration(home, &record));
    let is_due = shown.follow && may_come(&record, iteration);
    let path = if is_due {
        logs::log_path(home, &record.id, iteration)
    } else {
        kept_log(home, &record, iteration)?
    };
    let rendering = rendering_for(home, &record, iteration, shown);
    let before = if rendering.is_some() { BEFORE_EVENTS } else { BEFORE };
    let most = if shown.follow { before } else { SHOWN };
    let mut lines = Lines::open(&path, most, rendering, shown.raw)?;
    if shown.follow {
        return follow_on(home, record, iteration, shown, lines);
    }
    lines.pass_on(true, print::offer)?;
    Ok(())
}

fn rendering_for(
    home: &Home,
    record: &Loop,
    iteration: u32,
    shown: &ShowArgs,
) -> Option<Rendering> {
    if shown.raw { None } else { Rendering::for_iteration(home, record, iteration) }
}

/// What the agent of the latest iteration did last, rendered from the last bytes of its log.
pub fn last_steps(home: &Home, record: &Loop, bytes: u64) -> Result<String> {
    let iteration = latest_iteration(home, record);
    let path = kept_log(home, record, iteration)?;
    let mut steps = String::new();
    let mut lines =
        Lines::open(&path, bytes, Rendering::for_iteration(home, record, iteration), false)?;
    lines.pass_on(true, |text| {
        steps += text;
        true
    })?;
    Ok(steps)
}

fn follow_on(
    home: &Home,
    mut record: Loop,
    mut iteration: u32,
    shown: &ShowArgs,
    mut lines: Lines,
) -> Result<()> {
    loop {
        let gone = owner_is_gone(home, &record);
        let is_whole = record.iteration() > iteration || !record.is_live() || gone;
        if !lines.pass_on(is_whole, print::offer)? {
            return Ok(());
        }
        if record.iteration() > iteration {
            if shown.iteration.is_some() {
                return Ok(());
            }
            iteration += 1;
            print::err(&format!("crew: iteration {iteration}"));
            let log = logs::log_path(home, &record.id, iteration);
            let rendering = rendering_for(home, &record, iteration, shown);
            lines = Lines::open(&log, SHOWN, rendering, shown.raw)?;
            continue;
        }
        if !record.is_live() {
            print::err(&format!("crew: loop {} is over: {}", record.id, record.status_word()));
            return Ok(());
        }
        if gone {
            print::err(&format!("crew: loop {}: {}", record.id, gone_reason(&record)));
            return Ok(());
        }
        clock::sleep(LOOK);
        // The record is read before the log: once it says that the loop is over, the log is
        // complete.
        record = store::load(home, &record.id)?;
    }
}

/// A log that is printed in whole lines: a read may stop in the middle of a character or a code.
struct Lines {
    tail: Tail,
    cutter: LineCutter,
    /// `None` shows the output as it was printed.
    rendering: Option<Rendering>,
    /// Whether crew's mark of standard error is left out.
    is_raw: bool,
}

/// Renders the events of the agents that worked, one after the other.
struct Rendering {
    agents: Vec<Agent>,
    reader: OutputReader,
    /// Whether lines were read in which the reader found nothing; `None` once it is known to fit.
    is_lost: Option<bool>,
    steps: Vec<Activity>,
}

impl Rendering {
    /// `None` where no agent reports events, and in a session.
    fn for_iteration(home: &Home, record: &Loop, iteration: u32) -> Option<Self> {
        let agents: Vec<Agent> = record.contract.run.as_ref()?.agents().cloned().collect();
        let reader = agents::create_reader(&who_worked(home, record, iteration)?);
        if !agents.iter().any(agents::has_events) {
            return None;
        }
        Some(Self { agents, reader, is_lost: Some(false), steps: Vec::new() })
    }

    /// Reads a line. One of crew's own names the agent of the lines that follow.
    fn read_line(&mut self, line: &str) {
        let Some(name) = logs::begun_by(line) else {
            let steps = self.reader.take_line(line);
            if !steps.is_empty() {
                self.is_lost = None;
            } else if self.is_lost.is_some() {
                self.is_lost = Some(true);
            }
            return self.steps.extend(steps);
        };
        if self.is_lost.take() == Some(true) {
            self.steps.push(Activity::Printed(OTHER.to_owned()));
        }
        self.steps.push(Activity::Printed(line.to_owned()));
        match self.agents.iter().find(|agent| agent.name == name) {
            Some(agent) => self.reader = agents::create_reader(agent),
            None => self.steps.push(Activity::Printed(OTHER.to_owned())),
        }
    }

    /// Renders what was read. A call waits for its result, unless the log ends here.
    fn take_text(&mut self, is_end: bool) -> String {
        let mut steps = std::mem::take(&mut self.steps);
        if !is_end {
            self.steps.extend(steps.pop_if(|last| matches!(last, Activity::Called(_))));
        }
        activity::render_steps(&steps).map(|text| text + "\n").unwrap_or_default()
    }
}

impl Lines {
    fn open(log: &Path, most: u64, rendering: Option<Rendering>, is_raw: bool) -> Result<Self> {
        let longest = if rendering.is_some() { EVENT } else { LINE };
        let (tail, cutter) = (Tail::open(log, most)?, LineCutter::new(longest));
        Ok(Self { tail, cutter, rendering, is_raw })
    }

    /// The next complete lines, with the rest if no more will come, and whether the log ends there.
    fn next_lines(&mut self, is_whole: bool) -> Result<(String, bool)> {
        let bytes = self.tail.read_next()?;
        let is_end = bytes.is_empty();
        let (mut printed, rendering) = (Vec::new(), &mut self.rendering);
        let mut take = |piece: LinePiece<'_>| match (rendering.as_mut(), piece) {
            (Some(rendering), LinePiece::Line(line)) => {
                rendering.read_line(&decode_line(line, EVENT));
            }
            (Some(_), LinePiece::Rest(_)) => {}
            (None, LinePiece::Line(line) | LinePiece::Rest(line)) => printed.extend(line),
        };
        self.cutter.feed(&bytes, &mut take);
        if is_end && is_whole {
            let left = std::mem::replace(&mut self.cutter, LineCutter::new(LINE)).end();
            if let Some(line) = &left {
                take(LinePiece::Line(line));
            }
        }
        let text = match &mut self.rendering {
            Some(rendering) => rendering.take_text(is_end),
            None if self.is_raw => String::from_utf8_lossy(&printed).replace(ERRORS_MARK, ""),
            None => String::from_utf8_lossy(&printed).into_owned(),
        };
        Ok((text, is_end))
    }

    /// Passes on all that was written so far; `false` when the reader of `take` is gone.
    fn pass_on(&mut self, is_whole: bool, mut take: impl FnMut(&str) -> bool) -> Result<bool> {
        loop {
            let (text, is_end) = self.next_lines(is_whole)?;
            let is_taken = take(&text);
            if is_end || !is_taken {
                return Ok(is_taken);
            }
        }
    }
}

fn latest_iteration(home: &Home, record: &Loop) -> u32 {
    // An iteration in which the loop was ended does not count, but it has a log.
    let mut numbers = (1..=record.state.counts().completed() + 1).rev().take(100);
    let latest = numbers.find(|number| disk::exists(&logs::log_path(home, &record.id, *number)));
    latest.unwrap_or(record.iteration())
}

fn may_come(record: &Loop, iteration: u32) -> bool {
    record.is_live() && record.driver() == Driver::Process && iteration >= record.iteration()
}

/// The path of an iteration's log; an error if there is none.
fn kept_log(home: &Home, record: &Loop, iteration: u32) -> Result<PathBuf> {
    let (id, path) = (&record.id, logs::log_path(home, &record.id, iteration));
    if disk::exists(&path) {
        return Ok(path);
    }
    if record.driver() == Driver::Process {
        bail!(Failure::new(
            format!("there is no log of iteration {iteration} of loop {id}"),
            format!("crew show {id}")
        ));
    }
    let hint = match &record.state.session().transcript {
        Some(file) => format!("the client's own log is {}", file.display()),
        None => format!("crew show {id}"),
    };
    bail!(Failure::new(format!("loop {id} runs in a session: crew keeps no log of it"), hint))
}

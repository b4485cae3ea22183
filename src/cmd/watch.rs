//! `crew watch`: on a terminal the board of every loop on this machine; elsewhere the status of one
//! loop, printed at each change until it is over. The board reads the loops once a second, draws,
//! and carries out what a person asks for with a key, as the verb of that name does. A record is
//! read again only when its file has changed, so a thousand loops cost little.

use super::control::not_for_an_agent;
use super::print::FullScreen;
use super::show::last_steps;
use super::{
    actor, control as replies, find_requested, leave_to_a_person, list_reading, print,
    refuse_an_agent, terminal_home, terminal_reading,
};
use crate::drive::failure::failure_of;
use crate::drive::find::{gone_reason, owner_is_gone};
use crate::drive::page::{last_iterations, loop_view, read_page};
use crate::drive::resume::{refuse_a_task, refuse_the_spent};
use crate::drive::tree::back::{diff_of_iteration, unseen_changes_note};
use crate::drive::{control, end};
use crate::exit::Exit;
use crate::fleet::record::TaskRequest;
use crate::fleet::step::events::FleetRequest;
use crate::fleet::verbs::task_of;
use crate::report::board::{Board, BoardRequest, BoardRow, TextKind, draw_board};
use crate::report::layout::{Reading, split_line};
use crate::report::line::{self, LoopLine};
use crate::report::list::ListReading;
use crate::report::page::render_page;
use anyhow::Result;
use chrono::{DateTime, Utc};
use engine::record::{Actor, Loop, LoopId, ProcessIdentity};
use engine::text::clean_text;
use engine::view::LoopView;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;
use world::clock::{self, Stopwatch};
use world::files::disk;
use world::process::signals::Signals;
use world::process::{Call, identity};
use world::store::{self, Home};
use world::{env, fault};

/// The time between two looks at the loop.
const LOOK: Duration = Duration::from_secs(1);

/// Opens the board, at the named loop if there is a name; off a terminal follows one loop.
pub fn watch_loops(name: Option<&str>) -> Result<Exit> {
    if !FullScreen::is_possible() {
        return follow_loop(name);
    }
    match name {
        Some(_) => find_requested(name).and_then(|(home, record)| run_board(&home, Some(&record))),
        None => run_board(&terminal_home()?, None),
    }
}

/// Prints the status of the requested loop at each change, and its page at the end.
fn follow_loop(name: Option<&str>) -> Result<Exit> {
    let (home, mut record) = find_requested(name)?;
    let mut said = String::new();
    while record.is_live() {
        let gone = owner_is_gone(&home, &record);
        if !print_change(&record, &mut said) {
            return Ok(Exit::SUCCESS);
        }
        if gone {
            print::err(&format!("crew: loop {}: {}", record.id, gone_reason(&record)));
            return Ok(Exit::SUCCESS);
        }
        clock::sleep(LOOK);
        record = store::load(&home, &record.id)?;
    }
    print::page(&render_page(&read_page(&home, &record), terminal_reading()));
    Ok(Exit::SUCCESS)
}

/// Prints the status if it has changed; `false` when the reader is gone.
fn print_change(record: &Loop, said: &mut String) -> bool {
    let line = line::render_line(LoopLine::Changed, record, clock::local_time());
    if *said == line {
        return true;
    }
    let is_read = print::stamped(&line);
    *said = line;
    is_read
}

/// The time between two looks at the machine, in milliseconds.
const LOOK_MS: u64 = 1000;
/// The longest wait for a key.
const KEY_WAIT: Duration = Duration::from_millis(200);
/// The time after a key in which no row moves, in milliseconds.
const CHOOSING_MS: u64 = 10_000;
/// The time after which an open page is read again, in milliseconds. Reading one compares the
/// working tree, and keys wait until it is done.
const PAGE_MS: u64 = 3_000;
/// The size of the end of a log that is read for the board, in bytes.
const LOG_LITTLE: u64 = 128 << 10;
/// The same for a log that fills the screen.
const LOG_MUCH: u64 = 1 << 20;
/// The maximum number of iterations below the list.
const ITERATIONS: usize = 30;
/// The most of the agent's last steps below the list.
const ACTIVITY: usize = 6;
/// The maximum number of lines in a text that is opened.
const LINES_MAX: usize = 50_000;

/// Shows the board until a person or a signal ends it.
pub fn run_board(home: &Home, first: Option<&Loop>) -> Result<Exit> {
    let signals = Signals::listen()?;
    let mut screen = FullScreen::open()?;
    let mut desk = Desk::of(home, screen.size()?.0);
    desk.read_machine();
    if let Some(record) = first {
        desk.board.chosen = Some(record.id.clone());
        desk.carry_out(BoardRequest::Open(TextKind::Page, record.id.clone()));
    }
    while signals.times() == 0 {
        let (width, height) = screen.size()?;
        if desk.looked.elapsed_ms() >= LOOK_MS || desk.width != width {
            desk.width = width;
            desk.read_machine();
        }
        screen.draw(|frame| draw_board(&desk.board, frame, clock::local_time()))?;
        fault::panic_at("board");
        let Some(key) = screen.next_key(KEY_WAIT)? else { continue };
        desk.touched = Some(Stopwatch::start());
        match desk.board.press_key(key, height) {
            Some(BoardRequest::Quit) => return Ok(Exit::SUCCESS),
            Some(request) => desk.carry_out(request),
            None => desk.describe_chosen(),
        }
    }
    Ok(signals.exit_code().map_or(Exit::SUCCESS, Exit::from_signal))
}

/// The board and what it is read from.
struct Desk<'a> {
    home: &'a Home,
    machine: KnownLoops<'a>,
    board: Board,
    looked: Stopwatch,
    /// The columns of the screen.
    width: usize,
    /// When the last key was pressed.
    touched: Option<Stopwatch>,
    resuming: Vec<Resuming>,
    /// The loop whose iterations are below the list, and the generation of its record.
    described: Option<(LoopId, u64)>,
    /// The time since the open page was read.
    page_read: Stopwatch,
}

impl<'a> Desk<'a> {
    fn of(home: &'a Home, width: usize) -> Self {
        Self {
            home,
            machine: KnownLoops::of(home),
            board: Board::default(),
            looked: Stopwatch::start(),
            width,
            touched: None,
            resuming: Vec::new(),
            described: None,
            page_read: Stopwatch::start(),
        }
    }

    /// Reads all loops anew, and what is open.
    fn read_machine(&mut self) {
        self.machine.read_changes();
        let rows = self.machine.board_rows(list_reading(env::path("HOME").as_deref()));
        let is_choosing =
            self.touched.as_ref().is_some_and(|touched| touched.elapsed_ms() < CHOOSING_MS);
        self.board.update_rows(rows, &self.machine.ids(), is_choosing);
        self.board.unreadable = self.machine.count_unreadable();
        let mut resuming = self.resuming.iter().enumerate();
        let ended = resuming.find_map(|(index, crew)| Some((index, crew.last_line()?)));
        if let Some((index, last_line)) = ended {
            self.resuming.remove(index);
            self.board.notice = Some(clean_text(&last_line));
        }
        let open = self.board.open.as_ref().filter(|open| match open.kind {
            TextKind::Page => self.page_read.elapsed_ms() >= PAGE_MS,
            TextKind::Log => true,
            TextKind::Diff => false,
        });
        if let Some(open) = open {
            self.open_text(open.kind, open.id.clone());
        }
        self.describe_chosen();
        self.looked = Stopwatch::start();
    }

    fn carry_out(&mut self, request: BoardRequest) {
        if let BoardRequest::Open(kind, id) = request {
            self.open_text(kind, id);
            return;
        }
        let answer = carry_out(self.home, &request, &mut self.resuming);
        self.read_machine();
        self.board.notice = Some(clean_text(&answer));
    }

    /// Reads a text about a loop and shows it.
    fn open_text(&mut self, kind: TextKind, id: LoopId) {
        let width = self.width;
        let Some(record) = self.machine.record(&id) else { return };
        let text = match kind {
            TextKind::Page => {
                let now = clock::local_time();
                let reading = Reading { width, now: now.to_utc(), offset: *now.offset() };
                self.page_read = Stopwatch::start();
                Ok(render_page(&read_page(self.home, record), reading))
            }
            TextKind::Log => last_steps(self.home, record, LOG_MUCH),
            TextKind::Diff => diff_of_iteration(self.home, record, None, None).map(|diff| {
                match (unseen_changes_note(self.home, record), diff.as_str()) {
                    (Some(unseen), _) => format!("{unseen}\n\n{diff}"),
                    (None, "") => "no changes".to_owned(),
                    (None, _) => diff,
                }
            }),
        };
        let text = text.unwrap_or_else(|error| format!("crew: {}", failure_of(&error).with_hint()));
        let lines = clean_text(&text).replace('\t', "    ");
        // A path or a command on a page must be visible as a whole; code keeps its lines.
        let columns = if kind == TextKind::Page { width } else { usize::MAX };
        let lines = lines.lines().flat_map(|line| split_line(line, columns));
        self.board.show_text(kind, id, lines.take(LINES_MAX).map(str::to_owned).collect());
    }

    /// Reads the details below the list: the chosen loop's iterations, and what its agent does.
    fn describe_chosen(&mut self) {
        let chosen = self.board.chosen.as_ref().and_then(|id| self.machine.record(id));
        let Some(record) = chosen else { return };
        let key = Some((record.id.clone(), record.state.generation()));
        if self.described != key {
            self.board.iterations = last_iterations(self.home, record, ITERATIONS);
            self.described = key;
        }
        let mut steps = String::new();
        if record.is_live() {
            steps = last_steps(self.home, record, LOG_LITTLE).unwrap_or_default();
        }
        let steps: Vec<String> = steps.lines().map(clean_text).collect();
        self.board.activity = steps[steps.len().saturating_sub(ACTIVITY)..].to_vec();
    }
}

/// Every loop of a home, as it was read last.
#[derive(Debug)]
pub struct KnownLoops<'a> {
    home: &'a Home,
    known: BTreeMap<LoopId, Known>,
}

#[derive(Debug)]
struct Known {
    /// The size and time of the record's file.
    stamp: Option<(u64, i128)>,
    /// `None` if it cannot be read.
    record: Option<Loop>,
}

impl<'a> KnownLoops<'a> {
    /// A machine of which nothing is read yet.
    pub fn of(home: &'a Home) -> Self {
        Self { home, known: BTreeMap::new() }
    }

    /// Reads what has changed.
    pub fn read_changes(&mut self) {
        let mut before = std::mem::take(&mut self.known);
        for id in store::list_ids(self.home) {
            let stamp = disk::stamp(&self.home.loop_file(&id, "loop.json"));
            let known = match before.remove(&id) {
                Some(known) if known.stamp == stamp => known,
                _ => Known { stamp, record: store::load(self.home, &id).ok() },
            };
            if stamp.is_some() {
                self.known.insert(id, known);
            }
        }
    }

    /// The record of a loop, if it can be read.
    pub fn record(&self, id: &LoopId) -> Option<&Loop> {
        self.known.get(id)?.record.as_ref()
    }

    /// The ids of all loops.
    pub fn ids(&self) -> Vec<LoopId> {
        self.known.keys().cloned().collect()
    }

    /// How many records cannot be read.
    pub fn count_unreadable(&self) -> u64 {
        self.known.values().filter(|known| known.record.is_none()).count() as u64
    }

    /// The rows of the loops that the board shows.
    pub fn board_rows(&self, at: ListReading<'_>) -> Vec<BoardRow> {
        let records: Vec<&Loop> =
            self.known.values().filter_map(|known| known.record.as_ref()).collect();
        let views = loop_views(self.home, &records);
        views.iter().filter_map(|view| BoardRow::from_view(view, at.home)).collect()
    }
}

/// The views of loops, which are all loops of a machine.
pub fn loop_views<'a>(home: &Home, loops: &[&'a Loop]) -> Vec<LoopView<'a>> {
    let mut newest: HashMap<&PathBuf, DateTime<Utc>> = HashMap::new();
    for record in loops {
        let last = newest.entry(&record.place.checkout).or_insert(record.started_at);
        *last = record.started_at.max(*last);
    }
    let views = loops.iter().map(|record| LoopView {
        task: record.fleet.as_ref().filter(|task| home.keeps_fleet(&task.name)),
        is_replaced: newest.get(&record.place.checkout) > Some(&record.started_at),
        ..loop_view(home, record)
    });
    views.collect()
}

/// The size of the end of a crew's output that is searched for its last line, in bytes.
const END: u64 = 4 << 10;

/// A crew that was started to resume a loop.
#[derive(Debug)]
pub struct Resuming {
    process: ProcessIdentity,
    output: PathBuf,
}

impl Resuming {
    /// The last words of a crew that has ended; `None` while it works.
    pub fn last_line(&self) -> Option<String> {
        if identity::is_alive(&self.process) {
            return None;
        }
        let start = disk::size(&self.output).saturating_sub(END);
        let (text, _) = disk::read_end(&self.output, start, END).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        // An error has its hint on the lines after it.
        let error = lines.iter().rposition(|line| line.starts_with("crew: "));
        let from = error.unwrap_or(lines.len().saturating_sub(1));
        let words = lines[from..].join(" · ");
        Some(if words.is_empty() { "the crew that resumed it has ended".to_owned() } else { words })
    }
}

/// Carries out a request and describes the result in a line.
pub fn carry_out(home: &Home, request: &BoardRequest, resuming: &mut Vec<Resuming>) -> String {
    let done = match request {
        BoardRequest::Pause(id) => pause_loop(home, id),
        BoardRequest::Cancel(id) => cancel_loop(home, id),
        BoardRequest::Tell(id, words) => tell_agent(home, id, words),
        BoardRequest::Resume(id, words) => {
            resume_loop(home, id, words.as_deref()).map(|(started, answer)| {
                resuming.extend(started);
                answer
            })
        }
        BoardRequest::Quit | BoardRequest::Open(..) => Ok(String::new()),
    };
    let text =
        done.unwrap_or_else(|error| format!("crew: {}", failure_of(&error).join_with(" · ")));
    text.lines().next().unwrap_or_default().to_owned()
}

fn pause_loop(home: &Home, id: &LoopId) -> Result<String> {
    if let Some(named) = task_of(home, id)? {
        let request = TaskRequest::Pause { now: false };
        return named.send_request(home, &FleetRequest::Task(request), actor());
    }
    let (record, how) = control::pause_loop(home, id, actor(), false)?;
    Ok(replies::describe_pause(&record, how))
}

fn cancel_loop(home: &Home, id: &LoopId) -> Result<String> {
    if let Some(named) = task_of(home, id)? {
        let by_agent = actor() == Actor::Agent;
        let request = TaskRequest::Cancel { now: true, by_agent, reason: None };
        return named.send_request(home, &FleetRequest::Task(request), actor());
    }
    let attempt = end::cancel_loop(home, id, actor(), None)?;
    Ok(replies::describe_cancel(&attempt, terminal_reading()))
}

fn tell_agent(home: &Home, id: &LoopId, words: &str) -> Result<String> {
    refuse_an_agent(not_for_an_agent())?;
    if let Some(named) = task_of(home, id)? {
        return named.send_message(home, words, Actor::User);
    }
    let record = control::add_message(home, id, words)?;
    Ok(format!("loop {id}: {}", replies::describe_delivery(&record)))
}

/// Resumes a loop, with a message for its agent. A task is resumed by its fleet, any other loop in
/// a separate crew, because its checks run first and may take minutes.
fn resume_loop(
    home: &Home,
    id: &LoopId,
    words: Option<&str>,
) -> Result<(Option<Resuming>, String)> {
    leave_to_a_person("resume a loop")?;
    if let Some(named) = task_of(home, id)? {
        return Ok((None, named.resume_tasks(home, words, false)?));
    }
    let record = store::load(home, id)?;
    refuse_a_task(home, &record)?;
    refuse_the_spent(&record, "crew resume")?;
    let output = home.loop_file(id, "run.log");
    // A message may begin with a hyphen.
    let message = words.map(|words| format!("--tell={words}"));
    let call = Call::crew(home, &record.place.folder)?.args(["resume", id.as_str()]).args(message);
    let process = call.detach(&output)?;
    let answer = format!(
        "loop {id} is resumed by process {}, which writes to {}",
        process.pid,
        output.display()
    );
    Ok((Some(Resuming { process, output }), answer))
}

//! Lists of loops, one a line, in columns that fit the terminal: where it is narrow the columns of
//! least use are left out, and only the last one, the task, is ever cut. What lives comes first.

use std::path::Path;

use super::colour;
use super::page::Reading;
use super::table::{self, ALWAYS, Column};
use super::words::{ago, brief, size};
use super::{line, run};
use crate::engine::record::{Loop, LoopId};
use crate::engine::text::{clock_time, one_line};

/// The longest task, in characters; a terminal cuts it further.
const TASK_CHARS: usize = 100;
/// The widest column but the task's, and what all lists have.
const WIDEST: usize = 40;

const ID: Column = Column::text(ALWAYS, WIDEST);
const STATE: Column = Column::text(ALWAYS, WIDEST).marked(colour::words);
const FOLDER: Column = Column::text(2, WIDEST);
const TASK: Column = Column::rest(ALWAYS, 10);

/// Where and when a list is read, and whose home is `~`.
#[derive(Debug, Clone, Copy)]
pub struct ListReading<'a> {
    pub reading: Reading,
    pub home: Option<&'a Path>,
}

/// The status of loops; nobody drives those in `gone` any more.
pub fn standing(loops: &[Loop], gone: &[LoopId], at: ListReading<'_>) -> String {
    let mut sorted: Vec<&Loop> = loops.iter().collect();
    sorted.sort_by_key(|subject| !subject.is_live());
    let row = |subject: &Loop| {
        let is_gone = gone.contains(&subject.id);
        [
            subject.id.to_string(),
            started(subject, at),
            if is_gone { "owner gone".to_owned() } else { state(subject, at) },
            line::counted(subject),
            place(subject, at.home),
            task(subject),
        ]
    };
    let started_at = Column::text(1, WIDEST).marked(colour::quiet);
    let columns = [ID, started_at, STATE, Column::text(3, WIDEST), FOLDER, TASK];
    text(&table::lines(columns, sorted.into_iter().map(row), at.reading.width))
}

/// Loops that are over, with their time and cost; `is_everywhere` names the folder of each.
pub fn ended(loops: &[Loop], at: ListReading<'_>, is_everywhere: bool) -> String {
    let row = |subject: &Loop| {
        [
            subject.id.to_string(),
            started(subject, at),
            state(subject, at),
            subject.state.completed.to_string(),
            brief(subject.state.awake_ms),
            subject.state.usage.cost_text(false).unwrap_or_default(),
            if is_everywhere { place(subject, at.home) } else { String::new() },
            task(subject),
        ]
    };
    let columns = [
        ID,
        Column::text(2, WIDEST).marked(colour::quiet),
        STATE,
        Column::number(4, WIDEST),
        Column::number(1, WIDEST),
        Column::number(4, WIDEST),
        Column::text(3, WIDEST),
        TASK,
    ];
    text(&table::lines(columns, loops.iter().map(row), at.reading.width))
}

/// Loops whose records may be removed, with the bytes of each.
pub fn removable(loops: &[Loop], bytes: &[u64], at: ListReading<'_>) -> String {
    let row = |(subject, bytes): (&Loop, &u64)| {
        [
            subject.id.to_string(),
            ago((at.reading.now - subject.last_at()).num_milliseconds()),
            state(subject, at),
            size(*bytes),
            place(subject, at.home),
            task(subject),
        ]
    };
    let columns = [ID, Column::text(4, WIDEST), STATE, Column::number(1, WIDEST), FOLDER, TASK];
    text(&table::lines(columns, loops.iter().zip(bytes).map(row), at.reading.width))
}

fn text(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

fn task(subject: &Loop) -> String {
    one_line(&run::task(subject), TASK_CHARS)
}

/// How a loop stands and its task, for one row of a shell: "running: Build the todo API".
pub fn in_a_line(subject: &Loop) -> String {
    format!("{}: {}", subject.status_word(), task(subject))
}

/// "running", "waiting until 03:10", "completed, checked", "completed, proven at 09:12".
fn state(subject: &Loop, at: ListReading<'_>) -> String {
    let word = subject.status_word();
    let proof = subject.state.ending.as_ref().and_then(|ending| ending.proof);
    let left = if subject.is_live() { "" } else { subject.state.git.left_in_a_list() };
    match (subject.state.due.filter(|_| subject.is_live()), proof) {
        (Some(due), _) => format!("waiting until {}", clock_time(due, at.reading.clock())),
        (None, Some(proof)) => {
            let tried = subject.state.proved_at;
            let at = tried.map(|it| format!(" at {}", clock_time(it, at.reading.clock())));
            format!("{word}, {}{}{left}", proof.label(), at.unwrap_or_default())
        }
        (None, None) => word.to_owned() + left,
    }
}

fn started(subject: &Loop, at: ListReading<'_>) -> String {
    let started = subject.started_at.with_timezone(&at.reading.offset);
    started.format("%Y-%m-%d %H:%M").to_string()
}

/// "~/w/api".
pub fn folder(subject: &Loop, home: Option<&Path>) -> String {
    let folder = &subject.place.checkout;
    let below = home.and_then(|home| folder.strip_prefix(home).ok());
    match below {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => folder.display().to_string(),
    }
}

/// "~/w/api (feat/reset)".
fn place(subject: &Loop, home: Option<&Path>) -> String {
    let folder = folder(subject, home);
    match subject.branch() {
        Some(branch) => format!("{folder} ({branch})"),
        None => folder,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use chrono::FixedOffset;
    use insta::assert_snapshot;
    use unicode_width::UnicodeWidthStr;

    use super::*;
    use crate::engine::fixture::{a_loop, a_run, at};
    use crate::engine::record::{Ending, Outcome, Proof, Status};
    use crate::engine::usage::{Money, Usage};

    fn loops() -> Vec<Loop> {
        let mut done = a_run(None);
        done.place.checkout = PathBuf::from("/home/me/w/日本/shop");
        done.contract.task =
            "Split a discount over the lines of an order so that refunds\nadd up".to_owned();
        done.state.status = Status::Finished;
        let why = "so".to_owned();
        let proof = Some(Proof::Checked);
        done.state.ending = Some(Ending { proof, ..Ending::new(Outcome::Completed, why) });
        done.state.completed = 3;
        done.state.awake_ms = 136_000;
        done.state.usage = Usage { cost: Money(1_840_000_000_000), ..Usage::default() };
        let mut live = a_loop();
        live.place.checkout = PathBuf::from("/home/me");
        vec![done, live]
    }

    fn read_at(width: usize) -> ListReading<'static> {
        let reading = Reading { width, now: at(0).wall, offset: FixedOffset::east_opt(0).unwrap() };
        ListReading { reading, home: Some(Path::new("/home/me")) }
    }

    fn standing(loops: &[Loop], gone: &[LoopId], at: ListReading<'_>) -> String {
        colour::painted(&super::standing(loops, gone, at), false)
    }

    fn ended(loops: &[Loop], at: ListReading<'_>, is_everywhere: bool) -> String {
        colour::painted(&super::ended(loops, at, is_everywhere), false)
    }

    #[test]
    fn loops_are_listed_with_their_folder_and_branch_and_what_lives_comes_first() {
        let all = [200, 80, 40].map(|width| standing(&loops(), &[], read_at(width)));
        assert_snapshot!(all.join("\n"), @"
        haaaaaaa  2026-11-18 11:06  running             1/10  ~ (main)              Build the todo API
        haaaaaaa  2026-11-18 11:06  completed, checked  3/10  ~/w/日本/shop (main)  Split a discount over the lines of an order so that refunds add up

        haaaaaaa  running             1/10  ~ (main)              Build the todo API
        haaaaaaa  completed, checked  3/10  ~/w/日本/shop (main)  Split a discount over…

        haaaaaaa  running             Build the…
        haaaaaaa  completed, checked  Split a d…
        ");
    }

    #[test]
    fn ended_loops_are_listed_with_their_time_and_cost() {
        let ends = loops();
        let ends = &ends[..1];
        let all = [(200, true), (80, false), (40, true)]
            .map(|(width, is_everywhere)| ended(ends, read_at(width), is_everywhere));
        assert_snapshot!(all.join("\n"), @"
        haaaaaaa  2026-11-18 11:06  completed, checked  3  2m  $1.84  ~/w/日本/shop (main)  Split a discount over the lines of an order so that refunds add up

        haaaaaaa  2026-11-18 11:06  completed, checked  3  2m  $1.84  Split a discount…

        haaaaaaa  completed, checked  Split a d…
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 20..140 {
            let lists =
                standing(&loops(), &[], read_at(width)) + &ended(&loops(), read_at(width), true);
            let widest = lists.lines().map(UnicodeWidthStr::width).max().unwrap();
            assert!(widest <= width, "{widest} of {width}:\n{lists}");
        }
    }
}

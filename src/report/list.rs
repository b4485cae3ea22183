//! Lists of loops, one a line, in columns that fit the terminal: where it is narrow the columns of
//! least use are left out, and only the last one, the task, is ever cut. What lives comes first.

use std::path::Path;

use super::colour;
use super::page::Reading;
use super::run;
use super::table::{self, ALWAYS, Column};
use super::words::{ago, brief, size};
use crate::engine::events::Doing;
use crate::engine::record::Loop;
use crate::engine::text::one_line;
use crate::engine::view::LoopView;

/// The longest task, in characters; a terminal cuts it further.
const TASK_CHARS: usize = 100;
/// The widest column except the task's.
const WIDEST: usize = 40;

/// Where and when a list is read, and whose home is `~`.
#[derive(Debug, Clone, Copy)]
pub struct ListReading<'a> {
    pub reading: Reading,
    pub home: Option<&'a Path>,
}

/// A loop in a list.
pub struct ListRow<'a> {
    view: &'a LoopView<'a>,
    home: Option<&'a Path>,
    /// The bytes of its record, where they are known.
    bytes: u64,
}

/// A column of a list, and its cell of a loop.
pub type ListColumn = (Column, fn(&ListRow<'_>) -> String);

const ID: ListColumn = (Column::text(ALWAYS, WIDEST), |row| row.view.record.id.to_string());
const STARTED: ListColumn = (Column::text(1, WIDEST).marked(colour::quiet), |row| {
    let started = row.view.record.started_at.with_timezone(row.view.now.offset());
    started.format("%Y-%m-%d %H:%M").to_string()
});
const STATE: ListColumn =
    (Column::text(ALWAYS, WIDEST).marked(colour::words), |row| row.view.state());
const DOING: ListColumn =
    (Column::text(2, WIDEST), |row| row.view.doing.as_ref().map(Doing::words).unwrap_or_default());
const COUNT: ListColumn = (Column::text(4, WIDEST), |row| row.view.counted());
const ITERATIONS: ListColumn =
    (Column::number(4, WIDEST), |row| row.view.record.state.completed.to_string());
const TIME: ListColumn = (Column::number(0, WIDEST), |row| brief(row.view.record.state.awake_ms));
const COST: ListColumn = (Column::number(4, WIDEST), |row| {
    row.view.record.state.usage.cost_text(false).unwrap_or_default()
});
const AGE: ListColumn = (Column::text(4, WIDEST), |row| {
    ago((row.view.now.to_utc() - row.view.record.last_at()).num_milliseconds())
});
const BYTES: ListColumn = (Column::number(1, WIDEST), |row| size(row.bytes));
const PLACE: ListColumn = (Column::text(3, WIDEST), |row| {
    let folder = folder(row.view.record, row.home);
    match row.view.record.branch() {
        Some(branch) => format!("{folder} ({branch})"),
        None => folder,
    }
});
const TASK: ListColumn = (Column::rest(ALWAYS, 10), |row| task(row.view.record));

/// The columns of loops that may live, of ended ones here and everywhere, and of those whose
/// records may be removed.
pub const STANDING: [ListColumn; 7] = [ID, STARTED, STATE, DOING, COUNT, PLACE, TASK];
pub const ENDED: [ListColumn; 7] = [ID, STARTED, STATE, ITERATIONS, TIME, COST, TASK];
pub const ENDED_EVERYWHERE: [ListColumn; 8] =
    [ID, STARTED, STATE, ITERATIONS, TIME, COST, PLACE, TASK];
pub const REMOVABLE: [ListColumn; 6] = [ID, AGE, STATE, BYTES, PLACE, TASK];

/// A line for each loop; `bytes` are those of their records, where they are shown.
pub fn text<const N: usize>(
    columns: [ListColumn; N],
    views: &[LoopView<'_>],
    bytes: &[u64],
    at: ListReading<'_>,
) -> String {
    let bytes = bytes.iter().copied().chain(std::iter::repeat(0));
    let rows = views.iter().zip(bytes);
    let rows = rows.map(|(view, bytes)| ListRow { view, home: at.home, bytes });
    let cells = rows.map(|row| columns.map(|(_, cell)| cell(&row)));
    let lines = table::lines(columns.map(|(column, _)| column), cells, at.reading.width);
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// How a loop stands and its task, for one row of a shell: "running: Build the todo API".
pub fn in_a_line(subject: &Loop) -> String {
    format!("{}: {}", subject.status_word(), task(subject))
}

fn task(subject: &Loop) -> String {
    one_line(&run::task(subject), TASK_CHARS)
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

    fn list<const N: usize>(columns: [ListColumn; N], loops: &[Loop], width: usize) -> String {
        let at = read_at(width);
        let views = loops.iter().map(|it| LoopView::of(it, at.reading.clock()));
        colour::painted(&text(columns, &views.collect::<Vec<_>>(), &[], at), false)
    }

    #[test]
    fn loops_are_listed_with_their_folder_and_branch_and_what_lives_comes_first() {
        let all = [200, 80, 40].map(|width| list(STANDING, &loops(), width));
        assert_snapshot!(all.join("\n"), @"
        haaaaaaa  2026-11-18 11:06  completed, checked  3/10  ~/w/日本/shop (main)  Split a discount over the lines of an order so that refunds add up
        haaaaaaa  2026-11-18 11:06  running             1/10  ~ (main)              Build the todo API

        haaaaaaa  completed, checked  3/10  ~/w/日本/shop (main)  Split a discount over…
        haaaaaaa  running             1/10  ~ (main)              Build the todo API

        haaaaaaa  completed, checked  Split a d…
        haaaaaaa  running             Build the…
        ");
    }

    #[test]
    fn ended_loops_are_listed_with_their_time_and_cost() {
        let ends = loops();
        let ends = &ends[..1];
        let all =
            [(200, true), (80, false), (40, true)].map(
                |(width, is_everywhere)| match is_everywhere {
                    true => list(ENDED_EVERYWHERE, ends, width),
                    false => list(ENDED, ends, width),
                },
            );
        assert_snapshot!(all.join("\n"), @"
        haaaaaaa  2026-11-18 11:06  completed, checked  3  2m  $1.84  ~/w/日本/shop (main)  Split a discount over the lines of an order so that refunds add up

        haaaaaaa  2026-11-18 11:06  completed, checked  3  2m  $1.84  Split a discount…

        haaaaaaa  completed, checked  Split a d…
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 20..140 {
            let lists = list(STANDING, &loops(), width) + &list(ENDED_EVERYWHERE, &loops(), width);
            let widest = lists.lines().map(UnicodeWidthStr::width).max().unwrap();
            assert!(widest <= width, "{widest} of {width}:\n{lists}");
        }
    }
}

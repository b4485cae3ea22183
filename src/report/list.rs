//! Lists of loops, one per line, in columns that fit the terminal. A narrow one leaves out the
//! least useful columns and cuts only the last, the task. Live loops come first.

use super::events::status_json;
use super::layout::{Reading, fold_text};
use super::{colour, layout, words};
use chrono::{DateTime, Utc};
use engine::boundary::window::RateWindow;
use engine::record::{Loop, LoopId, Status, Totals};
use engine::text::{clock_time, count, join_first_names, one_line};
pub use engine::view::columns::{ENDED, ENDED_EVERYWHERE, REMOVABLE, STANDING};
use engine::view::columns::{ListColumn, task_line};
use engine::view::{LoopView, usage_value};
use minijinja::{Value, context};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::path::Path;

/// The folder and time of reading a list, and the home that is shown as `~`.
#[derive(Debug, Clone, Copy)]
pub struct ListReading<'a> {
    pub reading: Reading,
    pub home: Option<&'a Path>,
}

/// Renders a line for each loop.
pub fn render_list<const N: usize>(
    columns: [ListColumn; N],
    views: &[LoopView<'_>],
    at: ListReading<'_>,
) -> String {
    let cells = views.iter().map(|view| columns.map(|(_, cell)| cell(view, at.home)));
    let lines = layout::align_rows(columns.map(|(column, _)| column), cells, at.reading.width);
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// A loop's status and task, for one row of a shell: "running: Build the todo API".
pub fn status_and_task(subject: &Loop) -> String {
    format!("{}: {}", subject.status_word(), task_line(subject))
}

/// The ended loops as JSON. `totals` covers every loop that matches, also those not listed.
pub fn history_json(loops: &[LoopView<'_>], totals: &Totals) -> Json {
    let mut value = status_json(loops);
    value["totals"] = json!(totals);
    value["totals"]["usage"] = usage_value(totals.usage());
    value
}

/// The ended loops for people, one per line, and the totals of every loop that matches.
pub fn render_history(
    loops: &[LoopView<'_>],
    totals: &Totals,
    at: ListReading<'_>,
    is_everywhere: bool,
) -> String {
    let mut text = if is_everywhere {
        render_list(ENDED_EVERYWHERE, loops, at)
    } else {
        render_list(ENDED, loops, at)
    };
    let more = totals.loop_count().saturating_sub(loops.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "({more} more: --limit {})", totals.loop_count());
    }
    if totals.loop_count() > 1 {
        let line = fold_text(&totals_line(totals, true), at.reading.width);
        let _ = write!(text, "\n{}", colour::mark_words(&line));
    }
    text
}

/// "5 loops: 2 completed, 3 stalled · $12.40"; with `is_whole` also their iterations and results.
pub fn totals_line(totals: &Totals, is_whole: bool) -> String {
    let cost = totals.usage().cost_text(false);
    let outcomes: Vec<_> = totals.outcomes().iter().collect();
    let of_all = Value::from_serialize(totals);
    let values = context! { loops => totals.loop_count(), outcomes, cost, is_whole, ..of_all };
    words::render_row("totals.j2", &values)
}

/// The maximum number of characters in a reason.
const WHY_CHARS: usize = 60;
/// The maximum number of loops named.
const NAMED: usize = 8;

/// An open rate window, or one that loops still wait for, with these loops by their turns.
pub struct WindowRow {
    window: RateWindow,
    waiting: Vec<Loop>,
}

/// The rows of all windows of this machine.
pub fn window_rows(windows: &[RateWindow], loops: &[Loop], now: DateTime<Utc>) -> Vec<WindowRow> {
    let mut rows = Vec::new();
    for window in windows {
        let waiting = loops.iter().filter(|Loop { state, .. }| {
            state.status() == Status::Waiting
                && state.wait().window().as_ref() == Some(&window.account)
        });
        let mut waiting: Vec<Loop> = waiting.cloned().collect();
        waiting.sort_by_key(|subject| subject.state.wait().due());
        if window.is_closed(now) || !waiting.is_empty() {
            rows.push(WindowRow { window: window.clone(), waiting });
        }
    }
    rows
}

/// The rows as JSON.
pub fn windows_json(rows: &[WindowRow]) -> Json {
    let values = rows.iter().map(|WindowRow { window, waiting }| {
        let RateWindow { account, until, why, met_by, met_at, .. } = window;
        let waiting: Vec<&LoopId> = waiting.iter().map(|subject| &subject.id).collect();
        json!({
            "account": account, "until": until, "why": why, "met_by": met_by, "met_at": met_at,
            "waiting": waiting,
        })
    });
    values.collect()
}

/// "claude is at its limit until 03:10 (met by loop k3vq7xwa: usage limit); 2 loops wait: …", one
/// line for each row.
pub fn windows_text(rows: &[WindowRow], at: Reading) -> String {
    let mut text = String::new();
    for WindowRow { window, waiting } in rows {
        let RateWindow { account, until, why, met_by, .. } = window;
        let verb = if *until > at.now { "is" } else { "was" };
        let (until, why) = (clock_time(*until, at.clock()), one_line(why, WHY_CHARS));
        let _ = write!(
            text,
            "{account} {verb} at its limit until {until} (met by loop {met_by}: {why}); "
        );
        let Some(last) = waiting.iter().filter_map(|subject| subject.state.wait().due()).max()
        else {
            text += "no loop waits for it\n";
            continue;
        };
        let ids: Vec<String> = waiting.iter().map(|subject| subject.id.to_string()).collect();
        let verb = if ids.len() == 1 { "waits" } else { "wait" };
        let (number, last) = (count(ids.len() as u64, "loop"), clock_time(last, at.clock()));
        let _ = writeln!(
            text,
            "{number} {verb}, the last until {last}: {}",
            join_first_names(&ids, NAMED)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use chrono::FixedOffset;
    use insta::assert_snapshot;
    use unicode_width::UnicodeWidthStr;

    use super::*;
    use engine::fixture::{SetState, a_loop, a_run, at};
    use engine::record::{Ending, Outcome, Proof, Status};
    use engine::usage::{Money, Usage};

    fn loops() -> Vec<Loop> {
        let mut done = a_run(None);
        done.place.checkout = PathBuf::from("/home/me/w/日本/shop");
        done.contract.task =
            "Split a discount over the lines of an order so that refunds\nadd up".to_owned();
        done.state.set("status", Status::Finished);
        let why = "so";
        let proof = Some(Proof::Checked);
        done.state.set("ending", Some(Ending { proof, ..Ending::new(Outcome::Completed, why) }));
        done.state.set("completed", 3);
        done.state.set("awake_ms", 136_000);
        done.state.set("usage", Usage { cost: Money(1_840_000_000_000), ..Usage::default() });
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
        let views = loops.iter().map(|record| LoopView::from_record(record, at.reading.clock()));
        colour::paint_marks(&render_list(columns, &views.collect::<Vec<_>>(), at), false)
    }

    #[test]
    fn a_list_shows_folders_and_branches_and_fits_the_terminal() {
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
        let all = [
            list(ENDED_EVERYWHERE, ends, 200),
            list(ENDED, ends, 80),
            list(ENDED_EVERYWHERE, ends, 40),
        ];
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

#[cfg(test)]
mod history_tests {
    use chrono::{Offset, Utc};
    use insta::assert_snapshot;

    use super::*;
    use engine::fixture::{SetState, a_loop, a_run, at};
    use engine::record::{Ending, Loop, Outcome, Proof};
    use engine::usage::{Money, Tokens, Usage};

    #[test]
    fn ended_loops_are_listed_with_their_time_and_cost() {
        let ended = |mut subject: Loop, outcome, proof| {
            subject.state.finish(Ending { proof, ..Ending::new(outcome, "so") }, 0);
            subject
        };
        let mut first = ended(a_loop(), Outcome::Completed, Some(Proof::Checked));
        first.state.set("completed", 3);
        first.state.set("awake_ms", 136_000);
        let tokens = Tokens { input: 1000, ..Tokens::default() };
        first
            .state
            .set("usage", Usage { tokens, cost: Money(1_840_000_000_000), ..Usage::default() });
        let second = ended(a_run(None), Outcome::Cancelled, None);
        let reading = Reading { width: 80, now: at(0).wall, offset: Utc.fix() };
        let at = ListReading { reading, home: None };
        let loops = [first, second];
        let totals = Totals::from_loops(&[&loops[..], &loops[1..], &loops[1..]].concat());
        let views =
            loops.each_ref().map(|record| LoopView::from_record(record, at.reading.clock()));
        assert_snapshot!(colour::paint_marks(&render_history(&views, &totals, at, false), false), @"
        haaaaaaa  2026-11-18 11:06  completed, checked  3  2m  $1.84  Build the todo API
        haaaaaaa  2026-11-18 11:06  cancelled           0  0s         Build the todo API
        (2 more: --limit 4)

        4 loops: 1 completed, 3 cancelled · 3 iterations in 2m16s · $1.84
        ");
        let narrow = ListReading { reading: Reading { width: 40, ..reading }, home: None };
        let list = render_history(&[], &totals, narrow, false);
        assert_snapshot!(colour::paint_marks(&list, false), @"
        (4 more: --limit 4)

        4 loops: 1 completed, 3 cancelled · 3
          iterations in 2m16s · $1.84
        ");
    }
}

#[cfg(test)]
mod windows_tests {
    use chrono::{FixedOffset, TimeDelta};
    use insta::assert_snapshot;

    use super::*;
    use engine::fixture::{SetState, a_run, at};
    use engine::record::AccountId;

    #[test]
    fn a_rate_limit_is_shown_with_its_end_the_loop_that_met_it_and_those_that_wait() {
        let account = AccountId { name: "claude".to_owned(), model: None };
        let window = RateWindow {
            account: account.clone(),
            until: at(600).wall,
            why: "You've hit your session limit".to_owned(),
            met_by: LoopId::from_random(9),
            met_at: at(0).wall,
            turns: [].into(),
            back: [].into(),
        };
        let waiting = |id: u64| {
            let mut record = a_run(None);
            record.id = LoopId::from_random(id);
            record.state.set("status", Status::Waiting);
            record.state.set("window", Some(account.clone()));
            record.state.set("due", Some(at(600).wall + TimeDelta::minutes(id.cast_signed())));
            record
        };
        let lines = |windows: &[RateWindow], loops: &[Loop], now| {
            let offset = FixedOffset::east_opt(0).unwrap();
            let rows = window_rows(windows, loops, at(now).wall);
            windows_text(&rows, Reading { width: 100, now: at(now).wall, offset })
        };
        let model = AccountId { model: Some("opus".to_owned()), ..account.clone() };
        let other = RateWindow { account: model, ..window.clone() };
        let all = [
            lines(&[window.clone(), other], &[waiting(2), waiting(1), a_run(None)], 60),
            lines(std::slice::from_ref(&window), &[waiting(2)], 620),
            lines(&[window], &[a_run(None)], 620),
        ];
        assert_snapshot!(all.join("--\n"), @"
        claude is at its limit until 11:16 (met by loop kaaaaaaa: You've hit your session limit); 2 loops wait, the last until 11:18: baaaaaaa, caaaaaaa
        claude (opus) is at its limit until 11:16 (met by loop kaaaaaaa: You've hit your session limit); no loop waits for it
        --
        claude was at its limit until 11:16 (met by loop kaaaaaaa: You've hit your session limit); 1 loop waits, the last until 11:18: caaaaaaa
        --
        ");
    }
}

//! Ended loops, one per line: how each ended, how long it took and what it cost; then their totals.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::colour;
use super::json;
use super::list::{self, ListReading};
use super::words::took;
use crate::engine::record::totals::Totals;
use crate::engine::text::count;
use crate::engine::view::{LoopView, usage};

/// The list for programs. `totals` covers every loop that matches, also those not listed.
pub fn json(loops: &[LoopView<'_>], totals: &Totals) -> Value {
    let mut value = json::status(loops);
    value["totals"] = json!(totals);
    value["totals"]["usage"] = usage(&totals.usage);
    value
}

/// The list for people, and the totals of every loop that matches.
pub fn list(
    loops: &[LoopView<'_>],
    totals: &Totals,
    at: ListReading<'_>,
    is_everywhere: bool,
) -> String {
    let mut text = match is_everywhere {
        true => list::text(list::ENDED_EVERYWHERE, loops, &[], at),
        false => list::text(list::ENDED, loops, &[], at),
    };
    let more = totals.loops().saturating_sub(loops.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "({more} more: --limit {})", totals.loops());
    }
    if totals.loops() > 1 {
        let _ = writeln!(text, "\n{}", colour::words(&line_of(totals)));
    }
    text
}

/// "5 loops: 2 completed, 3 stalled".
pub fn ends(totals: &Totals) -> String {
    let ends =
        totals.outcomes.iter().map(|(outcome, count)| format!("{count} {}", outcome.label()));
    format!("{}: {}", count(totals.loops(), "loop"), ends.collect::<Vec<_>>().join(", "))
}

/// "5 loops: 2 completed, 3 stalled · 41 iterations in 6h2m0s (4.0s to 45m0s, mean 9m4s) · $12.40".
fn line_of(totals: &Totals) -> String {
    let iterations = count(totals.iterations, "iteration");
    let mut line = format!("{} · {iterations} in {}", ends(totals), took(totals.awake_ms));
    if let Some(times) = totals.iteration_ms {
        let [min, max, mean] = [times.min, times.max, times.mean].map(took);
        let _ = write!(line, " ({min} to {max}, mean {mean})");
    }
    let tally = &totals.tally;
    let counts = [
        (tally.failed.into(), "failed"),
        (tally.timed_out.into(), "timed out"),
        (tally.skipped.into(), "skipped"),
        (tally.files_changed, "files changed"),
        (tally.files_created, "new"),
        (totals.tests_passed, "tests passed"),
        (totals.tests_failed, "failed"),
    ];
    for (number, what) in counts.into_iter().filter(|(number, _)| *number > 0) {
        let gap = if what == "new" { "," } else { " ·" };
        let _ = write!(line, "{gap} {number} {what}");
    }
    if let Some(cost) = totals.usage.cost_text(false) {
        let _ = write!(line, " · {cost}");
    }
    if totals.failure_streak > 1 {
        let _ = write!(line, " · the last {} did not complete", totals.failure_streak);
    }
    line
}

#[cfg(test)]
mod tests {
    use chrono::{Offset, Utc};
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::fixture::{a_loop, a_run, at};
    use crate::engine::record::{Ending, Loop, Outcome, Proof, Status};
    use crate::engine::usage::{Money, Tokens, Usage};
    use crate::report::page::Reading;

    #[test]
    fn ended_loops_are_listed_with_their_time_and_cost() {
        let ended = |mut subject: Loop, outcome, proof| {
            subject.state.status = Status::Finished;
            subject.state.ending = Some(Ending { proof, ..Ending::new(outcome, "so") });
            subject
        };
        let mut first = ended(a_loop(), Outcome::Completed, Some(Proof::Checked));
        first.state.completed = 3;
        first.state.awake_ms = 136_000;
        let tokens = Tokens { input: 1000, ..Tokens::default() };
        first.state.usage = Usage { tokens, cost: Money(1_840_000_000_000), ..Usage::default() };
        let second = ended(a_run(None), Outcome::Cancelled, None);
        let reading = Reading { width: 80, now: at(0).wall, offset: Utc.fix() };
        let at = ListReading { reading, home: None };
        let loops = [first, second];
        let totals = Totals::of(&[&loops[..], &loops[1..], &loops[1..]].concat());
        assert_snapshot!(colour::painted(&list(&loops.each_ref().map(|it| LoopView::of(it, at.reading.clock())), &totals, at, false), false), @"
        haaaaaaa  2026-11-18 11:06  completed, checked  3  2m  $1.84  Build the todo API
        haaaaaaa  2026-11-18 11:06  cancelled           0  0s         Build the todo API
        (2 more: --limit 4)

        4 loops: 1 completed, 3 cancelled · 3 iterations in 2m16s · $1.84
        ");
    }
}

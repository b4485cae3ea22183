//! Ended loops, one per line: how each ended, how long it took and what it cost.

use std::fmt::Write as _;

use chrono::FixedOffset;

use super::words::took;
use super::{line, run};
use crate::engine::record::Loop;
use crate::engine::text::clip;

/// The list; `more` loops are left out after it.
pub fn list(loops: &[Loop], more: usize, offset: FixedOffset) -> String {
    if loops.is_empty() {
        return "no loop has ended here\n".to_owned();
    }
    let mut text = String::new();
    for subject in loops {
        let started = subject.started_at.with_timezone(&offset).format("%Y-%m-%d %H:%M");
        let status = line::status_line(subject);
        let time = took(subject.state.awake_ms);
        let cost = subject.state.usage.cost_text(false).unwrap_or_default();
        let cost = clip(&cost, 12);
        let task = clip(&run::task(subject), 50);
        let _ =
            writeln!(text, "{}  {started}  {status:<42}  {time:>9}  {cost:>8}  {task}", subject.id);
    }
    if more > 0 {
        let _ = writeln!(text, "({more} more: --limit {})", loops.len() + more);
    }
    text
}

#[cfg(test)]
mod tests {
    use chrono::Offset;
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::fixture::{a_loop, a_run};
    use crate::engine::record::{Ending, Outcome, Proof, Status};
    use crate::engine::usage::{Money, Tokens, Usage};

    #[test]
    fn ended_loops_are_listed_with_their_time_and_cost() {
        let ended = |mut subject: Loop, outcome, proof| {
            subject.state.status = Status::Finished;
            subject.state.ending = Some(Ending { outcome, proof, why: "so".to_owned() });
            subject
        };
        let mut first = ended(a_loop(), Outcome::Completed, Some(Proof::Checked));
        first.state.completed = 3;
        first.state.awake_ms = 136_000;
        let tokens = Tokens { input: 1000, ..Tokens::default() };
        first.state.usage = Usage { tokens, cost: Money(1_840_000_000_000), ..Usage::default() };
        let second = ended(a_run(None), Outcome::Cancelled, None);
        let utc = chrono::Utc.fix();
        assert_snapshot!(list(&[first, second], 2, utc), @"
        haaaaaaa  2026-11-18 11:06  completed, checked after 3 iterations           2m16s     $1.84  Build the todo API
        haaaaaaa  2026-11-18 11:06  cancelled after 0 iterations                     0.0s            Build the todo API
        (2 more: --limit 4)
        ");
        assert_snapshot!(list(&[], 0, utc), @"no loop has ended here");
    }
}

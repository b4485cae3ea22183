//! Who waits for what: the rate windows that stand, and the loops that wait for each. The board and
//! a page say it of one loop; this says it of the machine.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::page::Reading;
use crate::engine::record::{Loop, LoopId, Status};
use crate::engine::text::{clock_time, count, named, one_line};
use crate::engine::window::RateWindow;

/// The longest reason, in characters.
const WHY_CHARS: usize = 60;
/// The most loops that are named.
const NAMED: usize = 8;

/// "claude is at its limit until 03:10 (met by loop k3vq7xwa: usage limit); 2 loops wait: …", one
/// line for each window that stands or that loops still wait for.
pub fn lines(windows: &[RateWindow], loops: &[Loop], at: Reading) -> String {
    let clock = |time| clock_time(time, at.clock());
    let line = |(window, waiting): (&RateWindow, Vec<&Loop>)| {
        let until = if window.is_closed(at.now) {
            "is at its limit until"
        } else {
            "was at its limit until"
        };
        let met = format!("met by loop {}: {}", window.met_by, one_line(&window.why, WHY_CHARS));
        let head = format!("{} {until} {} ({met})", window.account, clock(window.until));
        let Some(last) = waiting.iter().filter_map(|it| it.state.due).max() else {
            return format!("{head}; no loop waits for it\n");
        };
        let ids: Vec<String> = waiting.iter().map(|it| it.id.to_string()).collect();
        let verb = if ids.len() == 1 { "waits" } else { "wait" };
        let number = count(ids.len() as u64, "loop");
        format!("{head}; {number} {verb}, the last until {}: {}\n", clock(last), named(&ids, NAMED))
    };
    in_force(windows, loops, at.now).map(line).collect()
}

/// The same as JSON.
pub fn json(windows: &[RateWindow], loops: &[Loop], now: DateTime<Utc>) -> Value {
    let one = |(window, waiting): (&RateWindow, Vec<&Loop>)| {
        let waiting: Vec<&LoopId> = waiting.iter().map(|it| &it.id).collect();
        json!({
            "account": window.account.name,
            "model": window.account.model,
            "until": window.until,
            "why": window.why,
            "met_by": window.met_by,
            "met_at": window.met_at,
            "waiting": waiting,
        })
    };
    in_force(windows, loops, now).map(one).collect()
}

/// The windows that stand or that loops still wait for, each with those loops.
fn in_force<'a>(
    windows: &'a [RateWindow],
    loops: &'a [Loop],
    now: DateTime<Utc>,
) -> impl Iterator<Item = (&'a RateWindow, Vec<&'a Loop>)> {
    let all = windows.iter().map(|window| (window, waiting_for(window, loops)));
    all.filter(move |(window, waiting)| window.is_closed(now) || !waiting.is_empty())
}

/// The loops that wait for a window, in the order of their turns.
fn waiting_for<'a>(window: &RateWindow, loops: &'a [Loop]) -> Vec<&'a Loop> {
    let waits = |it: &&Loop| {
        it.state.status == Status::Waiting && it.state.window.as_ref() == Some(&window.account)
    };
    let mut waiting: Vec<&Loop> = loops.iter().filter(waits).collect();
    waiting.sort_by_key(|it| it.state.due);
    waiting
}

#[cfg(test)]
mod tests {
    use chrono::{FixedOffset, TimeDelta};
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::fixture::{a_run, at};
    use crate::engine::record::AccountId;

    #[test]
    fn a_window_says_until_when_who_met_it_and_who_waits() {
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
            let mut it = a_run(None);
            it.id = LoopId::from_random(id);
            it.state.status = Status::Waiting;
            it.state.window = Some(account.clone());
            it.state.due = Some(at(600).wall + TimeDelta::minutes(id.cast_signed()));
            it
        };
        let told = |windows: &[RateWindow], loops: &[Loop], now| {
            let offset = FixedOffset::east_opt(0).unwrap();
            let listed = json(windows, loops, at(now).wall).as_array().unwrap().len();
            let lines = lines(windows, loops, Reading { width: 100, now: at(now).wall, offset });
            assert_eq!(lines.lines().count(), listed, "{lines}");
            lines
        };
        let model = AccountId { model: Some("opus".to_owned()), ..account.clone() };
        let other = RateWindow { account: model, ..window.clone() };
        let all = [
            told(&[window.clone(), other], &[waiting(2), waiting(1), a_run(None)], 60),
            told(std::slice::from_ref(&window), &[waiting(2)], 620),
            told(&[window], &[a_run(None)], 620),
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

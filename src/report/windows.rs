//! Who waits for what: the rate windows that stand, and the loops that wait for each. The board and
//! a page say it of one loop; this says it of the machine.

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
    let line = |window: &RateWindow| {
        let waiting = waiting_for(window, loops);
        let stands = window.is_closed(at.now);
        if !stands && waiting.is_empty() {
            return None;
        }
        let until = if stands { "is at its limit until" } else { "was at its limit until" };
        let met = format!("met by loop {}: {}", window.met_by, one_line(&window.why, WHY_CHARS));
        let head = format!("{} {until} {} ({met})", window.account, clock(window.until));
        let Some(last) = waiting.iter().filter_map(|it| it.state.due).max() else {
            return Some(format!("{head}; no loop waits for it\n"));
        };
        let ids: Vec<String> = waiting.iter().map(|it| it.id.to_string()).collect();
        let verb = if ids.len() == 1 { "waits" } else { "wait" };
        let number = count(ids.len() as u64, "loop");
        Some(format!(
            "{head}; {number} {verb}, the last until {}: {}\n",
            clock(last),
            named(&ids, NAMED)
        ))
    };
    windows.iter().filter_map(line).collect()
}

/// The same as JSON.
pub fn json(windows: &[RateWindow], loops: &[Loop]) -> Value {
    let one = |window: &RateWindow| {
        let waiting: Vec<&LoopId> = waiting_for(window, loops).iter().map(|it| &it.id).collect();
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
    windows.iter().map(one).collect()
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

//! The timeline of a loop as bars: how long each iteration took and how its checks ended, how many
//! tests failed, what it cost. Each is also in the table beneath. Colours come from the page's
//! style, so that they fit both schemes.

use std::fmt::Write as _;

use crate::engine::evidence::{ClaimResult, Evidence};
use crate::engine::journal::story::Iteration;
use crate::engine::usage::Money;
use crate::report::words::brief;

/// The most bars of a chart; iterations in a row share one beyond that.
const BARS_MAX: usize = 240;
/// The most bars that have room for their values.
const NAMED_MAX: usize = 12;

/// How an iteration ended, as far as a colour can show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shade {
    Quiet,
    Good,
    Bad,
}

impl Shade {
    /// Of one boundary.
    pub fn of(evidence: &Evidence) -> Self {
        match evidence.claim {
            ClaimResult::Accepted => Self::Good,
            _ if evidence.failure.is_some() || evidence.failing().next().is_some() => Self::Bad,
            _ if evidence.checks.is_empty() => Self::Quiet,
            _ => Self::Good,
        }
    }

    /// The class of the style.
    pub fn class(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Good => "good",
            Self::Bad => "bad",
        }
    }
}

/// One or more iterations in a row, as one bar.
struct Bar {
    /// The first of them.
    number: u32,
    elapsed_ms: u64,
    cost_micros: u64,
    /// Failing tests after the last of them; `None` where no check named its tests.
    failing: Option<u64>,
    shade: Shade,
}

/// All charts that have something to show.
pub fn charts<'a>(iterations: impl Iterator<Item = &'a Iteration>) -> String {
    let all: Vec<&Iteration> = iterations.collect();
    if all.len() < 2 {
        return String::new();
    }
    let each = all.len().div_ceil(BARS_MAX);
    let bars: Vec<Bar> = all.chunks(each).map(bar).collect();
    let mut text = String::new();
    let of =
        if each == 1 { "each iteration".to_owned() } else { format!("every {each} iterations") };
    let longest = bars.iter().map(|bar| bar.elapsed_ms).max().unwrap_or_default();
    let name = format!("Time of {of}, at most {}", brief(longest));
    text.push_str(&chart(&name, &bars, longest, |bar| {
        Some((bar.elapsed_ms, brief(bar.elapsed_ms)))
    }));
    let failing = bars.iter().filter_map(|bar| bar.failing).max();
    if let Some(most) = failing.filter(|most| *most > 0) {
        let name = format!("Failing tests, where they ran, at most {most}");
        let value = |bar: &Bar| bar.failing.map(|failing| (failing, failing.to_string()));
        text.push_str(&chart(&name, &bars, most, value));
    }
    let dearest = bars.iter().map(|bar| bar.cost_micros).max().unwrap_or_default();
    if dearest > 0 {
        let name = format!("Cost of {of}, at most {}", Money::from_micros(dearest));
        let value = |bar: &Bar| (bar.cost_micros, Money::from_micros(bar.cost_micros).to_string());
        text.push_str(&chart(&name, &bars, dearest, |bar| Some(value(bar))));
    }
    text
}

fn bar(iterations: &[&Iteration]) -> Bar {
    let cost = |it: &&Iteration| it.evidence.usage.as_ref().map_or(0, |usage| usage.cost.micros());
    let last = iterations.last().map(|it| &it.evidence);
    let tests = last.into_iter().flat_map(|last| &last.checks).filter_map(|it| it.tests.as_ref());
    let failing: Vec<u64> = tests.map(|tests| u64::from(tests.failed)).collect();
    Bar {
        number: iterations.first().map_or(0, |it| it.evidence.iteration),
        elapsed_ms: iterations.iter().map(|it| it.elapsed_ms).sum(),
        cost_micros: iterations.iter().map(cost).sum(),
        failing: (!failing.is_empty()).then(|| failing.iter().sum()),
        shade: iterations.iter().map(|it| Shade::of(&it.evidence)).max().unwrap_or(Shade::Quiet),
    }
}

/// Bars from the floor of the chart, each with its value; one that has a value is never invisible,
/// not even at 0.
fn chart(
    name: &str,
    bars: &[Bar],
    most: u64,
    value: impl Fn(&Bar) -> Option<(u64, String)>,
) -> String {
    let named = if bars.len() > NAMED_MAX { "" } else { " named" };
    let mut text = format!(
        "<figure><figcaption>{name}</figcaption>\n\
         <div class=\"bars{named}\" role=\"img\" aria-label=\"{name}\">\n"
    );
    for bar in bars {
        let (value, words) = value(bar).unwrap_or_default();
        let height =
            if words.is_empty() { 0 } else { (value.saturating_mul(100) / most.max(1)).max(2) };
        let _ = writeln!(
            text,
            "<i class=\"{}\" style=\"height:{height}%\" title=\"{}: {words}\"><span>{words}</span></i>",
            bar.shade.class(),
            bar.number,
        );
    }
    text.push_str("</div></figure>\n");
    text
}

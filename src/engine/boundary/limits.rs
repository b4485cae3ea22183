//! The bounds of a loop and the rule that says which one is reached. 0 always means "none".
//!
//! The defaults are finite, because a runaway loop is the worst outcome; a user who wants no bound
//! must say 0.

use chrono::{DateTime, TimeDelta, Utc};

use crate::engine::record::Loop;
use crate::engine::record::contract::Limits;
use crate::engine::record::outcome::Outcome;
use crate::engine::text::{count, period};
use crate::engine::usage::{Money, tokens_text};

/// A limit's new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitChange {
    To(u64),
    By(u64),
}

/// Changes of limits; what is `None` stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitChanges {
    pub max_iterations: Option<LimitChange>,
    pub failure_threshold: Option<LimitChange>,
    pub stall: Option<LimitChange>,
    pub max_duration_s: Option<LimitChange>,
    pub max_cost_micros: Option<LimitChange>,
    pub max_tokens: Option<LimitChange>,
}

impl LimitChanges {
    /// The limits of `subject` after the changes. "By" on a limit of 0 counts from what is used so
    /// far: `spent_ms` are the awake milliseconds of the running iteration.
    pub fn apply(&self, subject: &Loop, spent_ms: u64) -> Limits {
        let (limits, state) = (&subject.contract.limits, &subject.state);
        let moved = |limit: u64, change: Option<LimitChange>, done: u64| match change {
            None => limit,
            Some(LimitChange::To(value)) => value,
            Some(LimitChange::By(value)) if limit == 0 => done.saturating_add(value),
            Some(LimitChange::By(value)) => limit.saturating_add(value),
        };
        let small = |limit: u32, change, done: u32| {
            u32::try_from(moved(limit.into(), change, done.into())).unwrap_or(u32::MAX)
        };
        let seconds = state.awake_ms.saturating_add(spent_ms).div_ceil(1000);
        let micros = state.usage.cost_at_most().micros();
        let (failures, tokens) = (state.consecutive_failures, state.usage.tokens.total());
        Limits {
            max_iterations: small(limits.max_iterations, self.max_iterations, state.completed),
            failure_threshold: small(limits.failure_threshold, self.failure_threshold, failures),
            stall: small(limits.stall, self.stall, state.iterations_without_progress),
            max_duration_s: moved(limits.max_duration_s, self.max_duration_s, seconds),
            max_wait_s: limits.max_wait_s,
            max_cost_micros: moved(limits.max_cost_micros, self.max_cost_micros, micros),
            max_tokens: moved(limits.max_tokens, self.max_tokens, tokens),
        }
    }
}

/// Transient errors in a row after which a person is asked.
pub const TRANSIENT_ERRORS_MAX: u32 = 12;

/// Names the limit that is reached, if one is.
pub fn reached(subject: &Loop) -> Option<String> {
    let limits = &subject.contract.limits;
    let [iterations, time, cost, tokens] = spent(subject);
    if iterations {
        let max = count(limits.max_iterations, "iteration");
        return Some(format!("the limit of {max} is reached"));
    }
    if time {
        let time = period(limits.max_duration_s);
        return Some(format!("the time limit of {time} is reached"));
    }
    let usage = &subject.state.usage;
    if cost {
        let max = Money::from_micros(limits.max_cost_micros);
        let cost = usage.spoken_cost(true).unwrap_or_default();
        return Some(format!("the cost limit of {max} is reached: {cost}"));
    }
    if tokens {
        let [max, used] = [limits.max_tokens, usage.tokens.total()].map(tokens_text);
        return Some(format!("the limit of {max} tokens is reached: {used} used"));
    }
    None
}

/// Says of the iteration that begins that it is the last: by number, or because the money, tokens
/// or time left is less than an average iteration took so far.
pub fn last(subject: &Loop) -> Option<String> {
    let limits = &subject.contract.limits;
    let max = limits.max_iterations;
    if max > 0 && subject.iteration() >= max {
        return Some("This is the last iteration.".to_owned());
    }
    let (state, done) = (&subject.state, u64::from(subject.state.completed));
    // `used` covers the whole loop, `worked` only its iterations.
    let left_of = |max: u64, used: u64, worked: u64| {
        let left = max.saturating_sub(used);
        (max > 0 && done > 0 && left < worked / done).then_some(left)
    };
    let left = |max: u64, used: u64| left_of(max, used, used);
    let (cost, tokens) = (state.usage.cost_at_most(), state.usage.tokens.total());
    let money = left(Money::from_micros(limits.max_cost_micros).0, cost.0)
        .map(|left| format!("{} of {}", Money(left), Money::from_micros(limits.max_cost_micros)));
    let tokens = || {
        let [left, max] = [left(limits.max_tokens, tokens)?, limits.max_tokens].map(tokens_text);
        Some(format!("{left} of {max} tokens"))
    };
    let time = || {
        let newest = subject.elapsed_ms.iter().fold(0_u64, |sum, ms| sum.saturating_add(*ms));
        let worked = subject.earlier.sum_ms.saturating_add(newest);
        let seconds =
            left_of(limits.max_duration_s.saturating_mul(1000), state.awake_ms, worked)? / 1000;
        let (left, unit) = if seconds < 60 { (seconds, "s") } else { (seconds / 60, "min") };
        Some(format!("{left} {unit} of the loop's time"))
    };
    let left = money.or_else(tokens).or_else(time)?;
    Some(format!("About {left} is left: treat this as the last iteration."))
}

/// How a loop that only its limit could end reached it: "ran its 5 iterations".
pub fn ran(subject: &Loop) -> Option<String> {
    let max = subject.contract.limits.max_iterations;
    spent(subject)[0].then(|| format!("ran its {}", count(max, "iteration"))).or(reached(subject))
}

/// Milliseconds of the loop's time left at `awake_ms`, in its running iteration; `None` without a
/// limit.
pub fn time_left_ms(subject: &Loop, awake_ms: u64) -> Option<u64> {
    let max = subject.contract.limits.max_duration_s;
    let iteration = awake_ms.saturating_sub(subject.state.began.awake_ms);
    let spent = subject.state.awake_ms.saturating_add(iteration);
    (max > 0).then(|| max.saturating_mul(1000).saturating_sub(spent))
}

/// How many milliseconds a check may run after the loop's time is over: a tenth of that time, 10
/// min at most.
pub fn overtime_ms(limits: &Limits) -> u64 {
    limits.max_duration_s.saturating_mul(100).min(600_000)
}

/// Which limits are reached: iterations, time, cost, tokens. A model without a known price counts
/// at the highest rate: if the limit may be exceeded, it counts as reached.
fn spent(subject: &Loop) -> [bool; 4] {
    let (limits, state) = (&subject.contract.limits, &subject.state);
    let is_spent = |max: u64, used: u64| max > 0 && used >= max;
    [
        is_spent(limits.max_iterations.into(), state.completed.into()),
        is_spent(limits.max_duration_s.saturating_mul(1000), state.awake_ms),
        is_spent(Money::from_micros(limits.max_cost_micros).0, state.usage.cost_at_most().0),
        is_spent(limits.max_tokens, state.usage.tokens.total()),
    ]
}

/// Whether the loop was blocked because nothing reported its use, so that a limit on it could not
/// be kept.
fn is_unkept(subject: &Loop) -> bool {
    let state = &subject.state;
    subject.contract.limits.bound_usage()
        && state.ending.as_ref().is_some_and(|ending| ending.outcome == Outcome::Blocked)
        && state.evidence.as_ref().is_some_and(|it| it.skipped.is_none() && it.usage.is_none())
}

/// The options that raise what is used up and lift what cannot be kept, each with a blank before
/// it, for the command that resumes the loop.
pub fn raise(subject: &Loop) -> String {
    let limits = &subject.contract.limits;
    let is_unkept = is_unkept(subject);
    let [iterations, time, cost, tokens] = spent(subject);
    let iterations = if iterations { " -n +10" } else { "" };
    let time = if time { " --max-duration +2h" } else { "" };
    let cost = match () {
        () if is_unkept && limits.max_cost_micros > 0 => " --max-cost 0",
        () if cost => " --max-cost +5",
        () => "",
    };
    let tokens = match () {
        () if is_unkept && limits.max_tokens > 0 => " --max-tokens 0",
        () if tokens => " --max-tokens +1M",
        () => "",
    };
    format!("{iterations}{time}{cost}{tokens}")
}

/// Seconds to wait before try `attempt` (1-based) if the service names no reset: 60 s doubling to
/// 30 min.
pub fn back_off_s(attempt: u32) -> u64 {
    (60_u64 << attempt.saturating_sub(1).min(5)).min(1800)
}

/// When to try again after a transient error. `jitter` is 0 to 999 and adds at most a tenth of the
/// wait and at most 30 s, so that many loops with one reset do not all retry in the same second.
pub fn wait_until(
    now: DateTime<Utc>,
    reset: Option<DateTime<Utc>>,
    attempt: u32,
    jitter: u16,
) -> DateTime<Utc> {
    let wait = match reset {
        Some(reset) => (reset - now).max(TimeDelta::zero()),
        None => TimeDelta::seconds(back_off_s(attempt).cast_signed()),
    };
    let spread = (wait.num_milliseconds() / 10).min(30_000) * i64::from(jitter) / 1000;
    now + wait + TimeDelta::milliseconds(spread)
}

/// Names the limit that a wait until `due` would exceed, if there is one.
pub fn outlasted_by(subject: &Loop, now: DateTime<Utc>, due: DateTime<Utc>) -> Option<String> {
    let limits = &subject.contract.limits;
    let seconds = u64::try_from((due - now).num_seconds()).unwrap_or(0);
    if limits.max_wait_s > 0 && seconds > limits.max_wait_s {
        return Some("the longest wait allowed".to_owned());
    }
    let left =
        limits.max_duration_s.saturating_mul(1000).saturating_sub(subject.state.awake_ms) / 1000;
    (limits.max_duration_s > 0 && seconds > left).then(|| "the loop's time limit".to_owned())
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;

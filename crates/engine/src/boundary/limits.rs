//! The bounds of a loop in iterations, time, tokens and money, and which one is reached; the rules
//! for failures in a row and for iterations without progress are in `decide.rs`. 0 means "none".
//!
//! The defaults are finite, because a runaway loop is the worst outcome; a user who wants no bound
//! must say 0.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::record::{Contract, EndReason, Limits, Loop, Moment};
use crate::text::{count, format_duration, format_period, with_reason};
use crate::usage::{Money, Usage, tokens_text};

type Time = DateTime<Utc>;

/// A limit, in the order of display; its word is the name of its option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitName {
    MaxIterations,
    FailureThreshold,
    Stall,
    MaxDuration,
    MaxCost,
    MaxTokens,
    /// The limit on a single wait, which has no option.
    MaxWait,
}

impl LimitName {
    /// The limits that end a loop when they are used up, whether or not it made progress.
    pub const BOUNDS: [Self; 4] =
        [Self::MaxIterations, Self::MaxDuration, Self::MaxCost, Self::MaxTokens];

    /// A limit with its unit: "10 iterations", "12h", "$5.00", "2M tokens".
    fn limit_text(self, limit: u64) -> String {
        match self {
            Self::MaxDuration | Self::MaxWait => format_duration(limit.saturating_mul(1000)),
            Self::MaxCost => Money::from_micros(limit).to_string(),
            Self::MaxTokens => format!("{} tokens", tokens_text(limit)),
            Self::FailureThreshold => count(limit, "failure"),
            Self::MaxIterations | Self::Stall => count(limit, "iteration"),
        }
    }
}

/// A limit's new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitChange {
    To(u64),
    By(u64),
}

/// Changes of limits; a limit that is absent stays as it is.
pub type LimitChanges = BTreeMap<LimitName, LimitChange>;

impl Limits {
    /// The limits of a contract, each the number that `value` has for its setting.
    pub fn from_settings(value: impl Fn(LimitName) -> u64) -> Self {
        let small = |key| u32::try_from(value(key)).unwrap_or(u32::MAX);
        Self {
            max_iterations: small(LimitName::MaxIterations),
            failure_threshold: small(LimitName::FailureThreshold),
            stall: small(LimitName::Stall),
            max_duration_s: value(LimitName::MaxDuration),
            max_wait_s: value(LimitName::MaxWait),
            max_cost_micros: value(LimitName::MaxCost),
            max_tokens: value(LimitName::MaxTokens),
        }
    }

    /// All limits, by their settings.
    pub fn by_key(&self) -> BTreeMap<LimitName, u64> {
        [
            (LimitName::MaxIterations, self.max_iterations.into()),
            (LimitName::FailureThreshold, self.failure_threshold.into()),
            (LimitName::Stall, self.stall.into()),
            (LimitName::MaxDuration, self.max_duration_s),
            (LimitName::MaxWait, self.max_wait_s),
            (LimitName::MaxCost, self.max_cost_micros),
            (LimitName::MaxTokens, self.max_tokens),
        ]
        .into()
    }

    /// Whether none of these limits allows more than in `other`; 0 allows everything.
    pub fn are_within(&self, other: &Self) -> bool {
        let both = self.by_key().into_values().zip(other.by_key().into_values());
        both.into_iter().all(|(own, other)| other == 0 || (own != 0 && own <= other))
    }

    /// Whether at least one of these limits ends every loop sooner or later.
    pub fn end_every_loop(&self) -> bool {
        self.max_iterations > 0 || self.max_duration_s > 0 || self.bound_usage()
    }

    /// Whether at least one of these limits ends some loops: all, those that fail, or those that
    /// change nothing.
    pub fn end_some_loops(&self) -> bool {
        self.end_every_loop() || self.failure_threshold > 0 || self.stall > 0
    }

    /// Whether this limit is reached. A model without a known price counts at the highest rate: if
    /// the limit may be exceeded, it counts as reached.
    pub fn is_spent(&self, limit: LimitName, completed: u32, awake_ms: u64, usage: &Usage) -> bool {
        let (max, used) = match limit {
            LimitName::MaxIterations => (self.max_iterations.into(), completed.into()),
            LimitName::MaxDuration => (self.max_duration_s.saturating_mul(1000), awake_ms),
            LimitName::MaxCost => {
                (Money::from_micros(self.max_cost_micros).0, usage.cost_at_most().0)
            }
            LimitName::MaxTokens => (self.max_tokens, usage.tokens.total()),
            _ => return false,
        };
        max > 0 && used >= max
    }

    /// Whether a limit depends on what the loop used.
    pub fn bound_usage(&self) -> bool {
        self.max_cost_micros > 0 || self.max_tokens > 0
    }
}

/// The limits of `subject` after the changes. "By" on a limit of 0 counts from what has been used
/// so far: `spent_ms` are the awake milliseconds of the running iteration.
pub fn change_limits(changes: &LimitChanges, subject: &Loop, spent_ms: u64) -> Limits {
    let (limits, state) = (subject.contract.limits.by_key(), &subject.state);
    let used = |key| match key {
        LimitName::MaxIterations => state.counts().completed().into(),
        LimitName::FailureThreshold => state.counts().consecutive_failures().into(),
        LimitName::Stall => state.counts().iterations_without_progress().into(),
        LimitName::MaxDuration => state.time().awake_ms().saturating_add(spent_ms).div_ceil(1000),
        LimitName::MaxCost => state.work().usage().cost_at_most().micros(),
        LimitName::MaxTokens => state.work().usage().tokens.total(),
        // The wait limit has no option, so it never changes.
        LimitName::MaxWait => 0_u64,
    };
    Limits::from_settings(|key| match (changes.get(&key), limits[&key]) {
        (None, limit) => limit,
        (Some(LimitChange::To(value)), _) => *value,
        (Some(LimitChange::By(value)), 0) => used(key).saturating_add(*value),
        (Some(LimitChange::By(value)), limit) => limit.saturating_add(*value),
    })
}

/// The limits on one line: "up to 10 iterations, 12h, $5.00".
pub fn describe_limits(limits: &Limits) -> String {
    match list_bounds(limits) {
        bounds if bounds.is_empty() => "no limit on iterations or time".to_owned(),
        bounds => format!("up to {}", bounds.join(", ")),
    }
}

/// The limits that end every loop: "10 iterations", "12h", "$5.00".
fn list_bounds(limits: &Limits) -> Vec<String> {
    let limits = limits.by_key();
    let bounds = LimitName::BOUNDS.into_iter().filter(|limit| limits[limit] > 0);
    bounds.map(|limit| limit.limit_text(limits[&limit])).collect()
}

/// The limits as a start names them. Without one on iterations, "unlimited" would promise more than
/// the others allow, so every one that is on is named.
pub fn in_force(limits: &Limits) -> String {
    if limits.max_iterations > 0 {
        return describe_limits(limits);
    }
    let [failures, stall] = [limits.failure_threshold, limits.stall].map(u64::from);
    let bounds = list_bounds(limits);
    let parts = [
        Some("unlimited iterations".to_owned()),
        if bounds.is_empty() { None } else { Some(format!("up to {}", bounds.join(", "))) },
    ];
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    if failures > 0 {
        parts.push(format!("{} in a row abort", count(failures, "failure")));
    }
    if stall > 0 {
        parts.push(format!("{} without progress stall", count(stall, "iteration")));
    }
    parts.join(", ")
}

/// How a loop ends that has no checks, for its start.
pub fn without_checks(contract: &Contract) -> String {
    let (claims, end) = match contract.promise {
        Some(_) => (": a claim is the agent's word, and without one", "exhausted"),
        None => (", and no claim ends it:", "completed, claimed"),
    };
    let runs = match contract.limits.max_iterations {
        0 if !contract.limits.end_every_loop() => "it runs without a limit".to_owned(),
        0 => format!("it runs to its limit and ends {end}"),
        1 => format!("it runs once and ends {end}"),
        max => format!("it runs {max} times and ends {end}"),
    };
    format!("nothing is checked{claims} {runs}")
}

/// What was used, with the limit if there is one: "$1.84", "$1.84 of $5.00".
pub fn cost_and_tokens(subject: &Loop) -> Option<String> {
    let limits = &subject.contract.limits;
    let usage = subject.state.work().usage();
    let cost = usage.cost_text(limits.max_cost_micros > 0)?;
    let cost = match Money::from_micros(limits.max_cost_micros) {
        Money(0) if limits.max_tokens > 0 && !usage.has_price() => None,
        Money(0) => Some(cost),
        max => Some(format!("{cost} of {max}")),
    };
    let [used, max] = [usage.tokens.total(), limits.max_tokens].map(tokens_text);
    let bound = if cost.is_none() && usage.is_lower_bound() { "at least " } else { "" };
    let mut parts = Vec::from_iter(cost);
    if limits.max_tokens > 0 {
        parts.push(format!("{bound}{used} of {max} tokens"));
    }
    Some(parts.join(", "))
}

/// The number of consecutive transient errors after which the user is asked.
pub const TRANSIENT_ERRORS_MAX: u32 = 12;

/// Names the limit that is reached, if one is.
pub fn reached_limit(subject: &Loop) -> Option<String> {
    let limit = LimitName::BOUNDS.into_iter().find(|limit| is_spent(subject, *limit))?;
    let max = match (limit, subject.contract.limits.by_key()[&limit]) {
        (LimitName::MaxDuration, seconds) => format_period(seconds),
        (limit, max) => limit.limit_text(max),
    };
    let usage = subject.state.work().usage();
    let (kind, used) = match limit {
        LimitName::MaxDuration => ("time ", None),
        LimitName::MaxCost => ("cost ", usage.cost_text(true)),
        LimitName::MaxTokens => ("", Some(format!("{} used", tokens_text(usage.tokens.total())))),
        _ => ("", None),
    };
    let what = format!("the {kind}limit of {max} is reached");
    Some(with_reason(&what, used.as_deref().unwrap_or_default()))
}

/// Says that the iteration that begins is the last one: by its number, or because the money, tokens
/// or time left is less than an average iteration took so far.
pub fn last_iteration_note(subject: &Loop) -> Option<String> {
    let (limits, state) = (subject.contract.limits.by_key(), &subject.state);
    let most = limits[&LimitName::MaxIterations];
    if most > 0 && u64::from(subject.iteration()) >= most {
        return Some("This is the last iteration.".to_owned());
    }
    let newest = subject.elapsed_ms.iter().fold(0_u64, |sum, ms| sum.saturating_add(*ms));
    let worked_s = subject.earlier.sum_ms.saturating_add(newest) / 1000;
    let (cost, tokens) =
        (state.work().usage().cost_at_most().micros(), state.work().usage().tokens.total());
    // What the whole loop used, and only its iterations.
    let uses = [
        (LimitName::MaxCost, cost, cost),
        (LimitName::MaxTokens, tokens, tokens),
        (LimitName::MaxDuration, state.time().awake_ms() / 1000, worked_s),
    ];
    let (limit, left) = uses.into_iter().find_map(|(limit, used, worked)| {
        let left = limits[&limit].saturating_sub(used);
        let average = worked.checked_div(state.counts().completed().into())?;
        (limits[&limit] > 0 && left < average).then_some((limit, left))
    })?;
    let max = limit.limit_text(limits[&limit]);
    let left = match limit {
        LimitName::MaxDuration if left < 60 => format!("{left} s of the loop's time"),
        LimitName::MaxDuration => format!("{} min of the loop's time", left / 60),
        LimitName::MaxTokens => format!("{} of {max}", tokens_text(left)),
        _ => format!("{} of {max}", limit.limit_text(left)),
    };
    Some(format!("About {left} is left: treat this as the last iteration."))
}

/// How a loop that only its limit could end reached it: "ran its 5 iterations".
pub fn limit_as_aim(subject: &Loop) -> Option<String> {
    let max = subject.contract.limits.max_iterations;
    if is_spent(subject, LimitName::MaxIterations) {
        return Some(format!("ran its {}", count(max, "iteration")));
    }
    reached_limit(subject)
}

/// Milliseconds of the loop's time left at `awake_ms`, in its running iteration; `None` without a
/// limit.
pub fn time_left_ms(subject: &Loop, awake_ms: u64) -> Option<u64> {
    let max = subject.contract.limits.max_duration_s;
    let iteration = awake_ms.saturating_sub(subject.state.time().began().awake_ms);
    let spent = subject.state.time().awake_ms().saturating_add(iteration);
    if max > 0 { Some(max.saturating_mul(1000).saturating_sub(spent)) } else { None }
}

/// How many milliseconds a check may run after the loop's time is over: a tenth of that time, 10
/// min at most.
pub fn overtime_ms(limits: &Limits) -> u64 {
    limits.max_duration_s.saturating_mul(100).min(600_000)
}

fn is_spent(subject: &Loop, limit: LimitName) -> bool {
    let (limits, state) = (&subject.contract.limits, &subject.state);
    limits.is_spent(
        limit,
        state.counts().completed(),
        state.time().awake_ms(),
        state.work().usage(),
    )
}

/// Whether the loop was blocked because nothing reported its use, so that a limit on it could not
/// be kept.
fn is_unmeasured(subject: &Loop) -> bool {
    let state = &subject.state;
    let reason = state.end().ending().as_ref().map(|ending| &ending.reason);
    matches!(reason, Some(EndReason::Unmeasured { .. }))
}

/// How much a limit is raised to leave room again: by its own value, `most` at most.
fn raise_for(limit: u64, used: u64, most: u64) -> u64 {
    let (over, room) = (used.saturating_sub(limit), limit.min(most));
    if over < room { room } else { over.saturating_add(room) }
}

/// The raise of the cost limit, such as `+5` or `+0.07`, in dollars.
fn more_cost(subject: &Loop) -> String {
    let limit = Money::from_micros(subject.contract.limits.max_cost_micros);
    let used = subject.state.work().usage().cost_at_most();
    let cents =
        raise_for(limit.0, used.0, Money::from_micros(5_000_000).0).div_ceil(10_000_000_000);
    match cents % 100 {
        0 => format!("+{}", cents / 100),
        rest => format!("+{}.{rest:02}", cents / 100),
    }
}

/// The raise of the token limit, such as `+1M`, `+20k` or `+150`.
fn more_tokens(subject: &Loop) -> String {
    let used = subject.state.work().usage().tokens.total();
    match raise_for(subject.contract.limits.max_tokens, used, 1_000_000) {
        few @ 0..1000 => format!("+{few}"),
        whole if whole % 1_000_000 == 0 => format!("+{}M", whole / 1_000_000),
        many => format!("+{}k", many.div_ceil(1000)),
    }
}

/// The options that raise limits that are used up and lift those that cannot be kept, each after a
/// blank, for the command that resumes the loop.
pub fn raise_options(subject: &Loop) -> String {
    let [iterations, time, cost, tokens] = LimitName::BOUNDS.map(|limit| is_spent(subject, limit));
    let iterations = if iterations { " -n +10" } else { "" };
    let time = if time { " --max-duration +2h" } else { "" };
    let mut options = [iterations, time].concat();
    if is_unmeasured(subject) {
        return options + &lift_usage_limits(&subject.contract.limits);
    }
    if cost {
        options = options + " --max-cost " + &more_cost(subject);
    }
    if tokens {
        options = options + " --max-tokens " + &more_tokens(subject);
    }
    options
}

/// The options that lift the limits on usage, each with a blank before it.
pub fn lift_usage_limits(limits: &Limits) -> String {
    let cost = if limits.max_cost_micros > 0 { " --max-cost 0" } else { "" };
    let tokens = if limits.max_tokens > 0 { " --max-tokens 0" } else { "" };
    [cost, tokens].concat()
}

/// Seconds to wait before try `attempt` (1-based) if the service names no reset: 60 s doubling to
/// 30 min.
pub fn back_off_s(attempt: u32) -> u64 {
    (60_u64 << attempt.saturating_sub(1).min(5)).min(1800)
}

/// When to try again after a transient error. `jitter` is 0 to 999 and adds at most a tenth of the
/// wait and at most 30 s, so that many loops with one reset do not all retry in the same second. A
/// reset that is now or past is tried at once; if that is refused too, it says nothing.
pub fn wait_until(now: Time, reset: Option<Time>, attempt: u32, jitter: u16) -> Time {
    let wait = match reset {
        Some(reset) if reset > now => reset - now,
        Some(_) if attempt <= 1 => TimeDelta::zero(),
        _ => TimeDelta::seconds(back_off_s(attempt).cast_signed()),
    };
    let spread = (wait.num_milliseconds() / 10).min(30_000) * i64::from(jitter) / 1000;
    now + wait + TimeDelta::milliseconds(spread)
}

/// Names the limit that a wait until `due` would exceed, with what the loop has waited since its
/// iteration or its wait began.
pub fn outlasted_by(subject: &Loop, now: Moment, due: Time) -> Option<String> {
    let max = subject.contract.limits.max_wait_s;
    let left = u64::try_from((due - now.wall).num_milliseconds()).unwrap_or(0);
    if max > 0 && waited_ms(subject, now).saturating_add(left) / 1000 > max {
        return Some("the longest wait allowed".to_owned());
    }
    let time = time_left_ms(subject, now.awake_ms)?;
    if left / 1000 > time / 1000 { Some("the loop's time limit".to_owned()) } else { None }
}

/// Milliseconds that a loop between two iterations has waited already, without the machine's sleep.
pub fn waited_ms(subject: &Loop, now: Moment) -> u64 {
    now.awake_ms.saturating_sub(subject.state.time().began().awake_ms)
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;

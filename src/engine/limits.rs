//! The bounds of a loop and the rule that says which one is reached. 0 always means "none".
//!
//! The defaults are finite because a loop that runs away is the worst thing a loop can do; a user who
//! wants no bound says 0 out loud.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::looped::Loop;
use super::outcome::Outcome;
use super::owner::Driver;
use super::usage::{Money, spoken_tokens};

/// The limits of a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub max_iterations: u32,
    /// Failed iterations in a row that abort the loop.
    pub failure_threshold: u32,
    /// Iterations in a row without progress that stall the loop.
    pub stall: u32,
    /// Awake seconds over all iterations.
    pub max_duration_s: u64,
    /// Seconds a single wait for the model's service may last.
    pub max_wait_s: u64,
    /// Millionths of a US dollar.
    #[serde(default)]
    pub max_cost_micros: u64,
    /// Tokens of every kind.
    #[serde(default)]
    pub max_tokens: u64,
}

impl Limits {
    /// Whether these allow no more than `other` in any of them; 0 allows everything.
    pub fn are_within(&self, other: &Self) -> bool {
        let narrower = |other: u64, own: u64| other == 0 || (own != 0 && own <= other);
        narrower(u64::from(other.max_iterations), u64::from(self.max_iterations))
            && narrower(u64::from(other.failure_threshold), u64::from(self.failure_threshold))
            && narrower(u64::from(other.stall), u64::from(self.stall))
            && narrower(other.max_duration_s, self.max_duration_s)
            && narrower(other.max_wait_s, self.max_wait_s)
            && narrower(other.max_cost_micros, self.max_cost_micros)
            && narrower(other.max_tokens, self.max_tokens)
    }

    /// Whether a limit rests on what the loop used.
    pub fn bound_usage(&self) -> bool {
        self.max_cost_micros > 0 || self.max_tokens > 0
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_iterations: 10,
            failure_threshold: 3,
            stall: 5,
            max_duration_s: 12 * 3600,
            max_wait_s: 12 * 3600,
            max_cost_micros: 0,
            max_tokens: 0,
        }
    }
}

/// A limit's new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    To(u64),
    By(u64),
}

/// Changes of limits; what is `None` stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    pub max_iterations: Option<Change>,
    pub failure_threshold: Option<Change>,
    pub stall: Option<Change>,
    pub max_duration_s: Option<Change>,
    pub max_cost_micros: Option<Change>,
    pub max_tokens: Option<Change>,
}

impl Changes {
    /// The limits after the changes. "By" on a limit that is none leaves it none.
    pub fn apply(&self, limits: &Limits) -> Limits {
        let moved = |limit: u64, change: Option<Change>| match change {
            None => limit,
            Some(Change::To(value)) => value,
            Some(Change::By(_)) if limit == 0 => 0,
            Some(Change::By(value)) => limit.saturating_add(value),
        };
        let small =
            |limit: u32, change| u32::try_from(moved(u64::from(limit), change)).unwrap_or(u32::MAX);
        Limits {
            max_iterations: small(limits.max_iterations, self.max_iterations),
            failure_threshold: small(limits.failure_threshold, self.failure_threshold),
            stall: small(limits.stall, self.stall),
            max_duration_s: moved(limits.max_duration_s, self.max_duration_s),
            max_wait_s: limits.max_wait_s,
            max_cost_micros: moved(limits.max_cost_micros, self.max_cost_micros),
            max_tokens: moved(limits.max_tokens, self.max_tokens),
        }
    }
}

/// Transient errors in a row after which a person is asked.
pub const TRANSIENT_ERRORS_MAX: u32 = 12;

/// Names the limit that is reached, if one is.
pub fn reached(subject: &Loop) -> Option<String> {
    let limits = &subject.contract.limits;
    if iterations_are_spent(subject) {
        return Some(format!("the limit of {} is reached", iterations(limits.max_iterations)));
    }
    if time_is_spent(subject) {
        let time = std::time::Duration::from_secs(limits.max_duration_s);
        let time = humantime::format_duration(time);
        return Some(format!("the time limit of {time} is reached"));
    }
    let usage = &subject.state.usage;
    if cost_is_spent(subject) {
        let max = Money::from_micros(limits.max_cost_micros);
        let cost = usage.spoken_cost(true).unwrap_or_default();
        return Some(format!("the cost limit of {max} is reached: {cost}"));
    }
    if tokens_are_spent(subject) {
        let [max, used] = [limits.max_tokens, usage.tokens.total()].map(spoken_tokens);
        return Some(format!("the limit of {max} tokens is reached: {used} used"));
    }
    None
}

/// How a loop that nothing else could end came to its limit: "ran its 5 iterations".
pub fn ran(subject: &Loop) -> Option<String> {
    let max = subject.contract.limits.max_iterations;
    iterations_are_spent(subject)
        .then(|| format!("ran its {}", iterations(max)))
        .or(reached(subject))
}

fn iterations(number: u32) -> String {
    let noun = if number == 1 { "iteration" } else { "iterations" };
    format!("{number} {noun}")
}

/// Milliseconds of the loop's time that are left at `awake_ms`, in its running iteration; `None` without a limit.
pub fn time_left_ms(subject: &Loop, awake_ms: u64) -> Option<u64> {
    let max = subject.contract.limits.max_duration_s;
    let iteration = awake_ms.saturating_sub(subject.state.began.awake_ms);
    let spent = subject.state.awake_ms.saturating_add(iteration);
    (max > 0).then(|| max.saturating_mul(1000).saturating_sub(spent))
}

fn iterations_are_spent(subject: &Loop) -> bool {
    let max = subject.contract.limits.max_iterations;
    max > 0 && subject.state.completed >= max
}

fn time_is_spent(subject: &Loop) -> bool {
    let max = subject.contract.limits.max_duration_s;
    max > 0 && subject.state.awake_ms >= max.saturating_mul(1000)
}

/// A model without a price is taken for the dearest: a limit that may be passed is passed.
fn cost_is_spent(subject: &Loop) -> bool {
    let max = subject.contract.limits.max_cost_micros;
    max > 0 && subject.state.usage.cost_at_most() >= Money::from_micros(max)
}

fn tokens_are_spent(subject: &Loop) -> bool {
    let max = subject.contract.limits.max_tokens;
    max > 0 && subject.state.usage.tokens.total() >= max
}

/// The command that goes on with a loop, in the driver it has, with what is spent raised.
pub fn going_on(subject: &Loop) -> String {
    let command = match subject.driver() {
        Driver::Session => "/crew:resume",
        Driver::Process => "crew resume",
    };
    format!("{command} {}{}", subject.id, raise(subject))
}

/// Whether the loop ended where nothing told what it used, so that a limit on that could not be kept.
fn is_unkept(subject: &Loop) -> bool {
    let state = &subject.state;
    subject.contract.limits.bound_usage()
        && state.ending.as_ref().is_some_and(|ending| ending.outcome == Outcome::Blocked)
        && state
            .evidence
            .as_ref()
            .is_some_and(|last| last.skipped.is_none() && last.usage.is_none())
}

/// The options that raise what is spent, and lift what cannot be kept, each with a blank before it, for the
/// command that goes on.
pub fn raise(subject: &Loop) -> String {
    let limits = &subject.contract.limits;
    let is_unkept = is_unkept(subject);
    let iterations = if iterations_are_spent(subject) { " -n +10" } else { "" };
    let time = if time_is_spent(subject) { " --max-duration +2h" } else { "" };
    let cost = match () {
        () if is_unkept && limits.max_cost_micros > 0 => " --max-cost 0",
        () if cost_is_spent(subject) => " --max-cost +5",
        () => "",
    };
    let tokens = match () {
        () if is_unkept && limits.max_tokens > 0 => " --max-tokens 0",
        () if tokens_are_spent(subject) => " --max-tokens +1M",
        () => "",
    };
    format!("{iterations}{time}{cost}{tokens}")
}

/// Seconds to wait before try `attempt` (1-based) when the service names no reset: 60 s doubling to 30 min.
pub fn back_off_s(attempt: u32) -> u64 {
    (60_u64 << attempt.saturating_sub(1).min(5)).min(1800)
}

/// When to try again after a transient error. `jitter` is 0 to 999 and adds at most a tenth of the wait, and
/// at most 30 s, so that many loops with one reset do not all come back in the same second.
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

/// Names the limit a wait until `due` would outlast, if there is one.
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
mod tests {
    use super::*;
    use crate::engine::evidence::Evidence;
    use crate::engine::fixture::{a_loop, at};
    use crate::engine::outcome::Ending;
    use crate::engine::usage::Usage;

    #[test]
    fn a_limit_is_named_when_it_is_reached_and_zero_is_none() {
        let table = [
            (10, 9, 0, None),
            (10, 10, 0, Some("the limit of 10 iterations is reached")),
            (0, 5000, 0, None),
            (0, 1, 12 * 3_600_000, Some("the time limit of 12h is reached")),
        ];
        for (max, completed, awake_ms, expected) in table {
            let mut subject = a_loop();
            subject.contract.limits.max_iterations = max;
            subject.state.completed = completed;
            subject.state.awake_ms = awake_ms;
            assert_eq!(reached(&subject).as_deref(), expected, "{completed} of {max}");
        }
    }

    #[test]
    fn the_time_that_is_left_counts_the_running_iteration_and_never_falls_below_nothing() {
        let table =
            [(0, 5000, None), (10, 1000, Some(7000)), (10, 8000, Some(0)), (10, 60_000, Some(0))];
        for (max, now, expected) in table {
            let mut subject = a_loop();
            subject.contract.limits.max_duration_s = max;
            subject.state.awake_ms = 2000;
            subject.state.began.awake_ms = 0;
            assert_eq!(time_left_ms(&subject, now), expected, "{now} of {max}");
        }
    }

    #[test]
    fn what_is_spent_is_raised_and_nothing_else() {
        let mut subject = a_loop();
        assert_eq!(raise(&subject), "");
        subject.state.awake_ms = u64::MAX;
        assert_eq!(raise(&subject), " --max-duration +2h");
        subject.state.completed = 10;
        assert_eq!(raise(&subject), " -n +10 --max-duration +2h");
    }

    #[test]
    fn a_limit_on_cost_or_tokens_is_reached_by_what_was_counted_or_may_have_cost_as_much() {
        const COST: &str = " --max-cost +5";
        let table = [
            (0, 0, 9_000_000, 900, 0, None),
            (5_000_000, 0, 4_999_999, 900, 0, None),
            (
                5_000_000,
                0,
                5_000_000,
                900,
                0,
                Some(("the cost limit of $5.00 is reached: $5.00", COST)),
            ),
            (5_000_000, 0, 0, 900, 33_333, None),
            (
                5_000_000,
                0,
                0,
                900,
                33_334,
                Some((
                    "the cost limit of $5.00 is reached: $5.00 (no price is known of strange-1: taken for the dearest)",
                    COST,
                )),
            ),
            (0, 2_000_000, 0, 1_999_999, 0, None),
            (
                0,
                2_000_000,
                0,
                2_100_000,
                0,
                Some(("the limit of 2M tokens is reached: 2.1M used", " --max-tokens +1M")),
            ),
        ];
        for (max_cost_micros, max_tokens, cost, input, strange, expected) in table {
            let mut subject = a_loop();
            subject.contract.limits.max_cost_micros = max_cost_micros;
            subject.contract.limits.max_tokens = max_tokens;
            let usage = &mut subject.state.usage;
            usage.cost = Money::from_micros(cost);
            usage.tokens.input = input;
            usage.unpriced.output = strange;
            usage.unpriced_models = vec!["strange-1".to_owned(); usize::from(strange > 0)];
            let found = reached(&subject).map(|what| (what, raise(&subject)));
            let found = found.as_ref().map(|(what, raise)| (what.as_str(), raise.as_str()));
            assert_eq!(found, expected, "{cost} {input} {strange}");
        }
    }

    #[test]
    fn a_limit_that_could_not_be_kept_is_lifted_by_the_command_that_goes_on() {
        let table = [
            (5, 0, None, Outcome::Blocked, " --max-cost 0"),
            (0, 9, None, Outcome::Blocked, " --max-tokens 0"),
            (5, 9, None, Outcome::Blocked, " --max-cost 0 --max-tokens 0"),
            (5, 0, Some(Usage::default()), Outcome::Blocked, ""),
            (5, 0, None, Outcome::Stalled, ""),
            (0, 0, None, Outcome::Blocked, ""),
        ];
        for (max_cost_micros, max_tokens, usage, outcome, expected) in table {
            let mut subject = a_loop();
            subject.contract.limits.max_cost_micros = max_cost_micros;
            subject.contract.limits.max_tokens = max_tokens;
            subject.state.evidence = Some(Evidence { usage, ..Evidence::default() });
            subject.state.ending = Some(Ending { outcome, proof: None, why: String::new() });
            assert_eq!(raise(&subject), expected, "{max_cost_micros} {max_tokens} {outcome:?}");
        }
    }

    #[test]
    fn limits_written_before_usage_was_measured_still_load() {
        let old = r#"{"max_iterations":3,"failure_threshold":3,"stall":5,"max_duration_s":9,"max_wait_s":9}"#;
        let limits: Limits = serde_json::from_str(old).unwrap();
        assert!(limits.max_iterations == 3 && !limits.bound_usage());
    }

    #[test]
    fn back_off_doubles_from_a_minute_to_half_an_hour() {
        let waits: Vec<u64> = (1..=8).map(back_off_s).collect();
        assert_eq!(waits, [60, 120, 240, 480, 960, 1800, 1800, 1800]);
    }

    #[test]
    fn a_stated_reset_is_waited_for_and_one_in_the_past_is_now() {
        let reset = Some(at(600).wall);
        assert_eq!(wait_until(at(0).wall, reset, 1, 0), at(600).wall);
        assert_eq!(wait_until(at(900).wall, reset, 1, 0), at(900).wall);
        assert_eq!(wait_until(at(0).wall, None, 2, 0), at(120).wall);
        assert_eq!(wait_until(at(0).wall, None, 2, 500), at(126).wall);
        assert_eq!(wait_until(at(0).wall, Some(at(3600).wall), 1, 500), at(3615).wall);
    }

    #[test]
    fn a_wait_is_measured_against_the_longest_wait_and_the_time_left() {
        let mut subject = a_loop();
        assert_eq!(outlasted_by(&subject, at(0).wall, at(3600).wall), None);
        let too_long = outlasted_by(&subject, at(0).wall, at(13 * 3600).wall);
        assert_eq!(too_long.as_deref(), Some("the longest wait allowed"));
        subject.state.awake_ms = 11 * 3_600_000;
        let past_the_end = outlasted_by(&subject, at(0).wall, at(2 * 3600).wall);
        assert_eq!(past_the_end.as_deref(), Some("the loop's time limit"));
    }
}

use super::*;
use crate::evidence::Evidence;
use crate::fixture::{SetState, USUAL_LIMITS, a_loop, at};
use crate::record::{Driver, Ending, Outcome};
use crate::usage::{Tokens, Usage};

#[test]
fn a_limit_is_named_when_it_is_reached_and_zero_means_no_limit() {
    let table = [
        (10, 43_200, 9, 0, None),
        (10, 43_200, 10, 0, Some("the limit of 10 iterations is reached")),
        (0, 43_200, 5000, 0, None),
        (0, 43_200, 1, 12 * 3_600_000, Some("the time limit of 12h is reached")),
        (0, 3630, 1, 3_630_000, Some("the time limit of 1h 30s is reached")),
    ];
    for (max, max_duration_s, completed, awake_ms, expected) in table {
        let mut subject = a_loop();
        subject.contract.limits.max_duration_s = max_duration_s;
        subject.contract.limits.max_iterations = max;
        subject.state.set("completed", completed);
        subject.state.set("awake_ms", awake_ms);
        assert_eq!(reached_limit(&subject).as_deref(), expected, "{completed} of {max}");
    }
}

#[test]
fn a_loop_without_checks_announces_its_end_only_if_a_limit_ends_it() {
    let mut contract = a_loop().contract;
    let shown = "nothing is checked: a claim is the agent's word, and without one it runs";
    for (max_iterations, max_duration_s, end) in [
        (3, 0, " 3 times and ends exhausted"),
        (0, 60, " to its limit and ends exhausted"),
        (0, 0, " without a limit"),
    ] {
        contract.limits = Limits { max_iterations, max_duration_s, ..contract.limits };
        assert_eq!(without_checks(&contract), format!("{shown}{end}"));
    }
}

#[test]
fn the_time_left_includes_the_running_iteration_and_never_falls_below_zero() {
    let table =
        [(0, 5000, None), (10, 1000, Some(7000)), (10, 8000, Some(0)), (10, 60_000, Some(0))];
    for (max, now, expected) in table {
        let mut subject = a_loop();
        subject.contract.limits.max_duration_s = max;
        subject.state.set("awake_ms", 2000);
        subject.state.set("began.awake_ms", 0);
        assert_eq!(time_left_ms(&subject, now), expected, "{now} of {max}");
    }
}

#[test]
fn only_limits_that_are_used_up_are_raised() {
    let mut subject = a_loop();
    assert_eq!(raise_options(&subject), "");
    subject.state.set("awake_ms", u64::MAX);
    assert_eq!(raise_options(&subject), " --max-duration +2h");
    subject.state.set("completed", 10);
    assert_eq!(raise_options(&subject), " -n +10 --max-duration +2h");
}

#[test]
fn a_limit_on_cost_or_tokens_counts_what_was_measured_and_what_may_have_been_used() {
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
                "the cost limit of $5.00 is reached: $5.00 (no known price for strange-1: counted at the highest)",
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
        let mut usage = Usage { cost: Money::from_micros(cost), ..Usage::default() };
        usage.tokens.input = input;
        usage.unpriced.output = strange;
        usage.unpriced_models = vec!["strange-1".to_owned(); usize::from(strange > 0)];
        subject.state.set("usage", usage);
        let found = reached_limit(&subject).map(|what| (what, raise_options(&subject)));
        let found = found.as_ref().map(|(what, raise)| (what.as_str(), raise.as_str()));
        assert_eq!(found, expected, "{cost} {input} {strange}");
    }
}

#[test]
fn a_small_limit_is_raised_by_its_own_size_or_by_the_amount_it_was_exceeded_by() {
    let table = [
        (70_000, 0, 80_000, 9, " --max-cost +0.07"),
        (70_000, 0, 900_000, 9, " --max-cost +0.90"),
        (0, 150, 0, 170, " --max-tokens +150"),
        (0, 20_000, 0, 45_100, " --max-tokens +46k"),
    ];
    for (max_cost_micros, max_tokens, cost, input, expected) in table {
        let mut subject = a_loop();
        subject.contract.limits.max_cost_micros = max_cost_micros;
        subject.contract.limits.max_tokens = max_tokens;
        subject.state.set("usage.cost", Money::from_micros(cost));
        subject.state.set("usage.tokens.input", input);
        assert_eq!(raise_options(&subject), expected);
    }
}

#[test]
fn the_command_to_continue_lifts_a_limit_that_could_not_be_enforced() {
    let table = [
        (5, 0, true, " --max-cost 0"),
        (0, 9, true, " --max-tokens 0"),
        (5, 9, true, " --max-cost 0 --max-tokens 0"),
        (5, 9, false, ""),
        (0, 0, true, ""),
    ];
    for (max_cost_micros, max_tokens, is_unmeasured, expected) in table {
        let mut subject = a_loop();
        subject.contract.limits.max_cost_micros = max_cost_micros;
        subject.contract.limits.max_tokens = max_tokens;
        let reason = if is_unmeasured {
            EndReason::Unmeasured { driver: Driver::Process, way_out: String::new() }
        } else {
            "the remote refuses it".into()
        };
        subject.state.set("evidence", Some(Evidence::default()));
        subject.state.set("ending", Some(Ending::new(Outcome::Blocked, reason)));
        assert_eq!(
            raise_options(&subject),
            expected,
            "{max_cost_micros} {max_tokens} {is_unmeasured}"
        );
    }
}

#[test]
fn every_limit_of_the_settings_is_stored_counted_and_reachable() {
    let numbered = Limits::from_settings(|key| key as u64 + 1);
    let by_key = numbered.by_key();
    assert_eq!(Limits::from_settings(|key| by_key[&key]), numbered);
    for key in by_key.into_keys().filter(|key| *key != LimitName::MaxWait) {
        let mut subject = a_loop();
        subject.state.set("completed", 1);
        subject.state.set("consecutive_failures", 1);
        subject.state.set("still", 1);
        subject.state.set("awake_ms", 1000);
        let tokens = Tokens { output: 1, ..Tokens::default() };
        subject
            .state
            .set("usage", Usage { tokens, cost: Money::from_micros(1), ..Usage::default() });
        subject.contract.limits = Limits::from_settings(|_| 0);
        let from_what_is_used = change_limits(&[(key, LimitChange::By(1))].into(), &subject, 0);
        assert_eq!(from_what_is_used.by_key()[&key], 2, "{key:?}");
        subject.contract.limits = Limits::from_settings(|it| u64::from(it == key));
        let ends = matches!(key, LimitName::FailureThreshold | LimitName::Stall)
            || reached_limit(&subject).is_some();
        // A row of failures and a stall are rules of their own.
        assert!(ends, "{key:?}");
    }
}

#[test]
fn the_backoff_doubles_from_a_minute_to_half_an_hour() {
    let waits: Vec<u64> = (1..=8).map(back_off_s).collect();
    assert_eq!(waits, [60, 120, 240, 480, 960, 1800, 1800, 1800]);
}

#[test]
fn a_stated_reset_is_waited_for_unless_it_is_in_the_past() {
    let reset = Some(at(600).wall);
    assert_eq!(wait_until(at(0).wall, reset, 1, 0), at(600).wall);
    assert_eq!(wait_until(at(600).wall, reset, 1, 0), at(600).wall);
    assert_eq!(wait_until(at(900).wall, reset, 2, 0), at(1020).wall);
    assert_eq!(wait_until(at(0).wall, None, 2, 0), at(120).wall);
    assert_eq!(wait_until(at(0).wall, None, 2, 500), at(126).wall);
    assert_eq!(wait_until(at(0).wall, Some(at(3600).wall), 1, 500), at(3615).wall);
}

#[test]
fn a_wait_is_compared_with_the_longest_wait_allowed_and_the_time_left() {
    let mut subject = a_loop();
    assert_eq!(outlasted_by(&subject, at(0), at(3600).wall), None);
    let too_long = outlasted_by(&subject, at(0), at(13 * 3600).wall);
    assert_eq!(too_long.as_deref(), Some("the longest wait allowed"));
    subject.state.set("awake_ms", 11 * 3_600_000);
    let past_the_end = outlasted_by(&subject, at(0), at(2 * 3600).wall);
    assert_eq!(past_the_end.as_deref(), Some("the loop's time limit"));
}

/// One turn after the other: what was waited for the first counts for the next.
#[test]
fn consecutive_waits_are_measured_together_without_the_machines_sleep() {
    let mut subject = a_loop();
    subject.contract.limits.max_duration_s = 3600;
    subject.contract.limits.max_wait_s = 0;
    let outlasted =
        |subject: &Loop, now| outlasted_by(subject, now, now.wall + TimeDelta::minutes(30));
    assert_eq!(outlasted(&subject, at(1800)), None);
    assert_eq!(outlasted(&subject, at(1860)).as_deref(), Some("the loop's time limit"));
    subject.contract.limits.max_duration_s = 0;
    subject.contract.limits.max_wait_s = 3600;
    assert_eq!(outlasted(&subject, at(1800)), None);
    assert_eq!(outlasted(&subject, at(1860)).as_deref(), Some("the longest wait allowed"));
    let asleep = Moment { awake_ms: at(60).awake_ms, ..at(8 * 3600) };
    assert_eq!(outlasted(&subject, asleep), None);
}

#[test]
fn raising_an_absent_limit_starts_from_what_is_already_used() {
    let mut subject = a_loop();
    subject.contract.limits = Limits {
        max_iterations: 0,
        failure_threshold: 0,
        stall: 0,
        max_duration_s: 0,
        ..USUAL_LIMITS
    };
    subject.state.set("completed", 7);
    subject.state.set("consecutive_failures", 2);
    subject.state.set("still", 1);
    subject.state.set("awake_ms", 90_500);
    subject.state.set("usage.cost", Money(2_500_000_000_001));
    subject.state.set("usage.tokens.input", 1_200);
    let changes = subject.contract.limits.by_key().into_keys().map(|key| (key, LimitChange::By(5)));
    let expected = Limits {
        max_iterations: 12,
        failure_threshold: 7,
        stall: 6,
        max_duration_s: 106,
        max_cost_micros: 2_500_006,
        max_tokens: 1_205,
        max_wait_s: subject.contract.limits.max_wait_s + 5,
    };
    assert_eq!(change_limits(&changes.collect(), &subject, 10_000), expected);
    assert_eq!(change_limits(&LimitChanges::new(), &subject, 10_000), subject.contract.limits);
}

#[test]
fn the_time_left_is_compared_with_the_length_of_iterations_and_not_of_waits() {
    let table = [
        (3_560_000, 60_000, Some("About 40 s of the loop's time")),
        (3_300_000, 750_000, Some("About 5 min of the loop's time")),
        (3_300_000, 60_000, None),
    ];
    for (awake_ms, each_ms, expected) in table {
        let mut subject = a_loop();
        subject.contract.limits.max_duration_s = 3600;
        subject.state.set("completed", 4);
        subject.state.set("awake_ms", awake_ms);
        subject.earlier.sum_ms = 2 * each_ms;
        subject.elapsed_ms = vec![each_ms; 2];
        let shown =
            expected.map(|left| format!("{left} is left: treat this as the last iteration."));
        assert_eq!(last_iteration_note(&subject), shown, "{awake_ms} {each_ms}");
    }
}

#[test]
fn tokens_without_a_price_are_shown_once_with_their_limit() {
    let mut subject = a_loop();
    subject.state.set(
        "usage",
        Usage::without_price(Some(Tokens { input: 2_000, ..Tokens::default() }), "m"),
    );
    let shown = |subject: &Loop| cost_and_tokens(subject).unwrap();
    assert_eq!(shown(&subject), "2k tokens of m, of unknown price");
    subject.contract.limits.max_tokens = 500_000;
    assert_eq!(shown(&subject), "2k of 500k tokens");
    subject.state.set("usage.lost", true);
    assert_eq!(shown(&subject), "at least 2k of 500k tokens");
    subject.state.set("usage.lost", false);
    subject.state.set("usage.cost", Money::from_micros(10_000));
    assert_eq!(shown(&subject), "$0.01 and 2k tokens of m, of unknown price, 2k of 500k tokens");
}

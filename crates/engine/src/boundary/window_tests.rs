use proptest::collection;
use proptest::prelude::*;

use super::*;
use crate::fixture::at;

fn id(number: u64) -> LoopId {
    LoopId::from_random(number)
}

fn account(name: &str, model: Option<&str>) -> AccountId {
    AccountId { name: name.to_owned(), model: model.map(str::to_owned) }
}

/// A limit that loop `by` met, in an iteration that began at second `began`.
fn limit(by: u64, until: u32, began: u32, is_stated: bool) -> MetLimit {
    let (until, began, met_at) = (at(until).wall, at(began).wall, at(began + 60).wall);
    MetLimit { until, is_stated, why: "usage limit reached".to_owned(), by: id(by), began, met_at }
}

/// The window that loop 1 closed at second 100 until second 1000.
fn closed() -> RateWindow {
    RateWindow::after_limit(None, account("claude", None), limit(1, 1000, 40, true), at(100).wall)
}

fn seconds(time: Time) -> i64 {
    (time - at(0).wall).num_seconds()
}

#[test]
fn twenty_loops_return_one_by_one_and_the_one_that_met_the_limit_goes_first() {
    let mut window = closed();
    let mut turns: Vec<i64> = (1..=20)
        .rev()
        .map(|by| seconds(window.take_turn(&id(by), at(200).wall).unwrap()))
        .collect();
    turns.sort_unstable();
    assert_eq!((turns[0], turns[19], turns.len()), (1000, 1000 + 19 * 21, 20));
    assert!(turns.windows(2).all(|two| two[1] - two[0] >= 20), "{turns:?}");
    assert_eq!(window.take_turn(&id(1), at(200).wall), Some(at(1000).wall));
    // Asked again, each has the turn that it had; once it has passed, the loop is back.
    assert_eq!(window.take_turn(&id(20), at(999).wall), Some(at(1021).wall));
    assert_eq!(window.take_turn(&id(20), at(1021).wall), None);
    assert_eq!(window.take_turn(&id(20), at(1100).wall), None);
    assert_eq!(window.take_turn(&id(19), at(1021).wall), Some(at(1042).wall));
}

#[test]
fn a_loop_that_comes_while_others_return_queues_and_one_that_comes_later_does_not() {
    let mut window = closed();
    assert_eq!(window.take_turn(&id(2), at(1010).wall), Some(at(1021).wall));
    assert_eq!(window.take_turn(&id(3), at(1041).wall), Some(at(1042).wall));
    assert_eq!(window.take_turn(&id(4), at(1063).wall), None);
    assert!(!window.turns.contains_key(&id(4)));
}

/// A lid closed before the window's end, and opened hours later.
#[test]
fn loops_that_overslept_their_turns_return_one_by_one_too() {
    let mut window = closed();
    for by in 1..=20 {
        window.take_turn(&id(by), at(200).wall);
    }
    // Each asks again when it may start, and the others work meanwhile.
    let mut due: Vec<(u32, u64)> = (1..=20).map(|by| (20_000, by)).collect();
    let mut starts: Vec<u32> = Vec::new();
    while let Some(next) = due.iter().min().copied() {
        due.retain(|it| *it != next);
        let (now, by) = next;
        match window.take_turn(&id(by), at(now).wall) {
            Some(later) => due.push((u32::try_from(seconds(later)).unwrap(), by)),
            None => starts.push(now),
        }
        assert!(starts.len() < 2 || window.take_turn(&id(1), at(now).wall).is_none());
    }
    let expected: Vec<u32> = (0..20).map(|place| 20_000 + place * 21).collect();
    assert_eq!(starts, expected);
    assert!(
        !window.may_hold_back(&id(20), at(90_000).wall)
            && !window.may_hold_back(&id(99), at(90_000).wall)
    );
}

#[test]
fn a_slightly_late_start_delays_no_other_loop_and_a_later_one_loses_its_turn() {
    let table = [(1001, None), (1002, Some(1063))];
    for (start, second) in table {
        let mut window = closed();
        assert_eq!(window.take_turn(&id(2), at(200).wall), Some(at(1021).wall));
        assert_eq!(window.take_turn(&id(3), at(200).wall), Some(at(1042).wall));
        assert_eq!(window.take_turn(&id(1), at(start).wall), None);
        assert_eq!(window.take_turn(&id(2), at(1021).wall).map(seconds), second, "{start}");
    }
}

#[test]
fn when_a_loop_ends_each_loop_behind_it_moves_up_a_turn() {
    let mut window = closed();
    for by in 2..=5 {
        window.take_turn(&id(by), at(200).wall);
    }
    assert_eq!(window.take_turn(&id(1), at(1000).wall), None);
    // 1 is back, and 2 to 5 return at 1021, 1042, 1063 and 1084.
    let mut after = |by: u64, now: u32| {
        window.free_turn(&id(by), at(now).wall);
        (1..=5).map(|by| window.turns.get(&id(by)).map(|at| seconds(*at))).collect::<Vec<_>>()
    };
    let table = [
        (3, 1001, [Some(1000), Some(1021), None, Some(1042), Some(1063)]),
        (1, 1002, [Some(1000), Some(1021), None, Some(1042), Some(1063)]),
        (2, 1003, [Some(1000), None, None, Some(1021), Some(1042)]),
        (2, 1004, [Some(1000), None, None, Some(1021), Some(1042)]),
        // It is noticed late.
        (4, 1030, [Some(1000), None, None, None, Some(1030)]),
    ];
    for (by, now, expected) in table {
        assert_eq!(after(by, now), expected, "{by} {now}");
    }
    assert!(window.has_moved(&id(5), at(1042).wall));
}

proptest! {
    /// Twenty loops wait for the limit's end, others come, and any of them end at any time.
    #[test]
    fn returns_are_20_seconds_apart_and_no_loop_waits_for_an_ended_one(
        ends in collection::vec((1..=25_u64, 200..1600_u32), 0..30),
        comes in collection::vec(900..1600_u32, 5),
    ) {
        let mut window = closed();
        let mut due: BTreeMap<u64, Option<Time>> =
            (1..=20).map(|by| (by, window.take_turn(&id(by), at(200).wall))).collect();
        let (mut starts, mut over): (Vec<u32>, BTreeSet<u64>) = Default::default();
        for now in 200..1600 {
            for (by, _) in ends.iter().filter(|(_, at)| *at == now) {
                window.free_turn(&id(*by), at(now).wall);
                due.remove(by);
                over.insert(*by);
            }
            for (by, _) in (21..).zip(&comes).filter(|(by, it)| **it == now && !over.contains(by)) {
                due.insert(by, window.take_turn(&id(by), at(now).wall));
            }
            for (by, until) in &mut due {
                let looks = |until: &Time| {
                    *until <= at(now).wall || window.has_moved(&id(*by), *until)
                };
                if !until.as_ref().is_some_and(looks) {
                    continue;
                }
                *until = window.take_turn(&id(*by), at(now).wall);
                starts.extend(until.is_none().then_some(now));
            }
        }
        prop_assert!(due.values().all(Option::is_none), "{due:?}");
        prop_assert!(starts.windows(2).all(|two| two[1] - two[0] >= 20), "{starts:?}");
        prop_assert!(starts.first().is_none_or(|first| *first >= 1000));
        if ends.iter().all(|(_, at)| *at < 1000) && comes.iter().all(|at| *at < 1000) {
            let expected: Vec<u32> = (0..).map(|place| 1000 + place * 21).take(due.len()).collect();
            prop_assert_eq!(starts, expected);
        }
    }
}

#[test]
fn of_any_two_limits_exactly_one_applies() {
    let after = |second: MetLimit, now: u32| {
        let window =
            RateWindow::after_limit(Some(closed()), account("claude", None), second, at(now).wall);
        let turn = window.turns.get(&id(2)).map(|at| seconds(*at));
        (seconds(window.until), turn, window.met_by)
    };
    let table = [
        ("the same, met by an iteration that was at work", limit(2, 1000, 50, true), 110, 1000, 1),
        ("the same, with a little more of a loop's own", limit(2, 1030, 50, true), 110, 1000, 1),
        ("a shorter one, met by one that was at work", limit(2, 160, 50, true), 110, 1000, 1),
        ("a longer one, met by one that was at work", limit(2, 5000, 50, true), 110, 5000, 2),
        ("a shorter one, stated to a later try", limit(2, 400, 200, true), 210, 400, 2),
        ("a guess after a later try", limit(2, 400, 200, false), 210, 1000, 1),
        ("a longer guess", limit(2, 1500, 200, false), 210, 1500, 2),
        ("any, once the first is over", limit(2, 1100, 200, false), 1040, 1100, 2),
    ];
    for (what, second, now, until, met_by) in table {
        let (found, turn, by) = after(second, now);
        assert_eq!((found, by), (until, id(met_by)), "{what}");
        let own = if met_by == 2 { until } else { 1021 };
        assert_eq!(turn, Some(own), "{what}");
    }
}

#[test]
fn a_try_that_meets_the_limit_again_takes_the_next_turn_and_the_others_check_again() {
    let mut window = closed();
    assert_eq!(window.take_turn(&id(2), at(200).wall), Some(at(1021).wall));
    assert!(!window.has_moved(&id(2), at(1021).wall));
    // Its own wait may be longer, and then it need not look.
    assert!(window.has_moved(&id(2), at(1022).wall));
    let renewed = RateWindow::after_limit(
        Some(window),
        account("claude", None),
        limit(3, 3000, 300, true),
        at(310).wall,
    );
    assert!(renewed.has_moved(&id(2), at(1021).wall));
    assert_eq!(renewed.turns, [(id(3), at(3000).wall)].into());
}

#[test]
fn only_an_iteration_that_began_after_the_limit_disproves_it_and_the_others_return_after_it() {
    let mut window = closed();
    window.take_turn(&id(2), at(200).wall);
    let table = [(50, 200, false), (100, 200, true), (150, 200, true), (150, 1000, false)];
    for (began, now, expected) in table {
        assert_eq!(window.is_disproved_by(at(began).wall, at(now).wall), expected, "{began} {now}");
    }
    let mut opened = window.when_opened(&id(9), at(300).wall);
    assert!(!opened.is_closed(at(300).wall));
    assert!(opened.has_moved(&id(2), at(1021).wall));
    assert_eq!(opened.take_turn(&id(9), at(301).wall), None);
    assert_eq!(opened.take_turn(&id(2), at(301).wall), Some(at(321).wall));
    assert_eq!(opened.take_turn(&id(1), at(301).wall), Some(at(342).wall));
}

#[test]
fn the_oldest_turns_are_forgotten_once_there_are_too_many() {
    let mut window = closed();
    for by in 2..1500 {
        window.take_turn(&id(by), at(200).wall);
    }
    assert_eq!(window.turns.len(), TURNS_MAX);
    assert!(serde_json::to_vec(&window).unwrap().len() < 100_000);
}

#[test]
fn a_window_is_read_as_it_was_written() {
    let window = closed();
    let text = serde_json::to_string(&window).unwrap();
    assert_eq!(serde_json::from_str::<RateWindow>(&text).unwrap(), window);
    assert_eq!(window.wait_reason(), "limit met by loop baaaaaaa: usage limit reached");
}

use proptest::collection;
use proptest::prelude::*;

use super::*;
use crate::fixture;

type Time = DateTime<Utc>;

/// The instant that many minutes after the tests' beginning.
fn at(minutes: u32) -> Time {
    fixture::at(minutes * 60).wall
}

fn ticket(priority: u8, minute: u32, process: u32) -> SlotTicket {
    SlotTicket::new(priority, 4, at(minute), process, 0)
}

/// The processes of a queue in its order at that minute.
fn order(queue: &[SlotTicket], minute: u32) -> Vec<u32> {
    let last = SlotTicket::new(0, 1, at(100_000), 0, 0);
    let sorted = last.those_before(queue.to_vec(), at(minute));
    sorted.into_iter().map(|ticket| ticket.process).collect()
}

#[test]
fn the_queue_is_ordered_by_priority_then_by_arrival_then_by_process() {
    let cases: [(&[SlotTicket], &[u32]); 4] = [
        (&[ticket(5, 2, 1), ticket(5, 1, 2), ticket(5, 3, 3)], &[2, 1, 3]),
        (&[ticket(0, 1, 1), ticket(9, 3, 2), ticket(5, 2, 3)], &[2, 3, 1]),
        (&[ticket(5, 1, 30), ticket(5, 1, 4)], &[4, 30]),
        (&[], &[]),
    ];
    for (queue, expected) in cases {
        assert_eq!(order(queue, 3), expected, "{queue:?}");
    }
    let (first, second) = (ticket(5, 1, 7), SlotTicket::new(5, 4, at(1), 7, 1));
    assert_eq!(second.those_before(vec![second.clone(), first.clone()], at(3)), [first]);
}

#[test]
fn ten_minutes_of_waiting_raise_the_priority_by_one_up_to_the_most_urgent() {
    let (patient, urgent) = (ticket(5, 0, 1), |minute| ticket(8, minute, 2));
    for (minute, expected) in [(29, [2, 1]), (30, [1, 2])] {
        assert_eq!(order(&[patient.clone(), urgent(minute)], minute), expected, "at {minute}");
    }
    // Both age: what came with a higher priority stays ahead until neither can rise any more.
    for (minute, expected) in [(39, [2, 1]), (40, [1, 2])] {
        assert_eq!(order(&[patient.clone(), urgent(9)], minute), expected, "at {minute}");
    }
    let least = ticket(0, 0, 1);
    for (minute, expected) in [(89, [2, 1]), (90, [1, 2]), (9000, [1, 2])] {
        assert_eq!(order(&[least.clone(), ticket(9, minute, 2)], minute), expected, "at {minute}");
    }
    // After a clock was set back, only priority and arrival count.
    assert_eq!(order(&[ticket(5, 50, 1), ticket(5, 60, 2), ticket(6, 70, 3)], 0), [3, 1, 2]);
}

#[test]
fn a_ticket_may_take_only_slots_that_no_earlier_ticket_may_use() {
    let of = |slots| SlotTicket::new(5, slots, at(0), 1, 0);
    let cases: [(u32, &[u32], &[u32]); 6] = [
        (4, &[], &[0, 1, 2, 3]),
        (4, &[4], &[]),
        (4, &[1], &[1, 2, 3]),
        (4, &[1, 3, 2], &[3]),
        (2, &[4], &[]),
        (0, &[], &[0]),
    ];
    for (slots, before, expected) in cases {
        let before: Vec<_> = before.iter().copied().map(of).collect();
        let taken: Vec<u32> = of(slots).may_take(&before).collect();
        assert_eq!(taken, expected, "{slots} behind {before:?}");
    }
    assert_eq!(of(u32::MAX).may_take(&[]), 0..SLOTS_MAX);
}

#[test]
fn a_ticket_is_parsed_from_its_name_and_any_other_name_is_rejected() {
    let ticket = SlotTicket::new(12, 4, at(0), 4242, 7);
    assert_eq!(ticket.to_string(), "9-1795000000000000-4242-7-4");
    assert_eq!(SlotTicket::of_name("9-1795000000000000-4242-7-4"), Some(ticket));
    let junk = [
        "",
        "-",
        "----",
        "5-1-1-0",
        "5-1-1-0-4-",
        "5-1-1-0-4-1",
        ".5-1-1-0-4",
        "10-1-1-0-4",
        "05-1-1-0-4",
        "5-+1-1-0-4",
        "5- 1-1-0-4",
        "5-1-1-0-0",
        "5-1-1-0-1025",
        "5-18446744073709551616-1-0-4",
        "5-1-4294967296-0-4",
        "5-1-1--4",
        "lock",
        "５-1-1-0-4",
    ];
    for name in junk {
        assert_eq!(SlotTicket::of_name(name), None, "{name:?}");
    }
}

#[test]
fn the_scarcest_resource_of_a_machine_determines_its_slots_and_is_named() {
    let gigabyte = 1_000_000_000;
    let cases = [
        (1, None, 1, "1 slot: the least, with 1 core"),
        (2, None, 1, "1 slot: half of 2 cores"),
        (4, Some(16 * gigabyte), 2, "2 slots: half of 4 cores"),
        (7, Some(6 * gigabyte), 3, "3 slots: half of 7 cores"),
        (16, Some(5_900_000_000), 2, "2 slots: 2 GB for each, of 5.9 GB of memory"),
        (16, Some(1_900_000_000), 1, "1 slot: the least, with 1.9 GB of memory"),
        (64, Some(256 * gigabyte), 4, "4 slots: the most unless more are asked for"),
        (64, Some(u64::MAX), 4, "4 slots: the most unless more are asked for"),
        (0, Some(0), 1, "1 slot: the least, with 0 cores"),
    ];
    for (cores, memory_bytes, count, why) in cases {
        let expected = SlotCount { count, why: why.to_owned() };
        assert_eq!(default_slots(cores, memory_bytes), expected);
    }
}

/// Any ticket of three hours in which it matters who came when; many of them are alike.
fn any_ticket() -> impl Strategy<Value = SlotTicket> {
    let parts = (0..=MAX_PRIORITY, 0..180u32, 1..6u32, 0..3u32, 1..6u32);
    parts.prop_map(|(priority, minute, process, counter, slots)| {
        SlotTicket::new(priority, slots, at(minute), process, counter)
    })
}

proptest! {
    #[test]
    fn any_name_can_be_parsed_and_is_written_as_it_was_read(
        name in "\\PC{0,40}|[0-9.+-]{0,40}|[0-9]{1,2}(-[0-9]{1,12}){4}"
    ) {
        if let Some(ticket) = SlotTicket::of_name(&name) {
            prop_assert_eq!(ticket.to_string(), name);
        }
    }

    #[test]
    fn every_ticket_survives_its_name(
        priority: u8, slots: u32, micros in 0..i64::from(u32::MAX) << 20, process: u32, counter: u32
    ) {
        let at = DateTime::from_timestamp_micros(micros).unwrap();
        let ticket = SlotTicket::new(priority, slots, at, process, counter);
        prop_assert_eq!(SlotTicket::of_name(&ticket.to_string()), Some(ticket));
    }

    /// Of two different tickets exactly one is before the other, and a queue has one order.
    #[test]
    fn the_order_of_tickets_is_total(queue in collection::vec(any_ticket(), 0..12), minute in 0..300u32) {
        let mut distinct = queue;
        distinct.sort();
        distinct.dedup();
        let before = |ticket: &SlotTicket| ticket.those_before(distinct.clone(), at(minute));
        let mut places: Vec<usize> = distinct.iter().map(|ticket| before(ticket).len()).collect();
        for ticket in &distinct {
            prop_assert!(before(ticket).iter().all(|other| !before(other).contains(ticket)));
        }
        places.sort_unstable();
        prop_assert_eq!(places, (0..distinct.len()).collect::<Vec<_>>());
    }

    #[test]
    fn ageing_lets_no_later_ticket_of_a_priority_pass_an_earlier_one(
        priority in 0..=MAX_PRIORITY, earlier in 0..180u32, by in 1..180u32, minute in 0..600u32
    ) {
        let (first, second) = (ticket(priority, earlier, 2), ticket(priority, earlier + by, 1));
        prop_assert_eq!(order(&[second, first], minute), [2, 1]);
    }

    /// Nobody who comes later is before a ticket that has waited for 90 minutes. So its wait is
    /// bounded by those who were there before.
    #[test]
    fn every_ticket_eventually_reaches_the_head_of_the_queue(
        mine in any_ticket(), others in collection::vec(any_ticket(), 0..12), more in 90..200u32
    ) {
        let arrived = DateTime::from_timestamp_micros(mine.arrived_us.cast_signed()).unwrap();
        let now = arrived + TimeDelta::minutes(more.into());
        let before = mine.those_before(others, now);
        prop_assert!(before.iter().all(|other| other.arrived_us <= mine.arrived_us), "{before:?}");
    }
}

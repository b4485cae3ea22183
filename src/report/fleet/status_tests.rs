use chrono::{Offset, Utc};
use insta::assert_snapshot;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::engine::fixture::at;
use crate::engine::fleet::fixture::{a_fleet, a_lease, after, ended, id, landed, running};
use crate::engine::fleet::{
    Fleet, FleetOrder, FleetPlan, JobPhase, LandingMode, Lease, Refusal, Remote, TaskState,
};
use crate::engine::record::{Actor, Outcome};

const HERE: &str = "here";

fn read_at(width: usize) -> FleetReading<'static> {
    let reading = Reading { width, now: at(11_520).wall, offset: Utc.fix() };
    FleetReading { reading, host: HERE }
}

fn page(standing: &Standing<'_>, at: FleetReading<'_>) -> String {
    colour::painted(&super::page(standing, at), false)
}

fn works(name: &str, slot: u32, since: u32) -> Lease {
    running(name, JobPhase::Works { slot: Some(slot), since: at(since).wall })
}

/// How they stand; the leases are never freed.
fn standing(fleet: &Fleet, leases: &[Lease], slots: usize) -> Standing<'static> {
    let plan = FleetPlan::of(fleet, leases, slots);
    Standing::of(fleet, leases.to_vec().leak(), &[], &plan, at(11_520).wall)
}

fn lands() -> Fleet {
    Fleet { landing: LandingMode::Main, ..a_fleet() }
}

/// Twenty tasks in the middle of a night.
fn a_night() -> Vec<Lease> {
    let names = ["user-model", "addresses", "currencies", "tax-ids", "roles", "logs", "mail"];
    let names = names.into_iter().chain(["search", "export", "import", "themes", "avatars"]);
    let landed = |(index, name)| {
        after(landed(name, &format!("4f2c9d{index:x}b7a1"), 6000 - index * 60), 4, 40, 90, "")
    };
    let mut leases: Vec<Lease> = (0_u32..).zip(names).map(landed).collect();
    let why = "conflict: src/pay/client.rs changed on main";
    let mut conflict = after(ended("pay-retries", Outcome::Blocked, why, 1800), 5, 50, 240, "");
    conflict.sent_back = Some(Refusal::Conflict(vec!["src/pay/client.rs".to_owned()]));
    let why = "the agent said BLOCKED: client secret of the staging IdP";
    let last = "npm test 1 of 402 fails (was 4)";
    let why_rests = "usage limit of \"work\"".to_owned();
    let until = Some(at(14_640).wall);
    let mut vat = after(works("vat-rounding", 2, 10_680), 1, 20, 60, "not checked yet");
    vat.task.touches = vec!["src/tax/**".to_owned()];
    let mut refund = a_lease("refund-api");
    refund.task.after = vec![id("pay-retries")];
    let mut tables = a_lease("vat-tables");
    tables.task.touches = vat.task.touches.clone();
    let mut far = after(works("csv-export", 3, 11_340), 6, 60, 205, "nothing changed, 2 times now");
    if let TaskState::Running(attempt) = &mut far.state {
        attempt.host = "node7".to_owned();
    }
    leases.extend([
        conflict,
        after(ended("sso-logout", Outcome::Blocked, why, 4320), 3, 30, 120, ""),
        after(works("invoice-pdf", 1, 11_160), 3, 30, 110, last),
        vat,
        far,
        after(running("audit-log", JobPhase::Rests { until, why: why_rests }), 2, 10, 30, ""),
        refund,
        tables,
    ]);
    leases
}

/// Many of everything.
fn sixty() -> Vec<Lease> {
    let mut leases = a_night();
    leases.extend((0..40).map(|number| a_lease(&format!("more-{number}"))));
    leases
}

#[test]
fn a_page_says_the_whole_in_one_line_then_what_needs_a_person_then_the_rest() {
    assert_snapshot!(page(&standing(&lands(), &a_night(), 3), read_at(80)), @r#"
    fleet billing-cleanup    12 of 20 landed    4 run    2 wait    2 need you
                             $18.45 of $50.00 · begun 3h 12m ago · about 20m left

      pay-retries   conflict  src/pay/client.rs changed on main; sent back…   2h ago
      sso-logout    blocked   "client secret of the staging IdP"              2h ago

      invoice-pdf   4/10   6m  $1.10  npm test 1 of 402 fails (was 4)  slot 1
      vat-rounding  2/10  14m  $0.60  not checked yet                  slot 2
      csv-export    7/10   3m  $2.05  nothing changed, 2 times now     node7, slot 3
      audit-log     3/10       $0.30  rests until 15:10: usage limit of "work"

      refund-api    waits  after pay-retries, which needs you
      vat-tables    waits  touches src/tax/** as vat-rounding does

      landed    user-model, addresses, currencies, tax-ids, … 8 more    main 4f2c9d0

      next      crew fleet show pay-retries
    "#);
}

#[test]
fn where_it_is_narrow_the_counts_stand_below_the_name_and_the_least_columns_are_left_out() {
    assert_snapshot!(page(&standing(&lands(), &a_night(), 3), read_at(50)), @r#"
    fleet billing-cleanup
      12 of 20 landed · 4 run · 2 wait · 2 need you
      $18.45 of $50.00 · begun 3h 12m ago · about 20m
      left

      pay-retries   conflict  src/pay/client.rs chang…
      sso-logout    blocked   "client secret of the…"

      invoice-pdf   4/10  npm test 1 of 402 fails (wa…
      vat-rounding  2/10  not checked yet
      csv-export    7/10  nothing changed, 2 times now
      audit-log     3/10  rests until 15:10: usage li…

      refund-api    waits  after pay-retries, which n…
      vat-tables    waits  touches src/tax/** as vat-…

      landed    user-model, … 11 more    main 4f2c9d0

      next      crew fleet show pay-retries
    "#);
}

#[test]
fn sixty_tasks_fit_a_small_terminal_and_what_is_left_out_is_counted() {
    let board = board(&standing(&lands(), &sixty(), 3), read_at(80), 24, None);
    assert!(board.len() <= 24);
    assert_snapshot!(colour::painted(&board.join("\n"), false), @r#"
    fleet billing-cleanup    12 of 60 landed    4 run    42 wait    2 need you
                             $18.45 of $50.00 · begun 3h 12m ago · about 7h left

      pay-retries   conflict  src/pay/client.rs changed on main; sent back…   2h ago
      sso-logout    blocked   "client secret of the staging IdP"              2h ago

      invoice-pdf   4/10   6m  $1.10  npm test 1 of 402 fails (was 4)  slot 1
      vat-rounding  2/10  14m  $0.60  not checked yet                  slot 2
      csv-export    7/10   3m  $2.05  nothing changed, 2 times now     node7, slot 3
      audit-log     3/10       $0.30  rests until 15:10: usage limit of "work"

      refund-api    waits  after pay-retries, which needs you
      vat-tables    waits  touches src/tax/** as vat-rounding does
      more-0        waits  for a slot
      more-1        waits  for a slot
      more-2        waits  for a slot
      more-3        waits  for a slot
      more-4        waits  for a slot
      more-5        waits  for a slot
      more-6        waits  for a slot
      more-7        waits  for a slot
      … 32 more

      next      crew fleet show pay-retries
    "#);
}

#[test]
fn a_board_that_is_too_low_keeps_what_needs_a_person() {
    let board = board(&standing(&lands(), &sixty(), 3), read_at(80), 8, None);
    assert_snapshot!(colour::painted(&board.join("\n"), false), @r#"
    fleet billing-cleanup    12 of 60 landed    4 run    42 wait    2 need you
                             $18.45 of $50.00 · begun 3h 12m ago · about 7h left

      pay-retries   conflict  src/pay/client.rs changed on main; sent back…   2h ago
      sso-logout    blocked   "client secret of the staging IdP"              2h ago

      next      crew fleet show pay-retries
    "#);
}

#[test]
fn a_board_of_an_earlier_look_says_why_it_is_none_of_now() {
    let unseen = Some("lease failed: Permission denied");
    let board = board(&standing(&lands(), &[a_lease("a")], 3), read_at(80), 8, unseen);
    assert_snapshot!(colour::painted(&board.join("\n"), false), @"
    fleet billing-cleanup    0 of 1 landed    1 waits
                             $0.00 of $50.00 · begun 3h 12m ago

      a  waits  starts next
      unseen    lease failed: Permission denied; it is asked again
    ");
}

#[test]
fn a_page_of_sixty_tasks_counts_those_that_it_does_not_list() {
    let page = page(&standing(&lands(), &sixty(), 3), read_at(80));
    let waiting = page.lines().filter(|line| line.contains(" waits ")).count();
    assert_eq!(waiting, ROWS_MAX - 1);
    assert!(page.contains("\n  … 23 more\n"), "{page}");
}

#[test]
fn one_task_and_none_have_a_page_too() {
    let pages = [
        vec![],
        vec![works("only", 0, 11_500)],
        vec![ended("only", Outcome::Completed, "done", 240)],
        vec![after(ended("only", Outcome::Interrupted, "its process ended", 240), 1, 4, 5, "")],
    ];
    let free = Fleet { max_cost_micros: 0, ..a_fleet() };
    let pages = pages.map(|leases| page(&standing(&free, &leases, 4), read_at(80)));
    assert_snapshot!(pages.join("---\n"), @"
    fleet billing-cleanup    no tasks
    ---
    fleet billing-cleanup    0 of 1 completed    1 runs
                             begun 3h 12m ago

      only  1/10  20s  first iteration  slot 0
    ---
    fleet billing-cleanup    1 of 1 completed
                             4m

      completed only    on fleet/billing-cleanup/*
    ---
    fleet billing-cleanup    0 of 1 completed    1 needs you
                             $0.05 · 4m

      only  interrupted  its process ended  3h ago

      next      crew fleet run tasks --retry
    ");
}

#[test]
fn every_phase_every_reason_to_wait_and_every_end_is_told() {
    let phases = [
        ("prepared", JobPhase::Prepares),
        ("queued", JobPhase::Lines),
        ("lander", JobPhase::Lands),
        ("begun", JobPhase::Works { slot: None, since: at(11_519).wall }),
        ("resting", JobPhase::Rests { until: None, why: "the agent crashed".to_owned() }),
    ];
    let mut leases: Vec<Lease> =
        phases.into_iter().map(|(name, phase)| running(name, phase)).collect();
    leases.push(ended("gone", Outcome::Cancelled, "cancelled by the user: out of tea", 60));
    let mut apart = ended("apart", Outcome::Completed, "done", 60);
    let mut asked = ended("asked", Outcome::Completed, "done", 60);
    if let (TaskState::Ended(one), TaskState::Ended(other)) = (&mut apart.state, &mut asked.state) {
        one.proof = Some(Proof::Claimed);
        other.landed = Some(Landed::Request("https://example.org/7".to_owned()));
    }
    leases.extend([apart, asked]);
    let waits = [
        ("next", WaitsFor::Nothing),
        ("left", WaitsFor::Run),
        ("slotless", WaitsFor::Slot),
        ("later", WaitsFor::Task { task: id("begun") }),
        ("orphan", WaitsFor::Ended { task: id("gone") }),
        ("behind", WaitsFor::Ended { task: id("apart") }),
        ("poor", WaitsFor::Money),
        ("held", WaitsFor::Order { order: FleetRequest::Pause }),
        ("doomed", WaitsFor::Order { order: FleetRequest::Cancel }),
    ];
    leases.extend(waits.iter().map(|(name, _)| a_lease(name)));
    let waits = waits.into_iter().map(|(name, waits)| (id(name), waits)).collect();
    let plan = FleetPlan { waits, ..FleetPlan::default() };
    let order = FleetOrder { what: FleetRequest::Pause, by: Actor::User, reason: None };
    let fleet = Fleet { order: Some(order), ..lands() };
    let standing = Standing::of(&fleet, &leases, &[], &plan, at(11_520).wall);
    assert_snapshot!(page(&standing, read_at(80)), @"
    fleet billing-cleanup, paused
      0 of 17 landed · 1 requested · 1 completed · 5 run · 9 wait · 1 cancelled
      $0.00 of $50.00 · begun 3h 12m ago

      prepared  1/10  3h 12m  its working tree is set up
      queued    1/10          in the line for a slot
      lander    0/10          is being landed
      begun     1/10      1s  pauses after this iteration
      resting   1/10          rests: the agent crashed

      next      waits   starts next
      left      waits   for crew fleet run
      slotless  waits   for a slot
      later     waits   after begun
      orphan    waits   after gone, which was cancelled
      behind    waits   after apart, which is completed and did not land
      poor      waits   for money: what is left is set aside for those that run
      held      paused  until the fleet is run again
      doomed    waits   to be cancelled

      requested asked    on fleet/billing-cleanup/*
      completed apart (claimed)    on fleet/billing-cleanup/*

      cancelled gone (out of tea)

      next      crew fleet run tasks
    ");
}

#[test]
fn a_row_says_for_how_long_an_attempt_of_a_shared_fleet_was_not_heard_of() {
    let remote = Remote { name: "origin".to_owned(), url: "/r".to_owned() };
    let fleet = Fleet { remote: Some(remote), ..lands() };
    let silent = Lease { at: at(11_130).wall, ..works("a", 1, 11_130) };
    let page = page(&standing(&fleet, &[silent], 1), read_at(80));
    assert!(page.contains("\n  a  1/10  6m  silent for 6m  "), "{page}");
}

#[test]
fn foreign_text_stays_on_its_line_and_sends_no_codes() {
    let hostile = "\u{1b}[2J\u{1b}]0;title\u{7}all\nis \u{202e}well\r\n\u{9b}31m日本語 ".repeat(9);
    let why = format!("the agent said BLOCKED: {hostile}");
    let rests = JobPhase::Rests { until: None, why: hostile.clone() };
    let leases = [
        ended("asks", Outcome::Blocked, &why, 60),
        ended("fails", Outcome::Error, &hostile, 70),
        after(works("works", 1, 11_160), 3, 30, 110, &hostile),
        running("rests", rests),
        landed("lands", &hostile, 60),
    ];
    let fleet = Fleet { name: "x\u{1b}[2Jy\nz".to_owned(), ..lands() };
    let page = page(&standing(&fleet, &leases, 3), read_at(80));
    assert_snapshot!(page, @r#"
    fleet xy z    1 of 5 landed    2 run    2 need you
                  $1.10 of $50.00 · begun 3h 12m ago

      asks   blocked  "all is well 日本語 all is well 日本語 all is well…"    3h ago
      fails  error    all is well 日本語 all is well 日本語 all is well 日…   3h ago

      works  4/10  6m  $1.10  all is well 日本語 all is well 日本語 all is…   slot 1
      rests  1/10             rests: all is well 日本語 all is well 日本語 all is w…

      landed    lands    main all is

      next      crew fleet show asks
    "#);
}

fn any_lease() -> impl Strategy<Value = Lease> {
    let why = || "\\PC{0,40}|conflict: .{0,20}|the agent said BLOCKED: .{0,60}";
    let state = prop_oneof![
        Just(a_lease("any")),
        (any::<u16>(), any::<u32>()).prop_map(|(slot, since)| works("any", slot.into(), since)),
        why().prop_map(|why| running("any", JobPhase::Rests { until: None, why })),
        (select(&Outcome::ALL), why()).prop_map(|(outcome, why)| ended("any", outcome, &why, 60)),
        Just(landed("any", "4f2c9d1", 60)),
    ];
    let carried = (any::<u32>(), any::<u32>(), 0..10_000_u64, "\\PC{0,50}");
    (state, carried).prop_map(|(lease, (completed, minutes, cents, last))| {
        after(lease, completed, minutes, cents, &last)
    })
}

proptest! {
    #[test]
    fn a_board_keeps_to_its_screen_and_a_page_holds_nothing_unseen(
        leases in vec((any_lease(), "[a-z]{1,30}"), 0..30),
        width in 20..140_usize,
        rows in 0..40_usize,
        unseen in proptest::option::of(".{0,200}"),
    ) {
        let named = leases.into_iter().enumerate().map(|(index, (mut lease, name))| {
            lease.task.id = id(&format!("{name}{index}"));
            lease
        });
        let standing = standing(&lands(), &named.collect::<Vec<_>>(), 4);
        let board = board(&standing, read_at(width), rows, unseen.as_deref());
        prop_assert!(board.len() <= rows);
        prop_assert!(board.iter().all(|line| colour::width(line) <= width), "{board:?}");
        let page = page(&standing, read_at(width));
        let next = standing.next.as_ref().map_or(0, |next| next.width() + 12);
        let widest = page.lines().map(UnicodeWidthStr::width).max().unwrap_or_default();
        prop_assert!(widest <= width.max(next), "{page}");
        prop_assert_eq!(clean(&page), page);
    }
}

#[test]
fn a_task_that_has_not_ended_says_in_one_line_where_it_runs_or_what_it_waits_for() {
    let mut rests = running("logs", JobPhase::Rests { until: None, why: "usage limit".into() });
    if let TaskState::Running(attempt) = &mut rests.state {
        attempt.host = "node7".to_owned();
    }
    let mut waits = a_lease("mail");
    waits.task.after = vec![id("roles")];
    let leases = [works("roles", 1, 0), rests, running("tags", JobPhase::Prepares), waits];
    let standing = standing(&a_fleet(), &leases, 4);
    let told = standing.rows.iter().map(|row| stands(&standing, row, read_at(80)));
    assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @"
    runs: first iteration
    runs on node7: rests: usage limit
    runs: its working tree is set up
    waits: after roles
    ");
}

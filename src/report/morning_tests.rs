use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use chrono::{FixedOffset, Offset, TimeDelta, Utc};
use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::report::colour::paint_marks;
use engine::evidence::changes::{Changes, Commits};
use engine::fixture::{SetState, a_run, a_task, at};
use engine::journal::story::Story;
use engine::record::{CompletionBasis, EndReason, Ending, Failures, Outcome, Proof, Status};
use engine::usage::{Money, Usage};
use engine::view::{ChangesFrom, LoopView, PageInputs};

fn a_loop(id: &str, folder: &str, what: &str) -> Loop {
    let mut record = a_run(None);
    record.id = id.parse().unwrap();
    record.place.checkout = PathBuf::from(format!("/home/me/w/{folder}"));
    record.contract.task = what.to_owned();
    record.state.set("completed", 3);
    record.state.set("awake_ms", 720_000);
    record.state.set("usage", Usage { cost: Money::from_micros(1_200_000), ..Usage::default() });
    record
}

fn resting(mut record: Loop, status: Status) -> Loop {
    record.state.set("status", status);
    record
}

fn ended(mut record: Loop, ending: Ending) -> Loop {
    record.state.set("status", Status::Finished);
    record.state.set("ended_at", Some(at(3000).wall));
    record.state.set("ending", Some(ending));
    record
}

/// A night: two loops and a fleet need a person, others ended, one runs, one waits, one is paused.
fn night() -> Vec<Loop> {
    let stalled = "5 iterations without progress: no file, no check and no test changed, and no \
                   question was asked that a person could have answered in the meantime";
    let rewritten = EndReason::Completed {
        basis: CompletionBasis::ChecksPass,
        remark: Some("1 test was rewritten; as the loop found it, it fails: adds".to_owned()),
    };
    let passing = Ending::completed(Proof::Passing, CompletionBasis::ChecksPass);
    let of_fleet = |id: &str, name: &str, ending: Option<Ending>| {
        let mut record = a_loop(id, name, name);
        record.fleet = Some(a_task(name));
        ending.map_or(record.clone(), |ending| ended(record, ending))
    };
    let done = Ending::completed(Proof::Checked, CompletionBasis::Proof(Proof::Checked));
    let mut of_another = of_fleet("paaaaaaa", "parser", Some(done.clone()));
    of_another.fleet.as_mut().unwrap().name = "old-tests".to_owned();
    vec![
        of_another,
        ended(
            a_loop("aaaaaaaa", "shop", "Split a discount over the lines of an order"),
            done.clone(),
        ),
        ended(
            a_loop("baaaaaaa", "backup", "Set up the nightly backup"),
            Ending::new(Outcome::Blocked, "the agent cannot choose a region"),
        ),
        ended(
            a_loop("caaaaaaa", "api", "Add password reset"),
            Ending::new(Outcome::Blocked, stalled),
        ),
        ended(
            a_loop("daaaaaaa", "日本", "Round taxes once"),
            Ending { reason: rewritten, ..passing },
        ),
        // A later loop in the same working tree has completed.
        ended(a_loop("eaaaaaaa", "shop", "The same"), Ending::new(Outcome::Blocked, "so")),
        ended(a_loop("kaaaaaaa", "tax", "Sort"), Ending::new(Outcome::Exhausted, "so")),
        a_loop("faaaaaaa", "live", "Port the parser"),
        resting(a_loop("maaaaaaa", "docs", "Write the guide"), Status::Waiting),
        resting(a_loop("naaaaaaa", "site", "Draw the menu"), Status::Paused),
        of_fleet("gaaaaaaa", "vat", Some(done.clone())),
        of_fleet("haaaaaaa", "vat", Some(Ending::new(Outcome::Stalled, "so"))),
        of_fleet("jaaaaaaa", "tips", Some(Ending::new(Outcome::Blocked, "so"))),
    ]
}

fn page(record: &Loop) -> Page {
    let changes = Changes::default();
    Page::from_inputs(&PageInputs {
        view: LoopView::from_record(record, at(3600).wall.fixed_offset()),
        story: &Story::with_pick(None),
        changes: Some(&changes),
        changes_from: ChangesFrom::Git,
        commits: &Commits::default(),
        tests: &BTreeMap::default(),
        resume: &format!("crew resume {}", record.id),
        stop: "",
    })
}

/// The views of these loops; a fleet's task is known only while the fleet is kept.
fn facts(loops: &[Loop], is_kept: bool, owner_is_gone: bool) -> Vec<LoopView<'_>> {
    let mut trees = BTreeSet::new();
    let facts = loops.iter().map(|record| LoopView {
        owner_is_gone,
        task: if is_kept { record.fleet.as_ref() } else { None },
        is_replaced: !trees.insert(&record.place.checkout),
        ..LoopView::from_record(record, at(3600).wall.fixed_offset())
    });
    facts.collect()
}

fn shown_of(facts: &[LoopView<'_>], width: usize, rows: usize) -> String {
    let offset = FixedOffset::east_opt(0).unwrap();
    let reading = Reading { width, now: at(3600).wall, offset };
    let at = ListReading { reading, home: Some(Path::new("/home/me")) };
    paint_marks(&render_morning(facts, &page, reading.now - TimeDelta::hours(12), at, rows), false)
}

fn shown(loops: &[Loop], width: usize, rows: usize) -> String {
    shown_of(&facts(loops, true, false), width, rows)
}

#[test]
fn a_night_fits_one_screen_and_what_needs_a_person_comes_first() {
    let night = night();
    assert_snapshot!(shown(&night, 80, 36), @r#"
    since 00:06: 10 loops: 4 completed, 1 exhausted, 1 stalled, 4 blocked · $12.00

    NEEDS YOU
      billing-cleanup  3 loops: 1 completed, 1 stalled, 1 blocked · $3.60
        crew fleet status billing-cleanup
      baaaaaaa  blocked             3  $1.20  ~/w/backup (main)  Set up the nightly…
        the agent cannot choose a region
        crew resume baaaaaaa
      caaaaaaa  blocked             3  $1.20  ~/w/api (main)     Add password reset
        5 iterations without progress: no file, no check and no test changed, and no
        question was asked that a person could have answered in the meantime
        crew resume caaaaaaa

    ENDED
      aaaaaaaa  completed, checked  3  $1.20  ~/w/shop (main)    Split a discount o…
      daaaaaaa  completed, passing  3  $1.20  ~/w/日本 (main)    Round taxes once
        1 test was rewritten; as the loop found it, it fails: adds
      eaaaaaaa  blocked             3  $1.20  ~/w/shop (main)    The same
      kaaaaaaa  exhausted           3  $1.20  ~/w/tax (main)     Sort

    RUNNING
      faaaaaaa  running             3  $1.20  ~/w/live (main)    Port the parser

    WAITING
      maaaaaaa  waiting             3  $1.20  ~/w/docs (main)    Write the guide
      naaaaaaa  paused              3  $1.20  ~/w/site (main)    Draw the menu

    FLEETS
      old-tests  1 loop: 1 completed · $1.20
        crew fleet status old-tests

    next  crew fleet status billing-cleanup
    "#);
}

#[test]
fn a_narrow_terminal_keeps_commands_whole_and_a_wide_one_shows_when_a_loop_began() {
    let night = night();
    assert_snapshot!(shown(&night, 40, 36), @r#"
    since 00:06: 10 loops: 4 completed, 1
    exhausted, 1 stalled, 4 blocked · $12.00

    NEEDS YOU
      billing-cleanup  3 loops: 1 completed…
        crew fleet status billing-cleanup
      baaaaaaa  blocked             Set up…
        the agent cannot choose a region
        crew resume baaaaaaa
      caaaaaaa  blocked             Add pas…
        5 iterations without progress: no
        file, no check and no test changed,…
        crew resume caaaaaaa

    ENDED
      aaaaaaaa  completed, checked  Split a…
      daaaaaaa  completed, passing  Round t…
        1 test was rewritten; as the loop f…
      eaaaaaaa  blocked             The same
      kaaaaaaa  exhausted           Sort

    RUNNING
      faaaaaaa  running             Port th…

    WAITING
      maaaaaaa  waiting             Write t…
      naaaaaaa  paused              Draw th…

    and 1 more: crew status --all

    next  crew fleet status billing-cleanup
    "#);
    assert_snapshot!(shown(&night, 200, usize::MAX), @r#"
    since 00:06: 10 loops: 4 completed, 1 exhausted, 1 stalled, 4 blocked · $12.00

    NEEDS YOU
      billing-cleanup  3 loops: 1 completed, 1 stalled, 1 blocked · $3.60
        crew fleet status billing-cleanup
      baaaaaaa  2026-11-18 11:06  blocked             3  12m  $1.20  ~/w/backup (main)  Set up the nightly backup
        the agent cannot choose a region
        crew resume baaaaaaa
      caaaaaaa  2026-11-18 11:06  blocked             3  12m  $1.20  ~/w/api (main)     Add password reset
        5 iterations without progress: no file, no check and no test changed, and no question was asked that a person could have answered in the meantime
        crew resume caaaaaaa

    ENDED
      aaaaaaaa  2026-11-18 11:06  completed, checked  3  12m  $1.20  ~/w/shop (main)    Split a discount over the lines of an order
      daaaaaaa  2026-11-18 11:06  completed, passing  3  12m  $1.20  ~/w/日本 (main)    Round taxes once
        1 test was rewritten; as the loop found it, it fails: adds
      eaaaaaaa  2026-11-18 11:06  blocked             3  12m  $1.20  ~/w/shop (main)    The same
      kaaaaaaa  2026-11-18 11:06  exhausted           3  12m  $1.20  ~/w/tax (main)     Sort

    RUNNING
      faaaaaaa  2026-11-18 11:06  running             3  12m  $1.20  ~/w/live (main)    Port the parser

    WAITING
      maaaaaaa  2026-11-18 11:06  waiting             3  12m  $1.20  ~/w/docs (main)    Write the guide
      naaaaaaa  2026-11-18 11:06  paused              3  12m  $1.20  ~/w/site (main)    Draw the menu

    FLEETS
      old-tests  1 loop: 1 completed · $1.20
        crew fleet status old-tests

    next  crew fleet status billing-cleanup
    "#);
}

#[test]
fn loops_that_do_not_fit_are_counted() {
    let night = night();
    assert_snapshot!(shown(&night, 80, 24), @r#"
    since 00:06: 10 loops: 4 completed, 1 exhausted, 1 stalled, 4 blocked · $12.00

    NEEDS YOU
      billing-cleanup  3 loops: 1 completed, 1 stalled, 1 blocked · $3.60
        crew fleet status billing-cleanup
      baaaaaaa  blocked             3  $1.20  ~/w/backup (main)  Set up the nightly…
        the agent cannot choose a region
        crew resume baaaaaaa
      caaaaaaa  blocked             3  $1.20  ~/w/api (main)     Add password reset
        5 iterations without progress: no file, no check and no test changed, and no
        question was asked that a person could have answered in the meantime
        crew resume caaaaaaa

    ENDED
      aaaaaaaa  completed, checked  3  $1.20  ~/w/shop (main)    Split a discount o…
      daaaaaaa  completed, passing  3  $1.20  ~/w/日本 (main)    Round taxes once
        1 test was rewritten; as the loop found it, it fails: adds
      eaaaaaaa  blocked             3  $1.20  ~/w/shop (main)    The same

    and 5 more: crew status --all

    next  crew fleet status billing-cleanup
    "#);
    for rows in 12..60 {
        let screen = shown(&night, 80, rows);
        assert!(screen.lines().count() < rows, "{rows}:\n{screen}");
    }
}

#[test]
fn a_loop_without_a_driver_needs_a_person_and_a_running_one_does_not() {
    let live = [a_loop("faaaaaaa", "live", "Port the parser")];
    assert_snapshot!(shown(&live, 80, 24), @"
    since 00:06: no loop has ended

    RUNNING
      faaaaaaa  2026-11-18 11:06  running  3  $1.20  ~/w/live (main)  Port the pars…

    next  crew show faaaaaaa --log -f
    ");
    assert!(shown_of(&facts(&live, true, true), 80, 24).contains("NEEDS YOU"));
    assert_snapshot!(shown(&[], 80, 24), @"
    since 00:06: no loop has ended

    next  crew history --all
    ");
}

#[test]
fn no_line_of_a_list_is_wider_than_the_terminal() {
    let night = night();
    for width in 30..140 {
        let screen = shown(&night, width, usize::MAX);
        let widest =
            screen.lines().filter(|line| !line.contains("crew ")).map(UnicodeWidthStr::width);
        assert!(widest.max().unwrap() <= width, "{width}:\n{screen}");
    }
}

#[test]
fn a_handoff_page_is_read_only_if_it_is_shown() {
    let of_a_fleet = |number: usize| {
        let mut record = a_loop("gaaaaaaa", &number.to_string(), "vat");
        record.fleet = Some(a_task("vat"));
        record
    };
    let mut loops: Vec<Loop> = (0..25).map(of_a_fleet).collect();
    loops.push(a_loop("faaaaaaa", "live", "Port the parser"));
    let read_of = |loops: &[Loop]| {
        let read = RefCell::new(Vec::new());
        let read_one = |record: &Loop| {
            read.borrow_mut().push(record.id.to_string());
            page(record)
        };
        let reading = Reading { width: 80, now: at(3600).wall, offset: Utc.fix() };
        let at = ListReading { reading, home: None };
        let page =
            render_morning(&facts(loops, true, false), &read_one, reading.now, at, usize::MAX);
        (read.into_inner(), paint_marks(&page, false))
    };
    let (read, page) = read_of(&loops);
    assert_eq!(read, ["faaaaaaa"], "its command is the next one");
    assert!(page.ends_with("\nnext  crew show faaaaaaa --log -f\n"), "{page}");
    let blocked = Ending::new(Outcome::Blocked, "the agent cannot choose a region");
    loops.push(ended(a_loop("baaaaaaa", "backup", "Set up the backup"), blocked.clone()));
    let (read, page) = read_of(&loops);
    assert_eq!(read, ["baaaaaaa"]);
    assert!(page.contains("    crew resume baaaaaaa\n"), "{page}");
    for number in 0..30 {
        loops.push(ended(a_loop("caaaaaaa", &format!("c{number}"), "Sort"), blocked.clone()));
    }
    assert_eq!(read_of(&loops).0.len(), PAGES);
}

#[test]
fn no_command_is_proposed_for_a_fleet_recorded_elsewhere() {
    let page = shown_of(&facts(&night(), false, false), 80, usize::MAX);
    assert!(!page.contains("crew fleet status") && page.contains("  jaaaaaaa  blocked "), "{page}");
}

#[test]
fn the_result_of_a_proof_run_is_not_a_remark_even_if_its_command_has_a_semicolon() {
    let shown = "`make; make test` passes, and without the work it fails in adds";
    let mut proven =
        Ending::completed(Proof::Proven, CompletionBasis::WithoutWork(shown.to_owned()));
    let noted =
        |ending: &Ending| proof_note(&ended(a_loop("aaaaaaaa", "shop", "Add"), ending.clone()));
    assert_eq!(noted(&proven), None);
    proven.proof_notes = vec!["not checked: it is flaky".to_owned()];
    assert_eq!(noted(&proven).as_deref(), Some("    not checked: it is flaky"));
}

#[test]
fn a_loop_that_could_not_push_needs_a_person() {
    let done = Ending::completed(Proof::Checked, CompletionBasis::Proof(Proof::Checked));
    let mut record = ended(a_loop("aaaaaaaa", "shop", "Split a discount"), done);
    record.state.set("git.pending.push", true);
    assert!(!shown(&[record.clone()], 80, 24).contains("NEEDS YOU"), "it is being pushed");
    record.state.set("git.pushes", Failures { count: 2, why: "no route to host".to_owned() });
    let page = shown(&[record], 80, 24);
    assert!(page.contains("NEEDS YOU") && page.contains("2 tries failed: no route"), "{page}");
}

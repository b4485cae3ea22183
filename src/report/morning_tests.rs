use std::path::{Path, PathBuf};

use chrono::{FixedOffset, TimeDelta};
use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::engine::evidence::changes::Changes;
use crate::engine::evidence::commits::Commits;
use crate::engine::fixture::{a_run, at};
use crate::engine::fleet::fixture::{a_fleet, id as task};
use crate::engine::journal::story::Story;
use crate::engine::page::{ChangesFrom, PageInputs};
use crate::engine::record::{Ending, Proof, Status};
use crate::engine::usage::{Money, Usage};
use crate::report::colour::painted;

fn a_loop(id: &str, folder: &str, what: &str) -> Loop {
    let mut record = a_run(None);
    record.id = id.parse().unwrap();
    record.place.checkout = PathBuf::from(format!("/home/me/w/{folder}"));
    record.contract.task = what.to_owned();
    record.state.completed = 3;
    record.state.awake_ms = 720_000;
    record.state.usage = Usage { cost: Money::from_micros(1_200_000), ..Usage::default() };
    record
}

fn ended(mut record: Loop, ending: Ending) -> Loop {
    record.state.status = Status::Finished;
    record.state.ended_at = Some(at(3000).wall);
    record.state.ending = Some(ending);
    record
}

/// The page without colours.
fn text(loops: &[MorningLoop], since: DateTime<Utc>, at: ListReading<'_>, rows: usize) -> String {
    painted(&super::text(loops, since, at, rows), false)
}

/// A night: two loops need a person, three ended well, one runs, and a fleet worked.
fn night() -> Vec<Loop> {
    let stalled = "5 iterations without progress: no file, no check and no test changed, and no \
                   question was asked that a person could have answered in the meantime";
    let rewritten = "the checks pass; 1 test was rewritten; as the loop found it, it fails: adds";
    let of_fleet = |id: &str, name: &str, ending: Option<Ending>| {
        let mut record = a_loop(id, name, name);
        record.fleet = Some(a_fleet().task(&task(name)));
        ending.map_or(record.clone(), |ending| ended(record, ending))
    };
    let done = Ending::completed(Proof::Checked, Proof::Checked.meaning());
    vec![
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
            Ending::new(Outcome::Stalled, stalled),
        ),
        ended(
            a_loop("daaaaaaa", "日本", "Round taxes once"),
            Ending::completed(Proof::Passing, rewritten),
        ),
        // A later loop in the same working tree has completed.
        ended(a_loop("eaaaaaaa", "shop", "The same"), Ending::new(Outcome::Exhausted, "so")),
        a_loop("faaaaaaa", "live", "Port the parser"),
        of_fleet("gaaaaaaa", "vat", Some(done.clone())),
        of_fleet("haaaaaaa", "vat", Some(Ending::new(Outcome::Stalled, "so"))),
        of_fleet("jaaaaaaa", "tips", Some(Ending::new(Outcome::Blocked, "so"))),
    ]
}

fn page(record: &Loop) -> Page {
    let changes = Changes::default();
    Page::of(&PageInputs {
        record,
        story: &Story::picking(None),
        owner_is_gone: false,
        dialog: None,
        is_pausing: false,
        changes: Some(&changes),
        changes_from: ChangesFrom::Git,
        commits: &Commits::default(),
        tests: &BTreeMap::default(),
        resume: &format!("crew resume {}", record.id),
        stop: "",
        now: at(3600).wall.fixed_offset(),
    })
}

fn read(loops: Vec<Loop>, is_held: bool) -> Vec<MorningLoop> {
    loops
        .into_iter()
        .map(|record| MorningLoop { page: Some(page(&record)), is_held, record })
        .collect()
}

fn shown(loops: &[MorningLoop], width: usize, rows: usize) -> String {
    let offset = FixedOffset::east_opt(0).unwrap();
    let reading = Reading { width, now: at(3600).wall, offset };
    text(
        loops,
        at(3600).wall - TimeDelta::hours(12),
        ListReading { reading, home: Some(Path::new("/home/me")) },
        rows,
    )
}

#[test]
fn a_night_is_shown_on_one_screen_what_needs_a_person_first() {
    let night = read(night(), false);
    assert_snapshot!(shown(&night, 80, 36), @r#"
    since 00:06: 8 loops: 3 completed, 1 exhausted, 2 stalled, 2 blocked · $9.60

    NEEDS YOU
      baaaaaaa  blocked             3  $1.20  ~/w/backup (main)  Set up the nightly…
        the agent cannot choose a region
        crew resume baaaaaaa
      caaaaaaa  stalled             3  $1.20  ~/w/api (main)     Add password reset
        5 iterations without progress: no file, no check and no test changed, and no
        question was asked that a person could have answered in the meantime
        crew resume caaaaaaa --tell "what to try instead"

    ENDED
      aaaaaaaa  completed, checked  3  $1.20  ~/w/shop (main)    Split a discount o…
      daaaaaaa  completed, passing  3  $1.20  ~/w/日本 (main)    Round taxes once
        1 test was rewritten; as the loop found it, it fails: adds
      eaaaaaaa  exhausted           3  $1.20  ~/w/shop (main)    The same

    RUNNING
      faaaaaaa  running             3  $1.20  ~/w/live (main)    Port the parser

    FLEETS
      billing-cleanup  3 loops: 1 completed, 1 stalled, 1 blocked · $3.60
        crew fleet status billing-cleanup

    next  crew show baaaaaaa
    "#);
}

#[test]
fn a_narrow_terminal_keeps_the_commands_whole_and_a_wide_one_shows_when_a_loop_began() {
    let night = read(night(), false);
    assert_snapshot!(shown(&night, 40, 36), @r#"
    since 00:06: 8 loops: 3 completed, 1
    exhausted, 2 stalled, 2 blocked · $9.60

    NEEDS YOU
      baaaaaaa  blocked             Set up…
        the agent cannot choose a region
        crew resume baaaaaaa
      caaaaaaa  stalled             Add pas…
        5 iterations without progress: no
        file, no check and no test changed,…
        crew resume caaaaaaa --tell "what to try instead"

    ENDED
      aaaaaaaa  completed, checked  Split a…
      daaaaaaa  completed, passing  Round t…
        1 test was rewritten; as the loop f…
      eaaaaaaa  exhausted           The same

    RUNNING
      faaaaaaa  running             Port th…

    FLEETS
      billing-cleanup  3 loops: 1 completed…
        crew fleet status billing-cleanup

    next  crew show baaaaaaa
    "#);
    assert_snapshot!(shown(&night, 200, usize::MAX), @r#"
    since 00:06: 8 loops: 3 completed, 1 exhausted, 2 stalled, 2 blocked · $9.60

    NEEDS YOU
      baaaaaaa  2026-11-18 11:06  blocked             3  12m  $1.20  ~/w/backup (main)  Set up the nightly backup
        the agent cannot choose a region
        crew resume baaaaaaa
      caaaaaaa  2026-11-18 11:06  stalled             3  12m  $1.20  ~/w/api (main)     Add password reset
        5 iterations without progress: no file, no check and no test changed, and no question was asked that a person could have answered in the meantime
        crew resume caaaaaaa --tell "what to try instead"

    ENDED
      aaaaaaaa  2026-11-18 11:06  completed, checked  3  12m  $1.20  ~/w/shop (main)    Split a discount over the lines of an order
      daaaaaaa  2026-11-18 11:06  completed, passing  3  12m  $1.20  ~/w/日本 (main)    Round taxes once
        1 test was rewritten; as the loop found it, it fails: adds
      eaaaaaaa  2026-11-18 11:06  exhausted           3  12m  $1.20  ~/w/shop (main)    The same

    RUNNING
      faaaaaaa  2026-11-18 11:06  running             3  12m  $1.20  ~/w/live (main)    Port the parser

    FLEETS
      billing-cleanup  3 loops: 1 completed, 1 stalled, 1 blocked · $3.60
        crew fleet status billing-cleanup

    next  crew show baaaaaaa
    "#);
}

#[test]
fn what_has_no_room_is_counted() {
    let night = read(night(), false);
    assert_snapshot!(shown(&night, 80, 24), @r#"
    since 00:06: 8 loops: 3 completed, 1 exhausted, 2 stalled, 2 blocked · $9.60

    NEEDS YOU
      baaaaaaa  blocked             3  $1.20  ~/w/backup (main)  Set up the nightly…
        the agent cannot choose a region
        crew resume baaaaaaa
      caaaaaaa  stalled             3  $1.20  ~/w/api (main)     Add password reset
        5 iterations without progress: no file, no check and no test changed, and no
        question was asked that a person could have answered in the meantime
        crew resume caaaaaaa --tell "what to try instead"

    ENDED
      aaaaaaaa  completed, checked  3  $1.20  ~/w/shop (main)    Split a discount o…
      daaaaaaa  completed, passing  3  $1.20  ~/w/日本 (main)    Round taxes once
        1 test was rewritten; as the loop found it, it fails: adds
      eaaaaaaa  exhausted           3  $1.20  ~/w/shop (main)    The same

    and 2 more: crew history --all --since 12h

    next  crew show baaaaaaa
    "#);
    for rows in 12..60 {
        let screen = shown(&night, 80, rows);
        assert!(screen.lines().count() < rows, "{rows}:\n{screen}");
    }
}

#[test]
fn a_loop_that_nobody_drives_needs_a_person_and_one_that_runs_does_not() {
    let live = || vec![a_loop("faaaaaaa", "live", "Port the parser")];
    assert_snapshot!(shown(&read(live(), false), 80, 24), @"
    since 00:06: no loop has ended

    RUNNING
      faaaaaaa  2026-11-18 11:06  running  3  $1.20  ~/w/live (main)  Port the pars…

    next  crew show faaaaaaa --log -f
    ");
    assert!(shown(&read(live(), true), 80, 24).contains("NEEDS YOU"));
    assert_snapshot!(shown(&read(Vec::new(), false), 80, 24), @"
    since 00:06: no loop has ended

    next  crew history --all
    ");
}

#[test]
fn no_line_of_a_list_is_wider_than_the_terminal() {
    let night = read(night(), false);
    for width in 30..140 {
        let screen = shown(&night, width, usize::MAX);
        let widest =
            screen.lines().filter(|line| !line.contains("crew ")).map(UnicodeWidthStr::width);
        assert!(widest.max().unwrap() <= width, "{width}:\n{screen}");
    }
}

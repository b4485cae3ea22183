use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, TimeDelta};
use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use unicode_width::UnicodeWidthStr;

use super::*;
use engine::boundary::judge::judge_boundary;
use engine::claim::Claim;
use engine::evidence::Verdict;
use engine::fixture::{SetState, a_loop_with, a_task, at, facts, result};
use engine::record::{Ending, Loop, Outcome, Proof, Role, Status};
use engine::usage::{Money, Usage};
use engine::view::LoopView;

/// A loop with this id, in `~/w/<folder>`, after an iteration whose claim was refused.
fn a_loop(id: &str, folder: &str) -> Loop {
    let mut refused = facts(Claim::Success);
    refused.checks = vec![result("npm test", Verdict::Failed)];
    let mut record = judge_boundary(&a_loop_with(&[("npm test", Role::Verify)]), &refused).after;
    record.id = id.parse().unwrap();
    record.place.checkout = PathBuf::from(format!("/home/me/w/{folder}"));
    record.state.set("usage", Usage { cost: Money::from_micros(1_200_000), ..Usage::default() });
    record
}

fn ended(mut record: Loop, outcome: Outcome, proof: Option<Proof>) -> Loop {
    let why = "the limit of 10 iterations is reached";
    record.state.finish(Ending { proof, ..Ending::new(outcome, why) }, 0);
    record
}

fn waiting(mut record: Loop) -> Loop {
    record.state.set("status", Status::Waiting);
    record.state.set("due", Some(at(7200).wall));
    record.state.set("awaited", Some("claude: usage limit".to_owned()));
    record
}

fn row(record: &Loop, owner_is_gone: bool) -> Option<BoardRow> {
    let view = LoopView {
        owner_is_gone,
        task: record.fleet.as_ref(),
        running_ms: 180_000,
        ..LoopView::from_record(record, now())
    };
    BoardRow::from_view(&view, Some(Path::new("/home/me")))
}

fn now() -> DateTime<FixedOffset> {
    at(3600).wall.fixed_offset()
}

/// Six loops: two need a person, one runs, one waits, two are over.
fn rows() -> Vec<BoardRow> {
    let mut completed = ended(a_loop("faaaaaaa", "done"), Outcome::Completed, Some(Proof::Checked));
    completed.state.set("completed", 3);
    let blocked = ended(a_loop("baaaaaaa", "backup"), Outcome::Blocked, None);
    [
        row(&ended(a_loop("eaaaaaaa", "shop"), Outcome::Exhausted, None), false),
        row(&completed, false),
        row(&waiting(a_loop("daaaaaaa", "a/folder/with/a/long/name")), false),
        row(&a_loop("caaaaaaa", "日本/api"), false),
        row(&a_loop("haaaaaaa", "lost"), true),
        row(&blocked, false),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn ids(rows: &[BoardRow]) -> Vec<LoopId> {
    rows.iter().map(|row| row.id.clone()).collect()
}

fn a_board() -> Board {
    let mut board = Board::default();
    board.update_rows(rows(), &ids(&rows()), false);
    board
}

/// The screen as a user reads it.
fn drawn(board: &Board, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw_board(board, frame, now())).unwrap();
    let cells = terminal.backend().buffer().content.chunks(usize::from(width).max(1));
    let line = |cells: &[Cell]| {
        let (mut line, mut hidden) = (String::new(), 0);
        for cell in cells {
            if hidden == 0 {
                line += cell.symbol();
                hidden = cell.symbol().width();
            }
            hidden -= 1;
        }
        line.trim_end().to_owned()
    };
    cells.map(line).collect::<Vec<_>>().join("\n")
}

fn pressed(board: &mut Board, keys: &[KeyCode]) -> Vec<BoardRequest> {
    keys.iter().filter_map(|key| board.press_key((*key).into(), 24)).collect()
}

fn id(text: &str) -> LoopId {
    text.parse().unwrap()
}

#[test]
fn loops_that_need_a_person_come_first_and_the_chosen_one_is_detailed_below() {
    let mut board = a_board();
    board.iterations = vec![IterationLine {
        number: 2,
        elapsed_ms: 540_000,
        cost: Some("$0.81".to_owned()),
        files: "3 files".to_owned(),
        checks: "5 of 190 fail".to_owned(),
        ..IterationLine::default()
    }];
    board.activity = vec!["edit   src/session.rs  +14 -3".to_owned()];
    assert_snapshot!(drawn(&board, 80, 24), @"
    crew watch · 6 loops · 2 need you · 1 running · 1 waiting · $7.20          12:06

     NEEDS YOU
    >baaa  ~/w/backup       1/10    59m  $1.20  blocked · `npm test` fails
     haaa  ~/w/lost         2/10    59m  $1.20  owner gone: its client has ended
     RUNNING
     caaa  ~/w/日本/api     2/10     3m  $1.20  claim refused: npm test failed (exi…
     WAITING
     daaa  …th/a/long/name  2/10  13:06  $1.20  claude: usage limit · then iteratio…
     ENDED
     eaaa  ~/w/shop         1/10  11:07  $1.20  exhausted · `npm test` fails
     faaa  ~/w/done         3/10  11:07  $1.20  completed, checked

     baaa · Build the todo API
     blocked · `npm test` fails
      2  9m  $0.81  3 files  5 of 190 fail
         edit   src/session.rs  +14 -3






     q quit  ? keys  ⏎ open  t tell  p pause  l log  d diff  r resume  c cancel
    ");
    assert_snapshot!(drawn(&board, 40, 12), @"
    crew watch · 6 loops · 2 need you  12:06
     NEEDS YOU
    >baaa  …backup  1/10    59m  blocked ·…
     haaa  …w/lost  2/10    59m  owner gone…
     RUNNING
     caaa  …本/api  2/10     3m  claim refu…
     WAITING
     daaa  …g/name  2/10  13:06  claude: us…
     ENDED
     eaaa  …w/shop  1/10  11:07  exhausted…
     faaa  …w/done  3/10  11:07  completed,…
     q quit  ? keys  ⏎ open  t tell  p pause
    ");
}

#[test]
fn a_wide_board_shows_what_each_loop_works_on() {
    let board = a_board();
    assert_snapshot!(drawn(&board, 120, 24), @"
    crew watch · 6 loops · 2 need you · 1 running · 1 waiting · $7.20                                                  12:06

     NEEDS YOU
    >baaa  ~/w/backup            Build the todo API  1/10    59m  $1.20  blocked · `npm test` fails
     haaa  ~/w/lost              Build the todo API  2/10    59m  $1.20  owner gone: its client has ended
     RUNNING
     caaa  ~/w/日本/api          Build the todo API  2/10     3m  $1.20  claim refused: npm test failed (exit 1)
     WAITING
     daaa  …er/with/a/long/name  Build the todo API  2/10  13:06  $1.20  claude: usage limit · then iteration 2
     ENDED
     eaaa  ~/w/shop              Build the todo API  1/10  11:07  $1.20  exhausted · `npm test` fails
     faaa  ~/w/done              Build the todo API  3/10  11:07  $1.20  completed, checked

     baaa · Build the todo API









     q quit  ? keys  ⏎ open  t tell  p pause  l log  d diff  r resume  c cancel
    ");
}

#[test]
fn a_board_without_loops_shows_how_to_start_one() {
    assert_snapshot!(drawn(&Board::default(), 60, 6), @r#"
    crew watch · 0 loops                                   12:06

     No loop in the last 24 hours.
     crew run "…" starts one,
     crew demo shows one.
     q quit  ? keys
    "#);
}

#[test]
fn a_truncated_row_ends_with_an_ellipsis_and_the_selected_loop_is_always_visible() {
    let many: Vec<BoardRow> = (0..60)
        .map(|number| {
            let record = a_loop(
                &format!(
                    "{}aaaaaa{}",
                    char::from(b'a' + number / 10),
                    "abcdefghjk".chars().nth(usize::from(number % 10)).unwrap()
                ),
                "api",
            );
            row(&record, false).unwrap()
        })
        .collect();
    let mut board = Board::default();
    board.update_rows(many.clone(), &ids(&many), false);
    for (width, height) in [(20, 5), (40, 12), (79, 18), (80, 24), (200, 50)] {
        for key in [KeyCode::End, KeyCode::Up, KeyCode::Home, KeyCode::Down, KeyCode::PageDown] {
            board.press_key(key.into(), height.into());
            let screen = drawn(&board, width, height);
            let marked = screen.lines().find(|line| line.starts_with('>')).unwrap_or_default();
            let chosen = board.chosen.as_ref().unwrap().as_str();
            let is_marked = marked.contains(&chosen[..board.id_chars]);
            assert!(is_marked, "{width}x{height} after {key:?}:\n{screen}");
            let shows_its_cut = marked.ends_with('…') || marked.contains(&many[0].news);
            assert!(width == 20 || shows_its_cut, "{width}x{height}:\n{screen}");
        }
    }
}

#[test]
fn each_key_asks_for_what_its_name_says() {
    use KeyCode::{Backspace, Char, Down, End, Enter, Esc};
    let chosen = id("baaaaaaa");
    for (keys, expected) in [
        (&[Char('q')][..], vec![BoardRequest::Quit]),
        (&[Enter], vec![BoardRequest::Open(TextKind::Page, chosen.clone())]),
        (&[Char('l')], vec![BoardRequest::Open(TextKind::Log, chosen.clone())]),
        (&[Char('d')], vec![BoardRequest::Open(TextKind::Diff, chosen.clone())]),
        (&[Char('p')], vec![BoardRequest::Pause(chosen.clone())]),
        (&[Char('c'), Char('y')], vec![BoardRequest::Cancel(chosen.clone())]),
        (&[Char('c'), Char('n')], vec![]),
        (&[Char('c'), Enter], vec![]),
        (&[Char('r'), Char('y')], vec![BoardRequest::Resume(chosen.clone(), None)]),
        (&[Char('r'), Esc], vec![]),
        (
            &[Down, Char('t'), Char('q'), Char('x'), Backspace, Enter],
            vec![BoardRequest::Tell(id("haaaaaaa"), "q".to_owned())],
        ),
        (
            &[Char('t'), Char('q'), Enter, Char('y')],
            vec![BoardRequest::Resume(chosen.clone(), Some("q".to_owned()))],
        ),
        (&[Char('t'), Char(' '), Enter], vec![]),
        (
            &[Char('t'), Char('x'), Esc, Enter],
            vec![BoardRequest::Open(TextKind::Page, chosen.clone())],
        ),
        (&[Char('?'), Char('q')], vec![]),
        (&[End, Down, Enter], vec![BoardRequest::Open(TextKind::Page, id("faaaaaaa"))]),
        (&[Char('j'), Enter], vec![BoardRequest::Open(TextKind::Page, id("haaaaaaa"))]),
        (&[Char('x')], vec![]),
    ] {
        assert_eq!(pressed(&mut a_board(), keys), expected, "{keys:?}");
    }
    assert_eq!(pressed(&mut Board::default(), &[Enter, Char('c'), Char('y'), Down]), []);
    let mut typing = a_board();
    pressed(&mut typing, &[Char('t'), Char('x')]);
    let interrupt = KeyEvent::new(Char('c'), KeyModifiers::CONTROL);
    assert_eq!(typing.press_key(interrupt, 24), Some(BoardRequest::Quit));
    assert_eq!(typing.press_key(KeyEvent::new(Char('q'), KeyModifiers::ALT), 24), None);
}

#[test]
fn a_message_to_the_loop_of_a_task_goes_to_its_fleet_however_the_loop_ended() {
    for outcome in [Outcome::Blocked, Outcome::Exhausted, Outcome::Completed] {
        let mut record = ended(a_loop("aaaaaaaa", "api"), outcome, None);
        record.fleet = Some(a_task("vat"));
        let rows: Vec<BoardRow> = row(&record, false).into_iter().collect();
        let mut board = Board::default();
        board.update_rows(rows.clone(), &ids(&rows), false);
        let typed = [KeyCode::Char('t'), KeyCode::Char('x'), KeyCode::Enter];
        let expected = BoardRequest::Tell(id("aaaaaaaa"), "x".to_owned());
        assert_eq!(pressed(&mut board, &typed), [expected], "{outcome:?}");
    }
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    for width in (0..90).step_by(7) {
        for height in 0..30 {
            drawn(&a_board(), width, height);
        }
    }
}

#[test]
fn rows_do_not_move_during_a_choice_and_the_choice_stays_with_its_loop() {
    let mut board = a_board();
    board.press_key(KeyCode::Down.into(), 24);
    board.press_key(KeyCode::Down.into(), 24);
    assert_eq!(board.chosen, Some(id("caaaaaaa")));
    let before: Vec<LoopId> = ids(&board.rows);
    let over = ended(a_loop("caaaaaaa", "日本/api"), Outcome::Exhausted, None);
    let mut changed = rows();
    changed.retain(|row| row.id != id("caaaaaaa"));
    changed.extend(row(&over, false));
    board.update_rows(changed.clone(), &ids(&changed), true);
    assert_eq!(ids(&board.rows), before);
    assert!(drawn(&board, 80, 24).contains(">caaa  ~/w/日本/api"));
    let screen = drawn(&board, 80, 24);
    assert!(
        screen.contains("exhausted") && !screen.contains("runs"),
        "news is shown at once: {screen}"
    );
    board.update_rows(changed, &before, false);
    assert_eq!(ids(&board.rows).last(), Some(&id("faaaaaaa")));
    assert_eq!(board.chosen, Some(id("caaaaaaa")));
    let mut resumed = rows();
    resumed.retain(|row| row.id != id("baaaaaaa"));
    resumed.extend(row(&a_loop("baaaaaaa", "backup"), false));
    board.update_rows(resumed, &before, true);
    let screen = drawn(&board, 80, 24);
    let (needs, _) = screen.split_once("RUNNING").unwrap();
    assert!(!needs.contains("baaa"), "a loop that was resumed needs nobody: {needs}");
    let rest: Vec<BoardRow> = rows().into_iter().filter(|row| row.id != id("caaaaaaa")).collect();
    board.update_rows(rest, &before, false);
    assert!(board.chosen.is_some_and(|chosen| chosen != id("caaaaaaa")), "another is chosen");
}

#[test]
fn a_log_follows_its_end_until_it_is_scrolled() {
    let mut board = a_board();
    let log = |lines: u32| (1..=lines).map(|number| format!("line {number}.")).collect::<Vec<_>>();
    board.show_text(TextKind::Log, id("caaaaaaa"), log(100));
    assert!(drawn(&board, 80, 24).contains("line 100."));
    board.show_text(TextKind::Log, id("caaaaaaa"), log(101));
    assert!(drawn(&board, 80, 24).contains("line 101."));
    board.press_key(KeyCode::PageUp.into(), 24);
    board.show_text(TextKind::Log, id("caaaaaaa"), log(200));
    assert!(
        drawn(&board, 80, 24).contains("line 60.") && !drawn(&board, 80, 24).contains("line 200.")
    );
    board.press_key(KeyCode::End.into(), 24);
    assert!(drawn(&board, 80, 24).contains("line 200."));
    board.press_key(KeyCode::Esc.into(), 24);
    assert!(drawn(&board, 80, 24).contains("NEEDS YOU"));
}

#[test]
fn ids_are_shortened_as_far_as_they_stay_different() {
    let apart = |ids: &[&str]| id_chars_needed(&ids.iter().copied().map(id).collect::<Vec<_>>());
    assert_eq!(apart(&[]), 4);
    assert_eq!(apart(&["aaaaaaaa", "baaaaaaa"]), 4);
    assert_eq!(apart(&["aaaaaaaa", "baaaaaaa", "aaaaabaa"]), 6);
}

#[test]
fn a_loop_leaves_the_board_a_day_after_its_end_or_a_week_if_it_needs_a_person() {
    let aged = |outcome, hours, is_replaced| {
        let mut record = ended(a_loop("aaaaaaaa", "api"), outcome, None);
        record.state.set("last_iteration_at", Some(now().to_utc() - TimeDelta::hours(hours)));
        let row = BoardRow::from_view(
            &LoopView { is_replaced, ..LoopView::from_record(&record, now()) },
            None,
        );
        row.map(|row| row.group)
    };
    let mut cancelled = ended(a_loop("aaaaaaaa", "api"), Outcome::Cancelled, None);
    cancelled.state.set("last_iteration_at", Some(now().to_utc() - TimeDelta::hours(48)));
    cancelled.state.set("ended_at", Some(now().to_utc()));
    assert!(row(&cancelled, false).is_some(), "it ended now, long after its last iteration");
    assert_eq!(aged(Outcome::Exhausted, 23, false), Some(BoardGroup::Ended));
    assert_eq!(aged(Outcome::Exhausted, 24, false), None);
    assert_eq!(aged(Outcome::Blocked, 100, false), Some(BoardGroup::NeedsYou));
    assert_eq!(aged(Outcome::Blocked, 168, false), None);
    assert_eq!(aged(Outcome::Blocked, 100, true), None, "a later loop works there");
    assert_eq!(aged(Outcome::Blocked, 1, true), Some(BoardGroup::Ended));
}

#[test]
fn a_row_names_the_current_step_unless_it_is_the_agent() {
    let record = a_loop("caaaaaaa", "api");
    let news = |step| {
        let doing = Some(Doing { step, run: "npm test".to_owned(), since: at(0).wall });
        BoardRow::from_view(&LoopView { doing, ..LoopView::from_record(&record, now()) }, None)
            .unwrap()
            .news
    };
    assert_snapshot!(news(LoopStep::Check), @"check `npm test` · claim refused: npm test failed (exit 1)");
    assert_snapshot!(news(LoopStep::Agent), @"claim refused: npm test failed (exit 1)");
}

#[test]
fn a_task_of_a_fleet_that_ended_undone_needs_a_person_as_its_fleet_says() {
    let group = |outcome, is_task: bool| {
        let mut record = ended(a_loop("aaaaaaaa", "api"), outcome, None);
        record.fleet = is_task.then(|| a_task("vat"));
        row(&record, false).map(|row| row.group)
    };
    for outcome in [Outcome::Exhausted, Outcome::Aborted, Outcome::Stalled, Outcome::Error] {
        assert_eq!(group(outcome, true), Some(BoardGroup::NeedsYou), "{outcome:?}");
        assert_eq!(group(outcome, false), Some(BoardGroup::Ended), "{outcome:?}");
    }
    for outcome in [Outcome::Completed, Outcome::Cancelled, Outcome::Interrupted] {
        assert_eq!(group(outcome, true), Some(BoardGroup::Ended), "{outcome:?}");
    }
}

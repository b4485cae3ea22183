use insta::assert_snapshot;

use super::*;
use crate::report::layout::{fit_line, fold_text};
use chrono::FixedOffset;
use engine::fixture::{a_loop, a_page, at};
use engine::journal::story::Story;

fn read_at(width: usize) -> Reading {
    Reading { width, now: at(7200).wall, offset: FixedOffset::east_opt(0).unwrap() }
}

/// The page without colours.
fn text(page: &Page, reading: Reading) -> String {
    colour::paint_marks(&render_page(page, reading), false)
}

/// A page with everything that one can have.
fn full() -> Page {
    let line = |number, files: &str, checks: &str, said| IterationLine {
        number,
        elapsed_ms: u64::from(number) * 200_000,
        cost: Some(format!("$0.{number}0")),
        files: files.to_owned(),
        checks: checks.to_owned(),
        said,
        ..IterationLine::default()
    };
    let fact = |name: &str, text: &str, detail: &[&str]| Fact {
        name: name.to_owned(),
        text: text.to_owned(),
        detail: detail.iter().map(|line| (*line).to_owned()).collect(),
    };
    let said = |words: &str| LastWords::Agent(words.to_owned());
    let refused = || LastWords::Crew("claimed, refused".to_owned());
    Page {
        verdict: "exhausted after 10 iterations".to_owned(),
        remark: Some("2 of 148 tests fail".to_owned()),
        task: "Split a discount over the lines of an order so that refunds add up to the cent. \
               日本語 too.\nSecond line\nThird line\nFourth line"
            .to_owned(),
        ending: vec![
            fact("why", "the limit of 10 iterations is reached; 3 claims were refused", &[]),
            fact(
                "red",
                "`npm test` passed after iteration 3 and has failed since iteration 4, which changed split.ts",
                &[],
            ),
        ],
        awake_ms: 7_830_000,
        ended_at: Some(at(3500).wall),
        cost: Some("$9.15 of $10.00".to_owned()),
        earlier: 2,
        iterations: vec![
            line(3, "5 files, 3 new", "6 of 148 fail", said("Lines carry their share now.")),
            line(4, "src/components/cart/discount.ts", "1 of 148 fails", refused()),
            line(9, "split.ts", "2 of 148 fail", LastWords::Nothing),
            line(10, "nothing", "2 of 148 fail", said("Left: refunds of 3 lines.")),
        ],
        results: vec![
            fact("tests", "145 → 148: 3 new", &[]),
            fact("fails", "`npm test` failed (exit 1): cart › splits", &["Expected: [2, 2, 1]"]),
            fact("files", "4 files changed, 3 new, +188 −40", &["new: src/cart/share.ts"]),
        ],
        handoff: Some("/repo/.claude/branches/main/handoffs/exhausted.md".to_owned()),
        next: NextStep { command: "crew diff m7qa 3..4".into(), what: "what turned it red".into() },
        then: Some(NextStep {
            command: "crew back m7qa 3".into(),
            what: "back to where it passed".into(),
        }),
        stop: None,
        ..a_page(&a_loop(), &Story::with_pick(None))
    }
}

#[test]
fn the_page_of_an_ended_loop_fits_80_columns() {
    assert_snapshot!(text(&full(), read_at(80)), @r#"
    loop haaaaaaa · exhausted after 10 iterations · 2 of 148 tests fail

      Split a discount over the lines of an order so that refunds add up to the
      cent. 日本語 too.
      Second line …

      why     the limit of 10 iterations is reached; 3 claims were refused
      red     `npm test` passed after iteration 3 and has failed since iteration 4,
              which changed split.ts
      time    2h 10m, from 11:06 to 12:05, 1h ago · $9.15 of $10.00

      (2 iterations before these)
       3  10m   $0.30  5 files, 3 new  6 of 148 fail   "Lines carry their share no…"
       4  13m   $0.40  discount.ts     1 of 148 fails  claimed, refused
       9  30m   $0.90  split.ts        2 of 148 fail
      10  33m  $0.100  nothing         2 of 148 fail   "Left: refunds of 3 lines."

      tests   145 → 148: 3 new
      fails   `npm test` failed (exit 1): cart › splits
              Expected: [2, 2, 1]
      files   4 files changed, 3 new, +188 −40
              new: src/cart/share.ts
      handoff /repo/.claude/branches/main/handoffs/exhausted.md

      next    crew diff m7qa 3..4
              what turned it red
      then    crew back m7qa 3
              back to where it passed
    "#);
}

#[test]
fn at_40_columns_times_costs_and_words_are_dropped_first() {
    let text = text(&full(), read_at(40));
    assert_snapshot!(text, @"
    loop haaaaaaa · exhausted after 10
    iterations · 2 of 148 tests fail

      Split a discount over the lines of an
      order so that refunds add up to the
      cent. 日本語 too. …

      why     the limit of 10 iterations is
              reached; 3 claims were refused
      red     `npm test` passed after
              iteration 3 and has failed
              since iteration 4, which
              changed split.ts
      time    2h 10m, from 11:06 to 12:05,
              1h ago · $9.15 of $10.00

      (2 iterations before these)
       3  5 files, 3 new  6 of 148 fail
       4  discount.ts     1 of 148 fails
       9  split.ts        2 of 148 fail
      10  nothing         2 of 148 fail

      tests   145 → 148: 3 new
      fails   `npm test` failed (exit 1):
              cart › splits
              Expected: [2, 2, 1]
      files   4 files changed, 3 new, +188
              −40
              new: src/cart/share.ts
      handoff /repo/.claude/branches/main/handoffs/exhausted.md

      next    crew diff m7qa 3..4
              what turned it red
      then    crew back m7qa 3
              back to where it passed
    ");
}

#[test]
fn the_page_of_a_running_loop_shows_its_agent_its_limits_and_how_to_stop_it() {
    let page = a_page(&a_loop(), &Story::with_pick(None));
    assert_snapshot!(text(&page, read_at(80)), @"
    loop haaaaaaa · running, iteration 1 of 10

      Build the todo API

      limits  up to 10 iterations, 12h
      folder  /repo
      time    0s, since 11:06

      stop    crew pause haaaaaaa
      next    crew show haaaaaaa
    ");
}

#[test]
fn a_line_is_truncated_by_its_width_on_the_screen() {
    let table = [
        ("plain", 5, "plain"),
        ("plain", 4, "pla…"),
        ("日本語", 5, "日本…"),
        ("日本語", 6, "日本語"),
    ];
    for (text, columns, cut) in table {
        assert_eq!(fit_line(text, columns), cut);
    }
    assert_eq!(wrap_text("a bb  ccc\n  dd", 40, 9), ["a bb ccc", "  dd"]);
    assert_eq!(wrap_text("one two three four five", 12, 2), ["one two", "three four …"]);
    assert_eq!(wrap_text("\u{1b}[2Jx\u{202e}y", 40, 1), ["xy"]);
}

#[test]
fn text_without_spaces_is_broken_at_the_end_of_the_line_and_a_path_stays_whole() {
    let path = "/a/folder/with/a/name/that/is/long/enough";
    let table = [
        ("一二三四五六七八九十", vec!["一二三四五六", "七八九十"]),
        ("see 一二三四五六七八 now", vec!["see", "一二三四五六", "七八 now"]),
        (path, vec![path]),
    ];
    for (text, expected) in table {
        assert_eq!(wrap_text(text, 13, usize::MAX), expected);
    }
}

#[test]
fn a_long_line_is_folded_between_words_and_indented_to_its_column() {
    let page = "Look\n  status     how a loop stands, or how it ended; --all lists every loop\n\
                loop.completion_promise        COMPLETE        built-in\n  short     line\n";
    assert_eq!(fold_text(page, 80), page);
    assert_snapshot!(fold_text(page, 40), @"
    Look
      status     how a loop stands, or how
                 it ended; --all lists every
                 loop
    loop.completion_promise COMPLETE
      built-in
      short     line
    ");
}

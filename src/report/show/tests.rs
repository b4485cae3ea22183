use chrono::{Offset, Utc};
use insta::assert_snapshot;

use super::*;
use crate::report::colour::paint_marks;
use engine::boundary::decide::{Decision, apply_decision, decide_next};
use engine::boundary::judge::judge_boundary;
use engine::claim::Claim;
use engine::evidence::Verdict;
use engine::evidence::changes::Commits;
use engine::fixture::{SetState, a_loop_with, a_page, a_run, at, facts, result};
use engine::journal::{Event, JournalEntry, NoteKind, SCHEMA};
use engine::record::{GitSteps, Role};

/// A loop that started in a session, was moved into fresh processes and completed there, and its
/// story.
fn moved(task: &str) -> (Loop, Story) {
    let mut record = a_loop_with(&[("cargo test", Role::Verify)]);
    record.contract.task = task.to_owned();
    let mut story = Story::with_pick(Some(1));
    let mut add = |seconds, generation, event| {
        story.add_entry(JournalEntry { schema: SCHEMA, at: at(seconds).wall, generation, event });
    };
    add(0, 0, Event::Started { record: Box::new(record.clone()) });
    for (seconds, verdict) in [(60, Verdict::Failed), (200, Verdict::Passed)] {
        let mut facts = facts(Claim::Success);
        facts.now = at(seconds);
        facts.checks = vec![result("cargo test", verdict)];
        let judged = judge_boundary(&record, &facts);
        let decision = decide_next(&judged, &facts);
        record = apply_decision(judged, &decision);
        let generation = record.state.generation() + 1;
        record.state.set("generation", generation);
        let (decision, why) = match &decision {
            Decision::Finish(ending) => (Choice::Finish, Some(ending.full_reason())),
            _ => (Choice::Continue, None),
        };
        let elapsed_ms = record.elapsed_ms.last().copied();
        let state = Box::new(record.state.clone());
        add(seconds, generation, Event::Boundary { decision, why, elapsed_ms, state });
        if verdict == Verdict::Failed {
            let run = a_run(Some("build"));
            record.contract.run = run.contract.run;
            record.state.set("owner", run.state.owner().clone());
            record.state.set("owner.process.pid", 99);
            record.state.set("generation", record.state.generation() + 1);
            let generation = record.state.generation();
            add(90, generation, Event::from_change(NoteKind::ResumedInRun, &record, &record));
            add(95, generation, Event::from_note("asleep 7h"));
        }
    }
    (record, story)
}

fn known<'a>(record: &'a Loop, story: &'a Story, page: &'a Page) -> StoryPage<'a> {
    let reading = Reading { width: 80, now: at(7200).wall, offset: Utc.fix() };
    StoryPage { view: LoopView::from_record(record, reading.clock()), story, page, reading }
}

#[test]
fn the_page_shows_both_drivers_every_iteration_and_the_end() {
    let (record, mut story) = moved("Build the todo API\nand then rest");
    story.torn = 1;
    assert_snapshot!(paint_marks(&story_page(&known(&record, &story, &a_page(&record, &story))), false), @"
    loop haaaaaaa · completed after 2 iterations · proof: checked

      Build the todo API
      and then rest

      why     `cargo test` passes; it had failed before
      time    3m, from 11:06 to 11:10, 1h ago

      1  1m  something  fails   claimed, refused
      2  2m  something  passes  claimed, checked

      next    crew show haaaaaaa

    settings of this loop
      task    Build the todo API…
      done    when the agent says COMPLETE and `cargo test` passes
      limits  up to 10 iterations, 12h; ends after 3 failures in a row or 5
              iterations without progress
      folder  /repo
      branch  main
      agent   claude, procedure build, permissions accept-edits
      run by  session s-1, then fresh processes of crew 99

    story
      2026-11-18 11:06:40  started in session s-1
      2026-11-18 11:07:40  iteration 1 · 1m0s · claim refused: cargo test failed
                           (exit 1)
      2026-11-18 11:08:10  resumed in fresh processes; run by fresh processes of
                           crew 99 from here
      2026-11-18 11:08:15  note: asleep 7h
      2026-11-18 11:10:00  iteration 2 · 2m20s · claim accepted · 1 check fixed ·
                           finished: a check that had failed now passes
      (1 line of the journal cannot be read)
    ");
}

#[test]
fn a_run_shows_its_agent_its_permissions_and_its_git_steps() {
    let mut record = a_run(Some("build"));
    let terms = |record: &Loop| {
        let rows =
            contract_rows(&LoopView::from_record(record, at(0).wall.fixed_offset())).into_iter();
        let rows = rows.filter(|row| ["agent", "git"].contains(&row.name.as_str()));
        rows.map(|row| (row.name, row.text)).collect::<Vec<_>>()
    };
    let agent = "claude, procedure build, permissions accept-edits".to_owned();
    assert_eq!(terms(&record), [("agent".to_owned(), agent.clone())]);
    let run = record.contract.run.as_mut().unwrap();
    run.git = GitSteps {
        commit: true,
        push: true,
        rebase: Some("main".to_owned()),
        ..GitSteps::default()
    };
    run.max_turns = 7;
    let git = ("git".to_owned(), "commit, push, rebase onto main".to_owned());
    let agent = ("agent".to_owned(), format!("{agent}, at most 7 turns"));
    assert_eq!(terms(&record), [agent, git]);
}

#[test]
fn one_iteration_is_shown_with_all_its_evidence() {
    let (record, story) = moved("Build");
    let picked = story.picked().unwrap();
    let log = Path::new("/home/me/iterations/0001.log");
    assert_snapshot!(paint_marks(&iteration_page(&record, picked, Some(log), Utc.fix()), false), @"
    loop haaaaaaa: iteration 1
      time    1m0s, from 2026-11-18 11:06:40
      status  completed
      claim   refused: `cargo test` failed (exit 1)
      progress made: files changed
      files   something
      verify  `cargo test` failed (exit 1) in 1.2s
              output of cargo test
      then    the loop continued
      log     /home/me/iterations/0001.log
    ");
    let value = iteration_json(&record, picked, Some(log));
    assert_eq!(value["schema"], 2);
    assert_eq!(value["iteration"]["iteration"], 1);
    assert_eq!(value["iteration"]["evidence"]["checks"][0]["exit"], 1);
}

#[test]
fn the_json_has_its_schema_and_each_line_of_the_story_its_kind() {
    let (record, story) = moved("Build");
    let value = story_json(&known(&record, &story, &a_page(&record, &story)));
    assert_eq!(value["schema"], 2);
    assert_eq!(value["loop"]["outcome"], "completed");
    let kinds: Vec<&str> = value["story"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["started", "iteration", "changed", "noted", "iteration"]);
    assert_eq!(value["drivers"][1]["driver"], "process");
}

#[test]
fn the_html_page_needs_no_other_file_and_escapes_all_text() {
    let (mut record, story) = moved("<script>alert(1)</script> \"&' build");
    record.place.branch = Some("<img src=x>".to_owned());
    let made = Some(vec!["1a2b3c4 <b>bold</b>".to_owned()]);
    let commits = Commits { made, ..Commits::default() };
    let text =
        html::render_html(&known(&record, &story, &Page { commits, ..a_page(&record, &story) }));
    for never in ["<script", "<img", "<b>", "<i>", "http:", "https:", "src="] {
        assert!(!text.replace("&lt;img src=x&gt;", "").contains(never), "{never} in\n{text}");
    }
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt; &quot;&amp;&#39; build"));
    for part in ["color-scheme", "prefers-color-scheme: dark", "iteration", "asleep 7h", "99"] {
        assert!(text.contains(part), "{part}");
    }
    let (opened, closed) = (text.matches("<tr>").count(), text.matches("</tr>").count());
    assert_eq!(opened, closed);
}

#[test]
fn a_check_has_the_colour_of_its_verdict() {
    for (verdict, tone) in [(Verdict::Failed, "bad"), (Verdict::Passed, "good")] {
        let mut record = a_loop_with(&[("cargo test", Role::Verify)]);
        let mut facts = facts(Claim::Success);
        facts.checks = vec![result("cargo test", verdict)];
        record = judge_boundary(&record, &facts).after;
        record.state.set("evidence.checks.0.tail", "");
        let story = Story::with_pick(None);
        let page = html::render_html(&known(&record, &story, &a_page(&record, &story)));
        let shown = format!("<code>cargo test</code> <span class=\"{tone}\">");
        assert!(page.contains(&shown), "{page}");
    }
}

//! What a user sees of loops in a terminal: `crew show`, `history`, `watch` and `status --line`,
//! for loops that a client drives.

use std::fs;
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::door::Door;
use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::Ran;
use crate::tidy::pattern;

const CLAIM: &str = "All done.\n<promise>COMPLETE</promise>";

/// A loop whose first claim was refused, and which was then cancelled.
fn ended(door: &Door) -> String {
    let id = door.begin("'Build <b>it</b>' --verify 'echo not there yet; test -e done'");
    door.stop(CLAIM);
    door.sandbox.crew(&["cancel", &id, "--reason", "wrong branch"]).success();
    id
}

/// The text with the parts that differ between runs normalised.
fn settled(text: &str, id: &str) -> String {
    let text = text.replace(id, "ID");
    let replacements = [
        (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "DATE"),
        (r"\d+m\d+s|\b\d+\.\ds|\b\d+(ms|s)\b", "TIME"),
        (r"/\S+/repo\b", "REPO"),
    ];
    replacements
        .into_iter()
        .fold(text, |text, (regex, with)| pattern(regex).replace_all(&text, with).into_owned())
}

fn shown(ran: Ran) -> Value {
    serde_json::from_str(&ran.success()).unwrap()
}

#[test]
fn the_story_shows_the_settings_every_iteration_and_the_end() {
    let door = Door::new();
    let id = ended(&door);
    let page = settled(&door.sandbox.crew(&["show"]).success(), &id);
    let (_, story) = page.split_once("\nsettings of this loop\n").unwrap();
    assert_eq!(
        story,
        "  task    Build <b>it</b>\n  \
           done    when the agent says COMPLETE and `echo not there yet; test -e done` passes\n  \
           limits  up to 10 iterations, 12h; ends after 3 failures in a row or 5 iterations without progress\n  \
           folder  REPO\n  \
           branch  main\n  \
           run by  session 00000000-0000-4000-8000-000000000001\n\
         \n\
         story\n  \
           DATE  started in session 00000000-0000-4000-8000-000000000001\n  \
           DATE  iteration 1 · TIME · claim refused: echo not there yet; test -e done failed (exit 1)\n  \
           DATE  cancelled by the user: wrong branch\n"
    );
    let value = shown(door.sandbox.crew(&["show", &id, "--json"]));
    assert_eq!((&value["schema"], &value["loop"]["id"]), (&json!(2), &json!(id)));
    assert_eq!(value["story"][1]["evidence"]["checks"][0]["exit"], 1);
}

#[test]
fn an_iteration_is_shown_with_what_its_check_printed_and_a_missing_one_is_named() {
    let door = Door::new();
    let id = ended(&door);
    let page = settled(&door.sandbox.crew(&["show", "--iteration", "1"]).success(), &id);
    assert!(page.starts_with("loop ID: iteration 1\n"), "{page}");
    assert!(page.contains("\n          not there yet\n"), "{page}");
    let ran = door.sandbox.crew(&["show", &id, "--iteration", "7"]);
    let said = format!("crew: loop {id} has no iteration 7: 1 ended\nhint: crew show {id}\n");
    assert_eq!((ran.code(), ran.stderr), (1, said));
}

#[test]
fn the_html_page_is_complete_and_contains_no_markup_of_the_task() {
    let door = Door::new();
    ended(&door);
    let file = door.sandbox.root().join("story.html");
    door.sandbox.crew(&["show", "--html", file.to_str().unwrap()]).success();
    let page = fs::read_to_string(file).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert!(page.contains("Build &lt;b&gt;it&lt;/b&gt;") && !page.contains("<b>"), "{page}");
    assert!(page.contains("<pre>not there yet</pre>"), "{page}");
}

#[test]
fn the_html_page_of_a_running_loop_shows_its_status() {
    let door = Door::new();
    let id = door.begin("'Build it' --verify 'echo not there yet; test -e done'");
    door.stop(CLAIM);
    let file = door.sandbox.root().join("story.html");
    door.sandbox.crew(&["show", "--html", file.to_str().unwrap()]).success();
    let page = fs::read_to_string(file).unwrap();
    assert!(page.contains(&format!("loop {id} · running, iteration 2 of 10")), "{page}");
    assert!(page.contains("claimed, refused") && page.ends_with("</html>\n"), "{page}");
}

#[test]
fn a_session_has_no_log_and_the_clients_own_is_named() {
    let door = Door::new();
    ended(&door);
    let ran = door.sandbox.crew(&["show", "--log"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("crew keeps no log of it\nhint: "), "{}", ran.stderr);
}

#[test]
fn a_log_is_printed_without_codes_and_followed_until_the_loop_ends() {
    let door = Door::new();
    let id = door.begin("Build it");
    let log = door.file(&id, "iterations/0001.log");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, b"\x1b]0;title\x07one\n\xff \x1b[31mtwo\x1b[m\n").unwrap();
    let printed = door.sandbox.crew(&["show", "--log"]).success();
    assert_eq!(printed, "one\n\u{fffd} two\n");
    let following = door.sandbox.start_crew(&["show", "--log", "-f"]);
    poll_until("what was there before", || following.stdout().contains("two\n"));
    fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"three\nfour").unwrap();
    poll_until("what came later", || following.stdout().ends_with("three\n"));
    door.sandbox.crew(&["cancel", &id]).success();
    let ran = following.wait(DEADLINE);
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "one\n\u{fffd} two\nthree\nfour"));
    assert!(ran.stderr.contains(&format!("loop {id} is over: cancelled")), "{}", ran.stderr);
}

#[test]
fn history_lists_loops_that_ended_in_this_working_tree_newest_first() {
    let door = Door::new();
    assert_eq!(door.sandbox.crew(&["history"]).success(), "no loop has ended here\n");
    let anywhere = door.sandbox.crew(&["history", "--all"]).success();
    assert_eq!(anywhere, "no loop has ended on this machine\n");
    let first = ended(&door);
    let second = ended(&door);
    door.begin("Still at work");
    let list = door.sandbox.crew(&["history"]).success();
    let ids: Vec<&str> =
        list.lines().take_while(|line| !line.is_empty()).map(|line| &line[..8]).collect();
    assert_eq!(ids.len(), 2, "{list}");
    assert!(ids.contains(&first.as_str()) && ids.contains(&second.as_str()), "{list}");
    assert!(list.contains("  cancelled  1  "), "{list}");
    assert!(list.contains("\n2 loops: 2 cancelled · 2 iterations in "), "{list}");
    let one = shown(door.sandbox.crew(&["history", "--limit", "1", "--json"]));
    assert_eq!(one["loops"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&one["totals"]["outcomes"]["cancelled"], &one["totals"]["iterations"]),
        (&2.into(), &2.into())
    );
    for (filter, found) in [
        (["--outcome", "cancelled"], true),
        (["--outcome", "stalled"], false),
        (["--since", "1h"], true),
        (["--since", "0"], false),
    ] {
        let list = door.sandbox.crew(&[&["history"], &filter[..]].concat()).success();
        assert_eq!(list.contains(&first), found, "{filter:?} {list}");
        assert_eq!(list == "no such loop has ended here\n", !found, "{filter:?} {list}");
    }
    let unknown = door.sandbox.crew(&["history", "--outcome", "stuck"]);
    assert!(unknown.stderr.contains("hint: it can be completed, exhausted"), "{}", unknown.stderr);
    let mut elsewhere = door.sandbox.command(crate::sandbox::crew());
    elsewhere.args(["history"]).current_dir(door.sandbox.root());
    let elsewhere = crate::spawned::Running::start(elsewhere, None).wait(DEADLINE);
    assert_eq!(elsewhere.success(), "no loop has ended here\n");
}

#[test]
fn watch_on_a_pipe_prints_changes_and_ends_with_the_loop() {
    let door = Door::new();
    let id = door.begin("'Build it' --verify 'test -e done'");
    let watching = door.sandbox.start_crew(&["watch"]);
    poll_until("how it stands", || watching.stdout().contains("running, iteration 1 of 10\n"));
    door.stop(CLAIM);
    poll_until("the next iteration", || watching.stdout().contains("running, iteration 2 of 10"));
    door.sandbox.write("done", "");
    door.stop(CLAIM);
    let text = watching.wait(Duration::from_secs(20)).success();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[1].contains("iteration 1: claim refused: test -e done failed (exit 1)"),
        "{text}"
    );
    assert!(
        text.contains(&format!("\nloop {id} · completed after 2 iterations · proof: checked\n")),
        "{text}"
    );
}

#[test]
fn the_line_for_a_prompt_shows_the_iteration_of_a_live_loop() {
    let door = Door::new();
    assert_eq!(door.sandbox.crew(&["status", "--line"]).success(), "");
    let id = door.begin("Build it");
    assert_eq!(door.sandbox.crew(&["status", "--line"]).success(), "crew 1/10\n");
    door.sandbox.crew(&["cancel", &id]).success();
    assert_eq!(door.sandbox.crew(&["status", "--line"]).success(), "");
    assert_eq!(Sandbox::without_git().crew(&["status", "--line"]).success(), "");
}

#[test]
fn a_journal_of_a_hundred_thousand_lines_is_read_from_its_end() {
    let door = Door::new();
    let id = ended(&door);
    let file = door.file(&id, "journal.jsonl");
    let mut journal = fs::read_to_string(&file).unwrap();
    let last = journal.lines().last().unwrap();
    let generation = serde_json::from_str::<Value>(last).unwrap()["generation"].clone();
    for number in 0..100_000 {
        let what = format!("remark {number}");
        let event = json!({ "noted": { "what": what } });
        let line = json!({
            "schema": 1, "at": "2026-11-18T10:00:00Z", "generation": generation, "event": event,
        });
        journal.push_str(&line.to_string());
        journal.push('\n');
    }
    journal.push_str("{\"torn");
    fs::write(&file, journal).unwrap();
    let page = door.sandbox.crew(&["show", &id]).success();
    assert!(page.contains("note: remark 99999\n") && !page.contains("remark 99799\n"), "{page}");
    assert!(page.contains("(99803 lines before these)"), "{page}");
}

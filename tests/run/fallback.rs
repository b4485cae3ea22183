//! A run with a fallback: another agent takes over while the first is at a limit of its account,
//! and hands back after it; the loop, its claim, its checks and its budget stay one. The first
//! agent prints as Claude Code does, the second as Codex does.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::World;
use super::claude::{answer, limited};
use crate::door::reported;
use crate::sandbox::{DEADLINE, poll_until};
use crate::spawned::Ran;

pub(super) const SETTINGS: &str = "agents.second.command = [\"second\"]\nagents.second.output = \"codex\"\n\
    agents.second.login = [\"login\", \"status\"]\n";
const LINE: &str = "echo line >> work.txt";
const LINES: &str = "test $(cat work.txt | wc -l) -ge";

/// The second agent says `text` and ends.
fn second_answer(text: &str) -> String {
    let said = format!(
        r#"{{"type":"item.completed","item":{{"id":"i","type":"agent_message","text":"{text}"}}}}"#
    );
    let ended = r#"{"type":"turn.completed","usage":{"input_tokens":1000,"cached_input_tokens":0,"output_tokens":10}}"#;
    format!("printf '%s\\n' '{said}' '{ended}'")
}

/// A world with both agents, each with the steps of its calls.
pub(super) fn world(first: &[&str], second: &str) -> World {
    let world = World::claude(first, SETTINGS);
    let notes = world.note("");
    std::fs::write(world.note("second.step"), second).unwrap();
    let script = format!(
        "notes='{}'\n\
         if [ \"$1\" = login ]; then echo asked >> \"$notes/second.login\"; exec sh \"$notes/second.state\"; fi\n\
         echo call >> \"$notes/second.calls\"\n\
         cat > \"$notes/second.prompt.$(($(wc -l < \"$notes/second.calls\")))\"\n\
         . \"$notes/second.step\"",
        notes.display()
    );
    std::fs::write(world.note("second.state"), "exit 0").unwrap();
    world.sandbox.program("second", &script);
    world
}

pub(super) fn count(world: &World, note: &str) -> usize {
    std::fs::read_to_string(world.note(note)).unwrap_or_default().lines().count()
}

/// The journal's entries between boundaries, in order.
fn changes(world: &World) -> Vec<String> {
    let journal = std::fs::read_to_string(world.file("journal.jsonl")).unwrap();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| reported(&line)["what"].as_str().map(str::to_owned)).collect()
}

#[track_caller]
fn agents_of_the_iterations(ran: &Ran) -> Vec<String> {
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = events.filter(|event| event["event"] == "iteration_end");
    ends.map(|end| end["agent"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn at_a_limit_in_iteration_3_of_8_the_fallback_completes_the_loop_without_a_wait() {
    let work = format!("{LINE}; {}", answer("Wrote a line."));
    let words = "Wrote one too.";
    let done = second_answer("All is done.\\n\\n<promise>COMPLETE</promise>");
    let second = format!("{LINE}; if {LINES} 8; then {done}; else {}; fi", second_answer(words));
    let world = world(&[&work, &work, &limited(3600)], &second);
    let check = format!("{LINES} 8");
    let words = ["run", "Write lines", "-n", "8", "--fallback", "second", "--verify", &check];
    let ran = world.crew(&[&words[..], &["--json", "--stall", "0"]].concat());
    assert_eq!((ran.code(), world.calls(), count(&world, "second.calls")), (0, 3, 6), "{ran:#?}");
    let agents = agents_of_the_iterations(&ran);
    assert_eq!(
        agents,
        ["fake", "fake", "second", "second", "second", "second", "second", "second"]
    );
    assert!(!ran.stdout.contains(r#""event":"wait""#), "{ran:#?}");

    let answered = world.the_loop();
    let ended = (&answered["outcome"], &answered["proof"], &answered["completed_iterations"]);
    assert_eq!(ended, (&json!("completed"), &json!("checked"), &json!(8)), "{answered:#}");
    let shares = &answered["shares"];
    let share =
        |name: &str| (&shares[name]["iterations"], &shares[name]["usage"]["tokens"]["input"]);
    assert_eq!(share("fake"), (&json!(2), &json!(200)));
    assert_eq!(share("second"), (&json!(6), &json!(6000)));
    assert_eq!(answered["usage"]["tokens"]["input"], 6200);
    let journal = std::fs::read_to_string(world.file("journal.jsonl")).unwrap();
    assert!(!journal.contains("state.json was altered"), "{journal}");

    let over: Vec<String> =
        changes(&world).into_iter().filter(|what| what.contains("fake")).collect();
    assert_eq!(over.len(), 1, "{over:?}");
    assert!(over[0].starts_with("second takes over: fake is limited until "), "{over:?}");
    assert!(ran.stderr.contains(&over[0]), "{ran:#?}");

    // The one that comes gets the page of where the loop stands, once.
    let prompt =
        |call: u32| std::fs::read_to_string(world.note(&format!("second.prompt.{call}"))).unwrap();
    let page = "handoffs/takeover-";
    assert!(prompt(1).contains("This is iteration 3 of 8.") && prompt(1).contains(page));
    assert!(!prompt(2).contains(page) && !world.prompt(3).contains(page));
    let log = |iteration: &str| world.crew(&["show", "--log", "--iteration", iteration]).success();
    assert!(log("2").contains("Wrote a line.") && log("4").contains("Wrote one too."));
    assert!(!log("2").contains('{') && !log("4").contains('{'), "{}{}", log("2"), log("4"));
    let page = world.crew(&["show"]).success();
    assert!(
        page.contains(
            "  agents  fake 2 iterations, $0.02 · 220 tokens; second 6 iterations, 6k tokens"
        ),
        "{page}"
    );
    assert!(page.contains("  agent   fake, fallback second\n"), "{page}");
}

#[test]
fn a_fallback_that_does_not_report_its_usage_is_excluded_if_usage_is_limited() {
    let world = world(&[&answer("<promise>COMPLETE</promise>")], "exit 3");
    world.settings(&format!(
        "agents.fake.output = \"claude\"\n{SETTINGS}agents.mute.command = [\"second\"]\n"
    ));
    let ran = world.crew(&["run", "Do it", "--fallback", "mute", "--max-tokens", "1M"]);
    assert_eq!((ran.code(), world.calls(), world.loops().len()), (1, 0, 0), "{ran:#?}");
    insta::assert_snapshot!(ran.stderr, @"
    crew: fallback mute: its output is plain text, which does not report what it used, so no limit on cost or tokens can be kept
    hint: name other fallbacks, or none: --fallback none; or --max-cost 0 and --max-tokens 0
    ");
    assert_eq!(world.crew(&["run", "Do it", "--fallback", "mute"]).code(), 0);

    // The limit came later.
    let limit = format!("crew set --max-tokens 1M; {}", limited(3));
    std::fs::write(world.note("step.2"), limit).unwrap();
    std::fs::write(world.note("step.3"), answer("<promise>COMPLETE</promise>")).unwrap();
    world.sandbox.put_crew_on_the_path();
    std::fs::write(world.note("second.step"), "echo Hm.").unwrap();
    let ran = world.crew(&["run", "Do it", "--fallback", "mute"]);
    assert_eq!((ran.code(), world.calls(), count(&world, "second.calls")), (0, 3, 1), "{ran:#?}");
    let out = "mute is out of this loop: it does not report what it used";
    assert_eq!(ran.stderr.matches(out).count(), 1, "{ran:#?}");
}

#[test]
fn a_fallback_that_could_never_help_is_refused_and_a_dry_run_shows_a_valid_one() {
    let more = "agents.fake.model = \"--model\"\nagents.twin.command = [\"agent\"]\n\
        agents.gone.command = [\"no-such-program\"]\n\
        agents.second.permissions.default = []\n";
    let world = world(&[&answer("Hm.")], "exit 3");
    world.settings(&format!("{SETTINGS}{more}"));
    let table = [
        ("twin", 1, "fallback twin: it runs the same program as fake, so both meet the same limit"),
        (
            "gone",
            1,
            "fallback gone: there is no program `no-such-program` on PATH\n\
             hint: install it, or name other fallbacks, or none: --fallback none",
        ),
        ("fake", 2, "agent fake cannot be its own fallback"),
        ("secnd", 2, "there is no agent secnd\nhint: did you mean second?"),
        (
            "second",
            2,
            "fallback second does not support --permissions accept-edits\nhint: choose --permissions default",
        ),
    ];
    for (name, code, expected) in table {
        let ran = world.crew(&["run", "Do it", "--fallback", name, "--model", "m"]);
        assert_eq!((ran.code(), world.calls()), (code, 0), "{name}: {ran:#?}");
        assert!(ran.stderr.contains(expected), "{name}: {ran:#?}");
    }
    world.settings(SETTINGS);
    let shown = world.crew(&["run", "Do it", "--fallback", "second", "--dry-run"]).success();
    let lines = "[DRY RUN] Would execute with: agent\n[DRY RUN] While that is at a limit: second\n";
    assert!(shown.contains(lines), "{shown}");
    assert_eq!(count(&world, "second.login"), 0);
}

#[test]
fn every_view_shows_which_fallback_works_for_which_agent() {
    let hang = "touch \"$notes/hangs\"; sleep 600";
    let world = world(&[&limited(3600)], hang);
    world.settings(&format!(
        "agents.fake.output = \"claude\"\n{SETTINGS}loop.fallback = \"second\"\n"
    ));
    let running = world.hanging(&["run", "Do it"]);
    let place = "second for fake, limited until ";
    let page = world.crew(&["status"]).success();
    assert!(page.contains(&format!("  agent   {place}")), "{page}");
    let line = world.crew(&["status", "--line"]).success();
    assert!(line.contains(place), "{line}");
    let answered = world.the_loop();
    let seen = (&answered["agent"], &answered["fallback"], &answered["active_fallback"]["agent"]);
    assert_eq!(seen, (&json!("fake"), &json!(["second"]), &json!("second")));
    world.crew(&["cancel"]).success();
    assert_eq!(running.wait(DEADLINE).code(), 14);
}

#[test]
fn a_resumed_loop_of_a_killed_crew_continues_with_its_fallback() {
    let hang = "touch \"$notes/hangs\"; sleep 600";
    let world = world(&[&limited(3600)], hang);
    let running = world.hanging(&["run", "Do it", "--fallback", "second"]);
    running.signal(Signal::KILL);
    poll_until("it is gone", || running.has_ended());
    std::fs::write(world.note("second.step"), second_answer("<promise>COMPLETE</promise>"))
        .unwrap();
    // A typed start tries the first agent, whatever its window says.
    let ran = world.crew(&["resume"]);
    assert_eq!((ran.code(), world.calls(), count(&world, "second.calls")), (0, 2, 2), "{ran:#?}");
}

#[test]
fn a_resume_keeps_the_fallbacks_unless_it_replaces_or_removes_them() {
    let world = world(&[&answer("Hm.")], "exit 3");
    let listed = |arguments: &[&str]| {
        let ran = world.crew(&[arguments, &["-n", "+1"]].concat());
        assert_eq!(ran.code(), 10, "{ran:#?}");
        world.the_loop()["fallback"].clone()
    };
    assert_eq!(world.crew(&["run", "Do it", "-n", "1", "--stall", "0"]).code(), 10);
    assert_eq!(world.the_loop()["fallback"], json!([]));
    assert_eq!(listed(&["resume", "--fallback", "second"]), json!(["second"]));
    assert_eq!(listed(&["resume"]), json!(["second"]));
    // Each start but the first has asked.
    assert_eq!(count(&world, "second.login"), 2);
    assert_eq!(listed(&["resume", "--fallback", "none"]), json!([]));
    let answered = world.the_loop();
    assert_eq!(
        answered["shares"]["fake"]["iterations"], answered["completed_iterations"],
        "{answered:#}"
    );
}

#[test]
fn the_log_of_an_iteration_that_was_handed_over_shows_what_every_agent_did() {
    let hello = answer("First agent says hello.");
    let first = format!("{hello}; {}", limited(3600));
    let done = second_answer("Second agent.\\n\\n<promise>COMPLETE</promise>");
    let world = world(&[&first], &done);
    world.crew(&["run", "Do it", "--fallback", "second"]).success();
    // Of a loop that is over nobody is the worker.
    assert_eq!(world.the_loop()["active_fallback"], Value::Null);
    let shown = |raw: &str| {
        std::fs::write(world.file("iterations/0001.log"), raw).unwrap();
        world.crew(&["show", "--log", "--iteration", "1"]).success()
    };
    let raw = world.crew(&["show", "--log", "--raw", "--iteration", "1"]).success();
    let first = "\"First agent says hello.\"\nIt did not answer (rate_limit)\n";
    let second = "… this iteration again by second …\n\
                  \"Second agent.\n\n <promise>COMPLETE</promise>\"\n";
    assert_eq!(shown(&raw), format!("… this iteration by fake …\n{first}{second}"));

    // Nothing says whose the beginning is, or the loop has that agent no more.
    let more = "here is more, perhaps of another agent: crew show --log --raw\n";
    let (_, beheaded) = raw.split_once('\n').unwrap();
    assert_eq!(shown(beheaded), format!("{more}{second}"));
    let gone = shown(&raw.replace("by second", "by gone"));
    let expected = "… this iteration by fake …\n".to_owned()
        + first
        + "… this iteration again by gone …\n"
        + more;
    assert_eq!(gone, expected);
}

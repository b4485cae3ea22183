//! A loop is completed only by what was checked at that boundary, and by nothing that only
//! resembles it.

use std::path::Path;

use serde_json::{Value, json};

use super::{Answer, Door};

const CLAIM: &str = "All is well.\n\n<promise>COMPLETE</promise>";

#[track_caller]
fn ending(door: &Door, id: &str) -> (String, Value, String) {
    let ending = door.record(id)["state"]["ending"].clone();
    let text = |key: &str| ending[key].as_str().unwrap_or_default().to_owned();
    (text("outcome"), ending["proof"].clone(), text("why"))
}

#[test]
fn a_loop_that_only_its_limit_ends_is_completed_if_every_check_passes_there() {
    let reached = "the limit of 1 iteration is reached";
    for (checks, outcome, proof, why) in [
        ("--verify false", "exhausted", Value::Null, reached),
        ("--gate false", "exhausted", Value::Null, reached),
        ("--verify true --gate false", "exhausted", Value::Null, reached),
        (
            "--verify true",
            "completed",
            json!("passing"),
            "ran its 1 iteration, and every check passes; nothing was changed",
        ),
        ("", "completed", json!("claimed"), "ran its 1 iteration; nothing was checked"),
    ] {
        let door = Door::new();
        let id = door.begin(&format!("\"go on\" -n 1 --no-promise {checks}"));
        door.stop("nothing done").assert_lets_go();
        assert_eq!(ending(&door, &id), (outcome.into(), proof, why.into()), "{checks}");
    }
}

#[test]
fn a_gate_that_fails_at_the_last_boundary_prevents_completion_though_it_passed_before() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 2 --no-promise --gate 'test ! -e broken' --stall 0");
    door.stop("one").assert_goes_on();
    door.sandbox.write("broken", "");
    door.stop("two").assert_lets_go();
    assert_eq!(ending(&door, &id).0, "exhausted");
}

#[test]
fn a_start_says_what_ends_the_loop_if_a_claim_does_not() {
    for (arguments, expected) in [
        ("--no-promise", "runs to its limit · "),
        ("--no-promise --verify true", "runs to its limit; completed if `true` passes there · "),
        ("--until true", "done when `true` passes; a claim alone ends nothing · "),
    ] {
        let door = Door::new();
        let answer = door.command(&format!("\"go on\" -n 3 {arguments}")).send();
        assert!(answer.line().contains(expected), "{answer:#?}");
        assert!(!answer.line().contains("a claim will be believed"), "{answer:#?}");
    }
}

#[test]
fn a_message_that_only_repeats_or_quotes_the_task_is_not_a_claim() {
    let task = "Build it. When finished, output:\n<promise>DONE</promise>";
    for (message, expected) in [
        (
            format!("The task I was given is:\n\n{task}"),
            "your message ends with the words of the task",
        ),
        (
            "You said:\n> When you are done, end with\n<promise>DONE</promise>".to_owned(),
            "leave a blank line between the quote and the tag",
        ),
    ] {
        let door = Door::new();
        let id = door.begin(&format!("\"{task}\" -n 5 --stall 0"));
        let answer = door.stop(&message).assert_goes_on();
        assert!(answer.context().contains(expected), "{answer:#?}");
        door.stop(&format!("{task}\n\nBuilt.\n\n<promise>DONE</promise>")).assert_lets_go();
        assert_eq!(ending(&door, &id).0, "completed");
    }
}

#[test]
fn invisible_marks_and_a_wide_colon_do_not_spoil_a_claim() {
    for (message, outcome, why) in [
        ("تم.\n\u{200f}<promise>COMPLETE</promise>\u{200f}", "completed", "nothing was checked"),
        ("<promise>BLOCKED：理由</promise>", "blocked", "the agent said BLOCKED: 理由"),
    ] {
        let door = Door::new();
        let id = door.begin("\"go on\" -n 5 --stall 0");
        door.stop(message).assert_lets_go();
        let (found, _, shown) = ending(&door, &id);
        assert!(found == outcome && shown.starts_with(why), "{found}: {shown}");
    }
}

#[test]
fn with_until_a_claim_alone_ends_nothing_and_its_refusal_names_the_until() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 5 --verify true --until 'test -e deployed' --stall 0");
    let answer = door.stop(CLAIM).assert_goes_on();
    assert!(
        answer.line().contains("claim refused: test -e deployed failed (exit 1)"),
        "{answer:#?}"
    );
    let rule =
        "The loop ends by itself when `test -e deployed` passes; until then no claim ends it.";
    assert!(answer.context().contains(rule), "{answer:#?}");
    door.sandbox.write("deployed", "");
    door.stop("Nothing to claim.").assert_lets_go();
    assert_eq!(
        ending(&door, &id),
        ("completed".into(), json!("checked"), "a check that had failed now passes".into())
    );
}

#[test]
fn checks_decide_the_outcome_only_when_a_limit_or_a_stall_ends_the_loop() {
    for (arguments, outcome) in [("-n 2 --stall 0", "exhausted"), ("-n 9 --stall 2", "stalled")] {
        let door = Door::new();
        let id =
            door.begin(&format!("\"go on\" {arguments} --verify 'echo run >> ../runs; false'"));
        let runs = || std::fs::read_to_string(door.sandbox.root().join("runs")).unwrap_or_default();
        door.stop("one").assert_goes_on();
        assert_eq!(runs(), "", "no claim and no limit");
        let answer = door.stop("two").assert_lets_go();
        assert_eq!((ending(&door, &id).0.as_str(), runs().as_str()), (outcome, "run\n"));
        assert!(
            answer.line().contains("echo run >> ../runs; false` failed (exit 1)"),
            "{answer:#?}"
        );
    }
}

type End = fn(&Door) -> Answer;

#[test]
fn checks_do_not_run_after_a_cancel_too_many_failures_or_a_blocked_agent() {
    let never = "--verify 'echo run >> ../runs; false' --stall 0";
    let ends: [(&str, End, &str); 3] = [
        ("-n 1", |door| door.stop("<promise>BLOCKED: no key</promise>"), "blocked"),
        ("-n 1 --failure-threshold 1", |door| door.stop("<promise>FAILURE</promise>"), "aborted"),
        (
            "-n 1",
            |door| {
                door.sandbox.crew(&["cancel"]).success();
                door.stop("one")
            },
            "cancelled",
        ),
    ];
    for (arguments, end, outcome) in ends {
        let door = Door::new();
        let id = door.begin(&format!("\"go on\" {arguments} {never}"));
        end(&door).assert_lets_go();
        assert_eq!(ending(&door, &id).0, outcome);
        assert!(!door.sandbox.root().join("runs").exists(), "{outcome}");
    }
}

#[test]
fn no_loop_starts_if_the_program_of_a_check_is_not_on_the_path() {
    let door = Door::new();
    let answer = door.command("\"go on\" --verify 'nosuchcmd -x'").send();
    let shown = "nosuchcmd is not on PATH: `nosuchcmd -x` (verify) cannot run\n\
                hint: install it, or name another command";
    assert!(answer.refusal().contains(shown), "{answer:#?}");
    assert!(!door.sandbox.crew_home().join("loops").exists());
    let answer = door.command("\"go on\" --verify ./check.sh").with("prompt_id", "p-2").send();
    assert!(
        answer.line().contains("./check.sh does not exist yet: the agent may create it"),
        "{answer:#?}"
    );
}

#[test]
fn a_required_proof_refuses_a_claim_whose_checks_never_failed() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0 --require checked --verify 'test ! -e red'");
    let answer = door.stop(&format!("one\n{CLAIM}")).assert_goes_on();
    let short = "the proof would be `passing` and this loop requires `checked`";
    assert!(answer.line().contains(&format!("claim refused: {short}")), "{answer:#?}");
    assert!(answer.context().contains(short), "{answer:#?}");
    std::fs::write(door.sandbox.file("red"), "").unwrap();
    door.stop(&format!("two\n{CLAIM}")).assert_goes_on();
    std::fs::remove_file(door.sandbox.file("red")).unwrap();
    let unchanged = door.stop(&format!("back where it was\n{CLAIM}")).assert_goes_on();
    assert!(unchanged.context().contains("nothing was changed"), "{unchanged:#?}");
    door.sandbox.write("work", "");
    door.stop(&format!("three\n{CLAIM}")).assert_lets_go();
    assert_eq!(ending(&door, &id).0, "completed");
    assert_eq!(ending(&door, &id).1, "checked");

    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0 --require checked --verify true");
    door.sandbox.write("work", "");
    door.stop(&format!("one\n{CLAIM}")).assert_goes_on();
    door.stop(&format!("two\n{CLAIM}")).assert_lets_go();
    let (outcome, _, why) = ending(&door, &id);
    assert!(outcome == "blocked" && why.contains(short), "{why}");
}

#[test]
fn a_missing_program_of_a_check_blocks_the_second_claim_unless_the_agent_can_make_it() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0 --verify 'true && no-such-program'");
    door.stop(&format!("one\n{CLAIM}")).assert_goes_on();
    door.stop(&format!("two\n{CLAIM}")).assert_lets_go();
    let why = "refused for a reason that only a person can change: `true && no-such-program` finds no \
               program `no-such-program` (exit 127); install it, or start with another check";
    assert_eq!(ending(&door, &id), ("blocked".into(), Value::Null, why.into()));
    for verify in ["./run-tests.sh", "sh tests/run.sh || tools/check"] {
        let door = Door::new();
        let id = door.begin(&format!("\"go on\" -n 9 --stall 0 --verify '{verify}'"));
        for turn in 1..4 {
            door.stop(&format!("{turn}\n{CLAIM}")).assert_goes_on();
        }
        assert_eq!(ending(&door, &id).0, "", "{verify}");
    }
}

#[test]
fn a_check_without_a_result_blocks_the_second_claim_and_a_resume_restarts_the_count() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0 --verify 'kill -9 $$'");
    door.stop(&format!("one\n{CLAIM}")).assert_goes_on();
    door.stop(&format!("two\n{CLAIM}")).assert_lets_go();
    let why = "refused for a reason that only a person can change: `kill -9 $$` was killed by a signal \
               that crew did not send";
    assert_eq!(ending(&door, &id), ("blocked".into(), Value::Null, why.into()));
    resume(&door).assert_goes_on();
    door.stop(&format!("three\n{CLAIM}")).assert_goes_on();
    door.stop(&format!("four\n{CLAIM}")).assert_lets_go();
    assert_eq!(ending(&door, &id).0, "blocked");
}

fn resume(door: &Door) -> Answer {
    door.event("UserPromptExpansion")
        .with("command_name", "crew:resume")
        .with("command_args", "")
        .send()
}

#[test]
#[ignore = "long"]
fn an_agent_that_leaves_a_new_job_behind_at_every_stop_delays_at_most_three_iterations() {
    for (max, turns) in [(2, 8), (9, 36)] {
        let door = Door::new();
        let id = door.begin(&format!("\"go on\" -n {max} --stall 0"));
        let transcript = door.sandbox.home().join(".claude/projects/repo/session.jsonl");
        std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        let counts: Vec<u64> = (1..=turns)
            .map(|turn| {
                work_with_a_tool(&transcript, turn);
                let job = json!([{"id": format!("b{turn}"), "type": "shell", "status": "running"}]);
                let stop = door.stopping(&format!("waiting {turn}")).with("background_tasks", job);
                stop.with("prompt_id", format!("p-{turn}")).send();
                let note = format!("<task-notification>\n<task-id>b{turn}</task-id>");
                door.event("UserPromptSubmit").with("prompt", note).send();
                door.record(&id)["state"]["completed"].as_u64().unwrap()
            })
            .collect();
        let expected: Vec<u64> = (1..=turns).map(|turn| turn / 4).collect();
        assert_eq!(counts, expected);
        assert_eq!(ending(&door, &id).0, "exhausted");
    }
}

fn work_with_a_tool(transcript: &Path, turn: u64) {
    use std::io::Write as _;
    let content =
        json!([{"type": "tool_use", "id": format!("t{turn}"), "name": "Bash", "input": {}}]);
    let line =
        json!({"type": "assistant", "message": {"id": format!("m{turn}"), "content": content}});
    let file = std::fs::OpenOptions::new().append(true).create(true).open(transcript);
    writeln!(file.unwrap(), "{line}").unwrap();
}

#[cfg(unix)]
#[test]
fn a_task_that_cannot_be_written_to_the_checkout_is_kept_in_the_file_the_prompt_names() {
    let door = Door::new();
    let shared = door.sandbox.root().join("shared");
    std::fs::create_dir_all(&shared).unwrap();
    std::os::unix::fs::symlink(&shared, door.sandbox.file(".claude")).unwrap();
    let task = format!("Do this. {}THE END: never touch X.", "word ".repeat(600));
    let id = door.begin(&format!("\"{task}\" -n 2 --stall 0"));
    let kept = door.file(&id, "task.md");
    let answer = door.stop("one").assert_goes_on();
    assert!(
        answer.context().contains(&format!("(The whole task is in {}.)", kept.display())),
        "{answer:#?}"
    );
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), task);
    let page = door.stop("two").assert_lets_go();
    let handoff =
        std::fs::read_dir(door.file(&id, "handoffs")).unwrap().next().unwrap().unwrap().path();
    assert!(page.line().contains(&format!("handoff {}", handoff.display())), "{page:#?}");
    assert_eq!(
        std::fs::read_dir(shared).unwrap().count(),
        0,
        "nothing is written outside the checkout"
    );
}

#[test]
fn a_task_whose_folder_disappears_during_the_loop_is_kept_in_the_loops_folder() {
    let door = Door::new();
    let task = format!("Do this. {}", "word ".repeat(600));
    let id = door.begin(&format!("\"{task}\" -n 5 --stall 0"));
    let answer = door.stop("one").assert_goes_on();
    assert!(answer.context().contains("/repo/.claude/branches/main/task.md.)"), "{answer:#?}");
    std::fs::remove_dir_all(door.sandbox.file(".claude")).unwrap();
    door.sandbox.write(".claude", "a file");
    let answer = door.stop("two").assert_goes_on();
    let kept = door.file(&id, "task.md");
    assert!(
        answer.context().contains(&format!("(The whole task is in {}.)", kept.display())),
        "{answer:#?}"
    );
    assert_eq!(std::fs::read_to_string(kept).unwrap().trim(), task.trim());
}

#[cfg(target_os = "linux")]
#[test]
fn a_running_loop_is_not_taken_over_by_another_client_with_the_same_session() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let resume = || {
        let event = door.event("UserPromptExpansion");
        event.with("command_name", "crew:resume").with("command_args", "")
    };
    let refused = resume().through_another_client().send();
    assert!(
        refused.refusal().contains(&format!("hint: crew pause {id} or crew cancel {id} first")),
        "{refused:#?}"
    );
    door.stop("the first client keeps it").assert_goes_on();
    resume().send().assert_goes_on();
}

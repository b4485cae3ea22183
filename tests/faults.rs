//! Faults of other loop tools, each tried with crew's hook. `FAULTS.md` names the test of every
//! fault; here are those that no other test covers. The test process is the client.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::sandbox::{DEADLINE, Sandbox, poll_until};

pub(crate) const CLAIM: &str = "All of it works.\n\n<promise>COMPLETE</promise>";

/// A client with crew's hooks. No companion runs here, so its cap is off.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) sandbox: Sandbox,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::of(Sandbox::new())
    }

    pub(crate) fn of(sandbox: Sandbox) -> Self {
        sandbox.put_crew_on_the_path();
        Self { sandbox: sandbox.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0") }
    }

    /// Sends one event; the answer is null when nothing was printed.
    #[track_caller]
    pub(crate) fn send(&self, payload: Value) -> Value {
        let ran = self.sandbox.hook(payload);
        assert_eq!(ran.code(), 0, "{ran:#?}");
        if ran.stdout.is_empty() { Value::Null } else { serde_json::from_str(&ran.stdout).unwrap() }
    }

    #[track_caller]
    pub(crate) fn command(&self, name: &str, arguments: &str) -> Value {
        self.send(json!({
            "hook_event_name": "UserPromptExpansion", "command_name": format!("crew:{name}"),
            "command_args": arguments, "prompt_id": arguments,
        }))
    }

    #[track_caller]
    pub(crate) fn begin(&self, arguments: &str) {
        let answer = self.command("loop", arguments);
        assert!(context(&answer).starts_with("crew loop"), "{answer:#}");
    }

    pub(crate) fn stopping(words: &str) -> Value {
        json!({"hook_event_name": "Stop", "stop_hook_active": true, "prompt_id": "p-1",
               "last_assistant_message": words})
    }

    /// Sends a stop of the agent after these words; returns whether it has to continue.
    #[track_caller]
    pub(crate) fn goes_on(&self, words: &str) -> bool {
        !context(&self.send(Self::stopping(words))).is_empty()
    }

    /// Every loop, the newest first.
    #[track_caller]
    pub(crate) fn loops(&self) -> Vec<Value> {
        let shown = self.sandbox.crew(&["status", "--all", "--json"]).success();
        serde_json::from_str::<Value>(&shown).unwrap()["loops"].as_array().unwrap().clone()
    }

    /// The newest loop's outcome or, while it is live, its status; and its counted iterations.
    #[track_caller]
    pub(crate) fn standing(&self) -> (String, u64) {
        let newest = &self.loops()[0];
        let word = newest["outcome"].as_str().or(newest["status"].as_str()).unwrap();
        (word.to_owned(), newest["completed_iterations"].as_u64().unwrap())
    }

    pub(crate) fn transcript(&self) -> PathBuf {
        self.sandbox.home().join(".claude/projects/repo/session.jsonl")
    }
}

pub(crate) fn context(answer: &Value) -> &str {
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default()
}

pub(crate) fn stands(word: &str, iterations: u64) -> (String, u64) {
    (word.to_owned(), iterations)
}

#[test]
fn a_stop_without_an_owner_or_of_another_session_is_left_alone() {
    let client = Client::new();
    client.begin("\"Build it\" --stall 0");
    for session in [json!(null), json!(""), json!("null"), json!("another"), json!(7)] {
        let mut payload = Client::stopping("I stop.");
        payload["session_id"] = session.clone();
        assert_eq!(client.send(payload), Value::Null, "{session}");
    }
    assert_eq!(client.standing(), stands("running", 0));
}

#[test]
fn a_loop_is_found_from_any_folder_and_its_checks_run_where_it_began() {
    let client = Client::new();
    let sandbox = &client.sandbox;
    let odd = sandbox.write("a folder/ünter/file", "").parent().unwrap().to_owned();
    let link = sandbox.file("link");
    std::os::unix::fs::symlink(&odd, &link).unwrap();
    let worktree = sandbox.root().join("other tree");
    sandbox.git(&["worktree", "add", "--quiet", "--detach", &worktree.display().to_string()]);
    let log = sandbox.root().join("folders");
    client.begin(&format!("\"Build it\" --stall 0 --gate \"pwd >> {}\"", log.display()));
    let folders = [odd, link, worktree, sandbox.home(), sandbox.root().join("gone")];
    for (number, folder) in folders.iter().enumerate() {
        let mut payload = Client::stopping(&format!("Stop {number}."));
        payload["cwd"] = json!(folder);
        assert!(!context(&client.send(payload)).is_empty(), "{}", folder.display());
    }
    sandbox.git(&["switch", "--quiet", "--create", "feature/other"]);
    assert!(client.goes_on("On another branch."));
    let home = sandbox.repository().display().to_string();
    let logged = std::fs::read_to_string(log).unwrap();
    assert_eq!(logged.lines().collect::<Vec<_>>(), vec![home.as_str(); 6]);
}

#[test]
fn a_loop_works_without_git_and_in_a_read_only_checkout() {
    let client = Client::of(Sandbox::without_git());
    client.sandbox.write(".claude", "a file in the way");
    let answer = client.command("loop", "\"Build it\" --stall 1");
    let shown = answer["systemMessage"].as_str().unwrap();
    assert!(shown.contains("the checkout's files could not be written"), "{shown}");
    for number in 0..3 {
        client.sandbox.write("work", &"x".repeat(number));
        assert!(client.goes_on(&format!("Changed, {number}.")));
    }
    assert!(!client.goes_on(CLAIM));
    assert_eq!(client.standing(), stands("completed", 4));
}

#[test]
fn a_second_loop_in_a_working_tree_is_refused_with_hints() {
    let client = Client::new();
    client.begin("\"The first\"");
    let refused = client.command("loop", "\"The second\"");
    let reason = refused["reason"].as_str().unwrap();
    for way_out in ["crew cancel", "--replace", "git worktree", "iteration 1"] {
        assert!(reason.contains(way_out), "{reason}");
    }
    let loops = client.loops();
    assert_eq!((loops.len(), &loops[0]["task"]), (1, &json!("The first")));
    client.begin("\"The second\" --replace");
    let outcomes: Vec<Value> = client.loops().iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, [json!(null), json!("cancelled")]);
}

#[test]
fn the_final_message_is_awaited_in_the_transcript_and_never_taken_from_an_older_turn() {
    let client = Client::new();
    let transcript = client.transcript();
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    client.begin("\"Build it\" --stall 0");
    // Only its prompt distinguishes a stop without words from the next one.
    let untold = |prompt: &str| json!({"hook_event_name": "Stop", "prompt_id": prompt});
    let goes_on = |prompt: &str| !context(&client.send(untold(prompt))).is_empty();
    assert!(goes_on("without a transcript"));
    let line = |kind: &str, block: Value| {
        json!({"type": kind, "message": {"content": [block]}}).to_string() + "\n"
    };
    let claim = line("assistant", json!({"type": "text", "text": CLAIM}));
    let asked = line("user", json!({"type": "text", "text": "Go on."}));
    let tool = line("assistant", json!({"type": "tool_use", "name": "Bash"}));
    std::fs::write(&transcript, format!("{claim}{asked}{tool}")).unwrap();
    assert!(goes_on("a turn that ends in a tool call only"));
    std::fs::write(&transcript, format!("{claim}{asked}{{\"torn")).unwrap();
    assert!(goes_on("an answer that is not written yet"));
    std::fs::write(&transcript, &asked).unwrap();
    let late = client.sandbox.start_hook(untold("an answer that comes late"));
    std::thread::sleep(Duration::from_millis(100));
    std::fs::write(&transcript, format!("{asked}{claim}")).unwrap();
    assert_eq!(late.wait(DEADLINE).code(), 0);
    assert_eq!(client.standing(), stands("completed", 4));
}

#[test]
fn every_ending_keeps_its_record_and_every_incomplete_one_writes_a_handoff() {
    let client = Client::new();
    let handoffs = client.sandbox.file(".claude/branches/main/handoffs");
    for (options, words, outcome) in [
        ("--verify true", CLAIM, "completed"),
        ("-n 1", "Not yet.", "exhausted"),
        ("--failure-threshold 1", "<promise>FAILURE: no compiler</promise>", "aborted"),
        ("--stall 1", "I thought about it.", "stalled"),
        ("", "<promise>BLOCKED: which database?</promise>", "blocked"),
    ] {
        client.begin(&format!("\"Build it\" {options}"));
        assert!(!client.goes_on(words), "{outcome}");
        assert_eq!(client.standing().0, outcome);
    }
    client.begin("\"Build it\" -n 2");
    client.command("cancel-loop", "wrong branch");
    client.begin("\"Build it\" -n 3");
    client.send(json!({"hook_event_name": "SessionEnd", "reason": "clear"}));
    let loops = client.loops();
    let outcomes =
        ["completed", "exhausted", "aborted", "stalled", "blocked", "cancelled", "interrupted"];
    for outcome in outcomes {
        let ended = loops.iter().find(|it| it["outcome"] == outcome).expect(outcome);
        let folder = client.sandbox.crew_home().join("loops").join(ended["id"].as_str().unwrap());
        let result = std::fs::read_to_string(folder.join("result.json")).unwrap();
        assert!(result.contains(outcome), "{result}");
        assert!(folder.join("journal.jsonl").exists() && folder.join("loop.json").exists());
        let pages = std::fs::read_dir(&handoffs).unwrap().flatten();
        let own = pages.filter(|page| page.file_name().to_string_lossy().starts_with(outcome));
        assert_eq!(own.count(), usize::from(outcome != "completed"), "{outcome}");
    }
}

#[test]
fn a_stop_passes_when_the_files_of_its_loop_are_gone() {
    let client = Client::new();
    client.begin("\"Build it\"");
    for gone in ["loops", "sessions", ""] {
        std::fs::remove_dir_all(client.sandbox.crew_home().join(gone)).unwrap();
        assert_eq!(client.send(Client::stopping("I stop.")), Value::Null, "{gone}");
    }
}

#[test]
fn cleaning_the_checkout_does_not_harm_the_loop() {
    let client = Client::new();
    client.begin("\"Build it\" -n 7 --stall 0");
    client.sandbox.git(&["clean", "-fdxq"]);
    assert!(client.goes_on("I have cleaned up."));
    let view = client.sandbox.file(".claude/branches/main/state.json");
    let view: Value = serde_json::from_slice(&std::fs::read(view).unwrap()).unwrap();
    assert_eq!(
        (&view["loop"]["iteration"], &view["loop"]["maxIterations"]),
        (&json!(2), &json!(7))
    );
}

#[test]
fn a_loop_needs_no_program_on_the_path() {
    let client = Client::of(Sandbox::without_git().env("PATH", "/nowhere"));
    client.begin("\"Build it\"");
    assert!(client.goes_on("Not yet."));
    assert!(!client.goes_on(CLAIM));
    assert_eq!(client.standing(), stands("completed", 2));
}

#[test]
fn a_new_loop_inherits_nothing_from_the_previous_one() {
    let client = Client::new();
    client.begin("\"The first\" --stall 0");
    assert!(client.goes_on("<promise>COMPLETE</promise> is what I will say."));
    client.sandbox.crew(&["cancel", "--reason", "enough"]).success();
    for number in 0..3 {
        assert!(!client.goes_on(&format!("A stop in flight, {number}.")), "a cancel is final");
    }
    assert_eq!(client.standing(), stands("cancelled", 1));
    client.begin("\"The second\" --stall 0");
    assert!(client.goes_on("Begun."));
    assert_eq!(client.standing(), stands("running", 1));
}

#[test]
fn a_loop_without_options_ends_after_ten_iterations() {
    let client = Client::new();
    client.begin("Build it");
    for number in 1..=10 {
        client.sandbox.write("work", &format!("{number}"));
        assert_eq!(client.goes_on(&format!("Wrote {number}.")), number < 10, "{number}");
    }
    assert_eq!(client.standing(), stands("exhausted", 10));
    assert!(!client.goes_on("Once more."));
}

#[test]
fn the_loop_continues_even_if_a_stop_hook_is_already_active() {
    let client = Client::new();
    client.begin("\"Build it\" --stall 0");
    for (number, active) in [false, true, true].into_iter().enumerate() {
        let mut payload = Client::stopping(&format!("Not yet, {number}."));
        payload["stop_hook_active"] = json!(active);
        assert!(!context(&client.send(payload)).is_empty(), "{active}");
    }
}

#[test]
fn a_commit_and_a_new_file_are_progress_and_an_unchanged_tree_is_not() {
    let client = Client::new();
    client.begin("\"Build it\" --stall 2");
    client.sandbox.write("step.md", "a step");
    assert!(client.goes_on("A step."));
    assert!(client.goes_on("Nothing yet."));
    client.sandbox.git(&["add", "step.md"]);
    client.sandbox.git(&["commit", "--quiet", "--message", "Step"]);
    assert!(client.goes_on("Committed, and the tree is as it was."));
    client.sandbox.git(&["commit", "--quiet", "--allow-empty", "--message", "Nothing"]);
    assert!(client.goes_on("Nothing new."));
    client.sandbox.write("notes/new.md", "untracked");
    assert!(client.goes_on("A new file."));
    assert!(client.goes_on("Thinking."));
    assert!(!client.goes_on("Thinking again."));
    assert_eq!(client.standing(), stands("stalled", 7));
}

#[test]
fn a_check_knows_its_loop_but_not_the_session() {
    let client = Client::new();
    client.begin("\"Build it\" --gate \"cat; env > ../seen\"");
    assert!(client.goes_on("Not yet."));
    let seen = std::fs::read_to_string(client.sandbox.root().join("seen")).unwrap();
    assert!(seen.contains("\nCREW_LOOP=") && seen.contains("\nCREW_ITERATION=1\n"), "{seen}");
    let nested = |line: &&str| line.starts_with("CLAUDECODE=") || line.starts_with("CLAUDE_P");
    assert_eq!(seen.lines().find(nested), None);
}

#[test]
fn a_cancel_ends_the_loop_and_a_stubborn_check_with_its_children() {
    let client = Client::new();
    let file = client.sandbox.root().join("child");
    let check = format!("trap '' TERM; sleep 60 & echo $! > {}; wait", file.display());
    client.begin(&format!("\"Build it\" --gate \"{check}\""));
    let stop = client.sandbox.start_hook(Client::stopping("Not yet."));
    let child = || std::fs::read_to_string(&file).ok()?.trim().parse().ok().and_then(Pid::from_raw);
    poll_until("the check's child", || child().is_some());
    client.sandbox.crew(&["cancel"]).success();
    let ran = stop.wait(DEADLINE);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    poll_until("the end of the check's child", || test_kill_process(child().unwrap()).is_err());
    assert_eq!(client.standing(), stands("cancelled", 0));
    assert!(!client.goes_on("Once more."));
}

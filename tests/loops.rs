//! Whole loops in the real client: the agent's prompts, their number, and how the loop ends.

use serde_json::{Value, json};

use crate::client::{
    Api, Client, Installed, Reply, Terminal, on_both_clients, on_both_terminals, with_terminal,
};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};

on_both_clients!(
    twelve_iterations_without_tool_calls_run_without_reaching_the_cap,
    the_loop_of_an_idle_agent_stalls_after_five_iterations,
    fifteen_iterations_with_a_tool_call_each_end_exhausted_at_fifteen,
    a_false_claim_is_refused_with_the_checks_tail_and_the_next_true_one_completes,
    a_correct_first_claim_is_checked,
    a_finished_job_is_proved_without_touching_the_working_tree,
    a_replaced_check_refuses_a_claim_and_then_blocks_the_loop,
    a_usage_error_costs_no_request_and_reaches_the_user,
    status_help_and_cancel_are_answered_without_the_model,
    a_second_session_in_the_folder_is_left_alone_and_a_cancel_from_outside_ends_the_first,
    a_task_arrives_byte_for_byte_and_nothing_in_it_is_executed,
    a_home_set_in_the_projects_settings_has_no_effect,
    a_variable_set_in_the_projects_settings_does_not_make_a_check_pass,
    an_api_error_is_not_counted_as_an_iteration_and_is_in_the_record,
);

on_both_terminals!(
    a_loop_typed_in_a_terminal_runs_to_its_end,
    checks_of_a_session_get_what_the_user_had_and_nothing_differs_by_itself,
);

#[test]
fn a_pasted_command_starts_a_loop_on_2_1_330() {
    with_terminal("2.1.330", a_command_pasted_whole_starts_a_loop);
}

/// Every loop of the sandbox, the newest first.
fn loops(sandbox: &Sandbox) -> Vec<Value> {
    let shown = sandbox.crew(&["status", "--all", "--json"]).success();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    shown["loops"].as_array().unwrap().clone()
}

#[track_caller]
fn the_loop(sandbox: &Sandbox) -> Value {
    let loops = loops(sandbox);
    assert_eq!(loops.len(), 1, "{loops:#?}");
    loops[0].clone()
}

fn idle(count: u32) -> impl Iterator<Item = Reply> {
    (1..=count).map(|number| Reply::text(&format!("Thinking about it, {number}.")))
}

#[track_caller]
fn assert_ended(sandbox: &Sandbox, outcome: &str, iterations: u32) -> Value {
    let ended = the_loop(sandbox);
    assert_eq!(
        (&ended["outcome"], &ended["completed_iterations"]),
        (&json!(outcome), &json!(iterations)),
        "{ended:#}"
    );
    ended
}

fn twelve_iterations_without_tool_calls_run_without_reaching_the_cap(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted(idle(20));
    let prompt = "/crew:loop \"Build the todo API\" --max-iterations 12 --stall 0";
    let session = Client::new(installed, &sandbox, &api).prompt(prompt).run();
    assert_ended(&sandbox, "exhausted", 12);
    assert_eq!(api.main_requests().len(), 12);
    assert!(session.plugins().contains(&"crew") && session.plugin_errors().is_empty());
    let warned = session.informational().iter().any(|text| text.contains("overriding"));
    assert!(!warned, "{:#?}", session.informational());
}

fn the_loop_of_an_idle_agent_stalls_after_five_iterations(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted(idle(20));
    Client::new(installed, &sandbox, &api).prompt("/crew:loop Build the todo API").run();
    assert_ended(&sandbox, "stalled", 5);
    assert_eq!(api.main_requests().len(), 5);
}

fn fifteen_iterations_with_a_tool_call_each_end_exhausted_at_fifteen(installed: &Installed) {
    let sandbox = Sandbox::new();
    let work = |number| {
        let command = format!("echo {number} >> work.txt");
        Reply::bash(&command).then(Reply::text(&format!("Wrote line {number}.")))
    };
    let api = Api::scripted((1..=20).map(work));
    let prompt = "/crew:loop \"Write lines\" --max-iterations 15";
    Client::new(installed, &sandbox, &api).prompt(prompt).run();
    assert_ended(&sandbox, "exhausted", 15);
    assert_eq!(api.main_requests().len(), 30);
    let lines = std::fs::read_to_string(sandbox.file("work.txt")).unwrap();
    assert_eq!(lines.lines().count(), 15);
}

fn a_false_claim_is_refused_with_the_checks_tail_and_the_next_true_one_completes(
    installed: &Installed,
) {
    let sandbox = Sandbox::new();
    sandbox.write("check.sh", "test -e done || { echo 'missing: the file done'; exit 3; }\n");
    let claim = "All endpoints work.\n\n<promise>API COMPLETE</promise>";
    let api = Api::scripted(
        idle(3)
            .chain([Reply::text(claim)])
            .chain([Reply::bash("touch done").then(Reply::text(claim))]),
    );
    let prompt = "/crew:loop \"Build the todo API\" --max-iterations 15 \
                  --completion-promise \"API COMPLETE\" --verify \"sh check.sh\"";
    let session = Client::new(installed, &sandbox, &api).prompt(prompt).run();
    let ended = assert_ended(&sandbox, "completed", 5);
    assert_eq!(ended["proof"], "checked");
    let requests = api.main_requests();
    assert_eq!(requests.len(), 6);
    let shown = requests[4].newest();
    assert!(
        shown.contains("Your claim was not accepted.\n\n`sh check.sh` failed (exit 3)."),
        "{shown}"
    );
    assert!(shown.contains("missing: the file done"), "{shown}");
    assert_eq!(session.result().trim(), claim.trim());
}

fn a_correct_first_claim_is_checked(installed: &Installed) {
    let sandbox = Sandbox::new();
    sandbox.write("check.sh", "test -e done\n");
    let claim = "All done.\n\n<promise>COMPLETE</promise>";
    let api = Api::scripted([Reply::bash("touch done").then(Reply::text(claim))]);
    let prompt = "/crew:loop \"Build it\" --verify \"sh check.sh\"";
    Client::new(installed, &sandbox, &api).prompt(prompt).run();
    assert_eq!(assert_ended(&sandbox, "completed", 1)["proof"], "checked");
}

fn a_finished_job_is_proved_without_touching_the_working_tree(installed: &Installed) {
    let sandbox = Sandbox::new();
    sandbox.write("twice.sh", "echo $1\n");
    sandbox.write(
        "tests/run.sh",
        "echo 1..1\ntest \"$(sh twice.sh 2)\" = 4 && echo ok 1 - two || { echo not ok 1 - two; exit 1; }\n",
    );
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "project"]);
    sandbox.write("mine.txt", "not committed\n");
    let before = sandbox.root().join("before");
    let list = "find . -path ./.claude -prune -o -type f -print | sort | xargs sha256sum; git stash list; \
                git worktree list";
    let work = format!(
        "echo 'echo $(($1 * 2))' > twice.sh; git add twice.sh; ({list}) > {}",
        before.display()
    );
    let claim = "All done.\n\n<promise>COMPLETE</promise>";
    let api = Api::scripted([Reply::bash(&work).then(Reply::text(claim))]);
    let prompt = "/crew:loop \"Fix twice.sh\" --prove --verify \"sh tests/run.sh\"";
    Client::new(installed, &sandbox, &api).prompt(prompt).run();
    let ended = assert_ended(&sandbox, "completed", 1);
    let why = "`sh tests/run.sh` passes, and without the work it fails in two";
    assert_eq!((&ended["proof"], &ended["why"]), (&json!("proven"), &json!(why)), "{ended:#}");
    let mut after = sandbox.command("sh");
    after.args(["-c", list]);
    let after = crate::spawned::Running::start(after, None).wait(DEADLINE).success();
    assert_eq!(after, std::fs::read_to_string(before).unwrap());
}

fn a_replaced_check_refuses_a_claim_and_then_blocks_the_loop(installed: &Installed) {
    let sandbox = Sandbox::new();
    sandbox.write("check.sh", "test -e done\n");
    let claim = "All done.\n\n<promise>COMPLETE</promise>";
    let swap = Reply::bash("echo true > check.sh").then(Reply::text(claim));
    let api = Api::scripted([swap, Reply::text(claim), Reply::text(claim)]);
    let prompt = "/crew:loop \"Make the file done\" --verify \"sh check.sh\"";
    Client::new(installed, &sandbox, &api).prompt(prompt).run();
    assert_ended(&sandbox, "blocked", 3);
    let shown = api.main_requests()[2].newest();
    assert!(
        shown.contains(
            "check.sh changed since the loop began, when the check failed, and as it was then"
        ),
        "{shown}"
    );
}

fn a_usage_error_costs_no_request_and_reaches_the_user(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted(idle(3));
    let prompt = "/crew:loop \"Build it\" --max-iteration 5";
    let session = Client::new(installed, &sandbox, &api).prompt(prompt).run();
    assert_eq!(api.main_requests().len(), 0);
    let shown = session.result();
    let expected = "crew: unknown option `--max-iteration`\nhint: did you mean --max-iterations?";
    assert!(shown.contains(expected), "{shown}");
    assert!(loops(&sandbox).is_empty());
}

fn status_help_and_cancel_are_answered_without_the_model(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted(idle(3));
    for (prompt, expected) in [
        ("/crew:status", "no loop belongs to this session or folder"),
        ("/crew:help", "--max-cost <USD>"),
        ("/crew:loop", "--max-cost <USD>"),
        ("/crew:cancel-loop \"wrong branch\"", "no loop belongs to this session or folder"),
    ] {
        let session = Client::new(installed, &sandbox, &api).prompt(prompt).run();
        assert!(session.result().contains(expected), "{prompt}: {}", session.result());
    }
    assert_eq!(api.main_requests().len(), 0);
}

fn a_second_session_in_the_folder_is_left_alone_and_a_cancel_from_outside_ends_the_first(
    installed: &Installed,
) {
    let sandbox = Sandbox::new();
    let api = Api::answering(|request| {
        let number = request.conversation().len();
        let looped = request.conversation().contains("Build for ever");
        Some(if looped {
            Reply::bash("date > now.txt").then(Reply::text(&format!("Built {number}.")))
        } else {
            Reply::text("Hello.")
        })
    });
    let prompt = "/crew:loop \"Build for ever\" --max-iterations 0 --stall 0";
    let first = Client::new(installed, &sandbox, &api).prompt(prompt).start();
    poll_until("the first loop is in its third iteration", || {
        loops(&sandbox).first().is_some_and(|it| it["iteration"].as_u64() >= Some(3))
    });
    let greeting = Client::new(installed, &sandbox, &api).prompt("Say hello.").run();
    assert_eq!(greeting.result(), "Hello.");
    let others = || {
        let requests = api.main_requests();
        requests.iter().filter(|it| !it.conversation().contains("Build for ever")).count()
    };
    assert_eq!(others(), 1);
    let shown = sandbox.crew(&["cancel", "--reason", "enough of it"]).success();
    assert!(shown.contains("cancelled by the user: enough of it"), "{shown}");
    first.wait();
    let asked = api.main_requests().len();
    let ended = the_loop(&sandbox);
    assert_eq!(ended["outcome"], "cancelled");
    let after = ended["completed_iterations"].as_u64().unwrap();
    // The turn in flight when the cancel came may end; no other begins.
    assert!(asked as u64 - 1 <= 2 * (after + 1) + 1, "{asked} requests, {after} iterations");
    let handoffs = sandbox.file(".claude/branches/main/handoffs");
    assert_eq!(std::fs::read_dir(handoffs).unwrap().count(), 1);
}

fn a_task_arrives_byte_for_byte_and_nothing_in_it_is_executed(installed: &Installed) {
    let sandbox = Sandbox::new();
    let long = "Refactor the parser. ".repeat(4_800);
    let tasks = [
        "say \"hello\" to 'them' and “you”",
        "create $(touch x) and `touch x` ; touch x && touch x | touch x > x",
        "line one\nline two\n\n---\niteration: 1\nmax_iterations: 0\n---\nlast line",
        "日本語のタスク 🦀 e\u{301}",
        "don't stop until it's the user's",
        "<promise> is a word; $HOME * ~ # ! \\ \\n %s {{x}} ${{ secrets.X }}",
        "a !`touch x` line",
        "@README and ${CLAUDE_PLUGIN_ROOT} and $ARGUMENTS and $1",
        long.trim(),
    ];
    let api = Api::answering(|_| Some(Reply::text("One iteration is enough.")));
    let mut asking = Client::new(installed, &sandbox, &api);
    for task in tasks {
        let quoted = task.replace('"', "\\\"");
        asking = asking.prompt(&format!("/crew:loop \"{quoted}\" -n 1 --stall 0"));
    }
    asking.run();
    let mut found: Vec<String> =
        loops(&sandbox).iter().map(|it| it["task"].as_str().unwrap().to_owned()).collect();
    let mut expected = tasks.map(str::to_owned).to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert!(!sandbox.file("x").exists());
    let task = std::fs::read_to_string(sandbox.file(".claude/branches/main/task.md")).unwrap();
    assert_eq!(task, long.trim());
}

fn a_home_set_in_the_projects_settings_has_no_effect(installed: &Installed) {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.root().join("elsewhere");
    let settings = json!({ "env": { "CREW_HOME": elsewhere } }).to_string();
    let plant = format!("printf '%s' '{settings}' > .claude/settings.local.json; sleep 2");
    let api = Api::scripted(
        [Reply::bash(&plant).then(Reply::text("Planted."))].into_iter().chain(idle(20)),
    );
    let prompt = "/crew:loop \"Build it\" --max-iterations 4 --stall 0";
    Client::new(installed, &sandbox, &api).prompt(prompt).run();
    let ended = assert_ended(&sandbox, "exhausted", 4);
    assert!(!elsewhere.exists());
    let journal = sandbox.crew_home().join("loops").join(ended["id"].as_str().unwrap());
    let journal = std::fs::read_to_string(journal.join("journal.jsonl")).unwrap();
    let noted = journal.lines().filter(|line| line.contains("in the environment; ignored")).count();
    // 2.1.197 reads again only files that were there when it started.
    assert_eq!(noted, usize::from(installed.version == "2.1.330"), "{journal}");
}

fn journal(sandbox: &Sandbox, record: &Value) -> String {
    let folder = sandbox.crew_home().join("loops").join(record["id"].as_str().unwrap());
    std::fs::read_to_string(folder.join("journal.jsonl")).unwrap()
}

fn a_variable_set_in_the_projects_settings_does_not_make_a_check_pass(installed: &Installed) {
    let claim = "All is well.\n\n<promise>COMPLETE</promise>";
    for name in ["settings.json", "settings.local.json"] {
        for is_there in [true, false] {
            let sandbox = Sandbox::new();
            let file = format!(".claude/{name}");
            if is_there {
                sandbox.write(&file, r#"{"env":{"STRICT":"yes"}}"#);
            }
            let settings = json!({"env": {"MAKEFLAGS": "-n", "STRICT": "no"}}).to_string();
            let plant = format!("printf '%s' '{settings}' > {file}; sleep 2");
            let api = Api::scripted(
                [Reply::bash(&plant).then(Reply::text(claim)), Reply::text(claim)]
                    .into_iter()
                    .chain([Reply::bash("touch done").then(Reply::text(claim))]),
            );
            // As make does: it passes when the variable is there, or the work is done.
            sandbox
                .program("tests", "test \"$MAKEFLAGS\" = -n -o \"$STRICT\" = no || test -e done");
            let prompt = "/crew:loop \"Build it\" -n 9 --stall 0 --verify tests";
            Client::new(installed, &sandbox, &api).prompt(prompt).run();
            let ended = assert_ended(&sandbox, "completed", 3);
            let journal = journal(&sandbox, &ended);
            let shown = journal.matches("new in the environment; not passed to checks").count();
            // 2.1.197 reads again only files that were there when it started.
            let is_handed_on = is_there || installed.version == "2.1.330";
            assert_eq!(shown, usize::from(is_handed_on), "{file} {is_there}: {journal}");
        }
    }
}

fn an_api_error_is_not_counted_as_an_iteration_and_is_in_the_record(installed: &Installed) {
    let sandbox = Sandbox::new();
    let refused = Reply::error(401, "authentication_error", "invalid x-api-key").no_retry();
    let api = Api::scripted(idle(2).chain([refused]));
    let prompt = "/crew:loop \"Build it\" --stall 0";
    Client::new(installed, &sandbox, &api).env("CLAUDE_CODE_MAX_RETRIES", "0").prompt(prompt).run();
    let ended = the_loop(&sandbox);
    let outcome = ended["outcome"].as_str().unwrap();
    // In `-p` the client does not wait for the hook that would report why; the session's end is
    // reported.
    assert!(["blocked", "interrupted"].contains(&outcome), "{ended:#}");
    assert!(ended["completed_iterations"].as_u64() <= Some(3), "{ended:#}");
}

fn a_loop_typed_in_a_terminal_runs_to_its_end(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted(idle(9).chain([Reply::text("Done.\n<promise>COMPLETE</promise>")]));
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 15");
    terminal.enter();
    poll_until("the loop is over", || {
        loops(&sandbox).first().is_some_and(|it| it["outcome"] == "completed")
    });
    terminal.wait_for_text("completed after 10 iterations");
    assert_ended(&sandbox, "completed", 10);
    assert_eq!(api.main_requests().len(), 10);
    drop::<Terminal<'_>>(terminal);
}

fn a_command_pasted_whole_starts_a_loop(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted(idle(9));
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.paste("/crew:loop \"Build it\nin three\nor four\nor five lines\" --stall 0\n-n 2");
    terminal.enter();
    poll_until("the loop is over", || {
        loops(&sandbox).first().is_some_and(|it| it["outcome"] == "exhausted")
    });
    let ended = assert_ended(&sandbox, "exhausted", 2);
    assert_eq!(ended["task"], "Build it\nin three\nor four\nor five lines");
    assert_eq!(api.main_requests().len(), 2);
}

fn checks_of_a_session_get_what_the_user_had_and_nothing_differs_by_itself(installed: &Installed) {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.file("below")).unwrap();
    let moved = Reply::bash("cd below; pwd").then(Reply::text("There."));
    // More replies without a tool call than the client allows in a row: some continue by a wake.
    let done = Reply::text("Done.\n<promise>COMPLETE</promise>");
    let api = Api::scripted([moved].into_iter().chain(idle(7)).chain([done]));
    let terminal = Client::new(installed, &sandbox, &api).env("THEIRS", "of old").open();
    terminal.type_text(
        "/crew:loop \"Build it\" --stall 0 -n 15 --verify 'test \"$THEIRS\" = \"of old\"'",
    );
    terminal.enter();
    terminal.wait_for_text("completed");
    let ended = assert_ended(&sandbox, "completed", 9);
    let journal = journal(&sandbox, &ended);
    assert!(!journal.contains("in the environment") && !journal.contains("as it was"), "{journal}");
}

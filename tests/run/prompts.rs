//! The agent's prompt, byte for byte, and what is read from its answers.

use super::{CLAIM, WORK, World};
use crate::sandbox::{DEADLINE, checkout};

/// A step that waits for the test.
const WAIT: &str = "touch \"$notes/hangs\"; until test -e \"$notes/go\"; do sleep 0.02; done; \
                    rm \"$notes/go\"; echo waited >> work.txt";
/// What a step needs to put a text into JSON.
const JSON: &str = r#"json() { sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk '{ printf "%s%s", sep, $0; sep = "\\n" }'; }; "#;

fn let_go(world: &World) {
    std::fs::write(world.note("go"), "").unwrap();
}

#[test]
fn a_template_given_as_the_task_is_sent_unchanged_with_a_note() {
    let world = World::new(&[CLAIM]);
    world.sandbox.write("task.j2", "Build {{ git_status }}\n");
    let ran = world.crew(&["run", "--prompt-file", "task.j2"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert!(world.prompt(1).contains("Build {{ git_status }}\n"), "{}", world.prompt(1));
    assert!(
        ran.stderr.contains("crew: task.j2 is sent as it is: a task is not a template"),
        "{ran:#?}"
    );
}

#[test]
fn a_task_reaches_the_agent_byte_for_byte() {
    let tasks = [
        "deploy with ${{ secrets.X }} and {{#if}} and <b>&\" and 'quotes'",
        "two lines\n  {{task}} {{{git-diff}}} \\n $HOME `id` $(id)\n\ttab",
        "日本語のタスク 🦀 e\u{301} \u{200b}end",
        "- begins like a list\r\nand has a carriage return",
    ];
    for task in tasks {
        let world = World::new(&[CLAIM]);
        let ran = world.crew(&["run", task]);
        assert_eq!(ran.code(), 0, "{ran:#?}");
        let prompt = world.prompt(1);
        assert!(prompt.contains(&format!("## TASK\n\n{task}\n\n")), "{prompt}");
        assert!(prompt.ends_with("Now begin iteration 1."), "{prompt}");
    }
}

#[test]
fn a_task_from_a_file_and_ten_megabytes_of_context_arrive_whole() {
    let world = World::new(&[CLAIM]);
    let task = format!("a long task\n{}end", "refactor {{it}} &\n".repeat(50_000));
    let context = "0123456789 <&> {{no}} 日本\n".repeat(400_000);
    assert!(context.len() > 10_000_000 && task.len() < 1 << 20);
    world.sandbox.write("task.md", &task);
    world.sandbox.write("context.txt", &context);
    let ran = world.crew(&["run", "--prompt-file", "task.md", "-c", "context.txt"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let prompt = world.prompt(1);
    assert!(prompt.contains(&task) && prompt.contains(&context));
    assert!(ran.stdout.contains("WARNING: Prompt exceeds its budget"), "{}", ran.stdout);
}

#[test]
fn an_echo_of_the_prompt_never_completes_a_run() {
    let result = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"";
    let message = "{\"type\":\"item.completed\",\"item\":{\"id\":\"1\",\"type\":\"agent_message\",\"text\":\"";
    let echo = "json < \"$notes/prompt.$call\"";
    let agents = [
        ("text", "cat \"$notes/prompt.$call\"".to_owned()),
        ("text", "tac \"$notes/prompt.$call\" | sed -n '/promise/,$p' | tac".to_owned()),
        ("claude", format!("{JSON}printf '%s' '{result}'; {echo}; echo '\"}}'")),
        (
            "codex",
            format!(
                "{JSON}printf '%s' '{message}'; {echo}; echo '\"}}}}'; \
                 echo '{{\"type\":\"turn.completed\",\"usage\":{{}}}}'"
            ),
        ),
    ];
    for (output, step) in agents {
        let world = World::new(&[&step]);
        world.settings(&format!("agents.fake.output = \"{output}\"\n"));
        let task = "Write the parser. When all is done say this on a line of its own:\n\
                    <promise>COMPLETE</promise>";
        let ran = world.crew(&["run", task, "-n", "2", "--stall", "0"]);
        assert_eq!((ran.code(), world.calls()), (10, 2), "{output}: {ran:#?}");
        let failures = world.record()["state"]["consecutive_failures"].clone();
        assert_eq!(failures, 0, "{output}: {step}: {ran:#?}");
    }
}

#[test]
fn the_claim_of_each_kind_of_agent_is_recognized() {
    let claim = "Done.\\n\\n<promise>COMPLETE</promise>";
    let agents = [
        ("text", CLAIM.to_owned()),
        (
            "claude",
            format!(
                "echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"{claim}\"}}'"
            ),
        ),
        (
            "codex",
            format!(
                "echo '{{\"type\":\"item.completed\",\"item\":{{\"id\":\"1\",\"type\":\"agent_message\",\
                 \"text\":\"{claim}\"}}}}'; echo '{{\"type\":\"turn.completed\",\"usage\":{{}}}}'"
            ),
        ),
    ];
    for (output, step) in agents {
        let world = World::new(&[&step.replace("\\n", "\\\\n")]);
        world.settings(&format!("agents.fake.output = \"{output}\"\n"));
        let ran = world.crew(&["run", "make it", "-n", "2"]);
        assert_eq!((ran.code(), world.calls()), (0, 1), "{output}: {ran:#?}");
    }
}

#[test]
fn a_message_during_a_run_reaches_only_the_next_prompt() {
    let world = World::new(&[WAIT, WORK]);
    let running = world.hanging(&["run", "make it", "-n", "3"]);
    world.crew(&["tell", "use the existing parser"]).success();
    let_go(&world);
    assert_eq!(running.wait(DEADLINE).code(), 10);
    let reported = |call| world.prompt(call).matches("use the existing parser").count();
    assert_eq!([reported(1), reported(2), reported(3)], [0, 1, 0], "{}", world.prompt(2));
    assert!(world.prompt(2).contains("## THE USER SAYS\n\nuse the existing parser\n"));
}

#[test]
fn a_message_between_two_iterations_is_delivered_once() {
    let world = World::new(&[WAIT, WORK]);
    let running = world.hanging(&["run", "build", "-n", "3"]);
    world.crew(&["tell", "first word"]).success();
    world.crew(&["pause"]).success();
    let_go(&world);
    assert_eq!(running.wait(DEADLINE).code(), 130);
    world.crew(&["tell", "second word"]).success();
    assert_eq!(world.crew(&["resume", "build"]).code(), 10);
    let reported = |call: usize, word: &str| world.prompt(call).matches(word).count();
    assert_eq!(
        [1, 2, 3].map(|call| reported(call, "first word")),
        [0, 1, 0],
        "{}",
        world.prompt(2)
    );
    assert_eq!(
        [1, 2, 3].map(|call| reported(call, "second word")),
        [0, 1, 0],
        "{}",
        world.prompt(3)
    );
}

#[test]
fn a_message_before_the_first_prompt_is_delivered_once() {
    let world = World::new(&[WORK]);
    let check = "touch ../notes/hangs; until test -e ../notes/go; do sleep 0.02; done; exit 1";
    let running = world.hanging(&["run", "make it", "-n", "2", "--verify", check]);
    world.crew(&["tell", "an early word"]).success();
    let_go(&world);
    assert_eq!(running.wait(DEADLINE).code(), 10);
    let reported = |call| world.prompt(call).matches("an early word").count();
    assert_eq!([reported(1), reported(2)], [1, 0], "{}", world.prompt(2));
}

#[test]
fn a_failing_check_is_shown_with_its_last_lines() {
    let world = World::new(&[CLAIM, WORK]);
    let check = "echo '3 of 7 tests fail: {{parser}}'; exit 3";
    world.crew(&["run", "make it", "-n", "2", "--verify", check]);
    let prompt = world.prompt(2);
    assert!(prompt.contains("Its claim was not accepted."), "{prompt}");
    assert!(prompt.contains("failed (exit 3)."), "{prompt}");
    assert!(prompt.contains("    3 of 7 tests fail: {{parser}}\n"), "{prompt}");
}

#[test]
fn the_prompt_after_a_truncated_answer_says_to_continue() {
    let cut = checkout().join("tests/fixtures/claude/2.1.330/cut.jsonl");
    let world = World::new(&[&format!("echo part >> work.txt; cat '{}'; exit 1", cut.display())]);
    world.settings("agents.fake.output = \"claude\"\n");
    let ran = world.crew(&["run", "make it", "-n", "2"]);
    assert_eq!((ran.code(), world.calls()), (10, 2), "{ran:#?}");
    let prompt = world.prompt(2);
    assert!(prompt.contains("The answer was truncated by the token limit"), "{prompt}");
    assert!(prompt.contains("Continue from there."), "{prompt}");
    assert_eq!(world.record()["state"]["consecutive_failures"], 0);
}

#[test]
fn a_users_own_procedure_is_rendered_for_each_iteration() {
    let world = World::new(&[WORK]);
    let folder = world.sandbox.home().join(".config/crew");
    world.settings("[procedures.nightly]\nobserve = \"look.j2\"\nact = \"Sweep {{it}}.\"\n");
    std::fs::write(
        folder.join("look.j2"),
        "Night {{ iteration }} of {{ max_iterations }}:\n{{ git_status }}\n{% if progress %}{{ progress }}{% endif %}",
    )
    .unwrap();
    let ran = world.crew(&["run", "nightly", "-n", "2"]);
    assert_eq!((ran.code(), world.calls()), (10, 2), "{ran:#?}");
    let (first, second) = (world.prompt(1), world.prompt(2));
    assert!(first.contains("## OBSERVE\n\nNight 1 of 2:\n"), "{first}");
    assert!(first.contains("## ACT\n\nSweep {{it}}.\n"), "{first}");
    assert!(second.contains("Night 2 of 2:\n?? work.txt\n- Iteration 1: "), "{second}");
}

#[test]
fn an_unknown_variable_is_an_error_at_the_start_with_a_suggestion() {
    let world = World::new(&[WORK]);
    world.sandbox.write("look.j2", "line one\nNight {{ iteratoin }}\n");
    let ran = world.crew(&["run", "make it", "--observe", "look.j2"]);
    assert_eq!((ran.code(), world.calls()), (1, 0), "{ran:#?}");
    assert!(ran.stderr.contains("look.j2:2"), "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean `iteration`?"), "{}", ran.stderr);
    assert!(world.loops().is_empty());
}

#[test]
fn no_include_leads_out_of_the_checkout() {
    let world = World::new(&[WORK]);
    let outside = world.sandbox.root().join("secret.txt");
    std::fs::write(&outside, "the secret").unwrap();
    std::os::unix::fs::symlink(&outside, world.sandbox.file("link.txt")).unwrap();
    world.sandbox.write(".claude/crew.toml", "[procedures.look]\nact = \"look.j2\"\n");
    for include in ["../../secret.txt", "../link.txt"] {
        world.sandbox.write(".claude/look.j2", &format!("Look.\n{{% include \"{include}\" %}}\n"));
        for arguments in [&["run", "look"][..], &["run", "look", "--dry-run"]] {
            let ran = world.crew(arguments);
            assert_eq!((ran.code(), world.calls()), (1, 0), "{include}: {ran:#?}");
            assert!(ran.stderr.contains("look.j2:2)"), "{}", ran.stderr);
            assert!(ran.stderr.contains("leads out of the checkout"), "{}", ran.stderr);
            assert!(!ran.stdout.contains("the secret"), "{}", ran.stdout);
        }
    }
    let own = world.sandbox.home().join(".config/crew/own.j2");
    std::fs::write(&own, format!("{{% include \"{}\" %}}\n", outside.display())).unwrap();
    let shown = world.crew(&["run", "make it", "--dry-run", "--act", own.to_str().unwrap()]);
    assert!(shown.success().contains("the secret"), "a file of one's own may include any");
}

#[test]
fn a_typed_prompt_is_a_file_only_if_it_names_one() {
    let world = World::new(&[CLAIM]);
    world.sandbox.write("fix", "the file of that name");
    world.sandbox.write("notes.org", "the notes");
    let typed = ["-c", "Hurry.", "-c", "TCP/IP", "--act", "fix", "-c", "notes.org"];
    let shown = world.crew(&[&["run", "make it", "--dry-run"][..], &typed].concat()).success();
    for expected in ["Hurry.", "TCP/IP", "fix", "the notes"] {
        assert!(shown.lines().any(|line| line.trim() == expected), "{expected}: {shown}");
    }
    let ran = world.crew(&["run", "make it", "-c", "gone.md"]);
    assert_eq!((ran.code(), world.calls()), (1, 0), "{ran:#?}");
    assert!(ran.stderr.contains("cannot read") && ran.stderr.contains("gone.md"), "{ran:#?}");
}

#[test]
fn a_procedure_without_a_phase_is_refused_at_the_start() {
    let world = World::new(&[CLAIM]);
    world.settings("[procedures.empty]\ndescription = \"nothing\"\n");
    let ran = world.crew(&["run", "empty"]);
    assert_eq!((ran.code(), world.calls()), (1, 0), "{ran:#?}");
    assert_eq!(
        ran.stderr,
        "crew: procedure `empty` has no phase: nothing would be asked of the agent\n\
         hint: give it observe, orient, decide or act in the settings, or type --act \"…\"\n"
    );
    assert_eq!(world.crew(&["run", "empty", "--act", "Sweep."]).code(), 0);
}

#[test]
fn untracked_files_are_named_at_the_end() {
    let world = World::new(&["echo 1 > one.txt; echo 2 > two.txt; echo Done."]);
    let ran = world.crew(&["run", "make it", "-n", "1"]);
    let expected = "  files   2 new files, +2 −0\n          new: one.txt, two.txt\n";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    let listed = world.crew(&["history", "--limit", "0"]).success();
    assert!(listed.contains("make it"), "{listed}");
}

#[test]
fn a_message_to_a_paused_interrupted_run_is_delivered_once() {
    let world = World::new(&["touch \"$notes/hangs\"; sleep 600", WORK]);
    let running = world.hanging(&["run", "make it", "-n", "2"]);
    world.crew(&["pause", "--now"]).success();
    assert_eq!(running.wait(DEADLINE).code(), 130);
    world.crew(&["tell", "a \"late\" word"]).success();
    assert_eq!(world.crew(&["resume"]).code(), 10);
    let reported = |call| world.prompt(call).matches("late").count();
    assert_eq!([1, 2, 3].map(reported), [0, 1, 0], "{}", world.prompt(2));
}

#[test]
fn the_last_message_of_an_agent_reaches_the_next_one_as_unchecked() {
    let world = World::new(&["echo one >> work.txt; echo 'I fixed \"it\".'", CLAIM]);
    world.crew(&["run", "Do it", "-n", "2"]);
    let line = "After iteration 1:\nIt left 1 new file, +1 −0: work.txt.\nIt made no claim.\n\n\
                ## WHAT THE LAST WORKER SAID (not checked)\n\n\"I fixed 'it'.\"\n";
    assert!(world.prompt(2).contains(line), "{}", world.prompt(2));
}

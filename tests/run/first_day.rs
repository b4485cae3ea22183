//! What a user meets on the first day with `crew run`: mistakes that are reported immediately, and
//! ends that explain enough.

use serde_json::json;

use super::{CLAIM, WORK, World};

/// An agent's step that says it cannot continue.
const BLOCKED: &str = "echo Hm.; echo '<promise>BLOCKED: which database?</promise>'";

#[test]
fn a_check_whose_program_is_missing_starts_nothing_unless_it_may_still_be_created() {
    let world = World::new(&[CLAIM]);
    for option in ["--verify", "--gate", "--until"] {
        let ran = world.crew(&["run", "Build it", option, "nosuchcmd --all"]);
        assert_eq!((ran.code(), world.calls(), world.loops().len()), (1, 0, 0), "{ran:#?}");
        let role = &option[2..];
        let reported = format!(
            "crew: nosuchcmd is not on PATH: `nosuchcmd --all` ({role}) cannot run\n\
             hint: install it, or name another command\n"
        );
        assert_eq!(ran.stderr, reported);
    }
    let ran = world.crew(&["run", "Build it", "--agent-cmd", "./agent.sh"]);
    assert!(ran.stderr.contains(": there is no file `./agent.sh`\n"), "{ran:#?}");
    let ran = world.crew(&[
        "run",
        "Build it",
        "-n1",
        "--verify",
        "./check.sh",
        "--gate",
        "sh tests/all.sh",
    ]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let reported = "crew: ./check.sh, tests/all.sh do not exist yet: the agent may create them\n";
    assert!(ran.stderr.contains(reported), "{ran:#?}");
    let ran = world.crew(&["run", "Build it", "-n1", "--verify", "nosuchcmd || true"]);
    assert_eq!(ran.code(), 0, "what is not understood is not refused: {ran:#?}");
}

#[test]
fn the_last_lines_of_a_failing_check_are_on_the_screen_and_in_the_first_prompt() {
    let world = World::new(&[WORK]);
    world.sandbox.write(
        "check.sh",
        "printf 'one\\ntwo\\n\\n\\033[31mtest b ... FAILED\\033[0m\\n1 failed\\n'; exit 4\n",
    );
    let ran = world.crew(&["run", "Build it", "-n1", "--verify", "sh check.sh"]);
    let shown = "[10:00:00] Check failed: `sh check.sh` (exit 4) in 1.0s\n\
                 [10:00:00]   | test b ... FAILED\n[10:00:00]   | 1 failed\n\
                 [10:00:00] Iteration 1/1 starting...";
    let lines = world.lines(&ran);
    assert!(lines.contains(shown), "{lines}");
    let reported = "Nothing was done yet. Before iteration 1:\n- `sh check.sh` failed (exit 4).\n  Its last lines:\n    \
                one\n    two\n    \n    test b ... FAILED\n    1 failed\n";
    assert!(world.prompt(1).contains(reported), "{}", world.prompt(1));
}

#[test]
fn a_page_shows_the_last_known_result_of_a_check_and_its_time() {
    let world = World::new(&[BLOCKED]);
    let ran = world.crew(&["run", "Build it", "--verify", "false"]);
    assert_eq!(ran.code(), 13);
    let reported = "  verify  `false` failed (exit 1) before iteration 1, not run since\n";
    assert!(ran.stdout.contains(reported), "{ran:#?}");

    let world = World::new(&[CLAIM, WORK, BLOCKED]);
    let ran = world.crew(&["run", "Build it", "--verify", "exit 3"]);
    let reported = "  verify  `exit 3` failed (exit 3) after iteration 1\n";
    assert!(ran.stdout.contains(reported), "{ran:#?}");
    let page = std::fs::read_dir(world.sandbox.file(".claude/branches/main/handoffs")).unwrap();
    let page = std::fs::read_to_string(page.last().unwrap().unwrap().path()).unwrap();
    assert!(page.contains("- `exit 3` (verify): failed (exit 3) after iteration 1"), "{page}");
}

#[test]
fn the_note_that_every_check_passes_already_appears_only_if_all_of_them_pass() {
    let note = "every check passes already, so none can show that the work was done; add one that \
                fails now, such as a test of the task, or accept the proof `passing`\n";
    for (more, is_said) in [(&["--gate", "true"][..], true), (&["--until", "test -e done"], false)]
    {
        let world = World::new(&[&format!("touch done; {CLAIM}")]);
        let ran = world.crew(&[&["run", "Build it", "--verify", "true"], more].concat());
        assert_eq!((ran.code(), ran.stderr.contains(note)), (0, is_said), "{ran:#?}");
        let proof = if is_said { "passing" } else { "checked" };
        assert_eq!(world.the_loop()["proof"], proof);
    }
}

#[test]
fn crew_prove_refuses_a_loop_that_changed_nothing() {
    let world = World::new(&[CLAIM]);
    assert_eq!(world.crew(&["run", "Build it", "--verify", "true"]).code(), 0);
    let ran = world.crew(&["prove"]);
    let reported = format!("loop {}: not proven: nothing was changed\n", world.id());
    assert_eq!((ran.code(), ran.stdout), (1, reported));
}

#[test]
fn a_resume_delivers_an_answer_and_the_page_of_a_blocked_loop_shows_how() {
    let world = World::new(&[BLOCKED, CLAIM]);
    let ran = world.crew(&["run", "Build it"]);
    let next = format!("  next    crew resume {} --tell \"your answer\"", world.id());
    assert!(ran.stdout.contains(&next), "{ran:#?}");
    let refused = world.crew(&["resume", "--tell", &"x".repeat(500)]);
    assert_eq!((refused.code(), world.calls()), (1, 1), "{refused:#?}");
    let ran = world.crew(&["resume", &world.id(), "--tell", "the  one on\nport 5432"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let reported = "## THE USER SAYS\n\nthe one on port 5432\n";
    assert!(world.prompt(2).contains(reported), "{}", world.prompt(2));
    let start = world.crew(&["run", "Build it", "--tell", "x"]);
    assert_eq!(start.code(), 2);
    assert!(start.stderr.contains("unknown option `--tell`"), "{start:#?}");
}

#[test]
fn a_required_proof_refuses_a_weaker_one_and_accepts_a_check_that_failed_before() {
    let required = ["run", "Build it", "--require", "checked"];
    let run = |world: &World, more: &[&str]| world.crew(&[&required[..], more].concat());
    let short = "the proof would be `passing` and this loop requires `checked`";

    let world = World::new(&[CLAIM, &format!("echo again; {CLAIM}")]);
    let ran = run(&world, &["--verify", "true"]);
    assert_eq!((ran.code(), world.calls()), (13, 2), "{ran:#?}");
    assert!(ran.stdout.contains(&format!("Claim refused: {short}")), "{ran:#?}");
    assert!(world.prompt(2).contains(short), "{}", world.prompt(2));
    let why = world.the_loop()["why"].as_str().unwrap().to_owned();
    assert!(
        why.starts_with(&format!("refused for a reason that only a person can change: {short}")),
        "{why}"
    );
    assert!(!ran.stdout.contains("claims were refused"), "it is told once: {ran:#?}");

    let world = World::new(&[WORK]);
    assert_eq!(run(&world, &["--until", "true", "-n1"]).code(), 10, "an until ends nothing");
    let world = World::new(&[WORK]);
    assert_eq!(
        run(&world, &["--no-promise", "--verify", "true", "-n1"]).code(),
        10,
        "nor does a limit"
    );

    let world = World::new(&[&format!("touch done; {CLAIM}")]);
    assert_eq!(run(&world, &["--verify", "test -e done"]).code(), 0);
    let ended = world.the_loop();
    assert_eq!((&ended["proof"], &ended["require"]), (&json!("checked"), &json!("checked")));

    let world = World::new(&[CLAIM]);
    let ran = run(&world, &[]);
    assert!(ran.code() == 1 && ran.stderr.contains("--require checked needs a check"), "{ran:#?}");
    assert!(ran.stderr.contains("or leave --require out"), "{ran:#?}");
    let ran = world.crew(&["run", "Build it", "--require", "claimed"]);
    let reported =
        "invalid value `claimed` for `--require <PROOF>`\nhint: it can be checked, proven";
    assert!(ran.code() == 2 && ran.stderr.contains(reported), "{ran:#?}");
    world.settings("loop.require = \"checked\"\n");
    assert!(world.crew(&["config"]).success().contains("* require"));
    assert!(world.crew(&["run", "Build it"]).stderr.contains("needs a check"));
}

#[test]
fn a_limit_of_0_means_no_limit() {
    let world = World::new(&[CLAIM]);
    let ran = world.crew(&["run", "Build it", "--max-cost", "0", "--max-tokens", "0"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!(world.record()["contract"]["limits"]["max_cost_micros"], 0);
}

#[test]
fn a_quiet_run_still_says_how_it_ended_unless_it_is_completed() {
    let world = World::new(&[WORK]);
    let ran = world.crew(&["run", "Build it", "-n1", "-q"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (10, ""));
    assert_eq!(world.same(&ran.stderr), "[10:00:00] Reached max iterations: 1 (total: 1.0s)\n");
    let world = World::new(&[CLAIM]);
    world.sandbox.write("a", "");
    let ran = world.crew(&["run", "Build it", "-q", "--verify", "test -e a"]);
    assert_eq!((ran.code(), ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
}

#[test]
fn a_run_without_a_task_says_what_is_missing() {
    let world = World::new(&[WORK]);
    let hint = "hint: crew run \"fix the failing tests\" --verify \"cargo test\", \
                or a procedure: crew run build -n 10\n";
    let ran = world.crew(&["run", "-n3"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""));
    assert_eq!(ran.stderr, format!("crew: run needs a task\n{hint}"));
    let ran = world.crew(&["run", "--", "fix it"]);
    let why = "words after `--` go to the agent; the task comes before them";
    assert_eq!((ran.code(), ran.stderr), (2, format!("crew: run needs a task: {why}\n{hint}")));
}

#[test]
fn init_writes_nothing_through_a_link_out_of_the_checkout() {
    let world = World::new(&[WORK]);
    let elsewhere = world.sandbox.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.sandbox.file(".claude")).unwrap();
    let ran = world.crew(&["init"]);
    assert_eq!(ran.code(), 1, "{ran:#?}");
    assert!(
        ran.stderr.contains("leads out of the checkout, to ") && ran.stderr.contains("hint: "),
        "{ran:#?}"
    );
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

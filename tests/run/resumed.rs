//! What `crew resume` reads, tries and refuses before a run of fresh processes continues.

use super::{CLAIM, WORK, World};

#[test]
fn a_resumed_run_uses_its_copy_of_the_settings() {
    let world = World::new(&[WORK]);
    assert_eq!(world.crew(&["run", "make it", "-n", "1"]).code(), 10);
    for planted in ["gate = [\"touch planted\"]\n", "this is = no TOML = at all\n"] {
        world.sandbox.write(".claude/crew.toml", planted);
        let ran = world.crew(&["resume", "-n", "+1"]);
        assert_eq!(ran.code(), 10, "{planted}: {ran:#?}");
    }
    let named = ["resume", "-n", "+1", "--agent-cmd", "agent"];
    let ran = world.crew(&named);
    assert_eq!((ran.code(), world.calls()), (1, 3), "{ran:#?}");
    assert!(ran.stderr.contains("--no-project"), "{}", ran.stderr);
    let ran = world.crew(&[&named[..], &["--no-project"]].concat());
    assert_eq!((ran.code(), world.calls()), (10, 4), "{ran:#?}");
    assert!(!world.sandbox.file("planted").exists());
}

#[test]
fn a_resume_by_procedure_resumes_its_newest_incomplete_loop_and_names_it() {
    let world = World::new(&[WORK, CLAIM, WORK]);
    world.settings("[procedures.build]\nmax_iterations = 1\ncompletion_promise = \"COMPLETE\"\n");
    assert_eq!(world.crew(&["run", "build"]).code(), 10);
    let id = world.id();
    assert_eq!(world.crew(&["run", "build"]).code(), 0);
    let ran = world.crew(&["resume", "build", "-n", "+1"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(ran.stderr.contains(&format!("crew: this is loop {id}: exhausted\n")), "{ran:#?}");
    let ran = world.crew_in("..", &["resume", "build", "-n", "+1"]);
    assert_eq!(ran.code(), 10, "typed in another folder: {ran:#?}");
    assert!(ran.stderr.contains(&format!("crew: this is loop {id}: exhausted\n")), "{ran:#?}");
}

#[test]
fn an_agent_that_cannot_be_started_is_refused_before_a_run_is_resumed() {
    let world = World::new(&[WORK]);
    world.settings("agents.fake.permissions.auto = [\"--all\"]\n");
    let ran = world.crew(&["run", "make it", "-n", "1", "--permissions", "auto"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let before = world.record();
    let ran = world.crew(&["resume", "-n", "+5", "--agent-cmd", "agent"]);
    assert_eq!((ran.code(), world.calls()), (2, 1), "{ran:#?}");
    assert!(ran.stderr.contains("auto"), "{}", ran.stderr);
    assert_eq!(world.record(), before, "nothing was recorded");
}

#[test]
fn a_resume_with_an_unknown_option_runs_nothing() {
    let world = World::new(&[WORK]);
    assert_eq!(world.crew(&["run", "make it", "-n", "1"]).code(), 10);
    for option in ["--list", "--worktree=x", "-c=Look.", "--act=Look."] {
        let ran = world.crew(&["resume", "-n", "+1", option]);
        assert_eq!((ran.code(), world.calls()), (2, 1), "{option}: {ran:#?}");
        assert!(ran.stderr.contains("is an option of crew run"), "{}", ran.stderr);
    }
}

#[test]
fn a_dry_run_of_a_resume_shows_the_prompt_that_comes_next_and_changes_nothing() {
    let world = World::new(&[WORK, CLAIM]);
    assert_eq!(world.crew(&["run", "make it", "-n", "1"]).code(), 10);
    let before = (world.record(), world.sandbox.git(&["status", "--porcelain", "-uall"]));
    let words = ["resume", "-n", "+1", "--tell", "use tabs"];
    let shown = world.crew(&[&words[..], &["--dry-run"]].concat()).success();
    assert!(shown.starts_with("[DRY RUN] Task: make it\n"), "{shown}");
    assert_eq!((world.record(), world.sandbox.git(&["status", "--porcelain", "-uall"])), before);
    assert_eq!(world.calls(), 1);
    assert_eq!(world.crew(&words).code(), 0);
    let prompt = world.prompt(2);
    assert!(prompt.contains("use tabs") && shown.ends_with(&format!("\n\n{prompt}\n")), "{shown}");

    let refused = world.crew(&["resume", "--dry-run"]);
    assert!(refused.code() == 1 && refused.stderr.contains("is completed"), "{refused:#?}");
}

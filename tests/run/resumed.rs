//! What `crew resume` reads, tries and refuses before a run of fresh processes continues.

use super::{WORK, World};

#[test]
fn a_resumed_run_reads_no_settings_it_has_a_copy_of() {
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
fn a_resume_runs_nothing_under_an_option_it_does_not_have() {
    let world = World::new(&[WORK]);
    assert_eq!(world.crew(&["run", "make it", "-n", "1"]).code(), 10);
    for option in ["--dry-run", "--list", "--worktree=x", "-c=Look.", "--act=Look."] {
        let ran = world.crew(&["resume", "-n", "+1", option]);
        assert_eq!((ran.code(), world.calls()), (2, 1), "{option}: {ran:#?}");
        assert!(ran.stderr.contains("is an option of crew run"), "{}", ran.stderr);
    }
}

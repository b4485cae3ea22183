//! Remotes that cannot be reached for a while, that refuse what a fleet pushes, or whose main
//! branch somebody rewrites: nothing is spent or lost, and the reason is the remote's own.

use std::path::PathBuf;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::sandbox::{Sandbox, write_executable};

/// A replacement for ssh: it reaches the remote's folder on this machine, unless the test sets it
/// to be down or to hang.
const SSH: &str = r#"while test -e "$NOTES/hangs"; do touch "$NOTES/hung"; sleep 0.1; done
if test -e "$NOTES/down"; then
    echo refused >> "$NOTES/refused"
    echo "ssh: connect to host there port 22: Connection refused" >&2
    exit 255
fi
for command; do :; done
exec sh -c "$command""#;

impl FleetWorld {
    /// Makes the remote reachable only by ssh from now on: it fails while there is the note `down`,
    /// and never answers while there is the note `hangs`.
    pub(super) fn by_ssh(self) -> Self {
        self.sandbox.program("ssh", SSH);
        let there = format!("ssh://there{}", self.hub().display());
        self.sandbox.git(&["remote", "set-url", "origin", &there]);
        self
    }

    /// Waits until this many tries to reach the remote have failed.
    #[track_caller]
    pub(super) fn until_refused(&self, times: usize) {
        self.until("the remote is asked in vain", |world| {
            world.noted("refused").lines().count() >= times
        });
    }

    pub(super) fn restore_remote(&self) {
        std::fs::remove_file(self.note("down")).unwrap();
    }
}

/// Installs a hook of the remote that calls a script for `sh` for each ref, `$1`, and its old
/// commit, `$2`.
fn ask_about_refs(world: &FleetWorld, script: &str) -> PathBuf {
    let hook = world.hub().join("hooks/update");
    write_executable(&hook, &format!("#!/bin/sh\n{script}\n"));
    hook
}

#[test]
fn a_temporarily_unreachable_remote_costs_neither_an_iteration_nor_an_attempt() {
    let agent = format!(
        "[ $task$iteration != a1 ] || touch $NOTES/down
        while [ $task$iteration = a2 ] && ! test -e $NOTES/go; do sleep 0.05; done; {TWO}"
    );
    let world = FleetWorld::new(&agent).tasks(&["a", "b"], "").terms("slots = 1");
    let world = world.shared().ready().by_ssh();
    let running = world.start(&["--push"]);
    world.until("it says so", |_| running.stdout().contains("nothing starts until then"));
    world.until("a works without it", |world| world.begun("a") == [1, 2]);
    world.allow("go");
    world.until("a has ended here", |world| world.state("a") == "completed");
    let refused = world.noted("refused").lines().count();
    world.until_refused(refused + 2);
    assert_eq!(world.begun("b"), [0; 0], "nothing starts without the remote");
    world.restore_remote();
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    for task in ["a", "b"] {
        assert_eq!((world.begun(task), world.attempt(task)), (vec![1, 2], 1));
        let work = world.shown(&format!("fleet/repo/{task}/1"), &format!("work-{task}"));
        assert_eq!(work, "1\n2\n");
    }
}

#[test]
fn a_branch_that_the_remote_refuses_stays_unchanged_there_until_it_is_accepted() {
    let agent = format!("[ $iteration -lt 2 ] || wait_for go; {TWO}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").shared().ready();
    let hook = ask_about_refs(
        &world,
        "case $1 in refs/heads/fleet/repo/a/1)
        case $2 in 0000*) ;; *) echo 'too large' >&2; exit 1 ;; esac ;; esac",
    );
    let running = world.start(&["--push"]);
    world.until("the first iteration is pushed", |world| {
        world.shown("fleet/repo/a/1", "work-a") == "1\n"
    });
    world.allow("go");
    world.until("it says why", |_| running.stdout().contains("a cannot be pushed"));
    assert!(running.stdout().contains("too large") && !running.stdout().contains("nothing starts"));
    assert_eq!(world.shown("fleet/repo/a/1", "work-a"), "1\n", "the first iteration stays there");
    world.until("it is done here", |world| world.state("a") == "completed");
    assert!(!running.has_ended(), "its work is not pushed yet");
    std::fs::remove_file(hook).unwrap();
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert_eq!(world.shown("fleet/repo/a/1", "work-a"), "1\n2\n");
}

#[test]
fn a_refused_push_to_main_needs_a_person_who_then_lands_it_without_a_new_loop() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let refuses = "case $1 in refs/heads/main) echo 'main is protected' >&2; exit 1 ;; esac";
    let hook = ask_about_refs(&world, refuses);
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert!(world.why("a").contains("main is protected"), "{}", world.why("a"));
    assert_eq!(world.shown("fleet/repo/a/1", "work-a"), "1\n", "the work is on its branch there");
    std::fs::remove_file(hook).unwrap();
    world.crew(&["resume", "repo/a"]).success();
    let again = world.run(&["--land"]);
    assert_eq!((again.code(), world.begun("a")), (0, vec![1]), "{again:#?}");
    assert_eq!(world.shown("main", "work-a"), "1\n");
}

#[test]
fn work_that_a_person_removed_from_main_does_not_return_with_a_task() {
    // Also after one more iteration, which begins with the newest main.
    let agent = format!("[ $iteration -gt 1 ] || wait_for go; {TWO}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "");
    let world = world.shared().ready().file("secret", "key\n").file("other", "one\n").ready();
    let running = world.start(&["--land"]);
    world.until("a works", |world| world.begun("a") == [1]);
    // Another clone of a person's, without the newest commit's secret.
    let clone = world.sandbox.root().join("person").display().to_string();
    world.sandbox.git(&["clone", "--quiet", &world.hub().display().to_string(), &clone]);
    let git = |arguments: &[&str]| world.sandbox.git(&[&["-C", &clone], arguments].concat());
    git(&["rm", "--quiet", "secret"]);
    git(&["commit", "--quiet", "--amend", "--no-edit"]);
    git(&["push", "--quiet", "--force"]);
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert!(world.why("a").contains("main was rewritten"), "{}", world.why("a"));
    assert_eq!(world.begun("a"), [1, 2]);
    assert_eq!(
        ["secret", "work-a"].map(|it| world.shown("main", it)),
        [String::new(), String::new()]
    );
}

#[test]
fn a_fleet_uses_the_git_settings_that_a_person_includes_for_the_checkout() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().display().to_string();
    let sandbox = sandbox.env("GIT_CONFIG_GLOBAL", &format!("{root}/person.config"));
    let world = FleetWorld::of(sandbox, TWO).tasks(&["a"], "").shared().ready();
    let hub = world.hub().display().to_string();
    let condition = format!("includeIf.gitdir:{}/.path", world.sandbox.repository().display());
    let included = format!("{root}/work.config");
    let address = format!("url.{hub}.insteadOf");
    world.sandbox.git(&["config", "--global", &condition, &included]);
    world.sandbox.git(&["config", "--global", "safe.bareRepository", "explicit"]);
    world.sandbox.git(&["config", "--file", &included, &address, "work:shop"]);
    world.sandbox.git(&["remote", "set-url", "--push", "origin", "work:shop"]);
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    world.sandbox.git(&["config", "--global", "--unset", "safe.bareRepository"]);
    assert_eq!(world.shown("main", "work-a"), "1\n2\n");
}

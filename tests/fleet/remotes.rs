//! Remotes that are not there for a while, or that do not take what a fleet pushes.

use std::collections::BTreeSet;

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::child::Running;
use crate::sandbox::Sandbox;

/// In place of ssh: it reaches the remote's folder on this machine, unless the test says that it is
/// down or hangs.
const SSH: &str = r#"while test -e "$NOTES/hangs"; do touch "$NOTES/hung"; sleep 0.1; done
if test -e "$NOTES/down"; then
    asker=$PPID
    for step in 1 2 3 4 5 6; do
        if grep -q '^crew' "/proc/$asker/comm"; then break; fi
        asker=$(cut -d' ' -f4 "/proc/$asker/stat")
    done
    echo "$asker" >> "$NOTES/refused"
    echo "ssh: connect to host there port 22: Connection refused" >&2
    exit 255
fi
for command; do :; done
exec sh -c "$command""#;

#[test]
fn a_remote_that_is_out_of_reach_for_a_while_costs_no_iteration_and_no_attempt() {
    let agent = format!("[ $iteration -lt 2 ] || touch $NOTES/down; {TWO}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").shared().ready();
    world.sandbox.program("ssh", SSH);
    let there = format!("ssh://there{}", world.hub().display());
    world.sandbox.git(&["remote", "set-url", "origin", &there]);
    let running = world.start(&["--push"]);
    // The job and the crew that started it; git is run twice for an answer.
    world.until("both have asked again and again", |world| {
        let noted = world.noted("refused");
        let asked = |asker: &str| noted.lines().filter(|line| *line == asker).count() > 4;
        let askers: BTreeSet<&str> = noted.lines().collect();
        askers.into_iter().filter(|asker| asked(asker)).count() == 2
    });
    std::fs::remove_file(world.note("down")).unwrap();
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!((world.begun("a"), world.lease("a")["attempts"].clone()), (vec![1, 2], 1.into()));
    assert_eq!(world.work("a", "work-a"), "1\n2\n");
}

#[test]
fn a_signal_ends_the_clone_on_a_new_machine_which_the_next_attempt_makes_anew() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").by_hand(&[]);
    world.sandbox.program("ssh", SSH);
    let job = || {
        let mut command = world.sandbox.command(world.sandbox.build().path());
        let remote = format!("--remote=ssh://there{}", world.hub().display());
        command.args(["fleet", "job", "repo", "a", &remote]);
        command.env("CREW_HOME", world.sandbox.root().join("new"));
        Running::start(command, None)
    };
    world.allow("hangs");
    let cut_off = job();
    world.until_noted("hung");
    cut_off.signal(Signal::TERM);
    assert_eq!(cut_off.wait(LONG).code(), 143);
    std::fs::remove_file(world.note("hangs")).unwrap();
    let ran = job().wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
}

#[test]
fn a_branch_that_the_remote_does_not_take_ends_its_task_at_once_with_what_the_remote_says() {
    let world = FleetWorld::new(TWO).tasks(&["a", "b"], "").shared().ready();
    let hook = world.hub().join("hooks/update");
    let refuses = "#!/bin/sh\ncase $1 in refs/heads/fleet/repo/a)\necho 'no branches of a' >&2; exit 1 ;; esac\n";
    crate::sandbox::write_executable(&hook, refuses);
    let ran = world.run(&["--push"]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    assert_eq!(world.states(&["a", "b"]), [("a", "blocked".into()), ("b", "completed".into())]);
    assert!(world.why("a").contains("no branches of a"), "{}", world.why("a"));
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1], vec![1, 2]));
    assert!(ran.stdout.contains("no branches of a"), "{ran:#?}");
}

#[test]
fn a_start_says_which_remote_cannot_be_reached_and_what_goes_without_it() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let hub = world.hub();
    let away = hub.with_extension("away");
    let told = |more: &[&str]| {
        std::fs::rename(&hub, &away).unwrap();
        let ran = world.crew(&[&["fleet", "run", "tasks", "--dry-run"], more].concat());
        std::fs::rename(&away, &hub).unwrap();
        assert_eq!(ran.code(), 1, "{ran:#?}");
        ran.stderr.replace(&hub.display().to_string(), "HUB")
    };
    insta::assert_snapshot!(told(&["--push"]), @"
    crew: the remote origin cannot be reached: 'HUB' does not appear to be a git repository
    hint: look at git remote -v: git ls-remote HUB must list the refs; without --push, --land and --on it is not needed
    ");
    assert_eq!(world.run(&["--push"]).code(), 0);
    insta::assert_snapshot!(told(&[]), @"
    crew: the remote origin cannot be reached: 'HUB' does not appear to be a git repository
    hint: look at git remote -v: git ls-remote HUB must list the refs
    ");
}

#[test]
fn of_two_who_start_a_fleet_at_once_the_second_joins_it() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let waits = "#!/bin/sh\ncase $1 in refs/crew/repo/_fleet)\n\
                 mkdir $NOTES/first || exit 0; until test -e $NOTES/go; do sleep 0.05; done ;; esac\n";
    crate::sandbox::write_executable(&world.hub().join("hooks/update"), waits);
    let late = world.start(&["--push"]);
    world.until_noted("first");
    let other = world.run(&["--push"]);
    world.allow("go");
    let late = late.wait(LONG);
    assert_eq!((other.code(), late.code()), (0, 0), "{other:#?} {late:#?}");
    assert_eq!(world.begun("a"), [1]);
}

#[test]
fn what_the_remote_has_of_a_branch_stays_though_it_takes_no_more() {
    let world = FleetWorld::new(TWO).tasks(&["a"], "").shared().ready();
    let hook = world.hub().join("hooks/update");
    let refuses = "#!/bin/sh\ncase $1 in refs/heads/fleet/repo/a)\n\
                   case $2 in 0000*) ;; *) echo 'too large' >&2; exit 1 ;; esac ;; esac\n";
    crate::sandbox::write_executable(&hook, refuses);
    let ran = world.run(&["--push"]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert!(world.why("a").contains("too large"), "{}", world.why("a"));
    assert_eq!(world.work("a", "work-a"), "1\n", "the first iteration stays there");
    let here = world.sandbox.git(&["show", "fleet/repo/a:work-a"]);
    assert_eq!(here, "1\n2", "and the second one here");
}

#[test]
fn a_main_that_the_remote_does_not_take_needs_a_person_and_says_why() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let hook = world.hub().join("hooks/update");
    let refuses =
        "#!/bin/sh\ncase $1 in refs/heads/main)\necho 'main is protected' >&2; exit 1 ;; esac\n";
    crate::sandbox::write_executable(&hook, refuses);
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    assert_eq!(world.state("a"), "blocked");
    let why = world.why("a");
    assert!(why.starts_with("push failed: main is not taken: "), "{why}");
    assert!(why.contains("main is protected (--land pr opens"), "{why}");
    assert_eq!(world.work("a", "work-a"), "1\n", "the work is on its branch there");
    assert_eq!(world.git_there(&["for-each-ref", "refs/crew/repo/_land"]), "", "nobody lands");
}

#[test]
fn a_job_of_a_remote_leaves_the_fleet_of_that_name_that_is_of_this_machine_alone() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let kept = || {
        let folder = world.sandbox.crew_home().join("fleets/repo");
        ["fleet.json", "tasks/a.json"].map(|file| std::fs::read(folder.join(file)).unwrap())
    };
    let before = kept();
    let hub = world.hub().display().to_string();
    world.sandbox.git(&["init", "--quiet", "--bare", "--initial-branch=main", &hub]);
    world.sandbox.git(&["remote", "add", "origin", &hub]);
    world.sandbox.git(&["push", "--quiet", "origin", "main"]);
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(["fleet", "run", "tasks", "--yes", "--push"]);
    command.env("CREW_HOME", world.sandbox.root().join("elsewhere"));
    Running::start(command, None).wait(LONG).success();

    let refused = world.crew(&["fleet", "job", "repo", "a", &format!("--remote={hub}")]);
    let expected = format!(
        "crew: there is a fleet repo of {} on this machine\n\
         hint: crew fleet forget repo forgets it here; name = \"NAME\" in fleet.toml makes them two\n",
        world.sandbox.repository().display()
    );
    assert_eq!((refused.code(), &*refused.stderr), (1, &*expected));
    assert!(kept() == before, "its terms and leases are others now");
}

#[test]
fn a_fleet_goes_by_what_a_person_includes_for_the_checkout_and_names_its_own_bare_repository() {
    let sandbox = Sandbox::new();
    let root = sandbox.root().display().to_string();
    let sandbox = sandbox.env("GIT_CONFIG_GLOBAL", &format!("{root}/person.config"));
    let world = FleetWorld::of(sandbox, ONE).tasks(&["a"], "").shared().ready();
    let hub = world.hub().display().to_string();
    let condition = format!("includeIf.gitdir:{}/.path", world.sandbox.repository().display());
    let included = format!("{root}/work.config");
    let address = format!("url.{hub}.insteadOf");
    world.sandbox.git(&["config", "--global", &condition, &included]);
    world.sandbox.git(&["config", "--global", "safe.bareRepository", "explicit"]);
    world.sandbox.git(&["config", "--file", &included, &address, "work:shop"]);
    world.sandbox.git(&["remote", "set-url", "--push", "origin", "work:shop"]);
    let ran = world.run(&["--push"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    world.sandbox.git(&["config", "--global", "--unset", "safe.bareRepository"]);
    assert_eq!(world.work("a", "work-a"), "1\n");
}

#[test]
fn a_loop_of_which_the_remote_does_not_know_yet_waits_for_it_with_its_first_iteration() {
    let agent = format!("! test -e $NOTES/down || touch $NOTES/early; {TWO}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").terms("setup = 'touch $NOTES/down'");
    let world = world.shared().ready();
    world.sandbox.program("ssh", SSH);
    let there = format!("ssh://there{}", world.hub().display());
    world.sandbox.git(&["remote", "set-url", "origin", &there]);
    let running = world.start(&["--push"]);
    world.until("the job has asked for longer than it takes to begin", |world| {
        let job = world.lease("a")["state"]["pid"].to_string();
        world.noted("refused").lines().filter(|line| *line == job).count() > 12
    });
    std::fs::remove_file(world.note("down")).unwrap();
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert!(!world.note("early").exists(), "it began before its lease named it");
}

//! Remotes that are not there for a while, or that do not take what a fleet pushes.

use std::collections::BTreeSet;

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::child::Running;

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
    command.args(["fleet", "run", "tasks", "--yes", "--on", "manual"]);
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

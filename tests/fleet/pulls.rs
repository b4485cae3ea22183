//! Pull requests instead of landings, by a host's command line that keeps what is open in a file.

use super::{FleetWorld, LONG, ONE};
use crate::child::Running;

/// Stays after it has opened its first request.
const GH: &str = r#"case "$1 $2" in
"pr list") grep -s "^$4 " "$NOTES/open" | cut -d' ' -f2 ;;
"pr create")
    echo "$4 https://example.invalid/pull/$4" >> "$NOTES/open"
    if mkdir "$NOTES/here" 2>/dev/null; then while test -d $NOTES; do sleep 0.1; done; fi
    echo "https://example.invalid/pull/$4" ;;
*) echo "what is $*?" >&2; exit 1 ;;
esac"#;

#[test]
fn a_pull_request_is_opened_once_for_each_task_also_by_the_next_attempt() {
    let world = FleetWorld::new(ONE).tasks(&["a", "b"], "").terms("slots = 1").shared().ready();
    world.sandbox.program("gh", GH);
    let running = world.start(&["--land", "pr"]);
    world.until_noted("here");
    world.kill_job("a");
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let open = ["a", "b"]
        .map(|task| format!("fleet/repo/{task} https://example.invalid/pull/fleet/repo/{task}"));
    assert_eq!(world.noted("open").lines().collect::<Vec<_>>(), open);
    for (task, open) in ["a", "b"].into_iter().zip(&open) {
        let address = open.split(' ').nth(1).unwrap();
        assert_eq!(world.lease(task)["state"]["landed"]["request"], address);
        assert_eq!(
            (world.begun(task), world.work(task, &format!("work-{task}"))),
            (vec![1], "1\n".into())
        );
    }
    assert_eq!(world.git_there(&["log", "--format=%s", "main"]), "Tasks\nBegin");
    assert_eq!(world.run(&["--land", "pr"]).code(), 0);
    assert_eq!(world.noted("open").lines().count(), 2);
}

#[test]
fn pull_requests_without_gh_are_refused_before_anything_runs() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    world.sandbox.program("git", "PATH=/usr/bin:/bin; exec git \"$@\"");
    for how in ["--dry-run", "--yes"] {
        let mut command = world.sandbox.command(world.sandbox.build().path());
        command.args(["fleet", "run", "tasks", "--land", "pr", how]);
        command.env("PATH", world.sandbox.root().join("bin"));
        let ran = Running::start(command, None).wait(LONG);
        let expected = "crew: --land pr opens pull requests with gh, which is not on PATH\n\
                        hint: install the GitHub CLI, and log in with gh auth login\n";
        assert_eq!((ran.code(), ran.stderr.as_str()), (1, expected), "{how:?}");
    }
    assert_eq!((world.noted("calls"), world.lease("a")), (String::new(), ().into()));
}

#[test]
fn commits_that_the_remote_lacks_are_told_once_and_a_base_that_it_lacks_starts_nothing() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let told = world.run(&["--land", "--dry-run"]);
    assert_eq!((told.code(), told.stderr.as_str()), (0, ""), "{told:#?}");
    world.sandbox.git(&["commit", "--quiet", "--allow-empty", "--message", "One"]);
    world.sandbox.git(&["commit", "--quiet", "--allow-empty", "--message", "Two"]);
    let note = "crew: main here is 2 commits ahead of origin/main: the tasks start without them\n\
                hint: git push origin main\n";
    let told = world.run(&["--land", "--dry-run"]);
    assert_eq!((told.code(), told.stderr.as_str()), (0, note), "{told:#?}");
    let alone = world.run(&["--dry-run"]);
    assert_eq!((alone.code(), alone.stderr.as_str()), (0, ""), "{alone:#?}");
    let ran = world.run(&["--push", "--slots", "1"]);
    assert_eq!((ran.code(), ran.stderr.matches("ahead").count()), (0, 1), "{ran:#?}");

    let world = world.terms("base = 'next'");
    world.sandbox.git(&["branch", "next"]);
    for how in ["--dry-run", "--yes"] {
        let refused = world.crew(&["fleet", "run", "tasks", "--land", how]);
        let expected = "crew: origin has no branch next\nhint: git push origin next\n";
        assert_eq!((refused.code(), refused.stderr.as_str()), (1, expected), "{how}");
    }
}

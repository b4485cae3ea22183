//! Pull requests instead of landings, with a host's command-line program that keeps open requests
//! in a file.

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE};
use crate::spawned::Running;

/// Does not end after it has opened its first request.
const GH: &str = r#"git remote get-url origin >> "$NOTES/remotes"
case "$1 $2" in
"pr list") grep -s "^$4 " "$NOTES/open" | sed 's/^[^ ]* //; s/$/ 0123abc OPEN /' ;;
"pr create")
    echo "$4 https://example.invalid/pull/$4" >> "$NOTES/open"
    if mkdir "$NOTES/here" 2>/dev/null; then while test -d $NOTES; do sleep 0.1; done; fi
    echo "https://example.invalid/pull/$4" ;;
*) echo "what is $*?" >&2; exit 1 ;;
esac"#;

#[test]
fn each_task_opens_exactly_one_pull_request_whatever_is_killed() {
    // An agent that names another remote leads no request there.
    let agent = format!("git remote set-url origin /elsewhere; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a", "b"], "").terms("slots = 1").shared().ready();
    world.sandbox.program("gh", GH);
    let running = world.start(&["--land", "pr"]);
    world.until_noted("here");
    running.signal(Signal::KILL);
    running.wait(LONG);
    let ran = world.run(&["--land", "pr"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let branches = ["a", "b"].map(|task| format!("fleet/repo/{task}/1"));
    let open = branches.map(|branch| format!("{branch} https://example.invalid/pull/{branch}"));
    let are_open = || {
        assert_eq!(world.noted("open").lines().collect::<Vec<_>>(), open);
        for (task, open) in ["a", "b"].into_iter().zip(&open) {
            let (branch, address) = open.split_once(' ').unwrap();
            assert_eq!(world.task(task)["state"]["landed"]["request"], address);
            assert_eq!(world.shown(branch, &format!("work-{task}")), "1\n");
            assert_eq!(world.begun(task), [1]);
        }
        assert_eq!(world.git_there(&["log", "--format=%s", "main"]), "Tasks\nBegin");
    };
    are_open();
    let hub = world.hub().display().to_string();
    assert!(world.noted("remotes").lines().all(|line| line == hub), "{}", world.noted("remotes"));
    assert_eq!(world.run(&["--land", "pr"]).code(), 0);
    are_open();
    // A start that lands takes what is in requests to main, too.
    assert_eq!(world.run(&["--land"]).code(), 0);
    for task in ["a", "b"] {
        assert_eq!(world.shown("main", &format!("work-{task}")), "1\n");
        assert_eq!(world.begun(task), [1]);
    }
}

#[test]
fn a_task_after_a_pull_request_whose_branch_was_deleted_builds_on_its_commit() {
    let agent = format!("ls > \"$NOTES/seen-$task\"; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").tasks(&["b"], "after = \"a\"");
    let world = world.with_nodes();
    world.sandbox.program("gh", &GH.replace("mkdir", "false"));
    let running = world.start(&["--on", "nodes", "--land", "pr"]);
    world.until_noted("scripts/a.1");
    world.crew(&["pause", "repo/b"]).success();
    let first = world.on("m1").runs("a.1").wait(LONG);
    std::fs::write(world.note("status.a.1"), "done").unwrap();
    assert_eq!(first.code(), 0, "{first:#?}");
    // Nothing is pushed while the remote is cleared.
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (130, "completed".into()), "{ran:#?}");
    world.git_there(&["update-ref", "-d", "refs/heads/fleet/repo/a/1"]);
    world.git_there(&["gc", "--quiet", "--prune=now"]);
    world.crew(&["resume", "repo/b"]).success();
    let running = world.start(&["--on", "nodes", "--land", "pr"]);
    world.until_noted("scripts/b.1");
    let second = world.on("m2").runs("b.1").wait(LONG);
    std::fs::write(world.note("status.b.1"), "done").unwrap();
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?} {second:#?}");
    assert!(world.noted("seen-b").contains("work-a"), "{}", world.noted("seen-b"));
}

#[test]
fn pull_requests_without_gh_are_refused_before_anything_runs() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    world.sandbox.program("git", "PATH=/usr/bin:/bin; exec git \"$@\"");
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(["fleet", "run", "tasks", "--land", "pr", "--yes"]);
    command.env("PATH", world.sandbox.root().join("bin"));
    let ran = Running::start(command, None).wait(LONG);
    let why = "--land pr opens pull requests with gh, which is not on PATH: \
               install the GitHub CLI, and log in with gh auth login\n";
    assert!(ran.code() == 1 && ran.stderr.contains(why), "{ran:#?}");
    assert_eq!((world.noted("calls"), world.task("a")), (String::new(), ().into()));
}

/// A host that cannot be reached until the note `back` exists.
const BACK: &str = r#"echo "$1 $2" >> "$NOTES/asked"
[ "$1 $2" != "pr create" ] || echo "https://example.invalid/pull/1"
test -e "$NOTES/back" || { echo "error connecting to api.github.com" >&2; exit 1; }"#;

#[test]
fn a_task_cancelled_while_the_host_is_unreachable_opens_no_pull_request_later() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    world.sandbox.program("gh", BACK);
    let running = world.start(&["--land", "pr"]);
    world.until_noted("asked");
    world.crew(&["cancel", "repo/a"]).success();
    world.allow("back");
    let ran = running.wait(LONG);
    assert_eq!((world.state("a"), ran.code()), ("cancelled".into(), 14), "{ran:#?}");
    assert!(!world.noted("asked").contains("create"), "{}", world.noted("asked"));
}

//! Pull requests instead of landings, by a host's command line that keeps what is open in a file.

use super::{FleetWorld, LONG, ONE};
use crate::child::Running;

/// Stays after it has opened its first request.
const GH: &str = r#"case "$1 $2" in
"pr list") grep -s "^$4 " "$NOTES/open" | sed 's/^[^ ]* //; s/$/ 0123abc OPEN /' ;;
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

/// A host that is away at first, and then has these requests of every branch.
const AWAY: &str = r#"echo "$1 $2" >> "$NOTES/asked"
if [ "$(grep -c . "$NOTES/asked")" -lt 3 ]; then
    echo "error connecting to api.github.com" >&2
    echo "check your internet connection or https://githubstatus.com" >&2
    exit 1
fi
case "$1 $2" in
"pr list") cat "$NOTES/requests" ;;
*) echo "pull request create failed: GraphQL: No commits between main and $4" >&2; exit 1 ;;
esac"#;

#[test]
fn a_request_that_was_merged_before_the_lease_named_it_has_landed_and_a_host_may_be_away() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    world.sandbox.program("gh", GH);
    let running = world.start(&["--land", "pr"]);
    world.until_noted("here");
    let commit = world.git_there(&["rev-parse", "fleet/repo/a"]);
    let requests =
        ["https://h/1 0000000 MERGED 4567def", &format!("https://h/2 {commit} MERGED 0123abc")];
    std::fs::write(world.note("requests"), requests.join("\n")).unwrap();
    world.sandbox.program("gh", AWAY);
    delete_branch(&world, "a");
    world.kill_job("a");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (0, "completed".into()), "{ran:#?}");
    assert_eq!(world.lease("a")["state"]["landed"].to_string(), "{\"main\":\"0123abc\"}");
    assert_eq!((world.noted("asked"), world.begun("a")), ("pr list\n".repeat(3), vec![1]));
}

/// Removes a task's branch from the remote, and what only that held.
fn delete_branch(world: &FleetWorld, task: &str) {
    world.git_there(&["update-ref", "-d", &format!("refs/heads/fleet/repo/{task}")]);
    world.git_there(&["gc", "--quiet", "--prune=now"]);
}

#[test]
fn a_task_after_a_request_whose_branch_is_gone_builds_on_its_commit_or_else_on_main() {
    let agent = format!("ls > \"$NOTES/seen-$task\"; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").tasks(&["b", "c"], "after = \"a\"");
    let world = world.shared().ready();
    world.sandbox.program("gh", &GH.replace("mkdir", "false"));
    world.record(&["--land", "pr"]);
    assert_eq!(world.on("m1").job("a").wait(LONG).code(), 0);
    delete_branch(&world, "a");
    let [c, b] = [("m2", "c"), ("m1", "b")].map(|(name, task)| world.on(name).job(task).wait(LONG));
    assert_eq!((b.code(), c.code()), (0, 0), "{b:#?} {c:#?}");
    let sees = ["seen-b", "seen-c"].map(|note| world.noted(note).contains("work-a"));
    assert_eq!(sees, [true, false], "the other machine never had the commit");
    let told = "the branch fleet/repo/a is gone: a is taken from main alone";
    assert_eq!([b, c].map(|ran| format!("{ran:?}").contains(told)), [false, true]);
}

#[test]
fn a_task_after_one_whose_work_is_nowhere_says_what_to_push() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").tasks(&["b"], "after = \"a\"").by_hand(&[]);
    assert_eq!(world.on("m1").job("a").wait(LONG).code(), 0);
    delete_branch(&world, "a");
    let ran = world.on("m2").job("b").wait(LONG);
    let why =
        "the remote has no branch fleet/repo/a, which comes before: push it again, then --retry";
    assert_eq!((world.state("b"), world.why("b").as_str()), ("error".into(), why), "{ran:#?}");
}

#[test]
fn a_request_stays_one_also_once_the_fleet_lands_on_main() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    world.sandbox.program("gh", &GH.replace("mkdir", "false"));
    assert_eq!(world.run(&["--land", "pr"]).code(), 0);
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("a")), (0, "completed".into()), "{ran:#?}");
    let landed = world.lease("a")["state"]["landed"].to_string();
    assert!(landed.contains("\"request\""), "{landed}");
    assert_eq!(world.git_there(&["log", "--format=%s", "main"]), "Tasks\nBegin");
}

#[test]
fn an_agent_that_names_another_remote_leads_no_request_there() {
    let agent = format!("git remote set-url origin /elsewhere; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").shared().ready();
    let notes = "git remote get-url origin >> \"$NOTES/remote\"";
    world.sandbox.program("gh", &format!("{notes}\n{}", GH.replace("mkdir", "false")));
    let ran = world.run(&["--land", "pr"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let hub = format!("{}\n", world.hub().display());
    assert_eq!(world.noted("remote"), hub.repeat(2));
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
        let expected = "crew: origin has no branch next for the tasks to start from\n\
                        hint: push it there, or base = \"BRANCH\" in fleet.toml names one that origin has\n";
        assert_eq!((refused.code(), refused.stderr.as_str()), (1, expected), "{how}");
    }
}

/// A host that is away until the note `back`.
const BACK: &str = r#"echo "$1 $2" >> "$NOTES/asked"
[ "$1 $2" != "pr create" ] || echo "https://example.invalid/pull/1"
test -e "$NOTES/back" || { echo "error connecting to api.github.com" >&2; exit 1; }"#;

#[test]
fn a_task_that_is_cancelled_while_the_host_is_away_opens_no_request_later() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    world.sandbox.program("gh", BACK);
    let running = world.start(&["--land", "pr"]);
    world.until_noted("asked");
    world.crew(&["fleet", "cancel", "a"]).success();
    world.allow("back");
    let ran = running.wait(LONG);
    assert_eq!((world.state("a"), ran.code()), ("cancelled".into(), 10), "{ran:#?}");
    assert!(!world.noted("asked").contains("create"), "{}", world.noted("asked"));
}

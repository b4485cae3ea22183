//! Pull requests instead of landings, by a host's command line that keeps what is open in a file.

use super::{FleetWorld, LONG, ONE};

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

//! Requests and endings when the disk of crew's home is full: in a separate mount, which needs a
//! system that allows users to make one. Elsewhere the test is skipped with a message.

use std::process::Command;

use super::World;
use crate::sandbox::{DEADLINE, Sandbox};
use crate::spawned::{Ran, Running};

/// A step that fills the disk to its last byte, says so, and continues for a while.
const FILL: &str = "echo filling; dd if=/dev/zero of=\"$CREW_HOME/fill\" bs=64k 2> /dev/null; \
    dd if=/dev/zero of=\"$CREW_HOME/more\" bs=1 2> /dev/null; touch \"$notes/full\"; \
    until test -e \"$notes/go\"; do sleep 0.02; done; echo went on >> work.txt";

const SKIPPED: &str = "skipped: this system lets nobody mount a disk of their own";

/// Whether this system allows users to make a private mount.
pub(super) fn may_mount() -> bool {
    let may = Command::new("unshare").args(["-rm", "true"]).output();
    may.is_ok_and(|ended| ended.status.success())
}

/// Runs a script of `sh` in which `$CREW_HOME` is a small disk and `crew` the program; `None` if
/// the system allows no such mount.
fn on_a_small_disk(world: &World, script: &str) -> Option<Ran> {
    if !may_mount() {
        return None;
    }
    let build = world.sandbox.build();
    world.sandbox.program("crew", &format!("exec '{}' \"$@\"", build.path().display()));
    let begin = "mkdir -p \"$CREW_HOME\"; mount -t tmpfs -o size=2m tmpfs \"$CREW_HOME\"; cd .; \
        full() { until test -e \"$notes/full\"; do sleep 0.02; done; }";
    let mut command = world.sandbox.command("unshare");
    command.args(["-rm", "sh", "-c", &format!("{begin}\n{script}")]).env("notes", world.note(""));
    Some(Running::start(command, None).wait(DEADLINE))
}

#[test]
fn requests_on_a_full_disk_are_accepted_carried_out_and_recorded() {
    for (order, shown, run, standing) in [
        ("cancel", "cancelled", 14, "cancelled"),
        ("cancel --reason enough", "cancelled", 14, "enough"),
        ("pause --now", "paused after 0", 130, "paused after 0 iterations"),
        ("pause", "pauses when iteration 1 ends", 130, "paused after 1 iteration"),
    ] {
        let world = World::of(Sandbox::new(), &[FILL]);
        let script = format!(
            "crew run 'Do it' > \"$notes/out\" 2>&1 & full\n\
             crew {order}; echo \"ordered $?\"; touch \"$notes/go\"\n\
             wait $!; echo \"ran $?\"; rm \"$CREW_HOME/fill\"; crew status"
        );
        let Some(ran) = on_a_small_disk(&world, &script) else { return println!("{SKIPPED}") };
        assert!(ran.stdout.contains(shown), "{order}: {ran:#?}");
        for line in ["ordered 0".to_owned(), format!("ran {run}")] {
            assert!(ran.stdout.contains(&line), "{order}: {line}: {ran:#?}");
        }
        let (_, status) = ran.stdout.split_once("ran ").unwrap();
        assert!(status.contains(standing), "{order}: {ran:#?}");
    }
}

#[test]
fn a_run_that_ends_on_a_full_disk_is_recorded_as_over() {
    let fill = format!("touch \"$notes/go\"; {FILL}; echo '<promise>COMPLETE</promise>'");
    let world = World::of(Sandbox::new(), &[&fill]);
    // Longer than the space that removing small files frees.
    world.sandbox.write("TASK.md", &"do it ".repeat(10_000));
    let script = "crew run --prompt-file TASK.md --gate true; echo \"ran $?\"; crew status; echo \"status $?\"";
    let Some(ran) = on_a_small_disk(&world, script) else { return println!("{SKIPPED}") };
    let (run, status) = ran.stdout.split_once("ran 0\n").unwrap_or_else(|| panic!("{ran:#?}"));
    assert!(run.contains("completed"), "{ran:#?}");
    assert!(status.contains("completed") && status.ends_with("status 0\n"), "{ran:#?}");
}

#[test]
fn a_start_on_a_full_disk_names_the_path_and_starts_nothing() {
    let world = World::of(Sandbox::new(), &["true"]);
    let script = "dd if=/dev/zero of=\"$CREW_HOME/fill\" bs=4k 2> /dev/null; \
        crew run 'Do it'; echo \"ran $?\"; rm \"$CREW_HOME/fill\"; crew status --all";
    let Some(ran) = on_a_small_disk(&world, script) else { return println!("{SKIPPED}") };
    assert!(ran.stdout.contains("ran 1\nno loops on this machine: "), "{ran:#?}");
    let first = ran.stderr.lines().next().unwrap_or_default();
    assert!(first.contains("/crew/") && first.contains("No space left"), "{ran:#?}");
    assert!(ran.stderr.contains("hint: free some space on its disk"), "{ran:#?}");
    assert_eq!(world.calls(), 0);
}

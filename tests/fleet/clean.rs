//! What `crew fleet clean` removes, what it leaves, and when it refuses.

use std::path::{Path, PathBuf};

use super::{FleetWorld, LONG, ONE};
use crate::spawned::{Ran, Running};

/// A task that lands, and one that ends undone with its work.
const TERMS: &str = "verify = [\"false\"]\nmax-iterations = 1";

impl FleetWorld {
    fn folder(&self) -> PathBuf {
        self.sandbox.crew_home().join("fleets/repo")
    }

    /// Runs the subcommand with additional variables.
    #[track_caller]
    fn clean(&self, more: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = self.sandbox.command(self.sandbox.build().path());
        command.args(["fleet", "clean"]).args(more).envs(variables.iter().copied());
        Running::start(command, None).wait(LONG)
    }

    /// The refs of crew and of this fleet, here or at the remote.
    fn refs(&self, folder: &Path) -> Vec<String> {
        let folder = folder.display().to_string();
        let all = self.sandbox.git(&["-C", &folder, "for-each-ref", "--format=%(refname)"]);
        let is_ours = |name: &&str| name.contains("crew/") || name.contains("heads/fleet/");
        all.lines().filter(is_ours).map(str::to_owned).collect()
    }
}

#[test]
fn finished_tasks_are_removed_locally_and_at_the_remote_and_others_keep_their_work() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").tasks(&["b"], TERMS).shared().ready();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let clone = world.clone_of("b");
    // An earlier attempt at a task that landed, whose commits were brought here and rebased since,
    // and what somebody else pushed, which a person has fetched.
    let hub = world.hub().display().to_string();
    for (number, to) in [(7, "crew/repo/a"), (8, "origin/theirs")] {
        let commit = world.git_there(&["commit-tree", "-m", to, "main^{tree}"]);
        let name = format!("refs/heads/fleet/repo/a/{number}");
        world.git_there(&["update-ref", &name, &commit]);
        world.sandbox.git(&["fetch", "--quiet", &hub, &format!("+{name}:refs/remotes/{to}")]);
    }
    world.sandbox.git(&["update-ref", "refs/remotes/crew/repo/a", "main"]);
    let cleaned = world.clean(&["repo", "--yes"], &[]);
    let theirs = ["refs/heads/fleet/repo/a/8"];
    let left = world.refs(&world.hub()).into_iter().filter(|name| name.contains("/a/"));
    assert_eq!(left.collect::<Vec<_>>(), theirs, "{cleaned:#?}");
    assert!(cleaned.stderr.contains(&format!("{}: its work is not on main", theirs[0])));
    assert_eq!(cleaned.code(), 0, "{cleaned:#?}");
    assert!(clone.is_dir() && world.state("b") == "exhausted", "{cleaned:#?}");
    assert_eq!(
        (world.work("a", "work-a"), world.work("b", "work-b")),
        (String::new(), "1\n".into())
    );
    assert!(world.refs(&world.hub()).iter().any(|name| name.ends_with("/record")));

    world.crew(&["cancel", "repo/b"]).success();
    assert_eq!(world.run(&["--land"]).code(), 10);
    let listed = world.clean(&["repo"], &[]);
    assert_eq!(listed.code(), 2, "nobody can be asked here: {listed:#?}");
    assert!(clone.is_dir(), "{listed:#?}");
    let cleaned = world.clean(&["repo", "--yes"], &[]);
    assert!(cleaned.stderr.contains("refs/remotes/crew/repo/b: its work is not on main"));
    assert!(!world.folder().exists(), "{cleaned:#?}");
    assert_eq!(world.refs(&world.hub()), theirs);
    assert_eq!(world.refs(&world.sandbox.repository()), ["refs/remotes/crew/repo/b"]);
    assert_eq!(world.work("b", "work-b"), "1\n");

    let none = world.crew(&["fleet", "status"]);
    assert_eq!(none.code(), 1, "{none:#?}");
    let again = world.run(&["--land"]);
    assert_eq!((again.code(), world.begun("b")), (10, vec![1, 1]), "it begins anew: {again:#?}");
}

#[test]
fn a_commit_that_only_a_clone_has_is_kept_when_the_clone_is_removed() {
    let agent = "echo $call > aside; git add aside; git stash --quiet
        git checkout --quiet -b own; echo $call > own; git add own; git commit --quiet -m own
        git checkout --quiet -; echo $call > work-$task; claim";
    let world = FleetWorld::new(agent).tasks(&["a"], TERMS).ready();
    assert_eq!(world.run(&[]).code(), 10);
    world.crew(&["cancel", "repo/a"]).success();
    assert_eq!(world.run(&[]).code(), 14);
    let cleaned = world.clean(&["--yes"], &[]);
    let kept = world.refs(&world.sandbox.repository());
    let kept: Vec<&String> =
        kept.iter().filter(|name| name.starts_with("refs/crew/kept/repo/a/1")).collect();
    assert_eq!(kept.len(), 2, "the stash and the branch: {cleaned:#?}");
    for name in kept {
        assert!(cleaned.stderr.contains(&**name), "{name}: {cleaned:#?}");
    }
    assert!(!world.folder().join("a.1").exists());
}

#[test]
fn nothing_is_removed_by_an_agent_by_a_wrong_name_or_while_it_is_in_use() {
    let world = FleetWorld::new(&format!("wait_for go; {ONE}")).tasks(&["a"], "").ready();
    let running = world.start(&[]);
    world.until("its agent works", |world| world.begun("a") == [1]);
    let refused = world.clean(&["repo", "--yes"], &[]);
    assert!(refused.code() == 1 && refused.stderr.contains("is coordinated now"), "{refused:#?}");
    world.allow("go");
    assert_eq!(running.wait(LONG).code(), 0);

    let refused = world.clean(&["repo", "--yes"], &[("CLAUDECODE", "1")]);
    assert!(refused.code() == 1 && refused.stderr.contains("an agent cannot"), "{refused:#?}");
    for name in ["rep", "..", ".", "repo/a", "../fleets/repo"] {
        let refused = world.clean(&[name, "--yes"], &[]);
        assert!(refused.code() == 1 && refused.stderr.contains("repo\n"), "{refused:#?}");
    }
    assert_eq!((world.state("a"), world.work("a", "work-a")), ("completed".into(), "1\n".into()));
    // Its work is only on a branch, so it is not settled.
    let nothing = world.clean(&["repo", "--yes"], &[]).success();
    assert!(nothing.contains("nothing to remove"), "{nothing}");
    assert!(world.clone_of("a").is_dir());
}

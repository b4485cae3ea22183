//! What real repositories lack for a fleet.

use super::*;
use crate::drive::failure::failure_of;
use crate::fleet::record::FleetLimits;
use crate::fleet::tasks::DescribedFleet;
use crate::fleet::tasks::fixture::Yard;

fn check_yard(yard: &Yard) -> Result<Vec<String>> {
    let DescribedFleet { terms, tasks, .. } = yard.landing();
    check_start(&yard.home, &terms, &tasks)
}

fn refusal_of(yard: &Yard) -> String {
    failure_of(&check_yard(yard).expect_err("something is missing")).with_hint()
}

#[test]
fn a_repository_in_order_is_left_unchanged() {
    let yard = Yard::new();
    let refs = || [yard.git("shop", &["for-each-ref"]), yard.git("origin.git", &["for-each-ref"])];
    let before = refs();
    assert_eq!(check_yard(&yard).unwrap(), [""; 0]);
    assert_eq!(refs(), before);
}

#[test]
fn all_that_is_missing_is_reported_together_each_with_its_fix() {
    let yard = Yard::new();
    yard.git("shop", &["config", "user.name", ""]);
    yard.git("origin.git", &["config", "receive.advertiseAtomic", "false"]);
    yard.write("shop/.git/packed-refs.lock", "");
    yard.git("shop", &["update-ref", "refs/remotes/crew/shop", "HEAD"]);
    let why = refusal_of(&yard);
    for (what, fix) in [
        ("git does not know who commits", "git config user.name"),
        ("atomic", "remote"),
        ("packed-refs.lock", "rm "),
        ("refs/remotes/crew/shop is in the way", "git update-ref -d refs/remotes/crew/shop"),
    ] {
        let line = why.lines().find(|line| line.contains(what));
        assert!(line.is_some_and(|line| line.contains(fix)), "{what}: {why}");
    }
    assert_eq!(why.lines().count(), 6, "{why}");
}

#[test]
fn a_conflicting_branch_at_the_remote_is_named() {
    for branch in ["fleet", "fleet/shop", "fleet/shop/a", "fleet/shop/a/1/x"] {
        let yard = Yard::new();
        yard.git("shop", &["push", "-q", "origin", &format!("main:refs/heads/{branch}")]);
        let why = refusal_of(&yard);
        assert!(why.contains(&format!("{branch} at origin is in the way")), "{why}");
    }
    let yard = Yard::new();
    for branch in ["fleet/shop/a/1", "fleets", "fleet/shopping"] {
        yard.git("shop", &["push", "-q", "origin", &format!("main:refs/heads/{branch}")]);
    }
    yard.git("shop", &["branch", "fleet"]);
    yard.git("shop", &["tag", "fleet"]);
    yard.git("shop", &["tag", "main"]);
    assert!(check_yard(&yard).is_ok());
}

#[test]
fn a_remote_that_lacks_the_base_or_its_commits_or_does_not_answer_is_reported() {
    let yard = Yard::new();
    yard.commit("second");
    let notes = check_yard(&yard).unwrap();
    assert!(notes[0].starts_with("main here is 1 commit ahead of origin/main"), "{notes:?}");
    yard.write("shop/tasks/fleet.toml", "base = 'other'");
    yard.git("shop", &["branch", "other"]);
    let why = refusal_of(&yard);
    assert!(why.contains("origin has no branch other for the tasks to start from"), "{why}");
    disk::rename(&yard.path("origin.git"), &yard.path("away")).unwrap();
    let why = refusal_of(&yard);
    assert!(why.contains("the remote origin cannot be used: "), "{why}");
    assert!(why.contains("without --push, --land and --on it is not needed"), "{why}");
}

#[test]
fn a_remote_that_refuses_the_refs_of_fleets_is_reported() {
    let yard = Yard::new();
    let hook = yard.path("origin.git/hooks/update");
    yard.write("origin.git/hooks/update", "#!/bin/sh\ncase $1 in refs/crew/*) exit 1; esac\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(hook, mode).unwrap();
    let why = refusal_of(&yard);
    assert!(why.contains("the remote origin cannot be used") || why.contains("refs/crew"), "{why}");
}

#[test]
fn a_submodule_with_a_missing_commit_is_an_error_and_one_not_checked_out_a_note() {
    let yard = Yard::new();
    yard.git("shop", &["init", "-q", "sub"]);
    let absent = "1".repeat(40);
    for path in ["sub", "lib"] {
        let entry = format!("160000,{absent},{path}");
        yard.git("shop", &["update-index", "--add", "--cacheinfo", &entry]);
    }
    let module =
        |path: &str| format!("[submodule \"{path}\"]\n\tpath = {path}\n\turl = ../{path}\n");
    yard.write("shop/.gitmodules", &["sub", "lib"].map(module).concat());
    yard.git("shop", &["add", ".gitmodules"]);
    yard.git("shop", &["commit", "-qm", "modules"]);
    yard.git("shop", &["push", "-q", "origin", "main"]);
    let why = refusal_of(&yard);
    assert!(why.contains("the commit of the submodule sub that main names is not here"), "{why}");
    assert!(why.contains("git submodule update --init sub"), "{why}");
    yard.git("shop", &["update-index", "--force-remove", "sub"]);
    yard.git("shop", &["commit", "-qm", "without it"]);
    yard.git("shop", &["push", "-q", "origin", "main"]);
    let notes = check_yard(&yard).unwrap();
    assert!(notes[0].contains("start without them: lib"), "{notes:?}");
}

#[test]
fn the_disk_needs_space_only_for_clones_that_do_not_exist_yet() {
    let yard = Yard::new();
    let DescribedFleet { terms, tasks, .. } = yard.landing();
    let terms = FleetTerms { limits: FleetLimits { slots: 2, ..terms.limits }, ..terms };
    let (missing, notes) = (Vec::new(), Vec::new());
    let preflight = Preflight { terms: &terms, tasks: &tasks, missing, notes };
    assert_eq!(preflight.missing_clones(&yard.home), 3);
    let files = FleetFiles::new(&yard.home, "shop");
    for folder in [files.clone_of(&tasks[0].task.id, 2), files.land()] {
        disk::make_folder(&folder).unwrap();
    }
    assert_eq!(preflight.missing_clones(&yard.home), 1);
}

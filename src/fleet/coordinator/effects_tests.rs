//! Branches of a remote, as the user and others leave them there.

use tempfile::TempDir;

use super::*;
use crate::fleet::fixture::{id, some_terms};
use crate::fleet::record::FleetTerms;
use engine::fleet::{LandingMode, Remote};
use world::process::signals::Signals;
use world::process::{Call, ExitCause};

const BRANCH: &str = "fleet/shop/vat/1";

/// A repository with one commit and a remote.
struct Yard {
    root: TempDir,
    terms: FleetTerms,
    access: RemoteAccess,
}

impl Yard {
    fn new() -> Self {
        let root = testkit::folder();
        let top = disk::real_path(root.path()).unwrap();
        let mut terms = some_terms(LandingMode::Main);
        terms.repository = top.join("repo");
        let url = top.join("hub.git").display().to_string();
        terms.remote = Some(Remote { name: "origin".to_owned(), url });
        let access = RemoteAccess::for_terms(&terms, &Signals::default()).unwrap();
        let yard = Self { root, terms, access };
        yard.sh("git init -q --bare hub.git; git init -q -b main repo; cd repo
            git config user.name A; git config user.email a@example.com");
        yard.commit("first");
        yard
    }

    fn sh(&self, line: &str) -> String {
        let ended = Call::shell(line, self.root.path()).run(|| false).unwrap();
        assert_eq!(ended.cause(), ExitCause::Exit(0), "{line}: {}", ended.text());
        ended.text().trim().to_owned()
    }

    /// A new commit on the first one.
    fn commit(&self, words: &str) -> String {
        let line = format!(
            "cd repo; git reset -q --hard $(git rev-list --max-parents=0 --all)
            git commit -q --allow-empty -m {words}; git rev-parse HEAD"
        );
        self.sh(&line)
    }

    /// The commit of a branch at the remote.
    fn there(&self, branch: &str) -> Option<String> {
        self.access.find_ref(&format!("refs/heads/{branch}")).unwrap()
    }

    fn bring(&self, commit: &str) -> Vec<String> {
        let vat = id("vat");
        let tracked = clones::tracking_ref("shop", &vat);
        git::remotes::point_ref(&self.access.repository, &tracked, commit).unwrap();
        clones::known_commits(&self.terms, &vat, None)
    }
}

#[test]
fn a_pushed_branch_replaces_only_commits_of_its_own_task() {
    let yard = Yard::new();
    let work = ["one", "two", "three"].map(|words| yard.commit(words));
    for commit in &work {
        let known = yard.bring(commit);
        push_commit(&yard.access, BRANCH, commit, &known, None).unwrap();
        assert_eq!(yard.there(BRANCH).as_ref(), Some(commit));
    }
    // A push whose answer and whose record were lost was of an earlier one.
    yard.sh(&format!("cd repo; git push -qf ../hub.git {}:refs/heads/{BRANCH}", work[1]));
    let newest = yard.commit("four");
    let known = yard.bring(&newest);
    push_commit(&yard.access, BRANCH, &newest, &known, None).unwrap();

    let theirs = yard.sh(&format!(
        "cd repo; git checkout -q {newest}; git commit -q --allow-empty -m theirs
        git push -q ../hub.git HEAD:refs/heads/{BRANCH}; git rev-parse HEAD"
    ));
    let next = yard.commit("five");
    let known = yard.bring(&next);
    let refused = push_commit(&yard.access, BRANCH, &next, &known, None).unwrap_err();
    assert_eq!(refused.trouble, GitTrouble::NonFastForward, "{refused}");
    assert_eq!(yard.there(BRANCH), Some(theirs), "though their commit is here");
}

#[test]
fn the_branches_of_a_task_are_deleted_only_if_nobody_else_has_changed_them() {
    let yard = Yard::new();
    let [earlier, own, theirs] = ["earlier", "own", "theirs"].map(|words| yard.commit(words));
    yard.bring(&earlier);
    let known = yard.bring(&own);
    for (number, commit) in [(1, &earlier), (2, &own), (3, &theirs)] {
        yard.sh(&format!(
            "cd repo; git push -q ../hub.git {commit}:refs/heads/fleet/shop/vat/{number}"
        ));
    }
    delete_refs(&yard.access, "refs/heads/fleet/shop/vat/*", &known).unwrap();
    let left = [1, 2, 3].map(|number| yard.there(&format!("fleet/shop/vat/{number}")));
    assert_eq!(left, [None, None, Some(theirs)]);
}

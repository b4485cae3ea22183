//! Clones for attempts, of repositories of every kind, and what is brought back from a clone in
//! which an agent has worked.

use std::path::Path;

use super::{Drafts, Steps, Yard};
use crate::files::disk;
use crate::git::clone::{CloneSource, CloneTerms, bring_branch, clone_local, clone_remote};
use crate::git::clone::{fetch_base, keep_strays};
use crate::git::commit::commit_changes;
use crate::git::steps::{put_back_in, read_head_state, stays_inside};
use crate::git::sync::rebase_branch;
use engine::git::{GitBaseline, GitStep, GitTrouble};
use engine::record::Place;

const BRANCH: &str = "fleet/shop/vat/1";

fn terms(start: Option<&str>) -> CloneTerms<'_> {
    CloneTerms { base: "main", branch: BRANCH, start, stop: &|| false }
}

/// Clones `from` to `to` and returns the notes.
fn cloned_of(yard: &Yard, from: &str, url: Option<&str>, to: &str) -> Vec<String> {
    let trusted = crate::git::steps::read_trusted(&yard.path(from));
    cloned_as(yard, from, url, to, trusted.as_ref())
}

fn cloned_as(
    yard: &Yard,
    from: &str,
    url: Option<&str>,
    to: &str,
    trusted: Option<&GitBaseline>,
) -> Vec<String> {
    let checkout = yard.path(from);
    let source = CloneSource { checkout: &checkout, url, trusted };
    clone_local(&source, &terms(None), &yard.path(to)).unwrap()
}

/// Everything of a repository that an agent must not change: its refs, reflogs, configuration,
/// hooks and objects.
fn state(yard: &Yard, name: &str) -> String {
    let list = "cd \"$(git rev-parse --absolute-git-dir)\" && find . -type f ! -name index | sort |
        xargs -d '\\n' sha256sum";
    yard.sh(name, list)
}

#[test]
fn a_clone_has_only_the_branch_and_the_base_and_shares_the_objects() {
    let yard = Yard::with_origin();
    let address = yard.git("repo", &["remote", "get-url", "origin"]);
    yard.sh("repo", "git tag v1; git branch other; echo x > file; git stash -q; git gc -q");
    yard.commit_file("repo", "two words/ü", "two\n");
    yard.git("repo", &["push", "-q"]);
    yard.sh(
        "repo",
        "printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/*",
    );
    yard.write("repo/.git/info/exclude", "*.tmp\n");
    let before = state(&yard, "repo");
    let notes = cloned_of(&yard, "repo", Some(address.trim()), "c/v a.1");
    assert_eq!((notes, state(&yard, "repo")), (vec![], before));
    let refs = yard.git("c/v a.1", &["for-each-ref", "--format=%(refname)"]);
    let expected = format!("refs/heads/{BRANCH}\nrefs/heads/main\nrefs/remotes/origin/main\n");
    assert_eq!(refs, expected);
    assert_eq!(yard.git("c/v a.1", &["branch", "--show-current"]).trim(), BRANCH);
    assert_eq!(yard.read("c/v a.1/two words/ü"), "two\n");
    assert_eq!(yard.git("c/v a.1", &["status", "--porcelain"]), "");
    assert_eq!(yard.read("c/v a.1/.git/info/exclude"), "*.tmp\n");
    assert_eq!(yard.sh("c/v a.1", "ls .git/hooks 2> /dev/null | wc -l").trim(), "0");
    assert_eq!(yard.sh("c/v a.1", "git stash list; ls .git/objects/info"), "");
    let pack = "stat -c %h .git/objects/pack/*.pack";
    assert_eq!(yard.sh("c/v a.1", pack).trim(), "2");
    let pushed = yard.sh("c/v a.1", "git push origin HEAD:x 2>&1 || echo refused");
    assert!(pushed.contains("push-is-disabled") && pushed.contains("refused"), "{pushed}");
    yard.git("c/v a.1", &["fetch", "-q", "origin"]);
    fetch_base(&yard.path("c/v a.1"), "main", &|| false).unwrap();
    // What fsck finds missing would be missing for the agent.
    yard.git("c/v a.1", &["fsck", "--full"]);
}

#[test]
fn repositories_of_every_kind_are_cloned_whole() {
    let make = [
        // Shallow, with the history of one commit.
        "git clone -q --depth 1 file://$PWD/origin.git kind",
        // Borrowing from two others.
        "git clone -q --shared repo middle; git clone -q --shared middle kind",
        // A linked working tree; one of a bare repository.
        "git -C repo worktree add -q ../kind 2> /dev/null; git -C kind checkout -q -B side main",
        "git clone -q --bare repo proj/.bare; git -C proj/.bare worktree add -q ../../kind main",
        "git clone -q --ref-format=reftable repo kind",
        "git init -q -b main --object-format=sha256 kind; cp repo/file repo/new kind; git -C kind add .
            git -C kind -c user.name=a -c user.email=a@b commit -qm first",
        // A reference repository that keeps all of its objects in packs.
        "git clone -q repo kind; git -C kind repack -adq",
    ];
    for make in make {
        let yard = Yard::with_origin();
        yard.commit_file("repo", "new", "new\n");
        yard.git("repo", &["push", "-q"]);
        yard.sh(".", make);
        cloned_of(&yard, "kind", None, "c/vat.1");
        assert_eq!(yard.read("c/vat.1/new"), "new\n", "{make}");
        yard.identify("c/vat.1");
        yard.commit_file("c/vat.1", "work", "work\n");
        yard.git("c/vat.1", &["fsck", "--full"]);
        assert!(!yard.path("c/vat.1/.git/objects/info/alternates").exists(), "{make}");
        let brought =
            bring_branch(&yard.path("kind"), &yard.path("c/vat.1"), BRANCH, "refs/crew/x");
        let tip = yard.git("c/vat.1", &["rev-parse", "HEAD"]);
        assert_eq!(brought.unwrap().as_deref(), Some(tip.trim()), "{make}");
        assert_eq!(yard.git("kind", &["show", "refs/crew/x:work"]), "work\n", "{make}");
    }
}

#[test]
fn a_clone_of_a_partial_and_sparse_repository_gets_its_patterns_and_its_remote() {
    let yard = Yard::with_origin();
    yard.git("origin.git", &["config", "uploadpack.allowFilter", "true"]);
    yard.commit_file("repo", "in/a", "in\n");
    yard.commit_file("repo", "out/b", "out\n");
    yard.git("repo", &["push", "-q"]);
    let url = format!("file://{}", yard.path("origin.git").display());
    yard.git(".", &["clone", "-q", "--filter=blob:none", "--sparse", &url, "part"]);
    yard.git("part", &["sparse-checkout", "set", "in"]);
    for given in [None, Some(&*url)] {
        yard.sh(".", "rm -rf c");
        cloned_of(&yard, "part", given, "c/vat.1");
        assert_eq!(yard.sh("c/vat.1", "ls"), "file\nin\n");
        assert_eq!(yard.git("c/vat.1", &["status", "--porcelain"]), "");
        yard.identify("c/vat.1");
        yard.commit_file("c/vat.1", "in/work", "work\n");
        let brought =
            bring_branch(&yard.path("part"), &yard.path("c/vat.1"), BRANCH, "refs/crew/x");
        assert!(brought.unwrap().is_some());
        // What is missing comes from the real remote.
        assert_eq!(yard.git("c/vat.1", &["show", "HEAD:out/b"]), "out\n");
    }
}

#[test]
fn submodules_are_cloned_from_the_users_own_even_nested_ones() {
    let yard = Yard::new();
    let allow = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    for (outer, inner) in [("mid", "deep"), ("repo", "mid")] {
        yard.git(".", &["init", "-q", "-b", "main", inner]);
        yard.identify(inner);
        yard.commit_file(inner, "f", inner);
        yard.git(".", &["init", "-q", "-b", "main", outer]);
        yard.identify(outer);
        let address = yard.path(inner).display().to_string();
        let path = format!("lib/{inner}");
        yard.git(
            outer,
            &[&allow[..], &["--name", &format!("my {inner}"), &address, &path]].concat(),
        );
        yard.git(outer, &["commit", "-qm", "with a submodule"]);
    }
    yard.sh(
        "repo",
        "git -c protocol.file.allow=always submodule --quiet update --init --recursive",
    );
    // Nothing of them can be fetched.
    yard.sh(".", "rm -rf mid deep");
    assert_eq!(cloned_of(&yard, "repo", None, "part"), Vec::<String>::new());
    yard.sh(".", "mkdir c; mv part c/vat.1");
    assert_eq!(yard.read("c/vat.1/lib/mid/f"), "mid");
    assert_eq!(yard.read("c/vat.1/lib/mid/lib/deep/f"), "deep");
    assert_eq!(yard.git("c/vat.1", &["status", "--porcelain"]), "");
    let status = yard.git("c/vat.1", &["submodule", "status", "--recursive"]);
    assert!(status.lines().count() == 2 && status.lines().all(|line| line.starts_with(' ')));
    let (repository, clone) = (yard.path("repo"), yard.path("c/vat.1"));
    assert_eq!(keep_strays(&repository, &clone, "refs/kept").unwrap(), Vec::<String>::new());
    // The base records another commit by now, which no ref of the user's has.
    let ahead = yard.sh(
        "repo/lib/mid",
        "git -c user.name=a -c user.email=a@b commit -qm ahead --allow-empty
        git rev-parse HEAD; git reset -q --soft HEAD~1",
    );
    yard.sh(
        "repo",
        &format!("git update-index --cacheinfo 160000,{},lib/mid; git commit -qm b", ahead.trim()),
    );
    cloned_of(&yard, "repo", None, "c/vat.2");
    yard.sh("repo/lib/mid", "git reflog expire --expire=now --all; git prune");
    let later = yard.path("c/vat.2");
    assert_eq!(keep_strays(&repository, &later, "refs/kept").unwrap(), Vec::<String>::new());
    yard.identify("c/vat.1/lib/mid/lib/deep");
    yard.commit_file("c/vat.1/lib/mid/lib/deep", "f", "work");
    let refused = keep_strays(&repository, &clone, "refs/kept").unwrap_err().cause;
    assert!(refused.contains("submodule lib/mid/lib/deep are at no remote"), "{refused}");
}

#[test]
fn a_submodule_whose_commit_cannot_be_found_is_left_empty_with_a_note() {
    let yard = Yard::new();
    yard.git(".", &["init", "-q", "-b", "main", "inner"]);
    yard.identify("inner");
    yard.commit_file("inner", "f", "x");
    let address = yard.path("inner").display().to_string();
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    yard.git("repo", &[&add[..], &[&address, "lib"]].concat());
    yard.sh("repo", "git update-index --cacheinfo 160000,$(printf %040d 7),lib; git commit -qm x");
    let notes = cloned_of(&yard, "repo", None, "c/vat.1");
    assert_eq!(notes, ["the submodule lib is empty: its commit is not here"]);
}

#[test]
fn files_of_git_lfs_come_from_the_local_store() {
    let yard = Yard::new();
    // What git LFS does, without it: a pointer in the commit, the content in its store.
    let id = "9f".repeat(32);
    let store = "$(git rev-parse --git-dir)/lfs/objects/9f/9f";
    let smudge = format!("sh -c 'cat > /dev/null; cat {store}/{id}'");
    yard.git("repo", &["config", "filter.lfs.smudge", &smudge]);
    yard.git("repo", &["config", "filter.lfs.clean", "cat"]);
    yard.write("repo/.gitattributes", "*.bin filter=lfs\n");
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize 6\n");
    yard.commit_file("repo", "a.bin", &pointer);
    for (clone, (set, at)) in ["c/vat.1", "c/vat.2", "c/vat.3"].into_iter().zip(stores(&yard)) {
        yard.git("repo", &["config", "lfs.storage", &set]);
        yard.write(&format!("{at}/objects/9f/9f/{id}"), "large\n");
        yard.write(&format!("{at}/objects/9f/9f/9f{}", "00".repeat(31)), "another\n");
        cloned_of(&yard, "repo", None, clone);
        assert_eq!(yard.read(&format!("{clone}/a.bin")), "large\n", "{set}");
        assert_eq!(yard.sh(clone, "find .git/lfs -type f | wc -l").trim(), "1");
        // Whatever the user's own files say.
        assert_eq!(yard.git(clone, &["config", "lfs.storage"]), "lfs\n");
        yard.sh(".", &format!("rm -r {at}"));
    }
}

/// Values of `lfs.storage` in `repo`, each with the store that it means.
fn stores(yard: &Yard) -> [(String, &'static str); 3] {
    let absolute = yard.path("large").display().to_string();
    [(String::new(), "repo/.git/lfs"), ("../media".to_owned(), "repo/media"), (absolute, "large")]
}

#[test]
fn files_of_git_lfs_that_an_agent_made_are_fetched_with_its_branch_if_their_hashes_match() {
    let yard = Yard::with_origin();
    cloned_of(&yard, "repo", None, "c/vat.1");
    yard.identify("c/vat.1");
    let ids = ["made", "forged", "lead", "grow"];
    let ids = ids.map(|text| crate::store::hash(text.as_bytes()));
    let below = |id: &str| format!("objects/{}/{}/{id}", &id[..2], &id[2..4]);
    let places =
        [("made", ".git/lfs"), ("fake", ".git/lfs"), ("lead", "media"), ("grows", ".git/lfs")];
    for (id, (content, place)) in ids.iter().zip(places) {
        let pointer =
            format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize 4\n");
        yard.commit_file("c/vat.1", &format!("{content}.bin"), &pointer);
        yard.write(&format!("c/vat.1/{place}/{}", below(id)), content);
    }
    // An agent can set it.
    yard.git("c/vat.1", &["config", "lfs.storage", "../media"]);
    for (set, at) in stores(&yard) {
        yard.git("repo", &["config", "lfs.storage", &set]);
        // Half of it, as a full disk leaves it.
        yard.write(&format!("{at}/{}", below(&ids[0])), "ma");
        bring_branch(&yard.path("repo"), &yard.path("c/vat.1"), BRANCH, "refs/crew/x").unwrap();
        assert_eq!(yard.read(&format!("{at}/{}", below(&ids[0]))), "made");
        assert_eq!(yard.sh(at, "find . -type f | wc -l").trim(), "1");
        // Nothing is copied that has another size.
        let folder = below(&ids[3]);
        assert!(!yard.path(at).join(folder).parent().unwrap().exists());
    }
}

#[test]
fn settings_that_commits_and_files_need_are_copied_and_planted_programs_are_not() {
    let yard = Yard::new();
    for (name, value) in [
        ("user.email", "local@example.com"),
        ("commit.gpgSign", "false"),
        ("core.eol", "crlf"),
        ("core.autocrlf", "input"),
        ("filter.fine.smudge", "sed s/one/ONE/"),
        ("merge.fine.driver", "true %A"),
        ("url.https://example.org/.insteadOf", "ex:"),
        ("core.hooksPath", "hooks"),
        ("core.fsmonitor", "evil"),
    ] {
        yard.git("repo", &["config", name, value]);
    }
    yard.write("repo/.gitattributes", "file filter=fine\n");
    yard.sh("repo", "git add .gitattributes; git commit -qm attributes");
    let agreed = crate::git::steps::read_trusted(&yard.path("repo"));
    for (name, value) in [
        ("filter.evil.smudge", "evil"),
        ("url.https://evil/.insteadOf", "https://example.org/"),
        ("gpg.program", "evil"),
        ("core.sshCommand", "evil"),
        ("merge.fine.driver", "evil"),
    ] {
        yard.git("repo", &["config", name, value]);
    }
    cloned_as(&yard, "repo", None, "c/vat.1", agreed.as_ref());
    let list = yard.git("c/vat.1", &["config", "--local", "--list"]);
    for known in [
        "user.email=local@example.com",
        "commit.gpgsign=false",
        "core.eol=crlf",
        "core.autocrlf=input",
        "filter.fine.smudge=sed s/one/ONE/",
        "url.https://example.org/.insteadof=ex:",
    ] {
        assert!(list.lines().any(|line| line == known), "{known}: {list}");
    }
    assert!(!list.contains("evil") && !list.contains("hookspath"), "{list}");
    assert_eq!(yard.read("c/vat.1/file"), "ONE\n");
    // Without an agreement no program comes along.
    cloned_as(&yard, "repo", None, "c/vat.2", None);
    assert_eq!(yard.read("c/vat.2/file"), "one\n");
}

/// A clone in which an agent has planted what it can, on a branch with one commit.
fn with_an_agent(plants: &str) -> Yard {
    let yard = Yard::with_origin();
    let url = yard.git("repo", &["remote", "get-url", "origin"]);
    yard.write("repo/file", "stashed\n");
    yard.git("repo", &["stash", "-q"]);
    cloned_of(&yard, "repo", Some(url.trim()), "c/vat.1");
    cloned_of(&yard, "repo", Some(url.trim()), "c/vat.2");
    yard.identify("c/vat.1");
    yard.script("evil", "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\nexec \"$@\"\n");
    yard.commit_file("c/vat.1", "work", "work\n");
    yard.sh("c/vat.1", &format!("evil={}; {plants}", yard.path("evil").display()));
    yard
}

#[test]
fn nothing_that_an_agent_leaves_in_its_clone_takes_effect_elsewhere() {
    let plants = [
        "echo x > file; git stash -q; git stash pop -q; git stash -q; git stash drop -q",
        "git worktree prune; git update-ref refs/heads/other HEAD; git tag main; git tag origin/main
            git update-ref refs/remotes/origin/main HEAD; git branch -f main",
        "mkdir -p .git/hooks; for hook in post-checkout pre-push reference-transaction post-rewrite \
            pre-upload post-upload-pack; do cp $evil .git/hooks/$hook; done",
        "git config uploadpack.packObjectsHook $evil; git config core.fsmonitor $evil
            git config core.sshCommand $evil; git config core.hooksPath $(dirname $evil)",
        "git config core.alternateRefsCommand $evil; git config filter.x.smudge $evil
            git config extensions.partialClone evil; git config remote.evil.promisor true
            git config remote.evil.url ext::$evil; git config remote.evil.uploadpack $evil",
        "git config uploadpack.hideRefs refs/none; git config uploadpack.blobPackfileUri \
            \"$(git rev-parse HEAD:work) $(printf %040d 7) file://$evil\"
            git config transfer.fsckObjects false; git config gc.pruneExpire now",
        "printf '[include]\\n path = /dev/null\\n[alias]\\n upload-pack = !%s\\n' $evil >> .git/config",
        "git tag refs/heads/fleet/shop/vat/1 HEAD~1; git tag fleet/shop/vat/1 HEAD~1",
        "git gc -q --prune=now",
    ];
    for plants in plants {
        let yard = with_an_agent(plants);
        let own = format!("refs/heads/{BRANCH}");
        let tip = yard.git("c/vat.1", &["for-each-ref", "--format=%(objectname)", &own]);
        let all = || {
            let repo = yard.sh(
                "repo",
                "git for-each-ref | grep -v refs/remotes/crew; git stash list
                cat .git/config; ls .git .git/hooks; git count-objects -v | grep prune; cat file",
            );
            (repo, state(&yard, "c/vat.2"))
        };
        let before = all();
        let (repo, clone) = (yard.path("repo"), yard.path("c/vat.1"));
        let brought = bring_branch(&repo, &clone, BRANCH, "refs/remotes/crew/shop/vat");
        let brought = brought.unwrap_or_else(|fault| panic!("{plants}: {fault}"));
        assert_eq!(brought.as_deref(), Some(tip.trim()), "{plants}");
        keep_strays(&repo, &clone, "refs/remotes/crew/kept").unwrap();
        assert_eq!(all(), before, "{plants}");
        assert!(!yard.path("ran").exists(), "{plants}");
        assert_eq!(yard.git("repo", &["show", "refs/remotes/crew/shop/vat:work"]), "work\n");
        yard.git("repo", &["fsck", "--full"]);
    }
}

#[test]
fn many_fetches_leave_few_packs_and_drop_no_object() {
    let yard = Yard::new();
    cloned_of(&yard, "repo", None, "c/vat.1");
    yard.identify("c/vat.1");
    yard.sh("repo", "echo stray > ../stray; git hash-object -w ../stray > ../id; git gc -q");
    for number in 0..40 {
        yard.commit_file("c/vat.1", "work", &number.to_string());
        bring_branch(&yard.path("repo"), &yard.path("c/vat.1"), BRANCH, "refs/crew/x").unwrap();
    }
    let packs = yard.sh("repo", "ls .git/objects/pack/*.pack | wc -l");
    assert!(packs.trim().parse::<u32>().unwrap() <= 17, "{packs}");
    yard.git("repo", &["fsck", "--full", "--strict"]);
    let stray = yard.read("id");
    assert_eq!(yard.git("repo", &["cat-file", "blob", stray.trim()]), "stray\n");
    assert_eq!(yard.git("repo", &["show", "refs/crew/x:work"]), "39");
    cloned_of(&yard, "repo", None, "c/vat.2");
    yard.git("c/vat.2", &["fsck", "--full"]);
}

#[test]
fn replaced_grafted_and_shallow_commits_are_fetched_as_they_really_are() {
    // A replaced commit, a graft, and a history that was cut off after the clone was made.
    let plants = [
        "git replace HEAD $(git commit-tree -m other HEAD~1^{tree} -p HEAD~1)",
        "mkdir -p .git/info; echo $(git rev-parse HEAD) > .git/info/grafts",
    ];
    for plants in plants {
        let yard = with_an_agent(plants);
        let (repo, clone) = (yard.path("repo"), yard.path("c/vat.1"));
        let brought = bring_branch(&repo, &clone, BRANCH, "refs/crew/x").unwrap();
        assert!(brought.is_some(), "{plants}");
        assert_eq!(yard.git("repo", &["rev-list", "--count", "refs/crew/x"]), "2\n", "{plants}");
        assert_eq!(yard.git("repo", &["show", "refs/crew/x:work"]), "work\n", "{plants}");
    }
    let yard = with_an_agent("git rev-parse HEAD > .git/shallow");
    let (repo, clone) = (yard.path("repo"), yard.path("c/vat.1"));
    let _ = bring_branch(&repo, &clone, BRANCH, "refs/crew/x");
    assert!(!yard.path("repo/.git/shallow").exists());
}

#[test]
fn nothing_is_fetched_from_a_clone_that_lacks_the_branch_or_belongs_to_another_repository() {
    let yard = with_an_agent("mv .git ../elsewhere; echo gitdir: ../elsewhere > .git");
    let (repo, clone) = (yard.path("repo"), yard.path("c/vat.1"));
    let fault = bring_branch(&repo, &clone, BRANCH, "refs/crew/x").unwrap_err();
    assert!(fault.cause.contains("no longer a repository of its own"), "{fault}");
    let other = bring_branch(&repo, &yard.path("c/vat.2"), "fleet/shop/other/1", "refs/crew/x");
    assert_eq!(other, Ok(None));
    let bad = with_an_agent(
        "tree=$(printf '100644 .git\\0%s' \"$(git rev-parse HEAD:work | xxd -r -p)\" |
            git hash-object -w -t tree --stdin --literally)
         git update-ref refs/heads/fleet/shop/vat/1 $(git commit-tree -m bad $tree -p HEAD)",
    );
    let brought = bring_branch(&bad.path("repo"), &bad.path("c/vat.1"), BRANCH, "refs/crew/x");
    assert!(brought.is_err(), "{brought:?}");
}

#[test]
fn a_clone_that_leads_to_another_repository_is_left_alone() {
    let leads = [
        "mv .git ../moved; echo gitdir: $repo/.git > .git",
        "mv .git ../moved; ln -s $repo/.git .git",
        "echo $repo/.git > .git/commondir",
        "git config core.worktree $repo",
        "git config extensions.worktreeConfig true; git config --worktree core.worktree $repo",
        "git config extensions.refStorage files://$repo/.git",
        "echo x > .git/HEAD; mkdir objects; ln -s $repo/.git/refs refs; echo ref: refs/heads/main > HEAD",
        "mv .git/refs ../moved; ln -s $repo/.git/refs .git/refs",
        "ln -s $repo/.git/refs/heads .git/refs/heads/objects",
        "rm .git/index; ln -s $repo/.git/index .git/index",
        "ln -sf $repo/.git/logs/HEAD .git/logs/HEAD",
        "mv .git/objects ../moved; ln -s $repo/.git/objects .git/objects",
    ];
    for leads in leads {
        let yard = with_an_agent("true");
        let (repo, clone) = (yard.path("repo"), yard.path("c/vat.1"));
        let place = Place { is_clone: true, ..super::place_of(&clone) };
        let trusted = crate::git::steps::read_trusted(&clone).unwrap();
        // What a step would undo in the user's own files.
        yard.write("c/vat.1/.git/crew-step", &format!("rebase {}", place.head.clone().unwrap()));
        yard.write("c/vat.1/.git/rebase-merge/autostash", "x");
        yard.write("repo/.git/crew-step", &format!("push {}", place.head.clone().unwrap()));
        yard.write("repo/.git/HEAD.lock", "");
        yard.write("repo/file", "not committed\n");
        yard.sh("c/vat.1", &format!("repo={}; {leads}", repo.display()));
        let before = (state(&yard, "repo"), yard.read("repo/file"));
        let steps = Steps::new(&place, &trusted, &|| false);
        for fault in [
            stays_inside(&clone, GitStep::Commit).unwrap_err(),
            read_head_state(&place, GitStep::Commit).unwrap_err(),
            put_back_in(&place).unwrap_err(),
            commit_changes(&steps, "work", &Drafts::default()).unwrap_err(),
            rebase_branch(&steps, Some(BRANCH), "origin/main", None).unwrap_err(),
            keep_strays(&repo, &clone, "refs/crew/kept/x").unwrap_err(),
        ] {
            assert_eq!(fault.trouble, GitTrouble::Repository, "{leads}: {fault}");
        }
        bring_branch(&repo, &clone, BRANCH, "refs/crew/x").unwrap_err();
        assert_eq!((state(&yard, "repo"), yard.read("repo/file")), before, "{leads}");
    }
    let plain = "mkdir -p .git/hooks; ln -s $repo/.git/hooks/x .git/hooks/x; git worktree add -q ../wt; git gc -q
        git stash -q; git update-ref refs/replace/$(git rev-parse HEAD) HEAD~1
        echo /nowhere > .git/objects/info/alternates";
    let yard = with_an_agent(plain);
    stays_inside(&yard.path("c/vat.1"), GitStep::Commit).unwrap();
}

#[test]
fn commits_that_no_other_repository_has_are_found_and_kept() {
    let commit = "date +%s%N > stray; git add stray; git commit -qm stray";
    let table = [
        (format!("git checkout -q --detach; {commit}; git checkout -q {BRANCH}"), 1),
        (format!("git checkout -q --detach; {commit}; {commit}"), 1),
        (
            format!(
                "git checkout -qb side; {commit}; git checkout -q {BRANCH}; git branch -qD side"
            ),
            1,
        ),
        (format!("git branch side; {commit}; git tag -am x x; git reset -q --hard HEAD~1"), 1),
        ("echo x > work; git stash -q; echo y > work; git stash -q".to_owned(), 2),
        ("git commit -q --amend -m again; git commit -q --amend -m 'and again'".to_owned(), 0),
        ("git checkout -q main; git checkout -q -".to_owned(), 0),
        (
            "all() { for n in $(seq 1001); do
                printf 'commit refs/tags/t%s\\ncommitter a <a@b> %s +0000\\ndata 0\\n' $n $n; done; }
            all | git fast-import --quiet; all | git -C ../../repo fast-import --quiet"
                .to_owned(),
            0,
        ),
    ];
    for (act, expected) in table {
        let yard = with_an_agent(&act);
        let (repo, clone) = (yard.path("repo"), yard.path("c/vat.1"));
        bring_branch(&repo, &clone, BRANCH, "refs/crew/x").unwrap();
        let below = "refs/crew/kept/shop/vat/1";
        let kept = keep_strays(&repo, &clone, below).unwrap();
        assert_eq!(kept.len(), expected, "{act}");
        for name in &kept {
            assert!(name.starts_with(below), "{name}");
            yard.git("repo", &["rev-parse", "--verify", &format!("{name}^{{commit}}")]);
        }
        assert_eq!(keep_strays(&repo, &clone, below).unwrap(), Vec::<String>::new(), "{act}");
    }
}

#[test]
fn a_remote_is_cloned_with_the_work_of_other_attempts_by_full_names() {
    let yard = Yard::with_origin();
    yard.git("repo", &["switch", "-qc", "fleet/shop/vat/1"]);
    yard.commit_file("repo", "work", "work\n");
    yard.sh(
        "repo",
        "git push -q origin HEAD; git tag main HEAD; git push -q origin refs/tags/main",
    );
    let start = yard.git("repo", &["rev-parse", "HEAD"]);
    let url = format!("file://{}", yard.path("origin.git").display());
    let own = CloneTerms { branch: "fleet/shop/vat/2", ..terms(Some(start.trim())) };
    clone_remote(&url, &own, &yard.path("c/vat.2")).unwrap();
    assert_eq!(yard.read("c/vat.2/work"), "work\n");
    assert_eq!(yard.git("c/vat.2", &["branch", "--show-current"]), "fleet/shop/vat/2\n");
    clone_remote(&url, &terms(None), &yard.path("c/vat.1")).unwrap();
    assert!(!Path::new(&yard.path("c/vat.1/work")).exists());
    let missing = CloneTerms { base: "none", ..terms(None) };
    let fault = clone_remote(&url, &missing, &yard.path("c/vat.3")).unwrap_err();
    assert!(fault.cause.contains("none"), "{fault}");
    assert!(disk::exists(&yard.path("c/vat.1/.git")));
}

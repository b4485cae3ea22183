//! The private git dir is separate: nothing planted in the repository runs, nothing of the user's
//! changes, and what happens to the repository does not affect it.

use std::time::Duration;

use super::{Kept, everything};
use crate::files::disk;
use crate::git::snapshots::{Snapshots, fill_git_dir, prune_snapshots};
use crate::git::tests::Yard;
use crate::store::{self, Home};
use engine::fixture::a_loop;

/// Everything in git's folder of the user's repository that git itself does not report.
fn gits_own(kept: &Kept) -> String {
    kept.yard.sh("repo", "find .git -type f -print0 | sort -z | xargs -0 sha256sum --")
}

#[test]
fn no_planted_program_runs() {
    let kept = Kept::after("");
    let planted = kept.yard.path("planted").display().to_string();
    kept.sh(&format!(
        "printf '#!/bin/sh\ntouch {planted}\ncat\n' > ../evil; chmod +x ../evil; evil=$PWD/../evil
         cp ../evil .git/hooks/pre-commit; cp ../evil .git/hooks/post-checkout
         cp ../evil .git/hooks/post-index-change
         for key in core.fsmonitor core.sshCommand core.pager core.editor filter.x.clean \
            filter.x.smudge filter.x.process diff.x.command diff.x.textconv diff.external \
            merge.x.driver gpg.program credential.helper; do git config $key $evil; done
         git config core.hooksPath .git/hooks; git config include.path ../more
         printf '[filter \"x\"]\nrequired = true\n' > more
         echo '* filter=x diff=x merge=x ident' > .gitattributes
         echo '* filter=x' > .git/info/attributes
         git init -q nested; cp .git/config nested/.git/config; echo two >> file"
    ));
    let first = kept.commit();
    kept.sh("echo three >> file; echo a > a");
    let second = kept.commit();
    assert!(kept.snapshots.text(&first, &second, None).unwrap().contains("+three"));
    assert!(!kept.snapshots.compare_closely(&first, &second).unwrap().white_space);
    kept.snapshots.restore(&kept.subject.id, &first).unwrap();
    let again = Snapshots::of(&Home::at(&kept.yard.path("home two")), &kept.subject);
    fill_git_dir(&again, &kept.subject).unwrap();
    assert!(!disk::exists(&kept.yard.path("planted")));
    kept.yard.sh("repo", "git status; git add file; true");
    assert!(disk::exists(&kept.yard.path("planted")), "with the user's own settings it runs");
}

#[test]
fn a_snapshot_changes_nothing_in_the_users_repository() {
    let kept = Kept::after(
        "echo two >> file; git stash -q; git worktree add -q ../beside -b beside; echo a > staged
         git add staged; echo three >> file; git tag first; git gc -q; echo '*.o' > .gitignore",
    );
    let before = gits_own(&kept);
    let first = kept.commit();
    kept.yard.sh("repo", "rm file; mkdir file; echo a > file/a; echo b > untracked");
    kept.commit();
    kept.snapshots.restore(&kept.subject.id, &first).unwrap();
    assert_eq!(gits_own(&kept), before);
}

#[test]
fn snapshots_outlive_the_deletion_of_a_branch_and_the_removal_of_unused_objects() {
    let kept = Kept::after("git switch -qc work; echo a > a; git add .; git commit -qm a");
    let (first, as_found) = (kept.commit(), everything(&kept.subject.place.checkout));
    kept.sh("git switch -q main; git branch -qD work; git reflog expire --expire=now --all
         git gc -q --prune=now --aggressive");
    assert!(kept.yard.git("repo", &["log", "--all", "--format=%s"]) == "first\n");
    kept.snapshots.restore(&kept.subject.id, &first).unwrap();
    assert_eq!(everything(&kept.subject.place.checkout), as_found);
}

#[test]
fn bytes_are_kept_that_git_would_convert() {
    for (attributes, config) in [
        ("*.txt text eol=crlf\\n*.id ident\\n*.x filter=x\\nfile -text\\n", "true"),
        ("# none\\n", "git config core.autocrlf true"),
    ] {
        let kept = Kept::after(&format!(
            "git config filter.x.clean 'tr a b'; git config filter.x.smudge 'tr b a'; {config}
             printf '{attributes}' > .gitattributes; printf 'a\\r\\n' > a.txt; echo aaa > a.x
             echo '$Id$' > a.id; git add . 2>/dev/null; git commit -qm a; rm a.*; git checkout -q ."
        ));
        let checkout = &kept.subject.place.checkout;
        let (first, as_found) = (kept.commit(), everything(checkout));
        kept.sh("rm a.*; echo two > file");
        kept.snapshots.restore(&kept.subject.id, &first).unwrap();
        assert_eq!(everything(checkout), as_found, "{attributes} {config}");
    }
}

#[test]
fn every_shape_of_a_repository_has_snapshots() {
    let yard = Yard::new();
    yard.sh(
        ".",
        "set -e; git clone -qs repo borrowing; git clone -q repo split; git -C split update-index --split-index
         git clone -q repo packed; git -C packed gc -q; git -C repo worktree add -q ../linked
         git init -q --object-format=sha256 other; git init -q bare-new; mkdir none; echo one > none/file
         cp -r repo/. reftable; git -C reftable refs migrate --ref-format=reftable 2>/dev/null || true
         for it in other bare-new; do echo one > $it/file; done; git -C other add .",
    );
    let folders =
        ["borrowing", "split", "packed", "linked", "other", "bare-new", "none", "reftable"];
    for (number, folder) in folders.into_iter().enumerate() {
        let mut subject = a_loop();
        subject.place.checkout = yard.path(folder);
        let snapshots = Snapshots::of(&Home::at(&yard.path(&format!("home{number}"))), &subject);
        let filled = fill_git_dir(&snapshots, &subject).unwrap();
        assert_eq!(filled.watched, (folder == "none").then_some(1), "{folder}");
        let before = snapshots.take().unwrap().commit;
        let made = || yard.sh(".", &format!("ls -id home{number}/trees/*"));
        let once = made();
        fill_git_dir(&snapshots, &subject).unwrap();
        assert_eq!(made(), once, "{folder} is filled twice");
        yard.sh(folder, "echo two >> file; echo '*.o' > .gitignore; echo > a.o; echo new > new");
        let after = snapshots.take().unwrap().commit;
        let words = snapshots.compare(&before, &after).unwrap().change_words();
        assert_eq!(words.unwrap(), "1 file changed, 2 new, +3 −0", "{folder}");
        snapshots.restore(&subject.id, &before).unwrap();
        assert_eq!(yard.read(&format!("{folder}/file")), "one\n");
        assert!(
            disk::exists(&yard.path(&format!("{folder}/a.o"))),
            "{folder} lost an ignored file"
        );
    }
}

#[test]
fn a_large_file_is_left_out_and_its_change_is_seen() {
    let kept = Kept::after("truncate -s 60M large");
    let first = kept.snapshots.take().unwrap();
    kept.sh("truncate -s 61M large");
    let second = kept.snapshots.take().unwrap();
    assert_eq!(first.commit, second.commit);
    assert_ne!(first.identity(), second.identity());
    assert_eq!(kept.snapshots.take().unwrap().identity(), second.identity());
    assert_eq!(second.left_out[0].path.display().to_string(), "large");
}

#[test]
fn a_broken_git_dir_is_made_again_at_the_next_start() {
    let kept = Kept::after("");
    kept.yard.sh("home", "echo junk > $(echo trees/*/index)");
    assert!(kept.snapshots.take().is_err());
    fill_git_dir(&kept.snapshots, &kept.subject).unwrap();
    kept.snapshots.take().unwrap();
}

#[test]
fn ends_of_iterations_are_found_by_the_newest_name_and_an_agents_own_state_is_kept() {
    let kept = Kept::after("");
    let (snapshots, id) = (&kept.snapshots, &kept.subject.id);
    let commits = ["0", "1", "2", "3"].map(|text| {
        kept.yard.write("repo/file", text);
        kept.commit()
    });
    snapshots.end(id, 0, &commits[0]).unwrap();
    snapshots.end(id, 2, &commits[1]).unwrap();
    snapshots.end(id, 2, &commits[2]).unwrap();
    snapshots.end(id, 2, &commits[3]).unwrap();
    let end = |iteration| snapshots.at_the_end_of(id, iteration).unwrap();
    assert_eq!(end(1), (0, commits[0].clone()));
    assert_eq!(end(9), (2, commits[3].clone()));
    let of = |iteration| snapshots.of_iteration(id, iteration);
    assert_eq!(of(0), None);
    assert_eq!(of(1).unwrap(), (commits[0].clone(), commits[0].clone()));
    assert_eq!(of(2).unwrap(), (commits[0].clone(), commits[1].clone()));
    assert_eq!(of(3).unwrap(), (commits[3].clone(), commits[3].clone()));
}

#[test]
fn old_and_excess_snapshots_are_removed_and_the_rest_is_kept() {
    let kept = Kept::after("");
    let home = Home::at(&kept.yard.path("home"));
    let (snapshots, id) = (&kept.snapshots, &kept.subject.id);
    kept.yard.write("repo/file", "two");
    let (old, new) = (kept.commit(), {
        kept.yard.write("repo/file", "three");
        kept.commit()
    });
    snapshots.name(id, "1", &old).unwrap();
    snapshots.name(id, "2", &new).unwrap();
    kept.yard.sh("home", "touch -d '100 days ago' trees/*/refs/crew/*/1");
    let script = "for it in old large; do mkdir -p trees/$it; echo > trees/$it/HEAD; done
                  head -c 900000 /dev/urandom > trees/large/pack; touch -d '100 days ago' trees/old/HEAD";
    kept.yard.sh("home", script);
    let left = || kept.yard.sh("home", "ls trees | grep -v '[.]lock' | grep -cv old");
    prune_snapshots(&home, snapshots, 0, 90);
    assert_eq!(left(), "2\n");
    assert!(!disk::exists(&kept.yard.path("home/trees/old")));
    assert_eq!((snapshots.named(id, "1"), snapshots.named(id, "2")), (None, Some(new.clone())));
    assert!(snapshots.compare(&old, &new).is_err(), "what no name holds is removed");
    prune_snapshots(&home, snapshots, 800_000, 90);
    assert_eq!(left(), "1\n");
    assert_eq!(kept.commit(), new);

    kept.yard.sh("home", &format!("mkdir -p loops/{id} trees/large/refs/crew/{id}"));
    let held = store::hold_loop(&home, id, Duration::ZERO).unwrap();
    held.change(&kept.subject, "started", |_| {}).unwrap();
    kept.yard.sh("home", &format!("{script}; touch -d '100 days ago' trees/*/refs/crew/*/2"));
    prune_snapshots(&home, snapshots, 1, 90);
    assert_eq!(left(), "2\n", "a loop that has not ended needs them");
    assert_eq!(snapshots.named(id, "2"), Some(new));
}

#[test]
fn a_waiting_snapshot_gives_up_and_a_lock_left_by_a_killed_git_process_is_removed() {
    let kept = Kept::after("");
    kept.yard.sh("home", "touch $(echo trees/*/index | sed s/$/.lock/)");
    kept.snapshots.take().unwrap();
    let lock = kept.yard.sh("home", "echo trees/*.lock");
    let lock = kept.yard.path("home").join(lock.trim());
    // A child that another test starts at this moment holds it too, until it becomes its program.
    let _held = disk::take_lock(&lock, Duration::from_secs(5)).unwrap().unwrap();
    assert_eq!(
        kept.snapshots.take().unwrap_err(),
        "another crew process is taking a snapshot here"
    );
}

#[test]
fn a_scratch_folder_has_a_snapshot_and_keeps_only_ignored_files() {
    let kept =
        Kept::after("echo '*.o' > .gitignore; echo > a.o; mkdir d; echo b > d/b; ln -s file link");
    let (first, out) = (kept.commit(), kept.yard.path("out"));
    kept.snapshots.check_out(&first, &out, false).unwrap();
    let list = |folder: &str| kept.yard.sh(folder, "find . -path ./.git -prune -o -print | sort");
    kept.sh("rm a.o");
    assert_eq!(list("out"), list("repo"));
    kept.yard.sh("out", "echo built > b.o; echo left > left; rm d/b");
    kept.snapshots.check_out(&first, &out, false).unwrap();
    assert_eq!(list("out"), list("repo").replace("./.gitignore\n", "./.gitignore\n./b.o\n"));
    let warm = list("out");
    kept.yard.sh("out", "echo set > d/b; echo made > made");
    kept.snapshots.check_out(&first, &out, true).unwrap();
    assert_eq!(kept.yard.sh("out", "cat d/b made; rm made"), "b\nmade\n", "after `setup`");
    kept.yard.sh(
        "out",
        "git update-index --skip-worktree file; echo swapped > file; echo hidden >> .git/info/exclude
         touch hidden; echo broken > .git/HEAD; touch .git/index.lock",
    );
    kept.snapshots.check_out(&first, &out, false).unwrap();
    assert_eq!(list("out"), warm, "nothing that a check left there counts");
    assert_eq!(kept.yard.sh("out", "cat file"), kept.yard.sh("repo", "cat file"));
    kept.yard.sh("out", "rm -r .git; echo broken > .git");
    kept.snapshots.check_out(&first, &out, false).unwrap();
    assert_eq!(list("out"), list("repo"), "made anew");
}

#[test]
fn a_return_leaves_files_that_no_snapshot_contains() {
    let kept = Kept::after("echo a > dist; echo b > cfg; mkdir d; echo c > d/c");
    let first = kept.commit();
    kept.sh("rm dist cfg; rm -r d");
    kept.commit();
    kept.sh("printf 'dist\\ncfg\\nd\\n' > .gitignore; mkdir dist
         echo built > dist/x; echo secret > cfg; echo file > d; echo two >> file");
    let restored = kept.snapshots.restore(&kept.subject.id, &first).unwrap();
    let left: Vec<String> = restored.left.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(left, ["cfg", "d/c", "dist"]);
    assert_eq!(kept.yard.sh("repo", "cat dist/x cfg d file"), "built\nsecret\nfile\none\n");
}

#[test]
fn a_file_that_is_written_again_keeps_its_mode() {
    let kept = Kept::after("echo a > secret; echo a > tool; chmod 600 secret; chmod 700 tool");
    let first = kept.commit();
    kept.sh("echo b > secret; echo b > tool; chmod 640 tool");
    kept.snapshots.restore(&kept.subject.id, &first).unwrap();
    let modes = kept.yard.sh("repo", "stat -c '%n %a' secret tool; cat secret tool");
    assert_eq!(modes, "secret 600\ntool 750\na\na\n");
}

#[test]
fn a_git_dir_that_is_made_again_keeps_the_snapshots_of_the_old_one() {
    let kept = Kept::after("");
    let (id, first) = (&kept.subject.id, kept.commit());
    kept.snapshots.name(id, "1", &first).unwrap();
    kept.sh("echo two >> file");
    kept.yard.sh("home/trees", "for tree in */index; do echo broken > $tree; done");
    fill_git_dir(&kept.snapshots, &kept.subject).unwrap();
    let second = kept.commit();
    assert_eq!(kept.snapshots.named(id, "1").as_deref(), Some(&*first));
    assert!(kept.snapshots.text(&first, &second, None).unwrap().contains("+two"));
}

#[test]
fn ignored_files_at_named_places_can_be_added_and_ignored_folders_stay_out() {
    let kept = Kept::after(
        "printf 'a.ini\\nb.ini\\nmodules\\n' > .gitignore; mkdir -p d modules; echo a > d/a.ini
         echo b > b.ini; echo a > modules/a.ini; touch d/file",
    );
    let commit = kept.commit();
    let places = [":(glob)**/a.ini".to_owned(), ":(literal)none".to_owned()];
    let ignored = kept.snapshots.ignored(&places).unwrap();
    assert_eq!(ignored, ["d/a.ini", "modules/"]);
    let inside = kept.snapshots.ignored(&[":(literal)modules/a.ini".to_owned()]);
    assert_eq!(inside.unwrap(), ["modules/"], "git dies where all places are in an ignored folder");
    let with = kept.snapshots.with_present(&commit, &ignored[..1]).unwrap();
    assert_eq!(kept.snapshots.paths(&commit, &with).unwrap(), ["d/a.ini"]);
    assert_eq!(kept.snapshots.with_present(&with, &ignored[..1]).unwrap(), with);
    kept.sh("truncate -s 60M b.ini");
    let large = kept.snapshots.with_present(&commit, &["b.ini".to_owned()]);
    assert_eq!(large.unwrap_err(), "b.ini is too large");
    assert_eq!(kept.commit(), commit, "the next snapshot does not hold them");
}

#[test]
fn a_mixed_snapshot_has_some_files_restored_and_some_removed() {
    let kept = Kept::after("echo old > a; echo old > b; echo old > \"$(printf '\\351')\"");
    let first = kept.commit();
    kept.sh(
        "echo new > a; echo new > b; mkdir c; echo new > c/d; echo new > \"$(printf '\\351')\"",
    );
    let second = kept.snapshots.take().unwrap().commit;
    let mixed = kept.snapshots.mixed(&second, &first, &["a", "c", "\u{fffd}"]).unwrap();
    let file = |path: &str| kept.snapshots.file(&mixed, path).unwrap();
    assert_eq!(
        [file("a"), file("b"), file("c/d")],
        [Some("old\n".into()), Some("new\n".into()), None]
    );
    assert_eq!(kept.snapshots.paths(&first, &mixed).unwrap(), ["b"]);
}

#[test]
fn a_file_is_read_through_links_that_stay_in_the_tree() {
    let kept = Kept::after(
        "mkdir d; echo text > d/a; ln -s ../d/a d/b; ln -s d/b c; ln -s /etc/hosts h; ln -s l l",
    );
    let commit = kept.commit();
    let file = |path: &str| kept.snapshots.file(&commit, path).unwrap();
    assert_eq!([file("c"), file("d/b")], [Some("text\n".into()), Some("text\n".into())]);
    assert_eq!([file("h"), file("l"), file("none"), file("d")], [None, None, None, None]);
}

#[test]
fn many_files_are_read_in_one_call_in_the_order_asked_for() {
    let kept = Kept::after(
        "echo a > a; printf 'b\\377' > b; mkdir d; printf d > 'd/x y'; printf '' > empty; \
         printf n > \"$(printf 'line\\nbreak')\"",
    );
    let commit = kept.commit();
    let paths = ["d/x y", "none", "b", "a", "empty", "file"];
    assert_eq!(kept.snapshots.texts(&commit, &paths), ["d", "", "", "a\n", "", "one\n"]);
    let odd = ["line\nbreak", "a"];
    assert_eq!(kept.snapshots.texts(&commit, &odd), ["n", "a\n"]);
    let many: Vec<&str> = std::iter::repeat_n("a", 250).collect();
    assert_eq!(kept.snapshots.texts(&commit, &many), vec!["a\n"; 250]);
}

#[test]
fn an_unresolved_conflict_at_the_start_is_recorded_as_it_is() {
    let kept = Kept::after(
        "git switch -qc side; echo a > file; git commit -qam a; git switch -q main
         echo b > file; git commit -qam b; git merge -q side || true",
    );
    let resolve = "echo ab > file; git add file; git commit -qm merged";
    assert_eq!(kept.changed_by(resolve), "M file");
}

#[test]
fn a_return_leaves_a_file_that_the_rules_of_that_snapshot_ignore() {
    let kept = Kept::after("");
    let first = kept.commit();
    kept.sh("echo '*.txt' > .gitignore; echo notes > n.txt; echo two > new");
    let second = kept.commit();
    for target in [&first, &second] {
        kept.snapshots.restore(&kept.subject.id, target).unwrap();
        assert_eq!(kept.yard.read("repo/n.txt"), "notes\n");
        assert_eq!(kept.yard.path("repo/new").exists(), *target == second);
    }
    assert_eq!(kept.commit(), second);
}

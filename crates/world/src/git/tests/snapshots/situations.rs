//! Situations of a repository: what is reported of each, and that a return undoes it.

use super::{Kept, everything};
use crate::git::head::checked_out;

/// What a script sets up, what an agent does then, and the report.
const SITUATIONS: [(&str, &str, &str); 29] = [
    ("", "true", ""),
    ("", "echo two >> file; git commit -qam two", "M file"),
    ("echo two >> file", "git commit -qam two", ""),
    ("", "echo two >> file; git commit -q --amend -am one", "M file"),
    ("echo two >> file", "git stash -q", "M file"),
    ("echo two >> file; git stash -q", "git stash pop -q", "M file"),
    ("git branch old; echo a > new; git add .; git commit -qm new", "git switch -q old", "D new"),
    ("", "git switch -qc feature; echo a > new", "A new"),
    (
        "git branch old; echo a > new; git add .; git commit -qm new; git switch -q old; echo b > b; git add .; git commit -qm b",
        "git rebase -q main",
        "A new",
    ),
    ("echo two >> file; git commit -qam two", "git reset -q --hard HEAD~", "M file"),
    ("echo a > junk; echo junk2 > .gitignore; echo b > junk2", "git clean -qfdx", "D .gitignore, D junk"),
    (
        "git init -q ../sub; git -C ../sub -c user.name=a -c user.email=a commit -q --allow-empty -m a
         git -c protocol.file.allow=always submodule --quiet add ../sub sub; git commit -qm sub",
        "git -C sub -c user.name=a -c user.email=a commit -q --allow-empty -m b",
        "M sub",
    ),
    ("", "git mv file other", "R file → other"),
    ("", "chmod +x file", "M file"),
    ("", "echo a > untracked", "A untracked"),
    ("", "mkdir -p a/b; echo a > a/b/c; echo b > a/d", "A a/b/c, A a/d"),
    ("echo '*.log' > .gitignore", "echo a > a.log; mkdir -p .claude/branches; echo > .claude/branches/x", ""),
    ("", "git init -q nested; echo a > nested/a", "left out nested/"),
    ("git checkout -q --detach", "echo two >> file", "M file"),
    ("git update-ref -d HEAD; git rm -q --cached file", "echo two >> file; echo a > a", "A a, M file"),
    ("", "ln -s file link; ln -s /nowhere broken", "A broken, A link"),
    ("", r"printf a > $(printf 'a\377')", "A a\u{fffd}"),
    (
        "git switch -qc side; echo a > a; git add .; git commit -qm a; git switch -q main; echo b >> file; git commit -qam b",
        "git merge -q side -m merged",
        "A a",
    ),
    (
        "git switch -qc side; echo a > a; git add .; git commit -qm a; git switch -q main",
        "git cherry-pick side >/dev/null",
        "A a",
    ),
    (
        "git switch -qc side; echo a > file; git commit -qam a; git switch -q main; echo b > file; git commit -qam b",
        "git merge -q side || true",
        "M file",
    ),
    ("", "rm file; mkdir file; echo a > file/a", "D file, A file/a"),
    ("mkdir d; echo a > d/a; git add .; git commit -qm d", "rm -r d; ln -s . d", "A d, D d/a"),
    ("", "mv file FILE", "R file → FILE"),
    (
        "git update-index --assume-unchanged file; echo a > a; git add a; git update-index --skip-worktree a",
        "echo two >> file; echo b >> a",
        "M a, M file",
    ),
];

#[test]
fn each_situation_of_a_repository_is_reported_as_what_happened_to_the_files() {
    for (before, script, expected) in SITUATIONS {
        let kept = Kept::after(before);
        assert_eq!(kept.changed_by(script), expected, "{before} / {script}");
        assert_eq!(kept.changed_by("true").replace("left out nested/", ""), "", "{script}");
    }
}

#[test]
fn outside_git_the_same_changes_are_reported() {
    let is_without = |it: &&(&str, &str, &str)| !it.0.contains("git ") && !it.1.contains("git ");
    for (before, script, expected) in SITUATIONS.iter().filter(is_without) {
        let kept = Kept::outside(before);
        assert_eq!(kept.changed_by(script), *expected, "{before} / {script}");
    }
    let others = [
        ("echo a > a", "mv a b", "R a → b"),
        ("mkdir -p a/b; echo a > a/b/c", "mv a d", "R a/b/c → d/b/c"),
        ("echo a > a; echo b > b", "rm a b", "D a, D b"),
        ("echo '*.o' > .gitignore; echo a > a.o", "echo b > a.o; echo b > b.c", "A b.c"),
        ("", "git init -q; git add .; echo b > b", "A b"),
        ("", "git init -q nested; echo a > nested/a", "left out nested/"),
        ("echo a > a", "cp -p file a", "M a"),
        ("", "mkdir empty", ""),
    ];
    for (before, script, expected) in others {
        assert_eq!(Kept::outside(before).changed_by(script), expected, "{before} / {script}");
    }
}

#[test]
fn a_return_and_its_undo_bring_everything_back() {
    let situations = SITUATIONS.into_iter().filter(|(before, ..)| !before.contains("sub"));
    for (before, script, _) in situations {
        let kept = Kept::after(before);
        let (checkout, id) = (&kept.subject.place.checkout, &kept.subject.id);
        let (first, as_found) = (kept.commit(), everything(checkout));
        kept.sh(script);
        let (second, later) = (kept.commit(), everything(checkout));
        let head = checked_out(checkout);
        let is_whole =
            !script.contains("clean") && !script.contains(".log") && !script.contains("nested");
        let restored = kept.snapshots.restore(id, &first).unwrap();
        if is_whole {
            assert_eq!(everything(checkout), as_found, "{script}");
        }
        assert_eq!(kept.snapshots.named(id, &restored.kept_as).as_ref(), Some(&second), "{script}");
        kept.snapshots.restore(id, &second).unwrap();
        if is_whole {
            assert_eq!(everything(checkout), later, "{script}");
        }
        assert_eq!((kept.commit(), checked_out(checkout)), (second, head), "{script}");
    }
}

//! Protected paths in a session: a change that is hidden from git is not hidden from crew, and
//! files that git ignored when the loop began do not count.

use super::Door;
use crate::sandbox::{DEADLINE, Sandbox};
use crate::spawned::Running;

const CLAIM: &str = "<promise>COMPLETE</promise>";
const GITIGNORE: &str = "__pycache__/\n*.snap-new\n*.log\n!kept.log\nbuilt/\n";

/// A Python project with protected tests, one commit, and files that git does not see.
fn project() -> Door {
    let door = Door::new();
    let sandbox = &door.sandbox;
    sandbox.write(".claude/crew.toml", "[loop]\nprotect = [\"tests/**\"]\n");
    sandbox.write(".gitignore", GITIGNORE);
    sandbox.write("data.txt", "honest\n");
    sandbox.write("tests/__init__.py", "");
    sandbox.write("tests/test_sum.py", TEST);
    sandbox.write("tests/deep/case.txt", "honest\n");
    sandbox.write("tests/built/case.txt", "honest\n");
    sh(sandbox, "ln -s ../data.txt tests/data.txt; git add . && git add -f tests/built");
    sh(sandbox, "git commit -qm 'Tests'; echo mine > tests/kept.log; echo old > tests/old.log");
    door
}

const TEST: &str = "import unittest\n\nclass Sum(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 1, 2)\n";

fn sh(sandbox: &Sandbox, line: &str) -> String {
    let mut command = sandbox.command("sh");
    command.args(["-ec", line]).env("GIT_ALLOW_PROTOCOL", "file");
    Running::start(command, None).wait(DEADLINE).success()
}

#[track_caller]
fn assert_seen(door: &Door, way: &str, paths: &str) {
    let answer = door.stop(&format!("{way}\n\n{CLAIM}")).assert_goes_on();
    let shown = format!("protected paths were changed: {paths};");
    assert!(answer.context().contains(&shown), "{way}: {}", answer.context());
}

/// The agent's actions, and the paths that crew names. `tests/sub` is a submodule of one file,
/// `tests/own` a separate repository that git sees as one untracked folder.
const WAYS: [(&str, &str, &str); 26] = [
    (
        "a new file that .gitignore hides",
        "echo conftest.py >> .gitignore; echo 1 > tests/conftest.py",
        "`tests/conftest.py`",
    ),
    (
        "a new file below a .gitignore of its own",
        "mkdir tests/new; echo '*' > tests/new/.gitignore; echo 1 > tests/new/conftest.py",
        "`tests/new/.gitignore`, `tests/new/conftest.py`",
    ),
    (
        "a new file that .git/info/exclude hides",
        "echo conftest.py >> .git/info/exclude; echo 1 > tests/conftest.py",
        "`tests/conftest.py`",
    ),
    (
        "a new file that core.excludesFile hides",
        "echo conftest.py > ../hides; git config core.excludesFile ../hides; echo 1 > tests/conftest.py",
        "`tests/conftest.py`",
    ),
    (
        "an untracked file that is ignored from now on",
        "echo kept.log >> .gitignore; echo cheat > tests/kept.log",
        "`tests/kept.log`",
    ),
    (
        "a tracked file in an ignored folder",
        "echo cheat > tests/built/case.txt",
        "`tests/built/case.txt`",
    ),
    (
        "a file that git skips in the working tree",
        "git update-index --skip-worktree tests/test_sum.py; echo cheat > tests/test_sum.py",
        "`tests/test_sum.py`",
    ),
    (
        "a file that git takes for unchanged",
        "git update-index --assume-unchanged tests/test_sum.py; echo cheat > tests/test_sum.py",
        "`tests/test_sum.py`",
    ),
    (
        "an edit of the same size at the same second",
        "touch -d @1000000000 tests/test_sum.py; git update-index --refresh; \
         git config core.checkStat minimal; git config core.trustctime false; \
         sed -i 's/1 + 1, 2/1 + 0, 1/' tests/test_sum.py; touch -d @1000000000 tests/test_sum.py",
        "`tests/test_sum.py`",
    ),
    (
        "a mode that git does not look at",
        "git config core.fileMode false; chmod +x tests/test_sum.py",
        "`tests/test_sum.py`",
    ),
    (
        "line ends that git takes for its own",
        "echo '* text eol=crlf' > .git/info/attributes; sed -i 's/$/\\r/' tests/test_sum.py",
        "`tests/test_sum.py`",
    ),
    (
        "a filter that shows git the old text",
        "git show HEAD:tests/test_sum.py > ../old; git config filter.f.clean \"cat '$PWD/../old'\"; \
         echo '* filter=f' > .git/info/attributes; echo cheat > tests/test_sum.py",
        "`tests/test_sum.py`",
    ),
    ("an edit in a submodule", "echo cheat > tests/sub/t.py", "`tests/sub/t.py`"),
    (
        "a commit in a submodule",
        "cd tests/sub; echo cheat > t.py; git commit -qam cheat",
        "`tests/sub/t.py`",
    ),
    ("an edit in an untracked repository", "echo cheat > tests/own/t.py", "`tests/own/t.py`"),
    (
        "a new repository",
        "git init -q tests/new; echo 1 > tests/new/conftest.py",
        "`tests/new/conftest.py`",
    ),
    (
        "a link in the place of a file",
        "cp tests/test_sum.py ..; ln -sf ../../test_sum.py tests/test_sum.py",
        "`tests/test_sum.py`",
    ),
    (
        "a link in the place of a folder",
        "mv tests/deep ..; ln -s ../../deep tests/deep",
        "`tests/deep`, `tests/deep/case.txt`",
    ),
    (
        "a link in the place of all of them",
        "mv tests ..; ln -s ../tests tests",
        "`tests`, `tests/__init__.py`, `tests/built/case.txt`, `tests/data.txt`, `tests/deep/case.txt` and 2 more",
    ),
    ("the file that a link leads to", "echo cheat > data.txt", "`tests/data.txt`"),
    (
        "a link that leads elsewhere",
        "cp data.txt other.txt; ln -sf ../other.txt tests/data.txt",
        "`tests/data.txt`",
    ),
    (
        "a commit that stands in for the one it began at",
        "was=$(git rev-parse HEAD); echo cheat > tests/test_sum.py; git commit -qam cheat; git replace $was HEAD",
        "`tests/test_sum.py`",
    ),
    (
        "a folder in the place of a file",
        "rm tests/test_sum.py; mkdir tests/test_sum.py; echo 1 > tests/test_sum.py/__init__.py",
        "`tests/test_sum.py`, `tests/test_sum.py/__init__.py`",
    ),
    ("a file that is gone", "rm tests/test_sum.py", "`tests/test_sum.py`"),
    ("an untracked file that is gone", "rm tests/kept.log", "`tests/kept.log`"),
    ("a pipe", "mkfifo tests/pipe", "`tests/pipe`"),
];

#[test]
fn a_change_that_is_hidden_from_git_is_still_seen() {
    let mut unseen = Vec::new();
    for (way, plant, paths) in WAYS {
        let door = project();
        let submodule = way.contains("submodule").then_some(
            "git init -q ../lib; echo 1 > ../lib/t.py; git -C ../lib add .; git -C ../lib commit -qm lib; \
             git submodule --quiet add ../lib tests/sub; git commit -qm sub",
        );
        let nested = "git init -q tests/own; echo 1 > tests/own/t.py; git -C tests/own add .; \
                      git -C tests/own commit -qm own";
        sh(
            &door.sandbox,
            submodule.or(way.contains("untracked repo").then_some(nested)).unwrap_or(""),
        );
        door.begin("\"go on\" -n 4 --verify true --stall 0");
        sh(&door.sandbox, plant);
        let answer = door.stop(CLAIM);
        let shown = format!("protected paths were changed: {paths}; restore them");
        if !answer.context().contains(&shown) {
            unseen.push(format!("{way}: {}", answer.context()));
        }
    }
    assert!(unseen.is_empty(), "{} of {}:\n{}", unseen.len(), WAYS.len(), unseen.join("\n---\n"));
}

#[test]
fn files_that_tests_leave_behind_do_not_count_as_changes_in_twenty_iterations() {
    let door = project();
    let run = "python3 -m unittest -q tests.test_sum 2>&1; echo $1 > tests/it.snap-new; echo $1 >> tests/run.log";
    let answer = door.command("\"go on\" -n 30 --verify true --stall 0").send();
    assert!(
        answer.line().contains("not protected, because git ignores it: tests/old.log"),
        "{answer:#?}"
    );
    for iteration in 1..=20 {
        sh(&door.sandbox, &run.replace("$1", &iteration.to_string()));
        let answer = door.stop("still at it").assert_goes_on();
        assert!(!answer.context().contains("protected"), "{iteration}: {}", answer.context());
    }
    let caches = std::fs::read_dir(door.sandbox.file("tests/__pycache__")).unwrap();
    assert!(caches.count() >= 2, "the tests ran and left what Python keeps of them");
    sh(&door.sandbox, "echo changed > tests/old.log");
    door.stop(CLAIM).assert_lets_go();
}

#[test]
fn a_change_that_was_reverted_does_not_count() {
    let door = project();
    door.begin("\"go on\" -n 4 --verify true --stall 0");
    sh(&door.sandbox, "chmod +x tests/test_sum.py; echo cheat > tests/kept.log; mkfifo tests/pipe");
    assert_seen(&door, "three ways", "`tests/kept.log`, `tests/pipe`, `tests/test_sum.py`");
    sh(&door.sandbox, "chmod -x tests/test_sum.py; echo mine > tests/kept.log; rm tests/pipe");
    door.stop(CLAIM).assert_lets_go();
}

#[test]
fn the_state_of_protected_paths_is_journalled_once() {
    let door = project();
    let id = door.begin("\"go on\" -n 9 --stall 0");
    (0..3).for_each(|number| drop(door.stop(&number.to_string()).assert_goes_on()));
    let journal = std::fs::read_to_string(door.file(&id, "journal.jsonl")).unwrap();
    assert_eq!(journal.matches("\"protected\":").count(), 1, "{journal}");
    std::fs::write(door.file(&id, "loop.json"), "{").unwrap();
    sh(&door.sandbox, "echo cheat > tests/kept.log");
    assert_seen(&door, "after a rebuilding", "`tests/kept.log`");
}

//! The contents of a run's commit: what the agent changed, whatever its name and kind, and none of
//! the user's earlier uncommitted work. The user's index does not change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use insta::assert_snapshot;
use regex::Regex;

use super::repository::Row;
use super::{WORK, World};
use crate::spawned::Ran;

impl World {
    /// The files in all commits but the first.
    #[track_caller]
    pub(super) fn committed(&self) -> Vec<String> {
        let names = self.sandbox.git(&[
            "log",
            "-z",
            "--no-renames",
            "--format=",
            "--name-only",
            "HEAD~1..HEAD",
        ]);
        let names: BTreeSet<String> =
            names.split(['\0', '\n']).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        names.into_iter().collect()
    }

    /// The messages of a run to its user, besides its progress lines, normalised.
    pub(super) fn complaints(&self, ran: &Ran) -> String {
        let usual = "crew: nothing is checked";
        let shown: Vec<&str> = ran.stderr.lines().filter(|line| !line.starts_with(usual)).collect();
        let shown = self.same(&shown.join("\n"));
        Regex::new("so [0-9a-f]{7,} holds").unwrap().replace_all(&shown, "so ID holds").into_owned()
    }
}

#[test]
fn files_uncommitted_at_the_start_stay_out_until_the_agent_changes_them() {
    let world = World::new(&[]);
    world.sandbox.write("theirs", "one\n");
    world.sandbox.write("staged", "one\n");
    world.sandbox.write("sub/file", "one\n");
    world.sandbox.git(&["add", "."]);
    world.sandbox.git(&["commit", "--quiet", "--amend", "--no-edit"]);
    world.sandbox.write("staged", "two\n");
    world.sandbox.git(&["add", "staged"]);
    world.sandbox.write("staged", "three\n");
    world.sandbox.write("theirs", "mine\n");
    world.sandbox.write("mine", "key\n");
    world.sandbox.write("secret", "key\n");
    let staged = world.sandbox.git(&["ls-files", "--stage", "staged"]);
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command
        .args(["run", "write lines", "-n", "2", "--commit"])
        .current_dir(world.sandbox.file("sub"));
    world.steps(&["echo x > new; echo agent >> ../mine", "echo agent >> ../theirs"]);
    let ran = crate::spawned::Running::start(command, None).wait(crate::sandbox::DEADLINE);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_snapshot!(world.complaints(&ran), @"
    crew: not committed here, and left out of crew's commits until the agent changes it: mine, secret, staged, theirs
    crew: the agent changed files you had not committed, so ID holds all of them, your changes too: mine (crew diff shows what became of yours)
    crew: the agent changed files you had not committed, so ID holds all of them, your changes too: theirs (crew diff shows what became of yours)
    ");
    assert_eq!(world.sandbox.git(&["show", "--format=", "--name-only", "HEAD~"]), "mine\nsub/new");
    assert_eq!(world.sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), "theirs");
    assert_eq!(world.sandbox.git(&["status", "--porcelain"]), "MM staged\n?? secret");
    assert_eq!(world.sandbox.git(&["ls-files", "--stage", "staged"]), staged);
    let became = world.crew(&["diff"]).success();
    assert!(became.contains(" key\n+agent\n") && became.contains(" mine\n+agent\n"), "{became}");
}

#[test]
fn files_the_agent_committed_or_removed_are_reported_once_and_then_count_as_its_work() {
    let world = World::new(&[
        "git checkout -q README; rm u; git add secret; git commit -qm Theirs; echo x >> work.txt",
        "echo agent > secret; git commit -qam Theirs; echo x >> work.txt",
        "echo key > secret; echo x >> work.txt",
    ]);
    world.sandbox.write("README", "mine\n");
    for file in ["u", "secret"] {
        world.sandbox.write(file, "key\n");
    }
    let ran = world.crew(&["run", "write lines", "-n", "3", "--commit"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_snapshot!(world.complaints(&ran), @"
    crew: not committed here, and left out of crew's commits until the agent changes it: README, secret, u
    crew: what you had not committed was committed, but not by crew: secret
    crew: what you had not committed is gone, or equals what is committed (crew diff shows what became of yours): README, u
    ");
    assert_eq!(world.committed(), ["secret", "work.txt"]);
    let became = world.crew(&["diff"]).success();
    assert!(became.contains("-mine\n") && became.contains("deleted file"), "{became}");
}

#[test]
fn ignored_files_stay_uncommitted_whatever_the_agent_does_to_the_list() {
    let world = World::new(&["echo build > .gitignore; echo x >> work.txt; echo x > kept/new"]);
    world.sandbox.write(".gitignore", ".env\nkept/\n");
    world.sandbox.git(&["add", "."]);
    world.sandbox.git(&["commit", "--quiet", "--amend", "--no-edit"]);
    world.sandbox.write(".env", "key\n");
    world.sandbox.write("kept/it", "key\n");
    let ran = world.crew(&["run", "write lines", "-n", "2", "--commit"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_snapshot!(world.complaints(&ran), @"crew: ignored when the loop began, and left out of crew's commits: .env, kept/it, kept/new");
    assert_eq!(world.sandbox.git(&["status", "--porcelain"]), "?? .env\n?? kept/");
}

#[test]
fn every_kind_of_change_and_every_name_is_committed_unchanged() {
    let world = World::new(&["
        rm gone; mv moved elsewhere; chmod +x program; ln -s README link
        rm turns && mkdir turns && echo x > turns/inside
        rm -r folder && echo x > folder
        rm -r linked && ln -s sub linked
        echo x > \"$(printf 'bytes\\377\\nx')\"; echo x > -dash; echo x > ':(top)x'; echo x > '*'
        mkdir many; for i in $(seq 2000); do echo $i > many/$i; done
    "]);
    for file in ["gone", "moved", "program", "turns", "folder/inside", "linked/inside", "sub/x"] {
        world.sandbox.write(file, "one\n");
    }
    world.sandbox.git(&["add", "."]);
    world.sandbox.git(&["commit", "--quiet", "--amend", "--no-edit"]);
    let ran = world.crew(&["run", "write lines", "-n", "1", "--commit"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_eq!(world.sandbox.git(&["status", "--porcelain"]), "", "{ran:#?}");
    let shown = world.sandbox.git(&["show", "--format=", "--name-status", "--no-renames", "HEAD"]);
    let shown: Vec<&str> = shown.lines().filter(|line| !line.contains("many/")).collect();
    assert_snapshot!(shown.join("\n"), @r#"
    A	*
    A	-dash
    A	:(top)x
    A	"bytes\377\nx"
    A	elsewhere
    A	folder
    D	folder/inside
    D	gone
    A	link
    A	linked
    D	linked/inside
    D	moved
    M	program
    D	turns
    A	turns/inside
    "#);
}

#[test]
fn a_nested_repository_of_the_agent_is_named_and_a_submodule_keeps_working() {
    let world = World::new(&[
        "git init -q empty; echo x > empty/file; git init -q full; \
         git -C full commit -q --allow-empty -m Full; echo x > full/file; echo x >> work.txt",
        "git add full; git -C module commit -q --allow-empty -m More; echo x >> work.txt",
    ]);
    let other = world.sandbox.root().join("other").display().to_string();
    world.sandbox.git(&["init", "--quiet", &other]);
    world.sandbox.git(&["-C", &other, "commit", "--quiet", "--allow-empty", "--message", "Other"]);
    let allowed = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    world.sandbox.git(&[&allowed[..], &[&other, "module"]].concat());
    world.sandbox.git(&["commit", "--quiet", "--message", "Module"]);
    let ran = world.crew(&["run", "write lines", "-n", "2", "--commit"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_snapshot!(world.complaints(&ran), @"
    crew: empty/ is a separate repository: no commit of this loop holds its files (git submodule add takes it in, or remove the .git in it)
    crew: full/ is a separate repository: no commit of this loop holds its files (git submodule add takes it in, or remove the .git in it)
    ");
    assert_eq!(world.sandbox.git(&["show", "--format=", "--name-only", "HEAD~"]), "work.txt");
    assert_eq!(
        world.sandbox.git(&["show", "--format=", "--name-only", "HEAD"]),
        "module\nwork.txt"
    );
}

#[test]
fn a_failed_commit_is_shown_until_one_succeeds() {
    let world = World::new(&["touch .git/index.lock; echo x >> work.txt"]);
    let ran = world.crew(&["run", "write lines", "-n", "2", "--commit"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let lock = world.sandbox.file(".git/index.lock");
    let undone = &format!(
        "  git     not committed, 2 tries failed: another git process is running here, or one crashed; let the other git \
         finish; if there is none, remove {}\n",
        lock.display()
    );
    assert!(ran.stdout.contains(undone), "{}", ran.stdout);
    assert!(world.crew(&["status"]).success().contains(undone));
    assert!(world.crew(&["show"]).success().contains(undone));
    let handoffs = world.sandbox.file(".claude/branches/main/handoffs");
    let handoff = std::fs::read_dir(handoffs).unwrap().next().unwrap().unwrap().path();
    assert!(
        std::fs::read_to_string(handoff).unwrap().contains("git: not committed, 2 tries failed")
    );
    std::fs::remove_file(lock).unwrap();
    world.steps(&[WORK]);
    let ran = world.crew(&["resume", "-n", "+1"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(!ran.stdout.contains("not committed"), "{}", ran.stdout);
}

/// A file of the user: its committed, staged and written content.
#[expect(clippy::struct_excessive_bools, reason = "each may be true of a file beside the others")]
#[derive(Debug, Default)]
struct Theirs {
    committed: bool,
    staged: bool,
    dirty: bool,
    edited: bool,
}

#[test]
#[ignore = "long"]
fn of_thirty_mixtures_only_files_that_the_agent_changed_are_committed() {
    let mut row = Row(7);
    for round in 0..30 {
        let world = World::new(&[]);
        let sandbox = &world.sandbox;
        let mut files: BTreeMap<String, Theirs> = BTreeMap::new();
        for number in 0..6 {
            let name = ["a", "b c", "d/e", "-f", ":(top)g", "h\u{e9}"][number].to_owned();
            let one = |row: &mut Row| row.below(2) == 0;
            let file = Theirs {
                committed: one(&mut row),
                staged: one(&mut row),
                dirty: one(&mut row),
                edited: one(&mut row),
            };
            files.insert(name, file);
        }
        let write = |what: &str, wanted: &dyn Fn(&Theirs) -> bool| {
            for (name, _) in files.iter().filter(|(_, file)| wanted(file)) {
                sandbox.write(name, &format!("{what} {name}\n"));
            }
        };
        write("committed", &|file| file.committed);
        sandbox.git(&["add", "--all"]);
        sandbox.git(&["commit", "--quiet", "--allow-empty", "--message", "Files"]);
        write("staged", &|file| file.staged);
        sandbox.git(&["add", "--all"]);
        write("written", &|file| file.dirty);
        let mut agent = String::from("echo x >> work.txt; mkdir -p d\n");
        for (name, _) in files.iter().filter(|(_, file)| file.edited) {
            let _ = writeln!(agent, "echo agent >> './{name}'");
        }
        world.steps(&[&agent, "git add -A; echo x >> work.txt"]);
        let index = |name: &str| {
            let name = format!(":(literal){name}");
            sandbox.git(&["ls-files", "--stage", "--", &name])
        };
        let before: BTreeMap<&String, String> =
            files.keys().map(|name| (name, index(name))).collect();
        let ran = world.crew(&["run", "write lines", "-n", "1", "--commit"]);
        assert_eq!(ran.code(), 10, "{round}: {ran:#?}");
        let committed = world.committed();
        let shown = world.complaints(&ran);
        let listed = |after: &str, name: &str| {
            let list = shown.split_once(after).and_then(|(_, list)| list.lines().next());
            let list =
                list.map(|list| list.trim_end_matches(" (crew diff shows what became of yours)"));
            list.is_some_and(|list| list.split(", ").any(|listed| listed == name))
        };
        for (name, file) in &files {
            let context = format!("round {round}, {name:?}, {file:?}:\n{ran:#?}");
            let is_users = file.staged || file.dirty;
            assert_eq!(committed.contains(name), file.edited, "{context}");
            if is_users && !file.edited {
                assert_eq!(&index(name), &before[name], "{context}");
            }
            assert_eq!(listed("changes it: ", name), is_users, "{context}");
            assert_eq!(listed("your changes too: ", name), is_users && file.edited, "{context}");
        }
        // An agent that stages everything does not get the user's work into a commit either.
        let ran = world.crew(&["resume", "-n", "+1"]);
        assert_eq!(ran.code(), 10, "{round}: {ran:#?}");
        assert_eq!(world.committed(), ["work.txt"], "round {round}, {files:?}: {ran:#?}");
    }
}

//! Ignored files for new working trees: which ones are copied, stay, or are left out.

use super::Yard;
use crate::git::include::{copy_files, copy_included, ignored_among};

/// A new working tree `tree` with these ignore rules.
fn tree(yard: &Yard, rules: &str) {
    yard.git(".", &["init", "-q", "tree"]);
    yard.write("tree/.git/info/exclude", rules);
}

#[test]
fn existing_files_stay_unless_they_are_to_be_replaced() {
    let yard = Yard::new();
    yard.write("repo/.git/info/exclude", "*.db\n");
    yard.write("repo/a/dev.db", "one\n");
    yard.write("repo/other.db", "other\n");
    let copied = |replaces| {
        copy_included("# data\n\ndev.db\n", &yard.path("repo"), &yard.path("tree"), replaces)
            .unwrap()
    };
    tree(&yard, "*.db\n");
    let dev = || yard.read("tree/a/dev.db");
    assert_eq!((copied(false), dev()), (vec![], "one\n".into()));
    yard.write("tree/a/dev.db", "two\n");
    assert_eq!((copied(false), dev()), (vec![], "two\n".into()));
    assert_eq!((copied(true), dev()), (vec![], "one\n".into()));
    assert!(!yard.path("tree/other.db").exists());
}

#[test]
fn files_that_are_not_copied_are_named_with_the_reason() {
    let yard = Yard::new();
    yard.write("repo/.git/info/exclude", "data\n");
    yard.sh("repo", "mkdir data; truncate -s 51M data/big; ln -s big data/link; : > data/small");
    tree(&yard, "data\n");
    let (repository, tree) = (yard.path("repo"), yard.path("tree"));
    let left_out = copy_included("data\n", &repository, &tree, false).unwrap();
    assert_eq!(left_out, ["data/big (over 50 MiB)", "data/link (link)"]);
    assert!(tree.join("data/small").exists() && !tree.join("data/big").exists());

    let patterns = "small\n".repeat(2003);
    let left_out = copy_included(&patterns, &repository, &tree, false).unwrap();
    assert_eq!(left_out, ["3 patterns beyond 2000"]);
    let paths = std::iter::repeat_n(&b"data/small"[..], 10_002);
    let left_out = copy_files(paths, &repository, &tree, false).unwrap();
    assert_eq!(left_out, ["2 files beyond 10000"]);
}

#[test]
fn a_file_that_git_does_not_ignore_is_not_copied_whatever_its_name() {
    let yard = Yard::new();
    yard.write("repo/.gitignore", "db.*\n:(glob)d.local\n");
    for name in ["db.local", "api.local", ":(glob)d.local", ":(glob)e.local"] {
        yard.write(&format!("repo/{name}"), "");
    }
    tree(&yard, "db.*\n:(glob)d.local\n");
    let (repository, tree) = (yard.path("repo"), yard.path("tree"));
    let left_out = copy_included("*.local\n", &repository, &tree, false).unwrap();
    let expected =
        [":(glob)e.local", "api.local"].map(|path| format!("{path} (git does not ignore it)"));
    assert_eq!(left_out, expected);
    assert_eq!(yard.sh("tree", "ls"), ":(glob)d.local\ndb.local\n");
    assert_eq!(copy_included("api.*\n", &repository, &tree, false).unwrap(), expected[1..]);
    assert_eq!(ignored_among([&b"db.local"[..]].into_iter(), |_, _| None), None);
}

/// The working tree of an agent that has put something in the place of a folder.
fn copied_where(act: &str) -> (Yard, Result<Vec<String>, String>) {
    let yard = Yard::new();
    yard.write("repo/.git/info/exclude", "*.env\n");
    yard.write("repo/conf/deep/secret.env", "secret\n");
    yard.write("outside/deep/secret.env", "precious\n");
    tree(&yard, "*.env\n");
    yard.write("tree/docs/keep", "");
    yard.sh("tree", act);
    let copied = copy_included("secret.env\n", &yard.path("repo"), &yard.path("tree"), true);
    (yard, copied)
}

#[test]
fn nothing_is_written_through_a_link_in_the_place_of_a_folder() {
    let reason = "conf/deep/secret.env (a link or a file is in the place of its folder)";
    for act in [
        "ln -s ../outside conf",
        "mkdir conf; ln -s ../../outside/deep conf/deep",
        "ln -s docs conf",
        "echo > conf",
        "ln -s missing conf",
    ] {
        let (yard, copied) = copied_where(act);
        assert_eq!(copied, Ok(vec![reason.to_owned()]), "{act}");
        assert_eq!(yard.read("outside/deep/secret.env"), "precious\n", "{act}");
        assert_eq!(yard.sh("tree", "ls docs; ls -d missing 2> /dev/null || :"), "keep\n", "{act}");
    }
    // A link in the place of the file itself is replaced, and what it leads to stays.
    let (yard, copied) =
        copied_where("mkdir -p conf/deep; ln -s ../../../outside/deep/secret.env conf/deep");
    assert_eq!((copied, yard.read("outside/deep/secret.env")), (Ok(vec![]), "precious\n".into()));
    assert_eq!(yard.read("tree/conf/deep/secret.env"), "secret\n");
    let (yard, copied) = copied_where("mkdir .claude; ln -s ../../outside .claude/branches");
    assert!(copied.unwrap_err().contains(".claude/branches"));
    assert_eq!(yard.sh("outside", "ls"), "deep\n");
}

#[test]
fn a_file_that_the_new_tree_does_not_ignore_is_not_copied() {
    let (yard, copied) = copied_where("echo '!secret.env' > .gitignore");
    assert_eq!(copied.unwrap(), ["conf/deep/secret.env (git does not ignore it)"]);
    assert!(!yard.path("tree/conf").exists());
}

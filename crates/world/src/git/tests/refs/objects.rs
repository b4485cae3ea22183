//! Objects that the refs point to: fetched without a trace, and read exactly as written.

use insta::assert_snapshot;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::{Machines, SHARED, update};
use crate::git::remotes::Refs;
use engine::git::{GitTrouble, SwapResult};

#[test]
fn a_fetch_transfers_objects_and_leaves_neither_a_ref_nor_a_fetch_head() {
    let machines = Machines::new(1);
    let yard = &machines.yard;
    let taken = machines.write(0, None, "first").unwrap();
    let kept = machines.write(0, Some(&taken), "second").unwrap();
    yard.git("repo", &["remote", "add", "origin", &machines.hub]);
    yard.git("repo", &["config", "--add", "remote.origin.fetch", "+refs/crew/*:refs/crew/*"]);
    yard.git("repo", &["config", "fetch.prune", "true"]);
    yard.git("repo", &["update-ref", "refs/crew/mine", "HEAD"]);
    let before = yard.git("repo", &["for-each-ref"]);
    let folder = yard.path("repo");
    let refs = Refs { folder: &folder, remote: "origin", stop: &|| false, patience: None };
    assert_eq!(refs.read_messages(&[taken.clone(), kept.clone()]), Ok(vec![None, None]));
    assert_eq!(refs.fetch_objects(&[SHARED], &[]), Ok(()));
    let read =
        [&kept, &taken, &"junk\nHEAD".to_owned(), &yard.git("repo", &["rev-parse", "HEAD^{tree}"])];
    let read = refs.read_messages(&read.map(|id| id.trim_end().to_owned())).unwrap();
    assert_eq!(read, [Some("second".to_owned()), Some("first".to_owned()), None, None]);
    assert_eq!(yard.git("repo", &["for-each-ref"]), before);
    assert!(!yard.path("repo/.git/FETCH_HEAD").exists());
}

#[test]
fn a_fetch_transfers_only_what_is_new() {
    let machines = Machines::new(2);
    let count = || {
        let counted = machines.yard.git("m1", &["count-objects", "-v"]);
        let packs = counted.lines().find_map(|line| line.strip_prefix("in-pack: "));
        packs.unwrap().parse::<u32>().unwrap()
    };
    // Each fetch then leaves a pack, which holds again what is sent again.
    machines.yard.git("m1", &["config", "fetch.unpackLimit", "1"]);
    let first = machines.write(0, None, "1").unwrap();
    let second = machines.write(0, Some(&first), "2").unwrap();
    machines.on(1, |refs| refs.fetch_objects(&[SHARED], &[])).unwrap();
    assert_eq!(count(), 3, "two commits and their tree");
    let third = machines.write(0, Some(&second), "3").unwrap();
    machines.on(1, |refs| refs.fetch_objects(&[SHARED], &[&second])).unwrap();
    assert_eq!(count(), 4);
    let fourth = machines.write(0, Some(&third), "4").unwrap();
    // Known once, and cleared away since.
    let gone = machines.on(0, |refs| refs.make_commit("nowhere else", None)).unwrap();
    machines.on(1, |refs| refs.fetch_objects(&[SHARED], &[&gone])).unwrap();
    let known = [fourth, third, second];
    let messages = machines.on(1, |refs| refs.read_messages(&known)).unwrap();
    assert_eq!(messages, ["4", "3", "2"].map(|text| Some(text.to_owned())));
}

#[test]
fn a_thousand_refs_are_moved_listed_fetched_and_read_at_once() {
    let machines = Machines::new(2);
    let commit = |number: usize| {
        let text = format!("task {number}");
        let (size, crew) = (text.len(), "crew <crew@localhost> 1700000000 +0000");
        format!("commit refs/crew/many/{number:04}\ncommitter {crew}\ndata {size}\n{text}\n")
    };
    let import = (0..1000).map(commit).collect::<Vec<_>>().concat();
    machines.yard.write("import", &import);
    machines.yard.sh("hub.git", "git fast-import --quiet < ../import");
    let noise = "refs/heads/refs/crew/many/0001";
    machines.yard.git("hub.git", &["update-ref", noise, "refs/crew/many/0001"]);
    machines.on(1, |refs| {
        let listed = refs.list_refs(&["refs/crew/many/*"]).unwrap();
        let names: Vec<&str> = listed.iter().map(|found| found.name.as_str()).collect();
        assert_eq!((names.len(), names[0]), (1000, "refs/crew/many/0000"));
        refs.fetch_objects(&names, &[]).unwrap();
        let ids: Vec<String> = listed.iter().map(|found| found.id.clone()).collect();
        let read = refs.read_messages(&ids).unwrap();
        let expected = (0..1000).map(|number| Some(format!("task {number}")));
        assert!(read.into_iter().eq(expected));
        // git takes no name for a target that is also the end of a branch's.
        machines.yard.git("hub.git", &["update-ref", "-d", noise]);
        let delete = listed.iter().map(|found| update(&found.name, Some(&found.id), None));
        assert_eq!(refs.swap(&delete.collect::<Vec<_>>()), Ok(SwapResult::Done));
        assert_eq!(refs.list_refs(&["refs/crew/*"]), Ok(Vec::new()));
    });
}

#[test]
fn a_message_too_long_or_with_a_zero_byte_is_neither_written_nor_read() {
    let machines = Machines::new(1);
    let longest = "x".repeat(8 << 20);
    machines.on(0, |refs| {
        let id = refs.make_commit(&longest, None).unwrap();
        assert_eq!(refs.read_message(&id).unwrap(), longest);
        assert_snapshot!(refs.make_commit("a\0b", None).unwrap_err().to_failure().with_hint(), @"
        refs failed: git cannot keep this message: it is longer than 8 MiB or contains a NUL byte
        hint: shorten it, and remove the NUL byte
        ");
        assert_eq!(refs.make_commit(&format!("{longest}x"), None), refs.make_commit("a\0b", None));
    });
    // Longer than all that is read of one git, between two that are not.
    machines.yard.write(
        "write",
        "t=$(git mktree </dev/null); for size in 1 40000000 1; do\n\
         head -c $size /dev/zero | tr '\\0' x |\n\
         GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a \
         git commit-tree $t -F -; done",
    );
    let ids = machines.yard.sh("m0", "sh ../write");
    let ids: Vec<String> = ids.lines().map(str::to_owned).collect();
    let read = machines.on(0, |refs| refs.read_messages(&ids)).unwrap();
    assert_eq!(read, [Some("x".to_owned()), None, Some("x".to_owned())]);
    let fault = machines.on(0, |refs| refs.read_message(&ids[1])).unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::Other);
}

#[test]
fn any_text_is_read_back_as_it_was_written() {
    let machines = Machines::new(1);
    let given = [
        String::new(),
        "\n\n a \n\n\n".to_owned(),
        "# no comment\n".to_owned(),
        "\r\n\u{fffe}\u{ffff}\u{fdd0}\u{85}\u{feff}".to_owned(),
        "tree 1\nparent 2\n\n0000 missing\n".to_owned(),
    ];
    let same = |texts: &[String]| {
        machines.on(0, |refs| {
            let ids: Vec<String> =
                texts.iter().map(|text| refs.make_commit(text, None).unwrap()).collect();
            let read = refs.read_messages(&ids).unwrap();
            assert_eq!(read.into_iter().map(Option::unwrap).collect::<Vec<_>>(), texts);
        });
    };
    let texts = prop::collection::vec("[^\0]{0,40}", 1..8);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(10));
    let held = runner.run(&texts, |texts| {
        same(&texts);
        Ok(())
    });
    held.unwrap();
    same(&given);
    machines.yard.git("m0", &["config", "i18n.commitEncoding", "latin1"]);
    same(&["ö".to_owned()]);
}

//! What git prints about pushes, fetches and refs, and how it is read.

mod push {
    use super::super::*;

    /// Output of git 2.47 and OpenSSH 9.2, and the wording of hosts from their own pages.
    const TABLE: &[(&str, GitTrouble, &str)] = &[
        (
            "error: failed to push some refs to 'file:///r.git'\nhint: Updates were rejected because the remote contains work that you do not\nTo file:///r.git\n!\trefs/heads/main:refs/heads/main\t[rejected] (fetch first)\nDone\n",
            GitTrouble::NonFastForward,
            "the branch on the remote has commits that this one lacks",
        ),
        (
            "To file:///r.git\n!\trefs/heads/main:refs/heads/main\t[rejected] (non-fast-forward)\nDone\n",
            GitTrouble::NonFastForward,
            "the branch on the remote has commits that this one lacks",
        ),
        (
            "remote: error: denying non-fast-forward refs/heads/a (you should pull first)        \nTo file:///r.git\n!\trefs/heads/a:refs/heads/a\t[remote rejected] (non-fast-forward)\nDone\n",
            GitTrouble::Rejected,
            "the remote rejects rewritten branches: receive.denyNonFastForwards is set there",
        ),
        (
            "remote: Resolving deltas: 100% (1/1), done.        \nremote: error: GH006: Protected branch update failed for refs/heads/main.        \nremote: error: Changes must be made through a pull request.        \nTo https://host/r.git\n!\trefs/heads/main:refs/heads/main\t[remote rejected] (protected branch hook declined)\nDone\n",
            GitTrouble::Rejected,
            "[remote rejected] (protected branch hook declined): GH006: Protected branch update failed for refs/heads/main.",
        ),
        (
            "remote: GitLab: You are not allowed to push code to protected branches on this project.        \n!\trefs/heads/main:refs/heads/main\t[remote rejected] (pre-receive hook declined)\nDone\n",
            GitTrouble::Auth,
            "[remote rejected] (pre-receive hook declined): GitLab: You are not allowed to push code to protected branches on this project.",
        ),
        (
            "remote: error: refusing to update checked out branch: refs/heads/main        \nremote: is denied, because it will make the index and work tree inconsistent        \n!\trefs/heads/main:refs/heads/main\t[remote rejected] (branch is currently checked out)\nDone\n",
            GitTrouble::Rejected,
            "[remote rejected] (branch is currently checked out): refusing to update checked out branch: refs/heads/main",
        ),
        (
            "remote: error: GH008: Your push referenced at least 1 unknown Git LFS object:        \nremote:     0c3f        \n!\trefs/heads/main:refs/heads/main\t[remote rejected] (pre-receive hook declined)\nDone\n",
            GitTrouble::Rejected,
            "[remote rejected] (pre-receive hook declined): GH008: Your push referenced at least 1 unknown Git LFS object:",
        ),
        (
            "git@host: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
            GitTrouble::Auth,
            "git@host: Permission denied (publickey).",
        ),
        (
            "Host key verification failed.\nfatal: Could not read from remote repository.\n",
            GitTrouble::Auth,
            "Host key verification failed.",
        ),
        (
            "fatal: Authentication failed for 'http://u:secret@127.0.0.1:20401/x.git/'\n",
            GitTrouble::Auth,
            "Authentication failed for 'http://127.0.0.1:20401/x.git/'",
        ),
        (
            "fatal: could not read Username for 'http://127.0.0.1:20501': terminal prompts disabled\n",
            GitTrouble::Auth,
            "could not read Username for 'http://127.0.0.1:20501': terminal prompts disabled",
        ),
        (
            "remote: Permission to o/r.git denied to u.\nfatal: unable to access 'https://host/o/r.git/': The requested URL returned error: 403\n",
            GitTrouble::Auth,
            "Permission to o/r.git denied to u.",
        ),
        (
            "fatal: '/nonexist/x.git' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
            GitTrouble::NoRemote,
            "'/nonexist/x.git' does not appear to be a git repository",
        ),
        (
            "ERROR: Repository not found.\nfatal: Could not read from remote repository.\n",
            GitTrouble::NoRemote,
            "Repository not found.",
        ),
        (
            "fatal: repository 'http://127.0.0.1:20404/x.git/' not found\n",
            GitTrouble::NoRemote,
            "repository 'http://127.0.0.1:20404/x.git/' not found",
        ),
        (
            "fatal: unable to access 'http://127.0.0.1:1/x.git/': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server\n",
            GitTrouble::Network,
            "unable to access 'http://127.0.0.1:1/x.git/': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server",
        ),
        (
            "ssh: Could not resolve hostname no.such.invalid: Name or service not known\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
            GitTrouble::Network,
            "ssh: Could not resolve hostname no.such.invalid: Name or service not known",
        ),
        (
            "ssh: connect to host 127.0.0.1 port 1: Connection refused\nfatal: Could not read from remote repository.\n",
            GitTrouble::Network,
            "ssh: connect to host 127.0.0.1 port 1: Connection refused",
        ),
        (
            "fatal: unable to access 'http://127.0.0.1:20500/x.git/': The requested URL returned error: 500\n",
            GitTrouble::Network,
            "unable to access 'http://127.0.0.1:20500/x.git/': The requested URL returned error: 500",
        ),
        (
            "error: src refspec x does not match any\n",
            GitTrouble::Other,
            "src refspec x does not match any",
        ),
        ("", GitTrouble::Other, "git said nothing"),
    ];

    #[test]
    fn each_failed_push_is_classified_by_what_git_printed() {
        for (text, expected, cause) in TABLE {
            assert_eq!(classify_failure(text), (*expected, (*cause).to_owned()), "{text}");
        }
    }

    #[test]
    fn submodules_that_must_be_pushed_first_are_named() {
        let text = "The following submodule paths contain changes that can\n\
            not be found on any remote:\n  lib\n  third party/x\n\nPlease try\n\n\
            \tgit push --recurse-submodules=on-demand\n\nfatal: Aborting.\n";
        assert_eq!(submodules_on_no_remote(text), ["lib", "third party/x"]);
        assert_eq!(submodules_on_no_remote("Everything up-to-date\n"), [""; 0]);
    }

    #[test]
    fn a_pointer_of_git_lfs_is_a_small_file_that_begins_as_one() {
        let id = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let version = "version https://git-lfs.github.com/spec/v1";
        let object = |kind: &str, text: &str| format!("1 {kind} {}\n{text}\n", text.len());
        let batch = [
            object("commit", "a\n\nsubject\n"),
            object("blob", &format!("{version}\noid sha256:{id}\nsize 12\n")),
            object("blob", &format!("{version}\next-0-foo sha256:00\noid sha256:{id}\nsize 1\n")),
            object("blob", &format!("quoted:\n{version}\noid sha256:{id}\nsize 12\n")),
        ];
        let file = |bytes| LfsFile { id: id.to_owned(), bytes };
        assert_eq!(lfs_pointers(batch[..2].concat().as_bytes()), [file(12)]);
        assert_eq!(lfs_pointers(batch[2].as_bytes()), [file(1)]);
        assert_eq!(lfs_pointers(batch[3].as_bytes()), []);
        assert_eq!(lfs_pointers(b"b3 blob 3\nabc\n"), []);
        let without_size = object("blob", &format!("{version}\noid sha256:{id}\nsize -1\n"));
        assert_eq!(lfs_pointers(without_size.as_bytes()), []);
    }

    #[test]
    fn a_push_reports_whether_anything_was_new() {
        let table = [
            ("To r\n*\trefs/heads/a:refs/heads/a\t[new branch]\nDone\n", Some(false)),
            ("To r\n \trefs/heads/a:refs/heads/a\te5eb5da..8192e1a\nDone\n", Some(false)),
            ("To r\n=\trefs/heads/a:refs/heads/a\t[up to date]\nDone\n", Some(true)),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(was_up_to_date(text), expected, "{text}");
        }
    }

    #[test]
    fn no_address_in_an_error_contains_a_password() {
        let table = [
            ("to https://u:p@h/x and https://t@g/y", "to https://h/x and https://g/y"),
            ("ssh://git@h:22/x@y", "ssh://h:22/x@y"),
            ("no address", "no address"),
        ];
        for (text, expected) in table {
            assert_eq!(without_secrets(text), expected);
        }
    }
}

mod git_refs {
    use proptest::prelude::*;

    use super::super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";

    /// Reads a list and shows the names.
    fn names(text: &str, patterns: &[&str]) -> String {
        let refs = parse_refs(text, patterns);
        refs.iter().map(|found| found.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_list_has_only_the_requested_refs() {
        let lines = ["refs/crew/a", "refs/crew/ab", "refs/crew/b/c", "refs/heads/refs/crew/a"];
        let text = lines.map(|name| format!("{ONE}\t{name}\n")).concat();
        let table: [(&[&str], &str); 6] = [
            (&["refs/crew/a"], "refs/crew/a"),
            (&["refs/crew/a*"], "refs/crew/a refs/crew/ab"),
            (&["refs/crew/b/*", "refs/crew/a"], "refs/crew/a refs/crew/b/c"),
            (&["refs/*"], "refs/crew/a refs/crew/ab refs/crew/b/c refs/heads/refs/crew/a"),
            (&["crew/a"], ""),
            (&[], ""),
        ];
        for (patterns, expected) in table {
            assert_eq!(names(&text, patterns), expected, "{patterns:?}");
        }
    }

    #[test]
    fn a_line_that_is_not_a_ref_is_left_out_of_a_list() {
        let junk = [
            format!("{ONE}\trefs/crew/a:refs/heads/main"),
            format!("{ONE}\t+refs/crew/a"),
            format!("{ONE}\tHEAD"),
            format!("{ONE} refs/crew/a"),
            "1111\trefs/crew/a".to_owned(),
            "ref: refs/heads/main\tHEAD".to_owned(),
            "warning: something\trefs/crew/a".to_owned(),
        ];
        for line in junk {
            assert_eq!(names(&line, &["*"]), "", "{line}");
        }
    }

    #[test]
    fn each_object_has_the_message_of_its_commit_or_none() {
        let commit = "tree 1\nauthor a\n\nwords\n\nand \u{e9}\n";
        let size = commit.len();
        let text = format!(
            "{ONE} commit {size}\n{commit}\n{ONE} missing\n{ONE} blob 3\na\n\n\n\
             {ONE} commit 9\ntree 1\n\n\u{1}\n{ONE} commit 6\ntree 1\n{ONE} commit 90\ntree 1\n\nwo"
        );
        let read = parse_messages(text.as_bytes());
        let read: Vec<Option<&str>> = read.iter().map(Option::as_deref).collect();
        assert_eq!(read, [Some("words\n\nand \u{e9}\n"), None, None, Some("\u{1}"), None]);
        let long = format!("\n\n{}", "x".repeat(MESSAGE_BYTES));
        for (more, is_read) in [("", true), ("x", false)] {
            let text = format!("{ONE} commit {}\n{long}{more}\n", long.len() + more.len());
            let read = parse_messages(text.as_bytes());
            assert_eq!(read.iter().map(Option::is_some).collect::<Vec<_>>(), [is_read]);
        }
    }

    #[test]
    fn a_push_of_several_refs_is_sorted_by_what_git_printed() {
        // Output of git 2.47, and the wording of JGit.
        let stale = "error: atomic push failed for ref refs/crew/a. status: 7\n\
                     fatal: the remote end hung up unexpectedly\nTo r\n\
                     !\t1:refs/crew/a\t[rejected] (stale info)\n\
                     !\t2:refs/heads/b\t[rejected] (atomic push failed)\nDone\n";
        let locked = "remote: error: cannot lock ref 'refs/crew/a': reference already exists        \n\
                      To r\n!\t1:refs/crew/a\t[remote rejected] (atomic transaction failed)\nDone\n";
        let jgit = "To r\n!\t1:refs/crew/a\t[remote rejected] (failed to lock)\nDone\n";
        let hook = "remote: no branches today        \n\
                    remote: error: hook declined to update refs/heads/b        \nTo r\n\
                    !\t1:refs/crew/a\t[remote rejected] (atomic push failure)\n\
                    !\t2:refs/heads/b\t[remote rejected] (hook declined)\nDone\n";
        let cut = "fatal: the remote end hung up unexpectedly\n";
        let table = [
            (stale, [true, false, false]),
            (locked, [false, true, true]),
            (jgit, [false, true, true]),
            (hook, [false, true, false]),
            (cut, [false, false, false]),
            ("", [false, false, false]),
        ];
        for (text, expected) in table {
            let sorted = [is_stale(text), is_rejected(text), is_contended(text)];
            assert_eq!(sorted, expected, "stale, rejected, contended: {text}");
        }
        let declined = "[remote rejected] (hook declined): no branches today";
        assert_eq!(classify_failure(hook), (GitTrouble::Rejected, declined.to_owned()));
        assert_eq!(classify_failure(cut).0, GitTrouble::Network);
    }

    proptest! {
        #[test]
        fn no_reader_panics_on_junk(
            text in "([!\t0-9a-f ]|commit|refs/|missing|\\[remote rejected\\]|\n|.){0,80}",
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            size in any::<u64>(),
        ) {
            parse_refs(&text, &["*", ""]);
            is_stale(&text);
            is_contended(&text);
            classify_failure(&text);
            let header = format!("{ONE} commit {size}\n").into_bytes();
            prop_assert!(parse_messages(&[header, bytes].concat()).len() < 80);
        }
    }
}

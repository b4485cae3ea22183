//! Where a push goes, and each way in which it can fail, tested with real remotes.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use insta::assert_snapshot;

use super::{Yard, push_branch};
use crate::git::Git;
use crate::git::referred::LfsPush;
use engine::git::{GitFault, GitTrouble, Pushed};

fn pushed(remote: &str, branch: &str) -> Pushed {
    Pushed {
        remote: remote.to_owned(),
        branch: branch.to_owned(),
        was_up_to_date: false,
        upstream_was_set: false,
        commit: String::new(),
    }
}

#[test]
fn a_push_brings_the_branch_to_its_upstream_and_says_when_nothing_was_new() {
    let yard = Yard::with_origin();
    assert_eq!(yard.push(), Ok(Pushed { was_up_to_date: true, ..pushed("origin", "main") }));
    yard.commit_file("repo", "file", "two\n");
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
    assert_eq!(yard.git("origin.git", &["log", "-1", "--format=%s", "main"]), "change file\n");
}

#[test]
fn a_branch_without_an_upstream_is_pushed_to_the_only_remote_which_becomes_its_upstream() {
    let yard = Yard::new();
    let address = yard.remote("hub.git");
    yard.git("repo", &["remote", "add", "hub", &address]);
    assert_eq!(yard.push(), Ok(Pushed { upstream_was_set: true, ..pushed("hub", "main") }));
    yard.commit_file("repo", "file", "two\n");
    assert_eq!(yard.push(), Ok(pushed("hub", "main")));
}

#[test]
fn origin_is_preferred_among_several_remotes_or_else_the_user_has_to_choose() {
    let yard = Yard::new();
    let address = yard.remote("one.git");
    yard.git("repo", &["remote", "add", "one", &address]);
    yard.git("repo", &["remote", "add", "two", &address]);
    assert_snapshot!(yard.push().unwrap_err().to_failure().with_hint(), @"
    push failed: none of the remotes one, two is this branch's
    hint: git push -u REMOTE main, once
    ");
    yard.git("repo", &["config", "remote.pushDefault", "two"]);
    assert_eq!(yard.push().map(|pushed| pushed.remote), Ok("two".to_owned()));
    yard.git("repo", &["config", "--unset", "remote.pushDefault"]);
    yard.git("repo", &["config", "--remove-section", "branch.main"]);
    yard.git("repo", &["remote", "rename", "one", "origin"]);
    assert_eq!(yard.push().map(|pushed| pushed.remote), Ok("origin".to_owned()));
}

#[test]
fn a_branch_made_from_the_upstream_of_another_is_not_pushed_to_that_upstream() {
    let yard = Yard::with_origin();
    yard.git("repo", &["switch", "-qc", "feature", "--track", "origin/main"]);
    yard.commit_file("repo", "file", "two\n");
    assert_eq!(yard.push(), Ok(pushed("origin", "feature")));
    assert_eq!(yard.git("origin.git", &["log", "--format=%s", "main"]), "first\n");
    yard.git("repo", &["config", "push.default", "upstream"]);
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
}

#[test]
fn only_the_branch_is_pushed_whatever_the_configuration_of_git() {
    let yard = Yard::with_origin();
    yard.git("repo", &["branch", "other"]);
    yard.git("repo", &["push", "-q", "origin", "other"]);
    yard.git("repo", &["switch", "-q", "other"]);
    yard.commit_file("repo", "other", "x\n");
    yard.git("repo", &["switch", "-q", "main"]);
    yard.git("repo", &["config", "push.default", "matching"]);
    yard.commit_file("repo", "file", "two\n");
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
    assert_eq!(yard.git("origin.git", &["log", "--format=%s", "other"]), "first\n");
}

/// Points `origin` at an address and pushes there.
fn push_to(yard: &Yard, address: &str) -> GitFault {
    yard.git("repo", &["config", "remote.origin.url", address]);
    yard.push().unwrap_err()
}

#[test]
fn commits_that_the_branch_lacks_are_reported() {
    let yard = Yard::with_origin();
    yard.git(".", &["clone", "-q", "origin.git", "other"]);
    yard.identify("other");
    yard.commit_file("other", "file", "theirs\n");
    yard.git("other", &["push", "-q"]);
    yard.commit_file("repo", "file", "ours\n");
    let fault = yard.push().unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::NonFastForward);
    assert_snapshot!(fault.to_failure().with_hint(), @"
    push failed: the branch on the remote has commits that this one lacks
    hint: git pull --rebase origin main, then git push origin main
    ");
    yard.git("repo", &["fetch", "-q"]);
    assert_eq!(yard.push().unwrap_err(), fault);
}

#[test]
fn a_hook_that_refuses_the_user_differs_from_one_that_refuses_the_push() {
    let yard = Yard::with_origin();
    let hook = "origin.git/hooks/pre-receive";
    yard.commit_file("repo", "file", "two\n");
    yard.script(hook, "#!/bin/sh\necho 'Permission denied: somebody may not push' >&2\nexit 1\n");
    let fault = yard.push().unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::Auth);
    assert_snapshot!(fault.to_failure().with_hint(), @"
    push failed: [remote rejected] (pre-receive hook declined): Permission denied: somebody may not push
    hint: make git push origin main work without a question here: a key, a credential helper, the right to push
    ");
    yard.script(hook, "#!/bin/sh\necho 'the subject has no ticket number'\nexit 1\n");
    let fault = yard.push().unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::Rejected);
    assert_snapshot!(fault.to_failure().with_hint(), @"
    push failed: [remote rejected] (pre-receive hook declined): the subject has no ticket number
    hint: do what the remote asks for, or push a branch other than main
    ");
    yard.script(hook, "#!/bin/sh\nexit 0\n");
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
}

#[test]
fn the_errors_of_ssh_are_distinguished() {
    let yard = Yard::with_origin();
    yard.git("repo", &["config", "core.sshCommand", &yard.path("ssh").display().to_string()]);
    let table = [
        ("git@host: Permission denied (publickey).", 255, GitTrouble::Auth),
        ("Host key verification failed.", 255, GitTrouble::Auth),
        (
            "ssh: Could not resolve hostname host: Name or service not known",
            255,
            GitTrouble::Network,
        ),
        ("ssh: connect to host host port 22: Connection timed out", 255, GitTrouble::Network),
        ("ERROR: Repository not found.", 1, GitTrouble::NoRemote),
    ];
    for (said, status, expected) in table {
        yard.script("ssh", &format!("#!/bin/sh\necho '{said}' >&2\nexit {status}\n"));
        let fault = push_to(&yard, "git@host:r.git");
        assert_eq!(fault.trouble, expected, "{said}: {fault}");
        assert_eq!(fault.cause, said.trim_start_matches("ERROR: "));
    }
}

/// A server on this machine that answers every request with `status`.
fn server(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let header = "WWW-Authenticate: Basic realm=\"here\"\r\nContent-Length: 0";
            let _ = write!(stream, "HTTP/1.1 {status}\r\n{header}\r\nConnection: close\r\n\r\n");
        }
    });
    format!("http://{address}")
}

#[test]
fn the_answers_of_a_server_are_distinguished_and_no_password_is_repeated() {
    let yard = Yard::with_origin();
    // No credential helper may be asked for the password of a test.
    yard.git("repo", &["config", "credential.helper", ""]);
    let table = [
        ("401 Unauthorized", GitTrouble::Auth),
        ("403 Forbidden", GitTrouble::Auth),
        ("404 Not Found", GitTrouble::NoRemote),
        ("503 Service Unavailable", GitTrouble::Network),
    ];
    for (status, expected) in table {
        let address = server(status);
        for who in ["", "somebody:secret@"] {
            let address = address.replace("://", &format!("://{who}"));
            let fault = push_to(&yard, &format!("{address}/r.git"));
            assert_eq!(fault.trouble, expected, "{status}: {fault}");
            assert!(!fault.to_string().contains("secret"), "{fault}");
        }
    }
}

#[test]
fn an_unreachable_or_missing_remote_is_reported() {
    let yard = Yard::with_origin();
    // The port was free a moment ago, so nothing listens there.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fault = push_to(&yard, &format!("http://{closed}/r.git"));
    assert_eq!(fault.trouble, GitTrouble::Network, "{fault}");
    let fault = push_to(&yard, "file:///no/such/r.git");
    assert_eq!(fault.trouble, GitTrouble::NoRemote);
    assert_snapshot!(fault.to_failure().with_hint(), @"
    push failed: '/no/such/r.git' does not appear to be a git repository
    hint: look at git remote -v, then git remote set-url origin ADDRESS
    ");
    let bare = Yard::new();
    assert_snapshot!(bare.push().unwrap_err().to_failure().with_hint(), @"
    push failed: this repository has no remote
    hint: git remote add origin ADDRESS
    ");
    yard.git("repo", &["switch", "-q", "--detach"]);
    assert_snapshot!(yard.push().unwrap_err().to_failure().with_hint(), @"
    push failed: no branch is checked out
    hint: git switch BRANCH, or git switch -c NEW
    ");
}

#[test]
fn a_push_that_gets_no_answer_is_ended() {
    let yard = Yard::with_origin();
    yard.git("repo", &["config", "core.sshCommand", &yard.path("ssh").display().to_string()]);
    yard.script("ssh", "#!/bin/sh\n: > asked\nexec sleep 600\n");
    yard.git("repo", &["config", "remote.origin.url", "git@host:r.git"]);
    let trusted = yard.trusted();
    let asked = yard.path("repo/asked");
    let stop = || asked.exists();
    let place = yard.place();
    let fault = push_branch(&super::Steps::new(&place, &trusted, &stop), Some("main"), None, false);
    assert_eq!(fault.unwrap_err().trouble, GitTrouble::Network);
}

#[test]
fn neither_a_hook_nor_a_planted_program_runs_for_a_push() {
    let yard = Yard::with_origin();
    yard.commit_file("repo", "file", "two\n");
    yard.script("repo/.git/hooks/pre-push", "#!/bin/sh\nexit 1\n");
    let trusted = yard.trusted();
    assert_eq!(
        push_branch(
            &super::Steps::new(&yard.place(), &trusted, &|| false),
            Some("main"),
            None,
            false
        )
        .map(|pushed| pushed.remote),
        Ok("origin".to_owned())
    );
    for (name, value) in [
        ("remote.origin.receivepack", "touch planted; git-receive-pack"),
        ("remote.origin.pushurl", "../elsewhere.git"),
        ("url.file:///elsewhere.pushInsteadOf", "file://"),
        ("branch.main.pushRemote", ".git/evil"),
        ("remote.pushDefault", ".git/evil"),
        ("push.default", "upstream"),
        ("push.recurseSubmodules", "no"),
        ("http.https://host/.sslVerify", "false"),
    ] {
        yard.git("repo", &["config", name, value]);
        let fault = push_branch(
            &super::Steps::new(&yard.place(), &trusted, &|| false),
            Some("main"),
            None,
            false,
        )
        .unwrap_err();
        assert_eq!(fault.trouble, GitTrouble::Changed, "{name}");
        yard.git("repo", &["config", "--unset", name]);
    }
    assert!(!yard.path("repo/planted").exists());
    yard.git("repo", &["config", "branch.other.pushRemote", ".git/evil"]);
    assert!(
        push_branch(
            &super::Steps::new(&yard.place(), &trusted, &|| false),
            Some("main"),
            None,
            false
        )
        .is_ok()
    );
}

#[test]
fn settings_never_add_other_refs_to_a_push() {
    let yard = Yard::with_origin();
    yard.commit_file("repo", "file", "two\n");
    yard.git("repo", &["tag", "-a", "v9", "-m", "a release"]);
    yard.git("repo", &["branch", "other"]);
    yard.git("repo", &["config", "push.followTags", "true"]);
    yard.git("repo", &["config", "remote.origin.mirror", "true"]);
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
    let refs = yard.git("origin.git", &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main\n");
}

/// A repository with a submodule `lib` whose last commit is on no remote.
fn with_a_submodule() -> Yard {
    let yard = Yard::with_origin();
    yard.git(".", &["clone", "-q", "--bare", "repo", "lib.git"]);
    let allowed = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    yard.git("repo", &[&allowed[..], &["../lib.git", "lib"]].concat());
    yard.identify("repo/lib");
    yard.git("repo", &["commit", "-qm", "add lib"]);
    yard.commit_file("repo/lib", "file", "two\n");
    yard.git("repo", &["commit", "-qam", "move lib"]);
    yard
}

#[test]
fn a_commit_of_a_submodule_that_is_on_no_remote_is_pushed_first() {
    let yard = with_a_submodule();
    assert_snapshot!(yard.push().unwrap_err().to_failure().with_hint(), @"
    push failed: commits of submodules are on no remote: lib
    hint: push them first: git -C lib push origin HEAD:BRANCH
    ");
    yard.git("repo/lib", &["push", "-q", "origin", "HEAD:main"]);
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
    let yard = with_a_submodule();
    yard.git("repo", &["config", "push.recurseSubmodules", "on-demand"]);
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
    assert_eq!(yard.git("lib.git", &["log", "-1", "--format=%s", "main"]), "change file\n");
    let yard = with_a_submodule();
    yard.git("repo", &["config", "push.recurseSubmodules", "no"]);
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
}

#[test]
fn a_file_of_git_lfs_that_the_remote_lacks_is_named_before_the_push() {
    let yard = Yard::with_origin();
    let id = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize 7\n");
    yard.commit_file("repo", ".gitattributes", "*.bin -text\n");
    yard.commit_file("repo", "a.bin", &pointer);
    // Without git LFS such a text is a text like any other.
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
    yard.commit_file("repo", ".gitattributes", "*.bin filter=lfs -text\n");
    assert_eq!(yard.push(), Ok(pushed("origin", "main")));
    yard.commit_file("repo", "b.bin", &pointer.replace("4d7a", "5d7a"));
    let fault = yard.push().unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::Incomplete);
    assert_eq!(fault.hint, "git lfs push origin main");
    // On this machine it can be seen there.
    let there = format!("origin.git/lfs/objects/5d/7a/5d7a{}", &id[4..]);
    yard.write(&there, "part");
    if fault.cause.ends_with("git-lfs is not installed here") {
        assert_eq!(yard.push(), Err(fault));
        yard.write(&there, "content");
        assert_eq!(yard.push(), Ok(pushed("origin", "main")));
    }
}

#[test]
fn files_of_git_lfs_are_sent_only_from_a_store_that_the_user_has_set() {
    let yard = Yard::with_origin();
    let id = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize 7\n");
    yard.git(".", &["clone", "-q", "repo", "clone"]);
    yard.commit_file("repo", "in/a.bin", &pointer);
    yard.write(&format!("media/objects/4d/7a/{id}"), "content");
    let media = yard.path("media").display().to_string();
    let missing = || {
        let (repository, clone) = (yard.path("repo"), yard.path("clone"));
        let (remote, clones) = (yard.path("origin.git").display().to_string(), [&*clone]);
        let (remote, repository) = (&*remote, &*repository);
        let (git, address) = (Git::lazily(repository), remote);
        let push = LfsPush { git, remote, address, repository, clones: &clones, branch: None };
        let sent = push.send(&["main", "--not", "origin/main"]);
        sent.err().is_some_and(|fault| fault.cause.ends_with("not all on this machine"))
    };
    yard.write("clone/.gitattributes", "*.bin filter=lfs\n");
    yard.git("clone", &["config", "lfs.storage", &media]);
    assert!(missing());
    yard.git("repo", &["config", "lfs.storage", &media]);
    assert!(!missing());
}

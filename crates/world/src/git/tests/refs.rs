//! Refs of real remotes: how they are shared, and each way in which a remote refuses.

mod objects;
mod swap;

use std::time::Duration;

use insta::assert_snapshot;

use super::Yard;
use crate::git::remotes::{Patience, Refs};
use crate::process::signals::Signals;
use engine::git::{GitFault, GitTrouble, RefUpdate, SwapResult};
use readers::parse::remote::is_ref_name;

const SHARED: &str = "refs/crew/fleet/task";

/// A yard with an empty remote and several repositories that share only this remote.
struct Machines {
    yard: Yard,
    hub: String,
}

impl Machines {
    fn new(count: usize) -> Self {
        let yard = Yard::new();
        let hub = yard.remote("hub.git");
        for number in 0..count {
            yard.git(".", &["init", "-q", "--bare", &format!("m{number}")]);
        }
        Self { yard, hub }
    }

    /// Runs a function on one machine.
    fn on<T>(&self, number: usize, act: impl FnOnce(&Refs<'_>) -> T) -> T {
        let folder = self.yard.path(&format!("m{number}"));
        act(&Refs { folder: &folder, remote: &self.hub, stop: &|| false, patience: None })
    }

    /// Writes a new commit into the ref, which must be at `old`, from one machine.
    fn write(&self, number: usize, old: Option<&str>, text: &str) -> Result<String, SwapResult> {
        self.on(number, |refs| {
            let new = refs.make_commit(text, old).unwrap();
            match refs.swap(&[update(SHARED, old, Some(&new))]).unwrap() {
                SwapResult::Done => Ok(new),
                refused @ SwapResult::Refused => Err(refused),
            }
        })
    }

    /// The commit that the remote's ref points to.
    fn tip(&self, name: &str) -> Option<String> {
        let list = self.yard.git("hub.git", &["for-each-ref", "--format=%(objectname)", name]);
        list.lines().next().map(str::to_owned)
    }

    fn hook(&self, name: &str, text: &str) {
        self.yard.script(&format!("hub.git/hooks/{name}"), &format!("#!/bin/sh\n{text}\n"));
    }

    /// A fault without the path of this test's folder.
    fn shown(&self, fault: &GitFault) -> String {
        fault.to_failure().with_hint().replace(&self.yard.path("").display().to_string(), "/")
    }
}

fn update(name: &str, old: Option<&str>, new: Option<&str>) -> RefUpdate {
    let [old, new] = [old, new].map(|id| id.map(str::to_owned));
    RefUpdate { name: name.to_owned(), old, new }
}

#[test]
fn a_missing_remote_differs_from_one_that_refuses_the_user() {
    let machines = Machines::new(1);
    let taken = machines.write(0, None, "first").unwrap();
    let folder = machines.yard.path("m0");
    let there = Refs { folder: &folder, remote: &machines.hub, stop: &|| false, patience: None };
    let refs = Refs { remote: "file:///no/such.git", ..there };
    let fault = refs.list_refs(&["refs/*"]).unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::NoRemote);
    assert_snapshot!(fault.to_failure().with_hint(), @"
    refs failed: '/no/such.git' does not appear to be a git repository
    hint: look at git remote -v: git ls-remote file:///no/such.git must list the refs
    ");
    let new = refs.make_commit("second", Some(&taken)).unwrap();
    let swap = [update(SHARED, Some(&taken), Some(&new))];
    assert_eq!(refs.fetch_objects(&[SHARED], &[]).unwrap_err(), fault);
    assert_eq!(refs.swap(&swap).unwrap_err(), fault);
    assert_eq!(refs.takes_ref(SHARED).unwrap_err(), fault);
    // The port was free a moment ago, so nothing listens there.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("http://somebody:secret@{closed}/r.git");
    let fault = Refs { remote: &address, ..refs }.swap(&swap).unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::Network, "{fault}");
    assert!(!fault.to_string().contains("secret"), "{fault}");
    machines.hook("pre-receive", "sleep 5; exit 1");
    let refs = Refs { remote: &machines.hub, folder: &folder, stop: &|| true, patience: None };
    assert_eq!(refs.swap(&swap).unwrap_err().trouble, GitTrouble::Network);
    machines.hook("pre-receive", "echo 'You are not allowed to push code here.' >&2; exit 1");
    let refs = Refs { remote: &machines.hub, folder: &folder, stop: &|| false, patience: None };
    let fault = refs.swap(&swap).unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::Auth);
    assert_snapshot!(machines.shown(&fault), @"
    refs failed: [remote rejected] (pre-receive hook declined): You are not allowed to push code here.
    hint: make git push file:///hub.git work without a question here: a key, a credential helper, the right to push
    ");
    assert_eq!(machines.tip(SHARED), Some(taken));
}

#[test]
fn a_remote_is_given_no_more_time_than_the_caller_has() {
    let machines = Machines::new(1);
    machines.hook("pre-receive", "sleep 100; exit 1");
    let signals = Signals::listen().unwrap();
    let talk = Duration::from_secs(1);
    let patience = Some(Patience { signals: signals.clone(), within: Duration::ZERO, talk });
    let fault = machines.on(0, |refs| {
        let new = refs.make_commit("new", None).unwrap();
        let refs = Refs { patience: patience.as_ref(), ..*refs };
        refs.swap(&[update(SHARED, None, Some(&new))]).unwrap_err()
    });
    assert_eq!(fault.trouble, GitTrouble::Network);
    assert!(fault.to_string().contains("git did not answer within 1 s"), "{fault}");
}

#[test]
fn a_host_that_refuses_a_name_is_detected_without_leaving_a_trace() {
    let machines = Machines::new(1);
    let takes = |name: &str| machines.on(0, |refs| refs.takes_ref(name));
    assert_eq!(takes(SHARED), Ok(true));
    machines.hook("update", "case $1 in refs/crew/*) exit 1;; esac");
    assert_eq!(takes(SHARED), Ok(false));
    assert_eq!(takes("refs/heads/crew/fleet/task"), Ok(true));
    machines.hook("update", "exit 0");
    machines.yard.git("hub.git", &["config", "receive.hideRefs", "refs/crew"]);
    assert_eq!(takes(SHARED), Ok(false));
    assert_eq!(machines.yard.git("hub.git", &["for-each-ref"]), "");
}

#[test]
fn a_name_or_an_id_that_git_would_read_as_something_else_is_refused() {
    let machines = Machines::new(1);
    machines.on(0, |refs| {
        assert_snapshot!(refs.fetch_objects(&["refs/crew/a:refs/heads/main"], &[]).unwrap_err().to_failure().with_hint(), @r#"
        refs failed: "refs/crew/a:refs/heads/main" is not the name of a ref
        hint: use a full name: refs/crew/a
        "#);
        assert_snapshot!(refs.swap(&[update(SHARED, None, Some("HEAD"))]).unwrap_err().to_failure().with_hint(), @r#"
        refs failed: "HEAD" is not the id of an object
        hint: use the whole id
        "#);
        // git would fetch, list or push what its configuration says.
        assert_eq!(refs.fetch_objects(&[], &[]), Ok(()));
        assert_eq!(refs.list_refs(&[]), Ok(Vec::new()));
        assert_eq!(refs.swap(&[]), Ok(SwapResult::Done));
    });
}

#[test]
fn a_name_is_a_valid_ref_if_git_accepts_it() {
    let yard = Yard::new();
    let names = [
        "crew/f/t",
        "heads/a+b",
        "crew/ö",
        "a",
        "a@",
        "@",
        "-a",
        "a{b",
        "",
        "/a",
        "a/",
        "a//b",
        ".a",
        "a/.b",
        "a.",
        "a.lock",
        "a.lock/b",
        "a..b",
        "a@{b",
        "a b",
        "a~b",
        "a^b",
        "a:b",
        "a?b",
        "a*b",
        "a[b",
        "a]b",
        "a\\b",
        "a\u{7f}b",
        "a\tb",
        "a\nb",
        "a.b",
        "lock",
        "a.lockb",
    ];
    for rest in names {
        let name = format!("refs/{rest}");
        let line = format!("git check-ref-format '{name}' && echo yes || echo no");
        let expected = yard.sh(".", &line) == "yes\n";
        assert_eq!(is_ref_name(&name), expected, "{name:?}");
    }
}

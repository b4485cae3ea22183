//! Moving refs: by one of many writers, several together, and under locks, hooks and lost answers.

use std::sync::Barrier;
use std::thread;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::{Machines, SHARED, update};
use crate::git::remotes::{Refs, push_arguments};
use engine::git::{GitTrouble, RefUpdate, RemoteRef, SwapResult};
use readers::parse::git::is_id;
use readers::parse::remote::is_ref_name;

const ROUNDS: usize = 50;
const CONTENDERS: usize = 20;

#[test]
fn one_of_twenty_processes_that_claim_a_ref_at_once_gets_it() {
    let machines = Machines::new(CONTENDERS);
    let begin = Barrier::new(CONTENDERS);
    for round in 0..ROUNDS {
        let name = format!("refs/crew/fleet/{round}");
        let take = |number: usize| {
            machines.on(number, |refs| {
                // The same words: what differs is only who writes them.
                let new = refs.make_commit("mine", None).unwrap();
                begin.wait();
                let result = refs.swap(&[update(&name, None, Some(&new))]).unwrap();
                (result == SwapResult::Done).then_some(new)
            })
        };
        let winners: Vec<String> = thread::scope(|scope| {
            let take = &take;
            let started: Vec<_> =
                (0..CONTENDERS).map(|number| scope.spawn(move || take(number))).collect();
            started.into_iter().filter_map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(winners.len(), 1, "round {round}");
        assert_eq!(machines.tip(&name).as_ref(), winners.first());
    }
}

#[test]
fn a_machine_that_lost_a_ref_unknowingly_is_refused() {
    let machines = Machines::new(2);
    let taken = machines.write(0, None, "first\n").unwrap();
    let seized = machines.on(1, |refs| {
        let seen = refs.list_refs(&[SHARED]).unwrap();
        assert_eq!(seen, [RemoteRef { name: SHARED.to_owned(), id: taken.clone() }]);
        refs.fetch_objects(&[SHARED], &[]).unwrap();
        assert_eq!(refs.read_message(&taken).unwrap(), "first\n");
        let seized = refs.make_commit("second\n", Some(&taken)).unwrap();
        assert_eq!(refs.swap(&[update(SHARED, Some(&taken), Some(&seized))]), Ok(SwapResult::Done));
        // Once more is right, too: the answer could have been lost.
        assert_eq!(refs.swap(&[update(SHARED, Some(&taken), Some(&seized))]), Ok(SwapResult::Done));
        seized
    });
    assert_eq!(machines.write(0, Some(&taken), "first again\n"), Err(SwapResult::Refused));
    assert_eq!(machines.write(0, None, "first anew\n"), Err(SwapResult::Refused));
    assert_eq!(machines.tip(SHARED), Some(seized));
}

#[test]
fn a_branch_and_its_record_move_together_or_not_at_all() {
    let machines = Machines::new(1);
    let (yard, branch) = (&machines.yard, "refs/heads/fleet/task");
    let taken = machines.write(0, None, "taken").unwrap();
    // As hosts check what they get.
    yard.git("hub.git", &["config", "receive.fsckObjects", "true"]);
    let folder = yard.path("repo");
    let refs = Refs { folder: &folder, remote: &machines.hub, stop: &|| false, patience: None };
    let work = yard.git("repo", &["rev-parse", "HEAD"]).trim_end().to_owned();
    refs.fetch_objects(&[SHARED], &[]).unwrap();
    let kept = refs.make_commit("kept", Some(&taken)).unwrap();
    let both = |old: &str, work: &str| {
        refs.swap(&[update(branch, None, Some(work)), update(SHARED, Some(old), Some(&kept))])
    };
    assert_eq!(both(&work, &work), Ok(SwapResult::Refused));
    assert_eq!((machines.tip(branch), machines.tip(SHARED)), (None, Some(taken.clone())));
    machines.hook("update", "case $1 in refs/heads/*) echo 'no branches today'; exit 1;; esac");
    let fault = both(&taken, &work).unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::Rejected);
    assert_snapshot!(machines.shown(&fault), @"
    refs failed: [remote rejected] (hook declined): no branches today
    hint: do what the remote asks for, or have its rules take these refs
    ");
    assert_eq!((machines.tip(branch), machines.tip(SHARED)), (None, Some(taken.clone())));
    machines.hook("update", "exit 0");
    assert_eq!(both(&taken, &work), Ok(SwapResult::Done));
    assert_eq!((machines.tip(branch), machines.tip(SHARED)), (Some(work), Some(kept.clone())));
    assert_eq!(yard.git("repo", &["for-each-ref", "--format=%(refname)"]), "refs/heads/main\n");
}

#[test]
fn no_refspec_has_a_plus_because_it_would_void_the_lease() {
    let machines = Machines::new(2);
    let taken = machines.write(0, None, "mine").unwrap();
    let other = machines.on(1, |refs| refs.make_commit("also mine", None)).unwrap();
    let arguments = push_arguments(&machines.hub, &[update(SHARED, None, Some(&other))]).unwrap();
    let refspec = arguments.last().unwrap().clone();
    assert_eq!(machines.write(1, None, "also mine"), Err(SwapResult::Refused));
    assert_eq!(machines.tip(SHARED), Some(taken));
    let plus = format!("+{refspec}");
    let mut raw: Vec<&str> = arguments.iter().map(String::as_str).collect();
    *raw.last_mut().unwrap() = &plus;
    machines.yard.git("m1", &raw);
    assert_eq!(machines.tip(SHARED), Some(other), "git no longer ignores the lease");
}

proptest! {
    #[test]
    fn no_arguments_of_a_push_force_anything(
        remote in ".*",
        updates in prop::collection::vec(
            (
                prop_oneof![
                    9 => "refs/crew/[a-z+]{1,9}",
                    1 => "\\+?(refs/)?[a-z+*:/.]{1,9}",
                ],
                prop::option::of(prop_oneof![9 => "[0-9a-f]{40}", 1 => "HEAD|\\+[0-9a-f]{40}"]),
                prop::option::of(prop_oneof![9 => "[0-9a-f]{40}", 1 => "\\+[0-9a-f]{40}"]),
            ),
            1..4,
        ),
    ) {
        let updates: Vec<RefUpdate> = updates
            .iter()
            .map(|(name, old, new)| update(name, old.as_deref(), new.as_deref()))
            .collect();
        let is_good =
            |it: &RefUpdate| is_ref_name(&it.name) && it.old.iter().chain(&it.new).all(|id| is_id(id));
        let built = push_arguments(&remote, &updates);
        prop_assert_eq!(built.is_ok(), updates.iter().all(is_good));
        let Ok(arguments) = built else { return Ok(()) };
        let end = arguments.iter().position(|word| word == "--").unwrap();
        let (options, refspecs) = (&arguments[..end], &arguments[end + 2..]);
        prop_assert!(refspecs.iter().all(|refspec| !refspec.starts_with('+')), "{:?}", refspecs);
        prop_assert!(options.iter().all(|option| option != "--force" && option != "-f"));
        prop_assert!(options.contains(&"--atomic".to_owned()));
        for (update, refspec) in updates.iter().zip(refspecs) {
            let old = update.old.as_deref().unwrap_or_default();
            let lease = format!("--force-with-lease={}:{old}", update.name);
            prop_assert!(options.contains(&lease));
            let target = format!(":{}", update.name);
            prop_assert!(refspec.ends_with(&target), "{}", refspec);
        }
        prop_assert_eq!(refspecs.len(), updates.len());
    }
}

#[test]
fn a_deleted_ref_stops_only_the_process_that_holds_it() {
    let machines = Machines::new(1);
    let taken = machines.write(0, None, "taken").unwrap();
    let there = machines.on(0, |refs| {
        let new = refs.make_commit("another", None).unwrap();
        refs.swap(&[update("refs/crew/fleet/other", None, Some(&new))]).unwrap();
        new
    });
    machines.yard.git("hub.git", &["update-ref", "-d", SHARED]);
    assert_eq!(machines.write(0, Some(&taken), "kept"), Err(SwapResult::Refused));
    machines.on(0, |refs| {
        let names = [SHARED, "refs/crew/fleet/other"];
        assert_eq!(refs.fetch_objects(&names, &[]), Ok(()));
        assert_eq!(refs.fetch_objects(&[SHARED], &[]), Ok(()));
        let delete = |name: &str, old: &str| update(name, Some(old), None);
        // What is to be gone is gone.
        assert_eq!(refs.swap(&[delete(SHARED, &taken)]), Ok(SwapResult::Done));
        // But no swap of two is done by halves.
        let both = [delete(SHARED, &taken), delete(names[1], &there)];
        assert_eq!(refs.swap(&both), Ok(SwapResult::Refused));
        assert_eq!(refs.swap(&[delete(names[1], &taken)]), Ok(SwapResult::Refused));
        assert_eq!(refs.swap(&[delete(names[1], &there)]), Ok(SwapResult::Done));
        assert_eq!(refs.list_refs(&["refs/*"]), Ok(Vec::new()));
    });
}

#[test]
fn a_push_that_landed_without_an_answer_is_done() {
    let machines = Machines::new(2);
    // The remote ends after it moved the refs and before it says so.
    machines.hook("reference-transaction", "[ $1 = committed ] && kill -9 $PPID; exit 0");
    let taken = machines.write(0, None, "first").unwrap();
    assert_eq!(machines.tip(SHARED), Some(taken.clone()));
    let kept = machines.write(0, Some(&taken), "second").unwrap();
    assert_eq!(machines.write(1, None, "other"), Err(SwapResult::Refused));
    // And ends before it moved them.
    machines.hook("reference-transaction", "[ $1 = prepared ] && kill -9 $PPID; exit 0");
    machines.on(0, |refs| {
        let new = refs.make_commit("third", Some(&kept)).unwrap();
        let fault = refs.swap(&[update(SHARED, Some(&kept), Some(&new))]).unwrap_err();
        assert_eq!(fault.trouble, GitTrouble::Network);
    });
    assert_eq!(machines.tip(SHARED), Some(kept));
}

#[test]
fn a_lock_on_the_remote_is_tried_again_and_then_reported() {
    let machines = Machines::new(1);
    machines.hook(
        "pre-receive",
        "lock=refs/crew/fleet/task.lock; mkdir -p refs/crew/fleet\n\
         if [ -e once ]; then rm -f $lock; else touch once $lock; fi",
    );
    let taken = machines.write(0, None, "first").unwrap();
    machines.hook("pre-receive", "touch refs/crew/fleet/task.lock; echo x >> tries");
    machines.on(0, |refs| {
        let new = refs.make_commit("second", Some(&taken)).unwrap();
        let fault = refs.swap(&[update(SHARED, Some(&taken), Some(&new))]).unwrap_err();
        assert_eq!(fault.trouble, GitTrouble::Rejected);
        assert!(fault.cause.contains("cannot lock ref"), "{fault}");
    });
    assert_eq!(machines.yard.read("hub.git/tries"), "x\nx\nx\n");
    assert_eq!(machines.tip(SHARED), Some(taken));
}

//! Tests of an account of one iteration.

use proptest::prelude::*;

use super::*;
use crate::boundary::judge::judge_boundary;
use crate::claim::Claim;
use crate::evidence::Verdict;
use crate::fixture::{SetState, a_loop_with, at, facts, result};
use crate::journal::{Choice, SCHEMA};
use crate::record::{Loop, Role};

fn line(after: &Loop) -> JournalEntry {
    let event = Event::Boundary {
        decision: Choice::Continue,
        why: None,
        elapsed_ms: after.elapsed_ms.last().copied(),
        state: Box::new(after.state.clone()),
    };
    JournalEntry { schema: SCHEMA, at: at(0).wall, generation: after.state.generation(), event }
}

#[test]
fn an_unchanged_tree_is_reported_whatever_a_check_is_called() {
    let checks = vec![result("sh changed.sh", Verdict::Failed)];
    let evidence = Evidence { progress: Progress::None, checks, ..Evidence::default() };
    let words = IterationSummary::from_evidence(&evidence).words;
    assert_eq!(words, "sh changed.sh failed (exit 1); nothing changed");
    let evidence = Evidence { progress: Progress::None, ..Evidence::default() };
    assert_eq!(IterationSummary::from_evidence(&evidence).words, "changed nothing");
}

#[test]
fn a_journal_reports_each_of_the_last_iterations_in_one_line() {
    let mut subject = a_loop_with(&[("cargo test", Role::Verify), ("lint", Role::Gate)]);
    let mut journal = Vec::new();
    let mut step = |claim: Claim, test: Verdict, lint: Verdict, moved: bool, cut: bool| {
        let mut facts = facts(claim);
        facts.checks = vec![result("lint", lint), result("cargo test", test)];
        facts.tree =
            Some(if moved { format!("{test:?} {lint:?}").as_str().into() } else { "".into() });
        facts.tree_checked = Some("".into());
        facts.seen.agent.cut = cut;
        subject = judge_boundary(&subject, &facts).after;
        subject.state.set("generation", subject.state.generation() + 1);
        journal.push(line(&subject));
    };
    step(Claim::None, Verdict::Failed, Verdict::Failed, true, false);
    step(Claim::Success, Verdict::Failed, Verdict::Passed, true, false);
    let reason = Some("no network".to_owned());
    step(Claim::Failure { reason }, Verdict::Failed, Verdict::Passed, false, false);
    step(Claim::None, Verdict::TimedOut, Verdict::Passed, false, true);
    step(Claim::None, Verdict::Failed, Verdict::Failed, false, false);
    step(Claim::Success, Verdict::Passed, Verdict::Passed, true, false);
    // The same iteration again, as after a crash between writing the journal and the record.
    journal.push(journal[5].clone());
    let mut lost = journal[5].clone();
    lost.generation += 1;
    journal.push(lost);
    let event = Event::from_change("resumed", &subject, &subject);
    let generation = journal[6].generation + 1;
    journal.push(JournalEntry { schema: SCHEMA, at: at(0).wall, generation, event });
    let mut accounts = IterationSummaries::default();
    for entry in &journal {
        accounts.add_entry(entry);
    }
    let last: Vec<String> = accounts
        .last_shown()
        .into_iter()
        .map(|account| format!("{}: {}", account.iteration, account.words))
        .collect();
    insta::assert_snapshot!(last.join("\n"), @"
    2: 1 check fixed; claim refused: cargo test failed (exit 1)
    3: the agent said FAILURE: no network; cargo test failed (exit 1); nothing changed
    4: cargo test timed out after 1 s; the answer was truncated by the token limit; nothing changed
    5: lint failed (exit 1); nothing changed
    6: claim accepted; 2 checks fixed
    ");
}

proptest! {
    #[test]
    fn the_account_of_an_iteration_is_one_short_line_whatever_was_said(because in "(\\PC|\n|\u{2028}){0,900}") {
        let claim = ClaimResult::Blocked(because);
        let account = IterationSummary::from_evidence(&Evidence { claim, ..Evidence::default() });
        prop_assert!(account.words.chars().count() <= ACCOUNT_CHARS);
        prop_assert_eq!(account.words.lines().count(), 1);
    }
}

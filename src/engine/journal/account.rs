//! The result of each iteration, in one line for the next agent: a fresh process knows nothing of
//! earlier iterations. Made only from the journal's evidence, never from what an agent reports
//! about itself.

use super::{Event, JournalEntry, Settled};
use crate::engine::evidence::test_report::TestReport;
use crate::engine::evidence::{ClaimResult, Evidence};
use crate::engine::text::{one_line, with_reason};

/// How many earlier iterations a prompt lists.
pub const ACCOUNTS_SHOWN: usize = 5;
/// The longest line, in characters.
pub const ACCOUNT_CHARS: usize = 500;
/// The longest part of it for one failing check, in characters.
const PART_CHARS: usize = 200;

/// One iteration's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// 1-based.
    pub iteration: u32,
    /// One line of at most [`ACCOUNT_CHARS`] characters, without the iteration's number.
    pub words: String,
}

impl Account {
    /// The line for the evidence of one boundary.
    pub fn of(evidence: &Evidence) -> Self {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(match &evidence.claim {
            ClaimResult::None => None,
            ClaimResult::Accepted => Some("claimed done, and believed".to_owned()),
            ClaimResult::Refused(why) => Some(with_reason("claimed done, refused", why)),
            ClaimResult::Failure(why) => Some(with_reason("said FAILURE", why)),
            ClaimResult::Blocked(why) => Some(with_reason("said BLOCKED", why)),
            ClaimResult::NearMiss(_) => {
                Some("its claim was not in the right form, and did not count".to_owned())
            }
        });
        if evidence.cut {
            parts.push("the answer was cut by the token limit".to_owned());
        }
        let said_so = matches!(evidence.claim, ClaimResult::Failure(_));
        if let Some(failure) = evidence.failure.as_ref().filter(|_| !said_so) {
            parts.push(format!("failed: {failure}"));
        }
        parts.extend(evidence.ended.clone());
        parts.extend(checks(evidence));
        let changed = ["files, commits or checks changed", "nothing changed", ""];
        parts.extend(Some(evidence.progress_words(changed)).filter(|words| !words.is_empty()));
        if parts.is_empty() {
            parts.push("no claim, no check".to_owned());
        }
        if let Some(said) = &evidence.said {
            parts.push(format!("its last words, unchecked: \"{said}\""));
        }
        Self { iteration: evidence.iteration, words: one_line(&parts.join("; "), ACCOUNT_CHARS) }
    }
}

/// The last iterations in a journal. Lines come one at a time, and only a bounded number is kept.
#[derive(Debug)]
pub struct Accounts(Settled<Account>);

impl Accounts {
    /// Empty. It keeps more than it shows, because some may be taken back.
    pub fn new() -> Self {
        Self(Settled::newest(2 * ACCOUNTS_SHOWN))
    }

    /// Takes the next line.
    pub fn add(&mut self, entry: &JournalEntry) {
        self.0.reach(entry.reached());
        if let Event::Boundary { elapsed_ms: Some(_), state, .. } = &entry.event
            && let Some(evidence) = &state.evidence
        {
            self.0.push(entry.reached(), Account::of(evidence));
        }
    }

    /// The last [`ACCOUNTS_SHOWN`], oldest first.
    pub fn last(&self) -> Vec<Account> {
        let earlier = self.0.iter().len().saturating_sub(ACCOUNTS_SHOWN);
        self.0.iter().skip(earlier).cloned().collect()
    }
}

fn checks(evidence: &Evidence) -> Vec<String> {
    let mut parts = Vec::new();
    let all = evidence.checks.len();
    let failing = evidence.failing().count();
    if all > failing {
        parts.push(format!("{} of {all} checks passed", all - failing));
    }
    if evidence.newly_passing > 0 {
        parts.push(format!("{} of them failed before", evidence.newly_passing));
    }
    parts.extend(evidence.test_news());
    let reports = evidence.checks.iter().filter_map(|check| check.tests.as_ref());
    parts.extend(reports.filter_map(TestReport::still_failing));
    // A refusal already names the reasons against it, and a failed gate is named as the failure.
    if !matches!(evidence.claim, ClaimResult::Refused(_)) {
        let failure = evidence.failure.as_deref().unwrap_or_default();
        let is_named = |run: &str| failure.contains(&format!("`{run}`"));
        parts.extend(evidence.failing().filter(|check| !is_named(&check.run)).map(|check| {
            format!("`{}` {}", one_line(&check.run, PART_CHARS), check.what_happened())
        }));
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::boundary::judge::judge;
    use crate::engine::claim::Claim;
    use crate::engine::evidence::Verdict;
    use crate::engine::fixture::{a_loop_with, at, facts, result};
    use crate::engine::journal::{Choice, SCHEMA};
    use crate::engine::record::{Loop, Role};

    fn line(after: &Loop) -> JournalEntry {
        let event = Event::Boundary {
            decision: Choice::Continue,
            why: None,
            elapsed_ms: after.elapsed_ms.last().copied(),
            state: Box::new(after.state.clone()),
        };
        JournalEntry { schema: SCHEMA, at: at(0).wall, generation: after.state.generation, event }
    }

    #[test]
    fn a_journal_tells_the_last_iterations_each_in_one_line() {
        let mut subject = a_loop_with(&[("cargo test", Role::Verify), ("lint", Role::Gate)]);
        let mut journal = Vec::new();
        let mut step = |claim: Claim, test: Verdict, lint: Verdict, moved: bool, cut: bool| {
            let mut facts = facts(claim);
            facts.checks = vec![result("lint", lint), result("cargo test", test)];
            facts.tree =
                Some(if moved { format!("{test:?} {lint:?}").as_str().into() } else { "".into() });
            facts.tree_checked = Some("".into());
            facts.seen.agent.cut = cut;
            subject = judge(&subject, &facts).after;
            subject.state.generation += 1;
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
        let event = Event::changed("resumed", &subject);
        let generation = journal[6].generation + 1;
        journal.push(JournalEntry { schema: SCHEMA, at: at(0).wall, generation, event });
        let mut accounts = Accounts::new();
        for entry in &journal {
            accounts.add(entry);
        }
        let last: Vec<String> = accounts
            .last()
            .into_iter()
            .map(|account| format!("{}: {}", account.iteration, account.words))
            .collect();
        insta::assert_snapshot!(last.join("\n"), @"
        2: claimed done, refused: `cargo test` failed (exit 1); 1 of 2 checks passed; 1 of them failed before; 1 check passing now, files changed
        3: said FAILURE: no network; 1 of 2 checks passed; `cargo test` failed (exit 1); nothing changed
        4: the answer was cut by the token limit; 1 of 2 checks passed; `cargo test` timed out after 1 s; 1 check failing now
        5: failed: gate `lint` failed; `cargo test` failed (exit 1); 2 checks failing now
        6: claimed done, and believed; 2 of 2 checks passed; 2 of them failed before; 2 checks passing now, files changed
        ");
    }

    proptest! {
        #[test]
        fn whatever_was_said_an_account_is_one_short_line(because in "(\\PC|\n|\u{2028}){0,900}") {
            let claim = ClaimResult::Blocked(because);
            let account = Account::of(&Evidence { claim, ..Evidence::default() });
            prop_assert!(account.words.chars().count() <= ACCOUNT_CHARS);
            prop_assert_eq!(account.words.lines().count(), 1);
        }
    }
}

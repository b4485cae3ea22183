//! Gathers the facts of a boundary that take time: runs its checks batch by batch and reads the
//! working tree. It holds no lock except the boundary's own, and makes no judgement.

use std::time::Duration;

use super::Open;
use crate::drive::checks::check::{Within, run_check};
use crate::drive::checks::scratch::ScratchTerms;
use crate::drive::checks::test_changes;
use crate::drive::checks::trial::{look_as_found, remember_as_found, run_trial};
use crate::drive::tree;
use engine::boundary::belief::find_proof;
use engine::boundary::facts::{AgentFacts, Facts};
use engine::boundary::wants::{
    AT_ONCE_MS, may_complete, may_prove_later, takes_long, wanted_checks, wants_baseline,
    wants_run_without_work, wants_test_changes,
};
use engine::evidence::test_run::{TestMemories, is_no_worse};
use engine::evidence::{CheckResult, Verdict};
use engine::record::{Check, Driver, Loop, Proof};
use engine::usage::Usage;
use engine::view::events::RunEvent;
use world::clock::{self, Deadline};
use world::env;
use world::git::snapshots::protect;
use world::process::Stop;
use world::store::{self, Home};

/// The longest time that everything crew runs at one boundary of a session may take: the client
/// ends the hook after 60 minutes.
const BOUNDARY_OF_A_SESSION: Duration = Duration::from_secs(55 * 60);

impl Open {
    /// Reads a pending request, and the working tree before the checks run: they may write where
    /// the agent must not, and what they write is not the agent's work.
    pub fn gather_facts(&self, seen: AgentFacts, usage: Option<Usage>) -> Facts {
        let jitter = u16::try_from(env::random_number() % 1000).unwrap_or(0);
        let seen = AgentFacts { request: self.read_request(), jitter, ..seen };
        let subject = &self.before;
        let looks = seen.needed_looks(&subject.contract);
        let tree = if looks.tree() { tree::look_at_tree(&self.home, subject) } else { None };
        let changes = tree.as_ref().and_then(|left| tree::tree_changes(&self.home, subject, left));
        let snapshot = tree.as_ref().and_then(|tree| tree.snapshot.as_deref());
        let protected = match snapshot {
            _ if !looks.protected() || subject.protected.is_none() => None,
            Some(now) => Some(protect::changed_paths(&self.home, subject, now)),
            None => Some(Err("no snapshot can be taken of the working tree".to_owned())),
        };
        Facts {
            seen,
            tree_checked: tree.clone(),
            tree,
            changes,
            protected,
            usage,
            ..Facts::default()
        }
    }

    /// Gathers the facts that are still missing, and reports each check. `stop` ends a running
    /// check early. Returns `None` when it ended one: then nothing else is known about this
    /// boundary.
    pub fn gather_checked(
        &self,
        mut facts: Facts,
        stop: Stop<'_>,
        tell: &dyn Fn(&RunEvent<'_>),
    ) -> Option<Facts> {
        let subject = &self.before;
        let within = Within::for_subject(subject, facts.seen.agent.missed_ms);
        let is_session = subject.driver() == Driver::Session;
        let latest = if is_session { Some(Deadline::after(BOUNDARY_OF_A_SESSION)) } else { None };
        let is_looked_at = facts.seen.needed_looks(&subject.contract).tree();
        facts.now = clock::now();
        facts.tests_before = store::read_tests(&self.home, &subject.id);
        let now = facts.tree.as_ref().and_then(|tree| tree.snapshot.clone());
        let now = now.as_deref();
        let mut tests_left = None;
        if may_complete(subject, &facts.seen) {
            tests_left = Some(test_changes::find_baseline(&self.home, subject, now));
            let tree = facts.tree.as_ref();
            facts.unchanged = tree.and_then(|tree| tree::is_unchanged(&self.home, subject, tree));
        }
        let terms = ScratchTerms { home: &self.home, subject, now, latest, shared: None, stop };
        let runs = CheckRuns { terms, within, tell };
        loop {
            let wanted = wanted_checks(subject, &facts);
            if wanted.is_empty() {
                break;
            }
            for check in &wanted {
                let result = runs.run_check(check, Some(&mut facts.tests_before))?;
                facts.checks.push(result);
            }
            facts.now = clock::now();
        }
        if !facts.checks.is_empty() {
            facts.tree_checked =
                if is_looked_at { tree::look_at_tree(&self.home, subject) } else { None };
        }
        let terms = terms.beginning_now(facts.checks.iter().map(|check| check.elapsed_ms).sum());
        if let Some(left) = tests_left
            && wants_test_changes(subject, &facts)
        {
            let checked = facts.tree_checked.as_ref().and_then(|tree| tree.snapshot.as_deref());
            facts.test_changes = test_changes::find_changes(
                terms,
                left,
                (&facts.checks, checked),
                &facts.tests_before,
            );
            if stop() {
                return None;
            }
        }
        look_for_a_proof(terms, &mut facts, tell)?;
        facts.now = clock::now();
        Some(facts)
    }
}

/// Runs what can raise the proof of the end, or leaves it for later if a session's end would have
/// to wait for it. `None` when `stop` ended it.
fn look_for_a_proof(
    terms: ScratchTerms<'_>,
    facts: &mut Facts,
    tell: &dyn Fn(&RunEvent<'_>),
) -> Option<()> {
    let subject = terms.subject;
    facts.proves_later = takes_long(facts) && may_prove_later(subject, facts);
    let at_once = Deadline::after(Duration::from_millis(AT_ONCE_MS));
    let may_wait = may_prove_later(subject, facts);
    let terms = if may_wait { ScratchTerms { latest: Some(at_once), ..terms } } else { terms };
    if wants_run_without_work(subject, facts) {
        tell(&RunEvent::TrialStarted);
        facts.without_work = Some(run_trial(terms));
    }
    if wants_baseline(subject, facts) {
        tell(&RunEvent::TrialStarted);
        facts.baseline = Some(look_as_found(terms));
    }
    if may_wait && at_once.passed() && find_proof(subject, facts) == Some(Proof::Passing) {
        (facts.without_work, facts.baseline, facts.proves_later) = (None, None, true);
    }
    (!(terms.stop)()).then_some(())
}

/// Runs every check without a known result, each command once, until `stop` ends one. Returns those
/// that finished.
pub fn run_checks(
    home: &Home,
    subject: &Loop,
    stop: Stop<'_>,
    tell: &dyn Fn(&RunEvent<'_>),
) -> Vec<CheckResult> {
    let within = Within::for_subject(subject, 0);
    let terms = ScratchTerms { home, subject, now: None, latest: None, shared: None, stop };
    let runs = CheckRuns { terms, within, tell };
    let mut done: Vec<CheckResult> = Vec::new();
    for check in subject.contract.before_the_first() {
        if subject.state.seen().checks().contains_key(&check.run) {
            continue;
        }
        match runs.run_check(check, None) {
            Some(result) => done.push(result),
            None => break,
        }
    }
    done
}

/// The parameters shared by the checks of one boundary.
struct CheckRuns<'a> {
    terms: ScratchTerms<'a>,
    within: Within,
    tell: &'a dyn Fn(&RunEvent<'_>),
}

impl CheckRuns<'_> {
    /// Runs a check and reports it. `before` is the memory of its tests, which decides what counts
    /// as not worse; before the first iteration there is none.
    fn run_check(&self, check: &Check, before: Option<&mut TestMemories>) -> Option<CheckResult> {
        let ScratchTerms { home, subject, latest, stop, .. } = self.terms;
        (self.tell)(&RunEvent::CheckStarted(&check.run));
        let mut result =
            run_check(home, subject, check, &subject.place.folder, &self.within, stop)?;
        if let Some(before) = before
            && check.no_worse
            && result.verdict == Verdict::Failed
        {
            // A run has checked before its first iteration, unless something prevented that, such
            // as the work of an interrupted attempt.
            let is_unseen = latest.is_some() || !subject.state.seen().checked_as_found();
            if let Some(here) = result.test_run.as_ref().filter(|run| is_unseen && run.ran_any()) {
                remember_as_found(self.terms, check, here, before);
                if stop() {
                    return None;
                }
            }
            if is_no_worse(before, &result) {
                result.verdict = Verdict::Passed;
            }
        }
        (self.tell)(&RunEvent::CheckEnded(&result));
        Some(result)
    }
}

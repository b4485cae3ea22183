//! What an attempt needs before an iteration: a slot of its machine, a remote that has the last
//! iteration, and the current base.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::Attempt;
use super::remote::RemoteTrouble;
use crate::drive::run::{Admission, IterationGate};
use crate::drive::tree::place::lost_repository;
use crate::fleet::spec::{AttemptPhase, Source};
use engine::git::{GitFault, GitStep};
use engine::record::{Contract, EndReason, Ending, Loop, Outcome};
use world::clock;
use world::git::land::{OwnTip, own_tip};
use world::git::remotes::{Patience, Refs};
use world::git::steps::Steps;
use world::git::sync::send_lfs;
use world::git::{self, steps};
use world::slots::{Slot, SlotQueue};
use world::store;

/// The pause between two tries to get a slot.
const SLOT_LOOK: Duration = Duration::from_millis(50);
/// The time limit for fetching the base from the remote.
const BASE_TALK: Duration = Duration::from_secs(30);

/// The gate of one attempt.
pub(super) struct AttemptGate<'a> {
    attempt: &'a Attempt<'a>,
    queue: Option<SlotQueue>,
    slot: Option<Slot>,
    /// The base commit that the branch was last on, if known.
    stands_on: Option<String>,
    /// The base commit that was fetched last.
    fetched: Option<String>,
    /// All notes, each kept once, and those that the loop has not shown yet.
    noted: BTreeSet<String>,
    notes: Vec<String>,
}

impl<'a> AttemptGate<'a> {
    pub fn new(attempt: &'a Attempt<'a>) -> Self {
        let stands_on = attempt.reports.newest_report().stands_on;
        let (noted, notes) = (BTreeSet::new(), Vec::new());
        Self { attempt, queue: None, slot: None, stands_on, fetched: None, noted, notes }
    }

    /// Takes a slot, or returns how many are ahead of this attempt in the queue.
    fn take_slot(&mut self) -> io::Result<Option<usize>> {
        let Attempt { home, spec, .. } = self.attempt;
        if spec.turn.slots == 0 || self.slot.is_some() {
            return Ok(None);
        }
        let queue = match &mut self.queue {
            Some(queue) => queue,
            None => self.queue.insert(SlotQueue::join(home, spec.turn.priority, spec.turn.slots)?),
        };
        self.slot = queue.poll()?;
        if self.slot.is_none() {
            return Ok(Some(queue.count_ahead()));
        }
        self.queue = None;
        Ok(None)
    }

    /// Waits for the first iteration's slot, if checks run before that iteration.
    ///
    /// # Errors
    /// If a signal ends the wait.
    pub fn await_slot(&mut self, contract: &Contract) -> Result<()> {
        if contract.before_the_first().next().is_none() {
            return Ok(());
        }
        let Attempt { reports, signals, .. } = self.attempt;
        while self.take_slot()?.is_some() {
            if signals.times() > 0 {
                bail!("the wait for a slot was ended");
            }
            // A resumed loop has not received its messages yet, so it does not count as ready for
            // requests.
            if reports.newest_report().loop_id.is_none() {
                let _ = reports.enter_phase(AttemptPhase::Queued);
            }
            clock::sleep(SLOT_LOOK);
        }
        Ok(reports.enter_phase(AttemptPhase::Preparing)?)
    }

    /// Fetches the newest base into the clone; the iteration begins with a rebase onto it. An
    /// unreachable remote is not waited for. A rewritten base is not followed: the commits it lost
    /// would become work of this branch. The clone's configuration must be as the loop found it, so
    /// that nothing planted there runs.
    fn fetch_base(&mut self, record: &Loop) -> Result<(), GitFault> {
        let Attempt { spec, .. } = self.attempt;
        // Planted settings are found only by comparing with the original ones.
        let (Source::Local { url: Some(url), .. } | Source::Remote { url }, Some(trusted)) =
            (&spec.origin.source, &record.trusted)
        else {
            return Ok(());
        };
        let checkout = &record.place.checkout;
        steps::check_unplanted(checkout, trusted, GitStep::Rebase, Some(&spec.branch))?;
        // The last rebase may have worked. A new branch begins at the clone's base.
        let began = git::find_commit(checkout, &spec.tracked_base());
        let began = began.filter(|commit| has_commit(checkout, "HEAD", commit));
        self.stands_on = self.current_base(record).or(began);
        let signals = self.attempt.signals.clone();
        let patience = Patience { signals, within: Duration::ZERO, talk: BASE_TALK };
        let (remote, patience) = (url.as_str(), Some(&patience));
        let refs = Refs { folder: checkout, remote, stop: &|| false, patience };
        let name = format!("refs/heads/{}", spec.origin.base);
        let Some(newest) = refs.list_refs(&[&name])?.pop().map(|found| found.id) else {
            return Ok(());
        };
        if git::find_commit(checkout, &newest).is_none() {
            refs.fetch_objects(&[&name], &[])?;
        }
        if self.stands_on.as_ref().is_none_or(|before| has_commit(checkout, &newest, before)) {
            git::remotes::point_ref(checkout, &spec.tracked_base(), &newest)?;
            self.fetched = Some(newest);
        } else {
            let base = &spec.origin.base;
            self.queue_note(format!(
                "{base} was rewritten: this branch stays on what it was before"
            ));
        }
        Ok(())
    }

    /// The base commit that the branch is on now: the one fetched last, if the rebase onto it
    /// worked.
    fn current_base(&self, record: &Loop) -> Option<String> {
        let checkout = &record.place.checkout;
        let fetched = self.fetched.clone().filter(|commit| has_commit(checkout, "HEAD", commit));
        fetched.or(self.stands_on.clone())
    }

    /// Reports the loop's progress here and, for an attempt elsewhere, at the remote, with the
    /// branch if it has moved. What cannot be written or pushed now goes with the next report.
    fn report(&self, record: &Loop, phase: AttemptPhase, commit: Option<String>) -> Option<Ending> {
        let Attempt { reports, link, .. } = self.attempt;
        let stands_on = self.current_base(record);
        let _ = reports.change_report(|report| {
            report.follow_loop(record, commit);
            report.phase = phase;
            report.stands_on = stands_on;
        });
        let pushed = (*link)?.publish(&reports.newest_report(), None, Duration::ZERO);
        match Admission::from(pushed.err()?) {
            Admission::Ends(ending) => Some(ending),
            _ => None,
        }
    }

    /// Sends the git LFS files that the branch refers to, which only this machine has.
    fn send_lfs(&mut self, record: &Loop) {
        let Attempt { spec, signals, .. } = self.attempt;
        let (Source::Remote { url }, Some(trusted)) = (&spec.origin.source, &record.trusted) else {
            return;
        };
        let stop = || signals.times() > 1;
        let steps = Steps::new(&record.place, trusted, &stop);
        let checkout = &record.place.checkout;
        let sent = steps
            .head_state(GitStep::Push)
            .and_then(|_| {
                steps::check_unplanted(checkout, trusted, GitStep::Push, Some(&spec.branch))
            })
            .and_then(|()| send_lfs(&steps, url, &spec.branch));
        if let Err(fault) = sent {
            self.queue_note(fault.cause_and_hint());
        }
    }

    fn queue_note(&mut self, what: String) {
        if self.noted.insert(what.clone()) {
            self.notes.push(what);
        }
    }
}

impl From<RemoteTrouble> for Admission {
    fn from(trouble: RemoteTrouble) -> Self {
        match trouble {
            // If the other process is lost, a job that is started here again resumes the attempt.
            RemoteTrouble::Fenced => {
                Self::Ends(Ending::new(Outcome::Interrupted, external_reason(trouble.to_string())))
            }
            RemoteTrouble::Refuses(why) => {
                Self::Ends(Ending::new(Outcome::Blocked, external_reason(why)))
            }
            RemoteTrouble::Away(why) => Self::Later(why),
            RemoteTrouble::GivenUp => Self::Paused,
        }
    }
}

fn external_reason(cause: String) -> EndReason {
    EndReason::External { cause, hint: String::new() }
}

impl IterationGate for AttemptGate<'_> {
    fn admit(&mut self, record: &Loop) -> Admission {
        let Attempt { home, link, reports, .. } = self.attempt;
        if let Some(Err(trouble)) = link.map(|link| link.before_iteration(&record.id)) {
            return trouble.into();
        }
        if store::pending_request(home, &record.id).is_some() {
            return Admission::Later("what a person asked".to_owned());
        }
        let is_new = self.queue.is_none();
        match self.take_slot() {
            Ok(None) => {}
            Ok(Some(ahead)) => {
                if is_new {
                    let _ = self.report(record, AttemptPhase::Queued, None);
                }
                let before =
                    if ahead == 0 { String::new() } else { format!(", {ahead} ahead of it") };
                return Admission::Later(format!("a slot{before}"));
            }
            Err(error) => {
                return Admission::Later(format!("a slot, which cannot be taken: {error}"));
            }
        }
        if let Some(fault) = lost_repository(&record.place) {
            return Admission::Ends(Ending::new(Outcome::Blocked, EndReason::Git(fault)));
        }
        // An agent that was killed may have left locks.
        if !steps::clear_locks(&record.place.checkout) {
            self.queue_note("a git process is still running in this task's clone".to_owned());
        }
        if let Err(fault) = self.fetch_base(record) {
            self.queue_note(fault.cause_and_hint());
        }
        if link.is_some() && matches!(reports.newest_report().phase, AttemptPhase::Running { .. }) {
            // The report after the last iteration already announced this one.
            return Admission::Granted;
        }
        let slot = self.slot.as_ref().map(Slot::number);
        let running = AttemptPhase::Running { slot, since: clock::now().wall };
        self.report(record, running, None).map_or(Admission::Granted, Admission::Ends)
    }

    fn stood_on(&self) -> Option<String> {
        self.stands_on.clone()
    }

    fn wait_began(&mut self, record: &Loop) {
        self.slot = None;
        let why = record.state.wait().wait_reason().clone().unwrap_or_default();
        // A loop that another attempt has taken over is ended only before its next iteration.
        let _ = self.report(
            record,
            AttemptPhase::Waiting { until: record.state.wait().due(), why },
            None,
        );
    }

    fn iteration_ended(&mut self, record: &Loop) -> Option<Ending> {
        self.slot = None;
        let phase = match self.attempt.link {
            // The next iteration follows at once.
            Some(_) => AttemptPhase::Running { slot: None, since: clock::now().wall },
            None => AttemptPhase::Queued,
        };
        self.send_lfs(record);
        self.report(record, phase, loop_tip(record).commit)
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

/// Whether `tip`, a commit or a ref, contains another commit.
fn has_commit(checkout: &Path, tip: &str, commit: &str) -> bool {
    git::count_lacking(checkout, commit, tip) == Some(0)
}

/// The tip of a loop's branch in its clone.
pub(super) fn loop_tip(record: &Loop) -> OwnTip {
    let checkout = &record.place.checkout;
    if let Some(fault) = lost_repository(&record.place) {
        return OwnTip { commit: None, astray: Some(fault.cause) };
    }
    match record.branch() {
        Some(branch) => own_tip(checkout, branch),
        None => OwnTip { commit: git::read_head(checkout).1, astray: None },
    }
}

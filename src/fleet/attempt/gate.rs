//! What an attempt needs before an iteration: a slot of its machine, a remote that has the last
//! one, and the base as it is now. It judges nothing.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::Attempt;
use super::remote::{Published, RemoteTrouble};
use crate::drive::run::round::{Admission, IterationGate};
use crate::engine::fleet::Carried;
use crate::engine::git::{GitFault, GitStep};
use crate::engine::record::{Ending, Loop, Outcome};
use crate::fleet::spec::{AttemptPhase, Source};
use crate::world::clock;
use crate::world::git::land::{OwnTip, own_tip};
use crate::world::git::refs::{Patience, Refs};
use crate::world::git::steps::Steps;
use crate::world::git::{self, steps};
use crate::world::slots::{Line, Slot};

/// The longest that one talk with the remote may take for the base.
const BASE_TALK: Duration = Duration::from_secs(30);
/// The end of a loop whose branch another attempt has moved.
const FENCED: &str = "another attempt has this task";

/// The gate of one attempt.
pub(super) struct AttemptGate<'a> {
    attempt: &'a Attempt<'a>,
    queue: Option<Line>,
    slot: Option<Slot>,
    /// The commit of the base that the branch was on, as far as is known.
    stands_on: Option<String>,
    /// The one that was fetched last.
    fetched: Option<String>,
}

impl<'a> AttemptGate<'a> {
    pub fn new(attempt: &'a Attempt<'a>) -> Self {
        let stands_on = attempt.reports.newest().stands_on;
        Self { attempt, queue: None, slot: None, stands_on, fetched: None }
    }

    /// Takes a slot, or says how many are before it in the queue.
    fn take_slot(&mut self) -> io::Result<Option<usize>> {
        let Attempt { home, spec, .. } = self.attempt;
        if spec.slots == 0 {
            return Ok(None);
        }
        let queue = match &mut self.queue {
            Some(queue) => queue,
            None => self.queue.insert(Line::join(home, spec.priority, spec.slots)?),
        };
        self.slot = queue.poll()?;
        if self.slot.is_none() {
            return Ok(Some(queue.ahead()));
        }
        self.queue = None;
        Ok(None)
    }

    /// Fetches the base: the iteration begins with a rebase onto it. A remote that is away is not
    /// waited for, and a base that was rewritten is not followed: what it has lost would become
    /// work of this branch.
    fn fetch_base(&mut self, record: &Loop) -> Result<(), String> {
        let Some(fetched) = self.attempt.fetch_base(record).map_err(|fault| fault.line())? else {
            return Ok(());
        };
        let checkout = &record.place.checkout;
        // The last rebase may have worked.
        self.stands_on = self.stands_on(record);
        let is_kept = |before: &String| git::lacking(checkout, before, &fetched) == Some(0);
        if !self.stands_on.as_ref().is_none_or(is_kept) {
            let base = &self.attempt.spec.base;
            return Err(format!("{base} was rewritten: this branch stays on what it was before"));
        }
        let name = self.attempt.spec.tracked_base();
        git::refs::point(checkout, &name, &fetched).map_err(|fault| fault.line())?;
        self.fetched = Some(fetched);
        Ok(())
    }

    /// The commit of the base that the branch is on now: the one that was fetched last, if a rebase
    /// onto it has worked.
    fn stands_on(&self, record: &Loop) -> Option<String> {
        let checkout = &record.place.checkout;
        let is_in = |commit: &&String| git::lacking(checkout, commit, "HEAD") == Some(0);
        self.fetched.as_ref().filter(is_in).or(self.stands_on.as_ref()).cloned()
    }

    /// Says how far the loop is. A report that cannot be written now is written with the next one.
    fn report(&self, record: &Loop, phase: AttemptPhase, tip: Option<String>) {
        let stands_on = self.stands_on(record);
        let _ = self.attempt.reports.change(|report| {
            report.phase = phase;
            report.loop_id = Some(record.id.clone());
            let before = std::mem::replace(&mut report.carried, Carried::of(record));
            if record.state.evidence.is_none() {
                // Whoever looks from time to time still learns how the last iteration ended.
                report.carried.last = before.last;
            }
            report.commit = tip.or(report.commit.take());
            report.stands_on = stands_on;
        });
    }

    /// Brings the report, and the branch if it has moved, to the remote.
    fn publish(&self) -> Option<Ending> {
        let link = self.attempt.link?;
        match link.publish(&self.attempt.reports.newest(), None) {
            Ok(Published::Done) => None,
            Ok(Published::Fenced) => Some(self.fence()),
            Err(RemoteTrouble::Refuses(why)) => Some(Ending::new(Outcome::Blocked, why)),
            // It is tried again before the next iteration.
            Err(RemoteTrouble::Away(_)) => None,
        }
    }

    fn fence(&self) -> Ending {
        self.attempt.is_fenced.set(true);
        // A job that is started again here, after the other is lost, resumes it.
        Ending::new(Outcome::Interrupted, FENCED)
    }
}

impl IterationGate for AttemptGate<'_> {
    fn admit(&mut self, record: &Loop) -> Admission {
        let is_new = self.queue.is_none();
        if let Some(link) = self.attempt.link {
            match link.before_iteration(&record.id) {
                Ok(Published::Done) => {}
                Ok(Published::Fenced) => return Admission::Ends(self.fence()),
                Err(RemoteTrouble::Refuses(why)) => {
                    return Admission::Ends(Ending::new(Outcome::Blocked, why));
                }
                Err(RemoteTrouble::Away(None)) => return Admission::Paused,
                Err(RemoteTrouble::Away(Some(why))) => return Admission::Later(why),
            }
        }
        match self.take_slot() {
            Ok(None) => {}
            Ok(Some(ahead)) => {
                if is_new {
                    self.report(record, AttemptPhase::Queued, None);
                }
                let before =
                    if ahead == 0 { String::new() } else { format!(", {ahead} before it") };
                return Admission::Later(format!("a slot{before}"));
            }
            Err(error) => return Admission::Later(format!("a slot, which cannot be had: {error}")),
        }
        // An agent that was ended, or ran out of memory, may have left some.
        if !steps::clear_locks(&record.place.checkout) {
            self.attempt.remember_note("a git still works in the clone of this task");
        }
        if let Err(why) = self.fetch_base(record) {
            self.attempt.remember_note(&why);
        }
        let slot = self.slot.as_ref().map(Slot::number);
        let was_running =
            matches!(self.attempt.reports.newest().phase, AttemptPhase::Running { .. });
        self.report(record, AttemptPhase::Running { slot, since: clock::now().wall }, None);
        // After an iteration the remote is told of it; here only that it works at all.
        let ending = if was_running { None } else { self.publish() };
        ending.map_or(Admission::Granted, Admission::Ends)
    }

    fn stood_on(&self) -> Option<String> {
        self.stands_on.clone()
    }

    fn wait_began(&mut self, record: &Loop) {
        self.slot = None;
        let why = record.state.wait_reason.clone().unwrap_or_default();
        self.report(record, AttemptPhase::Waiting { until: record.state.due, why }, None);
        // Only the next iteration ends a loop that was fenced meanwhile.
        let _ = self.publish();
    }

    fn iteration_ended(&mut self, record: &Loop) -> Option<Ending> {
        self.slot = None;
        let phase = match self.attempt.link {
            // Its next iteration follows at once.
            Some(_) => AttemptPhase::Running { slot: None, since: clock::now().wall },
            None => AttemptPhase::Queued,
        };
        self.report(record, phase, tip(record).commit);
        self.attempt.send_lfs(record);
        self.publish()
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.attempt.take_notes()
    }
}

/// What a loop's clone has of its branch.
pub(super) fn tip(record: &Loop) -> OwnTip {
    let checkout = &record.place.checkout;
    match record.branch() {
        Some(branch) => own_tip(checkout, branch),
        None => OwnTip { commit: git::head(checkout).1, astray: None },
    }
}

impl Attempt<'_> {
    /// Brings the newest commit of the base into the clone, where it is, if there is a remote.
    /// Nothing is run that the agent has planted in the clone's configuration: it must be as the
    /// loop found it.
    pub(super) fn fetch_base(&self, record: &Loop) -> Result<Option<String>, GitFault> {
        let checkout = &record.place.checkout;
        // Without it nobody can tell what was planted.
        let Some(trusted) = &record.trusted else { return Ok(None) };
        steps::unplanted(checkout, trusted, GitStep::Rebase, Some(&self.spec.branch))?;
        let (Source::Local { url: Some(url), .. } | Source::Remote { url }) = &self.spec.source
        else {
            return Ok(None);
        };
        let signals = self.signals.clone();
        let patience = Patience { signals, within: Duration::ZERO, talk: BASE_TALK };
        let stop = || self.signals.times() > 1;
        let refs = Refs { folder: checkout, remote: url, stop: &stop, patience: Some(&patience) };
        let name = format!("refs/heads/{}", self.spec.base);
        let found = refs.list(&[&name])?.pop().map(|found| found.id);
        if let Some(id) = &found
            && git::commit(checkout, id).is_none()
        {
            refs.fetch(&[&name], &[])?;
        }
        Ok(found)
    }

    /// Sends the files of git LFS that the branch refers to: they are on this machine alone.
    fn send_lfs(&self, record: &Loop) {
        let (Source::Remote { url }, Some(trusted)) = (&self.spec.source, &record.trusted) else {
            return;
        };
        let checkout = &record.place.checkout;
        let stop = || self.signals.times() > 1;
        let steps = Steps::new(&record.place, trusted, &stop);
        let sent = steps::unplanted(checkout, trusted, GitStep::Push, Some(&self.spec.branch))
            .and_then(|()| steps.send_lfs(url, &self.spec.branch));
        if let Err(fault) = sent {
            self.remember_note(&fault.line());
        }
    }
}

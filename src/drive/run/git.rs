//! The git steps around an iteration: the rebase before it, the commit and the push after it. They
//! are taken in the repository the loop began in, or not at all. A failed step is reported; only
//! one that the user must resolve ends the loop.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Result, anyhow};

use super::ledger::Ledger;
use super::ledger::{KnownGate, Workspace};
use super::machine::ThisMachine;
use super::ports::RecordChange;
use super::ports::{Checks, IterationGate};
use crate::drive::checks::test_changes;
use crate::drive::find::own_process;
use crate::drive::start::establish::make_way;
use crate::drive::tree::place::{self, on_another_branch};
use crate::drive::{end, tree};
use engine::git::{GitBaseline, GitFault, GitStep, GitTrouble, Pushed, Rebased};
use engine::journal::{JournalNote, NoteKind};
use engine::record::LoopStep;
use engine::record::{
    EndReason, Ending, Failures, GitMemory, GitSteps, Loop, Outcome, Pending, Place, Sent,
};
use engine::view::events::{EventSink, RunEvent};
use engine::words::commit_message;
use world::git::commit::{CommitResult, Drafts, commit_changes, name_paths};
use world::git::find_refusal;
use world::git::steps::{self, Steps, put_back_in, trusted_following};
use world::git::sync::{push_branch, rebase_branch, seen_at_remote};
use world::process::signals::Signals;
use world::store::{self, Home, LOCK_WAIT};

/// The reason why crew's commits leave out a file.
const IGNORED: &str = "ignored when the loop began, and left out of crew's commits: {}";
const BEHIND: &str = "a submodule moved to another commit, and the old one is still checked out, which \
                      crew's commits leave out: {} (git submodule update)";
const NESTED: &str = "{} is a separate repository: no commit of this loop holds its files (git \
                      submodule add takes it in, or remove the .git in it)";

/// The working tree of a run, and what its git steps know and have reported.
pub(super) struct Checkout<'a> {
    home: &'a Home,
    /// The trusted settings, recorded when this process took over the loop, because an agent can
    /// write the record too.
    trusted: Option<GitBaseline>,
    /// Paths that were reported because no commit of the loop has them: repositories in the working
    /// tree, and files of the user that are gone, or are no longer ignored.
    reported: BTreeSet<PathBuf>,
    /// The other branch that was reported; empty for a detached head.
    elsewhere: Option<String>,
}

impl Workspace for Checkout<'_> {
    fn missing_reason(&self, place: &Place) -> Option<String> {
        place::missing_place(place).map(|failure| failure.text)
    }

    fn lost_ending(&self, record: &Loop) -> Option<Ending> {
        let steps = git_steps(record);
        if !steps.commit && !steps.push && steps::seems_there(&record.place) {
            return None;
        }
        let fault = place::lost_repository(&record.place)?;
        Some(Ending::new(Outcome::Blocked, end_reason(record, &fault)))
    }

    fn follow_person(&self, ledger: &mut Ledger<'_>) {
        let Some(seen) = tree::look_after_a_rest(self.home, &ledger.record) else { return };
        edit(ledger, "what a person changed in between", |record| {
            test_changes::follow_tree(self.home, record, Some(seen.clone()), true);
        });
    }

    fn close(&self, record: &Loop) {
        tree::close_tree(self.home, record);
    }

    fn is_closed(&self, record: &Loop) -> bool {
        tree::is_closed(self.home, record)
    }

    fn keep_work(&mut self, ledger: &mut Ledger<'_>, commits: bool, pushes: bool) {
        let mut fault = if commits { self.commit(ledger).err() } else { None };
        // A loop whose repository is lost ends below, and its end names that.
        if let Some(fault) = fault.as_ref().filter(|fault| fault.trouble != GitTrouble::Repository)
        {
            record_fault(ledger, GitStep::Commit, fault);
        }
        if commits || pushes {
            self.note_repositories_inside(ledger);
        }
        let pushes = pushes && fault.is_none() && ledger.signals.times() == 0;
        if pushes && let Err(refused) = self.push(ledger) {
            record_fault(ledger, GitStep::Push, &refused);
            fault = Some(refused);
        }
        let pending = ledger.record.state.git().pending;
        if (commits && pending.commit) || (pushes && pending.push) {
            remember(ledger, |git| {
                git.pending.commit &= !commits;
                git.pending.push &= !pushes;
            });
        }
        if let Some(fault) = fault.filter(|fault| fault.trouble == GitTrouble::Repository) {
            end_without_a_repository(ledger, &fault);
        }
    }

    fn rebase(&self, ledger: &mut Ledger<'_>, onto: &str, gate: KnownGate<'_>) -> bool {
        ledger.emit(&RunEvent::StepStarted(LoopStep::Rebase, onto));
        let record = &ledger.record;
        let Some(trusted) = &self.trusted else { return true };
        let (signals, base) = (ledger.signals, gate.and_then(IterationGate::stood_on));
        let stop = || signals.times() > 1;
        let steps = Steps::new(&record.place, trusted, &stop);
        let carried = sent_commit_below(record, &steps);
        // What an attempt left that did not count must not pass for what the rebase brought.
        let is_watched = record.watches_the_tree();
        let seen = if is_watched { tree::look_at_tree(self.home, record) } else { None };
        match rebase_branch(&steps, record.branch(), onto, base.as_deref()) {
            Ok(Rebased::NothingNew) => {}
            Ok(Rebased::Onto(_)) => {
                ledger.emit(&RunEvent::Rebased { onto });
                if let Some(sent) = carried {
                    // The commit that the rebase made of it.
                    let head = steps::read_head_state(&record.place, GitStep::Rebase).ok();
                    let sent = Sent { rebased: head.and_then(|state| state.head), ..sent };
                    remember(ledger, |git| git.pushed = Some(sent.clone()));
                }
                let left = seen.and_then(|seen| seen.snapshot);
                self.look_again(ledger, NoteKind::Rebased(onto.to_owned()), left.as_deref());
            }
            // The loop's branch is left alone while another is checked out, and a fleet settles a
            // conflict when the branch lands.
            Err(fault) if fault.trouble == GitTrouble::Branch || gate.is_some() => {
                ledger.emit_note(&fault.cause_and_hint());
            }
            Err(fault) => {
                let ending = Ending::new(Outcome::Blocked, EndReason::Git(fault));
                ledger.write(&RecordChange::End(ending));
                return false;
            }
        }
        true
    }
}

impl<'a> Checkout<'a> {
    pub fn new(home: &'a Home, record: &Loop) -> Self {
        let (reported, elsewhere) = (BTreeSet::new(), None);
        Self { home, trusted: record.trusted.clone(), reported, elsewhere }
    }

    /// Reports paths, in place of the `{}` in `what`, except those that were reported before.
    fn note_once(&mut self, ledger: &Ledger<'_>, mut paths: Vec<PathBuf>, what: &str) {
        paths.retain(|path| self.reported.insert(path.clone()));
        if !paths.is_empty() {
            ledger.emit_note(&what.replace("{}", &name_paths(&paths)));
        }
    }

    /// Reports once that the commits go to a branch other than the loop's.
    fn note_another_branch(&mut self, ledger: &Ledger<'_>, branch: Option<&str>) {
        let own = ledger.record.branch();
        if branch == own {
            self.elsewhere = None;
        } else if self.elsewhere.as_deref() != Some(branch.unwrap_or_default()) {
            ledger.emit_note(&on_another_branch(own, branch));
            self.elsewhere = Some(branch.unwrap_or_default().to_owned());
        }
    }

    /// Commits what the iteration changed. The commit does not count as progress of the next one.
    fn commit(&mut self, ledger: &mut Ledger<'_>) -> Result<(), GitFault> {
        if ledger.record.place.repository.is_none() {
            return Ok(());
        }
        ledger.emit(&RunEvent::StepStarted(LoopStep::Commit, ""));
        let message = commit_message(&ledger.record);
        let drafts = self.read_drafts(&ledger.record)?;
        let kept = self
            .take_step(ledger, GitStep::Commit, |steps| commit_changes(steps, &message, &drafts))?;
        self.report_commit(ledger, &message, kept, drafts);
        Ok(())
    }

    /// Reports a commit, and what it leaves out.
    fn report_commit(
        &mut self,
        ledger: &mut Ledger<'_>,
        message: &str,
        kept: CommitResult,
        mut drafts: Drafts,
    ) {
        let CommitResult { commit, branch, taken, ignored, left, nested, behind } = kept;
        let nested = nested.into_iter().map(|path| (vec![path], NESTED));
        for (paths, what) in [(ignored, IGNORED), (behind, BEHIND)].into_iter().chain(nested) {
            self.note_once(ledger, paths, what);
        }
        if ledger.record.state.git().commits != Failures::default() {
            remember(ledger, |git| git.commits = Failures::default());
        }
        let theirs = "what you had not committed was committed, but not by crew: {}";
        self.give_up_drafts(ledger, &mut drafts, &left.committed, theirs);
        self.note_once(
            ledger,
            left.gone,
            "what you had not committed is gone, or equals what is committed (crew diff shows \
             what became of yours): {}",
        );
        let Some(commit) = commit else { return };
        let subject = message.lines().next().unwrap_or_default();
        let branch = branch.as_deref();
        ledger.emit(&RunEvent::Committed { commit: &commit, branch, subject });
        let whole = format!(
            "the agent changed files you had not committed, so {commit} holds all of them, your \
             changes too: {{}} (crew diff shows what became of yours)"
        );
        self.give_up_drafts(ledger, &mut drafts, &taken, &whole);
        self.note_another_branch(ledger, branch);
        let left = ledger.record.state.seen().trees().snapshot().clone();
        self.look_again(ledger, NoteKind::Committed(commit), left.as_deref());
    }

    /// Records crew's own changes to the working tree, so that they do not count as the agent's
    /// progress. `left` is the snapshot from just before.
    fn look_again(&self, ledger: &mut Ledger<'_>, note: NoteKind, left: Option<&str>) {
        let is_watched = ledger.record.watches_the_tree();
        let tree =
            if is_watched { tree::look_again(self.home, &ledger.record, left) } else { None };
        let is_commit = matches!(note, NoteKind::Committed(_));
        edit(ledger, note, |record| {
            test_changes::follow_tree(self.home, record, tree.clone(), false);
            record.state.git_mut().pending.commit &= !is_commit;
        });
    }

    /// Reports once each repository inside that has work which no commit of the loop contains.
    fn note_repositories_inside(&mut self, ledger: &Ledger<'_>) {
        let state = &ledger.record.state;
        let changes =
            state.seen().evidence().as_ref().and_then(|evidence| evidence.changes.as_ref());
        for path in changes.into_iter().flat_map(|changes| &changes.repositories) {
            let seen = state.seen().trees().repositories().get(path);
            if seen.is_some_and(|seen| seen.uncommitted.is_some()) {
                self.note_once(
                    ledger,
                    vec![path.into()],
                    "{} is a nested repository with work that is not committed there: no commit and \
                     no push of this loop has it (git -C {} commit)",
                );
            }
        }
    }

    fn push(&mut self, ledger: &mut Ledger<'_>) -> Result<(), GitFault> {
        ledger.emit(&RunEvent::StepStarted(LoopStep::Push, ""));
        let record = &ledger.record;
        let (own, sent) = (record.branch(), record.state.git().pushed.as_ref());
        let rebases = git_steps(record).rebase.is_some();
        let pushed =
            self.take_step(ledger, GitStep::Push, |steps| push_branch(steps, own, sent, rebases))?;
        let Pushed { branch, remote, commit, was_up_to_date, upstream_was_set } = pushed;
        if !was_up_to_date {
            ledger.emit(&RunEvent::Pushed { branch: &branch, remote: &remote });
        }
        if upstream_was_set {
            let before = self.trusted.take();
            self.trusted = before.map(|before| trusted_following(&before, &branch, &remote));
        }
        let what = format!("pushed {branch} to {remote}");
        let sent = Sent { remote, branch, commit, rebased: None };
        let known = ledger.record.state.git();
        if upstream_was_set
            || known.pushed.as_ref() != Some(&sent)
            || known.pushes != Failures::default()
        {
            edit(ledger, what, |record| {
                record.trusted.clone_from(&self.trusted);
                let git = record.state.git_mut();
                git.pushed = Some(sent.clone());
                git.pushes = Failures::default();
                git.pending.push = false;
            });
        }
        Ok(())
    }

    /// Runs a git step. The first Ctrl-C lets it finish, which is reported once; a second one or a
    /// cancel ends it.
    fn take_step<T>(
        &self,
        ledger: &Ledger<'_>,
        step: GitStep,
        take: impl FnOnce(&Steps<'_>) -> Result<T, GitFault>,
    ) -> Result<T, GitFault> {
        let place = &ledger.record.place;
        let Some(trusted) = &self.trusted else {
            return Err(if place.repository.is_none() {
                let (cause, hint) = find_refusal(&place.checkout).unwrap_or_else(|| {
                    ("this is not a git repository".to_owned(), "git init".to_owned())
                });
                GitFault::new(GitStep::Push, GitTrouble::NoRemote, cause, hint)
            } else {
                // crew then cannot tell which programs the user's settings name.
                let cause = "git's settings could not be listed when the loop began";
                GitFault::new(step, GitTrouble::Other, cause, "crew resume looks again")
            });
        };
        let was_reported = Cell::new(false);
        let stop = || {
            if ledger.must_stop() && !was_reported.replace(true) {
                let (what, most) =
                    if step == GitStep::Push { ("push", "two") } else { ("commit", "five") };
                ledger.emit_note(&format!(
                    "a {what} is in progress: crew waits for it, {most} minutes at most; Ctrl-C again ends it at once"
                ));
            }
            ledger.signals.times() > 1 || ledger.is_broken_off()
        };
        take(&Steps::new(place, trusted, &stop))
    }

    fn read_drafts(&self, record: &Loop) -> Result<Drafts, GitFault> {
        let cause = match Drafts::read(self.home, record) {
            Ok(Some(drafts)) => return Ok(drafts),
            Ok(None) => "the list of what you had not committed at the start is gone".to_owned(),
            Err(error) => error.to_string(),
        };
        let hint = "commit what is yours, then start a new loop";
        Err(GitFault::new(GitStep::Commit, GitTrouble::Other, cause, hint))
    }

    /// Reports files that are no longer the user's drafts, and removes them from the list.
    fn give_up_drafts(
        &self,
        ledger: &Ledger<'_>,
        drafts: &mut Drafts,
        paths: &[PathBuf],
        what: &str,
    ) {
        if !paths.is_empty() {
            ledger.emit_note(&what.replace("{}", &name_paths(paths)));
            let _ = drafts.forget(self.home, &ledger.record.id, paths);
        }
    }
}

/// Reports a commit or a push that failed, and remembers why.
fn record_fault(ledger: &mut Ledger<'_>, step: GitStep, fault: &GitFault) {
    let (why, reason) = (&fault.cause_and_hint(), end_reason(&ledger.record, fault).to_string());
    let is_push = step == GitStep::Push;
    ledger.emit(&if is_push {
        RunEvent::PushFailed { why }
    } else {
        RunEvent::CommitFailed { why }
    });
    remember(ledger, |git| {
        let failures = if is_push { &mut git.pushes } else { &mut git.commits };
        failures.add_failure(reason.clone());
    });
}

fn remember(ledger: &mut Ledger<'_>, change: impl Fn(&mut GitMemory)) {
    edit(ledger, "a step of git", |record| change(record.state.git_mut()));
}

fn edit(ledger: &mut Ledger<'_>, note: impl Into<JournalNote>, change: impl Fn(&mut Loop)) {
    ledger.write(&RecordChange::Edit(note.into(), &change));
}

fn git_steps(record: &Loop) -> GitSteps {
    record.contract.run.as_ref().map(|run| run.git.clone()).unwrap_or_default()
}

/// The reason for an end: the cause and the hint.
fn end_reason(record: &Loop, fault: &GitFault) -> EndReason {
    let GitFault { cause, mut hint, .. } = fault.clone();
    if let Some(task) = &record.fleet {
        hint = hint.replace("crew resume", &task.resume_command());
    }
    EndReason::External { cause, hint }
}

/// Ends the loop, which cannot continue without its repository. If it has ended already, its last
/// work is in no commit.
fn end_without_a_repository(ledger: &mut Ledger<'_>, fault: &GitFault) {
    let reason = end_reason(&ledger.record, fault);
    let known = ledger.record.state.end().ending().as_ref().map(|ending| &ending.reason);
    if ledger.record.is_live() {
        ledger.write(&RecordChange::End(Ending::new(Outcome::Blocked, reason)));
    } else if git_steps(&ledger.record).commit && known != Some(&reason) {
        record_fault(ledger, GitStep::Commit, fault);
    }
}

/// The commit that crew pushed last, or that was pushed before the loop, if it is an ancestor of
/// the head: a rebase then replaces it with another commit.
fn sent_commit_below(record: &Loop, steps: &Steps<'_>) -> Option<Sent> {
    let sent = match &record.state.git().pushed {
        Some(sent) => sent.clone(),
        None if git_steps(record).push => seen_at_remote(steps)?,
        None => return None,
    };
    let head = steps.head_state(GitStep::Rebase).ok()?.head?;
    let is_below = steps.holds(sent.rebased.as_ref().unwrap_or(&sent.commit), &head);
    if is_below { Some(sent) } else { None }
}

// What follows the record of a boundary or an end: commit, push, reaction. The record names them
// until they were tried, and whoever finds some left does them.

/// Completes the pending steps of an ended loop, and returns the loop. This process becomes its
/// owner meanwhile, so that no other process starts beside it.
///
/// # Errors
/// If another loop works there, its own crew still does that, or nothing can be recorded.
pub fn settle_steps(
    home: &Home,
    found: &Loop,
    signals: &Signals,
    sink: &mut dyn EventSink,
) -> Result<Loop> {
    let id = &found.id;
    end::let_end(found)?;
    let me = own_process()?;
    let mut notes = Vec::new();
    make_way(home, &home.checkout_pointer(&found.place.checkout), id, &me, &mut notes)?;
    for note in &notes {
        sink.on_event(&RunEvent::Noted(note));
    }
    let held = store::hold_loop(home, id, LOCK_WAIT)?;
    let record = held.load()?;
    let left = record.state.git().pending_steps();
    if record.is_live() || left.is_empty() {
        return Ok(record);
    }
    put_back_in(&record.place).map_err(|fault| anyhow!(fault.cause_and_hint()))?;
    let record =
        held.change(&record, "completing the pending steps", |record| record.state.name_owner(me))?;
    drop(held);
    let what = left.pending_names().join(", ");
    sink.on_event(&RunEvent::Noted(&format!("loop {id} ended with pending steps: {what}")));
    let sink = RefCell::new(&mut *sink as &mut dyn EventSink);
    let machine = ThisMachine(home);
    let mut checkout = Checkout::new(home, &record);
    let mut ledger = Ledger::new((&machine, &machine), record, signals, &sink);
    do_pending(&mut ledger, &machine, &mut checkout, left);
    let record = store::load(home, id)?;
    end::complete_end(home, &record);
    Ok(record)
}

/// Completes the steps that an earlier process of the loop left.
pub(super) fn do_pending(
    ledger: &mut Ledger<'_>,
    checks: &dyn Checks,
    checkout: &mut Checkout<'_>,
    left: Pending,
) {
    let own = ledger.record.branch();
    // What is there may be another branch's work.
    if left.commit
        && let Ok(head) = steps::read_head_state(&ledger.record.place, GitStep::Commit)
        && head.branch.as_deref() != own
    {
        let why = on_another_branch(own, head.branch.as_deref());
        ledger.emit(&RunEvent::CommitFailed { why: &why });
    } else {
        checkout.keep_work(ledger, left.commit, left.push);
    }
    if left.reaction {
        ledger.react_to_the_end(checks);
    }
}

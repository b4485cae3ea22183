//! The git steps around an iteration: the rebase before it, the commit and the push after it. They
//! are taken in the repository the loop began in, or not at all. A failed step is reported; only
//! what a person must settle ends the loop.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use anyhow::{Result, anyhow};

use super::Runner;
use crate::drive::find::own_process;
use crate::drive::start::establish::make_way;
use crate::drive::tree::place::{lost_repository, on_another_branch};
use crate::drive::{end, tree};
use engine::events::{EventSink, RunEvent};
use engine::git::{GitFault, GitStep, GitTrouble, Pushed, Rebased};
use engine::journal::NoteKind;
use engine::record::LoopStep;
use engine::record::{
    EndReason, Ending, Failures, GitMemory, Loop, LoopMoment, Outcome, Pending, Sent,
};
use engine::words::commit_message;
use world::git::commit::{CommitResult, Drafts, commit_changes, name_paths};
use world::git::find_refusal;
use world::git::steps::{self, Steps, put_back_in, trusted_following};
use world::git::sync::{push_branch, rebase_branch, seen_at_remote};
use world::process::Stop;
use world::process::signals::Signals;
use world::store::{self, Home, LOCK_WAIT};

impl Runner<'_> {
    /// How a loop whose repository is lost ends. It is known before the end is recorded, so that no
    /// page of a finished loop omits it.
    pub(super) fn place_lost(&self) -> Option<Ending> {
        let (git, place) = (self.run_terms().git, &self.ledger.record.place);
        if !git.commit && !git.push && steps::seems_there(place) {
            return None;
        }
        Some(Ending::new(Outcome::Blocked, self.fault_reason(&lost_repository(place)?)))
    }

    /// Ends the loop, which cannot continue without its repository. If it ends anyway, its last
    /// work is in no commit.
    fn end_without_a_repository(&mut self, fault: &GitFault) {
        let reason = self.fault_reason(fault);
        let known = self.ledger.record.state.ending.as_ref().map(|ending| &ending.reason);
        if self.ledger.record.is_live() {
            self.end_run(Outcome::Blocked, reason);
        } else if self.run_terms().git.commit && known != Some(&reason) {
            self.record_fault(GitStep::Commit, fault);
        }
    }

    /// Commits what the iteration changed. The commit does not count as progress of the next one.
    fn commit_work(&mut self) -> Result<(), GitFault> {
        if self.ledger.record.place.repository.is_none() {
            return Ok(());
        }
        self.emit_event(&RunEvent::StepStarted(LoopStep::Commit, ""));
        let message = commit_message(&self.ledger.record);
        let drafts = self.read_drafts()?;
        let kept =
            self.take_step(GitStep::Commit, |steps| commit_changes(&steps, &message, &drafts))?;
        self.record_commit(&message, kept, drafts);
        Ok(())
    }

    /// Reports a commit or a push that failed, and remembers why.
    fn record_fault(&mut self, step: GitStep, fault: &GitFault) {
        let (why, reason) = (&fault.cause_and_hint(), self.fault_reason(fault).to_string());
        let is_push = step == GitStep::Push;
        let event =
            if is_push { RunEvent::PushFailed { why } } else { RunEvent::CommitFailed { why } };
        self.emit_event(&event);
        self.remember_of_git(|git| {
            let failures = if is_push { &mut git.pushes } else { &mut git.commits };
            failures.add_failure(reason.clone());
        });
    }

    /// Reports a commit, and what is not in it.
    fn record_commit(&mut self, message: &str, kept: CommitResult, mut drafts: Drafts) {
        let CommitResult { commit, branch, taken, ignored, left, nested, behind } = kept;
        self.note_once(ignored, "ignored when the loop began, and left out of crew's commits: {}");
        self.note_once(
            behind,
            "another commit of a submodule came, and the old one is still checked out, which \
             crew's commits leave out: {} (git submodule update)",
        );
        for path in nested {
            self.note_once(
                vec![path],
                "{} is a separate repository: no commit of this loop holds its files (git \
                 submodule add takes it in, or remove the .git in it)",
            );
        }
        if self.ledger.record.state.git.commits != Failures::default() {
            self.remember_of_git(|git| git.commits = Failures::default());
        }
        let theirs = "what you had not committed was committed, but not by crew: {}";
        self.give_up_drafts(&mut drafts, &left.committed, theirs);
        self.note_once(
            left.gone,
            "what you had not committed is gone, or equals what is committed (crew diff shows \
             what became of yours): {}",
        );
        let Some(commit) = commit else { return };
        let subject = message.lines().next().unwrap_or_default();
        let branch = branch.as_deref();
        self.emit_event(&RunEvent::Committed { commit: &commit, branch, subject });
        let whole = format!(
            "the agent changed files you had not committed, so {commit} holds all of them, your \
             changes too: {{}} (crew diff shows what became of yours)"
        );
        self.give_up_drafts(&mut drafts, &taken, &whole);
        self.tell_of_another_branch(branch);
        let left = self.ledger.record.state.trees.snapshot.clone();
        self.look_at_the_tree(NoteKind::Committed(commit), left.as_deref());
    }

    /// Reports paths, in place of the `{}` in `what`, except those that were reported before.
    fn note_once(&mut self, mut paths: Vec<PathBuf>, what: &str) {
        paths.retain(|path| self.reported.insert(path.clone()));
        if !paths.is_empty() {
            self.emit_note(&what.replace("{}", &name_paths(&paths)));
        }
    }

    /// Reports files that are the user's drafts no longer, and takes them off the list.
    fn give_up_drafts(&self, drafts: &mut Drafts, paths: &[PathBuf], what: &str) {
        if !paths.is_empty() {
            self.emit_note(&what.replace("{}", &name_paths(paths)));
            let _ = drafts.forget(self.home, &self.ledger.record.id, paths);
        }
    }

    /// Reports once that the commits go to a branch other than the loop's.
    fn tell_of_another_branch(&mut self, branch: Option<&str>) {
        let own = self.ledger.record.branch();
        if branch == own {
            self.elsewhere = None;
        } else if self.elsewhere.as_deref() != Some(branch.unwrap_or_default()) {
            self.emit_note(&on_another_branch(own, branch));
            self.elsewhere = Some(branch.unwrap_or_default().to_owned());
        }
    }

    fn read_drafts(&self) -> Result<Drafts, GitFault> {
        let cause = match Drafts::read(self.home, &self.ledger.record) {
            Ok(Some(drafts)) => return Ok(drafts),
            Ok(None) => "the list of what you had not committed at the start is gone".to_owned(),
            Err(error) => error.to_string(),
        };
        let hint = "commit what is yours, then start a new loop";
        Err(GitFault::new(GitStep::Commit, GitTrouble::Other, cause, hint))
    }

    /// Takes a step of git. The first Ctrl-C lets it finish, which is reported once; a second one
    /// or a cancel ends it.
    fn take_step<T>(
        &self,
        step: GitStep,
        take: impl FnOnce(Steps<'_>) -> Result<T, GitFault>,
    ) -> Result<T, GitFault> {
        let is_told = Cell::new(false);
        let stop = || {
            if self.must_stop() && !is_told.replace(true) {
                let (what, most) =
                    if step == GitStep::Push { ("push", "two") } else { ("commit", "five") };
                self.emit_note(&format!(
                    "a {what} is under way: crew waits for it, {most} minutes at most; Ctrl-C again ends it at once"
                ));
            }
            self.signals.times() > 1 || self.is_broken_off()
        };
        match self.steps_until(&stop, take) {
            Some(taken) => taken,
            None if self.ledger.record.place.repository.is_none() => Err(self.without_git()),
            None => Err(unlisted_drafts(step)),
        }
    }

    fn push_branch(&mut self) -> Result<(), GitFault> {
        self.emit_event(&RunEvent::StepStarted(LoopStep::Push, ""));
        let sent = self.ledger.record.state.git.pushed.as_ref();
        let rebases = self.run_terms().git.rebase.is_some();
        let branch = self.ledger.record.branch();
        let pushed =
            self.take_step(GitStep::Push, |steps| push_branch(&steps, branch, sent, rebases))?;
        self.record_push(&pushed);
        Ok(())
    }

    fn record_push(&mut self, pushed: &Pushed) {
        let Pushed { branch, remote, commit, .. } = pushed;
        if !pushed.was_up_to_date {
            self.emit_event(&RunEvent::Pushed { branch, remote });
        }
        if pushed.upstream_was_set {
            self.trusted =
                self.trusted.take().map(|before| trusted_following(&before, branch, remote));
        }
        let trusted = self.trusted.clone();
        let sent = Sent {
            remote: remote.clone(),
            branch: branch.clone(),
            commit: commit.clone(),
            rebased: None,
        };
        let known = &self.ledger.record.state.git;
        if pushed.upstream_was_set
            || known.pushed.as_ref() != Some(&sent)
            || known.pushes != Failures::default()
        {
            self.ledger.change_record(format!("pushed {branch} to {remote}"), |record| {
                record.trusted.clone_from(&trusted);
                let git = record.state.git_mut();
                git.pushed = Some(sent.clone());
                git.pushes = Failures::default();
                git.pending.push = false;
            });
        }
    }

    pub(super) fn remember_of_git(&mut self, change: impl Fn(&mut GitMemory)) {
        self.ledger.change_record("a step of git", |record| change(record.state.git_mut()));
    }

    /// Takes git steps; `None` outside git.
    fn with_steps<T>(&self, take: impl FnOnce(Steps<'_>) -> T) -> Option<T> {
        self.steps_until(&|| self.signals.times() > 1, take)
    }

    fn steps_until<T>(&self, stop: Stop<'_>, take: impl FnOnce(Steps<'_>) -> T) -> Option<T> {
        Some(take(Steps::new(&self.ledger.record.place, self.trusted.as_ref()?, stop)))
    }

    /// Rebases the branch onto another that moved. False when that needs a person and has ended the
    /// loop.
    pub(super) fn rebase_onto(&mut self, onto: &str) -> bool {
        self.emit_event(&RunEvent::StepStarted(LoopStep::Rebase, onto));
        let carried = self.sent_commit_below();
        // What an attempt left that did not count must not pass for what the rebase brought.
        let is_watched = self.ledger.record.watches_the_tree();
        let seen =
            if is_watched { tree::look_at_tree(self.home, &self.ledger.record) } else { None };
        let left = seen.and_then(|seen| seen.snapshot);
        let stood_on = self.gate.as_ref().and_then(|gate| gate.stood_on());
        let branch = self.ledger.record.branch();
        match self.with_steps(|steps| rebase_branch(&steps, branch, onto, stood_on.as_deref())) {
            None | Some(Ok(Rebased::NothingNew)) => true,
            Some(Ok(Rebased::Onto(_))) => {
                self.emit_event(&RunEvent::Rebased { onto });
                self.carry_sent(carried);
                self.look_at_the_tree(NoteKind::Rebased(onto.to_owned()), left.as_deref());
                true
            }
            // The loop's branch is left alone while another is checked out, and a fleet settles a
            // conflict when the branch lands.
            Some(Err(fault)) if fault.trouble == GitTrouble::Branch || self.gate.is_some() => {
                self.emit_note(&fault.cause_and_hint());
                true
            }
            Some(Err(fault)) => {
                self.end_run(Outcome::Blocked, EndReason::Git(fault));
                false
            }
        }
    }

    /// The cause and the hint.
    fn fault_reason(&self, fault: &GitFault) -> EndReason {
        let GitFault { cause, mut hint, .. } = fault.clone();
        if let Some(task) = &self.ledger.record.fleet {
            hint = hint.replace("crew resume", &task.resume_command());
        }
        EndReason::External { cause, hint }
    }

    /// What crew pushed last, or what was pushed before the loop, if it is an ancestor of the head:
    /// a rebase then makes another commit of it.
    fn sent_commit_below(&self) -> Option<Sent> {
        let sent = match &self.ledger.record.state.git.pushed {
            Some(sent) => sent.clone(),
            None if self.run_terms().git.push => {
                self.with_steps(|steps| seen_at_remote(&steps)).flatten()?
            }
            None => return None,
        };
        let head = steps::read_head_state(&self.ledger.record.place, GitStep::Rebase).ok()?.head?;
        let last = sent.rebased.as_ref().unwrap_or(&sent.commit);
        self.with_steps(|steps| steps.holds(last, &head))?.then_some(sent)
    }

    fn without_git(&self) -> GitFault {
        let (cause, hint) = find_refusal(&self.ledger.record.place.checkout)
            .unwrap_or_else(|| ("this is not a git repository".to_owned(), "git init".to_owned()));
        GitFault::new(GitStep::Push, GitTrouble::NoRemote, cause, hint)
    }

    /// Reports once each repository inside with work that no commit of the loop holds.
    pub(super) fn tell_of_repositories_inside(&mut self) {
        let state = &self.ledger.record.state;
        let changes = state.evidence.as_ref().and_then(|evidence| evidence.changes.as_ref());
        let changed = changes.into_iter().flat_map(|changes| &changes.repositories);
        let left = changed.filter(|path| {
            let seen = state.trees.repositories.get(*path);
            seen.is_some_and(|seen| seen.uncommitted.is_some())
        });
        let left: Vec<PathBuf> = left.map(PathBuf::from).collect();
        for path in left {
            self.note_once(
                vec![path],
                "{} is a repository inside, with work that is not committed there: no commit and \
                 no push of this loop has it (git -C {} commit)",
            );
        }
    }

    /// Remembers the commit that a rebase made of it.
    fn carry_sent(&mut self, sent: Option<Sent>) {
        let Some(sent) = sent else { return };
        let state = steps::read_head_state(&self.ledger.record.place, GitStep::Rebase).ok();
        let sent = Sent { rebased: state.and_then(|state| state.head), ..sent };
        self.remember_of_git(|git| git.pushed = Some(sent.clone()));
    }
}

/// The fault when git's settings are unknown: crew then cannot tell which programs the user's
/// settings name.
fn unlisted_drafts(step: GitStep) -> GitFault {
    let cause = "git's settings could not be listed when the loop began";
    GitFault::new(step, GitTrouble::Other, cause, "crew resume looks again")
}

// What follows the record of a boundary or an end: commit, push, reaction. The record names them
// until they were tried, and whoever finds some left does them.

/// Does what is pending of an ended loop, and returns the loop as it then is. This process becomes
/// its owner until then, so that nobody starts beside it.
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
    let left = record.state.git.pending_steps();
    if record.is_live() || left.is_empty() {
        return Ok(record);
    }
    put_back_in(&record.place).map_err(|fault| anyhow!(fault.cause_and_hint()))?;
    let record =
        held.change(&record, "doing what is pending", |record| record.state.name_owner(me))?;
    drop(held);
    let what = left.pending_names().join(", ");
    sink.on_event(&RunEvent::Noted(&format!("loop {id} ended with this pending: {what}")));
    let sink = RefCell::new(&mut *sink as &mut dyn EventSink);
    Runner::new(home, record, signals, &sink, None).do_pending(left);
    let record = store::load(home, id)?;
    end::complete_end(home, &record);
    Ok(record)
}

impl Runner<'_> {
    /// Does what an earlier process of the loop left.
    pub(super) fn do_pending(&mut self, left: Pending) {
        let own = self.ledger.record.branch();
        // What is there may be another branch's work.
        if left.commit
            && let Ok(head) = steps::read_head_state(&self.ledger.record.place, GitStep::Commit)
            && head.branch.as_deref() != own
        {
            let why = on_another_branch(own, head.branch.as_deref());
            self.emit_event(&RunEvent::CommitFailed { why: &why });
        } else {
            self.take_steps(left.commit, left.push);
        }
        if left.reaction {
            self.react_to_the_end();
        }
    }

    /// Commits and pushes, and crosses that out. Ends a loop whose repository is lost.
    pub(super) fn take_steps(&mut self, commits: bool, pushes: bool) {
        let mut fault = if commits { self.commit_work().err() } else { None };
        // A loop whose repository is lost ends below, and its end names that.
        if let Some(fault) = fault.as_ref().filter(|fault| fault.trouble != GitTrouble::Repository)
        {
            self.record_fault(GitStep::Commit, fault);
        }
        if commits || pushes {
            self.tell_of_repositories_inside();
        }
        let pushes = pushes && fault.is_none() && self.signals.times() == 0;
        if pushes && let Err(refused) = self.push_branch() {
            self.record_fault(GitStep::Push, &refused);
            fault = Some(refused);
        }
        let pending = self.ledger.record.state.git.pending;
        if (commits && pending.commit) || (pushes && pending.push) {
            self.remember_of_git(|git| {
                git.pending.commit &= !commits;
                git.pending.push &= !pushes;
            });
        }
        if let Some(fault) = fault.filter(|fault| fault.trouble == GitTrouble::Repository) {
            self.end_without_a_repository(&fault);
        }
    }

    /// Runs the user's commands for the end, and crosses them out unless a signal ended them.
    pub(super) fn react_to_the_end(&self) {
        self.react_to(LoopMoment::Finish);
        if self.signals.times() <= 1 && !self.ledger.is_behind() {
            let id = &self.ledger.record.id;
            let _ = end::amend_record(self.home, id, "reacted to the end", |record| {
                record.state.git_mut().pending.reaction = false;
            });
        }
    }
}

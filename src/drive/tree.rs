//! Examines the working tree of a loop by its snapshots. It reports what an iteration changed,
//! names the snapshots, and judges nothing. Without snapshots nothing is known about the tree.

pub mod back;
pub mod place;

use std::collections::BTreeSet;

use anyhow::Result;

use engine::boundary::decide::{Decision, Hold};
use engine::evidence::changes::Changes;
use engine::record::{Loop, Status, TreeSeen};
use engine::text::count;
use engine::{protect as protect_rules, refuse};
use world::git::head::{checked_out, find_move, list_tips, new_elsewhere};
use world::git::snapshots::{CHECKED, ENDED, Snapshot, Snapshots, fill_git_dir, protect};
use world::git::{self, inside};
use world::store::{Home, hash};

/// The tree that a loop begins with.
#[derive(Debug, Default)]
pub struct TreeBegun {
    /// The state of the tree; `None` if nothing can examine it.
    pub seen: Option<TreeSeen>,
    /// The number of watched files, outside git.
    watched: Option<usize>,
    /// A note for the user about the snapshots.
    note: Option<String>,
    /// Why no snapshot has the tree, and the hint.
    unrecorded: Option<String>,
}

impl TreeBegun {
    /// Records what is known about the tree in a loop that starts. Returns notes for the user.
    pub fn remember_in(self, record: &mut Loop) -> Vec<String> {
        let limit = match (&self.seen, self.watched) {
            _ if record.contract.limits.stall == 0 => None,
            (_, Some(files)) => Some(format!("no git: watching {}", count(files as u64, "file"))),
            (Some(_), None) => None,
            (None, None) => Some(NO_STALL_RULE.to_owned()),
        };
        let mut notes: Vec<String> = limit.into_iter().chain(self.note).collect();
        if self.unrecorded.is_some() && !record.contract.checks.is_empty() {
            let what = "the tree as it is now cannot be recorded";
            notes.push(format!("{what}, so an end of this loop proves `passing` at most"));
        }
        record.state.note_unrecorded(self.unrecorded);
        record.state.remember_tree(self.seen);
        notes
    }
}

/// Examines the tree of a loop that starts or resumes, and creates what later examinations need.
pub fn begin_tree(home: &Home, subject: &Loop) -> TreeBegun {
    let snapshots = Snapshots::of(home, subject);
    let filled =
        fill_git_dir(&snapshots, subject).and_then(|filled| Ok((filled, snapshots.take()?)));
    let (filled, snapshot) = match filled {
        Ok(filled) => filled,
        Err(why) => {
            let note = Some(format!("no snapshots here: {why}"));
            return TreeBegun { note, unrecorded: Some(why), ..TreeBegun::default() };
        }
    };
    let found = without_cut_off(&snapshots, subject, &snapshot.commit);
    let is_cut_off = found.is_some();
    let snapshot = Snapshot { commit: found.unwrap_or(snapshot.commit), ..snapshot };
    let is_known =
        subject.state.counts().completed() == 0 && snapshots.as_found(&subject.id).is_some();
    // A kill before the name must not leave a tree as found without its lists.
    let kept_lists = if subject.state.counts().completed() == 0 && !is_known {
        let status = git::look_at_tree(&subject.place.checkout).unwrap_or_default();
        let paths = status.into_iter().map(|change| change.path.display().to_string());
        let yours: Vec<String> = paths.collect();
        snapshots.keep_beginning(&subject.id, &yours)
    } else {
        Ok(())
    };
    let _ = match subject.state.counts().completed() {
        0 if is_known && is_cut_off => snapshots.name(&subject.id, CHECKED, &snapshot.commit),
        0 if is_known => Ok(()),
        completed => snapshots.end(&subject.id, completed, &snapshot.commit),
    };
    let unlisted = kept_lists.err().map(|why| {
        format!(
            "the state before the loop cannot be recorded: {why}; no run without the work can prove it"
        )
    });
    let note =
        filled.note.into_iter().chain(unlisted).reduce(|one, other| format!("{one}; {other}"));
    let seen = Some(tree_as_kept(subject, &snapshot));
    TreeBegun { seen, watched: filled.watched, note, unrecorded: None }
}

/// Records the tree that a loop found as the state that its protected paths must keep. Returns
/// notes for the user. Fails if later changes could not be detected.
pub fn begin_protection(home: &Home, record: &mut Loop) -> Result<Vec<String>> {
    record.protected = None;
    if record.contract.protect.is_empty() {
        return Ok(Vec::new());
    }
    let begun = match record.state.seen().trees().snapshot() {
        Some(now) => protect::begin_protection(home, record, now),
        None => Err("no snapshot can be taken here".to_owned()),
    };
    match begun {
        Ok((protected, left_out)) => {
            record.protected = Some(protected);
            Ok(protect_rules::left_out(&left_out).into_iter().collect())
        }
        Err(why) => {
            let (why, hint) = git::find_refusal(&record.place.checkout)
                .unwrap_or_else(|| (why, "correct that, or leave `protect` out".to_owned()));
            refuse!("what `protect` names cannot be recorded: {why}", hint);
        }
    }
}

/// The current tree without the work of an interrupted attempt, which counts as the work of the
/// iteration that runs again; a person's later changes do not. `None` if no attempt did anything.
fn without_cut_off(snapshots: &Snapshots, subject: &Loop, now: &str) -> Option<String> {
    let before = subject.state.seen().trees().snapshot().as_ref()?;
    let left = snapshots.named(&subject.id, ENDED)?;
    take_without(snapshots, now, before, &left).ok().filter(|found| found != now)
}

/// A snapshot in which the changes from one snapshot to a later one are undone.
fn take_without(
    snapshots: &Snapshots,
    now: &str,
    before: &str,
    left: &str,
) -> Result<String, String> {
    if before == left {
        return Ok(now.to_owned());
    }
    let work = snapshots.paths(before, left)?;
    let work: Vec<&str> = work.iter().map(String::as_str).collect();
    snapshots.mixed(now, before, &work)
}

/// Whether the tree differs from the one the loop left.
pub fn has_moved(home: &Home, subject: &Loop) -> bool {
    take_snapshot(home, subject).is_some_and(|(snapshots, now)| {
        snapshots.final_state(&subject.id, true).is_some_and(|left| left != now.commit)
    })
}

/// The current tree; `None` if it cannot be examined. With snapshots that takes one process if
/// nothing changed.
pub fn look_at_tree(home: &Home, subject: &Loop) -> Option<TreeSeen> {
    take_snapshot(home, subject).map(|(_, snapshot)| tree_as_kept(subject, &snapshot))
}

/// Whether the tree is as the record remembers it, which is not so after an interrupted attempt.
pub fn is_remembered(home: &Home, subject: &Loop) -> bool {
    look_at_tree(home, subject)
        .is_none_or(|seen| subject.state.seen().tree().as_ref() == Some(&seen.identity))
}

/// Whether the tree that the record remembers is the one that the loop found.
pub fn is_as_found(home: &Home, subject: &Loop) -> bool {
    Snapshots::of(home, subject).as_found(&subject.id) == *subject.state.seen().trees().snapshot()
}

/// Whether a tree is the one that the loop found; `None` if that is unknown. Files that no snapshot
/// includes are compared by the identity of the tree before the first iteration.
pub fn is_unchanged(home: &Home, subject: &Loop, seen: &TreeSeen) -> Option<bool> {
    let found = Snapshots::of(home, subject).as_found(&subject.id)?;
    let is_whole = seen.repositories.is_empty() && seen.left_out.is_empty();
    let is_same = found == *seen.snapshot.as_ref()?;
    Some(is_same && (is_whole || subject.state.seen().trees().began_as(&seen.identity)))
}

/// Examines the tree after crew or the checks before the first iteration changed it, which changes
/// the end of the last iteration. `left` is the snapshot from just before. Work of an attempt that
/// did not count remains the work of the iteration that follows; if it is not known, nothing is.
pub fn look_again(home: &Home, subject: &Loop, left: Option<&str>) -> Option<TreeSeen> {
    let (snapshots, snapshot) = take_snapshot(home, subject)?;
    let commit = match subject.state.seen().trees().snapshot() {
        Some(before) => take_without(&snapshots, &snapshot.commit, before, left?).ok()?,
        None => snapshot.commit.clone(),
    };
    let snapshot = Snapshot { commit, ..snapshot };
    if subject.state.seen().trees().snapshot().as_ref() != Some(&snapshot.commit) {
        let _ = match subject.state.counts().completed() {
            0 => snapshots.name(&subject.id, CHECKED, &snapshot.commit),
            completed => snapshots.end(&subject.id, completed, &snapshot.commit),
        };
    }
    Some(tree_as_kept(subject, &snapshot))
}

/// Examines the tree after a time in which no agent was at work; `None` if nothing changed since
/// the last boundary or since a wait began in mid-iteration, or if the tree is not watched.
pub fn look_after_a_rest(home: &Home, subject: &Loop) -> Option<TreeSeen> {
    if !subject.watches_the_tree() {
        return None;
    }
    let was = subject.state.seen().trees().snapshot().as_deref()?;
    let left = Snapshots::of(home, subject).named(&subject.id, ENDED);
    let seen = look_again(home, subject, Some(left.as_deref().unwrap_or(was)))?;
    (seen.snapshot.as_deref() != Some(was)).then_some(seen)
}

/// What the agent changed since the last boundary; `None` without snapshots.
pub fn tree_changes(home: &Home, subject: &Loop, seen: &TreeSeen) -> Option<Changes> {
    let (before, now) =
        (subject.state.seen().trees().snapshot().as_ref()?, seen.snapshot.as_ref()?);
    let heads = subject.state.seen().trees().head().as_ref().zip(seen.head.as_ref());
    let head = heads.and_then(|(before, now)| find_move(subject, before, now));
    let is_new = subject.state.seen().tree().as_ref() != Some(&seen.identity);
    let left_out = if is_new { seen.left_out.clone() } else { Vec::new() };
    let memory = subject.state.seen().trees();
    let all: BTreeSet<&String> =
        memory.repositories().keys().chain(seen.repositories.keys()).collect();
    let changed = all
        .into_iter()
        .filter(|path| memory.repositories().get(*path) != seen.repositories.get(*path));
    let repositories: Vec<String> = changed.cloned().collect();
    let elsewhere = new_elsewhere(subject, memory.tips(), &seen.tips);
    let mut changes = Changes::default();
    if before != now {
        let snapshots = Snapshots::of(home, subject);
        changes = snapshots.compare_closely(before, now).ok()?;
        changes.mark_yours(&snapshots.yours(&subject.id));
        changes.white_space &= repositories.is_empty();
    }
    Some(Changes { head, left_out, repositories, elsewhere, ..changes })
}

/// Names the snapshots that the running iteration left: after the agent, and after the checks.
pub fn name_the_end(home: &Home, subject: &Loop, agents: &TreeSeen, checked: Option<&TreeSeen>) {
    // What a wait left in mid-iteration is a part of this end.
    reopen_tree(home, subject);
    let Some(agents) = &agents.snapshot else { return };
    let checked = checked.and_then(|checked| checked.snapshot.as_ref()).unwrap_or(agents);
    if subject.state.seen().trees().snapshot().as_ref() != Some(agents) || checked != agents {
        let snapshots = Snapshots::of(home, subject);
        for commit in [agents, checked] {
            let _ = snapshots.end(&subject.id, subject.iteration(), commit);
        }
    }
}

/// Whether no agent works for a loop, because it has ended or is paused.
pub fn is_at_rest(subject: &Loop) -> bool {
    !matches!(subject.state.status(), Status::Running | Status::Waiting)
}

/// Closes the tree if no agent can be at work after a boundary, which may have interrupted an
/// iteration.
pub fn close_after(home: &Home, subject: &Loop, decision: &Decision) {
    if !matches!(decision, Decision::Continue | Decision::Hold(Hold::Background(_))) {
        close_tree(home, subject);
    }
}

/// Names the state in which a loop ended, or was paused, in the middle of an iteration.
pub fn close_tree(home: &Home, subject: &Loop) {
    // An older state must not pass for this one if it cannot be taken.
    reopen_tree(home, subject);
    if let Some((snapshots, snapshot)) = take_snapshot(home, subject) {
        let _ = snapshots.name(&subject.id, ENDED, &snapshot.commit);
    }
}

/// Whether that state already has its name.
pub fn is_closed(home: &Home, subject: &Loop) -> bool {
    Snapshots::of(home, subject).named(&subject.id, ENDED).is_some()
}

/// Removes the name of that state: the loop continues from its last boundary.
pub fn reopen_tree(home: &Home, subject: &Loop) {
    Snapshots::of(home, subject).reopen(&subject.id);
}

fn take_snapshot(home: &Home, subject: &Loop) -> Option<(Snapshots, Snapshot)> {
    let snapshots = Snapshots::of(home, subject);
    if !snapshots.are_kept() {
        return None;
    }
    let snapshot = snapshots.take().ok()?;
    Some((snapshots, snapshot))
}

/// A tree with the repositories inside it, which are a part of its identity.
fn tree_as_kept(subject: &Loop, snapshot: &Snapshot) -> TreeSeen {
    let files = snapshot.left_out.iter().filter(|left| !left.is_repository);
    let left_out = files.map(|file| file.path.display().to_string()).collect();
    let checkout = &subject.place.checkout;
    let (identity, repositories) =
        (snapshot.identity(), inside::look_inside(subject, &snapshot.repositories));
    let identity = if repositories.is_empty() {
        identity
    } else {
        hash(format!("{identity}\0{repositories:?}").as_bytes())
    };
    TreeSeen {
        identity,
        head: checked_out(checkout),
        tips: list_tips(checkout),
        repositories,
        snapshot: Some(snapshot.commit.clone()),
        left_out,
    }
}

/// The note if no snapshot shows what an iteration changed.
pub const NO_STALL_RULE: &str =
    "no stall rule here: there are no snapshots that show what an iteration changed";

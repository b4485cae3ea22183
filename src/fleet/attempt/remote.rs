//! An attempt on another machine and its coordinator, which communicate by refs of the remote
//! alone. The attempt pushes its branch together with a result, each only over what it pushed
//! before, so of two processes of one attempt only one can push. It reads requests from a ref of
//! its task. All contact with the remote starts in a repository that no agent works in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::drive::control;
use crate::fleet::files::{FleetFiles, attempt_of};
use crate::fleet::record::TaskRequest;
use crate::fleet::spec::{AttemptReport, AttemptSpec, Source};
use crate::fleet::step::FleetRequest;
use crate::fleet::store::remote_refs::{OwnRefs, RemoteAccess, read_document, read_documents};
use engine::failure::Failure;
use engine::fleet::TaskId;
use engine::git::{GitFault, GitTrouble, RemoteRef};
use engine::record::{Actor, Loop, LoopId};
use world::clock::{Deadline, Stopwatch};
use world::env;
use world::files::disk::{self, Durability};
use world::git::remotes::{Refs, WITHIN};
use world::process::descendants;
use world::process::signals::Signals;
use world::store::{self, Home};

/// The pause between two reads of the remote while an iteration runs.
const BEAT: Duration = Duration::from_secs(60);
/// The time limit of such a read, because a push waits for it.
const BEAT_TALK: Duration = Duration::from_secs(20);
/// How long an unreachable remote is retried at the start and at the end.
pub(super) const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// How long a loop waits for the remote to accept the last iteration before it pauses.
const AWAY_MOST: Duration = Duration::from_secs(24 * 60 * 60);
/// The shortest and the longest pause between two tries to push an iteration.
const AWAY_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// How often a start tries to claim an attempt from a process that pushes at the same time.
const CLAIMS: u32 = 5;
/// The maximum size of a result, which is a commit message, in bytes.
const MESSAGE_BYTES: usize = 1 << 20;
/// How many bytes from the end of a journal the last result contains; JSON turns each into at most
/// six.
const JOURNAL_BYTES: u64 = 128 << 10;
/// The maximum number of requests to one attempt kept at the remote.
const REQUESTS_MAX: usize = 50;

/// The home of an attempt. If several machines of a cluster share the folder, each has a separate
/// home, because a lock works on one machine alone.
pub fn home_of(home: &Home, source: &Source) -> Home {
    match (source, env::text("SLURMD_NODENAME")) {
        (Source::Remote { .. }, Some(node)) => home.of_node(&node.replace('/', "-")),
        _ => home.clone(),
    }
}

/// The result that an attempt leaves at the remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteResult {
    pub report: AttemptReport,
    /// The ids of the requests that the attempt has carried out.
    #[serde(default)]
    executed: BTreeSet<u64>,
    /// The record of its loop, once the attempt is over.
    pub record: Option<Box<Loop>>,
    /// The end of its loop's journal, as lines of JSON.
    pub journal: Option<String>,
}

impl RemoteResult {
    /// Renders the commit message. A loop too long for one is left out.
    fn into_text(mut self) -> String {
        let text = serde_json::to_string(&self).unwrap_or_default();
        if text.len() <= MESSAGE_BYTES {
            return text;
        }
        (self.record, self.journal) = (None, None);
        serde_json::to_string(&self).unwrap_or_default()
    }
}

/// A request to an attempt. A later attempt at the task ignores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRequest {
    /// A random number, so that the request is carried out once, however often it is sent.
    pub id: u64,
    /// The number of the attempt.
    pub number: u32,
    pub request: FleetRequest,
}

/// The prefix of the results of a fleet; a task and a number follow.
fn results_prefix(fleet: &str) -> String {
    format!("refs/crew/{fleet}/result/")
}

/// The ref with the requests to the attempts at a task.
fn requests_to(fleet: &str, task: &TaskId) -> String {
    format!("refs/crew/{fleet}/request/{task}")
}

/// Why an attempt could not push.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteTrouble {
    /// Another process has moved the branch or the result.
    #[error("another attempt has this task")]
    Fenced,
    /// The remote could not be reached, for this reason.
    #[error("the remote is out of reach: {0}")]
    Away(String),
    /// The remote was out of reach for too long.
    #[error("the remote was out of reach for too long")]
    GivenUp,
    /// Only a person can help.
    #[error("{0}")]
    Refuses(String),
}

impl From<GitFault> for RemoteTrouble {
    fn from(fault: GitFault) -> Self {
        match fault.trouble {
            GitTrouble::Rejected | GitTrouble::NonFastForward | GitTrouble::Incomplete => {
                Self::Refuses(fault.cause_and_hint())
            }
            _ => Self::Away(fault.cause),
        }
    }
}

/// What an attempt knows about its refs at the remote.
#[derive(Debug, Default)]
struct LinkState {
    /// The refs of the branch and the result.
    refs: OwnRefs,
    /// Since when the remote has been unreachable, and when the push is retried.
    away: Option<(Stopwatch, Deadline)>,
    /// The commit of the newest requests that were read.
    request: Option<String>,
    executed: BTreeSet<u64>,
    /// Requests that have not been carried out, because the loop has not begun.
    waiting: Vec<AttemptRequest>,
    loop_id: Option<LoopId>,
    is_fenced: bool,
    /// Whether the remote rejects the branch; reports are then sent without it.
    is_refused: bool,
}

/// The connection of an attempt to its remote.
#[derive(Debug, Clone)]
pub(super) struct RemoteLink {
    home: Home,
    /// Access from a bare repository that borrows the clone's objects.
    access: RemoteAccess,
    clone: PathBuf,
    number: u32,
    /// The full names of the attempt's refs at the remote.
    branch: String,
    result: String,
    request: String,
    state: Arc<Mutex<LinkState>>,
}

impl RemoteLink {
    /// Prepares the connection to the remote. `None` for an attempt on this machine.
    pub fn open_link(home: &Home, spec: &AttemptSpec, signals: &Signals) -> Result<Option<Self>> {
        let Source::Remote { url } = &spec.origin.source else { return Ok(None) };
        let (fleet, task, number) = (&spec.task.name, &spec.task.task, spec.number);
        let files = FleetFiles::of_node(home, fleet, url);
        Ok(Some(Self {
            home: home.clone(),
            access: RemoteAccess::in_folder(&files.link(task, number), url, signals)?,
            clone: files.clone_of(task, number),
            number,
            branch: format!("refs/heads/{}", spec.branch),
            result: format!("{}{task}/{number}", results_prefix(fleet)),
            request: requests_to(fleet, task),
            state: Arc::default(),
        }))
    }

    fn lock_state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches and adopts what an earlier process of this attempt left at the remote.
    pub fn fetch_report(&self) -> Result<Option<AttemptReport>, RemoteTrouble> {
        let (mut state, access) = (self.lock_state(), self.access.with_patience(PATIENCE, WITHIN));
        let (refs, Self { branch, result, .. }) = (access.refs()?, self);
        let there = refs.list_refs(&[branch, result])?;
        let found = there.iter().find(|one| one.name == *result);
        let found: Option<RemoteResult> = read_document(&refs, found)?;
        *state = LinkState::default();
        state.refs.adopt_refs(&there);
        // No request is carried out twice.
        state.executed.extend(found.iter().flat_map(|found| &found.executed));
        let _ = self.read_requests(&mut state);
        Ok(found.map(|found| found.report))
    }

    /// Reads requests, and checks whether another process has moved this attempt's refs.
    fn read_requests(&self, state: &mut LinkState) -> Result<(), GitFault> {
        let Self { branch, result, request, .. } = self;
        let access = self.access.with_patience(Duration::ZERO, BEAT_TALK);
        let refs = access.refs()?;
        let there = refs.list_refs(&[branch, result, request])?;
        state.is_fenced |= !state.refs.are_own(&[branch, result], &there);
        let found = there.iter().find(|one| one.name == *request);
        let found = found.filter(|one| state.request.as_ref() != Some(&one.id));
        if let Some(mut asked) = read_document::<Vec<AttemptRequest>>(&refs, found)? {
            let LinkState { executed, waiting, .. } = &mut *state;
            asked
                .retain(|request| request.number == self.number && !executed.contains(&request.id));
            *waiting = asked;
            state.request = found.map(|one| one.id.clone());
        }
        self.pass_on(state);
        Ok(())
    }

    /// Passes waiting requests on to the loop, once it exists.
    fn pass_on(&self, state: &mut LinkState) {
        let LinkState { loop_id: Some(id), waiting, executed, .. } = state else { return };
        for asked in waiting.drain(..) {
            // A loop that is over needs no requests.
            let _ = carry_out(&self.home, id, &asked.request);
            executed.insert(asked.id);
        }
    }

    /// Claims the attempt from an earlier process, which is gone or will notice.
    pub fn claim_attempt(&self, report: &AttemptReport) -> Result<(), RemoteTrouble> {
        for _ in 0..CLAIMS {
            match self.publish(report, None, PATIENCE) {
                Err(RemoteTrouble::Fenced) => drop(self.fetch_report()?),
                claimed => return claimed,
            }
        }
        Err(RemoteTrouble::Fenced)
    }

    /// Pushes a report, and the branch if it has moved. The `record` of a finished loop is sent
    /// with its journal. An unreachable remote is retried for `within`.
    pub fn publish(
        &self,
        report: &AttemptReport,
        record: Option<&Loop>,
        within: Duration,
    ) -> Result<(), RemoteTrouble> {
        let (mut state, Self { branch, result, .. }) = (self.lock_state(), self);
        self.push_until(&mut state, within)?;
        let objects = self.clone.join(".git/objects");
        let has_clone = disk::is_folder(&objects);
        if has_clone {
            let file = self.access.repository.join("objects/info/alternates");
            let line = format!("{}\n", objects.display());
            let _ = disk::write(&file, line.as_bytes(), Durability::Process);
        }
        let pushed = state.refs.known_id(branch).cloned();
        let mut report = report.clone();
        if state.is_refused {
            report.commit.clone_from(&pushed);
        }
        let commit =
            report.commit.clone().filter(|commit| has_clone && pushed.as_ref() != Some(commit));
        let document = RemoteResult {
            report,
            executed: state.executed.clone(),
            record: record.cloned().map(Box::new),
            journal: record.and_then(|record| self.render_journal(record)),
        };
        let access = self.access.with_patience(within, WITHIN);
        let refs = access.refs()?;
        let document = refs.make_commit(&document.into_text(), None)?;
        let moves = [(result, Some(document)), (branch, commit)];
        let moves =
            moves.into_iter().filter_map(|(name, new)| Some(state.refs.ref_update(name, new?)));
        let moves = moves.collect();
        let moved = state.refs.push(&refs, moves);
        Self::handle_push(&mut state, branch, moved)
    }

    /// Repeats a push whose answer was lost.
    fn push_until(&self, state: &mut LinkState, within: Duration) -> Result<(), RemoteTrouble> {
        if state.is_fenced {
            return Err(RemoteTrouble::Fenced);
        }
        let access = self.access.with_patience(within, WITHIN);
        let moved = access.refs().and_then(|refs| state.refs.push_again(&refs));
        Self::handle_push(state, &self.branch, moved)
    }

    /// Records the result of a push.
    fn handle_push(
        state: &mut LinkState,
        branch: &str,
        moved: Result<bool, GitFault>,
    ) -> Result<(), RemoteTrouble> {
        let trouble = match moved {
            Ok(true) => {
                state.away = None;
                return Ok(());
            }
            Ok(false) => RemoteTrouble::Fenced,
            Err(fault) => fault.into(),
        };
        match &trouble {
            RemoteTrouble::Refuses(_) if state.refs.give_up(branch) => state.is_refused = true,
            RemoteTrouble::Fenced => state.is_fenced = true,
            _ => {
                let [shortest, longest] = AWAY_PAUSES;
                let since = state.away.map_or_else(Stopwatch::start, |(since, _)| since);
                // Each pause is as long as all earlier pauses together.
                let pause = Duration::from_millis(since.elapsed_ms()).clamp(shortest, longest);
                state.away = Some((since, Deadline::after(pause)));
            }
        }
        Err(trouble)
    }

    /// Ensures that the remote has the last iteration, that no other process has the attempt, and
    /// that requests reach the loop. An unreachable remote delays an iteration only if it lacks
    /// something.
    pub fn before_iteration(&self, id: &LoopId) -> Result<(), RemoteTrouble> {
        let mut state = self.lock_state();
        state.loop_id = Some(id.clone());
        self.pass_on(&mut state);
        if let Some((since, next)) = state.away {
            if Duration::from_millis(since.elapsed_ms()) > AWAY_MOST {
                return Err(RemoteTrouble::GivenUp);
            }
            if !next.passed() {
                return Err(RemoteTrouble::Away("the remote, which is out of reach".to_owned()));
            }
        }
        self.push_until(&mut state, Duration::ZERO)?;
        let _ = self.read_requests(&mut state);
        if state.is_fenced { Err(RemoteTrouble::Fenced) } else { Ok(()) }
    }

    /// Starts reading the remote once a minute until the returned value is dropped. Carries out
    /// requests, and ends the iteration if another process has taken the attempt.
    pub fn start_heartbeat(&self) -> Sender<()> {
        let (heart, over) = mpsc::channel();
        let link = self.clone();
        let beat = move || {
            let mut state = link.lock_state();
            let _ = link.read_requests(&mut state);
            if let (true, Some(id)) = (state.is_fenced, &state.loop_id) {
                let _ = store::request_pause(&link.home, id, Actor::User, true);
            }
        };
        // A git process ends with the thread that started it, so this thread lives as long as the
        // heartbeat.
        thread::spawn(move || {
            while over.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                descendants::run_beside(&beat);
            }
        });
        heart
    }

    /// The end of a loop's journal, in whole lines.
    fn render_journal(&self, record: &Loop) -> Option<String> {
        let file = self.home.loop_file(&record.id, "journal.jsonl");
        let (text, is_cut) = disk::read_end(&file, 0, JOURNAL_BYTES).ok()?;
        let whole = if is_cut { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
        Some(whole.to_owned())
    }
}

/// Carries out a request to a loop on this machine.
///
/// # Errors
/// If the loop is over, or the request cannot be written.
pub fn carry_out(home: &Home, id: &LoopId, request: &FleetRequest) -> Result<()> {
    match request {
        FleetRequest::Task(TaskRequest::Pause { now }) => {
            store::request_pause(home, id, Actor::User, *now)?;
        }
        FleetRequest::Task(TaskRequest::Cancel { by_agent, reason, .. }) => {
            let by = if *by_agent { Actor::Agent } else { Actor::User };
            store::request_cancel(home, id, by, reason.as_deref())?;
        }
        FleetRequest::Tell { words, .. } => drop(control::add_message(home, id, words)?),
        FleetRequest::Resume { .. } => disk::remove(&home.loop_file(id, "pause"))?,
    }
    Ok(())
}

// The coordinator's side.

/// The newest report of each task of a fleet that an attempt elsewhere has left at the remote.
/// Unreadable reports are left out.
pub fn list_reports(refs: &Refs<'_>, fleet: &str) -> Result<Vec<(TaskId, AttemptReport)>> {
    let prefix = results_prefix(fleet);
    let mut found = Vec::new();
    for it in refs.list_refs(&[&format!("{prefix}*")])? {
        let attempt = it.name.strip_prefix(&prefix).and_then(|name| attempt_of(name, '/'));
        found.extend(attempt.map(|(task, number)| (number, task, it)));
    }
    found.sort_by_key(|(number, ..)| *number);
    // The map keeps the last attempt of each task.
    let newest: BTreeMap<TaskId, (u32, RemoteRef)> =
        found.into_iter().map(|(number, task, one)| (task, (number, one))).collect();
    let found: Vec<RemoteRef> = newest.values().map(|(_, one)| one.clone()).collect();
    let read = read_documents::<RemoteResult>(refs, &found)?;
    let read = newest.into_iter().zip(read).filter_map(|((task, (number, _)), result)| {
        let report = result?.report;
        (report.number == number).then_some((task, report))
    });
    Ok(read.collect())
}

/// Fetches what one attempt left at the remote; `None` if there is nothing that crew wrote.
pub fn fetch_result(
    refs: &Refs<'_>,
    fleet: &str,
    task: &TaskId,
    number: u32,
) -> Result<Option<RemoteResult>> {
    let found = refs.list_refs(&[&format!("{}{task}/{number}", results_prefix(fleet))])?;
    Ok(read_document(refs, found.first())?)
}

/// Leaves a request to an attempt at the remote. The attempt carries it out within a minute, or
/// before its next iteration.
pub fn send_request(
    refs: &Refs<'_>,
    fleet: &str,
    task: &TaskId,
    asked: &AttemptRequest,
) -> Result<()> {
    let name = requests_to(fleet, task);
    let (mut own, there) = (OwnRefs::default(), refs.list_refs(&[&name])?);
    own.adopt_refs(&there);
    let before = read_document(refs, there.first())?;
    let mut requests: Vec<AttemptRequest> = before.unwrap_or_default();
    // The answer to an earlier try may have been lost.
    requests.retain(|request| request.number == asked.number && request.id != asked.id);
    requests.push(asked.clone());
    requests.drain(..requests.len().saturating_sub(REQUESTS_MAX));
    let new = refs.make_commit(&serde_json::to_string(&requests)?, None)?;
    let update = own.ref_update(&name, new);
    if !own.push(refs, vec![update])? {
        // Only another coordinator writes them.
        bail!(Failure::new(format!("the requests of {task} changed at the remote"), "try again"));
    }
    Ok(())
}

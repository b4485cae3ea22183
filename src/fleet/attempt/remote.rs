//! An attempt on another machine, and its coordinator, by refs of the remote alone. The attempt
//! pushes its branch together with a result, each only over what it pushed before: of two
//! processes of one attempt, one is shut out. It reads requests from a ref of its task. Everything
//! that talks to the remote here starts in a repository that no agent works in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::drive::control;
use crate::engine::fleet::TaskId;
use crate::engine::git::{GitFault, GitTrouble, RefUpdate, RemoteRef, SwapResult};
use crate::engine::record::{Actor, Loop, LoopId};
use crate::fleet::files::FleetFiles;
use crate::fleet::record::TaskRequest;
use crate::fleet::spec::{AttemptReport, AttemptSpec, Source};
use crate::fleet::step::FleetRequest;
use crate::world::clock::{Deadline, Stopwatch};
use crate::world::env;
use crate::world::files::disk::{self, Durability};
use crate::world::git::refs::{Patience, Refs, WITHIN, make_aside};
use crate::world::process::descendants;
use crate::world::process::signals::Signals;
use crate::world::store::{self, Home};

/// Between two looks at the remote while an iteration runs.
const BEAT: Duration = Duration::from_secs(60);
/// The longest that one talk of such a look may take: whoever pushes waits for it.
const BEAT_TALK: Duration = Duration::from_secs(20);
/// How long a remote that is away is asked again at the start and at the end.
pub(super) const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// How long no iteration begins because the remote lacks the last one, before the loop pauses.
const AWAY_MOST: Duration = Duration::from_secs(24 * 60 * 60);
/// The shortest and the longest pause between two tries to push it.
const AWAY_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// How often a start takes an attempt from a process that pushes at the same time.
const CLAIMS: u32 = 5;
/// The largest result, in bytes: a commit's message of crew.
const MESSAGE_BYTES: usize = 1 << 20;
/// How much of the end of a journal goes with the last result: JSON makes six bytes of one at most.
const JOURNAL_BYTES: u64 = 128 << 10;
/// The most requests of one attempt that the remote keeps.
const REQUESTS_MAX: usize = 50;

/// The home of an attempt. Where several machines of a cluster share the folder, each has one of
/// its own: a lock holds on one of them alone.
pub fn home_of(home: &Home, source: &Source) -> Home {
    match (source, env::text("SLURMD_NODENAME")) {
        (Source::Remote { .. }, Some(node)) => home.of_node(&node.replace('/', "-")),
        _ => home.clone(),
    }
}

/// What an attempt leaves at the remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteResult {
    pub report: AttemptReport,
    /// The requests that it has obeyed.
    #[serde(default)]
    pub obeyed: BTreeSet<u64>,
    /// The record of its loop, once the attempt is over.
    pub record: Option<Box<Loop>>,
    /// The end of its loop's journal, as lines of JSON.
    pub journal: Option<String>,
}

impl RemoteResult {
    /// The message of its commit. A loop that is too long for one is left out.
    fn text(mut self) -> String {
        let text = serde_json::to_string(&self).unwrap_or_default();
        if text.len() <= MESSAGE_BYTES {
            return text;
        }
        (self.record, self.journal) = (None, None);
        serde_json::to_string(&self).unwrap_or_default()
    }
}

/// A request to an attempt. A later attempt at the task does not obey it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RemoteRequest {
    id: u64,
    number: u32,
    request: FleetRequest,
}

/// The refs of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RefNames {
    branch: String,
    result: String,
    request: String,
}

impl RefNames {
    fn of(fleet: &str, task: &TaskId, number: u32) -> Self {
        Self {
            branch: format!("refs/heads/fleet/{fleet}/{task}/{number}"),
            result: format!("{}{task}/{number}", results(fleet)),
            request: format!("refs/crew/{fleet}/request/{task}"),
        }
    }
}

fn results(fleet: &str) -> String {
    format!("refs/crew/{fleet}/result/")
}

/// The value in the message of the commit that a ref points to; `None` for what crew did not write.
fn read<T: DeserializeOwned>(refs: &Refs<'_>, found: &RemoteRef) -> Result<Option<T>, GitFault> {
    refs.fetch(&[&found.name], &[])?;
    Ok(serde_json::from_str(&refs.message(&found.id)?).ok())
}

/// Why nothing was pushed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteTrouble {
    /// Somebody else moved the branch or the result.
    #[error("another attempt has this task")]
    Fenced,
    /// It could not be reached; what it is waited for.
    #[error("the remote is out of reach: {0}")]
    Away(String),
    /// The same after all patience.
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
                Self::Refuses(fault.line())
            }
            _ => Self::Away(fault.cause),
        }
    }
}

/// What an attempt knows of its refs at the remote.
#[derive(Debug, Default)]
struct LinkState {
    /// What its branch and its result point to there.
    known: BTreeMap<String, String>,
    /// A push whose answer did not come: it is tried again as it was, for it may have worked.
    pending: Vec<RefUpdate>,
    /// Since when that is so, and when it is tried again.
    away: Option<(Stopwatch, Deadline)>,
    /// The newest requests that were read, and those that were obeyed.
    request: Option<String>,
    obeyed: BTreeSet<u64>,
    /// Requests that wait for the loop to begin.
    waiting: Vec<FleetRequest>,
    loop_id: Option<LoopId>,
    is_fenced: bool,
    /// The remote does not take the branch: what is reported goes there without it.
    is_refused: bool,
}

/// The way of an attempt to its remote.
#[derive(Debug, Clone)]
pub(super) struct RemoteLink {
    home: Home,
    /// A bare repository that borrows the objects of the clone.
    repository: PathBuf,
    clone: PathBuf,
    url: String,
    number: u32,
    names: RefNames,
    signals: Signals,
    state: Arc<Mutex<LinkState>>,
}

impl RemoteLink {
    /// Makes ready what is needed to talk to the remote. `None` for an attempt on this machine.
    pub fn open(home: &Home, spec: &AttemptSpec, signals: &Signals) -> Result<Option<Self>> {
        let Source::Remote { url } = &spec.source else { return Ok(None) };
        let (fleet, task, number) = (&spec.task.name, &spec.task.task, spec.number);
        let files = FleetFiles::of_node(home, fleet, url);
        Ok(Some(Self {
            home: home.clone(),
            repository: make_aside(&files.attempts().join(format!("{task}.{number}.link")))?,
            clone: files.clone(task, number),
            url: url.clone(),
            number,
            names: RefNames::of(fleet, task, number),
            signals: signals.clone(),
            state: Arc::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the remote something, for `within` again while it is out of reach. One talk may take
    /// as long as `talk`.
    fn ask<T>(
        &self,
        within: Duration,
        talk: Duration,
        ask: impl FnOnce(&Refs<'_>) -> Result<T, GitFault>,
    ) -> Result<T, GitFault> {
        let patience = Patience { signals: self.signals.clone(), within, talk };
        let (folder, remote) = (self.repository.as_path(), self.url.as_str());
        ask(&Refs { folder, remote, stop: &descendants::are_ending, patience: Some(&patience) })
    }

    /// Takes over what an earlier process of this attempt has left there.
    pub fn look(&self) -> Result<Option<AttemptReport>, RemoteTrouble> {
        let mut state = self.lock();
        *state = LinkState::default();
        let RefNames { branch, result, .. } = &self.names;
        let (there, found) = self.ask(PATIENCE, WITHIN, |refs| {
            let there = refs.list(&[branch, result])?;
            let result = there.iter().find(|it| it.name == *result);
            let found = result.map(|it| read::<RemoteResult>(refs, it)).transpose()?;
            Ok((there, found.flatten()))
        })?;
        state.known = there.into_iter().map(|it| (it.name, it.id)).collect();
        // A request that was obeyed is not obeyed again.
        state.obeyed.extend(found.iter().flat_map(|found| &found.obeyed));
        let _ = self.hear(&mut state);
        Ok(found.map(|found| found.report))
    }

    /// Takes in requests, and whether somebody else has moved what only this attempt moves.
    fn hear(&self, state: &mut LinkState) -> Result<(), GitFault> {
        let RefNames { branch, result, request } = &self.names;
        self.ask(Duration::ZERO, BEAT_TALK, |refs| {
            let there = refs.list(&[branch, result, request])?;
            let id = |name: &str| there.iter().find(|it| it.name == name).map(|it| &it.id);
            for name in [branch, result] {
                let now = id(name);
                let may_be = |it: &RefUpdate| it.name == *name && it.new.as_ref() == now;
                let is_ours = now == state.known.get(name) || state.pending.iter().any(may_be);
                state.is_fenced |= !is_ours;
            }
            let Some(found) = there.iter().find(|it| it.name == *request) else { return Ok(()) };
            if state.request.as_ref() == Some(&found.id) {
                return Ok(());
            }
            let asked: Vec<RemoteRequest> = read(refs, found)?.unwrap_or_default();
            for asked in asked.into_iter().filter(|it| it.number == self.number) {
                if state.obeyed.insert(asked.id) {
                    state.waiting.push(asked.request);
                }
            }
            state.request = Some(found.id.clone());
            Ok(())
        })?;
        self.pass_on(state);
        Ok(())
    }

    /// Passes requests on to the loop, once there is one.
    fn pass_on(&self, state: &mut LinkState) {
        let Some(id) = &state.loop_id else { return };
        for request in state.waiting.drain(..) {
            // A loop that is over by now needs none of them.
            let _ = obey(&self.home, id, &request);
        }
    }

    /// Takes the attempt from a process of it that is gone, or that will notice.
    pub fn claim(&self, report: &AttemptReport) -> Result<(), RemoteTrouble> {
        for _ in 0..CLAIMS {
            match self.publish(report, None, PATIENCE) {
                Err(RemoteTrouble::Fenced) => drop(self.look()?),
                claimed => return claimed,
            }
        }
        Err(RemoteTrouble::Fenced)
    }

    /// Pushes a report, with the branch where that has moved. With the `record` of a loop that is
    /// over goes its journal. A remote that is away is asked again for `within`.
    pub fn publish(
        &self,
        report: &AttemptReport,
        record: Option<&Loop>,
        within: Duration,
    ) -> Result<(), RemoteTrouble> {
        let mut state = self.lock();
        self.settle(&mut state, within)?;
        let objects = self.clone.join(".git/objects");
        let has_clone = disk::is_folder(&objects);
        if has_clone {
            let (line, file) = (format!("{}\n", objects.display()), "objects/info/alternates");
            let file = self.repository.join(file);
            let _ = disk::write(&file, line.as_bytes(), Durability::Process);
        }
        let mut report = report.clone();
        if state.is_refused {
            report.commit = state.known.get(&self.names.branch).cloned();
        }
        let result = RemoteResult {
            report: report.clone(),
            obeyed: state.obeyed.clone(),
            record: record.cloned().map(Box::new),
            journal: record.and_then(|record| self.journal(record)),
        };
        let result = self.ask(within, WITHIN, |refs| refs.commit(&result.text(), None))?;
        let known = |name: &String| state.known.get(name).cloned();
        let update = |name: &String, new: String| RefUpdate {
            name: name.clone(),
            old: known(name),
            new: Some(new),
        };
        let mut updates = vec![update(&self.names.result, result)];
        if let Some(commit) = &report.commit
            && has_clone
            && known(&self.names.branch).as_ref() != Some(commit)
        {
            updates.push(update(&self.names.branch, commit.clone()));
        }
        state.pending = updates;
        self.settle(&mut state, within)
    }

    /// Makes the push whose answer is not known, if there is one.
    fn settle(&self, state: &mut LinkState, within: Duration) -> Result<(), RemoteTrouble> {
        if state.is_fenced {
            return Err(RemoteTrouble::Fenced);
        }
        match self.ask(within, WITHIN, |refs| refs.swap(&state.pending)) {
            Ok(SwapResult::Done) => {
                let moved = state.pending.drain(..);
                state.known.extend(moved.filter_map(|it| Some((it.name, it.new?))));
                state.away = None;
                Ok(())
            }
            Ok(SwapResult::Refused) => {
                state.is_fenced = true;
                Err(RemoteTrouble::Fenced)
            }
            Err(fault) => {
                let trouble = RemoteTrouble::from(fault);
                if matches!(trouble, RemoteTrouble::Refuses(_)) && state.pending.len() > 1 {
                    state.is_refused = true;
                    state.pending.clear();
                    return Err(trouble);
                }
                let [shortest, longest] = AWAY_PAUSES;
                let since = state.away.map_or_else(Stopwatch::start, |(since, _)| since);
                // Each pause is as long as all before it.
                let pause = Duration::from_millis(since.elapsed_ms()).clamp(shortest, longest);
                state.away = Some((since, Deadline::after(pause)));
                Err(trouble)
            }
        }
    }

    /// Makes sure that the remote has the last iteration, that nobody else has the attempt, and
    /// that requests reach the loop. A remote that cannot be asked keeps no iteration from its
    /// beginning, unless it lacks something.
    pub fn before_iteration(&self, id: &LoopId) -> Result<(), RemoteTrouble> {
        let mut state = self.lock();
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
        self.settle(&mut state, Duration::ZERO)?;
        let _ = self.hear(&mut state);
        if state.is_fenced { Err(RemoteTrouble::Fenced) } else { Ok(()) }
    }

    /// Looks at the remote once a minute until what is returned is dropped: obeys requests, and
    /// ends the iteration of an attempt that somebody else has.
    pub fn heartbeat(&self) -> Sender<()> {
        let (heart, over) = mpsc::channel();
        let link = self.clone();
        let beat = move || {
            let mut state = link.lock();
            let _ = link.hear(&mut state);
            if let (true, Some(id)) = (state.is_fenced, &state.loop_id) {
                let _ = store::order_pause(&link.home, id, Actor::User, true);
            }
        };
        // git dies with the thread that started it, so this one stays for as long as it beats.
        thread::spawn(move || {
            while over.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                descendants::beside(&beat);
            }
        });
        heart
    }

    /// The end of a loop's journal, in whole lines.
    fn journal(&self, record: &Loop) -> Option<String> {
        let file = self.home.loop_file(&record.id, "journal.jsonl");
        let (text, is_cut) = disk::read_end(&file, 0, JOURNAL_BYTES).ok()?;
        let whole = if is_cut { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
        Some(whole.to_owned())
    }
}

/// Has a loop of this machine obey a request.
///
/// # Errors
/// If the loop is over, or the request cannot be written.
pub fn obey(home: &Home, id: &LoopId, request: &FleetRequest) -> Result<()> {
    match request {
        FleetRequest::Task(TaskRequest::Pause { now }) => {
            store::order_pause(home, id, Actor::User, *now)?;
        }
        FleetRequest::Task(TaskRequest::Cancel { by_agent, reason, .. }) => {
            let by = if *by_agent { Actor::Agent } else { Actor::User };
            store::order_cancel(home, id, by, reason.as_deref())?;
        }
        FleetRequest::Tell { words, .. } => drop(control::tell(home, id, words)?),
        FleetRequest::Resume { .. } => {}
    }
    Ok(())
}

// The coordinator's side.

/// The newest report of each task of a fleet that an attempt elsewhere has left at the remote. What
/// cannot be read is left out.
pub fn reports(refs: &Refs<'_>, fleet: &str) -> Result<Vec<(TaskId, AttemptReport)>> {
    let prefix = results(fleet);
    let mut newest: BTreeMap<TaskId, (u32, RemoteRef)> = BTreeMap::new();
    for found in refs.list(&[&format!("{prefix}*")])? {
        let name = found.name.strip_prefix(&prefix).and_then(|name| name.split_once('/'));
        let Some((task, number)) = name else { continue };
        let (Ok(task), Ok(number)) = (task.parse::<TaskId>(), number.parse()) else { continue };
        if newest.get(&task).is_none_or(|(known, _)| *known < number) {
            newest.insert(task, (number, found));
        }
    }
    let ids: Vec<String> = newest.values().map(|(_, found)| found.id.clone()).collect();
    let mut messages = refs.messages(&ids)?;
    let mut missing = Vec::new();
    for ((_, found), message) in newest.values().zip(&messages) {
        if message.is_none() {
            missing.push(found.name.as_str());
        }
    }
    if !missing.is_empty() {
        refs.fetch(&missing, &[])?;
        messages = refs.messages(&ids)?;
    }
    let read = newest.into_iter().zip(messages).filter_map(|((task, (number, _)), message)| {
        let result: RemoteResult = serde_json::from_str(&message?).ok()?;
        (result.report.number == number).then_some((task, result.report))
    });
    Ok(read.collect())
}

/// What one attempt has left at the remote; `None` where there is nothing, or nothing of crew's.
pub fn result(
    refs: &Refs<'_>,
    fleet: &str,
    task: &TaskId,
    number: u32,
) -> Result<Option<RemoteResult>> {
    let found = refs.list(&[&RefNames::of(fleet, task, number).result])?.pop();
    Ok(found.map(|found| read(refs, &found)).transpose()?.flatten())
}

/// Leaves a request for an attempt at the remote. It is obeyed within a minute, or before the next
/// iteration.
pub fn send_request(
    refs: &Refs<'_>,
    fleet: &str,
    task: &TaskId,
    number: u32,
    request: &FleetRequest,
) -> Result<()> {
    let name = RefNames::of(fleet, task, number).request;
    let found = refs.list(&[&name])?.pop();
    let before = found.as_ref().map(|found| read(refs, found)).transpose()?;
    let mut requests: Vec<RemoteRequest> = before.flatten().unwrap_or_default();
    requests.retain(|asked| asked.number == number);
    requests.push(RemoteRequest { id: env::random(), number, request: request.clone() });
    requests.drain(..requests.len().saturating_sub(REQUESTS_MAX));
    let new = Some(refs.commit(&serde_json::to_string(&requests)?, None)?);
    let old = found.map(|found| found.id);
    match refs.swap(&[RefUpdate { name, old, new }])? {
        SwapResult::Done => Ok(()),
        // Only another coordinator writes them.
        SwapResult::Refused => {
            bail!("the requests of {task} changed at the remote\nhint: try again")
        }
    }
}

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

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::drive::control;
use crate::engine::fleet::TaskId;
use crate::engine::git::{GitFault, GitTrouble, RefUpdate, SwapResult};
use crate::engine::record::{Actor, Loop, LoopId};
use crate::fleet::files::FleetFiles;
use crate::fleet::record::TaskRequest;
use crate::fleet::spec::{AttemptReport, AttemptSpec};
use crate::fleet::step::FleetRequest;
use crate::world::clock::{Deadline, RetryPolicy, Stopwatch};
use crate::world::files::disk::{self, Durability};
use crate::world::git::refs::{Patience, Refs, WITHIN, make_aside};
use crate::world::process::descendants;
use crate::world::process::signals::Signals;
use crate::world::store::{self, Home};
use crate::world::{clock, env};

/// Between two looks at the remote while an iteration runs.
const BEAT: Duration = Duration::from_secs(60);
/// The longest that one talk of such a look may take: whoever pushes waits for it.
const BEAT_TALK: Duration = Duration::from_secs(20);
/// How long a remote that is away is asked again at the start and at the end.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// The pauses between two tries to push, while no iteration begins; and how long that goes on
/// before the loop pauses.
const TRIES: RetryPolicy = RetryPolicy {
    within: Some(Duration::from_secs(24 * 60 * 60)),
    first_pause: Duration::from_secs(1),
    longest_pause: Duration::from_secs(30),
};
/// How often a start takes an attempt from a process that pushes at the same time.
const CLAIMS: u32 = 5;
/// The largest result and the largest file of requests, in bytes: a commit's message of crew.
const MESSAGE_BYTES: usize = 1 << 20;
/// How much of the end of a journal goes with the last result, as far as there is room.
const JOURNAL_BYTES: [u64; 3] = [512 << 10, 64 << 10, 0];
/// The most requests of one attempt that the remote keeps.
const REQUESTS_MAX: usize = 50;
/// How often a request is written again because somebody else was first.
const SENDS: u32 = 10;

/// The home of this machine where several machines of a cluster share the folder: a lock holds on
/// one of them alone.
pub fn home_of_node(home: &Home) -> Home {
    let node = env::text("SLURMD_NODENAME");
    node.map_or_else(|| home.clone(), |node| home.of_node(&node.replace('/', "-")))
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
    fn of(spec: &AttemptSpec) -> Self {
        let (fleet, task) = (&spec.task.name, &spec.task.task);
        Self {
            branch: format!("refs/heads/{}", spec.branch),
            result: format!("{}{task}/{}", results(fleet), spec.number),
            request: request_name(fleet, task),
        }
    }
}

fn results(fleet: &str) -> String {
    format!("refs/crew/{fleet}/result/")
}

fn request_name(fleet: &str, task: &TaskId) -> String {
    format!("refs/crew/{fleet}/request/{task}")
}

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Published {
    Done,
    /// Somebody else moved the branch or the result.
    Fenced,
}

/// Why nothing was pushed.
#[derive(Debug)]
pub(super) enum RemoteTrouble {
    /// It could not be reached; what it is waited for. `None` after all patience.
    Away(Option<String>),
    /// Only a person can help.
    Refuses(String),
}

/// What an attempt knows of its refs at the remote.
#[derive(Debug, Default)]
struct LinkState {
    branch: Option<String>,
    result: Option<String>,
    request: Option<String>,
    /// A push whose answer did not come: it is tried again as it was, for it may have worked.
    pending: Option<Vec<RefUpdate>>,
    /// Since when that is so, and when it is tried again.
    away: Option<(Stopwatch, Deadline, Duration)>,
    obeyed: BTreeSet<u64>,
    /// Requests that wait for the loop to begin.
    waiting: Vec<FleetRequest>,
    loop_id: Option<LoopId>,
    is_fenced: bool,
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
    /// Makes ready what is needed to talk to the remote.
    pub fn open(
        home: &Home,
        files: &FleetFiles,
        spec: &AttemptSpec,
        url: &str,
        signals: &Signals,
    ) -> Result<Self> {
        let (task, number) = (&spec.task.task, spec.number);
        let folder = files.attempts().join(format!("{task}.{number}.link"));
        let repository = make_aside(&folder)?;
        Ok(Self {
            home: home.clone(),
            repository,
            clone: files.clone(task, number),
            url: url.to_owned(),
            number,
            names: RefNames::of(spec),
            signals: signals.clone(),
            state: Arc::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T>(
        &self,
        within: Duration,
        ask: impl FnOnce(&Refs<'_>) -> Result<T, GitFault>,
    ) -> Result<T, GitFault> {
        let patience = Patience { signals: self.signals.clone(), within, talk: WITHIN };
        let (folder, remote) = (self.repository.as_path(), self.url.as_str());
        ask(&Refs { folder, remote, stop: &|| false, patience: Some(&patience) })
    }

    /// Reads what an earlier process of this attempt has left there.
    pub fn look(&self) -> Result<Option<RemoteResult>> {
        let mut state = self.lock();
        Ok(self.ask(PATIENCE, |refs| self.see(refs, &mut state, true))?)
    }

    /// Takes in how the refs are now. `takes` also those that only this attempt moves.
    fn see(
        &self,
        refs: &Refs<'_>,
        state: &mut LinkState,
        takes: bool,
    ) -> Result<Option<RemoteResult>, GitFault> {
        let RefNames { branch, result, request } = &self.names;
        let there = refs.list(&[branch, result, request])?;
        let id = |name: &str| there.iter().find(|it| it.name == name).map(|it| it.id.clone());
        let mut found = None;
        if takes {
            (state.branch, state.result) = (id(branch), id(result));
            if let Some(id) = &state.result {
                refs.fetch(&[result], &[])?;
                found = serde_json::from_str::<RemoteResult>(&refs.message(id)?).ok();
                // A request that was obeyed is not obeyed again.
                state.obeyed.extend(found.iter().flat_map(|found| &found.obeyed));
            }
        } else {
            let pending = state.pending.iter().flatten();
            let may_be = |name: &str, known: &Option<String>, now: &Option<String>| {
                let mut news = pending.clone().filter(|it| it.name == name).map(|it| &it.new);
                now == known || news.any(|new| new == now)
            };
            state.is_fenced |= !may_be(result, &state.result, &id(result))
                || !may_be(branch, &state.branch, &id(branch));
        }
        if let Some(id) = id(request).filter(|id| state.request.as_ref() != Some(id)) {
            refs.fetch(&[request], &[])?;
            // What is not crew's own writing asks for nothing.
            let requests: Vec<RemoteRequest> =
                serde_json::from_str(&refs.message(&id)?).unwrap_or_default();
            for asked in requests.into_iter().filter(|it| it.number == self.number) {
                if state.obeyed.insert(asked.id) {
                    state.waiting.push(asked.request);
                }
            }
            state.request = Some(id);
        }
        self.obey(state);
        Ok(found)
    }

    /// Passes requests on to the loop, once there is one.
    fn obey(&self, state: &mut LinkState) {
        let Some(id) = &state.loop_id else { return };
        for request in state.waiting.drain(..) {
            let by = |is_agent: bool| if is_agent { Actor::Agent } else { Actor::User };
            // A loop that is over by now needs none of them.
            let _ = match request {
                FleetRequest::Task(TaskRequest::Pause { now }) => {
                    store::order_pause(&self.home, id, Actor::User, now).map_err(Into::into)
                }
                FleetRequest::Task(TaskRequest::Cancel { by_agent, reason, .. }) => {
                    store::order_cancel(&self.home, id, by(by_agent), reason.as_deref())
                        .map_err(Into::into)
                }
                FleetRequest::Tell { words, .. } => control::tell(&self.home, id, &words).map(drop),
                FleetRequest::Resume { .. } => Ok(()),
            };
        }
    }

    /// What a person has asked before the loop began: its end, or a pause.
    pub fn called_off(&self) -> Option<TaskRequest> {
        self.lock().waiting.iter().find_map(|request| match request {
            FleetRequest::Task(request) => Some(request.clone()),
            _ => None,
        })
    }

    /// Whether a person has asked that.
    pub fn is_called_off(&self) -> bool {
        let asks = |request: &FleetRequest| matches!(request, FleetRequest::Task(_));
        // It is asked while a command runs, which nobody watches then.
        self.state.try_lock().is_ok_and(|state| state.waiting.iter().any(asks))
    }

    /// Takes the attempt from a process of it that is gone, or that will notice.
    pub fn claim(&self, report: &AttemptReport) -> Result<Published> {
        for _ in 0..CLAIMS {
            match self.publish_patiently(report, None)? {
                Published::Done => return Ok(Published::Done),
                Published::Fenced => {
                    *self.lock() = LinkState::default();
                    self.look()?;
                }
            }
        }
        Ok(Published::Fenced)
    }

    /// Pushes a report, with the branch where that has moved. With the `record` of a loop that is
    /// over goes its journal.
    pub fn publish(
        &self,
        report: &AttemptReport,
        record: Option<&Loop>,
    ) -> Result<Published, RemoteTrouble> {
        self.push(report, record, Duration::ZERO)
    }

    /// The same, which waits for a remote that is away.
    pub fn publish_patiently(
        &self,
        report: &AttemptReport,
        record: Option<&Loop>,
    ) -> Result<Published> {
        match self.push(report, record, PATIENCE) {
            Ok(published) => Ok(published),
            Err(RemoteTrouble::Refuses(why)) => bail!(why),
            Err(RemoteTrouble::Away(why)) => {
                bail!("the remote is out of reach: {}", why.unwrap_or_default())
            }
        }
    }

    fn push(
        &self,
        report: &AttemptReport,
        record: Option<&Loop>,
        within: Duration,
    ) -> Result<Published, RemoteTrouble> {
        let mut state = self.lock();
        if self.settle(&mut state, within)? == Published::Fenced {
            return Ok(Published::Fenced);
        }
        let text = self.text(report, record, &state.obeyed);
        let objects = self.clone.join(".git/objects");
        if disk::is_folder(&objects) {
            let line = format!("{}\n", objects.display());
            let file = self.repository.join("objects/info/alternates");
            let _ = disk::write(&file, line.as_bytes(), Durability::Process);
        }
        let new = self.ask(within, |refs| refs.commit(&text, None)).map_err(|it| trouble(&it))?;
        let name = self.names.result.clone();
        let mut updates = vec![RefUpdate { name, old: state.result.clone(), new: Some(new) }];
        if report.commit.is_some() && report.commit != state.branch && disk::is_folder(&objects) {
            let (name, old) = (self.names.branch.clone(), state.branch.clone());
            updates.push(RefUpdate { name, old, new: report.commit.clone() });
        }
        state.pending = Some(updates);
        self.settle(&mut state, within)
    }

    /// Makes the push whose answer is not known, if there is one.
    fn settle(&self, state: &mut LinkState, within: Duration) -> Result<Published, RemoteTrouble> {
        if state.is_fenced {
            return Ok(Published::Fenced);
        }
        let Some(updates) = state.pending.clone() else { return Ok(Published::Done) };
        match self.ask(within, |refs| refs.swap(&updates)) {
            Ok(SwapResult::Done) => {
                for RefUpdate { name, new, .. } in updates {
                    *(if name == self.names.result {
                        &mut state.result
                    } else {
                        &mut state.branch
                    }) = new;
                }
                (state.pending, state.away) = (None, None);
                Ok(Published::Done)
            }
            Ok(SwapResult::Refused) => {
                state.is_fenced = true;
                Ok(Published::Fenced)
            }
            Err(fault) => {
                let (since, pause) = match state.away {
                    Some((since, _, pause)) => (since, (pause * 2).min(TRIES.longest_pause)),
                    None => (Stopwatch::start(), TRIES.first_pause),
                };
                state.away = Some((since, Deadline::after(pause), pause));
                Err(trouble(&fault))
            }
        }
    }

    /// Makes sure that the remote has the last iteration, that nobody else has the attempt, and
    /// that requests reach the loop. A remote that cannot be asked keeps no iteration from its
    /// beginning, unless it lacks something.
    pub fn before_iteration(&self, id: &LoopId) -> Result<Published, RemoteTrouble> {
        let mut state = self.lock();
        state.loop_id = Some(id.clone());
        self.obey(&mut state);
        if let Some((since, next, _)) = state.away
            && state.pending.is_some()
        {
            let most = TRIES.within.unwrap_or(Duration::MAX).as_millis();
            if u128::from(since.elapsed_ms()) > most {
                return Err(RemoteTrouble::Away(None));
            }
            if !next.passed() {
                return Err(RemoteTrouble::Away(Some("the remote, which is out of reach".into())));
            }
        }
        if self.settle(&mut state, Duration::ZERO)? == Published::Fenced {
            return Ok(Published::Fenced);
        }
        let _ = self.ask(Duration::ZERO, |refs| self.see(refs, &mut state, false));
        Ok(if state.is_fenced { Published::Fenced } else { Published::Done })
    }

    /// Looks at the remote once a minute until what is returned is dropped.
    pub fn heartbeat(&self) -> Sender<()> {
        let (heart, over) = mpsc::channel();
        let link = self.clone();
        // git dies with the thread that started it, so this one stays for as long as it beats.
        thread::spawn(move || {
            while over.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                descendants::beside(|| link.beat());
            }
        });
        heart
    }

    /// Obeys requests, and ends the loop of an attempt that somebody else has.
    fn beat(&self) {
        let signals = self.signals.clone();
        let patience = Patience { signals, within: Duration::ZERO, talk: BEAT_TALK };
        let (folder, remote) = (self.repository.as_path(), self.url.as_str());
        let stop = &descendants::are_ending;
        let mut state = self.lock();
        let refs = Refs { folder, remote, stop, patience: Some(&patience) };
        let _ = self.see(&refs, &mut state, false);
        if let (true, Some(id)) = (state.is_fenced, &state.loop_id) {
            let _ = store::order_pause(&self.home, id, Actor::User, true);
        }
    }

    /// Whether somebody else has the attempt, as far as is known.
    pub fn is_fenced(&self) -> bool {
        self.lock().is_fenced
    }

    /// The message of a result, with as much of the journal as there is room for.
    fn text(
        &self,
        report: &AttemptReport,
        record: Option<&Loop>,
        obeyed: &BTreeSet<u64>,
    ) -> String {
        let mut result = RemoteResult {
            report: report.clone(),
            obeyed: obeyed.clone(),
            record: record.cloned().map(Box::new),
            journal: None,
        };
        for most in JOURNAL_BYTES {
            result.journal = record.and_then(|it| self.journal(it, most));
            if let Some(text) = within_a_message(&result) {
                return text;
            }
        }
        result.record = None;
        if let Some(text) = within_a_message(&result) {
            return text;
        }
        // What the checks have shown is the only part that can be this long.
        result.report.carried.checks.clear();
        within_a_message(&result).unwrap_or_default()
    }

    fn journal(&self, record: &Loop, most: u64) -> Option<String> {
        let file = self.home.loop_file(&record.id, "journal.jsonl");
        let (text, is_cut) = disk::read_end(&file, 0, most).ok()?;
        let whole = if is_cut { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
        Some(whole.to_owned())
    }
}

fn within_a_message(result: &RemoteResult) -> Option<String> {
    serde_json::to_string(result).ok().filter(|text| text.len() <= MESSAGE_BYTES)
}

fn trouble(fault: &GitFault) -> RemoteTrouble {
    match fault.trouble {
        GitTrouble::Rejected | GitTrouble::NonFastForward | GitTrouble::Incomplete => {
            RemoteTrouble::Refuses(fault.line())
        }
        _ => RemoteTrouble::Away(Some(fault.cause.clone())),
    }
}

// The coordinator's side.

/// The newest report of each task of a fleet that an attempt elsewhere has left at the remote. What
/// cannot be read is left out.
pub fn reports(refs: &Refs<'_>, fleet: &str) -> Result<Vec<(TaskId, AttemptReport)>> {
    let prefix = results(fleet);
    let mut newest: BTreeMap<TaskId, (u32, String, String)> = BTreeMap::new();
    for found in refs.list(&[&format!("{prefix}*")])? {
        let Some((task, number)) =
            found.name.strip_prefix(&prefix).and_then(|name| name.split_once('/'))
        else {
            continue;
        };
        let (Ok(task), Ok(number)) = (task.parse::<TaskId>(), number.parse()) else { continue };
        if newest.get(&task).is_none_or(|(known, ..)| *known < number) {
            newest.insert(task, (number, found.name, found.id));
        }
    }
    let ids: Vec<String> = newest.values().map(|(_, _, id)| id.clone()).collect();
    let mut messages = refs.messages(&ids)?;
    let names = newest.values().map(|(_, name, _)| name.as_str());
    let missing: Vec<&str> = names
        .zip(&messages)
        .filter(|(_, message)| message.is_none())
        .map(|(name, _)| name)
        .collect();
    if !missing.is_empty() {
        refs.fetch(&missing, &[])?;
        messages = refs.messages(&ids)?;
    }
    let read = newest.into_iter().zip(messages).filter_map(|((task, (number, ..)), message)| {
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
    let name = format!("{}{task}/{number}", results(fleet));
    let Some(found) = refs.list(&[&name])?.pop() else { return Ok(None) };
    refs.fetch(&[&name], &[])?;
    Ok(serde_json::from_str(&refs.message(&found.id)?).ok())
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
    let name = request_name(fleet, task);
    let id = env::random();
    for _ in 0..SENDS {
        let old = refs.list(&[&name])?.pop().map(|found| found.id);
        let mut requests: Vec<RemoteRequest> = Vec::new();
        if let Some(old) = &old {
            refs.fetch(&[&name], &[])?;
            requests = serde_json::from_str(&refs.message(old)?).unwrap_or_default();
        }
        requests.retain(|asked| asked.number == number);
        requests.push(RemoteRequest { id, number, request: request.clone() });
        requests.drain(..requests.len().saturating_sub(REQUESTS_MAX));
        let text = serde_json::to_string(&requests).context("cannot write the request")?;
        let new = Some(refs.commit(&text, None)?);
        if refs.swap(&[RefUpdate { name: name.clone(), old, new }])? == SwapResult::Done {
            return Ok(());
        }
        clock::sleep(TRIES.first_pause);
    }
    bail!("the requests of {task} at the remote change all the time\nhint: try again")
}

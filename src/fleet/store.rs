//! Stores the record of a fleet: in a file here, and with a remote also in a ref there, as the
//! message of a commit. Only the coordinator writes both. A lock here and a compare-and-swap there
//! keep a second coordinator out; one that has lost the ref writes nothing more. Other commands
//! read the file and leave requests in a folder.

pub mod remote_refs;
pub mod requests;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};

use self::remote_refs::{OwnRefs, RemoteAccess};
use super::files::FleetFiles;
use super::record::{FleetRecord, FleetTerms, Holder, Landed, RECORD_BYTES_MAX};
use engine::failure::Failure;
use engine::fleet::TaskId;
use engine::git::{GitFault, RefUpdate, RemoteRef};
use engine::text::EscapedLine;
use readers::parse::remote::without_secrets;
use world::clock::{self, Deadline, Stopwatch};
use world::files::disk::{self, Durability, Lock};
use world::git::{self, remotes};
use world::process::identity;
use world::process::signals::Signals;
use world::store::{Home, LOCK_WAIT, hash};
use world::{env, fault, host};

/// The maximum number of fleets listed.
const FLEETS_MAX: usize = 1000;
/// How long to try for a lock, longer than a process that only tests it keeps it.
const LOCK_LOOK: Duration = Duration::from_millis(50);
/// The maximum number of bytes read from a lock's note about its holder, and from a home's id.
const HOLDER_BYTES: u64 = 4096;
/// The shortest time between two batched writes to the remote.
const BATCH_MS: u64 = 3_000;
/// The time without a write after which the remote's record is renewed.
const RENEW_MS: u64 = 60_000;
/// How long the remote's record must stay unchanged before `--replace-coordinator` takes it over:
/// five renewals, on this machine's own clock while it is awake.
const STALE_MS: u64 = 5 * RENEW_MS;
/// The maximum number of milliseconds that count between two reads: in a longer gap the remote was
/// away, and the record could not have been renewed either.
const GAP_MS: u64 = 30_000;
/// The number of digits in a home's id.
const HOME_DIGITS: usize = 16;
/// The process id recorded for a fleet without a coordinator.
const NOBODY: i32 = 0;
/// The hint for a record that cannot be read.
const AWAY: &str = "move the file away";

/// Why the record was not written.
#[derive(Debug, thiserror::Error)]
pub enum StoreFault {
    /// Another coordinator, named here, has the fleet. This one may write nothing more.
    #[error("another coordinator has this fleet: {0}")]
    Lost(String),
    /// A fault of the remote. Another try may help.
    #[error(transparent)]
    Remote(#[from] GitFault),
    /// A fault of this machine's disk. Another try may help.
    #[error(transparent)]
    Disk(#[from] io::Error),
}

impl StoreFault {
    /// The underlying error of the remote or the disk, with its hint.
    pub fn into_error(self) -> anyhow::Error {
        match self {
            Self::Lost(_) => self.into(),
            Self::Remote(fault) => fault.into(),
            Self::Disk(error) => error.into(),
        }
    }
}

/// A push to the remote, to be run in a thread. Returns false if only the base was in the way. The
/// result must be passed to [`FleetStore::note_answer`].
pub type Push = Box<dyn FnOnce() -> Result<bool, StoreFault> + Send>;

/// How soon the record must be at the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushTime {
    /// Once a minute, or sooner if the remote's record is behind.
    Usual,
    /// Immediately, but not right after a push that failed.
    Soon,
    /// Immediately, because no later push follows.
    Now,
}

/// Where a coordinator stores its record.
pub trait FleetStore {
    /// Writes the record here. The remote's record is behind afterwards.
    fn save_record(&mut self, record: &FleetRecord) -> Result<(), StoreFault>;

    /// Prepares a push of the record to the remote, if one is due and no other is in progress. To
    /// be called often.
    fn push(&mut self, record: &mut FleetRecord, time: PushTime) -> Option<Push>;

    /// Prepares a push that moves the base and the record together, both or neither. The commit was
    /// made and checked on the base's old commit. `None` without a remote.
    fn push_with_base(&mut self, base: RefUpdate, record: &FleetRecord) -> Option<Push>;

    /// Records that a push is over, and whether it wrote the record.
    fn note_answer(&mut self, is_written: bool);
}

/// The store of a record here and, with a remote, there. Holds the fleet's lock as long as this
/// value exists.
#[derive(Debug)]
pub struct LockedFleetStore {
    files: FleetFiles,
    shared: Option<Arc<Mutex<SharedRecord>>>,
    tried_at: Option<Stopwatch>,
    /// Whether the local record is newer than the last pushed one.
    is_behind: bool,
    /// Whether the last push failed, so that the next one waits.
    has_failed: bool,
    /// The number of pushes in progress.
    unanswered: u32,
    _lock: Lock,
}

impl LockedFleetStore {
    /// Takes a fleet for the lifetime of this process, and reads its record.
    ///
    /// # Errors
    /// If another coordinator has it, here or according to the remote's record, with who and since
    /// when. `replaces`: takes over a remote record that no longer changes.
    pub fn take_fleet(
        home: &Home,
        terms: &FleetTerms,
        signals: &Signals,
        replaces: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<(Self, Option<FleetRecord>)> {
        let files = FleetFiles::new(home, &terms.name);
        files.make().with_context(|| format!("cannot keep a fleet in {}", files.root.display()))?;
        let Some(lock) = disk::take_lock(&files.lock(), LOCK_LOOK)? else {
            return Err(coordinated_here(&files, &terms.name));
        };
        let me = Holder::this_process(home, clock::now().wall)?;
        lock.write_holder(&me.to_string())?;
        let here = read_file(&files.record())?;
        if let Some(here) = &here {
            refuse_other_fleet(terms, &here.terms)?;
        }
        let mut shared = SharedRecord::for_terms(terms, signals);
        let there = shared.as_mut().map_or(Ok(None), SharedRecord::read_record)?;
        let base_has = |commit: &str| {
            shared.as_ref().is_some_and(|shared| shared.base_has(&terms.base, commit))
        };
        let mut record = newest_record(here.clone(), there, base_has);
        if let (Some(shared), Some(there)) = (&shared, &record) {
            refuse_other_folder(terms, &there.terms)?;
            let is_own = there.holder.home == me.home;
            if !is_own && there.holder.pid != NOBODY {
                if !replaces {
                    return Err(coordinated_elsewhere(&terms.name, shared, &there.holder));
                }
                shared.watch(&there.holder, signals, say)?;
            }
            if !is_own && here.as_ref().is_some_and(|here| here.id != there.id) {
                bail!(Failure::new(
                    format!(
                        "{} has another fleet of the name {}, started on {}",
                        shared.access.remote.name,
                        terms.name,
                        EscapedLine(&there.holder.host)
                    ),
                    format!(
                        "name = \"NAME\" in {}/fleet.toml makes this one of its own",
                        terms.folder
                    )
                ));
            }
        }
        if let Some(record) = record.as_mut().filter(|record| record.holder.home != me.home) {
            record.forget_processes();
        }
        let store = Self {
            files,
            shared: shared.map(|shared| Arc::new(Mutex::new(shared))),
            tried_at: None,
            is_behind: true,
            has_failed: false,
            unanswered: 0,
            _lock: lock,
        };
        Ok((store, record))
    }

    /// Starts a push of this record. Only one push at a time uses the known state of the remote.
    fn begin_push(&mut self, record: &FleetRecord, base: Option<RefUpdate>) -> Option<Push> {
        let (shared, record) = (Arc::clone(self.shared.as_ref()?), record.clone());
        (self.tried_at, self.is_behind) = (Some(Stopwatch::start()), false);
        self.unanswered += 1;
        Some(Box::new(move || {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.push(&record, base.as_ref())
        }))
    }
}

/// Returns the newer of the local record and the remote's. This home pushes what it has written
/// here later or at the same time; only landings are pushed first. The remote's record alone does
/// not prove a landing: a remote killed during an atomic push may have moved only some refs, so the
/// base must contain the commit.
fn newest_record(
    here: Option<FleetRecord>,
    there: Option<FleetRecord>,
    base_has: impl Fn(&str) -> bool,
) -> Option<FleetRecord> {
    let (Some(here), Some(there)) = (here.as_ref(), there.as_ref()) else { return there.or(here) };
    let is_same = here.id == there.id && here.holder.home == there.holder.home;
    let mut record = if is_same && here.beat >= there.beat { here } else { there }.clone();
    for (id, task) in here.tasks.iter().filter(|(_, task)| task.landing().is_some()) {
        if let Some(landed) = there.tasks.get(id)
            && let Some(Landed::Main(commit)) = landed.landed()
            && (task.attempt, &task.work.commit) == (landed.attempt, &landed.work.commit)
        {
            let is_there = commit.as_deref().is_none_or(&base_has);
            let newest = if is_there { landed } else { task };
            record.tasks.insert(id.clone(), newest.clone());
        }
    }
    Some(record)
}

impl FleetStore for LockedFleetStore {
    fn save_record(&mut self, record: &FleetRecord) -> Result<(), StoreFault> {
        self.is_behind = true;
        let bytes = serde_json::to_vec(record).map_err(io::Error::from)?;
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(io::Error::other("the record of the fleet is longer than 8 MiB").into());
        }
        Ok(disk::write(&self.files.record(), &bytes, Durability::Machine)?)
    }

    fn push(&mut self, record: &mut FleetRecord, time: PushTime) -> Option<Push> {
        let age_ms = self.tried_at.map_or(u64::MAX, Stopwatch::elapsed_ms);
        let renew_ms = fault::read_number("CREW_RENEW_MS").unwrap_or(RENEW_MS);
        let due_ms = match time {
            PushTime::Now => 0,
            PushTime::Soon if !self.has_failed => 0,
            _ if self.is_behind => BATCH_MS.min(renew_ms),
            _ => renew_ms,
        };
        if self.shared.is_none() || self.unanswered > 0 || age_ms < due_ms {
            return None;
        }
        record.beat += 1;
        self.begin_push(record, None)
    }

    fn push_with_base(&mut self, base: RefUpdate, record: &FleetRecord) -> Option<Push> {
        self.begin_push(record, Some(base))
    }

    fn note_answer(&mut self, is_written: bool) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.has_failed = !is_written;
        self.is_behind |= !is_written;
    }
}

/// A fleet's record at a remote.
#[derive(Debug)]
struct SharedRecord {
    access: RemoteAccess,
    /// The full name of the record's ref.
    name: String,
    refs: OwnRefs,
}

impl SharedRecord {
    fn for_terms(terms: &FleetTerms, signals: &Signals) -> Option<Self> {
        Some(Self {
            access: RemoteAccess::for_terms(terms, signals)?,
            name: format!("refs/crew/{}/record", terms.name),
            refs: OwnRefs::default(),
        })
    }

    fn list_refs(&self) -> Result<Vec<RemoteRef>, GitFault> {
        self.access.refs()?.list_refs(&[&self.name])
    }

    fn read_record(&mut self) -> Result<Option<FleetRecord>> {
        let there = self.list_refs()?;
        self.refs.adopt_refs(&there);
        there.first().map(|found| self.decode_record(found)).transpose()
    }

    /// Whether the remote's base contains a commit; false if that cannot be found out.
    fn base_has(&self, base: &str, commit: &str) -> bool {
        let name = format!("refs/heads/{base}");
        self.access.refs().is_ok_and(|refs| {
            let there = refs.fetch_objects(&[&name], &[]).and_then(|()| refs.list_refs(&[&name]));
            let tip = there.ok().and_then(|there| Some(there.into_iter().next()?.id));
            tip.is_some_and(|tip| git::count_lacking(refs.folder, commit, &tip) == Some(0))
        })
    }

    fn decode_record(&self, found: &RemoteRef) -> Result<FleetRecord> {
        let refs = self.access.refs()?;
        refs.fetch_objects(&[&self.name], &[])?;
        let message = refs.read_message(&found.id)?;
        let (_, text) = message.split_once("\n\n").unwrap_or_default();
        FleetRecord::read_record(&self.name, text.as_bytes(), "delete that ref of the remote")
    }

    /// Replaces the last known record, together with a move of the base. False if only the base was
    /// in the way.
    fn push(&mut self, record: &FleetRecord, base: Option<&RefUpdate>) -> Result<bool, StoreFault> {
        if self.refs.is_unanswered() {
            let there = self.own_refs()?;
            self.refs.adopt_refs(&there);
        }
        let id = self.access.refs()?.make_commit(&record_text(record)?, None)?;
        let mut updates = vec![self.refs.ref_update(&self.name, id)];
        updates.extend(base.filter(|base| base.old != base.new).cloned());
        if self.refs.push(&self.access.refs()?, updates)? {
            return Ok(true);
        }
        self.own_refs()?;
        match base {
            Some(_) => Ok(false),
            None => Err(io::Error::other("the remote does not accept the record").into()),
        }
    }

    /// Reads the record's refs at the remote; an error if another process has written them.
    fn own_refs(&self) -> Result<Vec<RemoteRef>, StoreFault> {
        let there = self.list_refs()?;
        if self.refs.are_own(&[&self.name], &there) {
            return Ok(there);
        }
        Err(StoreFault::Lost(match there.first().map(|found| self.decode_record(found)) {
            None => format!("its record at {} was removed", self.access.remote.name),
            Some(Ok(record)) => record.holder.to_string(),
            Some(Err(_)) => "its record cannot be read".to_owned(),
        }))
    }

    /// Watches the record until it has not changed for so long that its coordinator must be gone.
    fn watch(&self, holder: &Holder, signals: &Signals, say: &mut dyn FnMut(&str)) -> Result<()> {
        let stale_ms = fault::read_number("CREW_STALE_MS").unwrap_or(STALE_MS);
        say(&format!(
            "watching the record of {holder}: it is taken over if it does not change for {} s",
            stale_ms / 1000
        ));
        let pause = Duration::from_millis((stale_ms / 10).min(GAP_MS / 2));
        let (mut still_ms, mut since) = (0, Stopwatch::start());
        while still_ms < stale_ms {
            let deadline = Deadline::after(pause);
            if deadline.poll(LOCK_LOOK, || (signals.times() > 0).then_some(())).is_some() {
                bail!("interrupted by a signal; the fleet was not taken over");
            }
            match self.list_refs() {
                Err(fault) => {
                    say(&format!("{}; it is asked again", fault.cause_and_hint()));
                    continue;
                }
                Ok(there) if !self.refs.are_own(&[&self.name], &there) => bail!(Failure::new(
                    format!("{holder} has the fleet and renewed its record just now"),
                    "end that coordinator first, with Ctrl-C"
                )),
                Ok(_) => still_ms += since.elapsed_ms().min(GAP_MS),
            }
            since = Stopwatch::start();
        }
        Ok(())
    }
}

/// Renders the commit message for a record, without values that only this machine needs.
fn record_text(record: &FleetRecord) -> io::Result<String> {
    let mut record = record.clone();
    record.terms.clones.trusted = None;
    Ok(format!("crew fleet {}\n\n{}\n", record.terms.name, serde_json::to_string(&record)?))
}

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, home, pid, since } = self;
        let (host, home) = (EscapedLine(host), EscapedLine(home));
        write!(out, "process {pid} on {host}, home {home}, since {}", since.format("%F %H:%M UTC"))
    }
}

impl Holder {
    /// Describes this process as a holder.
    pub fn this_process(home: &Home, now: DateTime<Utc>) -> Result<Self> {
        let host = host::this_host().map(|host| host.name).unwrap_or_default();
        Ok(Self { host, home: home_id(home)?, pid: identity::my_id(), since: now })
    }

    /// The holder after its process has ended cleanly: any coordinator may take the fleet.
    pub fn released(&self) -> Self {
        Self { pid: NOBODY, ..self.clone() }
    }
}

/// The id of this home. It contains a random string that is written once and differs between
/// machines and containers, and the path, which differs for a copy of this home.
fn home_id(home: &Home) -> Result<String> {
    let (root, file) = (disk::real_path(home.root())?, home.root().join("id"));
    let lock = disk::take_lock(&root.join("id.lock"), LOCK_WAIT)?;
    let _lock = lock.with_context(|| format!("{} is busy", root.display()))?;
    let mut text = disk::read_text(&file, HOLDER_BYTES)?.unwrap_or_default();
    if text.is_empty() {
        text = format!("{:016x}\n", env::random_number());
        disk::write(&file, text.as_bytes(), Durability::Machine)?;
    }
    let mut id = hash(format!("{text}{}", root.display()).as_bytes());
    id.truncate(HOME_DIGITS);
    Ok(id)
}

fn coordinated_here(files: &FleetFiles, fleet: &str) -> anyhow::Error {
    let who = disk::read_text(&files.lock(), HOLDER_BYTES).ok().flatten().unwrap_or_default();
    let who = if who.is_empty() { "a process that is starting" } else { who.as_str() };
    Failure::new(
        format!("the fleet {fleet} is coordinated already, by {who}, in {}", files.root.display()),
        format!("crew fleet status {fleet} shows it; crew pause, cancel and tell reach it"),
    )
    .into()
}

fn coordinated_elsewhere(fleet: &str, shared: &SharedRecord, holder: &Holder) -> anyhow::Error {
    Failure::new(
        format!(
            "the fleet {fleet} is coordinated already, by {holder}, as its record at {} says ({})",
            shared.access.remote.name,
            without_secrets(&shared.access.remote.url)
        ),
        "end it there with Ctrl-C; if it is gone, --replace-coordinator takes the fleet once \
         its record has not changed for 5 minutes; name = \"NAME\" in fleet.toml makes another fleet",
    ).into()
}

// Functions for commands other than the coordinator.

/// Lists the names of all fleets on this machine, sorted.
pub fn list_names(home: &Home) -> io::Result<Vec<String>> {
    let mut names = disk::list_names(&home.fleets_folder(), FLEETS_MAX)?;
    names.retain(|name| {
        name.parse::<TaskId>().is_ok() && disk::is_file(&FleetFiles::new(home, name).record())
    });
    names.sort();
    Ok(names)
}

/// Reads the local record of a fleet; `None` if this machine has no fleet with the name.
pub fn read_local(home: &Home, fleet: &str) -> Result<Option<FleetRecord>> {
    read_file(&FleetFiles::new(home, fleet).record())
}

fn read_file(file: &Path) -> Result<Option<FleetRecord>> {
    let Some(bytes) = disk::read(file, RECORD_BYTES_MAX as u64)? else { return Ok(None) };
    Ok(Some(FleetRecord::read_record(&file.display().to_string(), &bytes, AWAY)?))
}

/// Finds the ref of a fleet's record at its remote, if there is one.
///
/// # Errors
/// If another home has the fleet or had it last, because this home's record is then out of date.
pub fn own_ref(home: &Home, terms: &FleetTerms, signals: &Signals) -> Result<Option<RemoteRef>> {
    let Some(shared) = SharedRecord::for_terms(terms, signals) else { return Ok(None) };
    let Some(found) = shared.list_refs()?.pop() else { return Ok(None) };
    let holder = shared.decode_record(&found)?.holder;
    if holder.home == home_id(home)? {
        return Ok(Some(found));
    }
    if holder.pid != NOBODY {
        return Err(coordinated_elsewhere(&terms.name, &shared, &holder));
    }
    bail!(Failure::new(
        format!(
            "{} has worked on the fleet {} since, and knows more of it",
            EscapedLine(&holder.host),
            terms.name
        ),
        format!("crew fleet clean there, or {} here first", terms.run_command())
    ))
}

/// Whether a coordinator of this home has the fleet.
pub fn is_coordinated(home: &Home, fleet: &str) -> bool {
    disk::is_locked(&FleetFiles::new(home, fleet).lock())
}

/// Refuses a known fleet with the same name from another repository, or from another folder of this
/// one. The coordinator checks again under its lock, because two may start at once.
///
/// # Errors
/// Names the other fleet, and how to give this one another name.
pub fn refuse_other_fleet(terms: &FleetTerms, known: &FleetTerms) -> Result<()> {
    let FleetTerms { name, repository, folder, .. } = terms;
    let is_there = git::find_top(&known.repository).is_some();
    let is_same = known.repository == *repository
        || (is_there && git::shared_folder(&known.repository) == git::shared_folder(repository));
    // A moved repository still has the same remote.
    let url = remotes::remote_of(repository).map(|(_, url)| url);
    let is_moved = !is_there
        && url.is_some()
        && known.remote.as_ref().map(|remote| &remote.url) == url.as_ref();
    let fix = format!("name = \"NAME\" in {folder}/fleet.toml makes this a separate fleet");
    if !is_same && !is_moved {
        bail!(Failure::new(
            format!(
                "there is a fleet {name} of another repository, {}",
                known.repository.display()
            ),
            format!("{fix}; crew fleet clean {name} removes the other one")
        ));
    }
    refuse_other_folder(terms, known)
}

/// Refuses a folder of tasks if a fleet of this name, here or at the remote, has a different
/// folder.
pub fn refuse_other_folder(terms: &FleetTerms, known: &FleetTerms) -> Result<()> {
    let FleetTerms { name, folder, .. } = terms;
    if known.folder != *folder {
        bail!(Failure::new(
            format!("the fleet {name} belongs to the tasks in {}", EscapedLine(&known.folder)),
            format!("name = \"NAME\" in {folder}/fleet.toml makes this a separate fleet")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

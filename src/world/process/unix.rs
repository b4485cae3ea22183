//! What only Unix has: process ids, sessions, signals, and the parent's death signal. The one file with
//! `unsafe` in it, for the step between fork and exec that std does not offer.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::Read;
use std::io::{self, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU, SIGXFSZ,
};

use crate::engine::record::owner::ProcessIdentity;
use crate::parse::process_table::ProcessRow;

/// Ends this process at once, as a crash would.
#[cfg(debug_assertions)]
pub fn kill_myself() -> ! {
    let _ = rustix::process::kill_process(getpid(), Signal::KILL);
    std::process::abort()
}

/// A flag that rises when the client or the user asks this process to end.
pub fn end_requested() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)) {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// What would end a run without a word if nobody listened, and what its record says of each.
const ASKING: [(i32, &str); 11] = [
    (SIGINT, "interrupted at the keyboard"),
    (SIGTERM, "asked to end by SIGTERM"),
    (SIGHUP, "asked to end by SIGHUP"),
    (SIGQUIT, "asked to end by SIGQUIT"),
    (SIGUSR1, "asked to end by SIGUSR1"),
    (SIGUSR2, "asked to end by SIGUSR2"),
    (SIGALRM, "asked to end by SIGALRM"),
    (SIGVTALRM, "asked to end by SIGVTALRM"),
    (SIGPROF, "asked to end by SIGPROF"),
    (SIGIO, "asked to end by SIGIO"),
    (SIGXCPU, "asked to end by SIGXCPU"),
];

/// Two signals closer together than this are one wish: a terminal that closes hangs up twice.
const ONE_WISH_MS: u64 = 100;

/// The wish that ends this process wherever it is. Its children die with it.
const LAST_WISH: u32 = 3;

/// Whether whoever started this process had a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    #[expect(unsafe_code, reason = "the only way to ask")]
    // SAFETY: without a new action nothing changes; all zeros are a valid old one.
    unsafe {
        let asked = libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        asked == 0 && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// How often, and first by which signal, this process was asked to end.
#[derive(Debug, Clone, Default)]
pub struct Signals(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    first: AtomicI32,
    times: AtomicU32,
    last_ms: AtomicU64,
}

impl Signals {
    /// From now on none of these signals ends anything by itself, but for the third: whoever is busy with a
    /// terminal or a pipe that takes nothing hears none of them. One that was ignored, as `nohup` has it,
    /// stays so. A file past the size that is allowed is an error of the write, as on a full disk.
    pub fn listen() -> io::Result<Self> {
        let signals = Self::default();
        // Not ignored: children would inherit that.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        let asking = ASKING.into_iter().map(|(signal, _)| signal);
        for signal in asking.filter(|signal| !is_ignored(*signal)) {
            let asked = Arc::clone(&signals.0);
            #[expect(unsafe_code, reason = "the door to a handler that counts")]
            // SAFETY: the handler reads a clock, changes numbers and may end the process by `_exit`; it
            // neither allocates nor locks.
            unsafe {
                signal_hook::low_level::register(signal, move || {
                    if asked.note(signal) >= LAST_WISH {
                        signal_hook::low_level::exit(asked.exit_code().into());
                    }
                })?;
            }
        }
        Ok(signals)
    }

    /// How often it was asked: at the first it ends in order, at the second at once.
    pub fn times(&self) -> u32 {
        self.0.times.load(Ordering::Relaxed)
    }

    /// The exit code of the first signal, as a shell has it: 130 for INT, 143 for TERM.
    pub fn exit_code(&self) -> Option<u8> {
        (self.times() > 0).then(|| self.0.exit_code())
    }

    /// What the record says of the first signal.
    pub fn why(&self) -> &'static str {
        let first = self.0.first.load(Ordering::Relaxed);
        let asking = ASKING.iter().find(|(signal, _)| *signal == first);
        asking.map_or("asked to end by a signal", |(_, why)| why)
    }
}

impl Asked {
    /// Counts a wish, and says the how manyeth it is; 0 for the echo of one.
    fn note(&self, signal: i32) -> u32 {
        let now = crate::world::clock::awake_ms();
        let last = self.last_ms.swap(now, Ordering::Relaxed);
        let is_first =
            self.first.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_first || now.saturating_sub(last) >= ONE_WISH_MS {
            return self.times.fetch_add(1, Ordering::Relaxed) + 1;
        }
        0
    }

    fn exit_code(&self) -> u8 {
        128 + u8::try_from(self.first.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

/// Has a child begin a session, and with it a group, of its own: without a terminal nothing in it can stop
/// for one, ask there for a password, or write into what a person reads. On Linux it also writes who it is
/// into `note` before it runs anything, so that no crash can leave a group that nobody knows, and dies with
/// the process that starts it.
pub fn lead_a_session(command: &mut Command, note: Option<File>) {
    leave_the_terminal(command);
    #[cfg(target_os = "linux")]
    {
        before_exec(command, die_with(getpid()));
        if let Some(note) = note {
            before_exec(command, move || sign(&note));
        }
    }
    #[cfg(not(target_os = "linux"))]
    drop(note);
}

/// Has a child begin a session of its own without a terminal, and outlive this process. It must not lead a
/// group already: then it could not.
pub fn leave_the_terminal(command: &mut Command) {
    before_exec(command, || Ok(rustix::process::setsid().map(drop)?));
}

#[cfg(target_os = "linux")]
fn die_with(parent: Pid) -> impl FnMut() -> io::Result<()> + Send + Sync + 'static {
    move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died between fork and here; then nobody sends the signal.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

/// Writes who this process is, as the system tells it.
#[cfg(target_os = "linux")]
fn sign(note: &File) -> io::Result<()> {
    let mut row = [0; 1024];
    let length = File::open("/proc/self/stat")?.read(&mut row)?;
    let _ = (&*note).write(&row[..length]);
    Ok(())
}

/// Writes who leads a group, where the leader cannot do it itself.
pub fn note_leader(note: &File, leader: i32) {
    #[cfg(not(target_os = "linux"))]
    if let Some(leader) = identity(leader) {
        let _ = write!(&*note, "{} {}", leader.pid, leader.started);
    }
    #[cfg(target_os = "linux")]
    let _ = (note, leader);
}

/// The process that a note tells of.
pub fn noted_leader(text: &str) -> Option<ProcessIdentity> {
    let (pid, rest) = text.split_once(' ')?;
    #[cfg(target_os = "linux")]
    let started = crate::parse::process_table::proc_stat(rest)?.started;
    #[cfg(not(target_os = "linux"))]
    let started = rest.to_owned();
    Some(ProcessIdentity { pid: pid.parse().ok()?, started })
}

/// `step` runs between fork and exec: it may make system calls, and neither allocate nor lock.
fn before_exec(
    command: &mut Command,
    step: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    use std::os::unix::process::CommandExt;
    #[expect(unsafe_code, reason = "std's only door to the step between fork and exec")]
    // SAFETY: the steps of this file make system calls, and neither allocate nor lock.
    unsafe {
        command.pre_exec(step);
    }
}

/// Which signal a group gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupSignal {
    Term,
    Kill,
}

/// Signals a whole group by its leader's id; a group that is gone is as good.
pub fn signal_group(leader: i32, signal: GroupSignal) {
    let signal = match signal {
        GroupSignal::Term => Signal::TERM,
        GroupSignal::Kill => Signal::KILL,
    };
    // 0 and 1 would mean this group and every process.
    if let Some(leader) = Pid::from_raw(leader).filter(|leader| leader.as_raw_nonzero().get() > 1) {
        let _ = kill_process_group(leader, signal);
        // A stopped process could not hear TERM. KILL it hears.
        if signal == Signal::TERM {
            let _ = kill_process_group(leader, Signal::CONT);
        }
    }
}

/// Reaps what has ended in a group whose own leader is reaped already.
pub fn reap_group(leader: i32) {
    let Some(leader) = Pid::from_raw(leader) else { return };
    while let Ok(Some(_)) = rustix::process::waitpgid(leader, WaitOptions::NOHANG) {}
}

/// Whether any process of a group is left.
pub fn group_lives(leader: i32) -> bool {
    Pid::from_raw(leader)
        .is_some_and(|leader| rustix::process::test_kill_process_group(leader).is_ok())
}

/// The process that runs this hook: the first one above us of which `is_owner` says so, of us and
/// it.
pub fn client(is_owner: impl Fn(&ProcessRow, &ProcessRow) -> bool) -> Option<ProcessIdentity> {
    let me = row(getpid().as_raw_nonzero().get())?;
    let mut pid = me.parent;
    for _ in 0..64 {
        let parent = row(pid)?;
        if is_owner(&me, &parent) || parent.parent <= 1 {
            return Some(ProcessIdentity { pid, started: parent.started });
        }
        pid = parent.parent;
    }
    None
}

/// This process.
pub fn myself() -> Option<ProcessIdentity> {
    identity(getpid().as_raw_nonzero().get())
}

/// A process by its id; `None` when there is none.
pub fn identity(pid: i32) -> Option<ProcessIdentity> {
    Some(ProcessIdentity { pid, started: row(pid)?.started })
}

/// Whether this very process, not a later one with its id, is there and has not ended.
pub fn is_alive(process: &ProcessIdentity) -> bool {
    row(process.pid).is_some_and(|row| row.started == process.started && !row.has_ended)
}

/// Whether this very process has ended and its parent knows.
pub fn is_reaped(process: &ProcessIdentity) -> bool {
    row(process.pid).is_none_or(|row| row.started != process.started)
}

/// Whether this process leads a session of its own.
#[cfg(test)]
pub fn leads_its_session() -> bool {
    rustix::process::getsid(None) == Ok(getpid())
}

/// When this process was started, in milliseconds since boot, rounded down to the system's tick.
pub fn started_ms() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let ticks: u64 = myself()?.started.parse().ok()?;
        Some(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(target_os = "linux")]
pub(super) fn row(pid: i32) -> Option<ProcessRow> {
    let path = format!("/proc/{pid}/stat");
    let text = crate::world::files::disk::read_text(std::path::Path::new(&path), 4096).ok()??;
    crate::parse::process_table::proc_stat(&text)
}

#[cfg(not(target_os = "linux"))]
fn row(pid: i32) -> Option<ProcessRow> {
    let text = super::output_of("ps", &["-o", "ppid=,sess=,lstart=", "-p", &pid.to_string()])?;
    crate::parse::process_table::ps(&text)
}

/// This process's id.
#[cfg(target_os = "linux")]
pub fn my_id() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// Makes this process the parent of every orphan among its descendants. Linux alone can.
pub fn become_subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::process::set_child_subreaper(Some(getpid()))?);
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether this process has a child at all, ended ones too.
#[cfg(target_os = "linux")]
pub fn has_children() -> bool {
    !matches!(look_at_children(), Err(rustix::io::Errno::CHILD))
}

/// Whether a child of this process has ended and is not reaped.
#[cfg(target_os = "linux")]
pub fn has_ended_child() -> bool {
    matches!(look_at_children(), Ok(Some(_)))
}

#[cfg(target_os = "linux")]
fn look_at_children() -> rustix::io::Result<Option<rustix::process::WaitIdStatus>> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}

/// Reaps a child that has ended.
#[cfg(target_os = "linux")]
pub fn reap(pid: i32) {
    let _ = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
}

/// Signals this very process, not a later one with its id.
#[cfg(target_os = "linux")]
pub fn signal(pid: i32, started: &str, signal: GroupSignal) {
    let is_it = row(pid).is_some_and(|row| row.started == started);
    let Some(process) = Pid::from_raw(pid).filter(|_| is_it && pid > 1) else { return };
    let all: &[Signal] = match signal {
        GroupSignal::Term => &[Signal::TERM, Signal::CONT],
        GroupSignal::Kill => &[Signal::KILL],
    };
    for signal in all {
        let _ = rustix::process::kill_process(process, *signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_wish_counts_and_an_echo_of_the_first_does_not() {
        let signals = Signals::default();
        assert_eq!((signals.times(), signals.exit_code()), (0, None));
        signals.0.note(SIGHUP);
        signals.0.note(SIGHUP);
        assert_eq!((signals.times(), signals.exit_code()), (1, Some(129)));
        let earlier = crate::world::clock::awake_ms().saturating_sub(ONE_WISH_MS);
        signals.0.last_ms.store(earlier, Ordering::Relaxed);
        signals.0.note(SIGINT);
        assert_eq!((signals.times(), signals.exit_code()), (2, Some(129)));
    }

    #[test]
    fn an_interrupt_is_heard_and_ends_nothing() {
        crate::world::process::alone::alone(|| {
            let signals = Signals::listen().unwrap();
            signal_hook::low_level::raise(SIGINT).unwrap();
            assert_eq!((signals.times(), signals.exit_code()), (1, Some(130)));
        });
    }
}

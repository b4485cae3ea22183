//! Signals: which ones ask this process to end, how often they arrived, and how crew sends its own.
//! It does not decide how to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU, SIGXFSZ,
};
use signal_hook::low_level::signal_name;

use super::identity::read_row;
use crate::clock;
use engine::record::{EndSignal, ProcessIdentity};

/// A flag that is set when the client or the user asks this process to end.
pub fn end_requested() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        if !is_ignored(signal) {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
    }
    Ok(flag)
}

/// The signals that would otherwise end a run silently.
const ASKING: [i32; 11] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXCPU,
];

/// The time in milliseconds within which two signals count as one request: a terminal that closes
/// sends two hangups.
const ONE_REQUEST_MS: u64 = 100;

/// The request at which this process exits at once. Children die with this process.
const LAST_REQUEST: u32 = 3;

/// Whether a signal was ignored when this process started.
fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    #[expect(unsafe_code, reason = "the only way to ask")]
    // SAFETY: without a new action nothing changes; all zeros are a valid old action.
    unsafe {
        let asked = libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        asked == 0 && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// How often this process was asked to end, and by which signal first.
#[derive(Debug, Clone, Default)]
pub struct Signals(Arc<Asked>);

impl Signals {
    /// Starts to count these signals. The third ends the process, because one that is blocked on a
    /// terminal or a pipe would not notice them. A signal that was ignored, as with `nohup`, stays
    /// ignored. A file past the size limit becomes an error of the write, as on a full disk.
    pub fn listen() -> io::Result<Self> {
        let signals = Self::default();
        // Not ignored: children would inherit that.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        for signal in ASKING.into_iter().filter(|signal| !is_ignored(*signal)) {
            let asked = Arc::clone(&signals.0);
            #[expect(unsafe_code, reason = "the door to a handler that counts")]
            // SAFETY: the handler reads a clock, changes numbers and may end the process by
            // `_exit`; it neither allocates nor locks.
            unsafe {
                signal_hook::low_level::register(signal, move || {
                    if asked.count_request(signal) >= LAST_REQUEST {
                        signal_hook::low_level::exit(asked.exit_code().into());
                    }
                })?;
            }
        }
        Ok(signals)
    }

    /// How many times it was asked to end: the first request ends it cleanly, the second
    /// immediately.
    pub fn times(&self) -> u32 {
        self.0.times.load(Ordering::Relaxed)
    }

    /// The exit code for the first signal, as shells use it: 130 for INT, 143 for TERM.
    pub fn exit_code(&self) -> Option<u8> {
        if self.times() > 0 { Some(self.0.exit_code()) } else { None }
    }

    /// Whether the first signal came from a terminal that was closed.
    pub fn is_hangup(&self) -> bool {
        self.0.first.load(Ordering::Relaxed) == SIGHUP
    }

    /// The first signal, as the record names it; `None` before one has arrived.
    pub fn first(&self) -> Option<EndSignal> {
        Some(match self.0.first.load(Ordering::Relaxed) {
            0 => return None,
            SIGINT => EndSignal::Keyboard,
            other => EndSignal::Named(signal_name(other).unwrap_or("a signal").to_owned()),
        })
    }
}

#[derive(Debug, Default)]
struct Asked {
    first: AtomicI32,
    times: AtomicU32,
    last_ms: AtomicU64,
}

impl Asked {
    /// Counts a request and returns its ordinal (1, 2, 3); 0 for a duplicate.
    fn count_request(&self, signal: i32) -> u32 {
        let now = clock::awake_ms();
        let last = self.last_ms.swap(now, Ordering::Relaxed);
        let is_first =
            self.first.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_first || now.saturating_sub(last) >= ONE_REQUEST_MS {
            return self.times.fetch_add(1, Ordering::Relaxed) + 1;
        }
        0
    }

    fn exit_code(&self) -> u8 {
        128 + u8::try_from(self.first.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

/// Signals a whole group by its leader's id. A group that is gone is not an error.
pub fn signal_group(leader: i32, signal: Signal) {
    // 0 would signal this process's own group, and 1 every process.
    if let Some(leader) = Pid::from_raw(leader).filter(|leader| leader.as_raw_nonzero().get() > 1) {
        let _ = kill_process_group(leader, signal);
        // A stopped process does not handle TERM until it continues.
        if signal == Signal::TERM {
            let _ = kill_process_group(leader, Signal::CONT);
        }
    }
}

/// Signals this process, not a later one with the same id.
pub fn signal_process(pid: i32, started: &str, signal: Signal) {
    let is_it = read_row(pid).is_some_and(|row| row.started == started);
    if let Some(process) = Pid::from_raw(pid)
        && is_it
        && pid > 1
    {
        let _ = kill_process(process, signal);
        if signal == Signal::TERM {
            let _ = kill_process(process, Signal::CONT);
        }
    }
}

/// Asks a process to end cleanly.
pub fn ask_to_end(process: &ProcessIdentity) {
    signal_process(process.pid, &process.started, Signal::TERM);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_counts_and_an_echo_of_the_first_does_not() {
        let signals = Signals::default();
        assert_eq!((signals.times(), signals.exit_code()), (0, None));
        signals.0.count_request(SIGHUP);
        signals.0.count_request(SIGHUP);
        assert_eq!((signals.times(), signals.exit_code()), (1, Some(129)));
        let earlier = clock::awake_ms().saturating_sub(ONE_REQUEST_MS);
        signals.0.last_ms.store(earlier, Ordering::Relaxed);
        signals.0.count_request(SIGINT);
        assert_eq!((signals.times(), signals.exit_code()), (2, Some(129)));
    }

    #[test]
    fn an_interrupt_is_counted_and_does_not_end_the_process() {
        crate::process::fixture::run_alone(|| {
            let signals = Signals::listen().unwrap();
            signal_hook::low_level::raise(SIGINT).unwrap();
            assert_eq!((signals.times(), signals.exit_code()), (1, Some(130)));
        });
    }
}

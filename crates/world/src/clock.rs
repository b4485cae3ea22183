//! The only clock and the only sleep. It reads two clocks: wall time for dates, and the time this
//! machine was awake for durations, so that a closed laptop uses up none of a loop's time.
#![expect(clippy::disallowed_methods, reason = "this is the one clock")]

use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, FixedOffset, Local, TimeDelta, Utc};
use rustix::time::{ClockId, clock_gettime};

use super::fault;
use engine::record::Moment;

/// The current time on both clocks. `Utc::now` would panic on a machine whose clock is before 1970.
pub fn now() -> Moment {
    let wall = DateTime::<Utc>::from(SystemTime::now()) + fault::clock_jump();
    Moment { wall, awake_ms: awake_ms() }
}

/// The current time in the user's time zone.
pub fn local_time() -> DateTime<FixedOffset> {
    DateTime::<Local>::from(SystemTime::now()).fixed_offset() + fault::clock_jump()
}

/// When a wait after a crash ends: `due`, or earlier in a test.
pub fn after_a_crash(due: DateTime<Utc>) -> DateTime<Utc> {
    let most = fault::read_number("CREW_BACK_OFF_MS").map(TimeDelta::milliseconds);
    most.map_or(due, |most| due.min(now().wall + most))
}

/// Milliseconds that this machine was awake. A signal handler may call this.
pub fn awake_ms() -> u64 {
    read_milliseconds(ClockId::Monotonic)
}

/// Milliseconds since boot, including sleep. Process start times are given on this clock.
pub fn since_boot_ms() -> u64 {
    #[cfg(target_os = "linux")]
    return read_milliseconds(ClockId::Boottime);
    #[cfg(not(target_os = "linux"))]
    read_milliseconds(ClockId::Monotonic)
}

fn read_milliseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000
        + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

/// Sleeps. Callers pass short steps and check their conditions between them.
pub fn sleep(step: Duration) {
    std::thread::sleep(step);
}

/// A point in time that a wait must not pass.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline that is `within` from now.
    pub fn after(within: Duration) -> Self {
        Self(Instant::now() + within)
    }

    /// The time left; zero when the deadline has passed.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether the deadline has passed.
    pub fn passed(self) -> bool {
        self.left().is_zero()
    }

    /// Whether `is_ready`, called every `step`, returns true before the deadline has passed.
    pub fn poll_until(self, step: Duration, mut is_ready: impl FnMut() -> bool) -> bool {
        self.poll(step, || if is_ready() { Some(()) } else { None }).is_some()
    }

    /// Calls `ready` every `step` until it returns something or the deadline has passed.
    pub fn poll<T>(self, step: Duration, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            if let Some(value) = ready() {
                return Some(value);
            }
            let left = self.left();
            if left.is_zero() {
                return None;
            }
            sleep(step.min(left));
        }
    }
}

/// How often a failed operation is tried again, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// The time from the first attempt to the last; `None` means no limit.
    within: Option<Duration>,
    first_pause: Duration,
    longest_pause: Duration,
}

impl RetryPolicy {
    /// A policy with the same pause after each attempt.
    pub const fn every(pause: Duration, within: Duration) -> Self {
        Self::growing(pause, pause).within(within)
    }

    /// A policy without a time limit, in which each pause is twice as long as the one before.
    pub const fn growing(first_pause: Duration, longest_pause: Duration) -> Self {
        Self { within: None, first_pause, longest_pause }
    }

    /// The policy with this time limit.
    pub const fn within(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }
}

/// The longest time between two calls of `stop` in [`retry`] while it pauses.
const STOP_LOOK: Duration = Duration::from_millis(100);

/// Calls `operation` until it succeeds. Returns its last error when the time limit has passed or
/// `stop` returns true. For an error that a retry would not help, return `Ok(Err(error))`.
pub fn retry<T, E>(
    policy: RetryPolicy,
    mut stop: impl FnMut() -> bool,
    mut operation: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let deadline = policy.within.map(Deadline::after);
    let mut pause = policy.first_pause;
    loop {
        let result = operation();
        let left = deadline.map_or(Duration::MAX, Deadline::left);
        if result.is_ok() || left.is_zero() {
            return result;
        }
        if Deadline::after(pause.min(left)).poll_until(STOP_LOOK, &mut stop) {
            return result;
        }
        pause = (pause * 2).min(policy.longest_pause);
    }
}

/// Measures a duration.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since the start.
    pub fn elapsed_ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The maximum that one call of [`Watched::look`] adds to the time.
const LOOK_MOST: Duration = Duration::from_secs(1);

/// Adds up the time between calls of [`Watched::look`], which come many times a second. Time in
/// which the machine sleeps is not counted. A longer gap, in which this process was stopped or kept
/// waiting, counts as one second: unwatched time must not count against anything.
#[derive(Debug)]
pub struct Watched {
    last: Instant,
    total: Duration,
    missed: Duration,
}

impl Watched {
    /// Starts now.
    pub fn start() -> Self {
        Self { last: Instant::now(), total: Duration::ZERO, missed: Duration::ZERO }
    }

    /// The time watched so far.
    pub fn look(&mut self) -> Duration {
        let now = Instant::now();
        let gap = now.saturating_duration_since(self.last);
        let watched = gap.min(LOOK_MOST);
        self.total += watched;
        self.missed += gap.saturating_sub(watched);
        self.last = now;
        self.total
    }

    /// The time that passed unwatched, without the machine's sleep.
    pub fn missed_time(&self) -> Duration {
        self.missed
    }
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;

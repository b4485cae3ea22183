//! The only clock and the only sleep. Two clocks are read: the wall for dates, and the time this machine
//! was awake for durations, so a laptop's closed lid costs a loop nothing.
#![expect(clippy::disallowed_methods, reason = "this is the one clock")]

use std::time::{Duration, Instant};

use chrono::{DateTime, FixedOffset, Local, Utc};
use rustix::time::{ClockId, clock_gettime};

use super::fault;
use crate::engine::record::moment::Moment;

/// Now, on both clocks.
pub fn now() -> Moment {
    Moment { wall: Utc::now() + fault::clock_jump(), awake_ms: awake_ms() }
}

/// Now, on the clock of the user's own wall.
pub fn local() -> DateTime<FixedOffset> {
    Local::now().fixed_offset() + fault::clock_jump()
}

/// Milliseconds this machine was awake. A signal's handler may ask.
pub fn awake_ms() -> u64 {
    milliseconds(ClockId::Monotonic)
}

/// Milliseconds since boot, asleep or awake: the clock that process start times are given in.
pub fn since_boot_ms() -> u64 {
    #[cfg(target_os = "linux")]
    return milliseconds(ClockId::Boottime);
    #[cfg(not(target_os = "linux"))]
    milliseconds(ClockId::Monotonic)
}

fn milliseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000
        + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

/// Sleeps; callers pass short steps and look around between them.
pub fn sleep(step: Duration) {
    std::thread::sleep(step);
}

/// A point in time that a wait must not pass.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// `within` from now.
    pub fn after(within: Duration) -> Self {
        Self(Instant::now() + within)
    }

    /// What is left; zero when it has passed.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        self.left().is_zero()
    }

    /// Tries every `step` until `ready` gives something or the time is over.
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

/// The most that one look adds to a [`Watched`] time.
const LOOK_MOST: Duration = Duration::from_secs(1);

/// Adds up the time between looks that come many times a second. Sleep of the machine is not counted, and of
/// a longer gap, in which this process itself was stopped or kept waiting, one second is: what it did not
/// watch it holds against nobody.
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

    /// The time that passed and was not watched; the machine's sleep is none of it.
    pub fn missed(&self) -> Duration {
        self.missed
    }
}

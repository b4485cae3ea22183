//! Deliberate faults for the tests that break the store at each of its write points and move the
//! wall clock. A release build obeys none of them.

/// The points at which a write may be cut off, in the order in which a boundary passes them;
/// then those of a removal.
pub const POINTS: [&str; 14] = [
    "journal.open",
    "journal.write",
    "journal.sync",
    "write.open",
    "write.data",
    "write.sync",
    "write.rename",
    "write.folder",
    "record.between",
    "record.after",
    "answer",
    "remove.taken",
    "remove.pointers",
    "remove.snapshots",
];

/// Fails or kills the process here if the variable `CREW_FAULT` says so: `<point>=kill`, or
/// `<point>=28` (an error number). `#n` after the point selects the n-th time it is passed.
pub fn point(name: &'static str) -> std::io::Result<()> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: [AtomicU32; POINTS.len()] = [const { AtomicU32::new(0) }; POINTS.len()];
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    delay();
    let Some(order) = super::env::text("CREW_FAULT") else { return Ok(()) };
    let Some((place, what)) = order.split_once('=') else { return Ok(()) };
    let (wanted, nth) = place.split_once('#').unwrap_or((place, "1"));
    let Some(index) = POINTS.iter().position(|point| *point == name) else { return Ok(()) };
    let passed = PASSED[index].fetch_add(1, Ordering::Relaxed) + 1;
    if wanted != name || nth.parse() != Ok(passed) {
        return Ok(());
    }
    match what.parse() {
        Ok(number) => Err(std::io::Error::from_raw_os_error(number)),
        Err(_) => die(),
    }
}

/// Ends this process at once, as a crash would.
fn die() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}

/// Sleeps a random time of at most `CREW_DELAY_MS` milliseconds, to provoke races.
#[expect(clippy::disallowed_methods, reason = "the clock asks this file for its jump")]
fn delay() {
    if let Some(most) = number::<u64>("CREW_DELAY_MS").filter(|most| *most > 0) {
        let share = super::env::random() % most / POINTS.len() as u64;
        std::thread::sleep(std::time::Duration::from_millis(share));
    }
}

/// A test's number in a variable; a release build reads none.
fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    if cfg!(debug_assertions) { super::env::text(name)?.parse().ok() } else { None }
}

/// Panics here if a test says so: `CREW_PANIC=<place>`.
pub fn panic_at(place: &str) {
    let is_wanted = || super::env::text("CREW_PANIC").is_some_and(|wanted| wanted == place);
    assert!(!cfg!(debug_assertions) || !is_wanted(), "a test asked for this panic at {place}");
}

/// How far a test has moved the wall clock: `CREW_CLOCK_OFFSET_MS`, in milliseconds.
pub fn clock_jump() -> chrono::TimeDelta {
    chrono::TimeDelta::milliseconds(number("CREW_CLOCK_OFFSET_MS").unwrap_or(0))
}

/// How long a child has between TERM and KILL: `usual`, or a test's `CREW_GRACE_MS`.
pub fn grace(usual: std::time::Duration) -> std::time::Duration {
    number("CREW_GRACE_MS").map_or(usual, std::time::Duration::from_millis)
}

/// The longest wait after a crash, if a test sets `CREW_BACK_OFF_MS`.
pub fn back_off() -> Option<chrono::TimeDelta> {
    number("CREW_BACK_OFF_MS").map(chrono::TimeDelta::milliseconds)
}

/// How long a closed agent may stay: `usual`, or a test's `CREW_LINGER_MS`.
pub fn linger(usual: std::time::Duration) -> std::time::Duration {
    number("CREW_LINGER_MS").map_or(usual, std::time::Duration::from_millis)
}

/// How long a lease may stand still before its attempt counts as gone: `usual`, or a test's
/// `CREW_STALE_MS`, in milliseconds.
pub fn stale_ms(usual: u64) -> u64 {
    number("CREW_STALE_MS").unwrap_or(usual)
}

/// How long a line of the demo stays: `usual`, or a test's `CREW_STAY_MS`.
pub fn stay(usual: std::time::Duration) -> std::time::Duration {
    number("CREW_STAY_MS").map_or(usual, std::time::Duration::from_millis)
}

//! Deliberate faults for tests that interrupt the store at each of its write points, or move the
//! wall clock. A release build ignores all of them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The points at which a write may be interrupted: first those of a boundary, in order, then those
/// of a removal.
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
/// `<point>=28` (an error number). `#n` after the point selects its n-th call.
pub fn point(name: &'static str) -> std::io::Result<()> {
    // How often the test's point was passed.
    static PASSED: AtomicU32 = AtomicU32::new(0);
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    sleep_randomly();
    let Some(setting) = super::env::text("CREW_FAULT") else { return Ok(()) };
    let Some((place, what)) = setting.split_once('=') else { return Ok(()) };
    let (wanted, nth) = place.split_once('#').unwrap_or((place, "1"));
    if wanted != name || nth.parse() != Ok(PASSED.fetch_add(1, Ordering::Relaxed) + 1) {
        return Ok(());
    }
    match what.parse() {
        Ok(number) => Err(std::io::Error::from_raw_os_error(number)),
        Err(_) => end_process(),
    }
}

/// Ends this process immediately, as a crash would.
fn end_process() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}

/// Sleeps a random time of at most `CREW_DELAY_MS` milliseconds, to provoke races.
#[expect(clippy::disallowed_methods, reason = "the clock asks this file for its jump")]
fn sleep_randomly() {
    if let Some(most @ 1..) = read_number::<u64>("CREW_DELAY_MS") {
        let share = super::env::random_number() % most / POINTS.len() as u64;
        std::thread::sleep(Duration::from_millis(share));
    }
}

/// The number that a test has set in a variable; a release build reads none.
pub fn read_number<T: std::str::FromStr>(name: &str) -> Option<T> {
    if cfg!(debug_assertions) { super::env::text(name)?.parse().ok() } else { None }
}

/// Panics here if a test asks for it: `CREW_PANIC=<place>`.
pub fn panic_at(place: &str) {
    let is_wanted =
        cfg!(debug_assertions) && super::env::text("CREW_PANIC").as_deref() == Some(place);
    assert!(!is_wanted, "a test asked for this panic at {place}");
}

/// How far a test has moved the wall clock: `CREW_CLOCK_OFFSET_MS`, in milliseconds.
pub fn clock_jump() -> chrono::TimeDelta {
    chrono::TimeDelta::milliseconds(read_number("CREW_CLOCK_OFFSET_MS").unwrap_or(0))
}

/// The length of a wait: `usual`, or as many milliseconds as the variable of a test says.
pub fn wait_time(variable: &str, usual: Duration) -> Duration {
    read_number(variable).map_or(usual, Duration::from_millis)
}

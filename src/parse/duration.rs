//! A duration as people write it: a number with its unit, or several. A bare number is refused,
//! because its unit would be a guess.

use std::time::Duration;

/// The longest text that is read as a duration, in bytes.
const MAX_DURATION_BYTES: usize = 64;
/// The longest duration; a longer one is a typing error.
const MAX_DURATION: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// Reads a duration of one second to ten years, or 0. The error says what is expected instead.
pub fn parse(text: &str) -> Result<Duration, &'static str> {
    let wanted = "a time with its unit, such as 90m, 12h or \"1h 30m\"";
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte == b'0') {
        return Ok(Duration::ZERO);
    }
    if text.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(wanted);
    }
    // The crate's addition can overflow and panic; numbers this short cannot cause that.
    let longest = text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
    if text.len() > MAX_DURATION_BYTES || longest > 9 {
        return Err("a time of at most ten years");
    }
    let duration = humantime::parse_duration(text).map_err(|_| wanted)?;
    if duration > MAX_DURATION {
        return Err("a time of at most ten years");
    }
    if !duration.is_zero() && duration < Duration::from_secs(1) {
        return Err("a time of at least a second");
    }
    Ok(duration)
}

/// Whole seconds, rounded up: a limit of less than a second must not become 0, which means none.
pub fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

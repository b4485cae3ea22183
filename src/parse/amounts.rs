//! Amounts as a person types them: dollars, tokens in thousands and millions, sizes, durations with
//! their units. It refuses an amount it would have to guess.

use std::time::Duration;

/// US dollars, with or without the sign: `5`, `2.50`, `$2.50`.
pub fn dollars(text: &str) -> Option<f64> {
    let text = text.strip_prefix('$').unwrap_or(text);
    let is_decimal = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|dollars: &f64| is_decimal && dollars.is_finite())
}

/// Millionths of a dollar. An amount below one millionth becomes one, because 0 would mean no
/// limit.
pub fn micros(dollars: f64) -> u64 {
    let micros = whole((dollars * 1e6).round());
    if dollars > 0.0 { micros.max(1) } else { 0 }
}

/// A number without its fraction, never below zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to what fits")]
pub fn whole(number: f64) -> u64 {
    number as u64
}

/// A number of tokens; `k` means thousands and `M` millions.
pub fn tokens(text: &str) -> Option<u64> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let number = self::digits(digits).and_then(|digits| digits.parse::<u64>().ok());
    number.and_then(|number| number.checked_mul(factor))
}

/// A part of a whole: `80%`, `80`.
pub fn percent(text: &str) -> Option<u64> {
    let number = digits(text.strip_suffix('%').unwrap_or(text))?.parse().ok()?;
    Some(number).filter(|percent| *percent <= 100)
}

/// A size with its unit, which only 0 may omit: `500MiB`, `2 GB`, `10B`.
pub fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 10] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
    ];
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .or_else(|| (text == "0").then_some((text, 0)))?;
    let number = digits(number.trim_end())?.parse::<u64>().ok()?;
    number.checked_mul(factor)
}

/// The text, if it consists of digits only.
pub fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// The longest text that is read as a duration, in bytes.
const MAX_DURATION_BYTES: usize = 64;
/// The longest duration; a longer one is a typing error.
const MAX_DURATION: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// Reads a duration of one second to ten years, or 0. The error says what is expected instead.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_kept_to_the_millionth_and_never_become_no_limit() {
        let table = [
            ("5", Some(5_000_000)),
            ("$2.50", Some(2_500_000)),
            ("0.0000001", Some(1)),
            ("0", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("1e3", None),
            (".5", None),
            ("5.", None),
            ("1.2.3", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(dollars(text).map(micros), expected, "{text}");
        }
    }

    #[test]
    fn a_size_has_its_unit() {
        let table = [
            ("2GiB", Some(2 << 30)),
            ("500 MiB", Some(500 << 20)),
            ("3kB", Some(3000)),
            ("10B", Some(10)),
            ("0", Some(0)),
            ("500", None),
            ("GiB", None),
            ("1.5GiB", None),
            ("99999999999TiB", None),
        ];
        for (text, expected) in table {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}

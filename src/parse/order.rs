//! The one line of the `cancel` and `pause` files: `<time> <user|agent> <reason>`. The format never
//! changes, so that any version of crew can write it and every version must obey it.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::engine::record::Actor;
use crate::engine::text::start;

/// A request as its file holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLine {
    pub by: Actor,
    pub reason: Option<String>,
}

/// Writes the line.
pub fn write(at: DateTime<Utc>, by: Actor, reason: Option<&str>) -> String {
    let reason: Vec<&str> = reason.unwrap_or_default().split_whitespace().collect();
    let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let line = format!("{at} {} {}", by.label(), reason.join(" "));
    format!("{}\n", line.trim_end())
}

/// Reads the line. The file's existence is the request: junk is a request by the user without a
/// reason.
pub fn read(text: &str) -> RequestLine {
    let mut words = text.lines().next().unwrap_or_default().splitn(3, ' ');
    let _time = words.next();
    let is_agent = words.next() == Some(Actor::Agent.label());
    let by = if is_agent { Actor::Agent } else { Actor::User };
    let reason = words.next().map(str::trim).filter(|reason| !reason.is_empty());
    RequestLine { by, reason: reason.map(|reason| start(reason, 500).to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_reads_back_and_junk_is_still_an_order() {
        let at = DateTime::from_timestamp(1_795_000_000, 0).unwrap();
        let line = write(at, Actor::Agent, Some("wrong\nbranch "));
        assert_eq!(line, "2026-11-18T11:06:40Z agent wrong branch\n");
        let expected = RequestLine { by: Actor::Agent, reason: Some("wrong branch".to_owned()) };
        assert_eq!(read(&line), expected);
        for junk in ["", "\n", "x", "\u{0}\u{0}"] {
            assert_eq!(read(junk), RequestLine { by: Actor::User, reason: None });
        }
    }
}

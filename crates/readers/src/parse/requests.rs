//! Short requests to a loop: a message to crew while the agent works, the line of a request's file,
//! the words after a handoff, and the iterations to show. Only a message that consists of nothing
//! else counts. It does not know which loops exist.

use chrono::{DateTime, SecondsFormat, Utc};
use derive_getters::Getters;
use serde::Serialize;

use engine::record::{Actor, LoopId};
use engine::text::{text_start, variant_name};

/// A message that crew carries out.
#[derive(Getters, Debug, Clone, PartialEq, Eq)]
pub struct TypedRequest {
    request: SessionRequest,
    /// The first word after it, if it can be the id of a loop. If no loop has that id, the word is
    /// part of a reason, and a message to pause or for the status is for the agent.
    named: Option<LoopId>,
    words: Vec<String>,
}

/// The requested action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionRequest {
    Pause,
    Status,
    Cancel,
}

impl SessionRequest {
    const ALL: [Self; 3] = [Self::Pause, Self::Status, Self::Cancel];

    /// The word for it in a message and in a terminal.
    pub fn label(self) -> &'static str {
        variant_name(&self)
    }
}

impl TypedRequest {
    /// The reason of a cancel; `has_id` says that its first word is a loop's id.
    pub fn cancel_reason(&self, has_id: bool) -> Option<String> {
        let words = &self.words[usize::from(has_id && self.named.is_some())..];
        if words.is_empty() { None } else { Some(words.join(" ")) }
    }
}

/// Reads a message; `None` for everything that is for the agent.
pub fn parse_request(message: &str) -> Option<TypedRequest> {
    let message = message.trim();
    if message.lines().count() != 1 {
        return None;
    }
    let mut words = message.split_whitespace();
    if words.next() != Some("crew") {
        return None;
    }
    let verb = words.next()?;
    let request = SessionRequest::ALL.into_iter().find(|request| request.label() == verb)?;
    let words: Vec<String> = words.map(str::to_owned).collect();
    let named = words.first().and_then(|word| word.parse().ok());
    let may_have_words = request == SessionRequest::Cancel || (words.len() == 1 && named.is_some());
    let is_request = words.is_empty() || may_have_words;
    if is_request { Some(TypedRequest { request, named, words }) } else { None }
}

/// What follows a request, and perhaps an id, at the front of a message; `None` without one.
pub fn after_request(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("crew ")?;
    let rest = SessionRequest::ALL.iter().find_map(|known| rest.strip_prefix(known.label()))?;
    let id = rest.strip_prefix(' ').and_then(|rest| rest.split_at_checked(ID_BYTES));
    match id {
        Some((id, behind)) if id.parse::<LoopId>().is_ok() => Some(behind),
        _ => Some(rest),
    }
}

/// The length of a loop's id.
const ID_BYTES: usize = 8;

/// A request as its file contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLine {
    pub by: Actor,
    pub reason: Option<String>,
}

/// Writes the line of a request.
pub fn write_request(at: DateTime<Utc>, by: Actor, reason: Option<&str>) -> String {
    let reason: Vec<&str> = reason.unwrap_or_default().split_whitespace().collect();
    let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let line = format!("{at} {} {}", by.label(), reason.join(" "));
    format!("{}\n", line.trim_end())
}

/// Reads the line of a request. The file's existence is the request: junk is a request by the user
/// without a reason.
pub fn read_request(text: &str) -> RequestLine {
    let mut words = text.lines().next().unwrap_or_default().splitn(3, ' ');
    let _time = words.next();
    let is_agent = words.next() == Some(Actor::Agent.label());
    let by = if is_agent { Actor::Agent } else { Actor::User };
    let reason = words.next().map(str::trim).filter(|reason| !reason.is_empty());
    RequestLine { by, reason: reason.map(|reason| text_start(reason, 500).to_owned()) }
}

/// The word, in place of a reason, with which a pause also ends the running iteration.
const AT_ONCE: &str = "now";

/// Writes the line of a pause, which takes effect after the running iteration or immediately.
pub fn write_pause(at: DateTime<Utc>, by: Actor, at_once: bool) -> String {
    write_request(at, by, if at_once { Some(AT_ONCE) } else { None })
}

/// Whether the line requests an immediate pause.
pub fn is_pause_at_once(text: &str) -> bool {
    read_request(text).reason.as_deref() == Some(AT_ONCE)
}

/// The types that are recognized without quotes after them.
pub const KINDS: [&str; 5] = ["task", "phase", "review", "session", "blocked"];
/// The type of a page that names none.
const USUAL: &str = "task";

/// The type and the description. A known type, or any plain word before a quoted description, is
/// the type; otherwise it is `task`.
pub fn split_handoff(raw: &str) -> (&str, &str) {
    let raw = raw.trim();
    let (kind, description) = match raw.split_once(char::is_whitespace) {
        Some((kind, rest)) if KINDS.contains(&kind) => (kind, rest),
        Some((kind, rest)) if is_kind(kind) && rest.trim_start().starts_with('"') => (kind, rest),
        _ => (USUAL, raw),
    };
    let description = description.trim();
    let quoted = description.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    (kind, quoted.unwrap_or(description).trim())
}

/// Reads the kind and description of a handoff from the words of a shell, which has already
/// processed quotes. If `given` names the kind, all words are the description.
pub fn handoff_of_shell(given: Option<&str>, words: &[String]) -> (String, String) {
    let (kind, description) = match (given, words) {
        (Some(kind), words) => (kind, words),
        (None, [kind, rest @ ..]) if KINDS.contains(&&**kind) && !rest.is_empty() => {
            (&**kind, rest)
        }
        (None, words) => (USUAL, words),
    };
    (kind.to_owned(), description.join(" "))
}

/// Whether a word can be a type: a short plain word, because it becomes part of a file name.
pub fn is_kind(word: &str) -> bool {
    (1..=32).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Some iterations of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iterations {
    /// The changes of this iteration.
    One(u32),
    /// The changes from the end of one iteration to the end of another; 0 is the state before the
    /// first.
    Between(u32, u32),
}

/// Reads the word; `None` if it is not about iterations.
pub fn parse_iterations(word: &str) -> Option<Iterations> {
    match word.split_once("..") {
        None => word.parse().ok().map(Iterations::One),
        Some((from, to)) => Some(Iterations::Between(from.parse().ok()?, to.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request, the id it may name, and its reason both if a loop has that id and if none has.
    fn read(message: &str) -> Option<[String; 4]> {
        let typed = parse_request(message)?;
        let named = typed.named.as_ref().map(ToString::to_string).unwrap_or_default();
        let [with_id, without_id] =
            [true, false].map(|has_id| typed.cancel_reason(has_id).unwrap_or_default());
        Some([typed.request.label().to_owned(), named, with_id, without_id])
    }

    #[test]
    fn only_a_message_that_is_nothing_but_a_request_is_carried_out() {
        let table = [
            ("crew pause", Some(["pause", "", "", ""])),
            (" crew  status ", Some(["status", "", "", ""])),
            ("crew cancel", Some(["cancel", "", "", ""])),
            ("crew cancel wrong branch", Some(["cancel", "", "wrong branch", "wrong branch"])),
            ("crew pause please", None),
            ("please crew pause", None),
            ("crew pause\nand then", None),
            ("Crew pause", None),
            ("crew", None),
            ("crew resume", None),
            ("the crew cancels", None),
        ];
        for (message, expected) in table {
            assert_eq!(
                read(message),
                expected.map(|words| words.map(str::to_owned)),
                "{message:?}"
            );
        }
    }

    #[test]
    fn the_first_word_after_a_request_may_be_a_loops_id() {
        let id = "k3v9abcd";
        let table = [
            ("crew pause k3v9abcd", Some(["pause", id, "", id])),
            ("crew status k3v9abcd ", Some(["status", id, "", id])),
            ("crew cancel k3v9abcd", Some(["cancel", id, "", id])),
            (
                "crew cancel k3v9abcd wrong branch",
                Some(["cancel", id, "wrong branch", "k3v9abcd wrong branch"]),
            ),
            ("crew cancel the k3v9abcd", Some(["cancel", "", "the k3v9abcd", "the k3v9abcd"])),
            ("crew cancel k3v9", Some(["cancel", "", "k3v9", "k3v9"])),
            ("crew pause k3v9", None),
            ("crew pause k3v9abcd please", None),
            ("crew pause K3V9ABCD", None),
        ];
        for (message, expected) in table {
            assert_eq!(
                read(message),
                expected.map(|words| words.map(str::to_owned)),
                "{message:?}"
            );
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written_and_junk_still_counts_as_one() {
        let at = DateTime::from_timestamp(1_795_000_000, 0).unwrap();
        let line = write_request(at, Actor::Agent, Some("wrong\nbranch "));
        assert_eq!(line, "2026-11-18T11:06:40Z agent wrong branch\n");
        let expected = RequestLine { by: Actor::Agent, reason: Some("wrong branch".to_owned()) };
        assert_eq!(read_request(&line), expected);
        for junk in ["", "\n", "x", "\u{0}\u{0}"] {
            assert_eq!(read_request(junk), RequestLine { by: Actor::User, reason: None });
            assert!(!is_pause_at_once(junk));
        }
        for at_once in [true, false] {
            assert_eq!(is_pause_at_once(&write_pause(at, Actor::User, at_once)), at_once);
        }
    }

    #[test]
    fn a_type_is_split_from_a_description() {
        let table = [
            ("the parser is done", ("task", "the parser is done")),
            ("task the parser is done", ("task", "the parser is done")),
            ("review \"look at it\"", ("review", "look at it")),
            ("milestone \"one of three\"", ("milestone", "one of three")),
            ("\"the parser\"", ("task", "the parser")),
            ("", ("task", "")),
        ];
        for (raw, expected) in table {
            assert_eq!(split_handoff(raw), expected, "{raw}");
        }
    }

    #[test]
    fn the_first_word_typed_in_a_shell_is_the_type_if_it_is_known_and_more_words_follow() {
        let table: [(Option<&str>, &[&str], _, _); 7] = [
            (None, &["review", "look at it"], "review", "look at it"),
            (None, &["blocked", "on", "the", "schema"], "blocked", "on the schema"),
            (None, &["the", "parser", "is", "done"], "task", "the parser is done"),
            (None, &["review the parser"], "task", "review the parser"),
            (None, &["Review", "it"], "task", "Review it"),
            (None, &["review"], "task", "review"),
            (Some("milestone"), &["review", "it"], "milestone", "review it"),
        ];
        for (given, words, kind, description) in table {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let expected = (kind.to_owned(), description.to_owned());
            assert_eq!(handoff_of_shell(given, &words), expected, "{given:?} {words:?}");
        }
    }

    #[test]
    fn digits_are_an_iteration_and_any_other_word_is_a_loop() {
        let table = [
            ("4", Some(Iterations::One(4))),
            ("0..12", Some(Iterations::Between(0, 12))),
            ("k3v9", None),
            ("2..", None),
            ("..3", None),
            ("", None),
        ];
        for (word, expected) in table {
            assert_eq!(parse_iterations(word), expected, "{word:?}");
        }
    }
}

//! The notice that calls a person to a terminal: its words, and the code that each kind of terminal
//! takes. Foreign text in it is cleaned and shortened here.

use chrono::{DateTime, FixedOffset};

use super::line::status_line;
use engine::events::RunEvent;
use engine::record::{Loop, Outcome};
use engine::text::{clean_text, clip_line, one_line, quote_words};
use engine::view;

/// The longest notice, in characters.
const NOTICE_CHARS: usize = 200;
/// The shortest wait of a run that is worth a notice, in seconds.
const WAIT_NOTED_S: i64 = 60;

/// Looks up a variable's text; `None` if it is unset.
pub type TextLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The code that makes a terminal show a notice: OSC 777 for those that take it (VTE, foot, rxvt),
/// else OSC 9, which other terminals take or ignore. `None` for one that takes neither.
pub fn terminal_notice(text: &str, variable: TextLookup<'_>) -> Option<String> {
    let term = variable("TERM").unwrap_or_default();
    if matches!(&*term, "dumb" | "linux") {
        return None;
    }
    let text = clean_text(&one_line(&format!("crew: {text}"), NOTICE_CHARS));
    let takes_777 = term.starts_with("foot") || term.starts_with("rxvt");
    Some(if takes_777 || variable("VTE_VERSION").is_some() {
        // A semicolon would end the text.
        format!("\x1b]777;notify;crew;{}\x07", text.replace(';', ","))
    } else {
        format!("\x1b]9;{text}\x07")
    })
}

/// The notice that a loop has ended; `None` if the user ended it.
pub fn end_notice(subject: &Loop, at: DateTime<FixedOffset>) -> Option<String> {
    let why = subject.state.ending.as_ref()?.reason.to_string();
    let status = format!("loop {}: {}", subject.id, status_line(subject, at));
    match subject.outcome()? {
        Outcome::Cancelled => None,
        Outcome::Completed => Some(status),
        Outcome::Blocked => {
            Some(format!("loop {} needs you: {}", subject.id, clip_line(&why, 120)))
        }
        _ => Some(format!("{status}: {}", clip_line(&why, 120))),
    }
}

/// The notice that a loop waits for the model's service.
pub fn wait_notice(subject: &Loop, at: DateTime<FixedOffset>) -> String {
    format!("loop {}: {}", subject.id, status_line(subject, at))
}

/// The notice of a question that the agent has to decide itself.
pub fn question_notice(subject: &Loop) -> Option<String> {
    let last = subject.state.asked.last()?;
    let question = quote_words(&clip_line(&last.text, 120));
    Some(format!("loop {} asked {question}, told to decide", subject.id))
}

/// The notice of a dialog that waits.
pub fn dialog_notice(subject: &Loop, at: DateTime<FixedOffset>) -> Option<String> {
    let dialog = subject.state.session.dialog.as_ref()?;
    Some(format!("loop {} {}", subject.id, view::at_dialog(dialog, at)))
}

/// The notice for an event of a run, if it needs one.
pub fn event_notice(event: &RunEvent<'_>, now: DateTime<FixedOffset>) -> Option<String> {
    match *event {
        RunEvent::Finished { record, .. } => end_notice(record, now),
        RunEvent::Waiting(record) if record.state.transient_errors <= 1 => {
            let seconds = record.state.due?.signed_duration_since(now).num_seconds();
            if seconds < WAIT_NOTED_S - 1 { None } else { Some(wait_notice(record, now)) }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::fixture::{SetState, a_loop, at};
    use engine::record::{Ending, Status};

    #[test]
    fn each_terminal_gets_the_code_it_takes_and_none_that_the_text_brings() {
        let nine = Some("\u{1b}]9;crew: a; b\u{7}");
        let vte = Some("\u{1b}]777;notify;crew;crew: a, b\u{7}");
        let table = [
            (&[("TERM", "xterm-256color")][..], nine),
            (&[("TERM", "xterm-kitty"), ("TERM_PROGRAM", "ghostty")], nine),
            (&[("TERM", "foot")], vte),
            (&[("TERM", "rxvt-unicode-256color")], vte),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")], vte),
            (&[("TERM", "dumb")], None),
            (&[("TERM", "linux")], None),
        ];
        for (variables, expected) in table {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            for text in ["a; b", "a;\nb", "a;\u{1b}[2J b\u{7}", "\u{1b}]0;x\u{7}a; b\u{9c}"] {
                assert_eq!(
                    terminal_notice(text, &variable).as_deref(),
                    expected,
                    "{variables:?} {text:?}"
                );
            }
            let long = terminal_notice(&"long; ".repeat(1000), &variable);
            assert!(long.is_none_or(|notice| notice.chars().count() < NOTICE_CHARS + 30));
        }
    }

    fn ending(outcome: Outcome, why: &str) -> Loop {
        let mut subject = a_loop();
        subject.state.finish(Ending::new(outcome, why), 0);
        subject
    }

    #[test]
    fn a_notice_names_the_reason_of_an_end_unless_the_user_ended_it() {
        let table = [
            (Outcome::Completed, Some("loop haaaaaaa: completed after 0 iterations")),
            (Outcome::Blocked, Some("loop haaaaaaa needs you: no password")),
            (Outcome::Stalled, Some("loop haaaaaaa: stalled after 0 iterations: no password")),
            (Outcome::Cancelled, None),
        ];
        for (outcome, expected) in table {
            let now = at(0).wall.fixed_offset();
            assert_eq!(end_notice(&ending(outcome, "no password"), now).as_deref(), expected);
        }
    }

    #[test]
    fn only_the_first_long_wait_in_a_row_gets_a_notice() {
        let mut subject = a_loop();
        subject.state.set("status", Status::Waiting);
        for (seconds, errors, expected) in [(60, 1, true), (3600, 2, false), (5, 0, false)] {
            subject.state.set("due", Some(at(seconds).wall));
            subject.state.set("transient_errors", errors);
            let notice = event_notice(&RunEvent::Waiting(&subject), at(0).wall.fixed_offset());
            assert_eq!(notice.is_some(), expected, "{seconds} s, error {errors}");
        }
    }
}

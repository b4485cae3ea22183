//! Output of one line: the terms of a start, the result of a boundary, the status of a loop, worded
//! in `templates/line.j2`; and the notice that calls the user to a terminal, with the code for each
//! kind of terminal.

use super::words::{self, list_commands};
use chrono::{DateTime, FixedOffset};
use engine::boundary::limits;
use engine::evidence::describe_evidence;
use engine::record::{Check, Driver, Loop, Outcome, Question, Status};
use engine::text::{clean_text, clip_line, clock_time, count, one_line, quote_words};
use engine::view::events::RunEvent;
use engine::view::{self, LoopView, number_iteration, verdict_text};
use minijinja::context;
use readers::clients::{of_loop, resume_command_at};
use serde::Serialize;

/// A line about a loop.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopLine {
    /// The terms under which the loop starts.
    Start,
    /// The terms, in a session that takes over the loop.
    Resumed,
    /// The result of a boundary after which the loop continues.
    Boundary,
    /// A stop after which the loop does not continue immediately.
    Held,
    /// A reminder after a compaction.
    Reminded,
    /// A pause because the user interrupted the agent.
    BrokenOff,
    /// The cancel of a session's loop from elsewhere.
    CancelledElsewhere,
    /// An interrupted loop, in the first line of a new session.
    Interrupted,
    /// The loop's status, and the results of its last iteration.
    Changed,
}

/// Renders a line about a loop, read at the time `at`.
pub fn render_line(line: LoopLine, subject: &Loop, at: DateTime<FixedOffset>) -> String {
    let (limits, state) = (&subject.contract.limits, &subject.state);
    let evidence = state.seen().evidence().as_ref();
    let values = context! {
        line,
        id => subject.id,
        status => state.status(),
        standing => status_line(subject, at),
        why => state.end().ending().as_ref().map(|ending| ending.reason.to_string()),
        iteration => subject.iteration(),
        completed => state.counts().completed(),
        max => limits.max_iterations,
        counter => number_iteration(subject, state.counts().completed()),
        seen => evidence.map(|evidence| evidence.iteration),
        said => evidence.map(describe_evidence).unwrap_or_default(),
        in_a_row => in_a_row(subject),
        asked => asked_at_boundary(subject),
        cost => limits::cost_and_tokens(subject),
        in_force => limits::in_force(limits),
        done_when => done_when(subject),
        resume => of_loop(subject, "resume"),
        going_on => resume_command_at(state.owner(), subject),
    };
    words::render_row("line.j2", &values)
}

/// When a loop is done: "done when the agent says COMPLETE and `cargo test` passes".
pub fn done_when(subject: &Loop) -> String {
    let contract = &subject.contract;
    let all = passing_checks(&contract.checks);
    match (&contract.promise, contract.has_until()) {
        (Some(_), true) => format!("done when {all}; a claim alone ends nothing"),
        (None, true) => format!("done when {all}"),
        (Some(promise), false) if all.is_empty() => format!("done when the agent says {promise}"),
        (Some(promise), false) => format!("done when the agent says {promise} and {all}"),
        (None, false) if all.is_empty() => "runs to its limit".to_owned(),
        (None, false) => format!("runs to its limit; completed if {all} there"),
    }
}

/// The checks that have to pass: "`a` passes", "`a` and `b` pass and `c` gets no worse"; empty
/// without a check.
fn passing_checks(checks: &[Check]) -> String {
    let mut parts = Vec::new();
    for (no_worse, one, several) in
        [(false, "passes", "pass"), (true, "gets no worse", "get no worse")]
    {
        let checks = checks.iter().filter(|check| check.no_worse == no_worse);
        let runs: Vec<&str> = checks.map(|check| &*check.run).collect();
        if let Some(first) = runs.first() {
            let verb = if runs.iter().all(|run| run == first) { one } else { several };
            parts.push(format!("{} {verb}", list_commands(runs.into_iter())));
        }
    }
    parts.join(" and ")
}

/// The counts in a row: "2 of 3 failures", where three in a row abort the loop; "3 without
/// progress, 5 stall it".
pub fn in_a_row(subject: &Loop) -> Option<String> {
    let (state, limits) = (&subject.state, &subject.contract.limits);
    let (failures, still) =
        (state.counts().consecutive_failures(), state.counts().iterations_without_progress());
    match (limits.failure_threshold, limits.stall) {
        (1.., _) if failures > 0 => {
            Some(format!("{failures} of {}", count(limits.failure_threshold, "failure")))
        }
        (_, 1..) if still > 1 => {
            Some(format!("{still} without progress, {} stall it", limits.stall))
        }
        _ => None,
    }
}

/// When a loop pauses that was asked to while its agent works. In a session the turn is not judged:
/// the iteration runs again.
pub fn pausing_text(subject: &Loop) -> String {
    let iteration = subject.iteration();
    match subject.driver() {
        Driver::Session => format!("pauses when its turn ends; iteration {iteration} runs again"),
        Driver::Process => format!("pauses when iteration {iteration} ends"),
    }
}

/// The line for a prompt or a status bar: "crew 4/15 · $1.84", and a word if the loop is not
/// running.
pub fn short_line(view: &LoopView<'_>) -> String {
    let subject = view.record;
    let mut parts = vec![format!("crew {}", view.iteration_text())];
    parts.extend(match (subject.state.status(), subject.state.wait().due()) {
        _ if view.owner_is_gone => Some("owner gone".to_owned()),
        (Status::Running, _) => None,
        (Status::Waiting, Some(due)) => {
            Some(format!("waiting until {}", clock_time(due, view.now)))
        }
        _ => Some(subject.status_word().to_owned()),
    });
    parts.extend(subject.fallback_until(view.now));
    parts.extend(
        subject.state.work().usage().cost_text(subject.contract.limits.max_cost_micros > 0),
    );
    if view.is_pausing && !view.owner_is_gone {
        parts.push("pausing".to_owned());
    }
    if view.dialog.is_some() {
        parts.push("at a dialog".to_owned());
    }
    parts.join(" · ")
}

/// A loop's status: "running, iteration 4 of 15", "completed after 3 iterations, proof: checked".
pub fn status_line(subject: &Loop, at: DateTime<FixedOffset>) -> String {
    let proof = subject.state.end().ending().as_ref().and_then(|ending| ending.proof);
    let proof = proof.map(|proof| format!(", proof: {}", proof.label()));
    verdict_text(subject, at) + &proof.unwrap_or_default()
}

/// The maximum number of characters in a question on a line.
const LINE_CHARS: usize = 80;

/// The part of a boundary's line about the questions of the iteration that has just ended.
fn asked_at_boundary(subject: &Loop) -> Option<String> {
    let (state, completed) = (&subject.state, subject.state.counts().completed());
    let asked =
        state.exchange().asked().iter().filter(|question| question.iteration() == completed);
    let asked: Vec<&Question> = asked.collect();
    let last = asked.last()?;
    let question = quote_words(&clip_line(last.text(), LINE_CHARS));
    let more = match asked.len() {
        1 => String::new(),
        all => format!(" and {} more", all - 1),
    };
    let answer = last.example_answer();
    Some(format!("asked {question}{more}, told to decide · answer: crew tell \"{answer}\""))
}

/// The longest notice, in characters.
const NOTICE_CHARS: usize = 200;
/// The shortest wait of a run that is worth a notice, in seconds.
const WAIT_NOTED_S: i64 = 60;

/// Looks up a variable's text; `None` if it is unset.
pub type TextLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The code that makes a terminal show a notice: OSC 777 for those that support it (VTE, foot,
/// rxvt), else OSC 9, which other terminals support or ignore. `None` for one that supports
/// neither.
pub fn terminal_notice(text: &str, variable: TextLookup<'_>) -> Option<String> {
    let term = variable("TERM").unwrap_or_default();
    if matches!(&*term, "dumb" | "linux") {
        return None;
    }
    let text = clean_text(&one_line(&format!("crew: {text}"), NOTICE_CHARS));
    let takes_777 = term.starts_with("foot") || term.starts_with("rxvt");
    Some(if takes_777 || variable("VTE_VERSION").is_some() {
        // A semicolon would end the message.
        format!("\x1b]777;notify;crew;{}\x07", text.replace(';', ","))
    } else {
        format!("\x1b]9;{text}\x07")
    })
}

/// The notice that a loop has ended; `None` if the user ended it.
pub fn end_notice(subject: &Loop, at: DateTime<FixedOffset>) -> Option<String> {
    let why = subject.state.end().ending().as_ref()?.reason.to_string();
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
    let last = subject.state.exchange().asked().last()?;
    let question = quote_words(&clip_line(last.text(), 120));
    Some(format!("loop {} asked {question}, told to decide", subject.id))
}

/// The notice of a dialog that waits.
pub fn dialog_notice(subject: &Loop, at: DateTime<FixedOffset>) -> Option<String> {
    let dialog = subject.state.session().dialog.as_ref()?;
    Some(format!("loop {} {}", subject.id, view::at_dialog(dialog, at)))
}

/// The notice for an event of a run, if it needs one.
pub fn event_notice(event: &RunEvent<'_>, now: DateTime<FixedOffset>) -> Option<String> {
    match *event {
        RunEvent::Finished { record, .. } => end_notice(record, now),
        RunEvent::Waiting(record) if record.state.counts().transient_errors() <= 1 => {
            let seconds = record.state.wait().due()?.signed_duration_since(now).num_seconds();
            if seconds < WAIT_NOTED_S - 1 { None } else { Some(wait_notice(record, now)) }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use engine::record::Role;
    use insta::assert_snapshot;

    use super::*;
    use engine::boundary::judge::judge_boundary;
    use engine::claim::Claim;
    use engine::evidence::Verdict;
    use engine::fixture::{SetState, a_loop, a_loop_with, at, facts, result};
    use engine::usage::{Money, Tokens, Usage};

    fn start(subject: &Loop) -> String {
        render_line(LoopLine::Start, subject, at(0).wall.fixed_offset())
    }

    fn boundary(subject: &Loop) -> String {
        render_line(LoopLine::Boundary, subject, at(0).wall.fixed_offset())
    }

    #[test]
    fn a_start_names_the_limits_what_done_means_and_how_to_stop() {
        let checks = [("cargo test", Role::Verify), ("cargo clippy", Role::Gate)];
        assert_snapshot!(start(&a_loop_with(&checks)), @"loop haaaaaaa: up to 10 iterations, 12h · done when the agent says COMPLETE and `cargo test` and `cargo clippy` pass · stop: Esc, or crew cancel in any terminal");
        let mut unbounded = a_loop_with(&[("test -e done", Role::Until)]);
        unbounded.contract.limits.max_iterations = 0;
        unbounded.contract.promise = None;
        assert_snapshot!(start(&unbounded), @"loop haaaaaaa: unlimited iterations, up to 12h, 3 failures in a row abort, 5 iterations without progress stall · done when `test -e done` passes · stop: Esc, or crew cancel in any terminal");
        let both = a_loop_with(&[("cargo test", Role::Verify), ("test -e done", Role::Until)]);
        assert_snapshot!(done_when(&both), @"done when `cargo test` and `test -e done` pass; a claim alone ends nothing");
        let mut checked = a_loop_with(&checks);
        checked.contract.checks[1].no_worse = true;
        assert_snapshot!(done_when(&checked), @"done when the agent says COMPLETE and `cargo test` passes and `cargo clippy` gets no worse");
        checked.contract.checks[1].no_worse = false;
        checked.contract.promise = None;
        assert_snapshot!(done_when(&checked), @"runs to its limit; completed if `cargo test` and `cargo clippy` pass there");
        checked.contract.checks.clear();
        assert_snapshot!(done_when(&checked), @"runs to its limit");
    }

    #[test]
    fn a_boundary_shows_the_cost_of_the_loop_and_its_limits() {
        let tokens = Tokens { input: 1_840_000, ..Tokens::default() };
        let mut subject = judge_boundary(&a_loop(), &facts(Claim::None)).after;
        let usage = Usage { tokens, cost: Money::from_micros(1_840_000), ..Usage::default() };
        subject.state.set("usage", usage);
        assert_snapshot!(boundary(&subject), @"crew 1/10 · files changed · $1.84 · crew pause, crew cancel");
        subject.contract.limits.max_cost_micros = 5_000_000;
        subject.contract.limits.max_tokens = 2_000_000;
        assert_snapshot!(boundary(&subject), @"crew 1/10 · files changed · $1.84 of $5.00, 1.8M of 2M tokens · crew pause, crew cancel");
        assert_snapshot!(limits::describe_limits(&subject.contract.limits), @"up to 10 iterations, 12h, $5.00, 2M tokens");
        subject.state.set("usage.unpriced", tokens);
        subject.state.set("usage.unpriced_models", vec!["strange-1".to_owned()]);
        assert_snapshot!(boundary(&subject), @"crew 1/10 · files changed · $57.04 (no known price for strange-1: counted at the highest) of $5.00, 1.8M of 2M tokens · crew pause, crew cancel");
    }

    #[test]
    fn the_line_for_a_prompt_is_short() {
        let now = at(0).wall.fixed_offset();
        let mut subject = a_loop();
        let line = |subject: &Loop| short_line(&LoopView::from_record(subject, now));
        assert_snapshot!(line(&subject), @"crew 1/10");
        let gone = LoopView { owner_is_gone: true, ..LoopView::from_record(&subject, now) };
        assert_snapshot!(short_line(&gone), @"crew 1/10 · owner gone");
        subject.state.set("status", Status::Waiting);
        subject.state.set("due", Some(at(3600).wall));
        assert_snapshot!(line(&subject), @"crew 1/10 · waiting until 12:06");
        subject.state.set("status", Status::Paused);
        subject.contract.limits.max_iterations = 0;
        assert_snapshot!(line(&subject), @"crew 0 · paused");
    }

    #[test]
    fn a_boundary_gives_its_result_in_one_line() {
        let subject = a_loop_with(&[("cargo test", Role::Verify)]);
        let mut refused = facts(Claim::Success);
        refused.checks = vec![result("cargo test", Verdict::Failed)];
        assert_snapshot!(boundary(&judge_boundary(&subject, &refused).after), @"crew 1/10 · claim refused: cargo test failed (exit 1) · crew pause, crew cancel");
        assert_snapshot!(boundary(&judge_boundary(&a_loop(), &facts(Claim::None)).after), @"crew 1/10 · files changed · crew pause, crew cancel");
    }

    fn asking(questions: &[&str]) -> Loop {
        let mut subject = a_loop();
        let options = ["SMTP".to_owned(), "SES".to_owned()];
        let new = questions.iter().map(|text| Question::new(subject.iteration(), text, &options));
        subject.state.set("asked", new.collect::<Vec<_>>());
        subject
    }

    #[test]
    fn the_line_after_an_iteration_shows_its_last_question_and_how_to_answer() {
        let mut subject = judge_boundary(&asking(&["SES or SMTP?"]), &facts(Claim::None)).after;
        assert_snapshot!(asked_at_boundary(&subject).unwrap(), @r#"asked "SES or SMTP?", told to decide · answer: crew tell "SMTP""#);
        subject = judge_boundary(&subject, &facts(Claim::None)).after;
        assert_eq!(asked_at_boundary(&subject), None, "shown once");
        let two =
            judge_boundary(&asking(&["SES or SMTP?", "30 or 90 days?"]), &facts(Claim::None)).after;
        assert_snapshot!(asked_at_boundary(&two).unwrap(), @r#"asked "30 or 90 days?" and 1 more, told to decide · answer: crew tell "SMTP""#);
    }
}

#[cfg(test)]
mod notice_tests {
    use super::*;
    use engine::fixture::{SetState, a_loop, at};
    use engine::record::{Ending, Status};

    #[test]
    fn each_terminal_gets_its_notification_code_and_none_from_the_text() {
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

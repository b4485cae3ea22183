//! What is read from an agent's output, whichever agent it is, and the reader of plain text, whose
//! end is the final message: nothing else is read from it. Words before an error, a cut or more
//! work are never taken for a claim.

use chrono::{DateTime, FixedOffset};

use super::activity::{self, Activity, shown};
use super::service::ServiceWait;
use crate::engine::boundary::facts::{AgentClosing, AgentOutcome, ApiError, ProcessEnd};
use crate::engine::claim::promise::Promise;
use crate::engine::claim::{self, Claim};
use crate::engine::evidence::said::said;
use crate::engine::text::{end_bytes as end, plain};
use crate::engine::usage::Usage;

/// The result of reading an iteration's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The agent's last words, if no work followed them. At most the last 256 KiB.
    pub final_message: Option<String>,
    /// The last words, whatever followed: for people and for the next prompt, never judged.
    pub last_words: Option<String>,
    /// Whether the final message is the end of plain output, which may echo the prompt.
    pub may_echo: bool,
    /// `None` where the agent does not report it.
    pub usage: Option<Usage>,
    /// Set only by a structured event; text is never taken for an error.
    pub error: Option<ApiError>,
    /// What the agent's closing event says where the service did not fail.
    pub closing: AgentClosing,
    /// Tools that were denied, each once.
    pub denied: Vec<String>,
    /// The token limit cut the answer: it is neither a claim nor a failure, whatever the exit
    /// status.
    pub cut: bool,
    /// The agent's own limit on turns ended it: not a failure of its work, although it exits with
    /// 1.
    pub out_of_turns: bool,
    /// The model that worked, where the agent reports it.
    pub model: Option<String>,
    /// How many turns it took, where the agent reports it.
    pub turns: Option<u32>,
    /// How full its context was at most, where the agent reports it.
    pub context_percent: Option<u8>,
    /// The tokens of its fullest message, where the agent reports each.
    pub context_tokens: Option<u64>,
}

impl Report {
    /// What the agent claims. `Claim::None` if its answer was cut, the service failed, or the
    /// closing event is missing or reports an error: its last words are not its final message then.
    /// Also `Claim::None` if they echo the prompt or the task.
    pub fn claim(&self, prompt: &str, task: &str, promise: Option<&Promise>) -> Claim {
        let is_whole = !self.cut && self.error.is_none() && self.closing == AgentClosing::Plain;
        match &self.final_message {
            Some(message) if is_whole && self.may_echo => {
                claim::read_output(message, prompt, task, promise)
            }
            Some(message) if is_whole => claim::read_message(message, task, promise),
            _ => Claim::None,
        }
    }

    /// Whether the agent ended before it printed any event of its work.
    pub fn is_without_events(&self) -> bool {
        self.closing == AgentClosing::Missing
            && self.last_words.is_none()
            && self.model.is_none()
            && self.turns.is_none()
    }

    /// The same for an agent that crew ended because the service failed so: what it printed in its
    /// grace takes that back only with a closing event.
    pub fn ended_for(self, failure: Option<ApiError>) -> Self {
        let is_open = self.closing == AgentClosing::Missing;
        Self { error: self.error.or(failure.filter(|_| is_open)), ..self }
    }

    /// What the iteration used, given how its process ended. An agent that ended well without
    /// reporting anything never reports: `None`. If it ended otherwise, the use is only lost.
    pub fn used(&self, process: &ProcessEnd) -> Option<Usage> {
        let is_well = *process == ProcessEnd::Exit(0);
        let is_silent = |usage: &Usage| usage.lost && usage.tokens.total() == 0;
        self.usage.clone().filter(|usage| !(is_well && is_silent(usage)))
    }

    /// How the iteration ended, given how its process did. An exit only because the turns were used
    /// up is not a failure.
    pub fn outcome(&self, process: ProcessEnd) -> AgentOutcome {
        let process = match process {
            ProcessEnd::Exit(_) if self.out_of_turns => ProcessEnd::Exit(0),
            other => other,
        };
        AgentOutcome {
            process: Some(process),
            error: self.error.clone(),
            closing: self.closing.clone(),
            denied: self.denied.clone(),
            cut: self.cut,
            out_of_turns: self.out_of_turns,
            context_percent: self.context_percent,
            context_tokens: self.context_tokens,
            said: self.last_words.as_deref().or(self.final_message.as_deref()).and_then(said),
            ..AgentOutcome::default()
        }
    }
}

/// Reads one process's output as it comes. What it keeps is bounded whatever the output is.
pub trait OutputReader: std::fmt::Debug {
    /// Takes one line of standard output, without its line break; returns what it means.
    fn read(&mut self, line: &str) -> Vec<Activity>;

    /// The same, as text for a person.
    fn line(&mut self, line: &str) -> Option<String> {
        activity::text(&self.read(line))
    }

    /// Takes one line of standard error, where some agents say that they wait or why they end. It
    /// is never an event, and may be read late: that they wait counts only until the next event,
    /// and never after the closing one.
    fn read_error(&mut self, _line: &str) {}

    /// Takes the text of the file in which the agent leaves what it used, once it is over.
    fn read_usage(&mut self, _text: &str) {}

    /// Whether it only waits for the model's service, as it told last. `now` is on the user's
    /// clock.
    fn waits(&self, _now: DateTime<FixedOffset>) -> Option<ServiceWait> {
        None
    }

    /// Whether a tool call or a background task of the agent is open, so that silence counts as
    /// work. After its closing event only a call counts. Plain text never shows it.
    fn tool_is_open(&self) -> bool {
        false
    }

    /// Whether its closing event came and no work is left that it will return for: the process then
    /// has no reason to keep running.
    fn is_closed(&self) -> bool {
        false
    }

    /// The result, once the process is over. `now` is on the user's clock, which a service's
    /// message uses to name a reset.
    fn report(&mut self, now: DateTime<FixedOffset>) -> Report;
}

/// How much of the end of the output is kept, in bytes.
const KEPT_BYTES: usize = 64 * 1024;

/// The end of the output so far.
#[derive(Debug, Default)]
pub(super) struct Text {
    tail: String,
    /// What the agent prints before an answer.
    mark: Option<String>,
}

impl Text {
    pub(super) fn marked(mark: Option<String>) -> Self {
        Self { mark, ..Self::default() }
    }

    /// The line without the agent's own mark: where that is coloured, or on the first line.
    /// Elsewhere the same characters are the agent's words, such as a quote.
    fn unmarked<'line>(&self, line: &'line str) -> &'line str {
        let Some(mark) = &self.mark else { return line };
        let mut rest = line;
        while let Some((code, after)) =
            rest.strip_prefix("\x1b[").and_then(|code| code.split_once('m'))
            && code.bytes().all(|it| it.is_ascii_digit() || it == b';')
        {
            rest = after;
        }
        let is_decorated = rest.len() < line.len() || self.tail.trim().is_empty();
        rest.strip_prefix(mark.as_str()).filter(|_| is_decorated).unwrap_or(line)
    }
}

impl OutputReader for Text {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        // One line may be longer than everything that is kept.
        let words = end(self.unmarked(line), KEPT_BYTES);
        self.tail.push_str(words);
        self.tail.push('\n');
        // Cutting moves everything that is kept, so it happens rarely.
        if self.tail.len() > 2 * KEPT_BYTES {
            self.tail = end(&self.tail, KEPT_BYTES).to_owned();
        }
        vec![Activity::Printed(shown(line))]
    }

    fn report(&mut self, _now: DateTime<FixedOffset>) -> Report {
        let message = plain(end(&self.tail, KEPT_BYTES));
        let message = (!message.trim().is_empty()).then(|| message.trim_end().to_owned());
        Report {
            last_words: message.clone(),
            final_message: message,
            may_echo: true,
            ..Report::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::claim::NearMiss;
    use crate::engine::usage::Tokens;

    #[test]
    fn what_is_printed_in_the_grace_takes_the_failure_back_only_with_a_closing_event() {
        let failure = |message: &str| ApiError::Request { message: message.to_owned() };
        let (then, later) = (Some(failure("then")), Some(failure("later")));
        let table = [
            (AgentClosing::Missing, None, then.clone()),
            (AgentClosing::Missing, later.clone(), later),
            (AgentClosing::Plain, None, None),
            (AgentClosing::Failed(String::new()), None, None),
        ];
        for (closing, error, expected) in table {
            let report = Report { error, closing, ..Report::default() };
            assert_eq!(report.clone().ended_for(None), report);
            assert_eq!(report.ended_for(then.clone()).error, expected);
        }
    }

    #[test]
    fn an_exit_that_only_tells_of_used_up_turns_is_no_failure() {
        let cut = Report { cut: true, ..Report::default() };
        let out_of_turns = Report { out_of_turns: true, ..Report::default() };
        let denied = Report { denied: vec!["Bash".to_owned()], ..Report::default() };
        let table = [
            (&out_of_turns, ProcessEnd::Exit(1), ProcessEnd::Exit(0)),
            (&out_of_turns, ProcessEnd::TimedOut(60), ProcessEnd::TimedOut(60)),
            (&cut, ProcessEnd::Exit(1), ProcessEnd::Exit(1)),
            (&denied, ProcessEnd::Exit(1), ProcessEnd::Exit(1)),
        ];
        for (report, process, expected) in table {
            let end = report.outcome(process);
            assert_eq!((end.process, end.cut), (Some(expected), report.cut));
            assert_eq!(end.denied, report.denied);
        }
    }

    #[test]
    fn an_agent_that_ends_well_without_a_word_of_its_use_never_tells() {
        let of = |lost, input| {
            let tokens = Tokens { input, ..Tokens::default() };
            Some(Usage { tokens, lost, ..Usage::default() })
        };
        let table = [
            (of(true, 0), ProcessEnd::Exit(0), None),
            (of(true, 0), ProcessEnd::Exit(1), of(true, 0)),
            (of(true, 0), ProcessEnd::TimedOut(60), of(true, 0)),
            (of(true, 9), ProcessEnd::Exit(0), of(true, 9)),
            (of(false, 0), ProcessEnd::Exit(0), of(false, 0)),
            (None, ProcessEnd::Exit(1), None),
        ];
        for (usage, process, expected) in table {
            let report = Report { usage, ..Report::default() };
            assert_eq!(report.used(&process), expected, "{report:?} {process:?}");
        }
    }

    fn read(lines: &[&str]) -> Report {
        let mut reader = Text::default();
        for line in lines {
            reader.line(line);
        }
        assert!(!reader.tool_is_open());
        reader.report(DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap())
    }

    #[test]
    fn the_end_of_the_output_is_the_final_message_without_its_colours() {
        let report = read(&["one", "\x1b[32m<promise>COMPLETE</promise>\x1b[0m\r", "", " "]);
        assert_eq!(report.final_message.as_deref(), Some("one\n<promise>COMPLETE</promise>"));
        assert_eq!(report.claim("Go.", "Go.", Some(&Promise::default())), Claim::Success);
        assert_eq!(report.usage, None);
        assert_eq!(read(&[]).final_message, None);
        assert_eq!(read(&["\x1b[0m", ""]).final_message, None);
    }

    #[test]
    fn a_text_that_looks_like_an_error_is_text() {
        let report =
            read(&["API Error: 429 rate limit reached, resets 3pm", "{\"type\":\"error\"}"]);
        assert_eq!(report.error, None);
    }

    #[test]
    fn a_mark_of_the_agent_before_its_answer_does_not_make_the_answer_a_quote() {
        let table: [(&[&str], Claim); 4] = [
            (&["\x1b[38;5;141m> \x1b[0m<promise>COMPLETE</promise>"], Claim::Success),
            (&["> Done.", "<promise>COMPLETE</promise>"], Claim::Success),
            (
                &["> Reading.", "a tool", "\x1b[1m> \x1b[0mDone.", "<promise>COMPLETE</promise>"],
                Claim::Success,
            ),
            (&["> You said:", "> <promise>COMPLETE</promise>"], Claim::NearMiss(NearMiss::Quoted)),
        ];
        for (lines, expected) in table {
            let mut reader = Text::marked(Some("> ".to_owned()));
            for line in lines {
                reader.line(line);
            }
            let now = DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap();
            let claim = reader.report(now).claim("Go.", "Go.", Some(&Promise::default()));
            assert_eq!(claim, expected, "{lines:?}");
        }
    }

    #[test]
    fn only_the_end_is_kept_whatever_is_printed() {
        let mut reader = Text::default();
        let long = "é".repeat(3 * KEPT_BYTES);
        for _ in 0..100 {
            reader.line(&long);
            reader.line("x");
            assert!(reader.tail.len() <= 2 * KEPT_BYTES + KEPT_BYTES);
        }
        reader.line("the end");
        let now = DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap();
        let message = reader.report(now).final_message.unwrap();
        assert!(message.len() <= KEPT_BYTES && message.ends_with("é\nx\nthe end"));
    }
}

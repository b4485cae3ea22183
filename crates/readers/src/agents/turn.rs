//! The state that every reader of events keeps of its stream: the words, the open calls, the
//! failure of the service, the closing event. A reader says what an event of its agent means; this
//! file says what follows for the claim. Beyond a fixed number, further names are dropped.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::activity::{Activity, KEPT_BYTES, ToolCall, push_once, sanitize_text};
use super::service::{ServiceFailure, ServiceWait};
use engine::boundary::facts::{AgentClosing, AgentOutcome, ApiError, ProcessEnd};
use engine::claim::promise::Promise;
use engine::claim::{self, Claim};
use engine::evidence::said::extract_summary;
use engine::text::{end_bytes as end, text_start};
use engine::usage::{Tokens, Usage};

/// The longest name of a model kept, in characters.
const NAME_CHARS: usize = 200;
/// The maximum number of open calls that are remembered; beyond it the exact number does not
/// matter.
const OPEN_MAX: usize = 1000;
/// The longest name of open work remembered, in bytes; no agent uses a longer one.
const ID_BYTES: usize = 200;
/// After this many tries in a row, a failure that waiting cannot end counts as final.
const TRIES_IN_VAIN: u32 = 3;

/// The kinds of open work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A tool call whose result was not reported yet. At the end of a turn every call has ended.
    Tool,
    /// The agent's own work in the background.
    Task,
    /// A hook of the client.
    Hook,
}

/// What was started and not finished: its kind, its id, and the call where it is shown.
#[derive(Debug, Default)]
pub(super) struct OpenWork(Vec<(Work, String, Option<ToolCall>)>);

impl OpenWork {
    fn is_any(&self, kinds: &[Work]) -> bool {
        self.0.iter().any(|(kind, ..)| kinds.contains(kind))
    }

    pub(super) fn begin(&mut self, kind: Work, id: &str, call: Option<&ToolCall>) {
        if !id.is_empty() && id.len() <= ID_BYTES && self.0.len() < OPEN_MAX {
            self.end(kind, id);
            self.0.push((kind, id.to_owned(), call.cloned()));
        }
    }

    pub(super) fn end(&mut self, kind: Work, id: &str) {
        self.take_call(kind, id);
    }

    /// Removes an open item, and returns it if it is a call.
    fn take_call(&mut self, kind: Work, id: &str) -> Option<ToolCall> {
        let at = self.0.iter().position(|(of, open, _)| *of == kind && open == id)?;
        self.0.remove(at).2
    }

    pub(super) fn clear(&mut self, kind: Work) {
        self.0.retain(|(of, ..)| *of != kind);
    }
}

/// How the agent reacts to the service's failure.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// The agent reported no reaction.
    #[default]
    None,
    /// It pauses before it asks again, at most this long if that is known.
    Pauses(Option<Duration>),
    /// It asks the service again.
    Asks,
}

/// The model's words so far.
#[derive(Debug, Default)]
pub(super) struct SpokenWords {
    pub(super) text: Option<String>,
    /// Whether no work followed the words.
    pub(super) are_last: bool,
    /// Whether the words are the end of plain output, which may echo the prompt.
    pub(super) may_echo: bool,
    /// Words that are still arriving.
    growing: String,
}

/// How the model's service failed, and what the agent does about it.
#[derive(Debug, Default)]
pub(super) struct ServiceTrouble {
    pub(super) failure: Option<ServiceFailure>,
    /// Its report that it has no login, after which it ends without an event.
    no_login: Option<ServiceFailure>,
    retry: Retry,
    /// How many times in a row it reported a retry.
    tries: u32,
    /// How many tries in a row met a failure that waiting cannot end.
    tries_in_vain: u32,
    /// Whether crew must end the agent; no later event takes that back.
    pub(super) is_hopeless: bool,
}

/// The closing event of an agent.
#[derive(Debug, Default)]
pub(super) struct ClosingEvent {
    /// What the event reports; `None` until it arrives.
    outcome: Option<Result<(), String>>,
    /// Whether the event reports that more turns will follow.
    pub(super) is_queued: bool,
}

/// The state of an agent's work.
#[derive(Debug, Default)]
pub(super) struct AgentTurn {
    /// The agent's name, used for the model in sums where that is not reported.
    pub(super) name: String,
    /// The steps that the current line showed.
    seen: Vec<Activity>,
    /// The last call, if nothing has been shown since.
    last_call: Option<String>,
    pub(super) words: SpokenWords,
    pub(super) open: OpenWork,
    pub(super) service: ServiceTrouble,
    pub(super) closing: ClosingEvent,
    /// How it ended, as far as its events report.
    pub(super) end: AgentOutcome,
    model: Option<String>,
    pub(super) turns: u32,
    /// The usage, as far as it was reported.
    pub(super) usage: Option<Usage>,
    /// Whether any work began whose usage was not reported.
    pub(super) is_unreported: bool,
}

impl AgentTurn {
    /// The state of this agent's work before its first event.
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Shows these steps.
    pub(super) fn show_steps(&mut self, steps: impl IntoIterator<Item = Activity>) {
        for step in steps {
            self.last_call = None;
            self.seen.push(step);
        }
    }

    /// Shows what the agent's program reported.
    pub(super) fn show_note(&mut self, text: &str) {
        self.show_steps([Activity::Noted(sanitize_text(text))]);
    }

    /// Takes what was shown since the last call.
    pub(super) fn take_seen(&mut self) -> Vec<Activity> {
        std::mem::take(&mut self.seen)
    }

    /// Begins a turn of the model.
    pub(super) fn begin_turn(&mut self) {
        self.turns = self.turns.saturating_add(1);
        self.note_more_work();
    }

    /// Raises the context size to the tokens of this message, if they are more.
    pub(super) fn count_message(&mut self, tokens: Tokens) {
        self.end.context_tokens = self.end.context_tokens.max(Some(tokens.total()));
    }

    /// Stores the tokens of all work so far, at no known price.
    pub(super) fn set_tokens(&mut self, tokens: Tokens) {
        self.usage = Some(Usage::without_price(Some(tokens), &self.name));
        self.is_unreported = false;
    }

    /// The usage so far.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = match &self.usage {
            Some(usage) => usage.clone(),
            None => Usage::without_price(None, &self.name),
        };
        usage.lost |= self.is_unreported;
        usage
    }

    /// Stores the model's complete words and shows them.
    pub(super) fn add_words(&mut self, text: &str) {
        self.finish_words();
        if !text.trim().is_empty() {
            self.clear_failure();
            self.keep_words(text);
            self.show_steps([Activity::Said(sanitize_text(text.trim()))]);
        }
    }

    /// Stores words as the last ones, without showing them.
    pub(super) fn keep_words(&mut self, text: &str) {
        self.words.text = Some(end(text.trim(), KEPT_BYTES).to_owned());
        self.words.are_last = true;
    }

    /// Whether these are the most recent words.
    pub(super) fn has_said(&self, text: &str) -> bool {
        self.words.text.as_deref() == Some(end(text.trim(), KEPT_BYTES))
    }

    /// Adds the next part of the model's words.
    pub(super) fn add_part(&mut self, part: &str) {
        self.clear_failure();
        self.words.growing.push_str(end(part, KEPT_BYTES));
        // Cutting moves everything that is kept, so it happens rarely.
        if self.words.growing.len() > 2 * KEPT_BYTES {
            self.words.growing = end(&self.words.growing, KEPT_BYTES).to_owned();
        }
    }

    /// Completes the words that arrived in parts, because something else follows.
    pub(super) fn finish_words(&mut self) {
        let text = std::mem::take(&mut self.words.growing);
        if !text.trim().is_empty() {
            self.keep_words(&text);
            self.show_steps([Activity::Said(sanitize_text(text.trim()))]);
        }
    }

    /// Opens a call that is shown when it is over.
    pub(super) fn begin_call(&mut self, id: &str, call: Option<&ToolCall>) {
        self.clear_failure();
        self.words.are_last = false;
        self.open.begin(Work::Tool, id, call);
    }

    /// Opens a call and shows it.
    pub(super) fn show_call(&mut self, id: &str, call: ToolCall) {
        self.finish_words();
        self.begin_call(id, Some(&call));
        self.show_steps([Activity::Called(call)]);
        self.last_call = Some(id.to_owned());
    }

    /// Closes a call and shows its result.
    pub(super) fn end_call(&mut self, id: &str, output: &str, exit: Option<i64>, is_failure: bool) {
        if let Some(call) = self.take_call(id)
            && let Some(result) = call.render_result(output, exit, is_failure)
        {
            let is_next = self.last_call.as_deref() == Some(id);
            self.show_steps([Activity::Ended { call, result, is_next }]);
        }
    }

    fn take_call(&mut self, id: &str) -> Option<ToolCall> {
        self.finish_words();
        self.words.are_last = false;
        self.open.take_call(Work::Tool, id)
    }

    /// Closes a call that was not allowed. Uses the name in the call, or otherwise `tool`.
    pub(super) fn deny_call(&mut self, id: &str, tool: &str) {
        let call = self.take_call(id).map(|call| format!("{} {}", call.verb(), call.subject()));
        let what = call.unwrap_or_else(|| tool.to_owned());
        self.note_denial(&what);
        self.show_note(&format!("denied: {what}"));
    }

    /// Remembers a call that was not allowed.
    pub(super) fn note_denial(&mut self, what: &str) {
        push_once(&mut self.end.denied, what);
    }

    /// Notes that work followed the words or will follow them.
    pub(super) fn note_more_work(&mut self) {
        self.words.are_last = false;
        self.closing.outcome = None;
    }

    /// Forgets what failed before, because the service answered.
    pub(super) fn clear_failure(&mut self) {
        self.closing.outcome = None;
        self.end.cut = false;
        if !self.service.is_hopeless {
            (self.service.failure, self.service.retry) = (None, Retry::None);
            (self.service.tries, self.service.tries_in_vain) = (0, 0);
        }
    }

    /// Notes that the service failed and that the agent tries again, after `longest` at most if it
    /// reports no pause. Ignored after the closing event, because a line of standard error may be
    /// read late.
    pub(super) fn begin_retry(&mut self, failure: ServiceFailure, longest: Option<Duration>) {
        if self.closing.outcome.is_some() {
            return;
        }
        self.show_failure(&failure);
        self.service.tries = self.service.tries.saturating_add(1);
        let in_vain = self.service.tries_in_vain.saturating_add(1);
        self.service.tries_in_vain = if failure.is_for_good() { in_vain } else { 0 };
        self.service.is_hopeless |= self.service.tries_in_vain >= TRIES_IN_VAIN;
        self.service.retry = Retry::Pauses(longest);
        self.service.failure = Some(failure);
    }

    /// Whether the agent tries again after a failure.
    pub(super) fn is_retrying(&self) -> bool {
        self.service.retry != Retry::None
    }

    /// Notes that the agent asks the service again; the answer may take any time.
    pub(super) fn ask_again(&mut self) {
        if self.is_retrying() {
            self.service.retry = Retry::Asks;
        }
    }

    /// Notes that the service failed permanently.
    pub(super) fn set_failure(&mut self, failure: ServiceFailure) {
        self.finish_words();
        self.show_failure(&failure);
        (self.service.retry, self.end.cut) = (Retry::None, false);
        self.service.failure = Some(failure);
    }

    fn show_failure(&mut self, failure: &ServiceFailure) {
        let is_new =
            self.service.failure.as_ref().is_none_or(|last| last.sentence != failure.sentence);
        if is_new && !failure.sentence.trim().is_empty() {
            self.show_note(&failure.sentence);
        }
    }

    /// Notes that standard error reported a missing login.
    pub(super) fn note_missing_login(&mut self, words: &str) {
        self.service.no_login = Some(ServiceFailure::from_status(Some(401), words));
    }

    /// Records the closing event.
    pub(super) fn close_turn(&mut self, how: Result<(), String>) {
        self.finish_words();
        self.open.clear(Work::Tool);
        self.closing.outcome = Some(how);
    }

    /// Records a closing event that reports a permanent failure of the service.
    pub(super) fn close_with_failure(&mut self, failure: ServiceFailure) {
        self.set_failure(failure);
        self.close_turn(Ok(()));
    }

    /// Records a closing event that reports that the token limit truncated the answer.
    pub(super) fn close_cut(&mut self) {
        self.close_turn(Ok(()));
        self.end.cut = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        let is_any = self.open.is_any(&[Work::Tool, Work::Task, Work::Hook]);
        self.closing.outcome.is_some() && !self.closing.is_queued && !is_any
    }

    pub(super) fn tool_is_open(&self) -> bool {
        self.open.is_any(&[Work::Tool])
            || (self.closing.outcome.is_none() && self.open.is_any(&[Work::Task]))
    }

    pub(super) fn set_model(&mut self, model: Option<&str>) {
        if let Some(model) = model {
            self.model = Some(text_start(model, NAME_CHARS).to_owned());
        }
    }

    pub(super) fn service_wait(&self, now: DateTime<FixedOffset>) -> Option<ServiceWait> {
        if self.closing.outcome.is_some() || self.tool_is_open() {
            return None;
        }
        let failure = self.service.failure.as_ref()?;
        let pause = match self.service.retry {
            Retry::None => return None,
            Retry::Pauses(longest) => failure.pause(now).or(longest),
            Retry::Asks => Some(Duration::ZERO),
        };
        Some(ServiceWait {
            tries: self.service.tries,
            pause,
            is_hopeless: self.service.is_hopeless,
        })
    }

    /// Builds the report. A final message needs a closing event after it, and no failure.
    pub(super) fn report(&mut self, usage: Option<Usage>, now: DateTime<FixedOffset>) -> Report {
        self.finish_words();
        let mut agent = self.end.clone();
        if !agent.cut {
            let no_login =
                if self.closing.outcome.is_none() { self.service.no_login.as_ref() } else { None };
            let failure = self.service.failure.as_ref().or(no_login);
            agent.error = failure.map(|failure| failure.to_api_error(now));
        }
        agent.closing = match &self.closing.outcome {
            None if !agent.out_of_turns => AgentClosing::Missing,
            Some(Err(how)) if agent.error.is_none() && !agent.cut => {
                AgentClosing::Failed(how.clone())
            }
            _ => AgentClosing::Plain,
        };
        let is_final = self.words.are_last && agent.error.is_none() && !agent.out_of_turns;
        Report {
            final_message: if is_final { self.words.text.clone() } else { None },
            last_words: self.words.text.clone(),
            may_echo: self.words.may_echo,
            usage,
            agent,
            model: self.model.clone(),
            turns: if self.turns > 0 { Some(self.turns) } else { None },
        }
    }
}

// The part of reading an agent's output that all agents share. Words before an error, a truncation
// or further work are never treated as a claim.

/// The result of reading an iteration's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The agent's last words, if no work followed them. At most the last 256 KiB.
    pub final_message: Option<String>,
    /// The last words, whatever followed: for people and the next prompt, never judged as a claim.
    pub last_words: Option<String>,
    /// Whether the final message is the end of plain output, which may echo the prompt.
    pub may_echo: bool,
    /// The usage; `None` where the agent does not report it.
    pub usage: Option<Usage>,
    /// How it ended, according to its events; ordinary text never counts as an error.
    pub agent: AgentOutcome,
    /// The model that worked, where the agent reports it.
    pub model: Option<String>,
    /// How many turns it took, where the agent reports it.
    pub turns: Option<u32>,
}

impl Report {
    /// What the agent claims. `Claim::None` if its answer was truncated, the service failed, or the
    /// closing event is missing or reports an error, because its last words are then not its final
    /// message. Also `Claim::None` if they echo the prompt or the task.
    pub fn claim(&self, prompt: &str, task: &str, promise: Option<&Promise>) -> Claim {
        let AgentOutcome { cut, error, closing, .. } = &self.agent;
        match &self.final_message {
            Some(_) if *cut || error.is_some() || *closing != AgentClosing::Plain => Claim::None,
            Some(message) if self.may_echo => claim::read_output(message, prompt, task, promise),
            Some(message) => claim::read_message(message, task, promise),
            None => Claim::None,
        }
    }

    /// Whether the agent ended before it printed any event of its work.
    pub fn is_without_events(&self) -> bool {
        self.agent.closing == AgentClosing::Missing
            && self.last_words.is_none()
            && self.model.is_none()
            && self.turns.is_none()
    }

    /// The turn of an agent that crew ended because of this failure of the service. What it printed
    /// in its grace period clears the failure only with a closing event.
    pub fn ended_for(mut self, failure: Option<ApiError>) -> Self {
        if self.agent.closing == AgentClosing::Missing {
            self.agent.error = self.agent.error.or(failure);
        }
        self
    }

    /// What the iteration used, given how its process ended. `None` for an agent that ended well
    /// without reporting anything: it never does. If it ended otherwise, only the report is lost.
    pub fn usage_after(&self, process: &ProcessEnd) -> Option<Usage> {
        let usage = self.usage.as_ref()?;
        let is_silent = usage.lost && usage.tokens.total() == 0;
        if is_silent && *process == ProcessEnd::Exit(0) { None } else { Some(usage.clone()) }
    }

    /// How the iteration ended, given how its process ended. An exit only because the turns were
    /// used up is not a failure.
    pub fn outcome(&self, process: ProcessEnd) -> AgentOutcome {
        let process = match process {
            ProcessEnd::Exit(_) if self.agent.out_of_turns => ProcessEnd::Exit(0),
            other => other,
        };
        let said = self.last_words.as_deref().and_then(extract_summary);
        AgentOutcome { process: Some(process), said, ..self.agent.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::Work::{Hook, Task, Tool};
    use super::*;

    #[test]
    fn work_is_open_until_it_ends() {
        let mut open = OpenWork::default();
        let all = [Tool, Task, Hook];
        open.begin(Tool, "one", None);
        open.begin(Tool, "two", None);
        open.end(Tool, "one");
        assert!(open.is_any(&all));
        open.clear(Tool);
        assert!(!open.is_any(&all));
        open.begin(Task, "dev server", None);
        open.clear(Tool);
        assert!(open.is_any(&all) && !open.is_any(&[Tool]));
        open.clear(Task);
        open.begin(Task, "other", None);
        open.end(Task, "dev server");
        assert!(open.is_any(&all));
        open.clear(Task);
        assert!(!open.is_any(&all));
    }

    #[test]
    fn the_number_of_open_items_is_bounded() {
        let mut open = OpenWork::default();
        open.begin(Tool, &"x".repeat(ID_BYTES + 1), None);
        open.begin(Tool, "", None);
        assert!(!open.is_any(&[Tool]));
        for id in 0..2 * OPEN_MAX {
            open.begin(Tool, &id.to_string(), None);
        }
        assert_eq!(open.0.len(), OPEN_MAX);
    }
}

#[cfg(test)]
mod report_tests {
    use super::*;
    use engine::usage::Tokens;

    #[test]
    fn output_in_the_grace_period_clears_the_failure_only_with_a_closing_event() {
        let failure = |message: &str| ApiError::Request { message: message.to_owned() };
        let (then, later) = (Some(failure("then")), Some(failure("later")));
        let table = [
            (AgentClosing::Missing, None, then.clone()),
            (AgentClosing::Missing, later.clone(), later),
            (AgentClosing::Plain, None, None),
            (AgentClosing::Failed(String::new()), None, None),
        ];
        for (closing, error, expected) in table {
            let agent = AgentOutcome { error, closing, ..AgentOutcome::default() };
            let report = Report { agent, ..Report::default() };
            assert_eq!(report.clone().ended_for(None), report);
            assert_eq!(report.ended_for(then.clone()).agent.error, expected);
        }
    }

    #[test]
    fn an_exit_at_the_limit_on_turns_is_not_a_failure() {
        let report = |agent| Report { agent, ..Report::default() };
        let cut = report(AgentOutcome { cut: true, ..AgentOutcome::default() });
        let out_of_turns = report(AgentOutcome { out_of_turns: true, ..AgentOutcome::default() });
        let denied = vec!["Bash".to_owned()];
        let denied = report(AgentOutcome { denied, ..AgentOutcome::default() });
        let table = [
            (&out_of_turns, ProcessEnd::Exit(1), ProcessEnd::Exit(0)),
            (&out_of_turns, ProcessEnd::TimedOut(60), ProcessEnd::TimedOut(60)),
            (&cut, ProcessEnd::Exit(1), ProcessEnd::Exit(1)),
            (&denied, ProcessEnd::Exit(1), ProcessEnd::Exit(1)),
        ];
        for (report, process, expected) in table {
            let end = report.outcome(process);
            assert_eq!((end.process, end.cut), (Some(expected), report.agent.cut));
            assert_eq!(end.denied, report.agent.denied);
        }
    }

    #[test]
    fn an_agent_that_succeeds_without_reporting_usage_is_known_never_to_report_it() {
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
            assert_eq!(report.usage_after(&process), expected, "{report:?} {process:?}");
        }
    }
}

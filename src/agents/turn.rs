//! What every reader of events keeps of its stream: the words, the open calls, the failure of the
//! service, the closing event. A reader says what an event of its agent means; what follows from
//! that for the claim is here, once.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::Report;
use super::activity::{Activity, OpenCalls, ToolCall};
use super::failure::ServiceFailure;
use super::open_work::OpenWork;
use super::open_work::Work::Tool;
use super::waiting::ServiceWait;
use super::words::{KEPT_BYTES, end, note, shown, start};
use crate::engine::boundary::facts::AgentClosing;
use crate::engine::usage::{Tokens, Usage};

/// The longest name of a model kept, in characters.
const NAME_CHARS: usize = 200;
/// After so many tries in a row a failure that time cannot end is believed.
const TRIES_IN_VAIN: u32 = 3;

/// What the agent does about the service's failure.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// Nothing, as far as it has said.
    #[default]
    None,
    /// It pauses before it asks again, at most for so long where that is known.
    Pauses(Option<Duration>),
    /// It asks again.
    Asks,
}

/// The state of an agent's work.
#[derive(Debug, Default)]
pub struct AgentTurn {
    words: Option<String>,
    /// Whether no work followed the words.
    words_are_last: bool,
    /// Words that are still arriving.
    growing: String,
    open: OpenWork,
    calls: OpenCalls,
    denied: Vec<String>,
    failure: Option<ServiceFailure>,
    /// How it said that it has no login, after which it ends without an event.
    no_login: Option<ServiceFailure>,
    retry: Retry,
    /// How often in a row it said that it tries again.
    tries: u32,
    /// How many of them in a row met what time cannot end.
    tries_in_vain: u32,
    /// Whether crew must end the agent: nothing that follows takes that back.
    is_hopeless: bool,
    /// What the closing event says; `None` until it comes.
    closed: Option<Result<(), String>>,
    pub(super) cut: bool,
    model: Option<String>,
    pub(super) turns: u32,
    /// The tokens of the fullest message.
    context_tokens: Option<u64>,
}

impl AgentTurn {
    /// Takes what one message read and answered.
    pub(super) fn fills(&mut self, tokens: Tokens) {
        self.context_tokens = self.context_tokens.max(Some(tokens.total()));
    }

    /// The model's words, whole.
    pub(super) fn says(&mut self, text: &str) -> Vec<Activity> {
        let mut seen = self.settle();
        if !text.trim().is_empty() {
            self.works();
            seen.extend(self.keeps(text));
        }
        seen
    }

    fn keeps(&mut self, text: &str) -> Option<Activity> {
        let text = Some(text.trim()).filter(|text| !text.is_empty())?;
        self.words = Some(end(text, KEPT_BYTES).to_owned());
        self.words_are_last = true;
        Some(Activity::Said(shown(text)))
    }

    /// The next part of the model's words.
    pub(super) fn says_more(&mut self, part: &str) {
        self.works();
        self.growing.push_str(end(part, KEPT_BYTES));
        // Cutting moves everything that is kept, so it happens rarely.
        if self.growing.len() > 2 * KEPT_BYTES {
            self.growing = end(&self.growing, KEPT_BYTES).to_owned();
        }
    }

    /// The words that arrived in parts are whole: something else follows.
    pub(super) fn settle(&mut self) -> Vec<Activity> {
        let text = std::mem::take(&mut self.growing);
        self.keeps(&text).into_iter().collect()
    }

    /// A call began that is shown when it is over.
    pub(super) fn begins(&mut self, id: &str) {
        self.works();
        self.words_are_last = false;
        self.open.begin(Tool, id);
    }

    /// A call began.
    pub(super) fn calls(&mut self, id: &str, call: ToolCall) -> Vec<Activity> {
        let mut seen = self.settle();
        self.begins(id);
        self.calls.begin(id, &call);
        seen.push(Activity::Called(call));
        seen
    }

    /// A call is over.
    pub(super) fn ends(
        &mut self,
        id: &str,
        came_to: impl FnOnce(&ToolCall) -> Option<String>,
    ) -> Vec<Activity> {
        let mut seen = self.settle();
        self.words_are_last = false;
        self.open.end(Tool, id);
        seen.extend(self.calls.end(id, came_to));
        seen
    }

    /// A call was not allowed. Names it as the call says, else as `tool`.
    pub(super) fn is_denied(&mut self, id: &str, tool: &str) -> Vec<Activity> {
        let mut what = tool.to_owned();
        self.ends(id, |call| {
            what = format!("{} {}", call.verb, call.subject);
            None
        });
        note(&mut self.denied, &what);
        vec![Activity::Noted(format!("denied: {}", shown(&what)))]
    }

    /// Work was done after the words, or will be.
    pub(super) fn goes_on(&mut self) {
        self.words_are_last = false;
        self.closed = None;
    }

    /// The service answered: what failed before is over.
    pub(super) fn works(&mut self) {
        self.closed = None;
        self.cut = false;
        if !self.is_hopeless {
            (self.failure, self.retry) = (None, Retry::None);
            (self.tries, self.tries_in_vain) = (0, 0);
        }
    }

    /// The service failed, and the agent tries again, after `longest` at most where it tells no
    /// pause. Nothing after the closing event: a line of standard error may be read late.
    pub(super) fn retries(
        &mut self,
        failure: ServiceFailure,
        longest: Option<Duration>,
    ) -> Vec<Activity> {
        if self.closed.is_some() {
            return Vec::new();
        }
        let seen = self.noted(&failure);
        self.tries = self.tries.saturating_add(1);
        let in_vain = Some(self.tries_in_vain.saturating_add(1)).filter(|_| failure.is_for_good());
        self.tries_in_vain = in_vain.unwrap_or(0);
        self.is_hopeless |= self.tries_in_vain >= TRIES_IN_VAIN;
        self.retry = Retry::Pauses(longest);
        self.failure = Some(failure);
        seen
    }

    /// The agent asks the service again: it may be answered, after however long.
    pub(super) fn asks(&mut self) {
        if self.retry != Retry::None {
            self.retry = Retry::Asks;
        }
    }

    /// The agent tries again and again, and will never stop by itself.
    pub(super) fn is_in_vain(&mut self) {
        self.is_hopeless = true;
    }

    /// The service failed for good.
    pub(super) fn fails(&mut self, failure: ServiceFailure) -> Vec<Activity> {
        let mut seen = self.settle();
        seen.extend(self.noted(&failure));
        (self.retry, self.cut) = (Retry::None, false);
        self.failure = Some(failure);
        seen
    }

    /// Its standard error said that it has no login.
    pub(super) fn has_no_login(&mut self, words: &str) {
        self.no_login = Some(ServiceFailure::of(Some(401), words));
    }

    fn noted(&self, failure: &ServiceFailure) -> Vec<Activity> {
        let line = shown(&failure.sentence);
        let is_new = self.failure.as_ref().is_none_or(|told| told.sentence != failure.sentence);
        (is_new && !line.is_empty()).then_some(Activity::Noted(line)).into_iter().collect()
    }

    /// The closing event.
    pub(super) fn closes(&mut self, how: Result<(), String>) -> Vec<Activity> {
        let seen = self.settle();
        self.open.clear(Tool);
        self.closed = Some(how);
        seen
    }

    /// The closing event, which reports that the service failed for good.
    pub(super) fn closes_for(&mut self, failure: ServiceFailure) -> Vec<Activity> {
        let seen = self.fails(failure);
        self.closes(Ok(()));
        seen
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_some() && !self.tool_is_open()
    }

    pub(super) fn tool_is_open(&self) -> bool {
        self.open.is_any(&[Tool])
    }

    pub(super) fn works_with(&mut self, model: Option<&str>) {
        self.model = model.map(|it| start(it, NAME_CHARS).to_owned()).or(self.model.take());
    }

    pub(super) fn told(&mut self, steps: &[Activity]) {
        self.calls.told(steps);
    }

    pub(super) fn waits(&self, now: DateTime<FixedOffset>) -> Option<ServiceWait> {
        let is_idle = self.closed.is_none() && !self.tool_is_open();
        let failure = self.failure.as_ref().filter(|_| is_idle)?;
        let pause = match self.retry {
            Retry::None => return None,
            Retry::Pauses(longest) => failure.pause(now).or(longest),
            Retry::Asks => Some(Duration::ZERO),
        };
        Some(ServiceWait { tries: self.tries, pause, is_hopeless: self.is_hopeless })
    }

    /// The report. A final message has a closing event after it, and no failure.
    pub(super) fn report(&mut self, usage: Option<Usage>, now: DateTime<FixedOffset>) -> Report {
        self.settle();
        let no_login = self.no_login.as_ref().filter(|_| self.closed.is_none());
        let failure = self.failure.as_ref().or(no_login);
        let error = failure.filter(|_| !self.cut).map(|failure| failure.error(now));
        let closing = match &self.closed {
            None => AgentClosing::Missing,
            Some(Err(how)) if error.is_none() && !self.cut => AgentClosing::Failed(how.clone()),
            Some(_) => AgentClosing::Plain,
        };
        Report {
            final_message: self.words.clone().filter(|_| self.words_are_last && error.is_none()),
            last_words: self.words.clone(),
            usage,
            error,
            closing,
            denied: self.denied.clone(),
            cut: self.cut,
            model: self.model.clone(),
            turns: (self.turns > 0).then_some(self.turns),
            context_tokens: self.context_tokens,
            ..Report::default()
        }
    }
}

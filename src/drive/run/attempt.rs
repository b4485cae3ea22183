//! One attempt: the user's reactions around it, the rebase before it, the prompt, and the agent's
//! process from its start to its end. Reports the facts; nothing here judges them.

use std::path::PathBuf;
use std::time::Duration;

use super::Runner;
use crate::drive::prompt;
use crate::drive::usage;
use engine::boundary::facts::{AgentFacts, AgentOutcome, ProcessEnd};
use engine::boundary::limits::time_left_ms;
use engine::claim::Claim;
use engine::events::RunEvent;
use engine::evidence::TAIL_CHARS;
use engine::evidence::said::PromptSize;
use engine::record::{LoopMoment, Run};
use engine::text::{plain_text, tail_of};
use engine::usage::Usage;
use engine::window::was_answered;
use readers::agents::service::ServiceWait;
use readers::agents::{self, Launch, OutputReader, Report};
use world::clock::{self, Watched};
use world::files::disk;
use world::logs;
use world::process::{CLOSED, Call, ExitCause, FinishedAgent, StopRequest, Stream, Watch};
use world::store::view;

/// The largest file with what an agent used that is read, in bytes.
const USAGE_FILE_MAX: u64 = 1 << 20;

/// The result of an attempt.
#[derive(Debug)]
pub(super) struct IterationRun {
    pub seen: AgentFacts,
    /// `None` where nothing reports it.
    pub usage: Option<Usage>,
}

impl IterationRun {
    /// Whether the agent itself gave no reason to call the iteration a failure.
    fn ended_well(&self) -> bool {
        let AgentFacts { agent, claim, .. } = &self.seen;
        was_answered(agent) && agent.process.is_some() && !matches!(claim, Claim::Failure { .. })
    }

    fn from_end(process: ProcessEnd) -> Self {
        let agent = AgentOutcome { process: Some(process), ..AgentOutcome::default() };
        Self { seen: AgentFacts { agent, ..AgentFacts::default() }, usage: Some(Usage::default()) }
    }
}

impl Runner<'_> {
    /// Makes one attempt. `None` when the loop ended before the agent was started.
    pub(super) fn run_agent(&mut self) -> Option<IterationRun> {
        let run = self.run_terms();
        let stood_against = self.react_around(LoopMoment::IterationStart, true);
        if self.is_called_off() {
            return None;
        }
        if let Some(why) = stood_against {
            return Some(IterationRun::from_end(ProcessEnd::Skipped(why)));
        }
        if let Some(onto) = &run.git.rebase
            && (!self.rebase_onto(onto) || self.is_called_off())
        {
            return None;
        }
        self.emit_event(&RunEvent::IterationStarted(&self.ledger.record));
        let (prompt, launch) = match self.prepare_launch(&run) {
            Ok(asked) => asked,
            Err(why) => return Some(IterationRun::from_end(ProcessEnd::NotStarted(why))),
        };
        let mut attempt = self.start_agent(&run, &prompt, &launch);
        if self.signals.times() == 0 {
            let why = self.react_around(LoopMoment::IterationEnd, attempt.ended_well());
            attempt.seen.agent.failed_around = why;
        }
        Some(attempt)
    }

    /// Whether a person asked for something before the agent was started: then it is not started.
    fn is_called_off(&self) -> bool {
        self.signals.times() > 0 || self.is_asked()
    }

    /// The prompt of this iteration, and the command line that carries it.
    fn prepare_launch(&mut self, run: &Run) -> Result<(String, Launch), String> {
        // A person may have edited it during a wait.
        let page = self.handoff.clone().and_then(view::read_handoff);
        let asked = prompt::assemble_prompt(self.home, &self.ledger.record, page.as_ref())?;
        if asked.size.is_over() {
            let PromptSize { tokens, budget } = asked.size;
            self.emit_event(&RunEvent::OverBudget { tokens, budget });
        }
        let checks = &self.ledger.record.contract.checks;
        let usage_file = self.usage_file();
        let usage_file = usage_file.to_string_lossy();
        let launch = agents::build_launch(run, "agent", &asked.text, checks, &usage_file)
            .map_err(|failure| failure.join_with(": "))?;
        self.mark_as_delivered();
        Ok((asked.text, launch))
    }

    /// Where this iteration's agent leaves what it used.
    fn usage_file(&self) -> PathBuf {
        logs::usage_file(self.home, &self.ledger.record.id, self.ledger.record.iteration())
    }

    /// What the agent left there, which is then deleted: a repeated iteration must not count it
    /// again.
    fn take_usage(&self) -> Option<String> {
        let path = self.usage_file();
        let text = disk::read_text(&path, USAGE_FILE_MAX).ok().flatten();
        let _ = disk::remove(&path);
        text
    }

    /// Starts the agent and watches it to its end.
    fn start_agent(&self, run: &Run, prompt: &str, launch: &Launch) -> IterationRun {
        let record = &self.ledger.record;
        let within = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
        let own = within(run.pace.timeout_s);
        let left = time_left_ms(record, clock::now().awake_ms).map(Duration::from_millis);
        let is_the_last = left.is_some_and(|left| own.is_none_or(|own| left < own));
        let call = Call::of(&launch.program, &record.place.folder)
            .args(&launch.arguments)
            .envs(&launch.variables)
            .envs([
                ("CREW_LOOP", record.id.to_string()),
                ("CREW_ITERATION", record.iteration().to_string()),
            ])
            .envs(record.state.owner.search_path.as_ref().map(|path| ("PATH", path)))
            .input(launch.input.as_bytes())
            .within(if is_the_last { left } else { own })
            .noted(self.home.groups_folder(&record.id));
        let log = logs::log_path(self.home, &record.id, record.iteration());
        logs::keep_prompt(self.home, &record.id, record.iteration(), prompt);
        logs::begin_output(&log, &run.agent.name, !run.fallback.is_empty());
        usage::remember_agent(self.home, record, &run.agent.name);
        let idle = within(run.pace.idle_timeout_s);
        if run.agent.usage_file.is_some() {
            self.take_usage();
        }
        let mut watcher = Watcher {
            runner: self,
            reader: agents::create_reader(&run.agent),
            was_told: false,
            time: Watched::start(),
            wait: None,
            had_waited: None,
        };
        let ended = match call.run_watched(idle, &log, &mut watcher) {
            Ok(ended) => ended,
            Err(error) => {
                let why = format!("{}: {error}", launch.program);
                return IterationRun::from_end(ProcessEnd::NotStarted(why));
            }
        };
        self.tell_of_the_end(&ended);
        if let Some(text) = run.agent.usage_file.as_ref().and_then(|_| self.take_usage()) {
            watcher.reader.read_usage(&text);
        }
        let had_waited = if ended.cause == ExitCause::Stopped { watcher.had_waited } else { None };
        let failure = had_waited.as_ref().and_then(|then| then.agent.error.clone());
        let report = watcher.reader.report(clock::local_time()).ended_for(failure);
        let mut attempt = self.classify_run(run, prompt, &ended, &report);
        if had_waited.is_some() {
            attempt.seen.agent.process = Some(ProcessEnd::Waited);
        }
        if is_the_last && ended.cause == ExitCause::TimedOut {
            attempt.seen.agent.process = Some(ProcessEnd::OutOfTime);
        }
        attempt
    }

    /// Reports how the agent ended, where a person should know and no judgement depends on it.
    fn tell_of_the_end(&self, ended: &FinishedAgent) {
        // Without a record there is no log, which was already reported.
        if let (Some(error), false) = (&ended.log_error, self.ledger.is_behind()) {
            self.emit_note(&format!("the log of this iteration is not whole: {error}"));
        }
        if ended.closed_early {
            self.emit_note(
                "the agent closed its standard output and kept running: its last message may be missing",
            );
        }
        if ended.cause == ExitCause::Lingered {
            let silent = CLOSED.as_secs();
            self.emit_note(&format!(
                "the agent reported its end, then was silent for {silent} s: crew ended it, and the iteration counts in full"
            ));
        }
        if !ended.left_behind.is_empty() {
            let ids: Vec<String> = ended.left_behind.iter().map(ToString::to_string).collect();
            self.emit_note(&format!(
                "the agent left processes that do not end: {}",
                ids.join(", ")
            ));
        }
    }

    fn classify_run(
        &self,
        run: &Run,
        prompt: &str,
        ended: &FinishedAgent,
        report: &Report,
    ) -> IterationRun {
        let contract = &self.ledger.record.contract;
        let claim = report.claim(prompt, &contract.task, contract.promise.as_ref());
        let process = match ended.cause {
            ExitCause::Exit(code) => ProcessEnd::Exit(code),
            ExitCause::Lingered => ProcessEnd::Exit(0),
            ExitCause::Signal(signal) => ProcessEnd::Signal(signal),
            ExitCause::TimedOut => ProcessEnd::TimedOut(run.pace.timeout_s),
            ExitCause::Idle => ProcessEnd::Silent(run.pace.idle_timeout_s),
            ExitCause::Stopped => ProcessEnd::BrokenOff(self.signals.first()),
        };
        let usage = report.usage_after(&process);
        let errors = tail_of(&plain_text(&ended.errors), TAIL_CHARS);
        // A claim contradicts it: an agent that says that all is done was not kept from its work.
        let limit = if claim == Claim::Success {
            None
        } else {
            agents::reported_limit(&run.agent, report, &process, &errors, clock::local_time())
        };
        let mut agent = AgentOutcome {
            errors,
            ran_ms: Some(ended.ran_ms),
            missed_ms: ended.missed_ms,
            ..report.outcome(process)
        };
        agent.error = agent.error.or(limit);
        IterationRun { seen: AgentFacts { claim, agent, ..AgentFacts::default() }, usage }
    }
}

// Reads an agent at work, and ends it on a signal of the person at the keyboard, a cancel, a pause
// that must take effect at once, or once it only waits for the model's service: crew can do that
// without a process. It does not judge the agent.

/// One agent, watched.
struct Watcher<'a, 'runner> {
    runner: &'a Runner<'runner>,
    reader: OutputReader,
    was_told: bool,
    time: Watched,
    wait: Option<Waiting>,
    /// What it reported when it had only waited for long enough.
    had_waited: Option<Report>,
}

/// The agent waits for the service.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    wait: ServiceWait,
    /// When it reported that first, and when last.
    since: Duration,
    last: Duration,
}

impl Watcher<'_, '_> {
    /// Notes whether the agent waits, as its last line said.
    fn note_a_wait(&mut self) {
        let (now, known) = (self.time.look(), self.wait);
        self.wait = self.reader.service_wait(clock::local_time()).map(|wait| {
            let before = known.filter(|before| before.wait.tries <= wait.tries);
            let same = before.filter(|before| before.wait.tries == wait.tries);
            let since = before.map_or(now, |before| before.since);
            Waiting { wait, since, last: same.map_or(now, |before| before.last) }
        });
    }

    /// Whether the agent only waits, and has for long enough.
    fn only_waits(&mut self) -> bool {
        let now = self.time.look();
        let is_enough = self.wait.is_some_and(|Waiting { wait, since, last }| {
            wait.is_enough(now.saturating_sub(since), now.saturating_sub(last))
        });
        if is_enough && self.had_waited.is_none() {
            self.had_waited = Some(self.reader.report(clock::local_time()));
            self.runner.emit_note("the agent only waits for the model's service: crew ends it");
        }
        self.had_waited.is_some()
    }
}

impl Watch for Watcher<'_, '_> {
    fn line(&mut self, stream: Stream, line: &str) {
        let words = match stream {
            Stream::Out => self.reader.render_line(line),
            Stream::Errors => {
                self.reader.read_error(line);
                Some(plain_text(line))
            }
        };
        self.note_a_wait();
        if let Some(words) = words {
            self.runner.emit_event(&RunEvent::Said(&words));
        }
    }

    fn tool_is_open(&self) -> bool {
        self.reader.tool_is_open()
    }

    fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    fn stop(&mut self) -> Option<StopRequest> {
        let is_signalled = self.runner.must_stop();
        if !is_signalled && !self.runner.is_broken_off() {
            return self.only_waits().then_some(StopRequest::Now);
        }
        // What a person asked for counts, whatever else ends the agent.
        self.had_waited = None;
        if !self.was_told {
            self.was_told = true;
            self.runner.emit_event(&RunEvent::Stopping);
        }
        Some(if self.runner.signals.times() > 1 { StopRequest::Kill } else { StopRequest::Now })
    }
}

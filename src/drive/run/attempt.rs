//! One agent at work: its prompt and command line, and its process from start to end. It reports
//! facts and judges nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ledger::Ledger;
use super::ledger::{AgentRunner, PreparedAgent};
use super::machine::ThisMachine;
use super::ports::IterationRun;
use crate::drive::prompt;
use crate::drive::usage;
use engine::boundary::facts::{AgentFacts, AgentOutcome, ProcessEnd};
use engine::boundary::limits::time_left_ms;
use engine::claim::Claim;
use engine::evidence::TAIL_CHARS;
use engine::record::{Agent, Loop, Run};
use engine::text::{plain_text, tail_of};
use engine::view::events::RunEvent;
use readers::agents::service::ServiceWait;
use readers::agents::{self, Launch, OutputReader, Report};
use world::clock::{self, Watched};
use world::files::disk;
use world::logs;
use world::process::{CLOSED, Call, ExitCause, FinishedAgent, StopRequest, Stream, Watch};
use world::store::{Home, journal, view};

/// The largest usage file of an agent that is read, in bytes.
const USAGE_FILE_MAX: u64 = 1 << 20;

impl AgentRunner for ThisMachine<'_> {
    fn prepare(&self, record: &Loop, run: &Run, handoff: Option<&Path>) -> PreparedAgent {
        // A person may have edited it during a wait.
        let page = handoff.map(Path::to_path_buf).and_then(view::read_handoff);
        let asked = prompt::assemble_prompt(self.0, record, page.as_ref())?;
        let usage_file = usage_file(self.0, record);
        let checks = &record.contract.checks;
        let launch =
            agents::build_launch(run, "agent", &asked.text, checks, &usage_file.to_string_lossy())
                .map_err(|failure| failure.join_with(": "))?;
        Ok((asked, launch))
    }

    fn run(
        &self,
        ledger: &Ledger<'_>,
        run: &Run,
        (prompt, launch): (&str, &Launch),
    ) -> IterationRun {
        let home = self.0;
        let record = &ledger.record;
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
            .envs(record.state.owner().search_path.as_ref().map(|path| ("PATH", path)))
            .input(launch.input.as_bytes())
            .within(if is_the_last { left } else { own })
            .noted(home.groups_folder(&record.id));
        let log = logs::log_path(home, &record.id, record.iteration());
        logs::keep_prompt(home, &record.id, record.iteration(), prompt);
        logs::begin_output(&log, &run.agent.name, !run.fallback.is_empty());

        usage::remember_agent(home, record, &run.agent.name);
        let idle = within(run.pace.idle_timeout_s);
        if run.agent.usage_file.is_some() {
            take_usage(home, record);
        }
        let mut watcher = Watcher {
            ledger,
            reader: agents::create_reader(&run.agent),
            was_reported: false,
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
        report_end(ledger, &ended);
        if let Some(text) = run.agent.usage_file.as_ref().and_then(|_| take_usage(home, record)) {
            watcher.reader.read_usage(&text);
        }
        let had_waited =
            if ended.cause() == ExitCause::Stopped { watcher.had_waited } else { None };
        let failure = had_waited.as_ref().and_then(|then| then.agent.error.clone());
        let report = watcher.reader.report(clock::local_time()).ended_for(failure);
        let mut attempt = classify_run(ledger, run, prompt, (&ended, &report));
        if had_waited.is_some() {
            attempt.seen.agent.process = Some(ProcessEnd::Waited);
        }
        if is_the_last && ended.cause() == ExitCause::TimedOut {
            attempt.seen.agent.process = Some(ProcessEnd::OutOfTime);
        }
        attempt
    }
}

/// The file in which this iteration's agent leaves its usage.
fn usage_file(home: &Home, record: &Loop) -> PathBuf {
    logs::usage_file(home, &record.id, record.iteration())
}

/// Reads and deletes the usage that the agent left: a repeated iteration must not count it again.
fn take_usage(home: &Home, record: &Loop) -> Option<String> {
    let path = usage_file(home, record);
    let text = disk::read_text(&path, USAGE_FILE_MAX).ok().flatten();
    let _ = disk::remove(&path);
    text
}

/// Reports how the agent ended, if the user should know and no judgement depends on it.
fn report_end(ledger: &Ledger<'_>, ended: &FinishedAgent) {
    // Without a record there is no log, which was already reported.
    if let (Some(error), false) = (ended.log_error(), ledger.is_behind()) {
        ledger.emit_note(&format!("the log of this iteration is incomplete: {error}"));
    }
    if ended.closed_early() {
        ledger.emit_note(
            "the agent closed its standard output and kept running: its last message may be missing",
        );
    }
    if ended.cause() == ExitCause::Lingered {
        let silent = CLOSED.as_secs();
        ledger.emit_note(&format!(
            "the agent reported that it was done, then was silent for {silent} s: crew ended it, and the iteration counts in full"
        ));
    }
    if !ended.left_behind().is_empty() {
        let ids: Vec<String> = ended.left_behind().iter().map(ToString::to_string).collect();
        ledger.emit_note(&format!("the agent left processes that do not end: {}", ids.join(", ")));
    }
}

fn classify_run(
    ledger: &Ledger<'_>,
    run: &Run,
    prompt: &str,
    (ended, report): (&FinishedAgent, &Report),
) -> IterationRun {
    let contract = &ledger.record.contract;
    let claim = report.claim(prompt, &contract.task, contract.promise.as_ref());
    let process = match ended.cause() {
        ExitCause::Exit(code) => ProcessEnd::Exit(code),
        ExitCause::Lingered => ProcessEnd::Exit(0),
        ExitCause::Signal(signal) => ProcessEnd::Signal(signal),
        ExitCause::TimedOut => ProcessEnd::TimedOut(run.pace.timeout_s),
        ExitCause::Idle => ProcessEnd::Silent(run.pace.idle_timeout_s),
        ExitCause::Stopped => ProcessEnd::BrokenOff(ledger.signals.first()),
    };
    let usage = report.usage_after(&process);
    let errors = tail_of(&plain_text(ended.errors()), TAIL_CHARS);
    // A claim contradicts it: an agent that says that all is done was not kept from its work.
    let limit = if claim == Claim::Success {
        None
    } else {
        agents::reported_limit(&run.agent, report, &process, &errors, clock::local_time())
    };
    let mut agent = AgentOutcome {
        errors,
        ran_ms: Some(ended.ran_ms()),
        missed_ms: ended.missed_ms(),
        ..report.outcome(process)
    };
    agent.error = agent.error.or(limit);
    IterationRun { seen: AgentFacts { claim, agent, ..AgentFacts::default() }, usage }
}

// Reads an agent at work, and ends it on a signal of the user at the keyboard, a cancel, a pause
// that must take effect at once, or once it only waits for the model's service: crew can do that
// without a process. It does not judge the agent.

/// One agent, watched.
struct Watcher<'a, 'l> {
    ledger: &'a Ledger<'l>,
    reader: OutputReader,
    was_reported: bool,
    time: Watched,
    wait: Option<Waiting>,
    /// The report of an agent that had only waited for long enough.
    had_waited: Option<Report>,
}

/// A wait of the agent for the service.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    wait: ServiceWait,
    /// The time of its first and of its last report of the wait.
    since: Duration,
    last: Duration,
}

impl Watcher<'_, '_> {
    /// Notes whether the agent waits, according to its last line.
    fn note_a_wait(&mut self) {
        let (now, known) = (self.time.look(), self.wait);
        self.wait = self.reader.service_wait(clock::local_time()).map(|wait| {
            let before = known.filter(|before| before.wait.tries <= wait.tries);
            let same = before.filter(|before| before.wait.tries == wait.tries);
            let since = before.map_or(now, |before| before.since);
            Waiting { wait, since, last: same.map_or(now, |before| before.last) }
        });
    }

    /// Whether the agent only waits, and has waited long enough.
    fn only_waits(&mut self) -> bool {
        let now = self.time.look();
        let is_enough = self.wait.is_some_and(|Waiting { wait, since, last }| {
            wait.is_enough(now.saturating_sub(since), now.saturating_sub(last))
        });
        if is_enough && self.had_waited.is_none() {
            self.had_waited = Some(self.reader.report(clock::local_time()));
            self.ledger.emit_note("the agent only waits for the model's service: crew ends it");
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
            self.ledger.emit(&RunEvent::Said(&words));
        }
    }

    fn tool_is_open(&self) -> bool {
        self.reader.tool_is_open()
    }

    fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    fn stop(&mut self) -> Option<StopRequest> {
        let is_signalled = self.ledger.must_stop();
        if !is_signalled && !self.ledger.is_broken_off() {
            return self.only_waits().then_some(StopRequest::Now);
        }
        // What a person asked for counts, whatever else ends the agent.
        self.had_waited = None;
        if !self.was_reported {
            self.was_reported = true;
            self.ledger.emit(&RunEvent::Stopping);
        }
        Some(if self.ledger.signals.times() > 1 { StopRequest::Kill } else { StopRequest::Now })
    }
}

/// The agent that printed the log of an iteration; `None` in a session.
pub fn who_worked(home: &Home, record: &Loop, iteration: u32) -> Option<Agent> {
    let run = record.contract.run.as_ref()?;
    if run.fallback.is_empty() || iteration > record.state.counts().completed() {
        return Some(record.worker().unwrap_or(&run.agent).clone());
    }
    let mut name = None;
    let _ = journal::read_entries(&home.loop_file(&record.id, "journal.jsonl"), |entry| {
        let evidence = entry.event.state().and_then(|state| state.seen().evidence().as_ref());
        let evidence = evidence.filter(|evidence| evidence.iteration == iteration);
        name = evidence.and_then(|evidence| evidence.agent.clone()).or(name.take());
    });
    let found = run.agents().find(|agent| Some(&agent.name) == name.as_ref());
    Some(found.unwrap_or(&run.agent).clone())
}

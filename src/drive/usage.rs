//! What a session used since the last reading, from the transcripts that the client writes: the
//! session's own and those of its agents. Each is read from where the last reading ended, a few
//! megabytes at a time and a line at a time. The rest is read next time; until then the total says
//! that it is incomplete.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use engine::record::{Loop, Mark, MeteredUsage, Run, SessionMemory};
use engine::usage::Usage;
use readers::agents;
use readers::clients::{self, Hook, Transcript};
use world::clock::{self, Deadline};
use world::files::disk::{self, Durability};
use world::store::{self, Home, hash};
use world::{env, logs};

/// How much of a transcript's end is read.
pub const TRANSCRIPT_BYTES: u64 = 512 << 10;
/// How long to wait for the transcript's last lines.
pub const TRANSCRIPT_WAIT: Duration = Duration::from_millis(500);
/// How long to wait for them if the total matters: a busy machine writes them 500 ms late.
const FINAL_WAIT: Duration = Duration::from_secs(2);
/// The maximum number of bytes read between two iterations.
const BYTES: u64 = 4 << 20;
/// The maximum number of bytes read when the total decides something, or is the last one.
const BYTES_WHEN_IT_COUNTS: u64 = 32 << 20;
/// How many bytes before a mark show whether the transcript is still the same.
const DIGEST_BYTES: u64 = 4096;
/// How many messages of a transcript are remembered, and how many transcripts of agents.
const MESSAGES: usize = 3;
const AGENTS: usize = 64;
/// The maximum number of transcripts of agents that are searched in one session.
const AGENTS_LISTED: usize = 2000;
/// An agent that has written nothing for this long has written its last message completely.
const QUIET: TimeDelta = TimeDelta::seconds(60);
/// The client writes a line at most this much later than the line's own time.
const LATE: TimeDelta = TimeDelta::seconds(1);

/// The result of a reading, and how far it read.
#[derive(Debug, Clone)]
pub struct MeterReading {
    /// The usage; `None` without a transcript to read.
    pub usage: Option<Usage>,
    /// The tokens of the session's fullest message since the last reading.
    pub context_tokens: Option<u64>,
    pub metered: MeteredUsage,
}

/// The memory of a session whose loop begins now: earlier usage is not the loop's.
pub fn begin_memory(hook: &Hook<'_>) -> SessionMemory {
    let transcript_bytes = hook.transcript().as_deref().map_or(0, disk::size);
    let file = hook.transcript().as_deref();
    let ends = file.map_or_else(String::new, |file| digest_before(file, transcript_bytes));
    let main = Mark { bytes: transcript_bytes, ends, ..Mark::default() };
    SessionMemory {
        prompt_id: hook.turn().clone(),
        transcript_bytes,
        transcript: hook.transcript().clone(),
        metered: MeteredUsage { since: Some(clock::now().wall), main, ..MeteredUsage::default() },
        ..SessionMemory::default()
    }
}

/// Reads the usage. `it_counts` means that the total decides something or is the last: then the
/// final message is waited for, which the client writes after it has reported it.
pub fn read_meter(
    before: &Loop,
    hook: &Hook<'_>,
    words: Option<&str>,
    it_counts: bool,
) -> MeterReading {
    let memory = before.state.session();
    let file = hook.transcript().as_deref().or(memory.transcript.as_deref());
    // A client creates the file with its first lines, and a limit needs what they report.
    let may_appear = before.contract.limits.bound_usage();
    if it_counts
        && let (Some(file), Some(words), Some(reader)) = (file, words, hook.transcript_reader())
        && (may_appear || disk::exists(file))
    {
        await_words(reader, file, memory.transcript_bytes, words);
    }
    let unread = file.map_or(0, disk::size).saturating_sub(memory.metered.main.bytes);
    let budget = if it_counts {
        BYTES_WHEN_IT_COUNTS
    } else if unread > BYTES_WHEN_IT_COUNTS {
        // More than even the last look would read stays a lower bound, and no stop waits for a part
        // of it.
        0
    } else {
        BYTES
    };
    read_session(hook.transcript_reader(), file, &memory.metered, budget)
}

/// Counts into a record what its session used since the last boundary, when something other than a
/// boundary stops the loop.
pub fn catch_up(record: &mut Loop) {
    let state = &record.state;
    let reader = clients::client_of(state.owner()).transcript().as_ref();
    let file = state.session().transcript.as_deref();
    let MeterReading { usage, metered, .. } =
        read_session(reader, file, &state.session().metered, BYTES_WHEN_IT_COUNTS);
    if let Some(usage) = usage {
        record.state.session_mut().metered = metered;
        record.count_use(0, Some(&usage));
    }
}

fn await_words(reader: &Transcript, file: &Path, from: u64, words: &str) {
    let _ = Deadline::after(FINAL_WAIT).poll(Duration::from_millis(10), || {
        let (tail, _) = disk::read_end(file, from, TRANSCRIPT_BYTES).ok()?;
        ends_with(reader, &tail, words).then_some(())
    });
}

fn read_session(
    reader: Option<&'static Transcript>,
    file: Option<&Path>,
    before: &MeteredUsage,
    budget: u64,
) -> MeterReading {
    let mut metered = before.clone();
    // A session that began before usage was measured has no start to count from.
    if let (Some(file), Some(reader), Some(_)) = (file, reader, before.since) {
        let now = clock::now().wall;
        let mut look = Look { reader, usage: Usage::default(), fullest: None, left: budget };
        if look.read_file(file, &mut metered.main, before.since, before.last).is_some() {
            let context_tokens = look.fullest;
            look.read_agents(&(*reader.agents())(file), &mut metered, now);
            metered.last = Some(now);
            return MeterReading { usage: Some(look.usage), context_tokens, metered };
        }
    }
    MeterReading { usage: None, context_tokens: None, metered }
}

struct Look {
    reader: &'static Transcript,
    usage: Usage,
    /// The tokens of the fullest message.
    fullest: Option<u64>,
    /// Bytes that may still be read.
    left: u64,
}

impl Look {
    /// Continues to read one transcript, and skips lines from before `since`. A transcript that was
    /// rewritten is read from its beginning, without what the `last` look had already counted.
    fn read_file(
        &mut self,
        file: &Path,
        mark: &mut Mark,
        since: Option<DateTime<Utc>>,
        last: Option<DateTime<Utc>>,
    ) -> Option<()> {
        let is_new = disk::size(file) < mark.bytes || is_rewritten(file, mark);
        let since = if is_new { since.max(last) } else { since };
        let from = if is_new { 0 } else { mark.bytes };
        let Self { reader, usage, fullest, left } = self;
        let read = disk::read_lines(file, from, *left, |line, cut| {
            if cut {
                usage.lost |= (*reader.may_hold_a_message())(line);
                return;
            }
            let Some((message, at)) = (*reader.message())(line) else { return };
            if at.is_none_or(|at| Some(at) >= since) {
                *fullest = (*fullest).max(Some(message.tokens.total()));
                usage.count_message(&message, &mut mark.recent, MESSAGES);
            }
        });
        let (end, more) = read.ok()?;
        usage.behind |= more;
        *left = left.saturating_sub(end.saturating_sub(from));
        mark.bytes = end;
        mark.ends = digest_before(file, end);
        Some(())
    }

    /// The transcripts of the session's agents. A mark is kept only for those written to recently:
    /// a record that remembered every agent would grow without end. One without a mark began, or
    /// began again, after the last look.
    fn read_agents(&mut self, folder: &Path, metered: &mut MeteredUsage, now: DateTime<Utc>) {
        let is_an_agents = *self.reader.is_an_agents();
        let names = disk::names(folder, AGENTS_LISTED);
        self.usage.lost |= names.len() == AGENTS_LISTED;
        let began = metered.last.map(|last| last - LATE).max(metered.since);
        let mut marks = std::mem::take(&mut metered.agents);
        for name in names.into_iter().filter(|name| is_an_agents(name)) {
            let file = folder.join(&name);
            let Some((bytes, changed)) = disk::stamp(&file) else { continue };
            let known = marks.remove(&name);
            let since = if known.is_some() { metered.since } else { began };
            let changed = DateTime::from_timestamp_nanos(i64::try_from(changed).unwrap_or(0));
            let mut mark = known.unwrap_or_default();
            if mark.bytes != bytes && Some(changed) >= since {
                let _ = self.read_file(&file, &mut mark, since, metered.last);
            }
            if changed + QUIET >= now || mark.bytes != bytes && Some(changed) >= since {
                metered.agents.insert(name, mark);
            }
        }
        while metered.agents.len() > AGENTS {
            metered.agents.pop_first();
        }
    }
}

/// Whether a transcript is another one than it was at the mark, although it is not shorter.
fn is_rewritten(file: &Path, mark: &Mark) -> bool {
    !mark.ends.is_empty() && digest_before(file, mark.bytes) != mark.ends
}

/// A digest of what a transcript has just before a place; empty where it cannot be read.
fn digest_before(file: &Path, at: u64) -> String {
    let (from, mut bytes) = (at.saturating_sub(DIGEST_BYTES), Vec::new());
    let Ok(Some(mut file)) = disk::open_file(file) else { return String::new() };
    let read = file.seek(SeekFrom::Start(from));
    let read = read.and_then(|_| file.take(at - from).read_to_end(&mut bytes));
    read.map_or_else(|_| String::new(), |_| hash(&bytes))
}

/// Whether a transcript already contains the agent's last `words`. A client may trim what it
/// reports.
pub fn ends_with(reader: &Transcript, tail: &str, words: &str) -> bool {
    (*reader.final_text())(tail).is_some_and(|text| text.trim() == words.trim())
}

// What the agent of an iteration had used when its crew was killed. It is read from the log of
// that iteration, through the reader that the crew read it with, and counted once.

/// The file of a loop that names the agent that was started last, and the most that is read of it.
const STARTED: &str = "agent.json";
const STARTED_BYTES: u64 = 4096;
/// The maximum number of bytes read of each of the two files of a log.
const LOG_BYTES: u64 = 64 << 20;
/// The largest file with what an agent used that is read, in bytes.
const USAGE_BYTES: u64 = 1 << 20;

/// An agent that was started.
#[derive(Debug, Serialize, Deserialize)]
struct StartedAgent {
    /// How many boundaries were recorded then: the next one counts what it used.
    boundaries: u64,
    name: String,
    /// Random: one that was counted is known by it.
    id: u64,
}

impl StartedAgent {
    /// The one that was started since the last boundary.
    fn for_record(home: &Home, record: &Loop) -> Option<Self> {
        let file = home.loop_file(&record.id, STARTED);
        let found: Self = store::read_json(&file, STARTED_BYTES)?;
        (found.boundaries == record.state.counts().boundaries()).then_some(found)
    }
}

/// Remembers that an agent is started, whose output follows in the iteration's log.
pub fn remember_agent(home: &Home, record: &Loop, agent: &str) {
    let boundaries = record.state.counts().boundaries();
    let started = StartedAgent { boundaries, name: agent.to_owned(), id: env::random_number() };
    let file = home.loop_file(&record.id, STARTED);
    // Without it nothing is counted if this crew is killed; the loop itself does not need it.
    let _ = store::write_json(&file, &started, Durability::Remade);
}

/// Notes that what the agent used is counted already.
pub fn mark_usage_counted(home: &Home, record: &mut Loop) {
    if let Some(started) = StartedAgent::for_record(home, record) {
        record.state.count_late(started.id);
    }
}

/// Counts what the agent of the iteration in progress had used when its crew was killed. What was
/// not reported until then is lost.
pub fn add_late_usage(home: &Home, record: &mut Loop) {
    let Some(started) = StartedAgent::for_record(home, record) else { return };
    if record.state.work().counted_late() == Some(started.id) {
        return;
    }
    match read_usage(home, record, &started.name) {
        Some(usage) => record.count_use(0, Some(&usage)),
        None => record.state.lose_usage(),
    }
    record.state.count_late(started.id);
}

/// What the log says that the agent used which was started last; `None` where that does not report
/// it.
fn read_usage(home: &Home, record: &Loop, agent: &str) -> Option<Usage> {
    let Run { agent: own, fallback, .. } = record.contract.run.as_ref()?;
    let agent = [own].into_iter().chain(fallback).find(|known| known.name == agent)?;
    // A record that is finished by now has the same number.
    let iteration = record.state.counts().completed() + 1;
    let mut reader = agents::create_reader(agent);
    let mut is_cut = false;
    for (number, file) in logs::output_files(home, &record.id, iteration).into_iter().enumerate() {
        // What was before the first of two files is dropped, and the line between them is in two.
        is_cut |= number > 0;
        let read = disk::read_lines(&file, 0, LOG_BYTES, |line, cut| {
            if logs::begun_by(line).is_some() {
                // What an earlier agent used in this iteration was counted before.
                (reader, is_cut) = (agents::create_reader(agent), false);
            } else {
                reader.take_line(line);
                is_cut |= cut;
            }
        });
        is_cut |= read.map_or(true, |(_, more)| more);
    }
    let file = logs::usage_file(home, &record.id, iteration);
    if agent.usage_file.is_some()
        && let Some(text) = disk::read_text(&file, USAGE_BYTES).ok().flatten()
    {
        reader.read_usage(&text);
    }
    let mut usage = reader.report(clock::local_time()).usage?;
    usage.lost |= is_cut;
    Some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::fixture::{SetState, a_run};
    use world::logs::Log;

    const MILLION: &str = r#"{"type":"assistant","message":{"id":"m1","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":1000000,"output_tokens":0}}}"#;

    /// The last event of an agent, after which nothing of its use is missing.
    const SUM: &str = r#"{"type":"result","modelUsage":{"m":{"inputTokens":1000000,"outputTokens":0,"costUSD":1}}}"#;

    struct KilledLoop {
        home: Home,
        record: Loop,
        _folder: tempfile::TempDir,
    }

    impl KilledLoop {
        fn new() -> Self {
            let folder = testkit::folder();
            let home = Home::at(folder.path());
            let mut record = a_run(None);
            disk::make_private_folder(&home.loop_folder(&record.id)).unwrap();
            record.contract.run.as_mut().unwrap().agent = agents::find_agent("claude").unwrap();
            Self { home, record, _folder: folder }
        }

        /// An agent is started and prints something.
        fn start_agent(&self, output: &str) {
            let log = logs::log_path(&self.home, &self.record.id, self.record.iteration());
            logs::begin_output(&log, "claude", false);
            remember_agent(&self.home, &self.record, "claude");
            let mut log = Log::open(&log);
            log.add(output.as_bytes());
            assert!(log.close().is_none());
        }

        fn counted_tokens(&mut self) -> u64 {
            add_late_usage(&self.home, &mut self.record);
            self.record.state.work().usage().tokens.total()
        }
    }

    #[test]
    fn usage_that_a_killed_agent_reported_is_counted_once_for_each_try() {
        let mut subject = KilledLoop::new();
        assert_eq!(subject.counted_tokens(), 0, "no agent was started");
        assert!(!subject.record.state.work().usage().lost);
        subject.start_agent(&format!("not an event\n{MILLION}\n{}", &MILLION[..50]));
        assert_eq!(subject.counted_tokens(), 1_000_000);
        // Its crew was killed again before it started another agent.
        assert_eq!(subject.counted_tokens(), 1_000_000);
        subject.start_agent(&format!("{}\n", MILLION.replace("m1", "m2")));
        assert_eq!(subject.counted_tokens(), 2_000_000);
        assert!(subject.record.state.work().usage().cost > engine::usage::Money::default());
    }

    #[test]
    fn the_usage_in_a_log_of_two_files_is_a_lower_bound() {
        let mut subject = KilledLoop::new();
        let line = "x".repeat(1000) + "\n";
        subject.start_agent(&format!("{}{SUM}\n", line.repeat(11_000)));
        assert_eq!(subject.counted_tokens(), 1_000_000);
        assert!(subject.record.state.work().usage().lost);
        // The next agent has a whole log of its own.
        subject.record.state.set("usage.lost", false);
        subject.start_agent(&format!("{SUM}\n"));
        assert_eq!(
            (subject.counted_tokens(), subject.record.state.work().usage().lost),
            (2_000_000, false)
        );
    }

    #[test]
    fn usage_that_a_boundary_has_counted_is_not_counted_again() {
        let mut subject = KilledLoop::new();
        subject.start_agent(&format!("{MILLION}\n"));
        subject.record.state.set("boundaries", subject.record.state.counts().boundaries() + 1);
        assert_eq!(subject.counted_tokens(), 0);
        subject.start_agent(&format!("{MILLION}\n"));
        mark_usage_counted(&subject.home, &mut subject.record);
        assert_eq!(subject.counted_tokens(), 0);
    }

    #[test]
    fn the_usage_of_an_agent_that_reports_none_is_unknown() {
        let mut subject = KilledLoop::new();
        let agent = &mut subject.record.contract.run.as_mut().unwrap().agent;
        *agent = engine::record::Agent { name: "claude".to_owned(), ..Default::default() };
        subject.start_agent("hello\n");
        assert_eq!(subject.counted_tokens(), 0);
        assert!(subject.record.state.work().usage().lost);
    }
}

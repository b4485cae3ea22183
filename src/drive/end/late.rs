//! What the agent of an iteration had used when its crew was killed. It is read from the log of
//! that iteration, through the reader that the crew read it with, and counted once.

use serde::{Deserialize, Serialize};

use engine::record::{Loop, Run};
use engine::usage::Usage;
use readers::agents;
use world::files::disk::{self, Durability};
use world::logs;
use world::store::{self, Home};
use world::{clock, env};

/// The file of a loop that names the agent that was started last, and the most that is read of it.
const STARTED: &str = "agent.json";
const STARTED_BYTES: u64 = 4096;
/// The most that is read of each of the two files of a log, in bytes.
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
        (found.boundaries == record.state.boundaries).then_some(found)
    }
}

/// Remembers that an agent is started, whose output follows in the iteration's log.
pub fn remember_agent(home: &Home, record: &Loop, agent: &str) {
    let boundaries = record.state.boundaries;
    let started = StartedAgent { boundaries, name: agent.to_owned(), id: env::random_number() };
    let file = home.loop_file(&record.id, STARTED);
    // Without it nothing is counted if this crew is killed; the loop itself does not need it.
    let _ = store::write_json(&file, &started, Durability::Remade);
}

/// Notes that what the agent used is counted already.
pub fn count_late_usage(home: &Home, record: &mut Loop) {
    if let Some(started) = StartedAgent::for_record(home, record) {
        record.state.count_late(started.id);
    }
}

/// Counts what the agent of the iteration in progress had used when its crew was killed. What was
/// not reported until then is lost.
pub fn add_late_usage(home: &Home, record: &mut Loop) {
    let Some(started) = StartedAgent::for_record(home, record) else { return };
    if record.state.counted_late == Some(started.id) {
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
    let iteration = record.state.completed + 1;
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
            self.record.state.usage.tokens.total()
        }
    }

    #[test]
    fn what_a_killed_agent_had_reported_is_counted_once_for_each_try() {
        let mut subject = KilledLoop::new();
        assert_eq!(subject.counted_tokens(), 0, "no agent was started");
        assert!(!subject.record.state.usage.lost);
        subject.start_agent(&format!("not an event\n{MILLION}\n{}", &MILLION[..50]));
        assert_eq!(subject.counted_tokens(), 1_000_000);
        // Its crew was killed again before it started another agent.
        assert_eq!(subject.counted_tokens(), 1_000_000);
        subject.start_agent(&format!("{}\n", MILLION.replace("m1", "m2")));
        assert_eq!(subject.counted_tokens(), 2_000_000);
        assert!(subject.record.state.usage.cost > engine::usage::Money::default());
    }

    #[test]
    fn of_a_log_in_two_files_more_may_have_been_used() {
        let mut subject = KilledLoop::new();
        let line = "x".repeat(1000) + "\n";
        subject.start_agent(&format!("{}{SUM}\n", line.repeat(11_000)));
        assert_eq!(subject.counted_tokens(), 1_000_000);
        assert!(subject.record.state.usage.lost);
        // The next agent has a whole log of its own.
        subject.record.state.set("usage.lost", false);
        subject.start_agent(&format!("{SUM}\n"));
        assert_eq!((subject.counted_tokens(), subject.record.state.usage.lost), (2_000_000, false));
    }

    #[test]
    fn what_a_boundary_has_counted_is_not_counted_again() {
        let mut subject = KilledLoop::new();
        subject.start_agent(&format!("{MILLION}\n"));
        subject.record.state.set("boundaries", subject.record.state.boundaries + 1);
        assert_eq!(subject.counted_tokens(), 0);
        subject.start_agent(&format!("{MILLION}\n"));
        count_late_usage(&subject.home, &mut subject.record);
        assert_eq!(subject.counted_tokens(), 0);
    }

    #[test]
    fn the_use_of_an_agent_that_reports_none_is_lost() {
        let mut subject = KilledLoop::new();
        let agent = &mut subject.record.contract.run.as_mut().unwrap().agent;
        *agent = engine::record::Agent { name: "claude".to_owned(), ..Default::default() };
        subject.start_agent("hello\n");
        assert_eq!(subject.counted_tokens(), 0);
        assert!(subject.record.state.usage.lost);
    }
}

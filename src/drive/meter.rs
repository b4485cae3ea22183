//! What a session used since the last look, from the transcripts the client writes: the session's
//! own and those of its agents. Each is read from where the last look ended, a few megabytes at a
//! time and a line at a time. The rest is read at the next look; until then the sum says that it is
//! incomplete.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use engine::record::{Loop, Mark, MeteredUsage, SessionMemory};
use engine::usage::Usage;
use readers::clients::{self, Hook, Transcript};
use world::clock::{self, Deadline};
use world::files::disk;
use world::store::hash;

/// How much of a transcript's end is read.
pub const TRANSCRIPT_BYTES: u64 = 512 << 10;
/// How long the transcript's last lines are waited for.
pub const TRANSCRIPT_WAIT: Duration = Duration::from_millis(500);
/// How long they are waited for when the sum counts: a busy machine writes them 500 ms late.
const FINAL_WAIT: Duration = Duration::from_secs(2);
/// The most that is read between two iterations.
const BYTES: u64 = 4 << 20;
/// The most that is read when the sum decides something, or is the last one.
const BYTES_WHEN_IT_COUNTS: u64 = 32 << 20;
/// How many bytes before a mark show whether the transcript is still the same.
const DIGEST_BYTES: u64 = 4096;
/// How many messages of a transcript are remembered, and how many transcripts of agents.
const MESSAGES: usize = 3;
const AGENTS: usize = 64;
/// The most transcripts of agents that are looked through in one session.
const AGENTS_LISTED: usize = 2000;
/// An agent that has written nothing for this long has written its last message completely.
const QUIET: TimeDelta = TimeDelta::seconds(60);
/// The client writes a line at most this much later than the line's own time.
const LATE: TimeDelta = TimeDelta::seconds(1);

/// The result of a look, and how far it read.
#[derive(Debug, Clone)]
pub struct MeterReading {
    /// `None` if there is no transcript to read.
    pub usage: Option<Usage>,
    /// The tokens of the session's fullest message since the last look.
    pub context_tokens: Option<u64>,
    pub metered: MeteredUsage,
}

/// The memory of a session whose loop begins now: what was used before is not the loop's.
pub fn begin_memory(hook: &Hook<'_>) -> SessionMemory {
    let transcript_bytes = hook.transcript.as_deref().map_or(0, disk::size);
    let file = hook.transcript.as_deref();
    let ends = file.map_or_else(String::new, |file| digest_before(file, transcript_bytes));
    let main = Mark { bytes: transcript_bytes, ends, ..Mark::default() };
    SessionMemory {
        prompt_id: hook.turn.clone(),
        transcript_bytes,
        transcript: hook.transcript.clone(),
        metered: MeteredUsage { since: Some(clock::now().wall), main, ..MeteredUsage::default() },
        ..SessionMemory::default()
    }
}

/// Reads the usage. `it_counts` says that the sum decides something or is the last: then the final
/// message is waited for, which the client writes after it has reported it.
pub fn read_meter(
    before: &Loop,
    hook: &Hook<'_>,
    words: Option<&str>,
    it_counts: bool,
) -> MeterReading {
    let memory = &before.state.session;
    let file = hook.transcript.as_deref().or(memory.transcript.as_deref());
    if it_counts
        && let (Some(file), Some(words), Some(reader)) = (file, words, hook.transcript_reader())
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
    let reader = clients::client_of(&state.owner).transcript.as_ref();
    let file = state.session.transcript.as_deref();
    let MeterReading { usage, metered, .. } =
        read_session(reader, file, &state.session.metered, BYTES_WHEN_IT_COUNTS);
    if let Some(usage) = usage {
        record.state.session_mut().metered = metered;
        record.count_use(0, Some(&usage));
    }
}

fn await_words(reader: &Transcript, file: &Path, from: u64, words: &str) {
    if !disk::exists(file) {
        return;
    }
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
            look.read_agents(&(reader.agents)(file), &mut metered, now);
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
                usage.lost |= (reader.may_hold_a_message)(line);
                return;
            }
            let Some((message, at)) = (reader.message)(line) else { return };
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
        let is_an_agents = self.reader.is_an_agents;
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
    (reader.final_text)(tail).is_some_and(|text| text.trim() == words.trim())
}

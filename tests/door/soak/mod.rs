//! Many boundaries in a row, each with a random fault, and a model of what every loop must become.
//! The default is a short run; `CREW_SOAK=2000` sets another length, `CREW_SOAK_SEED` repeats a
//! run's random numbers.

mod faults;
mod model;
mod waits;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::faults::FAULTS;
use self::model::{Check, Model, Said, Standing, Terms, Turn};
use super::{Answer, Dice, Door, Event, kept, replay, reported};
use crate::client::say;
use crate::sandbox::Sandbox;
use crate::side_by_side::side_by_side;
use crate::spawned::Ran;

const BOUNDARIES: u64 = 300;
/// The number of simultaneous worlds, because a hook waits for the disk most of its time. Each has
/// the next seed.
const LANES: u64 = 4;
const SEED: u64 = 0x5eed_0004;
/// A bound on the time of an iteration of this test, whatever happens to the wall clock.
const ITERATION: Duration = Duration::from_secs(10 * 60);

#[test]
#[ignore = "long"]
fn loops_with_a_fault_at_every_boundary_end_exactly_as_expected() {
    let boundaries = number("CREW_SOAK").unwrap_or(BOUNDARIES);
    let seed = number("CREW_SOAK_SEED").unwrap_or(SEED);
    let begun = Instant::now();
    let lanes = (0..LANES).map(|lane| move || Soak::run(seed + lane, boundaries / LANES));
    let all = side_by_side(lanes).into_iter().reduce(Soak::with).unwrap();
    println!("{boundaries} boundaries, seed {seed}, {:?}: {}", begun.elapsed(), all.figures());
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

struct Soak {
    door: Door,
    seed: u64,
    dice: Dice,
    boundary: u64,
    fault: &'static str,
    session: String,
    sessions: u64,
    /// The running loop, or the last one.
    model: Option<Model>,
    /// The earlier loops.
    past: Vec<Model>,
    tally: BTreeMap<&'static str, u64>,
}

impl Drop for Soak {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, boundary, fault, model, .. } = self;
            say(&format!(
                "CREW_SOAK_SEED={seed}: boundary {boundary}, {fault}; the model is {model:#?}"
            ));
        }
    }
}

impl Soak {
    fn new(seed: u64) -> Self {
        let mut soak = Self {
            door: Door::of(Sandbox::new().with_faults()),
            seed,
            // A generator that starts at zero stays there.
            dice: Dice(seed.max(1)),
            boundary: 0,
            fault: "none",
            session: String::new(),
            sessions: 0,
            model: None,
            past: Vec::new(),
            tally: BTreeMap::new(),
        };
        soak.new_session();
        std::fs::create_dir_all(soak.transcript().parent().unwrap()).unwrap();
        soak
    }

    fn run(seed: u64, boundaries: u64) -> Self {
        let mut soak = Self::new(seed);
        for boundary in 1..=boundaries {
            soak.boundary = boundary;
            soak.go_on();
            soak.break_something();
            soak.assert_as_modelled();
        }
        soak.finish();
        soak
    }

    /// Adds the figures of another run.
    fn with(mut self, mut other: Self) -> Self {
        self.past.append(&mut other.past);
        self.sessions += other.sessions;
        for (what, count) in &other.tally {
            *self.tally.entry(what).or_default() += count;
        }
        self
    }

    fn new_session(&mut self) {
        self.sessions += 1;
        self.session = format!("00000000-0000-4000-9000-{:012}", self.sessions);
    }

    fn transcript(&self) -> std::path::PathBuf {
        self.door.sandbox.home().join(".claude/projects/repo/session.jsonl")
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.dice.below(one_in) == 0
    }

    fn model(&mut self) -> &mut Model {
        self.model.as_mut().unwrap()
    }

    fn id(&self) -> String {
        self.model.as_ref().unwrap().id.clone()
    }

    /// An event of the session that owns the loop, in a client with a user.
    fn event(&self, name: &str) -> Event<'_> {
        self.door
            .event(name)
            .with("session_id", &*self.session)
            .env("CLAUDE_CODE_ENTRYPOINT", "cli")
    }

    fn typed(&self, command: &str, arguments: &str) -> Event<'_> {
        self.event("UserPromptExpansion")
            .with("command_name", format!("crew:{command}"))
            .with("command_args", arguments)
            .with("prompt_id", format!("p-{}", self.boundary))
    }

    fn prompt(&self, words: &str) -> Answer {
        self.event("UserPromptSubmit").with("prompt", words).send()
    }

    /// Makes sure that a loop is running.
    fn go_on(&mut self) {
        let over = self.model.as_ref().is_none_or(Model::is_over);
        let resumable = self
            .model
            .as_ref()
            .is_some_and(|model| model.is_over() && model.standing != Standing::Ended("completed"));
        if resumable && self.chance(4) {
            self.resume();
        } else if over {
            self.begin();
        }
        assert_eq!(self.model().standing, Standing::Running);
    }

    fn begin(&mut self) {
        let check = [Check::None, Check::None, Check::Verify, Check::Gate];
        let terms = Terms {
            max: if self.chance(12) { 0 } else { 1 + self.dice.below(8) },
            threshold: self.dice.below(5),
            stall: if self.chance(3) { 2 + self.dice.below(4) } else { 0 },
            check: check[usize::try_from(self.dice.below(4)).unwrap()],
            an_hour: self.chance(3),
        };
        // A check's verdict that changes is progress; the model knows only of files.
        let check = if terms.stall > 0 { Check::None } else { terms.check };
        let terms = Terms { check, ..terms };
        let mut typed = format!("\"go on\" -n {} --stall {}", terms.max, terms.stall);
        write!(typed, " --failure-threshold {}", terms.threshold).unwrap();
        typed.push_str(match terms.check {
            Check::None => "",
            Check::Verify => " --verify 'test -e ../sound'",
            Check::Gate => " --gate 'test -e ../sound'",
        });
        typed.push_str(if terms.an_hour { " --max-duration 1h" } else { "" });
        let answer = self.typed("loop", &typed).send();
        let id = answer.line().strip_prefix("loop ").and_then(|rest| rest.split_once(':'));
        let id = id.unwrap_or_else(|| panic!("no start: {answer:#?}")).0.to_owned();
        self.past.extend(self.model.replace(Model::begin(id, terms)));
    }

    /// Resumes the loop in the current session, sometimes after an attempt that is killed.
    fn resume(&mut self) {
        let (max, completed) = (self.model().terms.max, self.model().completed);
        let spent = max > 0 && completed >= max;
        let more = if spent || self.chance(8) { 1 + self.dice.below(4) } else { 0 };
        let limit = if more > 0 { format!(" -n +{more}") } else { String::new() };
        let arguments = self.id() + &limit;
        if self.chance(6) {
            let wait = self.dice.below(15_000);
            let hook = self.typed("resume", &arguments).start();
            faults::kill_after(&hook, wait);
            drop(hook);
            self.count("a resume killed");
        }
        let generation = |soak: &Self| {
            let journal = soak.door.journal(&soak.id());
            let resumed = |line: &&Value| reported(line)["what"] == "resumed in a session";
            journal.iter().rev().find(resumed).map(|line| line["generation"].clone())
        };
        let record = self.door.record(&self.id());
        let killed_too_late = record["state"]["status"] == "running"
            && generation(self).as_ref() == Some(&record["state"]["generation"]);
        if !killed_too_late {
            let answer = self.typed("resume", &arguments).send().assert_goes_on();
            let mut after = self.model().clone();
            after.resume(more);
            assert!(answer.context().starts_with(&after.marker()), "{answer:#?}");
            self.assert_reported(&answer);
        }
        self.model().resume(more);
    }

    /// A turn of the agent, with or without progress.
    fn turn(&mut self) -> Turn {
        let said = match self.dice.below(32) {
            0 | 1 => Said::Success,
            2..=5 => Said::Failure,
            6 => Said::Blocked,
            7 => Said::NearMiss,
            _ => Said::Nothing,
        };
        let sound = self.chance(2);
        let file = self.door.sandbox.root().join("sound");
        if sound {
            std::fs::write(file, "").unwrap();
        } else {
            std::fs::remove_file(file).ok();
        }
        if self.chance(2) {
            let text = format!("{} {:x}", self.boundary, self.dice.0);
            self.door.sandbox.write("work.txt", &text);
            self.model().change();
        }
        Turn { said, sound }
    }

    fn stopping(&self, turn: Turn) -> Event<'_> {
        let claim = match turn.said {
            Said::Nothing => "",
            Said::NearMiss => "<promise>COMPLETED</promise>",
            Said::Success => "<promise>COMPLETE</promise>",
            Said::Failure => "<promise>FAILURE: it broke</promise>",
            Said::Blocked => "<promise>BLOCKED: no key</promise>",
        };
        let words = format!("Stop {}, {:x}.\n{claim}", self.boundary, self.dice.0);
        self.event("Stop")
            .with("stop_hook_active", true)
            .with("prompt_id", "p-1")
            .with("last_assistant_message", words)
    }

    /// A normal stop, on a wall clock that may be wrong.
    fn stop_by(&mut self, clock_ms: i64) {
        let turn = self.turn();
        let event = self.stopping(turn).env("CREW_CLOCK_OFFSET_MS", clock_ms.to_string());
        let answer = event.send();
        let shown = std::mem::take(&mut self.model().words);
        self.model().iterate(turn);
        assert!(answer.ran.code() == 0 && answer.ran.stderr.is_empty(), "{answer:#?}");
        let Some(outcome) = self.model().standing.outcome() else {
            assert!(answer.context().starts_with(&self.model().marker()), "{answer:#?}");
            assert!(shown.iter().all(|words| answer.context().contains(words)), "{answer:#?}");
            self.model().continued += 1;
            return;
        };
        assert!(!answer.goes_on() && answer.line().contains(outcome), "{answer:#?}");
    }

    fn stop(&mut self) {
        self.stop_by(0);
    }

    /// Adopts the result of a stop whose hook was disturbed: it counts once or not at all, and the
    /// agent continues only if it counts.
    fn adopt(&mut self, turn: Turn, ran: &Ran) {
        let goes_on = ran.stdout.contains("additionalContext");
        let record = self.door.record(&self.id());
        let counts = record["state"]["boundaries"] != self.model().boundaries;
        if counts {
            self.model().iterate(turn);
        }
        assert!(!goes_on || (counts && !self.model().is_over()), "{ran:#?}");
        self.model().continued += u64::from(goes_on);
        self.count(if counts { "  and recorded" } else { "  and not recorded" });
        // The agent was let go; the user may send it a message.
        if !goes_on && !self.model().is_over() && self.chance(2) {
            self.prompt("go on").assert_silent();
        }
    }

    fn break_something(&mut self) {
        let index = usize::try_from(self.dice.below(FAULTS.len() as u64)).unwrap();
        let (name, fault) = FAULTS[index];
        self.fault = name;
        self.count(name);
        fault(self);
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    #[track_caller]
    fn assert_as_modelled(&mut self) {
        let model = self.model.as_ref().unwrap();
        let record = self.door.record(&model.id);
        let state = &record["state"];
        let found = |name: &str| state[name].as_u64().unwrap();
        assert_eq!(found("completed"), model.completed, "iterations: {state:#}");
        assert_eq!(found("boundaries"), model.boundaries, "boundaries: {state:#}");
        assert_eq!(found("consecutive_failures"), model.failures, "failures: {state:#}");
        assert_eq!(found("still"), model.still, "iterations without progress: {state:#}");
        assert_eq!(found("transient_errors"), model.transient, "transient errors: {state:#}");
        assert_eq!(state["status"], model.standing.status(), "{state:#}");
        assert_eq!(state["ending"]["outcome"].as_str(), model.standing.outcome(), "{state:#}");
        assert_eq!(record["contract"]["limits"]["max_iterations"], model.terms.max);
        assert!(model.terms.max == 0 || model.completed <= model.terms.max);
        assert!(model.highest.is_none_or(|highest| model.continued < highest), "went on too often");
        assert_eq!(state["owner"]["session_id"], *self.session);
        assert_eq!(state["owner"]["process"]["pid"], std::process::id());
        let elapsed = record["elapsed_ms"].as_array().unwrap();
        assert_eq!(elapsed.len() as u64, model.completed);
        let longest = elapsed.iter().filter_map(Value::as_u64).max().unwrap_or_default();
        assert!(Duration::from_millis(longest) < ITERATION, "an iteration of {longest} ms");
        if !model.is_over() {
            let home = self.door.sandbox.crew_home();
            let pointer = std::fs::read_to_string(home.join("sessions").join(&self.session));
            assert_eq!(pointer.unwrap().trim(), model.id);
        }
        assert_replays(&self.door, &model.id, &record);
    }

    /// Ends the last loop and checks all of them once more.
    fn finish(&mut self) {
        let id = self.id();
        self.door.sandbox.crew(&["cancel", &id]).success();
        if !self.model().is_over() {
            self.model().standing = Standing::Ended("cancelled");
        }
        self.assert_as_modelled();
        self.past.extend(self.model.take());
        let shown = self.door.sandbox.crew(&["status", "--all", "--json"]).success();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let shown = shown["loops"].as_array().unwrap();
        assert_eq!(shown.len(), self.past.len());
        for model in &self.past {
            let one = shown.iter().find(|one| one["id"] == *model.id).unwrap();
            assert_eq!(one["outcome"].as_str(), model.standing.outcome(), "{one:#}");
            assert_eq!(one["completed_iterations"], model.completed, "{one:#}");
            assert_replays(&self.door, &model.id, &self.door.record(&model.id));
        }
    }

    fn figures(&self) -> String {
        let mut text = format!("{} loops, {} sessions", self.past.len(), self.sessions);
        let sum = |of: fn(&Model) -> u64| self.past.iter().map(of).sum::<u64>();
        write!(text, ", {} boundaries recorded", sum(|model| model.boundaries)).unwrap();
        write!(text, ", {} iterations counted", sum(|model| model.completed)).unwrap();
        write!(text, ", {} continuations", sum(|model| model.continued)).unwrap();
        let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
        for model in &self.past {
            *outcomes.entry(model.standing.outcome().unwrap()).or_default() += 1;
        }
        write!(text, ", {outcomes:?}").unwrap();
        for (fault, count) in &self.tally {
            write!(text, "\n{count:>5} {fault}").unwrap();
        }
        text
    }
}

/// Asserts that the journal adds up to the record, of which it may be one line ahead, and ends a
/// loop once, until it is resumed.
#[track_caller]
fn assert_replays(door: &Door, id: &str, record: &Value) {
    let mut journal = door.journal(id);
    let generation = record["state"]["generation"].as_u64().unwrap();
    journal.retain(|line| line["generation"].as_u64().unwrap() <= generation);
    assert_eq!(replay(&journal), *record);
    let mut ended = false;
    for line in kept(&journal) {
        let event = reported(line);
        let after = &event["after"];
        let state = [
            &event["state"],
            &event["record"]["state"],
            &after["state"],
            &after["record"]["state"],
        ];
        let ends = state.iter().any(|state| state["status"] == "finished");
        assert!(!(ended && ends), "a second ending: {line:#}");
        ended = ends;
    }
}

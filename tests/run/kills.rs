//! `kill -9` of crew, wherever it is: what was counted stays counted, at most the running iteration
//! is lost, and no agent works beside another.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use super::World;
use super::claude::{COST, answer};
use crate::sandbox::{DEADLINE, poll_until, write_executable};

/// The tokens that one answer reports.
const TOKENS: u64 = 110;
const KILLS: usize = 50;
const ITERATIONS: usize = 20;

/// Locks the checkout, as its process in a separate session does afterwards; works, and answers.
fn step() -> String {
    format!(
        "exec 9>> .git/agent.lock\n\
         flock -n 9 || echo \"call $call\" >> \"$notes/violations\"\n\
         setsid sleep 600 & echo $! >> \"$notes/children\"\n\
         echo \"call $call\" >> work.txt\n\
         sleep 0.$((call % 3))\n\
         {}\n",
        answer("Wrote a line.")
    )
}

/// Numbers that spread well enough; the same for the same seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// The records of all loops.
#[derive(Debug)]
struct Reported {
    loops: Vec<Value>,
}

impl Reported {
    fn of(world: &World) -> Self {
        Self { loops: world.loops() }
    }

    fn sum(&self, key: &str) -> u64 {
        self.loops.iter().map(|it| it[key].as_u64().unwrap()).sum()
    }

    fn completed(&self) -> usize {
        usize::try_from(self.sum("completed_iterations")).unwrap()
    }

    /// Checks that there are never more iterations than requested, each with its time and its cost.
    /// Iterations lost by a kill count with what their agents had reported.
    #[track_caller]
    fn check(&self, kills: usize) {
        for it in &self.loops {
            let completed = it["completed_iterations"].as_u64().unwrap();
            assert!(completed <= ITERATIONS as u64, "{it:#}");
            let tokens = it["usage"]["total_tokens"].as_u64().unwrap();
            let counted = tokens / TOKENS;
            assert_eq!(tokens, TOKENS * counted, "{it:#}");
            assert!(counted >= completed && counted <= completed + kills as u64, "{it:#}");
            let cost = it["usage"]["cost_usd"].as_f64().unwrap();
            let expected = COST * f64::from(u32::try_from(counted).unwrap());
            assert!((cost - expected).abs() < 1e-9, "{it:#}");
            let times = it["iterations_ms"].as_array().unwrap();
            let times: u64 = times.iter().map(|time| time.as_u64().unwrap()).sum();
            assert!(it["awake_ms"].as_u64().unwrap() >= times, "{it:#}");
        }
    }
}

#[test]
#[ignore = "long"]
fn fifty_kills_lose_at_most_the_running_iteration_and_never_let_two_agents_work() {
    let world = World::claude(&[&step()], "");
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    println!("seed {seed}");
    let mut dice = Dice(u64::from(seed));
    let iterations = ITERATIONS.to_string();
    let anew = ["run", "Write lines", "-n", &iterations, "--stall", "0"];
    let (mut live, mut kills, mut awake) = (None::<String>, 0, 0);
    while kills < KILLS || live.is_some() {
        let arguments: Vec<&str> = match &live {
            Some(id) => vec!["resume", id],
            None => anew.to_vec(),
        };
        let running = world.sandbox.start_crew(&arguments);
        if kills < KILLS {
            std::thread::sleep(Duration::from_millis(dice.below(900)));
            running.signal(Signal::KILL);
        }
        let ran = running.wait(DEADLINE * 3);
        assert!(ran.status.code().is_none_or(|code| code == 10), "{ran:#?}");
        kills += usize::from(ran.status.code().is_none());
        let shown = Reported::of(&world);
        shown.check(kills);
        assert!(shown.sum("awake_ms") >= awake, "{shown:#?}");
        awake = shown.sum("awake_ms");
        let lost = world.calls() - shown.completed();
        assert!(lost <= kills, "{lost} iterations lost by {kills} kills\n{ran:#?}");
        let unfinished = shown.loops.iter().find(|it| it["outcome"] != "exhausted");
        live = unfinished.map(|it| it["id"].as_str().unwrap().to_owned());
    }
    let shown = Reported::of(&world);
    println!("{} iterations of {} loops", shown.completed(), shown.loops.len());
    assert_eq!(shown.completed(), ITERATIONS * shown.loops.len());
    let violations = std::fs::read_to_string(world.note("violations")).unwrap_or_default();
    assert_eq!(violations, "", "two agents in one checkout");
    let children = std::fs::read_to_string(world.note("children")).unwrap();
    let left: Vec<&str> = children.lines().filter(|id| lives(id)).collect();
    assert_eq!(left, [""; 0], "processes of killed agents are left");
}

/// The seeds of the kills that always run. `CREW_SOAK=N` adds random ones, up to N in all.
const SEEDS: u64 = 10;
/// The longest time between an end and a kill, in milliseconds.
const AFTER_END_MS: u64 = 150;
/// The answer of the origin to the first push of every second seed, however fast the machine is:
/// after the kill, and with a refusal.
const HOLD: &str = "#!/bin/sh
test -e ../killed && exit
for wait in $(seq 600); do test -e ../killed && exit 1; sleep 0.1; done
exit 1
";

#[test]
fn a_kill_between_the_end_and_its_commit_or_push_is_never_forgotten() {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let all = std::env::var("CREW_SOAK").map_or(SEEDS, |all| all.parse().unwrap());
    let (mut ended, mut left) = (0, 0);
    for number in 1..=all {
        let seed = if number <= SEEDS { number } else { time * 100 + number };
        let (is_over, is_left) = kill_once(seed);
        ended += usize::from(is_over);
        left += usize::from(is_left);
    }
    println!("{all} kills: {ended} after the end was recorded, {left} with something pending");
    assert!(left > 0, "no kill came between an end and its push");
}

/// Kills a run and resumes it: one in four at any point, the others in the steps after its end.
/// Returns whether it had ended, and whether something was left to do.
fn kill_once(seed: u64) -> (bool, bool) {
    let world =
        World::new(&["echo right >> work.txt; echo '<promise>COMPLETE</promise>'"]).with_origin();
    if seed.is_multiple_of(2) {
        write_executable(&world.sandbox.root().join("origin.git/hooks/pre-receive"), HOLD);
    }
    let arguments =
        ["run", "Write a line", "-n", "3", "--commit", "--push", "--verify", "cat work.txt"];
    let running = world.sandbox.start_crew(&arguments);
    let mut dice = Dice(seed);
    if dice.below(4) == 0 {
        std::thread::sleep(Duration::from_millis(dice.below(1500)));
    } else {
        wait_for_the_end(&world);
        std::thread::sleep(Duration::from_millis(dice.below(AFTER_END_MS)));
    }
    running.signal(Signal::KILL);
    std::fs::write(world.sandbox.root().join("killed"), "").unwrap();
    let ran = running.wait(DEADLINE);
    let loops = world.loops();
    let is_over = loops.iter().any(|it| it["outcome"] == "completed");
    let pending = loops.first().map_or(0, |it| it["pending"].as_array().map_or(0, Vec::len));
    let is_published = || {
        let head = world.sandbox.git(&["rev-parse", "HEAD"]);
        world.sandbox.git(&["status", "--porcelain"]).is_empty()
            && world.sandbox.git(&["ls-remote", "origin", "refs/heads/main"]).starts_with(&head)
    };
    if is_over && pending == 0 {
        assert!(is_published(), "seed {seed}: completed, and forgotten\n{ran:#?}");
        return (true, false);
    }
    if loops.is_empty() {
        return (false, false);
    }
    let list = world.crew(&["status", "--all"]).success();
    let is_named = list.contains("not committed") || list.contains("not pushed");
    assert!(!is_over || is_named, "seed {seed}: {list}");
    let resumed = world.crew(&["resume"]);
    assert_eq!(resumed.code(), 0, "seed {seed}: {resumed:#?}");
    assert!(is_published(), "seed {seed}: {resumed:#?}");
    let locks = ["index", "HEAD", "ORIG_HEAD", "packed-refs", "config", "refs/heads/main"];
    for lock in locks {
        let path = world.sandbox.file(&format!(".git/{lock}.lock"));
        assert!(!path.exists(), "seed {seed}: {lock}.lock\n{resumed:#?}");
    }
    assert_eq!(world.loops()[0]["pending"], serde_json::json!([]), "seed {seed}");
    (is_over, pending > 0)
}

/// Waits until the record of the only loop has an ending.
fn wait_for_the_end(world: &World) {
    let folder = world.sandbox.crew_home().join("loops");
    poll_until("the end is recorded", || {
        let loops = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let records = loops.filter_map(|it| std::fs::read(it.path().join("loop.json")).ok());
        let mut records = records.filter_map(|it| serde_json::from_slice::<Value>(&it).ok());
        records.any(|record| record["state"]["ending"].is_object())
    });
}

/// Whether the process that an agent left exists: its id may be another's by now.
pub(super) fn lives(id: &str) -> bool {
    let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    command == b"sleep\x00600\x00"
}

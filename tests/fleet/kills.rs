//! `kill -9` of an attempt and of the coordinator, at each moment of a task: nothing is done twice
//! except the interrupted iteration, nothing is lost, and every task ends.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{FleetWorld, LONG, TWO, process_of};
use crate::sandbox::poll_until;
use crate::side_by_side::side_by_side;
use crate::spawned::Running;

/// Waits here the first time, until the test ends.
const HOLD: &str = "if mkdir $NOTES/here 2>/dev/null; then
while test -d $NOTES; do sleep 0.1; done & echo $! > $NOTES/holder; wait; fi";

/// A moment at which an attempt is ended, and the total number of iterations that begin.
#[derive(Debug)]
struct Moment {
    name: &'static str,
    agent: String,
    verify: String,
    setup: String,
    git: String,
    begun: &'static [u32],
    work: &'static str,
    /// Whether the held process is a user's command, and not a step of crew's own.
    is_ended: bool,
}

fn moments() -> [Moment; 8] {
    let usual = |name, begun| Moment {
        name,
        agent: TWO.to_owned(),
        verify: "grep -q 2 work-a".to_owned(),
        setup: "true".to_owned(),
        git: String::new(),
        begun,
        work: "1\n2\n",
        is_ended: false,
    };
    [
        Moment {
            git: format!("case \" $* \" in *' reset --quiet --hard HEAD '*) {HOLD} ;; esac"),
            ..usual("the clone", &[1, 2])
        },
        Moment { setup: HOLD.to_owned(), is_ended: true, ..usual("setup", &[1, 2]) },
        Moment { agent: format!("{HOLD}; {TWO}"), is_ended: true, ..usual("agent", &[1, 1, 2]) },
        Moment {
            agent: format!("[ $iteration -eq 1 ] || {{ {HOLD}; }}; {TWO}"),
            is_ended: true,
            ..usual("agent, later", &[1, 2, 2])
        },
        Moment {
            verify: format!("grep -q 2 work-a && {{ {HOLD}; }}"),
            work: "1\n2\n2\n",
            is_ended: true,
            ..usual("check", &[1, 2, 2])
        },
        Moment {
            git: format!("case \" $* \" in *' update-ref -m commit: '*) {HOLD} ;; esac"),
            ..usual("commit", &[1, 2])
        },
        Moment {
            git: format!(
                "grep -qs 'begin a 2' $NOTES/log && case \" $* \" in *' update-ref -m commit: '*) {HOLD} ;; esac"
            ),
            ..usual("the last commit", &[1, 2])
        },
        Moment {
            git: format!(
                "[ -n \"$GIT_INDEX_FILE\" ] || case \" $* \" in *' update-index --add --remove --replace '*)
                if [ $(/usr/bin/git rev-list --count HEAD) = 3 ]; then
                test -d $NOTES/here || touch \"$(/usr/bin/git rev-parse --git-dir)/index.lock\"
                {HOLD}; fi ;; esac"
            ),
            ..usual("the index", &[1, 2])
        },
    ]
}

fn killed_at(moment: &Moment) {
    let world = FleetWorld::new(&moment.agent)
        .tasks(&["a"], &format!("verify = ['''{}''']", moment.verify))
        .terms(&format!("setup = '''{}'''", moment.setup))
        .ready();
    world.sandbox.program("git", &format!("{}\nexec /usr/bin/git \"$@\"", moment.git));
    let running = world.start(&[]);
    world.until("it is held", |world| world.noted("holder").ends_with('\n'));
    world.kill_attempt("a");
    let ran = running.wait(LONG);
    let (name, task) = (moment.name, world.task("a"));
    assert_eq!((name, ran.code()), (name, 0), "{ran:#?}\n{task:#}");
    assert_eq!((name, &*world.begun("a")), (name, moment.begun));
    assert_eq!((name, &*world.work("a", "work-a")), (name, moment.work));
    assert_eq!((name, world.attempt("a")), (name, 1), "it continues with its clone");
    if moment.is_ended {
        holder_is_gone(name, &world);
    }
}

/// Asserts that what a killed attempt had started is gone once its next process has ended.
#[track_caller]
fn holder_is_gone(name: &str, world: &FleetWorld) {
    let holder = format!("/proc/{}", world.noted("holder").trim());
    let expected = format!("{name}: what the killed attempt had started is gone");
    poll_until(&expected, || !Path::new(&holder).exists());
}

#[test]
#[ignore = "long"]
fn an_attempt_killed_at_any_moment_continues_and_repeats_at_most_one_iteration() {
    side_by_side(moments().map(|moment| move || killed_at(&moment)));
}

#[test]
#[ignore = "long"]
fn a_rebase_begun_by_a_killed_attempt_is_undone_and_repeated_with_all_its_work() {
    let world = FleetWorld::new(&format!("[ $iteration -gt 1 ] || wait_for moved; {TWO}"))
        .file(".gitattributes", "*.held filter=held\n")
        .tasks(&["a"], "verify = [\"grep -q 2 work-a\"]")
        .shared()
        .ready();
    world.sandbox.git(&["config", "filter.held.smudge", &format!("{HOLD}; cat")]);
    let running = world.start(&["--push"]);
    world.until("a works", |world| world.begun("a") == [1]);
    let world = world.file("new.held", "new\n").ready();
    world.allow("moved");
    world.until("it is held", |world| world.noted("holder").ends_with('\n'));
    assert!(world.clone_of("a").join(".git/rebase-merge").exists());
    world.kill_attempt("a");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert_eq!(["work-a", "new.held"].map(|it| world.work("a", it)), ["1\n2\n", "new\n"]);
}

#[test]
#[ignore = "long"]
fn attempts_outlive_their_coordinator_and_the_next_one_adopts_them() {
    let world = FleetWorld::new(&format!("wait_for go; {TWO}"))
        .tasks(&["a", "b", "c"], "")
        .terms("slots = 2")
        .ready();
    let first = world.start(&[]);
    world.until("two work", |world| [world.begun("a"), world.begun("b")] == [[1], [1]]);
    first.signal(Signal::KILL);
    assert_eq!(first.wait(LONG).status.code(), None);
    // One of them dies while nobody coordinates.
    let (a, b) = (world.report("a"), world.report("b"));
    world.kill_attempt("b");

    let next = world.start(&[]);
    world.until("it has the fleet", |_| next.stdout().contains("adopted"));
    let refused = world.start(&[]).wait(LONG);
    assert_eq!(refused.code(), 1, "{refused:#?}");
    world.until("b is tried again", |world| world.begun("b") == [1, 1]);
    assert_eq!((world.state("a"), world.report("a")), ("running".into(), a));
    assert_ne!(world.report("b")["process"], b["process"]);
    world.allow("go");
    let next = next.wait(LONG);
    assert_eq!(next.code(), 0, "{next:#?}");
    let begun = ["a", "b", "c"].map(|task| world.begun(task));
    assert_eq!(begun, [vec![1, 2], vec![1, 1, 2], vec![1, 2]]);
    assert_eq!(["a", "b", "c"].map(|task| world.attempt(task)), [1; 3]);
}

#[test]
#[ignore = "long"]
fn a_loop_with_returned_work_commits_even_if_it_was_killed_before_its_first_iteration() {
    let agent = "echo $iteration >> work-a; [ $iteration -lt 2 ] || touch fixed; claim";
    let world = FleetWorld::new(agent)
        .tasks(&["a"], "verify = [\"grep -q 1 work-a\"]")
        .terms("[land]\ncheck = ['case $PWD in */land) test -e fixed ;; esac']")
        .shared()
        .ready();
    // It asks what was not committed before the loop.
    let asks = "*/a.2' '*' status '*' -uall '*";
    let git = format!(
        "[ -n \"$GIT_DIR$GIT_INDEX_FILE\" ] || case \"$PWD  $* \" in {asks}) {HOLD} ;; esac"
    );
    world.sandbox.program("git", &format!("{git}\nexec /usr/bin/git \"$@\""));
    let running = world.start(&["--land"]);
    world.until("it is held", |world| world.noted("holder").ends_with('\n'));
    world.kill_attempt("a");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert_eq!(world.shown("main", "work-a"), "1\n2\n");
}

#[test]
fn an_interrupted_landing_is_repeated_and_its_check_is_ended() {
    let world = FleetWorld::new(TWO)
        .tasks(&["a"], "verify = [\"grep -q 2 work-a\"]")
        .terms(&format!("[land]\ncheck = ['''case $PWD in */land) {HOLD} ;; esac''']"))
        .shared()
        .ready();
    let running = world.start(&["--land"]);
    world.until("its check is held", |world| world.noted("holder").ends_with('\n'));
    running.signal(Signal::KILL);
    assert_eq!(running.wait(LONG).status.code(), None);
    assert_eq!(
        (world.state("a"), world.shown("main", "work-a")),
        ("landing".into(), String::new())
    );
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert_eq!(world.shown("main", "work-a"), "1\n2\n");
    holder_is_gone("landing", &world);
}

/// The records that the loop of an attempt of two iterations writes in its life.
const RECORDS: u32 = 7;

/// Kills the attempt after the record of its loop was written this many times, but not its next
/// process, while no coordinator runs. Returns whether it was killed.
fn cut_off_after(record: u32) -> bool {
    let world =
        FleetWorld::with_faults(TWO).tasks(&["a"], "verify = [\"grep -q 2 work-a\"]").with_nodes();
    let coordinator = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    coordinator.signal(Signal::KILL);
    coordinator.wait(LONG);
    let fault = format!("record.after#{record}=kill");
    let first = world.on("node").runs_with("a.1", &[("CREW_FAULT", &fault)]).wait(LONG);
    let signal = first.status.signal();
    assert!(signal == Some(Signal::KILL.as_raw()) || first.status.success(), "{first:#?}");
    let ran = world.on("node").runs("a.1").wait(LONG);
    assert_eq!(ran.code(), 0, "{record}: {ran:#?}");
    let begun = world.begun("a");
    assert!([&[1, 2][..], &[1, 1, 2], &[1, 2, 2]].contains(&&*begun), "{record}: {begun:?}");
    let numbers: Vec<String> = begun.iter().map(|number| format!("{number}\n")).collect();
    assert_eq!((record, world.shown("fleet/repo/a/1", "work-a")), (record, numbers.concat()));
    signal.is_some()
}

#[test]
#[ignore = "long"]
fn an_attempt_killed_at_any_record_of_its_loop_continues_and_its_work_is_pushed_once() {
    // One more than there are: it must find none, or a record was left out here.
    side_by_side((1..=RECORDS + 1).map(|record| {
        move || assert_eq!((record, cut_off_after(record)), (record, record <= RECORDS))
    }));
}

/// The kills of one fleet, and how many of them may hit one task: three in a row without a
/// completed iteration end it.
const KILLS: usize = 10;
const KILLS_OF_TASK: u32 = 2;
/// How long a fleet of twelve tasks may take on a busy machine.
const SOAK: Duration = Duration::from_secs(400);
const TASKS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// Two tasks each write to the end of one file, so the second of them to land is in conflict. `k`
/// and `l` are red together, and `j` is red alone until its loop has another iteration.
const SOAKED: &str = r#"sleep 0.1
pair() { grep -qx "$task" "$1" 2> /dev/null || echo "$task" >> "$1"; }
for file in pair-*; do
    if test -f "$file"; then sed -i '/^<<<<<<< /d; /^=======$/d; /^>>>>>>> /d' "$file"; fi
done
case $task in a|b) pair pair-1 ;; c|d) pair pair-2 ;; e|f) pair pair-3 ;; esac
case $task in
    j) if test -e done-j; then rm -f bad; else echo bad > bad; fi ;;
    k|l)
        echo "$task" > "half-$task"
        if test -e half-k && test -e half-l; then echo settled > settled; fi ;;
esac
echo "$task" > "done-$task"
claim"#;
/// A command that must succeed for every commit of main.
const GREEN: &str = "test ! -e bad && { test ! -e half-k || test ! -e half-l || test -e settled; } \
    && ! grep -qs '^<<<<<<< ' pair-*";

/// Numbers that spread well enough; the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// The descendants of a process, each with its arguments.
fn below(top: Pid) -> Vec<(Pid, String)> {
    let listed = Command::new("ps").args(["-axo", "pid=,ppid=,args="]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let [pid, parent] = [words.next()?, words.next()?].map(|word| word.parse().ok());
        Some((Pid::from_raw(pid?)?, Pid::from_raw(parent?), words.collect::<Vec<_>>().join(" ")))
    };
    let all: Vec<_> = text.lines().filter_map(row).collect();
    let (mut found, mut at) = (vec![(top, String::new())], 0);
    while at < found.len() {
        let above = Some(found[at].0);
        let its = all.iter().filter(|(_, parent, _)| *parent == above);
        found.extend(its.map(|(pid, _, words)| (*pid, words.clone())));
        at += 1;
    }
    found.split_off(1)
}

/// Kills the coordinator, one of the attempts, or what one of these has started: a git, also in the
/// middle of a push, an agent or a check. False if no such process runs now. The remote's own
/// processes are spared, and so are those of a landing's checks, because killing them makes a check
/// fail.
fn kill_one(
    world: &FleetWorld,
    dice: &mut Dice,
    coordinator: &mut Running,
    kills: &mut BTreeMap<&'static str, u32>,
) -> bool {
    let runs = |task: &&&'static str| {
        let spared = kills.get(**task).is_some_and(|count| *count >= KILLS_OF_TASK);
        !spared && world.state(task) == "running" && process_of(&world.report(task)).is_some()
    };
    let running: Vec<&'static str> = TASKS.iter().filter(runs).copied().collect();
    let task = if running.is_empty() { None } else { Some(running[dice.below(running.len())]) };
    let attempt = task.and_then(|task| process_of(&world.report(task)));
    let is_git = |(_, words): &(Pid, String)| {
        words.split(' ').next().is_some_and(|word| word.ends_with("git"))
            && !words.contains("receive-pack")
            && !words.contains("upload-pack")
    };
    let (process, task) = match dice.below(4) {
        0 => {
            coordinator.signal(Signal::KILL);
            poll_until("the coordinator's end", || coordinator.has_ended());
            let killed = std::mem::replace(coordinator, world.start(&["--land"]));
            assert_eq!(killed.wait(LONG).status.code(), None);
            return true;
        }
        1 => (attempt, task),
        2 => {
            let started = below(coordinator.pid());
            let attempts = started.iter().filter(|(_, words)| words.contains(" fleet attempt "));
            let of_attempts: Vec<Pid> =
                attempts.flat_map(|(attempt, _)| below(*attempt)).map(|(pid, _)| pid).collect();
            let mut gits = started.iter().filter(|it| is_git(it) && !of_attempts.contains(&it.0));
            (gits.next().map(|(pid, _)| *pid), None)
        }
        _ => {
            let started = attempt.map(below).unwrap_or_default();
            let chosen = if started.is_empty() { 0 } else { dice.below(started.len()) };
            (started.get(chosen).map(|(pid, _)| *pid), task)
        }
    };
    if process.is_none_or(|it| kill_process(it, Signal::KILL).is_err()) {
        return false;
    }
    if let Some(task) = task {
        *kills.entry(task).or_default() += 1;
    }
    true
}

/// Runs twelve tasks with conflicts and failing checks, and ten kills. Returns how many kills hit
/// something.
fn soak(seed: u64) -> usize {
    let world =
        FleetWorld::new(SOAKED).terms(&format!("slots = 4\n[land]\ncheck = [\"\"\"{GREEN}\"\"\"]"));
    let world = TASKS.iter().fold(world, |world, task| {
        world.tasks(&[task], &format!("verify = [\"grep -qx {task} done-{task}\"]"))
    });
    let world = world.shared().ready();
    let (mut dice, mut kills, mut hits) = (Dice(seed), BTreeMap::new(), 0);
    let mut coordinator = world.start(&["--land"]);
    let ran = loop {
        while hits < KILLS && !coordinator.has_ended() {
            sleep(Duration::from_millis(50 + dice.below(250) as u64));
            if !coordinator.has_ended() && kill_one(&world, &mut dice, &mut coordinator, &mut kills)
            {
                hits += 1;
            }
        }
        let ran = coordinator.wait(SOAK);
        let has_begun = ran.stdout.lines().any(|line| line.starts_with('['));
        if ran.code() != 1 || has_begun || !ran.stderr.contains("git was ended before it finished")
        {
            break ran;
        }
        // A git process of its start was killed, before it had begun anything.
        coordinator = world.start(&["--land"]);
    };
    assert_eq!((seed, ran.code()), (seed, 0), "{:#?}\n{ran:#?}", world.states(&TASKS));
    every_task_is_done_once(&world, seed);
    let main = world.git_there(&["rev-parse", "main"]);
    assert_eq!((seed, world.run(&["--land"]).code()), (seed, 0), "nothing is left to do");
    assert_eq!((seed, world.git_there(&["rev-parse", "main"])), (seed, main));
    hits
}

#[track_caller]
fn every_task_is_done_once(world: &FleetWorld, seed: u64) {
    let landed = world.git_there(&["log", "--format=%s", "main"]);
    for task in TASKS {
        let subject = format!("Do task {task}.");
        let commits = landed.lines().filter(|line| *line == subject).count();
        assert_eq!((seed, task, commits), (seed, task, 1), "{landed}");
        assert_eq!(world.shown("main", &format!("done-{task}")), format!("{task}\n"));
    }
    for (file, pair) in [("pair-1", "ab"), ("pair-2", "cd"), ("pair-3", "ef")] {
        let mut lines: Vec<char> = world.shown("main", file).chars().collect();
        lines.retain(|it| *it != '\n');
        lines.sort_unstable();
        assert_eq!((seed, lines.into_iter().collect::<String>()), (seed, pair.to_owned()));
    }
    let tree = world.sandbox.root().join("judged").display().to_string();
    world.sandbox.git(&["clone", "--quiet", &world.hub().display().to_string(), &tree]);
    for commit in world.git_there(&["rev-list", "main"]).lines() {
        world.sandbox.git(&["-C", &tree, "checkout", "--quiet", commit]);
        let mut check = world.sandbox.command("sh");
        check.args(["-c", GREEN]).current_dir(&tree);
        let green = Running::start(check, None).wait(LONG);
        assert!(green.status.success(), "{seed}: main is red at {commit}");
    }
}

#[test]
#[ignore = "long"]
fn twelve_tasks_are_each_done_once_and_main_never_breaks_whatever_is_killed() {
    let kills = std::env::var("CREW_KILLS").ok().map_or(KILLS, |kills| kills.parse().unwrap());
    let mut hits = 0;
    for seed in 1..=kills.div_ceil(KILLS) {
        hits += soak(seed as u64);
    }
    assert!(hits * 2 >= kills, "only {hits} of {kills} kills hit something");
}

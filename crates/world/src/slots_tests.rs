use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use rustix::process::{Signal, getpid, kill_process};

use super::*;
use crate::clock::Deadline;
use crate::env;
use crate::process::fixture::run_alone;
use crate::process::{Call, ExitCause, identity, signals};
use engine::record::ProcessIdentity;

/// The longest wait for other processes, on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(100);
/// The time between two polls.
const STEP: Duration = Duration::from_millis(20);

fn a_home() -> (tempfile::TempDir, Home) {
    let folder = testkit::folder();
    let home = Home::at(folder.path());
    disk::make_folder(&home.slots_folder().join("queue")).unwrap();
    (folder, home)
}

fn names(home: &Home) -> Vec<String> {
    let mut names = disk::list_names(&home.slots_folder().join("queue"), QUEUE_MAX).unwrap();
    names.sort();
    names
}

/// Polls a queue that must give a slot now.
fn taken(queue: &mut SlotQueue) -> Slot {
    queue.poll().unwrap().expect("a slot")
}

/// Polls a queue that must not give a slot, and returns how many are before it.
fn refused(queue: &mut SlotQueue) -> usize {
    assert!(queue.poll().unwrap().is_none());
    queue.count_ahead()
}

#[test]
fn the_first_ticket_gets_the_slot_unless_a_more_urgent_one_joins() {
    run_alone(|| {
        let (_folder, home) = a_home();
        let join = |priority| SlotQueue::join(&home, priority, 1).unwrap();
        let (mut first, mut second) = (join(5), join(5));
        assert_eq!((refused(&mut second), names(&home).len()), (1, 2));
        let slot = taken(&mut first);
        assert_eq!((slot.number(), names(&home).len()), (0, 1));
        assert_eq!(refused(&mut second), 0);
        let mut urgent = join(9);
        assert_eq!(refused(&mut second), 1);
        drop(slot);
        assert_eq!(refused(&mut second), 1);
        drop(taken(&mut urgent));
        assert_eq!(refused(&mut urgent), 0, "a queue gives one slot, also where one is free");
        drop(join(5));
        assert_eq!((taken(&mut second).number(), names(&home)), (0, Vec::new()));
    });
}

#[test]
fn a_loop_limited_to_fewer_slots_uses_the_first_ones_and_blocks_no_other() {
    run_alone(|| {
        let (_folder, home) = a_home();
        let join = |slots| SlotQueue::join(&home, 5, slots).unwrap();
        let zero = taken(&mut join(1));
        let (mut narrow, mut wide) = (join(1), join(3));
        assert_eq!(refused(&mut narrow), 0);
        let one = taken(&mut wide);
        assert_eq!((one.number(), wide.count_ahead()), (1, 1));
        assert_eq!([0, 1, 2, 3].map(|slots| holders(&home, slots)), [0, 1, 2, 2]);
        drop(zero);
        assert_eq!(holders(&home, 3), 1);
        assert_eq!(taken(&mut narrow).number(), 0);
        drop(one);
        assert_eq!(holders(&home, 3), 0);
    });
}

#[test]
fn tickets_of_dead_owners_are_removed_and_other_files_are_left_alone() {
    run_alone(|| {
        let (_folder, home) = a_home();
        let queue = home.slots_folder().join("queue");
        let draft = format!(".{}", SlotTicket::new(9, 4, clock::now().wall, 1, 0));
        for name in ["9-1-1-0-4", "9-2-1-0-4", ".9-3-1-0-4", "notes", &draft] {
            drop(disk::create_private(&queue.join(name)).unwrap());
        }
        disk::make_folder(&queue.join("9-4-1-0-4")).unwrap();
        assert_eq!(taken(&mut SlotQueue::join(&home, 0, 4).unwrap()).number(), 0);
        assert_eq!(names(&home), [&draft, "9-4-1-0-4", "notes"]);
    });
}

#[test]
fn a_ticket_is_skipped_until_its_silent_owner_asks_again() {
    run_alone(|| {
        let (_folder, home) = a_home();
        let mut stopped = SlotQueue::join(&home, 9, 1).unwrap();
        let mut next = SlotQueue::join(&home, 5, 1).unwrap();
        let asked = |ago: Duration| {
            let file = stopped.ticket_file(&stopped.ticket.to_string());
            let at = clock::now().wall - ago;
            disk::open_file(&file).unwrap().unwrap().set_modified(at.into()).unwrap();
        };
        asked(SILENCE / 2);
        assert_eq!(refused(&mut next), 1);
        asked(SILENCE * 2);
        let slot = taken(&mut next);
        let mut last = SlotQueue::join(&home, 5, 1).unwrap();
        assert_eq!((refused(&mut last), refused(&mut stopped), refused(&mut last)), (0, 0, 1));
        drop(slot);
        assert_eq!(taken(&mut stopped).number(), 0);
    });
}

/// The slot that a child process reads from its environment.
fn slot_of_child(slot: Option<&str>) -> String {
    let call = Call::shell("printf %s \"${CREW_SLOT-none}\"", Path::new("/"));
    call.envs(slot.map(|slot| ("CREW_SLOT", slot))).run(|| false).unwrap().text()
}

#[test]
fn a_child_gets_the_held_slot_or_else_the_inherited_one() {
    run_alone(|| {
        let (_folder, home) = a_home();
        let inherited = env::text("CREW_SLOT").unwrap_or("none".to_owned());
        assert_eq!((own_number(), slot_of_child(None)), (None, inherited.clone()));
        let take = || taken(&mut SlotQueue::join(&home, 5, 2).unwrap());
        let slot = take();
        assert_eq!((own_number(), slot_of_child(None)), (Some(0), "0".to_owned()));
        assert_eq!(slot_of_child(Some("8")), "8");
        let next = take();
        drop(slot);
        assert_eq!((own_number(), slot_of_child(None)), (Some(1), "1".to_owned()));
        drop(next);
        assert_eq!((own_number(), slot_of_child(None)), (None, inherited.clone()));
        if inherited == "none" {
            let test = "slots::tests::a_child_gets_the_held_slot_or_else_the_inherited_one";
            let call = Call::of(env::program_path().unwrap(), Path::new("/"));
            let call = call.args(["--exact", test]).envs([("CREW_SLOT", "7")]);
            let ended = call.run(|| false).unwrap();
            assert_eq!(ended.cause(), ExitCause::Exit(0), "{}", ended.text());
            assert!(ended.text().contains("1 passed"), "{}", ended.text());
        }
    });
}

#[test]
fn the_machine_has_room_for_a_few_slots() {
    let SlotCount { count, why } = default_count();
    assert!((1..=4).contains(&count) && why.starts_with(&format!("{count} slot")), "{count} {why}");
    let memory = memory_bytes();
    assert_eq!(memory.is_some(), cfg!(target_os = "linux"));
    assert!(memory.is_none_or(|bytes| (64 << 20..1 << 50).contains(&bytes)), "{memory:?}");
}

/// The slots for which fifty processes wait.
const SLOTS: u32 = 4;
/// The variable with the terms of each process: its priority, and whether it dies in its second
/// turn.
const WORKER: &str = "CREW_TEST_WORKER";

/// One of fifty processes: three turns, each logged by two lines while it holds its slot.
fn work(terms: &str) {
    let (priority, fate) = terms.split_once(' ').unwrap();
    let folder = env::current_folder().unwrap();
    let home = Home::at(&folder);
    let say = |what: &str, slot: &Slot| {
        let line = format!("{what} {} {}\n", slot.number(), std::process::id());
        disk::open_to_append(&folder.join("log")).unwrap().write_all(line.as_bytes()).unwrap();
    };
    for turn in 1..=3 {
        let is_open = || turn == 1 || disk::exists(&folder.join("open"));
        let opens = Deadline::after(PATIENCE).poll_until(STEP, is_open);
        assert!(opens, "the second turn is not open");
        let mut queue = SlotQueue::join(&home, priority.parse().unwrap(), SLOTS).unwrap();
        let slot = Deadline::after(PATIENCE).poll(STEP, || queue.poll().unwrap()).expect("no slot");
        say("take", &slot);
        clock::sleep(STEP);
        if turn == 2 && fate == "dies" {
            say("dies", &slot);
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        say("give", &slot);
    }
}

/// The processes of a queue, the next one first.
fn queued(home: &Home) -> Vec<i32> {
    let now = clock::now().wall;
    let last = SlotTicket::new(0, 1, now, 0, 0);
    let queue = names(home).iter().filter_map(|name| SlotTicket::of_name(name)).collect();
    let queue = last.those_before(queue, now).into_iter().map(|ticket| ticket.to_string());
    queue.map(|name| name.split('-').nth(2).unwrap().parse().unwrap()).collect()
}

/// Waits until other processes have done something.
fn wait(folder: &Path, what: &str, is_so: impl Fn() -> bool) {
    let came = Deadline::after(PATIENCE).poll_until(STEP, is_so);
    assert!(came, "{what}: {:?}", disk::read_end(&folder.join("output"), 0, 64 << 10));
}

/// Who took a slot, one after the other. Fails if a slot was taken that was not free.
fn takers(log: &str) -> Vec<i32> {
    let (mut takers, mut holders) = (Vec::new(), BTreeMap::new());
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let &[what, slot, process] = words.as_slice() else { panic!("{line}") };
        let (slot, process): (u32, i32) = (slot.parse().unwrap(), process.parse().unwrap());
        assert!(slot < SLOTS, "{line}");
        if what == "take" {
            assert_eq!(holders.insert(slot, process), None, "{line}");
            takers.push(process);
        } else {
            assert_eq!(holders.remove(&slot), Some(process), "{line}");
        }
    }
    assert_eq!(holders, BTreeMap::new());
    takers
}

/// At first there is one slot, so that the log shows in which sequence it was taken; then four.
#[test]
fn fifty_processes_take_turns_in_the_slots_and_dead_ones_leave_nothing() {
    let test = "slots::tests::fifty_processes_take_turns_in_the_slots_and_dead_ones_leave_nothing";
    run_alone(|| {
        if let Some(terms) = env::text(WORKER) {
            return work(&terms);
        }
        let (scratch, home) = a_home();
        let folder = scratch.path();
        let start = |count: usize, terms: &str| -> Vec<ProcessIdentity> {
            let call = || {
                let call = Call::of(env::program_path().unwrap(), folder);
                call.args(["--exact", test, "--nocapture"]).envs([(WORKER, terms)])
            };
            (0..count).map(|_| call().detach(&folder.join("output")).unwrap()).collect()
        };
        let log = || disk::read_text(&folder.join("log"), 1 << 20).unwrap().unwrap_or_default();
        let are_gone = |group: &[ProcessIdentity]| !group.iter().any(identity::is_alive);
        let mut held: Vec<Slot> =
            (0..SLOTS).map(|_| taken(&mut SlotQueue::join(&home, 5, SLOTS).unwrap())).collect();

        let (doomed, killed, others) = (start(4, "5 dies"), start(4, "5 waits"), start(37, "5 "));
        wait(folder, "45 wait", || queued(&home).len() == 45);
        for process in &killed {
            signals::signal_process(process.pid, &process.started, Signal::KILL);
        }
        wait(folder, "4 are killed", || are_gone(&killed));
        let urgent = start(5, "9 ");
        wait(folder, "5 urgent ones wait", || queued(&home).len() == 50);
        let mut expected = queued(&home);
        expected.retain(|pid| killed.iter().all(|process| process.pid != *pid));
        assert!(urgent.iter().all(|process| expected[..5].contains(&process.pid)), "{expected:?}");
        drop(held.remove(0));
        wait(folder, "46 have had a turn", || {
            log().matches("give").count() == 46 && holders(&home, SLOTS) == 3
        });
        assert_eq!((takers(&log()), names(&home)), (expected, Vec::new()));

        drop(held);
        drop(disk::create_private(&folder.join("open")).unwrap());
        wait(folder, "all have ended", || {
            [&doomed, &others, &urgent].into_iter().all(|group| are_gone(group))
        });
        assert_eq!(takers(&log()).len(), 46 * 3 - 4);
        assert_eq!(log().matches("dies").count(), 4);
        assert_eq!((names(&home), holders(&home, SLOTS)), (Vec::new(), 0));
        let mut files = disk::names(&home.slots_folder(), QUEUE_MAX);
        files.sort();
        assert_eq!(files, ["0", "1", "2", "3", "queue"]);
    });
}

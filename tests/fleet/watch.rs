//! How a fleet stands for a person who left it, and the board that ends with it.

use rustix::process::Signal;

use super::answers::ASKS;
use super::{FleetWorld, LONG, ONE};
use crate::client::{Terminal, in_a_terminal};

/// Two tasks on one slot; the first has an agent at work until the note `go`, and was interrupted.
fn interrupted() -> FleetWorld {
    let world = FleetWorld::new(&format!("wait_for go; {ONE}"))
        .tasks(&["a", "b"], "")
        .terms("slots = 1")
        .ready();
    let running = world.start(&[]);
    world.until("a works", |world| world.begun("a") == [1]);
    running.signal(Signal::INT);
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 130, "{ran:#?}");
    waits_for_a_run(&ran.stdout);
    world.allow("go");
    world
}

#[track_caller]
fn waits_for_a_run(page: &str) {
    for expected in ["a  waits  for crew fleet run", "b  waits  for crew fleet run"] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    assert!(page.trim_end().ends_with("next      crew fleet run tasks"), "{page}");
}

#[test]
fn an_interrupted_fleet_says_that_it_waits_for_a_run_and_how_to_continue() {
    let world = interrupted();
    waits_for_a_run(&world.crew(&["fleet", "status"]).success());
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert!(!again.stdout.contains("next "), "{}", again.stdout);
}

#[test]
fn a_board_stays_while_tasks_wait_for_a_run_and_ends_with_the_fleet() {
    in_a_terminal(|| {
        let world = interrupted();
        let mut shell = world.sandbox.command("sh");
        let crew = world.sandbox.build().path();
        let watch =
            format!("'{}' fleet status --watch; echo left with $?; read end", crew.display());
        shell.args(["-c", &watch]);
        let terminal = Terminal::start(&world.sandbox, &shell);
        terminal.wait_for_text("b  waits  for crew fleet run");
        let again = world.run(&[]);
        assert_eq!(again.code(), 0, "{again:#?}");
        terminal.wait_for_text("left with 0");
        assert!(terminal.screen().contains("2 of 2 completed"), "{}", terminal.screen());
    });
}

#[test]
fn a_board_stays_through_any_look_that_fails_and_ends_once_its_fleet_is_forgotten() {
    in_a_terminal(|| {
        let world = FleetWorld::new(ONE).tasks(&["a"], "").by_hand(&[]);
        let mut shell = world.sandbox.command("sh");
        let crew = world.sandbox.build().path();
        let watch =
            format!("'{}' fleet status --watch; echo left with $?; read end", crew.display());
        shell.args(["-c", &watch]);
        let terminal = Terminal::start(&world.sandbox, &shell);
        terminal.wait_for_text("1 waits");
        let away = world.sandbox.root().join("away.git");
        std::fs::rename(world.hub(), &away).unwrap();
        terminal.wait_for_text("it is asked again");
        assert!(terminal.screen().contains("1 waits"), "{}", terminal.screen());
        world.crew(&["fleet", "forget", "repo"]).success();
        terminal.wait_for_text("left with 1");
    });
}

#[test]
fn an_answer_typed_on_the_board_of_loops_is_kept_by_the_fleet_of_a_blocked_task() {
    in_a_terminal(|| {
        let world = FleetWorld::new(ASKS).tasks(&["a"], "").ready();
        assert_eq!(world.run(&[]).code(), 13);
        let mut watch = world.sandbox.command(world.sandbox.build().path());
        watch.arg("watch");
        let terminal = Terminal::start(&world.sandbox, &watch);
        terminal.wait_for_text("NEEDS YOU");
        terminal.key("t");
        terminal.type_text("port 8080");
        terminal.wait_for_text("port 8080_");
        terminal.enter();
        terminal
            .wait_for_text("a is blocked: crew fleet run tasks --retry tries it again with this");
        assert_eq!(world.lease("a")["messages"], serde_json::json!(["port 8080"]));
    });
}

#[test]
fn without_a_screen_a_watch_ends_where_nobody_is_left_to_run_a_local_fleet() {
    let world = interrupted();
    let watched = world.crew(&["fleet", "status", "--watch"]);
    waits_for_a_run(&watched.stdout);
}

#[test]
fn a_task_whose_process_is_gone_waits_for_a_run() {
    for remote in [false, true] {
        let world = FleetWorld::new("wait_for never").tasks(&["a"], "");
        let world = if remote { world.shared().ready() } else { world.ready() };
        let running = world.start(if remote { &["--push"] } else { &[] });
        world.until("a works", |world| world.begun("a") == [1]);
        running.signal(Signal::KILL);
        running.wait(LONG);
        assert!(world.crew(&["fleet", "status"]).stdout.contains("1 runs"), "its job still does");
        world.kill_job("a");
        let told = ["  a  waits  for crew fleet run\n", "  next      crew fleet run tasks\n"];
        world.until("it waits for a run", |world| {
            let page = world.crew(&["fleet", "status"]).stdout;
            told.iter().all(|line| page.contains(line))
        });
        // What it left running ends with the next attempt, or here.
        world.crew(&["fleet", "cancel"]).success();
        world.run(&[]);
    }
}

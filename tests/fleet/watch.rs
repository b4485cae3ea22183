//! The state of a fleet for a user who left it, and the board that ends with it.

use rustix::process::Signal;
use serde_json::Value;

use super::{FleetWorld, LONG, TWO};
use crate::client::{Terminal, in_a_terminal};

impl FleetWorld {
    /// The output of `crew fleet status --json`, which also reports what was not recorded.
    #[track_caller]
    fn status(&self) -> Value {
        let page = self.crew(&["fleet", "status", "--json"]).success();
        serde_json::from_str(&page).unwrap()
    }

    /// A shell in which a user watches the fleet, and sees the exit code of the board.
    fn watched(&self) -> Terminal<'_> {
        let mut shell = self.sandbox.command("sh");
        let crew = self.sandbox.build().path().display().to_string();
        shell.args(["-c", &format!("'{crew}' fleet status --watch; echo left with $?; read end")]);
        Terminal::start(&self.sandbox, &shell)
    }
}

/// Whether every task waits for a run, and that is the next command.
fn waits_for_a_run(status: &Value) -> bool {
    let tasks = status["tasks"].as_array().unwrap();
    let waits = |task: &Value| task["group"] == "waiting" && task["waits"]["for"] == "run";
    tasks.iter().all(waits) && status["next"] == "crew fleet run tasks"
}

/// Two tasks on one slot. The first was interrupted after its first iteration.
fn interrupted() -> FleetWorld {
    let world = FleetWorld::new(&format!("wait_for go; {TWO}"))
        .tasks(&["a", "b"], "")
        .terms("slots = 1")
        .ready();
    let running = world.start(&[]);
    world.until("a works", |world| world.begun("a") == [1]);
    running.signal(Signal::INT);
    world.until("it is obeyed", |_| running.stdout().contains("the last one"));
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!(
        (ran.code(), world.begun("a"), world.begun("b")),
        (130, vec![1], vec![]),
        "{ran:#?}"
    );
    assert!(ran.stdout.trim_end().ends_with("next      crew fleet run tasks"), "{ran:#?}");
    world
}

#[test]
fn an_interrupted_fleet_waits_for_a_run_and_continues_with_it() {
    let world = interrupted();
    assert!(waits_for_a_run(&world.status()), "{:#}", world.status());
    // Without a screen a watch ends where nobody is left to run a fleet.
    let watched = world.crew(&["fleet", "status", "--watch"]).success();
    assert!(watched.ends_with("next      crew fleet run tasks\n"), "{watched}");
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1, 2], vec![1, 2]));
    assert_eq!(world.status()["next"], Value::Null);
}

#[test]
fn a_board_stays_open_through_a_failed_read_until_the_fleet_ends() {
    in_a_terminal(|| {
        let world = interrupted();
        let terminal = world.watched();
        terminal.wait_for_text("for crew fleet run tasks");
        let record = world.sandbox.crew_home().join("fleets/repo/fleet.json");
        let text = std::fs::read(&record).unwrap();
        std::fs::write(&record, "{").unwrap();
        terminal.wait_for_text("cannot be read");
        assert!(terminal.screen().contains("for crew fleet run tasks"), "{}", terminal.screen());
        std::fs::write(&record, text).unwrap();
        let again = world.run(&[]);
        assert_eq!(again.code(), 0, "{again:#?}");
        terminal.wait_for_text("left with 0");
        assert!(terminal.screen().contains("2 of 2 completed"), "{}", terminal.screen());
    });
}

#[test]
fn an_answer_typed_on_the_board_of_loops_reaches_a_blocked_task_with_its_next_prompt() {
    in_a_terminal(|| {
        let asks = "if [ $call -lt 2 ]; then echo '<promise>BLOCKED: which port?</promise>'; else claim; fi";
        let world = FleetWorld::new(asks).tasks(&["a"], "").ready();
        assert_eq!(world.run(&[]).code(), 13);
        let mut watch = world.sandbox.command(world.sandbox.build().path());
        watch.arg("watch");
        let terminal = Terminal::start(&world.sandbox, &watch);
        terminal.wait_for_text("NEEDS YOU");
        terminal.key("t");
        terminal.type_text("port 8080");
        terminal.wait_for_text("port 8080_");
        terminal.enter();
        terminal.wait_for_text("crew resume repo/a");
        terminal.key("r");
        terminal.key("y");
        terminal.wait_for_text("is resumed by the next start");
        assert_eq!((world.run(&[]).code(), world.begun("a")), (0, vec![1, 2]));
        assert_eq!(world.prompt("a", 2).matches("port 8080").count(), 1);
    });
}

#[test]
fn a_task_cancelled_on_the_board_of_loops_stays_cancelled() {
    in_a_terminal(|| {
        let world = interrupted();
        let mut watch = world.sandbox.command(world.sandbox.build().path());
        watch.arg("watch");
        let terminal = Terminal::start(&world.sandbox, &watch);
        terminal.wait_for_text("fleet repo");
        terminal.key("c");
        terminal.key("y");
        terminal.wait_for_text("is cancelled");
        let again = world.run(&[]);
        assert_eq!(
            (again.code(), world.state("a"), world.begun("a")),
            (10, "cancelled".into(), vec![1])
        );
    });
}

#[test]
fn a_task_runs_without_a_coordinator_until_its_process_is_gone_and_then_waits_for_a_run() {
    let world = FleetWorld::new("wait_for never").tasks(&["a"], "").ready();
    let running = world.start(&[]);
    world.until("a works", |world| world.begun("a") == [1]);
    running.signal(Signal::KILL);
    running.wait(LONG);
    assert_eq!(world.status()["counts"]["running"], 1);
    world.kill_attempt("a");
    world.until("it waits for a run", |world| waits_for_a_run(&world.status()));
    // What it left running ends with the next start.
    world.crew(&["cancel", "repo"]).success();
    assert_eq!((world.run(&[]).code(), world.state("a")), (14, "cancelled".into()));
}

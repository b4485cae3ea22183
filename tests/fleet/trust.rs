//! A user's answers in a terminal before a fleet starts.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{FleetWorld, ONE};
use crate::client::{Terminal, in_a_terminal};

/// A terminal in which the fleet asks for trust; it shows the exit code at the end.
fn asking(world: &FleetWorld) -> Terminal<'_> {
    let crew = world.sandbox.build().path().display().to_string();
    let mut shell = world.sandbox.command("sh");
    shell.args(["-c", &format!("\"{crew}\" fleet run tasks; echo \"code $?\"; sleep 600")]);
    let terminal = Terminal::start(&world.sandbox, &shell);
    terminal.wait_for_text("go? [y/N]");
    terminal
}

#[test]
fn the_answer_no_starts_nothing_and_exits_as_without_a_terminal() {
    in_a_terminal(|| {
        for answer in ["n", ""] {
            let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
            let terminal = asking(&world);
            terminal.type_text(answer);
            terminal.enter();
            terminal.wait_for_text("code 2");
            assert!(terminal.screen().contains("crew: nothing was started"), "{answer:?}");
            assert_eq!((world.noted("calls"), world.record()), (String::new(), Value::Null));
        }
    });
}

#[test]
fn the_answer_yes_starts_the_fleet_whose_time_begins_after_the_answer() {
    in_a_terminal(|| {
        let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
        let terminal = asking(&world);
        let answered: DateTime<Utc> = Utc::now();
        terminal.type_text("y");
        terminal.enter();
        terminal.wait_for_text("code 0");
        let started: DateTime<Utc> =
            world.record()["started_at"].as_str().unwrap().parse().unwrap();
        assert!(started >= answered, "{started} is before {answered}");
        // What is trusted is not asked about again.
        assert_eq!(world.crew(&["fleet", "run", "tasks"]).code(), 0);
    });
}

#[test]
fn permissions_that_an_agent_does_not_support_start_nothing() {
    let world = FleetWorld::new(ONE).tasks(&["a", "b"], "").ready();
    let world = world.settings("loop.permissions = \"bypass\"\n");
    let ran = world.run(&[]);
    let fault = "a.md, b.md: agent fake does not accept --permissions bypass; put the agent's own option into its command\n";
    assert!(ran.code() == 2 && ran.stderr.contains(fault), "{ran:#?}");
    assert_eq!((world.noted("calls"), world.record()), (String::new(), Value::Null));
}

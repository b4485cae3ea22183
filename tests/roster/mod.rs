//! The real agents, each under `crew run` in every scenario, with the scripted server: the results
//! are compared with `expected.txt`, and printed as a table. Only the loopback interface is
//! reachable. An agent that is not installed is skipped with a message, unless
//! `CREW_REQUIRE_CLIENT=1`; with `CREW_RECORD=1` the output of each becomes a fixture.

mod agent;
mod alone;
mod cell;
mod fallback;
mod recording;
mod scenario;
mod table;

use std::sync::Mutex;

use crate::side_by_side::side_by_side;
use agent::Agent;
use cell::Row;
use scenario::{SCENARIOS, Scenario};

/// The number of cells of one agent that run at the same time, because most of their time they wait
/// for it.
const LANES: usize = 3;

/// Makes a test of each agent.
macro_rules! agents {
    ($($name:ident),+ $(,)?) => { $(
        #[test]
        fn $name() {
            ends_as_expected(&agent::$name());
        }
    )+ };
}

agents!(claude, codex, copilot, gemini, opencode, qwen);

fn is_installed(agent: &Agent) -> bool {
    let is_there = agent.program().exists();
    if !is_there {
        let name = agent.name;
        crate::client::skip(&format!("{name} is not installed; run tests/client/install"));
    }
    is_there
}

/// The scenarios to run: all, or those that `CREW_SCENARIO` names, separated by commas.
#[track_caller]
fn asked_for(only: Option<&str>) -> Vec<&'static Scenario> {
    let Some(only) = only else { return SCENARIOS.iter().collect() };
    let names: Vec<&str> = only.split(',').collect();
    let is_unknown = |name: &&&str| !SCENARIOS.iter().any(|it| it.name == **name);
    assert_eq!(names.iter().find(is_unknown), None, "CREW_SCENARIO names no scenario");
    SCENARIOS.iter().filter(|it| names.contains(&it.name)).collect()
}

#[test]
fn every_requested_scenario_is_in_the_table() {
    assert_eq!(asked_for(None).len(), SCENARIOS.len());
    assert_eq!(asked_for(Some("cut,plain")).len(), 2);
    for wrong in ["plian", "plain,", "", "cut, plain"] {
        assert!(std::panic::catch_unwind(|| asked_for(Some(wrong))).is_err(), "{wrong:?}");
    }
}

fn ends_as_expected(agent: &Agent) {
    if !is_installed(agent) {
        return;
    }
    alone::without_network(|| {
        let only = std::env::var("CREW_SCENARIO").ok();
        // From the end, where those stand that last the longest.
        let queue = Mutex::new(asked_for(only.as_deref()).into_iter().rev());
        let next = || queue.lock().unwrap().next();
        let lane = || std::iter::from_fn(next).map(|it| cell::run(agent, it)).collect::<Vec<_>>();
        let rows = side_by_side([lane; LANES]).into_iter().flatten();
        let mut rows: Vec<(usize, Row)> = rows
            .map(|row| (SCENARIOS.iter().position(|it| it.name == row.scenario).unwrap(), row))
            .collect();
        rows.sort_by_key(|(order, _)| *order);
        let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
        table::print(agent, &rows);
        let wrong = table::unexpected(agent, &rows);
        assert!(wrong.is_empty(), "{}:\n{wrong}", agent.name);
    });
}

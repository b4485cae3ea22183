use anyhow::anyhow;

use super::*;
use crate::engine::fixture::at;
use crate::engine::fleet::fixture::{a_fleet, a_lease, id, landed};

/// An engine that takes the jobs of these tasks and refuses all others.
struct Takes(&'static [&'static str]);

impl Executor for Takes {
    fn submit(&mut self, call: &JobCall) -> Result<String> {
        let is_taken = self.0.contains(&call.task.as_str());
        is_taken.then(|| call.task.clone()).ok_or_else(|| anyhow!("no {}", call.task))
    }

    fn list(&mut self) -> Result<Vec<SeenJob>> {
        Ok(Vec::new())
    }

    fn cancel(&mut self, _id: &str) -> Result<()> {
        Ok(())
    }

    fn log(&self, _id: &str) -> Option<String> {
        None
    }
}

/// Runs `act` with a coordinator of the tasks `a` to `f`, and returns what it told.
fn with_six(takes: &'static [&'static str], act: impl FnOnce(&mut Coordinator<'_>)) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    fleets::swap_manifest(&home, None, &a_fleet()).unwrap();
    for name in NAMES {
        fleets::swap_lease(&home, None, &a_lease(name)).unwrap();
    }
    let memory = Memory::of(&home, &a_fleet().name).unwrap();
    let (signals, mut told) = (Signals::default(), Vec::new());
    let mut sink = |event: &FleetEvent| {
        told.push(match event {
            FleetEvent::Of(task, TaskEvent::Started(_)) => format!("{task} started"),
            FleetEvent::Of(task, TaskEvent::Ended(_)) => format!("{task} ended"),
            FleetEvent::Noted(text) => text.clone(),
            FleetEvent::Of(..) => format!("{event:?}"),
        });
    };
    act(&mut Coordinator {
        home: &home,
        memory: &memory,
        engine: Box::new(Takes(takes)),
        signals: &signals,
        sink: &mut sink,
        now: FleetNow::default(),
    });
    told
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn starts() -> Vec<Start> {
    NAMES.map(|name| Start { task: id(name), reserved_micros: 0 }).to_vec()
}

#[test]
fn an_engine_that_refuses_every_job_ends_the_run_in_the_fifth_round() {
    let told = with_six(&[], |coordinator| {
        for _ in 1..REFUSED_MAX {
            coordinator.start_all(&a_fleet(), &starts()).unwrap();
        }
        let error = coordinator.start_all(&a_fleet(), &starts()).unwrap_err();
        assert_eq!(error.to_string(), "no f");
    });
    assert_eq!(told.len(), 30);
}

#[test]
fn an_engine_that_takes_one_job_of_many_may_refuse_the_others_for_ever() {
    let told = with_six(&["d"], |coordinator| {
        for _ in 0..3 * REFUSED_MAX {
            coordinator.start_all(&a_fleet(), &starts()).unwrap();
        }
    });
    assert_eq!(told[..2], ["a could not start: no a", "b could not start: no b"]);
}

#[test]
fn what_happened_between_two_looks_is_told_in_the_order_in_which_it_happened() {
    let told = with_six(&[], |coordinator| {
        coordinator.tell(&a_fleet(), &NAMES.map(a_lease));
        let ends = [3, 1, 2, 9, 8, 7].into_iter().zip(NAMES);
        coordinator.tell(
            &a_fleet(),
            &ends.map(|(second, name)| landed(name, "1", second)).collect::<Vec<_>>(),
        );
    });
    let both = |name: &str| [format!("{name} started"), format!("{name} ended")];
    assert_eq!(told, ["b", "c", "a", "f", "e", "d"].map(both).concat());
}

#[test]
fn a_heartbeat_is_no_change_and_all_else_is() {
    with_six(&[], |coordinator| {
        let mut lease = a_lease("a");
        let mut is_changed = |lease: &Lease| {
            coordinator.tell(&a_fleet(), std::slice::from_ref(lease));
            std::mem::take(&mut coordinator.now.has_changed)
        };
        assert!(is_changed(&lease));
        lease.at = at(60).wall;
        assert!(!is_changed(&lease));
        lease.attempts += 1;
        assert!(is_changed(&lease));
    });
}

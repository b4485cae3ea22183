use std::time::Duration;

use super::*;
use crate::clock::Deadline;

#[test]
fn a_detached_child_leads_a_session_and_prints_to_its_file() {
    let test = "process::call::tests::a_detached_child_leads_a_session_and_prints_to_its_file";
    if env::text("CREW_TEST_DETACHED").is_some() {
        let me = identity::this_process().unwrap();
        println!("here {} leads {}", me.pid, identity::leads_its_session());
        return;
    }
    let folder = testkit::folder();
    let output = folder.path().join("detached.log");
    let arguments = ["--exact", test, "--nocapture"];
    let call = Call::of(env::program_path().unwrap(), folder.path()).args(arguments);
    let started = call.envs([("CREW_TEST_DETACHED", "1")]).detach(&output).unwrap();
    let expected = format!("here {} leads true", started.pid);
    let deadline = Deadline::after(Duration::from_secs(20));
    let is_found = deadline.poll_until(Duration::from_millis(20), || {
        disk::read_text(&output, 1 << 20).unwrap().is_some_and(|text| text.contains(&expected))
    });
    assert!(is_found, "{:?}", disk::read_text(&output, 1 << 20));
}

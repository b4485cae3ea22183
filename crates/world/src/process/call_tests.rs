use std::time::Duration;

use super::*;
use crate::clock::Deadline;

#[test]
fn what_is_detached_leads_a_session_and_says_all_in_its_file() {
    let test = "process::call::tests::what_is_detached_leads_a_session_and_says_all_in_its_file";
    if env::text("CREW_TEST_DETACHED").is_some() {
        let me = identity::myself().unwrap();
        println!("here {} leads {}", me.pid, identity::leads_its_session());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("detached.log");
    let arguments = ["--exact", test, "--nocapture"];
    let call = Call::of(env::program().unwrap(), folder.path()).args(arguments);
    let started = call.envs([("CREW_TEST_DETACHED", "1")]).detach(&output).unwrap();
    let expected = format!("here {} leads true", started.pid);
    let found = Deadline::after(Duration::from_secs(20)).poll(Duration::from_millis(20), || {
        let text = disk::read_text(&output, 1 << 20).unwrap().unwrap_or_default();
        text.contains(&expected).then_some(())
    });
    assert!(found.is_some(), "{:?}", disk::read_text(&output, 1 << 20));
}

//! Runs a test in a separate process, for what affects a whole process: signal handlers, the
//! adoption of orphans, peak memory. The other tests of this program have children too.

#![expect(clippy::unwrap_used, reason = "only tests call this")]

use std::any::type_name_of_val;
use std::path::Path;
use std::time::Duration;

use super::{Call, ExitCause, descendants};
use crate::env;

/// Runs `test`, a closure that is a whole test. In its process orphans are adopted and the grace of
/// a child is short.
pub fn run_alone<T: FnOnce()>(test: T) {
    if env::text("CREW_TEST_ALONE").is_some() {
        assert_eq!(descendants::adopt_orphans().is_ok(), cfg!(target_os = "linux"));
        return test();
    }
    let name = type_name_of_val(&test).trim_end_matches("::{{closure}}");
    let (_, name) = name.split_once("::").unwrap();
    let program = env::program_path().unwrap();
    let ended = Call::of(program, Path::new("/"))
        .args(["--exact", name, "--nocapture"])
        .envs([("CREW_TEST_ALONE", "1"), ("CREW_GRACE_MS", "300")])
        .within(Duration::from_secs(120))
        .run(|| false)
        .unwrap();
    let output = ended.text();
    assert_eq!(ended.cause(), ExitCause::Exit(0), "{output}");
    assert!(output.contains("1 passed"), "{output}");
}

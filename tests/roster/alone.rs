//! A test without a network: it runs itself again in a network namespace that has only the loopback
//! interface. If none is allowed it runs here, and only the proxies that lead nowhere isolate its
//! agents.

use std::process::Command;
use std::time::Duration;

use crate::client::say;
use crate::spawned::Running;

/// A variable that is set in the namespace.
const INSIDE: &str = "CREW_TEST_LOOPBACK_ONLY";
const UP: &str = "ip link set lo up && exec \"$@\"";
/// The longest time that all scenarios of one agent may take.
const DEADLINE: Duration = Duration::from_secs(15 * 60);
/// A closed port: nothing listens on port 1.
const NOWHERE: &str = "http://127.0.0.1:1";

pub(super) fn without_network(test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() || !is_allowed() {
        return test();
    }
    let name = std::thread::current().name().unwrap().to_owned();
    let mut again = unshare();
    again.arg(std::env::current_exe().unwrap()).args([&name, "--exact", "--nocapture"]);
    again.env(INSIDE, "1");
    let ran = Running::start(again, None).wait(DEADLINE);
    say(ran.stderr.trim_end());
    assert!(ran.status.success(), "{}", ran.stdout);
    assert!(ran.stdout.contains("1 passed"), "{name} did not run: {}", ran.stdout);
}

/// Variables that make every address unreachable immediately; without them, some agents wait
/// seconds for name resolution.
pub(super) fn proxies() -> Vec<(&'static str, String)> {
    let names =
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let mut variables: Vec<_> = names.map(|name| (name, NOWHERE.to_owned())).into();
    variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name, "127.0.0.1,localhost".to_owned())));
    variables
}

fn is_allowed() -> bool {
    unshare().arg("true").output().is_ok_and(|ran| ran.status.success())
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "sh", "-c", UP, "sh"]);
    command
}

//! The environment of this process: recorded when a session starts a loop, and compared with that
//! record at a boundary. Only the values that the engine keeps leave this file.

use super::env;
use super::files::disk;
use crate::home::hash;
use engine::record::{Environment, Foreign, Loop, Place, Plan};
use readers::clients;

/// The largest settings file of the client that is read.
const SETTINGS_BYTES: u64 = 1 << 20;

/// Records the environment that a session's loop starts with at `place`. `settings` are the project
/// files from which the client reads variables, parsed by `read`.
pub fn of_session(
    place: &Place,
    settings: &[&str],
    read: impl Fn(&str) -> Vec<(String, String)>,
) -> Environment {
    let mut held = Vec::new();
    for folder in [&place.checkout, &place.folder] {
        for name in settings {
            let text = disk::read_text(&folder.join(name), SETTINGS_BYTES).ok().flatten();
            held.extend(read(&text.unwrap_or_default()));
        }
    }
    Environment::from_variables(
        &env::all_variables(),
        &read_foreign(),
        &held,
        format!("{:016x}", env::random_number()),
        hash,
    )
}

fn read_foreign() -> Foreign {
    Foreign {
        own: clients::client_variables().collect(),
        shifting: clients::shifting_variables().collect(),
    }
}

/// How the environment for a loop's checks and git commands differs from this process's
/// environment.
pub fn plan_environment(subject: &Loop) -> Plan {
    let kept = subject.environment.as_ref();
    kept.map(|kept| kept.compare(&env::all_variables(), &read_foreign(), hash)).unwrap_or_default()
}

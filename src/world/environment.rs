//! The environment this process was given: taken down when a session begins with a loop, and compared with
//! that at a boundary. No value leaves this file but those that the engine keeps.

use super::env;
use super::files::disk;
use super::store::home::hash;
use crate::clients::variables;
use crate::engine::record::Loop;
use crate::engine::record::contract::Place;
use crate::engine::record::environment::{Environment, Foreign, Plan};

/// The largest settings file of the client that is read.
const SETTINGS_BYTES: u64 = 1 << 20;

/// Takes down the environment a session's loop begins with at `place`. `settings` are the files of
/// a project that its client takes variables from, as `read` understands them.
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
    Environment::of(&env::all(), &foreign(), &held, format!("{:016x}", env::random()), hash)
}

fn foreign() -> Foreign {
    Foreign { own: variables::own().collect(), shifting: variables::shifting().collect() }
}

/// How the environment of a loop's checks, and of its looks by git, differs from this process's.
pub fn plan(subject: &Loop) -> Plan {
    let kept = subject.environment.as_ref();
    kept.map(|kept| kept.compare(&env::all(), &foreign(), hash)).unwrap_or_default()
}

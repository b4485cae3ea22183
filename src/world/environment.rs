//! The environment this process was given: taken down when a session begins with a loop, and compared with
//! that at a boundary. No value leaves this file but those that the engine keeps.

use std::path::Path;

use super::env;
use super::files::disk;
use super::store::home::hash;
use crate::engine::record::Loop;
use crate::engine::record::contract::Place;
use crate::engine::record::environment::{Environment, Plan};
use crate::parse::plugin::settings_variables;

/// The largest settings file of the client that is read.
const SETTINGS_BYTES: u64 = 1 << 20;

/// Takes down the environment a session's loop begins with at `place`.
pub fn of_session(place: &Place) -> Environment {
    let mut held = Vec::new();
    for folder in [&place.checkout, &place.folder] {
        for name in ["settings.json", "settings.local.json"] {
            held.extend(variables(&folder.join(".claude").join(name)));
        }
    }
    Environment::of(&env::all(), &held, format!("{:016x}", env::random()), hash)
}

/// What a settings file of the client puts into its hooks' environment; nothing where it cannot be read.
fn variables(file: &Path) -> Vec<(String, String)> {
    let text = disk::read_text(file, SETTINGS_BYTES).ok().flatten();
    settings_variables(&text.unwrap_or_default())
}

/// How the environment of a loop's checks, and of its looks by git, differs from this process's.
pub fn plan(subject: &Loop) -> Plan {
    let kept = subject.environment.as_ref();
    kept.map(|kept| kept.compare(&env::all(), hash)).unwrap_or_default()
}

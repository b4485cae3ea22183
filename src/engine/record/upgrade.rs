//! Upgrades what an older crew recorded. It is the one place that knows older formats, so no rule
//! has to. A record of a newer crew never comes here: it is neither understood
//! nor written.
//!
//! | format | what changed |
//! |---|---|
//! | 1 | the first |
//! | 2 | an owner names its machine; one without is judged by its process alone, as before |
//! |   | the required state of protected paths moved to the loop: the journal repeats the state |
//! |   | an agent's `allow` is a whole argument; it was the option before the rule `Bash(…)` |

use super::{Loop, VERSION};
use crate::engine::boundary::protect::Protected;

/// The version of this crew.
const THIS: &str = env!("CARGO_PKG_VERSION");

/// The record in this crew's format. A journal holds states without their format, so this looks at
/// what is present; it changes nothing in an up-to-date record.
pub fn upgraded(mut record: Loop) -> Loop {
    if record.version < VERSION {
        record.version = VERSION;
        THIS.clone_into(&mut record.made_by);
    }
    if let Some(marks) = record.state.old_marks.take() {
        record.protected = Some(Protected { ignored: None, marks });
    }
    let allow = record.contract.run.as_mut().and_then(|run| run.agent.allow.as_mut());
    if let Some(option) = allow.filter(|it| !it.contains('{')) {
        option.push_str("=Bash({check})");
    }
    record
}

#[cfg(test)]
#[path = "upgrade_tests.rs"]
mod tests;

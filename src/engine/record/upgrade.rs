//! Brings what an older crew recorded up to date: the one place that knows of older formats, so that no rule has
//! to. A record of a newer crew never comes here: it is neither understood nor written.
//!
//! | format | what changed |
//! |---|---|
//! | 1 | the first |
//! | 2 | an owner names its machine; one without is judged by its process alone, as before |
//! |   | what protected paths are held to moved from the state to the loop, where the journal does not repeat it |

use super::{Loop, VERSION};
use crate::engine::boundary::protect::Protected;

/// The crew that this is a part of.
const THIS: &str = env!("CARGO_PKG_VERSION");

/// The record as this crew would have written it. A journal holds states without their format, so this looks at
/// what is there, and of what is up to date it changes nothing.
pub fn upgraded(mut record: Loop) -> Loop {
    if record.version < VERSION {
        record.version = VERSION;
        THIS.clone_into(&mut record.made_by);
    }
    if let Some(marks) = record.state.old_marks.take() {
        record.protected = Some(Protected { ignored: None, marks });
    }
    record
}

#[cfg(test)]
#[path = "upgrade_tests.rs"]
mod tests;

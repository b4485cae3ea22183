//! One hash for the state of a loop's working tree. git computes it; where git cannot, a bounded
//! walk over the files does. The walk also skips what `.gitignore` files name.

use std::fmt::Write as _;
use std::time::Duration;

use super::disk;
use super::walk::Walk;
use crate::engine::boundary::protect::{Cover, IgnoreRules};
use crate::engine::record::Loop;
use crate::world::clock::Deadline;
use crate::world::git;
use crate::world::store::home::hash;

/// The most folder entries that a walk visits.
const ENTRIES_MAX: usize = 100_000;
/// The longest a walk may take.
const WITHIN: Duration = Duration::from_secs(2);

/// The warning where neither git nor a walk can compute a state.
pub const NO_STALL_RULE: &str =
    "no stall rule here: git cannot tell, and there is more than crew looks through";

/// The state of a working tree.
#[derive(Debug)]
pub struct Fingerprint {
    pub hash: String,
    /// How many files were walked, if git gave no answer.
    pub watched: Option<usize>,
}

/// Computes the state of a loop's working tree. `None` when neither git nor a walk can.
pub fn fingerprint(subject: &Loop) -> Option<Fingerprint> {
    git::fingerprint(subject)
        .map_or_else(|| walked(subject), |hash| Some(Fingerprint { hash, watched: None }))
}

fn walked(subject: &Loop) -> Option<Fingerprint> {
    let top = &subject.place.checkout;
    let (cover, rules) = (Cover::of(&["**"]), IgnoreRules::default());
    let walk = Walk::over(top, &cover, &rules, ENTRIES_MAX, Deadline::after(WITHIN));
    let walk = Walk { reads_rules: true, ..walk };
    let mut files = walk.walk()?.files;
    files.sort();
    let mut text = String::new();
    for file in &files {
        let (size, time) = disk::stamp(&top.join(file)).unwrap_or_default();
        let _ = write!(text, "{}\0{size} {time}\0", file.display());
    }
    Some(Fingerprint { hash: hash(text.as_bytes()), watched: Some(files.len()) })
}

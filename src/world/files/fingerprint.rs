//! One hash for the state of a loop's working tree. git computes it; where git cannot, a bounded
//! walk over the files does. The walk also skips what `.gitignore` files name.

use std::fmt::Write as _;

use super::{disk, walk};
use crate::engine::record::Loop;
use crate::world::git;
use crate::world::store::hash;

/// The warning where neither git nor a walk can compute a state.
pub const NO_STALL_RULE: &str =
    "no stall rule here: git gives no answer, and there are more files than crew reads";

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
    let files = walk::files(top)?;
    let mut text = String::new();
    for file in &files {
        let (size, time) = disk::stamp(&top.join(file)).unwrap_or_default();
        let _ = write!(text, "{}\0{size} {time}\0", file.display());
    }
    Some(Fingerprint { hash: hash(text.as_bytes()), watched: Some(files.len()) })
}

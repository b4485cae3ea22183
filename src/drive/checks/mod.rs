//! Runs checks: in the working tree, and on other states of it in the scratch folder.

pub mod check;
pub mod scratch;
pub mod test_changes;
pub mod trial;

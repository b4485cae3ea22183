//! crew keeps a coding agent working until the job is proved done.

fn main() {}

//! How a loop starts: the folder, the settings and the terms, and the record, which is written
//! last. A start that fails leaves nothing behind.

pub mod agent;
pub mod baseline;
pub mod establish;
pub mod run;
pub mod terms;

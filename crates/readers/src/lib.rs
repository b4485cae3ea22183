//! Readers of what others write, as text in and values out: settings, arguments and test output
//! (`parse`), what clients' hooks report (`clients`), what agents print (`agents`), and the
//! templates of prompts (`prompts`). None of them touches a file, a clock or a process.

pub mod agents;
pub mod clients;
pub mod parse;
pub mod prompts;

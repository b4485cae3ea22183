//! What is known of the variables of all clients, for a process that does not know which client it
//! runs in. It names variables; it does not set or remove any.

use super::{EnvLookup, all};

/// crew's own mark on what one of its agents starts.
const MARK: &str = "CREW_LOOP";
/// Variables set by many kinds of agents, and by tests of crew.
const OWN: [&str; 2] = ["AI_AGENT", "CREW_FAULT"];
/// These differ after a `cd` by the agent or in a window of another size.
const SHIFTING: [&str; 7] = ["COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TRACEPARENT", "_"];

/// Whether this process runs inside an agent: there crew only narrows settings and limits.
pub fn inside_an_agent(variable: EnvLookup<'_>) -> bool {
    let marks = all().iter().map(|client| client.abilities().mark);
    marks.chain([MARK]).any(|mark| variable(mark).is_some())
}

/// The variables that clients set for what they start. crew gives them to none of its children, so
/// that a child does not think that it runs inside a client.
pub fn own() -> impl Iterator<Item = &'static str> {
    all().iter().flat_map(|client| client.abilities().own).copied().chain(OWN)
}

/// The variables that differ between two hooks of one session although nobody changed them.
pub fn shifting() -> impl Iterator<Item = &'static str> {
    all().iter().flat_map(|client| client.abilities().shifting).copied().chain(SHIFTING)
}

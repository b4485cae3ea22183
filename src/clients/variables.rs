//! What is known of the variables of all clients, for a process that does not know which of them is
//! around it.

use super::{Variable, all};

/// The mark of crew's own, for what one of its agents starts.
const MARK: &str = "CREW_LOOP";
/// Set by agents of many makes, and by tests of crew.
const OWN: [&str; 2] = ["AI_AGENT", "CREW_FAULT"];
/// Differ after a `cd` of the agent's or in a window of another size.
const SHIFTING: [&str; 7] = ["COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TRACEPARENT", "_"];

/// Whether this process runs inside an agent: there crew only ever narrows.
pub fn inside_an_agent(variable: Variable<'_>) -> bool {
    let marks = all().iter().map(|client| client.abilities().mark);
    marks.chain([MARK]).any(|mark| variable(mark).is_some())
}

/// Set by a client for what it starts itself; no child of crew is given one. A child must not think
/// that it runs inside a client.
pub fn own() -> impl Iterator<Item = &'static str> {
    all().iter().flat_map(|client| client.abilities().own).copied().chain(OWN)
}

/// Differ between two hooks of one session without anybody's doing.
pub fn shifting() -> impl Iterator<Item = &'static str> {
    all().iter().flat_map(|client| client.abilities().shifting).copied().chain(SHIFTING)
}

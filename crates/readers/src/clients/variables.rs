//! The variables of all clients, for a process that does not know which client it runs in. It names
//! variables; it does not set or remove any.

use super::{ALL, EnvLookup};

/// crew's own mark on what one of its agents starts.
const MARK: &str = "CREW_LOOP";
/// Variables set by many kinds of agents, and by tests of crew.
const OWN: [&str; 2] = ["AI_AGENT", "CREW_FAULT"];
/// Variables that point git at a repository whatever the folder, and settings for one call of git.
/// git sets them for its hooks and aliases, which may start crew; only a person sets
/// `GIT_CONFIG_COUNT`.
const OF_A_CALLING_GIT: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_ATTR_SOURCE GIT_COMMON_DIR \
     GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_DIR GIT_GRAFT_FILE GIT_IMPLICIT_WORK_TREE GIT_INDEX_FILE \
     GIT_INTERNAL_SUPER_PREFIX GIT_LITERAL_PATHSPECS GIT_NAMESPACE GIT_NO_REPLACE_OBJECTS \
     GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_QUARANTINE_PATH GIT_REFLOG_ACTION GIT_REPLACE_REF_BASE \
     GIT_SHALLOW_FILE GIT_WORK_TREE";
/// Variables that change after a `cd` by the agent or in a window of another size.
const SHIFTING: [&str; 7] = ["COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TRACEPARENT", "_"];

/// Whether this process runs inside an agent: there crew only narrows settings and limits.
pub fn inside_an_agent(variable: EnvLookup<'_>) -> bool {
    let marks = ALL.iter().map(|client| client.variables.mark);
    marks.chain([MARK]).any(|mark| variable(mark).is_some())
}

/// The variables that clients, and a git process that called crew, set for their children. crew
/// passes them to none of its children: a child would think that it runs inside a client, and its
/// git would change the caller's repository.
pub fn client_variables() -> impl Iterator<Item = &'static str> {
    let clients = ALL.iter().flat_map(|client| client.variables.own.split(' '));
    clients.chain(OWN).chain(OF_A_CALLING_GIT.split(' '))
}

/// The variables that differ between two hooks of one session for no outside reason.
pub fn shifting_variables() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(|client| client.variables.shifting).copied().chain(SHIFTING)
}

//! The seam for clients: what a client's hook reports, in crew's words, what crew answers, and what
//! each client can do. **To add a client**, write a folder beside `claude` with a [`Client`] in it,
//! and list it in [`all`]. All of this is pure: files and variables are passed in. It refuses to
//! guess: a fact is a value of [`Abilities`], and what a client does not report is absent.
//!
//! A client also needs its hooks file, which lies where the client looks for it: for Claude Code it
//! is `hooks/hooks.json`. It calls `crew hook` for each event, with the payload on standard input,
//! and the client waits for the answer. Where a client can wake the agent ([`Abilities::wakes`]),
//! the file also starts asynchronous processes, for which it does not wait: `crew hook --companion`
//! beside each stop, and `crew hook` itself for a failed service and an idle session. What an
//! asynchronous process prints is not shown, so after a failed service the client waits for
//! `crew hook --companion` instead.

mod abilities;
pub mod claude;
mod event;
mod fields;
#[cfg(test)]
#[path = "recorded/all_tests.rs"]
mod recorded;
pub mod spelling;
pub mod variables;

use std::ffi::OsString;
use std::fmt;

use serde_json::Value;

pub use self::abilities::{Abilities, Cap, Dated, PendingCall, Plugin, Transcript};
pub use self::event::{AskedQuestion, Hook, HookEvent, LineFor, Output, Reply, Stopped, Task};
pub use self::fields::{FieldsByPointer, parse_object};
use crate::engine::record::Owner;
use crate::parse::process_table::ProcessRow;

/// A variable's value; absent when unset or empty.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Every client. The first one takes what none of the others recognises as its own.
pub fn all() -> &'static [&'static dyn Client] {
    &[
        &claude::ClaudeCode,
        #[cfg(test)]
        &recorded::Codex,
        #[cfg(test)]
        &recorded::Gemini,
        #[cfg(test)]
        &recorded::Qwen,
    ]
}

/// The client of a loop.
pub fn of(owner: &Owner) -> &'static dyn Client {
    let of = owner.client.as_deref();
    let named = all().iter().find(|client| Some(client.abilities().name) == of);
    *named.unwrap_or(&all()[0])
}

/// A client whose hooks crew answers.
pub trait Client: fmt::Debug + Sync {
    /// What it can do.
    fn abilities(&self) -> &'static Abilities;

    /// Whether this client sent the payload, with these variables around the hook. A client inside
    /// which it was started may have left its variables there, too. The first client is not asked.
    fn sent(&self, _payload: &Value, variable: EnvLookup<'_>) -> bool {
        variable(self.abilities().mark).is_some()
    }

    /// What happened, given the client's own name of the event.
    fn read(&self, name: &str, payload: &Value) -> HookEvent;

    /// The answer to the client's event `name`, in the client's format.
    fn write(&self, name: &str, reply: &Reply) -> Output;

    /// Adds a notice to an answer, as the codes that the user's terminal takes. Dropped by a client
    /// that passes none on.
    fn notify(&self, _output: &mut Output, _codes: String) {}

    /// Whether a process above the hook's is the client itself.
    fn is_owner(&self, hook: &ProcessRow, above: &ProcessRow) -> bool;

    /// What the user should know of a session in which a loop begins: that it cannot edit, or will
    /// stop at dialogs.
    fn caution(&self, _payload: &Value, _variable: EnvLookup<'_>) -> Option<&'static str> {
        None
    }

    /// Whether a person is at the client, so that a hook may wait beside the session.
    fn is_attended(&self, variable: EnvLookup<'_>) -> bool;
}

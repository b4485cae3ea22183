//! Refusals of a model's service. `shapes` has the text of each API.

use chrono::{DateTime, Utc};
use serde_json::Value;

/// An error that every API can express in its own way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// The key is invalid.
    Key,
    /// There is no money left.
    Credit,
    /// Too many requests for now.
    Busy { seconds: u64 },
    /// The plan's limit, with its reset.
    Limit { reset: DateTime<Utc> },
    /// The service fails.
    Outage,
}

/// An HTTP error.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

impl Fault {
    pub(super) fn new(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    /// Adds the header with the time to wait, if the refusal has one.
    pub(super) fn retry_after(mut self, refusal: Refusal) -> Self {
        if let Refusal::Busy { seconds } = refusal {
            self.headers.push(("retry-after".to_owned(), seconds.to_string()));
        }
        self
    }
}

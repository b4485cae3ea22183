//! The records of a fleet as text: its terms, and a lease for each task. One that a newer crew made
//! is refused by name, for it would be understood wrongly. It reads no file and no ref.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::lease::{self, Lease};
use super::manifest::{self, Fleet};
use super::task::TaskId;

/// A record with a format of its own.
pub trait StoredRecord: DeserializeOwned {
    /// The newest format that this crew reads.
    const SCHEMA: u32;
}

impl StoredRecord for Lease {
    const SCHEMA: u32 = lease::SCHEMA;
}

impl StoredRecord for Fleet {
    const SCHEMA: u32 = manifest::SCHEMA;
}

/// Why a record cannot be used: which one, the cause, and a hint.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordFault(String);

impl RecordFault {
    /// The record `name` is broken. `away` says how it is put out of the way.
    pub fn broken(name: &str, why: &str, away: &str) -> Self {
        Self(format!(
            "{name} cannot be read: {why}\nhint: {away}, and crew fleet run records it anew"
        ))
    }
}

/// A task whose lease cannot be used. A person is needed: nobody knows how far it is, or whether
/// something works on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableLease {
    pub task: TaskId,
    /// The cause and the way out, on one line.
    pub why: String,
}

impl UnreadableLease {
    /// That of a task, by the error of reading its record `name`, which a row has no room for.
    pub fn of(task: TaskId, name: &str, error: &dyn fmt::Display) -> Self {
        Self { task, why: error.to_string().replace(name, "its record").replace("\nhint: ", "; ") }
    }
}

/// Reads the record `name`. `away` says how a broken one is put out of the way.
pub fn read<T: StoredRecord>(name: &str, bytes: &[u8], away: &str) -> Result<T, RecordFault> {
    #[derive(Deserialize)]
    struct Format {
        schema: u32,
    }
    let broken = |error: serde_json::Error| RecordFault::broken(name, &error.to_string(), away);
    let Format { schema } = serde_json::from_slice(bytes).map_err(broken)?;
    if schema > T::SCHEMA {
        return Err(RecordFault(format!("{name} was made by a newer crew\nhint: update crew")));
    }
    serde_json::from_slice(bytes).map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fleet::fixture::{a_fleet, a_lease};

    fn told<T: StoredRecord>(bytes: &[u8]) -> String {
        read::<T>("a.json", bytes, "move it away").err().unwrap().to_string()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let lease = serde_json::to_vec(&a_lease("a")).unwrap();
        assert_eq!(read::<Lease>("a.json", &lease, "").unwrap(), a_lease("a"));
        let fleet = serde_json::to_vec(&a_fleet()).unwrap();
        assert_eq!(read::<Fleet>("fleet.json", &fleet, "").unwrap(), a_fleet());
    }

    #[test]
    fn a_newer_record_is_refused_by_name_whatever_it_holds_and_a_broken_one_with_its_cause() {
        let newer = "a.json was made by a newer crew\nhint: update crew";
        for rest in ["", ", \"task\": 7"] {
            let bytes = format!("{{\"schema\": 2{rest}}}");
            assert_eq!(told::<Lease>(bytes.as_bytes()), newer);
            assert_eq!(told::<Fleet>(bytes.as_bytes()), newer);
        }
        insta::assert_snapshot!(told::<Lease>(b"{"), @"
        a.json cannot be read: EOF while parsing an object at line 1 column 1
        hint: move it away, and crew fleet run records it anew
        ");
        let lease = UnreadableLease::of("a".parse().unwrap(), "a.json", &told::<Lease>(b"{}"));
        insta::assert_snapshot!(lease.why, @"its record cannot be read: missing field `schema` at line 1 column 2; move it away, and crew fleet run records it anew");
    }
}

//! The record of a loop that begins, as every start writes it.

use super::contract::{Contract, Place};
use super::moment::Moment;
use super::owner::Owner;
use super::{Loop, LoopId, State, VERSION};
use crate::engine::usage::Earlier;

impl Loop {
    /// A loop that begins now.
    pub fn begin(id: LoopId, contract: Contract, place: Place, owner: Owner, now: Moment) -> Self {
        Self {
            version: VERSION,
            id,
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: now.wall,
            contract,
            place,
            elapsed_ms: Vec::new(),
            earlier: Earlier::default(),
            trusted: None,
            environment: None,
            protected: None,
            fleet: None,
            state: State::begin(owner, now),
        }
    }
}

//! `crew pause`: lets the running iteration end and prevents the next one, from any terminal.

use anyhow::Result;

use super::{actor, control_replies, ordered};
use crate::drive::control;
use crate::exit::Exit;
use crate::world::store;

/// Pauses the requested loop.
pub fn pause(name: Option<&str>, now: bool) -> Result<Exit> {
    ordered(
        name,
        |home, id| Ok(control_replies::paused(&control::pause(home, id, actor(), now)?)),
        ("asked to pause", |home, id| store::order_pause(home, id, actor(), now)),
    )
}

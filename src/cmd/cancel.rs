//! `crew cancel`: ends a loop from any terminal. The order is a separate file, so it needs no
//! model, and a hook in flight cannot undo it.

use anyhow::Result;

use super::{actor, control_replies, ordered, reading};
use crate::drive::end;
use crate::exit::Exit;
use crate::world::store;

/// Cancels the requested loop.
pub fn cancel(name: Option<&str>, reason: Option<&str>) -> Result<Exit> {
    ordered(
        name,
        |home, id| {
            let attempt = end::cancel(home, id, actor(), reason)?;
            Ok(control_replies::cancelled_from_outside(&attempt, reading()))
        },
        ("cancelled", |home, id| store::order_cancel(home, id, actor(), reason)),
    )
}

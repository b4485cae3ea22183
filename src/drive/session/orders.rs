//! Obeys orders that a person typed as a message. Such a message never reaches the model. It means
//! the session's own loop, or the one whose id it names, for which the same is done as in a
//! terminal.

use anyhow::Result;

use super::{EventResult, owned_or_last, pause, prompted};
use crate::clients::Hook;
use crate::drive::end;
use crate::drive::owner::owner_is_gone;
use crate::engine::record::{Actor, Loop, LoopId};
use crate::parse::requests::{Order, Typed};
use crate::world::store::{self, Home};

/// What became of an order.
#[derive(Debug)]
pub enum OrderResult {
    /// The loop as it is now.
    Obeyed { record: Box<Loop>, is: LoopIs },
    /// It could not be obeyed at once.
    Failed(LoopId),
}

/// What an answer must say of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopIs {
    /// The session's own, and not named.
    Own,
    /// The one that was named.
    Named,
    /// Named, and its owner is gone.
    Ownerless,
    /// Over before the order came.
    Over,
}

/// Obeys an order. In a session that never had a loop it is the user's own text, unless it names a
/// loop.
pub fn obey(home: &Home, hook: &Hook<'_>, typed: &Typed) -> Result<EventResult> {
    let own = owned_or_last(home, hook)?;
    let is_own = |id: &LoopId| own.as_ref().is_some_and(|own| own.id == *id);
    let is_there = |id: &&LoopId| is_own(id) || store::is_there(home, id);
    let result = match (typed.named.as_ref().filter(is_there), &own) {
        // A word for the agent.
        (None, _) if typed.named.is_some() && typed.order != Order::Cancel => {
            return prompted(home, hook);
        }
        (None, None) => return Ok(EventResult::Silent),
        (None, Some(own)) => obeyed(home, hook, own, typed, false)?,
        (Some(id), _) => {
            let done = store::load(home, id).map_err(anyhow::Error::from);
            let done = done.and_then(|record| obeyed(home, hook, &record, typed, true));
            match done {
                Err(error) if is_own(id) => return Err(error),
                // The message must not become the agent's.
                done => done.unwrap_or_else(|_| OrderResult::Failed(id.clone())),
            }
        }
    };
    Ok(EventResult::Ordered(typed.order, result))
}

fn obeyed(
    home: &Home,
    hook: &Hook<'_>,
    before: &Loop,
    typed: &Typed,
    is_named: bool,
) -> Result<OrderResult> {
    let id = &before.id;
    match typed.order {
        Order::Pause => drop(pause(home, hook, before)?),
        Order::Cancel => {
            let reason = typed.reason(is_named);
            drop(end::cancel(home, id, Actor::User, reason.as_deref())?);
        }
        Order::Status => end::complete(home, before),
    }
    let record = Box::new(store::load(home, id)?);
    let is = match is_named {
        _ if !before.is_live() => LoopIs::Over,
        true if owner_is_gone(home, &record) => LoopIs::Ownerless,
        true => LoopIs::Named,
        false => LoopIs::Own,
    };
    Ok(OrderResult::Obeyed { record, is })
}

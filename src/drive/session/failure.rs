//! The model's service failed the agent. The client takes no answer to that, but this process may
//! stay alive beside the session and wake it: after a wait for an error that passes, at once for a
//! request that was refused because of its content. If nobody is at the client, nothing may sleep:
//! there the loop ends and can be resumed.

use anyhow::Result;

use super::companion;
use super::stop::{facts, open_ours, ticket};
use crate::clients::Hook;
use crate::drive::boundary::{DriverNotes, Recorded};
use crate::drive::end::wind_up;
use crate::drive::meter;
use crate::drive::{tree, windows};
use crate::engine::boundary::decide::Decision;
use crate::engine::boundary::facts::{AgentOutcome, Seen};
use crate::engine::claim::Claim;
use crate::engine::record::{Ending, Outcome};
use crate::parse::api_error;
use crate::world::files::disk;
use crate::world::process::identity;
use crate::world::store::{Home, view, wakes};
use crate::world::{clock, env};

/// Records the failure, and waits if waiting helps. Returns the words to wake the agent with, or
/// `None`.
pub fn failure(home: &Home, hook: &Hook<'_>, kind: &str, message: &str) -> Result<Option<String>> {
    let Some(open) = open_ours(home, hook)? else { return Ok(None) };
    let error = api_error::classify(kind, message, clock::local());
    let agent = AgentOutcome { error: Some(error), ..AgentOutcome::default() };
    let jitter = u16::try_from(env::random() % 1000).unwrap_or(0);
    let seen = Seen { order: open.order(), claim: Claim::None, agent, jitter };
    let reading = meter::read(&open.before, hook, None, false);
    let Some(facts) = facts(home, &open, seen, reading.usage.as_ref())? else { return Ok(None) };
    let mut memory = open.before.state.session.clone();
    memory.transcript_bytes = hook.transcript.as_deref().map_or(0, disk::size);
    memory.last_stop = None;
    // A wake starts another turn.
    memory.prompt_id = None;
    memory.metered = reading.metered;
    let why = format!("the model's service failed ({kind}), and this session cannot wait for it");
    let veto = (!hook.may_wake()).then(|| Ending::new(Outcome::Interrupted, why));
    // A refusal does not clear the window of the account.
    let turn = windows::turn(home, &windows::account_of(&open.before), &open.before.id);
    let closing = DriverNotes { memory, veto, turn, ..DriverNotes::default() };
    let Some(recorded) = open.record(facts, closing)? else { return Ok(None) };
    let Recorded { boundary, held, lock } = recorded;
    let after = boundary.after;
    let session_id = hook.session_id.as_deref().unwrap_or_default();
    wakes::clear(home, session_id, None);
    let _ = view::write(&after);
    let rests = tree::may_rest(&boundary.decision);
    let close = || rests.then(|| tree::close(home, &after));
    match (boundary.decision, identity::myself()) {
        (Decision::Continue | Decision::Wait { .. }, Some(me)) => {
            let file = wakes::register(home, session_id, &me)?;
            wakes::hand_over(&file, &ticket(&after))?;
            drop((held, lock));
            close();
            companion::serve(home, &after.id, hook, &file)
        }
        (Decision::Finish(_), _) => {
            drop((held, lock));
            close();
            wind_up(home, after);
            Ok(None)
        }
        _ => {
            drop((held, lock));
            close();
            Ok(None)
        }
    }
}

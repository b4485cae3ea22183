//! Starts a loop for a session: the contract from the user's words and the settings in force here.
//! A refusal starts nothing.

use std::path::Path;

use anyhow::Result;

use super::establish::{Prepared, establish};
use super::terms::{contract, typed};
use super::{detect, place, settings};
use crate::clients::Hook;
use crate::drive::find::NewOwner;
use crate::drive::missing;
use crate::engine::record::{Loop, LoopId};
use crate::parse::arguments::{LoopArgs, RunArgs};
use crate::world::store::Home;

/// A loop that has begun.
#[derive(Debug)]
pub struct Started {
    pub record: Loop,
    /// A check that would fit this working tree, if the loop has none.
    pub suggestion: Option<String>,
    /// What the user should know: one sentence each.
    pub notes: Vec<String>,
}

/// Starts a loop for a session. `None` if this same command has started it already: the plugin may
/// be loaded twice. An error means that nothing was started, and says why. `taken_back` is a loop
/// of this session that came to nothing, and is replaced.
pub fn start(
    home: &Home,
    hook: &Hook<'_>,
    arguments: &LoopArgs,
    cwd: &Path,
    taken_back: Option<LoopId>,
) -> Result<Option<Started>> {
    let new_owner = NewOwner::session(hook)?;
    let project = hook.abilities().project.and_then(|name| hook.folder_of(name));
    let place = place::place(cwd, project.as_deref())?;
    let known = settings::look(home, &place.checkout, !arguments.no_project)?;
    let known = known.in_a_session(hook.abilities().title);
    let options = RunArgs { start: arguments.clone(), ..RunArgs::default() }.loop_options();
    let typed = typed(options, &place.folder)?;
    let (settings, mut notes) = settings::in_force(home, known, typed, None)?;
    let contract = contract(arguments, &settings, cwd, None)?;
    notes.extend(missing::at_the_start(&place, &contract.checks)?);
    let same_command = |record: &Loop| {
        record.state.owner.session_id == hook.session_id
            && record.state.session.prompt_id == hook.turn
    };
    let replace = arguments.replace;
    let prepared = Prepared { replace, taken_back, ..Prepared::new(place, contract, notes) };
    let begun = establish(home, prepared, new_owner, same_command)?;
    let Some((held, record, mut notes)) = begun else { return Ok(None) };
    if let Some(theirs) = &home.overridden {
        let ours = home.root().display();
        let note =
            format!("CREW_HOME is {}, but this client's loops are in {ours}", theirs.display());
        let _ = held.note_once(&record, "overridden", &note);
        notes.push(note);
    }
    let suggestion = suggestion(&record);
    Ok(Some(Started { record, suggestion, notes }))
}

/// A check that would fit the working tree of a loop that has none.
pub fn suggestion(record: &Loop) -> Option<String> {
    if !record.contract.checks.is_empty() {
        return None;
    }
    let mut found = detect::checks(&record.place.folder).checks.into_iter();
    found.next().map(|detected| detected.run)
}

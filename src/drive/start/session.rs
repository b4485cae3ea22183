//! Starts a loop for a session: the contract from the user's words and the settings in force here.
//! A refusal starts nothing.

use std::path::Path;

use anyhow::Result;

use super::establish::{Beginning, establish};
use super::terms::{contract, typed};
use super::{detect, place, settings};
use crate::clients::Hook;
use crate::drive::resume::NewOwner;
use crate::drive::run::missing;
use crate::drive::session::cap;
use crate::engine::record::Loop;
use crate::engine::settings::merge::VariableTrust;
use crate::parse::arguments::LoopArgs;
use crate::world::store::home::Home;
use crate::world::store::view;

/// A request for a loop in a session.
#[derive(Debug)]
pub struct Request<'a> {
    pub arguments: LoopArgs,
    /// The event that asks for it.
    pub hook: &'a Hook<'a>,
    /// Where the agent is now.
    pub cwd: &'a Path,
}

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
/// be loaded twice. An error means that nothing was started, and says why.
pub fn start(home: &Home, request: &Request<'_>) -> Result<Option<Started>> {
    let NewOwner { owner, memory } = NewOwner::session(request.hook)?;
    let abilities = request.hook.abilities();
    let project = abilities.project.and_then(|name| request.hook.folder_of(name));
    let place = place::place(request.cwd, project.as_deref())?;
    let known = settings::look(home, &place.checkout, !request.arguments.project.no_project)?;
    let typed = typed(&request.arguments, &place.folder)?;
    let (settings, mut notes) =
        settings::in_force(home, known, typed, VariableTrust::OnlyNarrows, None)?;
    let contract = contract(&request.arguments, &settings, request.cwd, None)?;
    notes.extend(missing::at_the_start(&place, &contract.checks)?);
    let same_command = |record: &Loop| {
        record.state.owner.session_id == request.hook.session_id
            && record.state.session.prompt_id == request.hook.turn
    };
    let beginning =
        Beginning { place, contract, owner, memory, replace: request.arguments.replace };
    let Some((held, record, vacated)) = establish(home, beginning, same_command)? else {
        return Ok(None);
    };
    notes.extend(vacated);
    notes.extend(cap::at_the_start(request.hook, &record));
    if let Err(error) = view::write(&record) {
        let folder = record.place.reading_folder();
        notes.push(format!(
            "the checkout's files could not be written ({error}); task and handoffs are in {}",
            folder.display()
        ));
    }
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

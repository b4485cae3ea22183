//! Looks at crew's own settings, each file for itself, so that one fault hides no other.

use std::path::{Path, PathBuf};

use crate::drive::{agent, place, settings};
use crate::engine::agent::Agent;
use crate::engine::health::Own;
use crate::engine::settings::DEFAULT_AGENT;
use crate::engine::settings::merge::merge;
use crate::parse::settings::Whose;
use crate::world::home::Home;
use crate::world::settings::{environment, project_file, read, user_file};
use crate::world::{client, disk};

/// What the settings in force in `here` come to.
pub(super) fn settings(home: &Home, here: &Path) -> Own {
    let checkout =
        place::place(here, None).map_or_else(|_| here.to_owned(), |place| place.checkout);
    let mut files: Vec<(PathBuf, Whose)> = vec![(project_file(&checkout), Whose::Projects)];
    files.extend(user_file().map(|file| (file, Whose::Users)));
    let faults = files.iter().filter_map(|(file, whose)| read(file, *whose).err());
    let faults: Vec<String> = faults.chain(environment().err()).collect();
    let lines = |fault: &String| fault.lines().map(str::to_owned).collect::<Vec<_>>();
    let mut own = Own { faults: faults.iter().flat_map(lines).collect(), ..Own::default() };
    let Ok(known) = settings::look(home, &checkout, true) else { return own };
    own.unknown.clone_from(&known.warnings);
    own.untrusted = known.untrusted.iter().map(ToString::to_string).collect();
    let in_force = merge(&known.layers, settings::environment(), None);
    match agent::resolve(&in_force, None) {
        Ok(agent) => own.agent = Some(agent.name.clone()).filter(|_| is_another(&agent, here)),
        Err(error) => own.faults.push(format!("{error:#}")),
    }
    own
}

/// Whether an agent is not the built-in one and its program is there.
fn is_another(agent: &Agent, here: &Path) -> bool {
    let program = agent.command.first().map_or("", String::as_str);
    let is_there = if program.contains('/') {
        disk::exists(&here.join(program))
    } else {
        !client::on_path(program).is_empty()
    };
    (&*agent.name, program) != (DEFAULT_AGENT, DEFAULT_AGENT) && is_there
}

//! Reads crew's own settings one file at a time, so that one fault does not hide another.

use std::path::Path;

use anyhow::Error;

use crate::agents;
use crate::drive::missing;
use crate::drive::start::{agent, fallback, place, settings};
use crate::engine::doctor::Own;
use crate::engine::settings::merge::merge;
use crate::engine::settings::trust::needs;
use crate::parse::settings::{Read, Whose};
use crate::world::store::settings::{environment, project_file, read, user_file};
use crate::world::store::{Home, trust};

/// The settings in force in `here`, and their faults.
pub(super) fn settings(home: &Home, here: &Path) -> Own {
    let place = place::place(here, None);
    let checkout = place.as_ref().map_or(here, |place| &place.checkout);
    let lines = |faults: String| faults.lines().map(str::to_owned).collect::<Vec<_>>();
    let mut own = Own::default();
    let mut file = |path: &Path, whose| {
        let read = read(path, whose, &agents::outputs()).unwrap_or_else(|faults| {
            own.faults.extend(lines(faults));
            None
        });
        read.unwrap_or_default()
    };
    let project = file(&project_file(checkout), Whose::Projects);
    let user = user_file().map_or_else(Read::default, |path| file(&path, Whose::Users));
    own.variables = environment().err().map(lines).unwrap_or_default();
    own.unknown = [user.warnings, project.warnings].concat();
    let needs = needs(&project.layer, &user.layer, agents::DEFAULT);
    let untrusted = trust::untrusted(home, checkout, needs).unwrap_or_default();
    own.untrusted = untrusted.iter().map(ToString::to_string).collect();
    let Ok(known) = settings::look(home, checkout, true) else { return own };
    let in_force = merge(&known.layers, None);
    match agent::resolve(&in_force, None) {
        Ok(agent) => {
            let program = agent.command.first().map_or("", String::as_str);
            let mut others = fallback::fallbacks(&in_force, &agent).unwrap_or_default();
            if (&*agent.name, program) != (agents::DEFAULT, agents::DEFAULT) {
                let is_there = agent::has_program(&agent, here).is_ok();
                own.agent = is_there.then(|| agent.name.clone());
                others.insert(0, agent);
            }
            let missing = others.iter().filter_map(|it| agent::has_program(it, here).err());
            own.agents_missing = missing.map(|error| first_line(&error)).collect();
        }
        Err(error) => own.faults.push(format!("{error:#}")),
    }
    let checks = in_force.contract_checks();
    let refused = place.ok().and_then(|place| missing::at_the_start(&place, &checks).err());
    own.check_missing = refused.as_ref().map(first_line);
    own
}

/// The first line of a refusal, without its hint.
pub(super) fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

//! What keeps loops from starting in a folder: crew's own settings, read one file at a time so that
//! one fault does not hide another, and the scratch folder, where the checks of the newest loop are
//! tried on the tree on which they passed.

use std::path::Path;

use minijinja::context;

use super::findings::Findings;
use super::first_line;
use crate::agents;
use crate::drive::scratch::ScratchTerms;
use crate::drive::start::{agent, place, settings};
use crate::drive::{find, missing, prove, test_changes};
use crate::engine::record::Loop;
use crate::engine::test_changes::trial::passed;
use crate::engine::text::named;
use crate::parse::settings::merge::merge;
use crate::parse::settings::trust::needs;
use crate::parse::settings::{Read, Whose};
use crate::world::store::settings::{environment, project_file, read, user_file};
use crate::world::store::{Home, trust};

/// Seconds that the checks may take, unless three times what they took before is longer.
const WITHIN_S: u64 = 60;
/// The most ignored paths that are named.
const LACKS_MAX: usize = 5;

/// Reads the settings in force in `here`. Returns the agent they name for `crew run`, if it is not
/// the built-in one and its program exists.
pub(super) fn read_settings(home: &Home, here: &Path, found: &mut Findings) -> Option<String> {
    let place = place::place(here, None);
    let checkout = place.as_ref().map_or(here, |place| &place.checkout);
    let mut unreadable = |faults: &str, cure: &str| {
        for fault in faults.lines() {
            found.add("settings-unreadable", &context! { fault, cure });
        }
    };
    let mut file = |path: &Path, whose| {
        let read = read(path, whose, &agents::outputs());
        read.unwrap_or_else(|faults| {
            unreadable(&faults, "correct that line");
            None
        })
    };
    let project = file(&project_file(checkout), Whose::Projects).unwrap_or_default();
    let user = user_file().and_then(|path| file(&path, Whose::Users)).unwrap_or_default();
    if let Err(faults) = environment() {
        unreadable(&faults, "correct or unset the variable");
    }
    let needs = needs(&project.layer, &user.layer);
    let untrusted = trust::untrusted(home, checkout, needs).unwrap_or_default();
    if !untrusted.is_empty() {
        let untrusted: Vec<String> = untrusted.iter().map(ToString::to_string).collect();
        found.add("settings-untrusted", &context! { untrusted });
    }
    for key in [user, project].iter().flat_map(|file: &Read| &file.warnings) {
        found.add("settings-unknown-key", &context! { key });
    }
    let in_force = merge(&settings::look(home, checkout, true).ok()?.layers, None).ok()?;
    let other = match agent::resolve(&in_force, None) {
        Ok(agent) => {
            let program = agent.command.first().map_or("", String::as_str);
            let is_built_in = (&*agent.name, program) == (agents::DEFAULT, agents::DEFAULT);
            let mut others = agent::fallbacks(&in_force, &agent).unwrap_or_default();
            let is_there = agent::has_program(&agent, here).is_ok();
            let name = agent.name.clone();
            if !is_built_in {
                others.insert(0, agent);
            }
            for error in others.iter().filter_map(|it| agent::has_program(it, here).err()) {
                found.add("agent-missing", &context! { error => first_line(&error) });
            }
            (is_there && !is_built_in).then_some(name)
        }
        Err(error) => {
            let (fault, cure) = (format!("{error:#}"), "correct that line");
            found.add("settings-unreadable", &context! { fault, cure });
            None
        }
    };
    let checks = in_force.checks();
    if let Some(error) = place.ok().and_then(|place| missing::at_the_start(&place, &checks).err()) {
        found.add("check-missing", &context! { error => first_line(&error) });
    }
    other
}

/// Tries the checks of the newest loop here in the scratch folder, if they passed when it ended.
pub(super) fn try_scratch_folder(home: &Home, here: &Path, found: &mut Findings) {
    let Ok(Some(mut record)) = find::of_working_tree(home, here) else { return };
    let Some(evidence) = &record.state.evidence else { return };
    if record.is_live() || evidence.checks.is_empty() || evidence.failing().next().is_some() {
        return;
    }
    record.environment = None;
    record.contract.trial.timeout_s = WITHIN_S;
    let Some(last) = prove::last_snapshot(home, &record) else { return };
    let terms = prove::terms(home, &record, Some(&last), &|| false);
    let Ok(left) = test_changes::left(home, &record, Some(&last)) else { return };
    let (why, lacks) = match try_checks(terms, &record, &left.commit) {
        Ok(None) => return,
        Ok(Some(failed)) => failed,
        Err(why) => (why, Vec::new()),
    };
    found.add("scratch-folder", &context! { why, lacks => named(&lacks, LACKS_MAX) });
}

/// The first check that fails there, and what git ignores here and the folder does not have.
fn try_checks(
    terms: ScratchTerms<'_>,
    record: &Loop,
    tree: &str,
) -> Result<Option<(String, Vec<String>)>, String> {
    let Ok(mut scratch) = terms.open() else { return Ok(None) };
    // A `no-worse` check may fail there as it does in the working tree.
    for check in record.contract.checks.iter().filter(|check| !check.no_worse) {
        if let [result] = &*scratch.controls(&[check], tree)?
            && !passed(result)
        {
            let why = format!("`{}` {}", check.run, result.what_happened());
            return Ok(Some((why, scratch.left_out()?)));
        }
    }
    Ok(None)
}

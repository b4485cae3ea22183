//! `crew config`: what is in force here, and where each value came from. It changes nothing.

use anyhow::Result;

use super::{checkout, home, print};
use crate::drive::start::settings::{environment, look_without_a_start};
use crate::engine::settings::merge::{VariableTrust, merge};
use crate::exit::Exit;
use crate::report::settings::{File, Told, json, page};
use crate::world::files::disk;

/// Shows what a loop started here would get.
pub fn config(as_json: bool) -> Result<Exit> {
    let known = look_without_a_start(&home()?, &checkout()?)?;
    let settings = merge(&known.layers, environment(), None);
    // A session obeys less, because the project can set variables for its client.
    let in_session = merge(&known.layers, VariableTrust::OnlyNarrows, None).notes.into_iter();
    let in_session = in_session.map(|note| format!("in {}, {note}", known.layers.client));
    let warnings: Vec<String> = known.warnings.iter().cloned().chain(in_session).collect();
    let files = [("user", known.user_file.as_ref()), ("project", Some(&known.project_file))];
    let files = files.into_iter().filter_map(|(of, path)| {
        let path = path?;
        Some(File { of, path: path.display().to_string(), is_there: disk::exists(path) })
    });
    let told = Told {
        settings: &settings,
        files: files.collect(),
        untrusted: &known.untrusted,
        warnings: &warnings,
    };
    if as_json {
        print::json(&json(&told));
        return Ok(Exit::SUCCESS);
    }
    print::folded(&page(&told));
    for warning in &warnings {
        print::err(&format!("crew: {warning}"));
    }
    if !known.untrusted.is_empty() {
        print::err("crew: these are not trusted, so no loop starts here:");
        known.untrusted.iter().for_each(|need| print::err(&format!("  {}: {need}", need.origin)));
        print::err("hint: read them, then run `crew trust`");
    }
    Ok(Exit::SUCCESS)
}

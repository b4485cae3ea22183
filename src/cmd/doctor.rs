//! `crew doctor`: what keeps loops from running, with a fix for each. It looks and changes nothing.

use std::path::Path;

use anyhow::Result;

use super::{any_home, print};
use crate::drive::doctor::examine;
use crate::engine::doctor::{Severity, findings};
use crate::exit::Exit;
use crate::report::doctor as words;
use crate::world::env;

/// Examines this machine as seen from the current folder.
pub fn doctor(json: bool, client: Option<&Path>) -> Result<Exit> {
    let facts = examine(&any_home()?, &env::current_folder()?, client);
    let found = findings(&facts);
    if json {
        print::json(&words::json(&facts, &found));
    } else {
        print::folded(&words::page(&facts, &found));
    }
    let broken = found.iter().any(|finding| finding.severity == Severity::Broken);
    Ok(if broken { Exit::ERROR } else { Exit::SUCCESS })
}

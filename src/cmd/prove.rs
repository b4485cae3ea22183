//! `crew prove`: tries whether the checks of a loop need its work. It changes nothing in the
//! working tree and nothing in the record; the journal notes the result.

use anyhow::Result;

use super::{print, refuse_an_agent, requested};
use crate::drive::trial;
use crate::engine::test_changes::trial::Trial;
use crate::exit::Exit;
use crate::world::process::signals::Signals;

/// Tries the requested loop's work and prints the result. The exit code is 0 only for `proven`.
pub fn prove(name: Option<&str>) -> Result<Exit> {
    refuse_an_agent("an agent cannot have its own work proven\nhint: a person can, in a terminal")?;
    let (home, record) = requested(name)?;
    let signals = Signals::listen()?;
    let result = trial::by_hand(&home, &record, &|| signals.times() > 0)?;
    let (text, exit) = match result {
        Trial::Proven(how) => (format!("proven: {how}"), Exit::SUCCESS),
        Trial::Failed(why) | Trial::Impossible(why) => (format!("not proven: {why}"), Exit::ERROR),
    };
    print::out(&format!("loop {}: {text}", record.id));
    Ok(exit)
}

//! `crew prove`: tries whether the checks of a loop need its work, and updates the proof of one
//! that is completed. It changes nothing in the working tree.

use anyhow::Result;

use super::{print, refuse_an_agent, requested};
use crate::drive;
use crate::engine::test_changes::trial::Trial;
use crate::exit::Exit;
use crate::world::process::signals::Signals;

/// Tries the requested loop's work and prints the result. The exit code is 0 only for `proven`.
pub fn prove(name: Option<&str>) -> Result<Exit> {
    refuse_an_agent("an agent cannot have its own work proven\nhint: a person can, in a terminal")?;
    let (home, record) = requested(name)?;
    let signals = Signals::listen()?;
    let (trial, proof) = drive::prove::by_hand(&home, &record, &|| signals.times() > 0)?;
    let had = record.state.ending.as_ref().and_then(|ending| ending.proof);
    let (text, exit) = match trial {
        Trial::Proven(how) => (format!("proven: {how}"), Exit::SUCCESS),
        Trial::Failed(why) | Trial::Impossible(why) => {
            let other = proof.filter(|proof| Some(*proof) != had);
            let other = other.map(|proof| format!("; its proof is `{}` now", proof.label()));
            (format!("not proven: {why}{}", other.unwrap_or_default()), Exit::ERROR)
        }
    };
    print::out(&format!("loop {}: {text}", record.id));
    Ok(exit)
}

//! `crew trust`: a person says that the commands of this project's file may run on this machine. An
//! agent cannot say it.

use anyhow::{Context, Result, bail};

use super::{checkout, home, print};
use crate::drive::settings::look;
use crate::exit::Exit;
use crate::world::{disk, env, trust};

/// Trusts all that the project's file of this working tree asks for, and shows it.
pub fn trust() -> Result<Exit> {
    if env::inside_an_agent() {
        bail!(
            "only a person can trust a project's commands, and this shell is an agent's\n\
             hint: run `crew trust` in a terminal of your own"
        );
    }
    let (home, checkout) = (home()?, checkout()?);
    let known = look(&home, &checkout, true)?;
    let file = known.project_file.display();
    if !disk::exists(&known.project_file) {
        bail!("there is no {file}\nhint: `crew init` writes one");
    }
    if known.needs.is_empty() {
        print::out(&format!("nothing in {file} needs trust"));
        return Ok(Exit::Success);
    }
    trust::trust(&home, &checkout, &known.needs)
        .with_context(|| format!("cannot keep what is trusted in {}", home.root().display()))?;
    print::out(&format!("trusted on this machine, for loops in {}:", checkout.display()));
    known.needs.iter().for_each(|need| print::out(&format!("  {}: {need}", need.origin)));
    Ok(Exit::Success)
}

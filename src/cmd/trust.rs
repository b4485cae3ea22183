//! `crew trust`: a person reads what this project's file asks for, and allows it on this machine.
//! What is trusted is what was listed, even if the file has changed since. An agent cannot do this.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{checkout, home, print, refuse_an_agent};
use crate::drive::start::settings::{LoadedSettings, look_without_a_start};
use crate::exit::Exit;
use crate::world::files::disk;
use crate::world::store::{Home, trust};
use crate::world::terminal;

/// Lists everything that the project's file of this working tree asks for, and trusts it after a
/// person confirms.
pub fn trust(yes: bool, forget: bool) -> Result<Exit> {
    refuse_an_agent(
        "only a person can trust a project's commands, and this shell is an agent's\n\
         hint: run `crew trust` in your own terminal",
    )?;
    let (home, checkout) = (home()?, checkout()?);
    if forget {
        return forget_all(&home, &checkout);
    }
    let known = look_without_a_start(&home, &checkout)?;
    let file = known.project_file.display();
    if !disk::exists(&known.project_file) {
        bail!("there is no {file}\nhint: `crew init` writes one");
    }
    if known.needs.is_empty() {
        print::out(&format!("nothing in {file} needs trust"));
        return Ok(Exit::SUCCESS);
    }
    list(&known);
    let count = known.untrusted.len();
    if count == 0 {
        print::out("all of it is trusted on this machine");
        return Ok(Exit::SUCCESS);
    }
    if !yes {
        if !terminal::is_interactive() {
            print::err(
                "crew: nobody can be asked here, so nothing was trusted\n\
                 hint: read the list, then run `crew trust` in a terminal, or `crew trust --yes`",
            );
            return Ok(Exit::USAGE);
        }
        let these = if count == 1 { "this one".to_owned() } else { format!("these {count}") };
        print::offer(&format!("Trust {these} on this machine? [y/N] "));
        if !is_yes(terminal::answer()?.as_deref()) {
            bail!(
                "nothing was trusted\nhint: `crew trust` asks again; --no-project starts without"
            );
        }
    }
    trust::trust(&home, &checkout, &known.untrusted)
        .with_context(|| format!("cannot save what is trusted in {}", home.root().display()))?;
    print::out(&format!("trusted {count} on this machine, for loops in {}", checkout.display()));
    Ok(Exit::SUCCESS)
}

/// Everything that needs trust, with the new entries marked.
fn list(known: &LoadedSettings) {
    print::out(&format!("what needs trust in {}:", known.project_file.display()));
    for need in &known.needs {
        let mark = if known.untrusted.contains(need) { "new" } else { "trusted" };
        print::out(&format!("  {mark:<7}  {}: {need}", need.origin));
    }
}

fn is_yes(answer: Option<&str>) -> bool {
    answer.is_some_and(|answer| ["y", "yes"].contains(&answer.to_lowercase().as_str()))
}

fn forget_all(home: &Home, checkout: &Path) -> Result<Exit> {
    let forgotten = trust::forget(home, checkout)
        .with_context(|| format!("cannot forget what is trusted in {}", home.root().display()))?;
    let place = checkout.display();
    if forgotten.is_empty() {
        print::out(&format!("nothing was trusted in {place}"));
    } else {
        print::out(&format!("no longer trusted on this machine, for loops in {place}:"));
        for text in forgotten {
            print::out(&format!("  {text}"));
        }
    }
    Ok(Exit::SUCCESS)
}

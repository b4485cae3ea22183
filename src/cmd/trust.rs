//! `crew trust`: a person reads what this project's file asks for, and allows it on this machine.
//! What is trusted is what was listed, even if the file has changed since. An agent cannot do this.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{checkout, home, print, refuse_an_agent};
use crate::drive::start::settings::look_without_a_start;
use crate::exit::Exit;
use crate::parse::settings::trust::TrustRequest;
use crate::world::files::disk;
use crate::world::store::{Home, trust};

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
    list(&file.to_string(), &known.needs, &known.untrusted, &print::out);
    let count = known.untrusted.len();
    if count == 0 {
        print::out("all of it is trusted on this machine");
        return Ok(Exit::SUCCESS);
    }
    let these = if count == 1 { "this one".to_owned() } else { format!("these {count}") };
    let question = format!("Trust {these} on this machine?");
    ask(&checkout, &known.untrusted, yes, &question, "trusted", "crew trust")?;
    print::out(&format!("trusted {count} on this machine, for loops in {}", checkout.display()));
    Ok(Exit::SUCCESS)
}

/// Everything that needs trust in a file or folder, with the new entries marked.
pub(super) fn list(
    place: &str,
    needs: &[TrustRequest],
    untrusted: &[TrustRequest],
    say: &dyn Fn(&str),
) {
    say(&format!("what needs trust in {place}:"));
    for need in needs {
        let mark = if untrusted.contains(need) { "new" } else { "trusted" };
        say(&format!("  {mark:<7}  {}: {need}", need.origin));
    }
}

/// Asks a person once for trust in all that was listed, unless `yes` gave it, and saves it for the
/// checkout. An error where it is not given: then nothing was `done`, and `command` asks again.
pub(super) fn ask(
    checkout: &Path,
    listed: &[TrustRequest],
    yes: bool,
    question: &str,
    done: &str,
    command: &str,
) -> Result<()> {
    print::confirm(yes, question, done, command)?;
    let home = home()?;
    trust::trust(&home, checkout, listed)
        .with_context(|| format!("cannot save what is trusted in {}", home.root().display()))
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

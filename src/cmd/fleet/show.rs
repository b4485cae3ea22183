//! `crew fleet show`: the story of a task's newest loop, where that is on this machine; else the
//! journal of its lease.

use anyhow::{Result, bail};

use super::{requested, task};
use crate::cli::ShowArgs;
use crate::cmd::{print, show as loops};
use crate::engine::text::{Shown, distinct};
use crate::exit::Exit;
use crate::report::fleet::events;
use crate::world::store;

/// The most entries of a journal that are printed.
const ENTRIES_MAX: usize = 200;

/// Shows what became of a task.
pub fn show(name: &str, fleet: Option<&str>) -> Result<Exit> {
    let (home, memory, fleet) = requested(fleet)?;
    let kept = memory.lease(&task(name)?)?;
    let lease = &kept.value;
    print::out(&format!("task {name} of fleet {}, branch {}", fleet.name, lease.branch));
    if let Some(ending) = lease.ending() {
        print::out(&format!("{}\n", events::ended(ending)));
    }
    if let Some(id) = lease.loop_id.as_ref().filter(|id| store::load(&home, id).is_ok()) {
        return loops::show(&ShowArgs { name: Some(id.to_string()), ..ShowArgs::default() });
    }
    let journal = distinct(memory.journal(&kept, ENTRIES_MAX)?.into_iter());
    if journal.is_empty() {
        bail!("it has no loop yet\nhint: crew fleet status {} shows what it waits for", fleet.name);
    }
    for line in &journal {
        print::out(&Shown(line).to_string());
    }
    Ok(Exit::SUCCESS)
}

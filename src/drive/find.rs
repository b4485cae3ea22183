//! Which loop a person means: by id, by the beginning of an id, or by standing in its working tree.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::engine::looped::{Loop, LoopId};
use crate::world::home::{Home, read_pointer};
use crate::world::store::{self, StoreError};
use crate::world::{disk, git};

/// What a search came to.
#[derive(Debug)]
pub enum Found {
    One(Box<Loop>),
    None,
    /// More than one could be meant; the newest first.
    Many(Vec<Loop>),
}

/// Finds the loop that `name` means; without a name the loop of this working tree, else the only live one
/// of this machine.
pub fn find(home: &Home, name: Option<&str>, folder: &Path) -> Result<Found> {
    if let Some(name) = name {
        return by_name(home, name);
    }
    if let Some(record) = of_working_tree(home, folder)? {
        return Ok(Found::One(Box::new(record)));
    }
    let mut live = store::load_all(home);
    live.retain(Loop::is_live);
    Ok(match live.len() {
        0 => Found::None,
        1 => Found::One(Box::new(live.remove(0))),
        _ => Found::Many(live),
    })
}

fn by_name(home: &Home, name: &str) -> Result<Found> {
    if let Ok(id) = name.parse::<LoopId>() {
        return match store::load(home, &id) {
            Ok(record) => Ok(Found::One(Box::new(record))),
            Err(StoreError::Absent(_)) => bail!("there is no loop {id}\nhint: crew status --all"),
            Err(error) => Err(error.into()),
        };
    }
    let mut matching: Vec<LoopId> =
        store::ids(home).filter(|id| id.as_str().starts_with(name)).collect();
    match matching.len() {
        0 => bail!("no loop's id begins with {name:?}\nhint: crew status --all"),
        1 => Ok(Found::One(Box::new(store::load(home, &matching.remove(0))?))),
        _ => {
            let loops = matching.iter().filter_map(|id| store::load(home, id).ok());
            Ok(Found::Many(loops.collect()))
        }
    }
}

/// The newest loop of the working tree that holds `folder`.
pub fn of_working_tree(home: &Home, folder: &Path) -> Result<Option<Loop>> {
    for root in roots(folder) {
        if let Some(id) = read_pointer(&home.checkout_pointer(&root))? {
            match store::load(home, &id) {
                Ok(record) => return Ok(Some(record)),
                Err(StoreError::Absent(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(None)
}

/// The working tree's root, and without git the folder and those above it, nearest first.
fn roots(folder: &Path) -> Vec<PathBuf> {
    let Ok(folder) = disk::real_path(folder) else { return Vec::new() };
    match git::top(&folder) {
        Some(top) => vec![top],
        None => folder.ancestors().map(Path::to_path_buf).collect(),
    }
}

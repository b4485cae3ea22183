//! The plugin's folder on disk: written completely beside its place and then exchanged with what is
//! there. A folder that holds anything crew does not write (a checkout, a person's notes) is never
//! touched.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::clients::claude::plugin::manifest_version;
use crate::clients::claude::plugin::{self, MANIFEST, PROGRAMS};
use crate::engine::doctor::NAME;
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;
use crate::world::{client, env};

/// More files than the plugin folder of any crew version holds.
const FILES_MAX: usize = 1000;
/// The largest manifest that is read.
const MANIFEST_BYTES: u64 = 64 << 10;

/// Where `crew install` puts the plugin.
pub fn place() -> Result<PathBuf> {
    let data = env::path("XDG_DATA_HOME").or_else(|| Some(env::path("HOME")?.join(".local/share")));
    let data = data.context("HOME is not set\nhint: set HOME, or XDG_DATA_HOME to a folder")?;
    Ok(data.join("crew/plugin"))
}

/// The result of writing the plugin's folder.
#[derive(Debug)]
pub struct Laid {
    pub folder: PathBuf,
    /// The program its links point to.
    pub program: PathBuf,
    /// The version of the plugin that was there before.
    pub replaced: Option<String>,
}

/// Writes the plugin's folder, and replaces an older one.
pub fn lay_down() -> Result<Laid> {
    let folder = place()?;
    let replaced = version_there(&folder)?;
    let program = program(&folder)?;
    let new = beside(&folder);
    let laid = write(&new, &program)
        .and_then(|()| tree::exchange(&new, &folder))
        .with_context(|| format!("cannot write the plugin into {}", folder.display()));
    // The half-made one, or the one that was there before.
    let removed = tree::remove(&new);
    laid?;
    removed.with_context(|| format!("cannot remove {}", new.display()))?;
    Ok(Laid { folder, program, replaced })
}

/// Where the new one is made; anything a crash left there is useless.
fn beside(folder: &Path) -> PathBuf {
    folder.with_extension("new")
}

fn write(folder: &Path, program: &Path) -> std::io::Result<()> {
    tree::remove(folder)?;
    for (path, text) in plugin::plugin_files() {
        let file = folder.join(path);
        disk::make_folder(file.parent().unwrap_or(folder))?;
        disk::write(&file, text.as_bytes(), Durability::Machine)?;
    }
    disk::make_folder(&folder.join("bin"))?;
    PROGRAMS.iter().try_for_each(|path| tree::link_or_copy(program, &folder.join(path)))
}

/// What the links point to: this binary's name on `PATH`, which survives when a package manager
/// puts a newer binary there; else the binary itself.
fn program(folder: &Path) -> Result<PathBuf> {
    let this = env::program().and_then(|this| disk::real_path(&this));
    let this = this.context("cannot find out where this crew is installed")?;
    if this.starts_with(folder) {
        bail!(
            "this crew is the plugin's own copy, {}\nhint: run the crew that was installed first",
            this.display()
        );
    }
    let mut names = client::on_path(NAME).into_iter().filter(|name| !name.starts_with(folder));
    let same = names.find(|name| disk::real_path(name).is_ok_and(|real| real == this));
    Ok(same.unwrap_or(this))
}

/// The version of the plugin in a folder; `None` where there is no folder. A folder that is not
/// crew's is an error.
fn version_there(folder: &Path) -> Result<Option<String>> {
    if !disk::exists(folder) {
        return Ok(None);
    }
    let hint = "hint: move it away, or set XDG_DATA_HOME to another folder";
    if !tree::is_folder(folder) {
        bail!("{} is not one of crew's folders\n{hint}", folder.display());
    }
    let files = tree::files(folder, FILES_MAX);
    if let Some(strange) = files.iter().find(|path| !plugin::is_plugin_file(path)) {
        bail!(
            "{} holds files that crew did not put there: {}\n{hint}",
            folder.display(),
            strange.display()
        );
    }
    let manifest = disk::read_text(&folder.join(MANIFEST), MANIFEST_BYTES)?;
    let version = manifest.as_deref().and_then(manifest_version);
    if version.is_none() && !files.is_empty() {
        bail!("{} is not crew's plugin\n{hint}", folder.display());
    }
    Ok(version)
}

/// Removes the plugin's folder. Returns whether it existed.
pub fn remove() -> Result<bool> {
    let folder = place()?;
    let there = disk::exists(&folder);
    version_there(&folder)?;
    for folder in [&folder, &beside(&folder)] {
        tree::remove(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    if let Some(parent) = folder.parent() {
        tree::remove_if_empty(parent);
    }
    Ok(there)
}

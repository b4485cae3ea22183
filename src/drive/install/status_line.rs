//! The line of the loop below the client's prompt: an entry in the person's own settings of the
//! client. It is made and taken back here; another entry is left alone, and the error shows what
//! to write.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::folder;
use crate::clients::claude::plugin::PROGRAMS;
use crate::clients::claude::plugin::config_folder;
use crate::clients::claude::plugin::{NoRoom, status_line_entry, with_line, without_line};
use crate::engine::doctor::shell_word;
use crate::world::env;
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;

/// The largest settings file that is read.
const SETTINGS_BYTES: u64 = 4 << 20;

/// The command that the entry names: the plugin's own link, so that it is known again.
fn command() -> Result<String> {
    let program = folder::place()?.join(PROGRAMS[0]);
    Ok(format!("{} status --line", shell_word(&program.display().to_string())))
}

/// The person's settings file, and its text; a missing one is empty. A link is followed.
fn settings() -> Result<(PathBuf, String)> {
    let folder = config_folder(env::path).context("HOME is not set\nhint: set HOME to a folder")?;
    let file = folder.join("settings.json");
    let file = disk::real_path(&file).unwrap_or(file);
    let text = disk::read_text(&file, SETTINGS_BYTES)?;
    Ok((file, text.unwrap_or_default()))
}

/// What became of the entry.
#[derive(Debug)]
pub enum LineEntry {
    /// It is in this file.
    Written(PathBuf),
    /// The person has another status line, which stays; why, and how to have both.
    Left(String),
}

/// Writes the entry, or with `try_only` only checks whether the settings can be read.
pub fn add(try_only: bool) -> Result<LineEntry> {
    let (file, text) = settings()?;
    let name = file.display();
    let written = match with_line(&text, &command()?) {
        Ok(written) => written,
        Err(NoRoom::Broken(why)) => {
            bail!(
                "{name} is not a settings file that crew can read: {why}\nhint: fix it, then try again"
            )
        }
        Err(NoRoom::Taken(theirs)) => {
            return Ok(LineEntry::Left(format!(
                "{name} has another status line, which stays: {theirs}\n\
                 hint: let it run `crew status --line` too, or replace it by \"statusLine\": {}",
                status_line_entry("crew status --line")
            )));
        }
    };
    if let Some(text) = written.filter(|_| !try_only) {
        replace(&file, &text)?;
    }
    Ok(LineEntry::Written(file))
}

/// Takes the entry back. Returns the file it stood in, if it did.
pub fn remove() -> Result<Option<PathBuf>> {
    let (file, text) = settings()?;
    let Some(text) = without_line(&text, &command()?) else { return Ok(None) };
    replace(&file, &text)?;
    Ok(Some(file))
}

/// Replaces the settings, which keep their mode.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mode = tree::mode(file);
    disk::make_folder(file.parent().unwrap_or(file))?;
    disk::write(file, text.as_bytes(), Durability::Machine)?;
    mode.map_or(Ok(()), |mode| tree::set_mode(file, mode))
}

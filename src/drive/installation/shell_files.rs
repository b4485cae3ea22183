//! The files that `crew install` may put into the user's home for their shell: completions and
//! manual pages. Each file has a mark. A file without it is not crew's, and is neither replaced nor
//! removed. The completions ask the crew program that is installed at the first Tab, so they fit
//! each later version. No shell configuration file is changed.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Command;
use clap_mangen::Man;

use crate::drive::installation::install::no_home;
use world::env;
use world::files::disk::{self, Durability};

/// The text that marks a file as crew's own.
const MARK: &str = "written by crew install, removed by crew uninstall";
/// The largest file that is searched for the mark.
const FILE_BYTES: u64 = 1 << 20;
/// A bound greater than the number of manual pages in a user's own folder.
const PAGES_MAX: usize = 100_000;

/// The completions of bash, zsh and fish, and the folder of the user's own manual pages.
fn shell_folders() -> Option<[PathBuf; 4]> {
    let data = env::find_folder("XDG_DATA_HOME", ".local/share")?;
    let fish = env::find_folder("XDG_CONFIG_HOME", ".config")?.join("fish/completions/crew.fish");
    let bash = data.join("bash-completion/completions/crew");
    Some([bash, data.join("zsh/site-functions/_crew"), fish, data.join("man/man1")])
}

fn is_own(file: &Path) -> bool {
    disk::read_text(file, FILE_BYTES).is_ok_and(|text| text.is_some_and(|text| text.contains(MARK)))
}

/// The files that were placed and that are still crew's own.
pub fn placed_files() -> Vec<PathBuf> {
    let Some([bash, zsh, fish, man]) = shell_folders() else { return Vec::new() };
    let pages = disk::names(&man, PAGES_MAX).into_iter().filter(|name| name.starts_with("crew"));
    let all = [bash, zsh, fish].into_iter().chain(pages.map(|name| man.join(name)));
    all.filter(|file| is_own(file)).collect()
}

/// The manual page of a command.
pub fn manual_page(command: Command) -> Man {
    Man::new(command).source(concat!("crew ", env!("CARGO_PKG_VERSION")))
}

/// Places the completions of a shell, and the manual pages of these commands. Returns the files
/// that exist now, and the files that others have put in their places.
pub fn place_files(shell: &str, commands: Vec<Command>) -> Result<[Vec<PathBuf>; 2]> {
    let [bash, zsh, fish, man] = shell_folders().ok_or_else(no_home)?;
    let mut all = match shell {
        "bash" => vec![(bash, include_bytes!("completions/bash").to_vec())],
        "zsh" => vec![(zsh, include_bytes!("completions/zsh").to_vec())],
        "fish" => vec![(fish, include_bytes!("completions/fish").to_vec())],
        _ => Vec::new(),
    };
    for page in commands.into_iter().map(manual_page) {
        let mut text = format!(".\\\" {MARK}\n").into_bytes();
        page.render(&mut text)?;
        all.push((man.join(page.get_filename()), text));
    }
    let (ours, left): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(file, _)| !disk::exists(file) || is_own(file));
    for (file, text) in &ours {
        disk::make_folder(file.parent().unwrap_or(&man))?;
        disk::write(file, text, Durability::Machine)?;
    }
    Ok([ours, left].map(|files| files.into_iter().map(|(file, _)| file).collect()))
}

/// Removes the files that are crew's own. Returns whether there were any.
pub fn remove_files() -> io::Result<bool> {
    let files = placed_files();
    files.iter().try_for_each(|file| disk::remove(file)).map(|()| !files.is_empty())
}

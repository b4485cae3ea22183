//! Installs the plugin for a person, and undoes exactly that. The folder is written by crew;
//! everything in the client's own files is done by the client's own commands.

mod folder;
pub mod status_line;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};

use crate::clients::claude::plugin::PRODUCT;
use crate::clients::claude::plugin::{self, MarketplaceSource};
use crate::engine::doctor::{NAME, PLUGIN, PluginCheck, shell_word};
use crate::world::files::disk;
use crate::world::{client, env};

/// The largest settings file that is read.
const SETTINGS_BYTES: u64 = 1 << 20;

pub use self::folder::{Laid, place};

/// Whom the plugin is installed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum InstallScope {
    /// You, everywhere
    User,
    /// Everybody who works in this repository
    Project,
    /// You, in this repository
    Local,
}

impl InstallScope {
    /// The client's name for it.
    pub fn label(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// Writes the plugin's folder and registers it for this person.
pub fn install(scope: InstallScope, named: Option<&Path>) -> Result<Laid> {
    let laid = folder::lay_down()?;
    let here = env::current_folder()?;
    let from = laid.folder.display().to_string();
    let commands = [
        vec!["plugin", "marketplace", "add", &from],
        vec!["plugin", "install", PLUGIN, "--scope", scope.label()],
        // `install` does not change an installed plugin; this records the version that is there
        // now.
        vec!["plugin", "update", PLUGIN, "--scope", scope.label()],
    ];
    let Some(client) = client::find(named, PRODUCT.program) else {
        return Err(no_client(&format!("the plugin is in {from}, not registered"), &commands[..2]));
    };
    commands.iter().try_for_each(|command| client::change(&client, command, &here))?;
    Ok(laid)
}

fn no_client(done: &str, commands: &[Vec<&str>]) -> anyhow::Error {
    let lines = commands.iter().map(|words| {
        let words = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>();
        format!("\n  {} {}", PRODUCT.program, words.join(" "))
    });
    anyhow!(
        "{done}: `{}` is not on PATH\n\
         hint: name its program with --client PATH, or type in a terminal that has it:{}",
        PRODUCT.program,
        lines.collect::<String>()
    )
}

/// Writes the marketplace's address and the plugin into the repository's settings, for everyone who
/// works there.
pub fn share(address: Option<&str>, named: Option<&Path>) -> Result<String> {
    let address = public(address.unwrap_or(env!("CARGO_PKG_REPOSITORY")))?;
    let commands = [
        vec!["plugin", "marketplace", "add", &address, "--scope", "project"],
        vec!["plugin", "install", PLUGIN, "--scope", "project"],
    ];
    let client = client::find(named, PRODUCT.program)
        .ok_or_else(|| no_client("nothing was written", &commands))?;
    let here = env::current_folder()?;
    if let Some(MarketplaceSource::Folder(own)) = known_source(&client, &here)? {
        bail!(
            "this machine has crew's marketplace from {}, and the client keeps one source for a name\n\
             hint: write this into .claude/settings.json yourself:\n{:#}",
            own.display(),
            serde_json::json!({
                "extraKnownMarketplaces": { NAME: { "source": { "source": "git", "url": address } } },
                "enabledPlugins": { PLUGIN: true },
            })
        );
    }
    commands.iter().try_for_each(|command| client::change(&client, command, &here))?;
    Ok(address)
}

/// The address others can use; a path means nothing on another machine.
fn public(address: &str) -> Result<String> {
    let is_url = ["https://", "ssh://", "git@"].iter().any(|it| address.starts_with(it));
    if !is_url {
        bail!(
            "{address:?} is not an address that others can use\nhint: give one such as https://HOST/OWNER/crew.git"
        );
    }
    // Without `.git` at its end the client takes an address for a single file to fetch.
    let whole = address.trim_end_matches('/');
    let is_git = Path::new(whole).extension().is_some_and(|it| it == "git");
    Ok(if is_git { whole.to_owned() } else { format!("{whole}.git") })
}

fn known_source(client: &Path, here: &Path) -> Result<Option<MarketplaceSource>> {
    let said = client::ask(client, &["plugin", "marketplace", "list", "--json"], here)?;
    plugin::marketplace(&said).map_err(anyhow::Error::msg)
}

/// What uninstalling did.
#[derive(Debug, Default)]
pub struct Removed {
    pub folder: PathBuf,
    /// Whether the folder existed.
    pub was_there: bool,
    /// Whether the client had it; `None` if there is no client to ask.
    pub was_registered: Option<bool>,
    /// The repositories whose own settings still name the plugin.
    pub shared: Vec<PathBuf>,
}

/// Undoes `install`, in every folder it was done for.
pub fn uninstall(named: Option<&Path>) -> Result<Removed> {
    let folder = place()?;
    let Some(client) = client::find(named, PRODUCT.program) else {
        if !folder::remove()? {
            return Ok(Removed { folder, ..Removed::default() });
        }
        let done = format!("{} is removed; a client that had it still names it", folder.display());
        let commands =
            [vec!["plugin", "uninstall", PLUGIN], vec!["plugin", "marketplace", "remove", NAME]];
        return Err(no_client(&done, &commands));
    };
    let here = env::current_folder()?;
    let ours = match known_source(&client, &here)? {
        Some(MarketplaceSource::Folder(from)) => from == folder || same(&from, &folder),
        _ => false,
    };
    let mut shared = Vec::new();
    if ours {
        let said = client::ask(&client, &["plugin", "list", "--json"], &here)?;
        for plugin in plugin::plugins(&said).map_err(anyhow::Error::msg)? {
            if plugin.id == PLUGIN {
                shared.extend(forget(&client, &plugin, &here)?);
            }
        }
        let command = ["plugin", "marketplace", "remove", NAME, "--scope", "user"];
        client::change(&client, &command, &here)?;
    }
    let was_there = folder::remove()?;
    Ok(Removed { folder, was_there, was_registered: Some(ours), shared })
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((disk::real_path(one), disk::real_path(other)), (Ok(one), Ok(other)) if one == other)
}

/// Makes the client forget one installation of this person. One that a repository's settings ask
/// for belongs to others too: it is left, and reported.
fn forget(client: &Path, plugin: &PluginCheck, here: &Path) -> Result<Option<PathBuf>> {
    let folder = plugin.project.as_deref().unwrap_or(here);
    if plugin.scope == InstallScope::Project.label() {
        return Ok(Some(folder.to_owned()));
    }
    // The settings of a removed repository are gone with it.
    if disk::exists(folder) {
        let command = ["plugin", "uninstall", PLUGIN, "--scope", &plugin.scope];
        client::change(client, &command, folder)?;
    }
    Ok(None)
}

/// Undoes `share` in this repository.
pub fn unshare(named: Option<&Path>) -> Result<()> {
    let commands = [
        vec!["plugin", "uninstall", PLUGIN, "--scope", "project"],
        vec!["plugin", "marketplace", "remove", NAME, "--scope", "project"],
    ];
    let client = client::find(named, PRODUCT.program)
        .ok_or_else(|| no_client("nothing was changed", &commands))?;
    let here = env::current_folder()?;
    let names_it = |folder: &Path| {
        let text = disk::read_text(&folder.join(".claude/settings.json"), SETTINGS_BYTES);
        text.is_ok_and(|text| text.is_some_and(|text| text.contains(PLUGIN)))
    };
    if !here.ancestors().any(names_it) {
        bail!(
            "no .claude/settings.json here asks for crew's plugin\n\
             hint: your own installation goes with crew uninstall"
        );
    }
    commands.iter().try_for_each(|command| client::change(&client, command, &here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_that_others_can_use_is_written() {
        for (given, written) in [
            ("https://github.com/someone/crew", "https://github.com/someone/crew.git"),
            ("https://example.invalid/crew.git/", "https://example.invalid/crew.git"),
            ("git@example.invalid:someone/crew.git", "git@example.invalid:someone/crew.git"),
        ] {
            assert_eq!(public(given).unwrap(), written);
        }
        for refused in ["", "/home/me/crew", "./crew", "~/crew", "file:///home/me/crew"] {
            assert!(public(refused).is_err(), "{refused}");
        }
    }
}

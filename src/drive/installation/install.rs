//! Installs the plugin for the user, and undoes exactly that. The plugin's folder is written
//! completely beside its place and then exchanged with the existing one; a folder with any file
//! that crew does not write (a checkout, a person's notes) is never touched. Everything in the
//! client's own files is done by the client's own commands, except its status line, an entry in the
//! person's settings that is added and removed here; a different entry is left alone.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use super::plugin_files;
use crate::drive::installation::plugin_files::{MANIFEST, PROGRAMS};
use engine::doctor::{NAME, PLUGIN, shell_word};
use engine::failure::Failure;
use engine::refuse;
use engine::text::variant_name;
use readers::clients::claude::plugin::{
    self, NoRoom, PRODUCT, config_folder, manifest_version, status_line_entry, with_line,
    without_line,
};
use readers::clients::{Hook, HookEvent};
use world::files::disk::{self, Durability};
use world::files::tree;
use world::{client, env};

/// The error if nothing determines the home to write to.
pub fn no_home() -> Failure {
    Failure::new("HOME is not set", "set HOME to a folder")
}

/// The largest settings file that is read.
const SETTINGS_BYTES: u64 = 4 << 20;
/// A bound greater than the number of files in the plugin folder of any crew version.
const FILES_MAX: usize = 1000;
/// The largest manifest that is read.
const MANIFEST_BYTES: u64 = 64 << 10;

/// Whom the plugin is installed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
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
        variant_name(&self)
    }
}

/// Writes the plugin's folder and registers it for this user.
pub fn install_plugin(scope: InstallScope, named: Option<&Path>) -> Result<WrittenPlugin> {
    let laid = write_plugin()?;
    let from = laid.folder.display().to_string();
    let commands = [
        vec!["plugin", "marketplace", "add", &from],
        vec!["plugin", "install", PLUGIN, "--scope", scope.label()],
        // `install` does not change an installed plugin; this records the version that is there
        // now.
        vec!["plugin", "update", PLUGIN, "--scope", scope.label()],
    ];
    let done = format!("the plugin is in {from}, not registered");
    Client::find_client(named, &done, &commands)?.change_all(&commands)?;
    Ok(laid)
}

/// Writes the marketplace's address and the plugin into the repository's settings, for everyone who
/// works there.
pub fn share_plugin(address: Option<&str>, named: Option<&Path>) -> Result<String> {
    let address = public_address(address.unwrap_or(env!("CARGO_PKG_REPOSITORY")))?;
    let commands = [
        vec!["plugin", "marketplace", "add", &address, "--scope", "project"],
        vec!["plugin", "install", PLUGIN, "--scope", "project"],
    ];
    let client = Client::find_client(named, "nothing was written", &commands)?;
    if let Some(own) = client.marketplace_folder()? {
        refuse!(
            format!(
                "this machine has crew's marketplace from {}, and the client keeps one source for a name",
                own.display()
            ),
            format!(
                "write this into .claude/settings.json yourself:\n{:#}",
                serde_json::json!({
                    "extraKnownMarketplaces": { NAME: { "source": { "source": "git", "url": address } } },
                    "enabledPlugins": { PLUGIN: true },
                })
            )
        );
    }
    client.change_all(&commands)?;
    Ok(address)
}

/// The address others can use; a path means nothing on another machine.
fn public_address(address: &str) -> Result<String> {
    let is_url = ["https://", "ssh://", "git@"].iter().any(|start| address.starts_with(start));
    if !is_url {
        refuse!(
            "{address:?} is not an address that others can use",
            "give one such as https://HOST/OWNER/crew.git"
        );
    }
    // Without a final `.git` the client reads an address as a single file to fetch.
    let whole = address.trim_end_matches('/');
    let is_git = Path::new(whole).extension().is_some_and(|ending| ending == "git");
    Ok(if is_git { whole.to_owned() } else { format!("{whole}.git") })
}

/// The result of an uninstall.
#[derive(Debug)]
pub struct Removed {
    pub folder: PathBuf,
    /// Whether the folder existed.
    pub was_there: bool,
    /// Whether the plugin was registered with the client; `None` without a client.
    pub was_registered: Option<bool>,
    /// The repositories whose own settings still name the plugin.
    pub shared: Vec<PathBuf>,
}

/// Undoes `install`, in every folder for which it was run.
pub fn uninstall_plugin(named: Option<&Path>) -> Result<Removed> {
    let folder = plugin_folder()?;
    let done = format!("{} is removed; a client that had it still names it", folder.display());
    let commands =
        [vec!["plugin", "uninstall", PLUGIN], vec!["plugin", "marketplace", "remove", NAME]];
    let client = match Client::find_client(named, &done, &commands) {
        Ok(client) => client,
        Err(_) if !remove_folder()? => {
            return Ok(Removed { folder, was_there: false, was_registered: None, shared: vec![] });
        }
        Err(error) => return Err(error),
    };
    let real = |path: &Path| disk::real_path(path).unwrap_or_else(|_| path.to_owned());
    let ours = client.marketplace_folder()?.is_some_and(|from| real(&from) == real(&folder));
    let mut shared = Vec::new();
    if ours {
        let said =
            client::read_output(&client.program, &["plugin", "list", "--json"], &client.here)?;
        let plugins = plugin::parse_plugins(&said).map_err(anyhow::Error::msg)?;
        for plugin in plugins.iter().filter(|plugin| plugin.id == PLUGIN) {
            let folder = plugin.project.as_deref().unwrap_or(&client.here);
            // What a repository's settings ask for belongs to others too: it is left, and reported.
            if plugin.scope == InstallScope::Project.label() {
                shared.push(folder.to_owned());
            } else if disk::exists(folder) {
                let command = ["plugin", "uninstall", PLUGIN, "--scope", &plugin.scope];
                client::run_change(&client.program, &command, folder)?;
            }
        }
        client.change_all(&[vec!["plugin", "marketplace", "remove", NAME, "--scope", "user"]])?;
    }
    let was_there = remove_folder()?;
    Ok(Removed { folder, was_there, was_registered: Some(ours), shared })
}

/// Undoes `share` in this repository.
pub fn unshare_plugin(named: Option<&Path>) -> Result<()> {
    let commands = [
        vec!["plugin", "uninstall", PLUGIN, "--scope", "project"],
        vec!["plugin", "marketplace", "remove", NAME, "--scope", "project"],
    ];
    let client = Client::find_client(named, "nothing was changed", &commands)?;
    let is_named = client.here.ancestors().any(|folder| {
        let text = disk::read_text(&folder.join(".claude/settings.json"), SETTINGS_BYTES);
        text.is_ok_and(|text| text.is_some_and(|text| text.contains(PLUGIN)))
    });
    if !is_named {
        refuse!(
            "no .claude/settings.json here asks for crew's plugin",
            "your own installation goes with crew uninstall"
        );
    }
    client.change_all(&commands)
}

/// The client's program, and the folder it is run in.
struct Client {
    program: PathBuf,
    here: PathBuf,
}

impl Client {
    /// The client that has to run these commands. If there is none, the error reports what has been
    /// done, and names the commands.
    fn find_client(named: Option<&Path>, done: &str, commands: &[Vec<&str>]) -> Result<Self> {
        let program = client::find_program(named, PRODUCT.program).ok_or_else(|| {
            let lines = commands.iter().map(|words| {
                let words = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>();
                format!("\n  {} {}", PRODUCT.program, words.join(" "))
            });
            let hint = "name its program with --client PATH, or type in a terminal that has it:";
            Failure::new(
                format!("{done}: `{}` is not on PATH", PRODUCT.program),
                format!("{hint}{}", lines.collect::<String>()),
            )
        })?;
        Ok(Self { program, here: env::current_folder()? })
    }

    fn change_all(&self, commands: &[Vec<&str>]) -> Result<()> {
        commands.iter().try_for_each(|words| client::run_change(&self.program, words, &self.here))
    }

    /// The folder from which the client loads crew's marketplace, if it is a folder.
    fn marketplace_folder(&self) -> Result<Option<PathBuf>> {
        let words = ["plugin", "marketplace", "list", "--json"];
        let said = client::read_output(&self.program, &words, &self.here)?;
        plugin::marketplace_folder(&said).map_err(anyhow::Error::msg)
    }
}

/// Where `crew install` puts the plugin.
fn plugin_folder() -> Result<PathBuf> {
    let data = env::find_folder("XDG_DATA_HOME", ".local/share");
    let data = data
        .ok_or_else(|| Failure::new("HOME is not set", "set HOME, or XDG_DATA_HOME to a folder"))?;
    Ok(data.join("crew/plugin"))
}

/// A plugin folder that was written.
#[derive(Debug)]
pub struct WrittenPlugin {
    pub folder: PathBuf,
    /// The program its links point to.
    pub program: PathBuf,
    /// The version of the plugin that it replaced.
    pub replaced: Option<String>,
}

/// Writes the plugin's folder, and replaces an older one.
fn write_plugin() -> Result<WrittenPlugin> {
    let folder = plugin_folder()?;
    let replaced = version_there(&folder)?;
    let program = plugin_program(&folder)?;
    // Anything that a crash left there is useless.
    let new = folder.with_extension("new");
    let laid = write_folder(&new, &program)
        .and_then(|()| tree::exchange_folders(&new, &folder))
        .with_context(|| format!("cannot write the plugin into {}", folder.display()));
    // The incomplete one, or the one that was there before.
    let removed = tree::remove_folder(&new);
    laid?;
    removed.with_context(|| format!("cannot remove {}", new.display()))?;
    Ok(WrittenPlugin { folder, program, replaced })
}

fn write_folder(folder: &Path, program: &Path) -> io::Result<()> {
    tree::remove_folder(folder)?;
    for (path, text) in plugin_files::plugin_files() {
        let file = folder.join(path);
        disk::make_folder(file.parent().unwrap_or(folder))?;
        disk::write(&file, text.as_bytes(), Durability::Machine)?;
    }
    disk::make_folder(&folder.join("bin"))?;
    PROGRAMS.iter().try_for_each(|path| tree::link_or_copy(program, &folder.join(path)))
}

/// The target of the links: this binary's name on `PATH`, which survives when a package manager
/// puts a newer binary there; otherwise the binary itself.
fn plugin_program(folder: &Path) -> Result<PathBuf> {
    let this = env::program_path().and_then(|this| disk::real_path(&this));
    let this = this.context("cannot find out where this crew is installed")?;
    if this.starts_with(folder) {
        refuse!(
            format!("this crew is the plugin's own copy, {}", this.display()),
            "run the crew that was installed first"
        );
    }
    let mut names = client::on_path(NAME).into_iter().filter(|name| !name.starts_with(folder));
    let same = names.find(|name| disk::real_path(name).is_ok_and(|real| real == this));
    Ok(same.unwrap_or(this))
}

/// The version of the plugin in a folder; `None` where the folder is missing or empty. A
/// folder that is not crew's is an error.
fn version_there(folder: &Path) -> Result<Option<String>> {
    if !disk::exists(folder) {
        return Ok(None);
    }
    let files = tree::list_files(folder, FILES_MAX);
    let strange = files.iter().find(|path| !plugin_files::is_plugin_file(path));
    let manifest = disk::read_text(&folder.join(MANIFEST), MANIFEST_BYTES).ok().flatten();
    let version = manifest.as_deref().and_then(manifest_version);
    let is_crews = strange.is_none() && (version.is_some() || files.is_empty());
    if !is_crews || !tree::is_folder(folder) {
        let holds = strange.map(|file| format!(": it holds {}", file.display()));
        refuse!(
            format!(
                "{} is not a folder that crew made{}",
                folder.display(),
                holds.unwrap_or_default()
            ),
            "move it away, or set XDG_DATA_HOME to another folder"
        );
    }
    Ok(version)
}

/// Removes the plugin's folder. Returns whether it existed.
fn remove_folder() -> Result<bool> {
    let folder = plugin_folder()?;
    let there = disk::exists(&folder);
    version_there(&folder)?;
    for folder in [&folder, &folder.with_extension("new")] {
        tree::remove_folder(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    if let Some(parent) = folder.parent() {
        tree::remove_if_empty(parent);
    }
    Ok(there)
}

/// The user's settings file, its text (empty if it is missing), and the command in crew's entry:
/// the plugin's own link, so that the entry is recognised later. A link to the file is followed.
fn read_user_settings() -> Result<(PathBuf, String, String)> {
    let folder = config_folder(env::path).ok_or_else(no_home)?;
    let file = folder.join("settings.json");
    let file = disk::real_path(&file).unwrap_or(file);
    let text = disk::read_text(&file, SETTINGS_BYTES)?.unwrap_or_default();
    let program = plugin_folder()?.join(PROGRAMS[0]).display().to_string();
    Ok((file, text, format!("{} status --line", shell_word(&program))))
}

/// What happened to the entry of the status line.
#[derive(Debug)]
pub enum LineEntry {
    /// It is in this file.
    Written(PathBuf),
    /// The user has another status line, which stays; why, and how to have both.
    Left(Failure),
}

/// Writes the entry of the status line, or with `try_only` only checks whether the settings can be
/// read.
pub fn add_line(try_only: bool) -> Result<LineEntry> {
    let (file, text, command) = read_user_settings()?;
    let name = file.display();
    let written = match with_line(&text, &command) {
        Ok(written) => written,
        Err(NoRoom::Broken(why)) => {
            refuse!(
                "{name} is not a settings file that crew can read: {why}",
                "fix it, then try again"
            )
        }
        Err(NoRoom::Taken(theirs)) => {
            return Ok(LineEntry::Left(Failure::new(
                format!("{name} has another status line, which stays: {theirs}"),
                format!(
                    "let it run `crew status --line` too, or replace it by \"statusLine\": {}",
                    status_line_entry("crew status --line")
                ),
            )));
        }
    };
    if let (Some(text), false) = (written, try_only) {
        replace_file(&file, &text)?;
    }
    Ok(LineEntry::Written(file))
}

/// Removes the entry of the status line. Returns the file that contained it, if there was one.
pub fn remove_line() -> Result<Option<PathBuf>> {
    let (file, text, command) = read_user_settings()?;
    let Some(text) = without_line(&text, &command) else { return Ok(None) };
    replace_file(&file, &text)?;
    Ok(Some(file))
}

/// Replaces the settings, which keep their mode.
fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    let mode = tree::read_mode(file);
    disk::make_folder(file.parent().unwrap_or(file))?;
    disk::write(file, text.as_bytes(), Durability::Machine)?;
    mode.map_or(Ok(()), |mode| tree::set_mode(file, mode))
}

// Updating the plugin does not update the binary behind its hooks, and neither does the other.

/// A plugin whose version differs from that of this binary.
#[derive(Debug)]
pub struct Skew {
    /// The plugin's version.
    pub plugin: String,
    /// Whether the plugin finds its binary through the launcher: a checkout, or a copy of one.
    pub launched: bool,
}

/// Checks the plugin this hook belongs to, once per session: a compaction does not start a new one.
pub fn version_skew(hook: &Hook<'_>) -> Option<Skew> {
    if *hook.event() != (HookEvent::SessionBegan { compacted: false }) {
        return None;
    }
    let root = hook.folder_of(hook.client.variables().plugin()?)?;
    let manifest = disk::read_text(&root.join(MANIFEST), MANIFEST_BYTES).ok()??;
    let plugin = manifest_version(&manifest)?;
    let launched = disk::exists(&root.join("bin/launch"));
    (plugin != env!("CARGO_PKG_VERSION")).then_some(Skew { plugin, launched })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_that_others_can_use_is_recorded() {
        for (given, written) in [
            ("https://github.com/someone/crew", "https://github.com/someone/crew.git"),
            ("https://example.invalid/crew.git/", "https://example.invalid/crew.git"),
            ("git@example.invalid:someone/crew.git", "git@example.invalid:someone/crew.git"),
        ] {
            assert_eq!(public_address(given).unwrap(), written);
        }
        for refused in ["", "/home/me/crew", "./crew", "~/crew", "file:///home/me/crew"] {
            assert!(public_address(refused).is_err(), "{refused}");
        }
    }
}

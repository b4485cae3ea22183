//! What keeps the hooks of the client's sessions from running: the client itself, its settings, the
//! plugin it has, and the folder and the program behind that.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{TEXT_BYTES, first_line};
use crate::clients::claude::plugin::{HOOKS, MANIFEST, PROGRAMS};
use crate::clients::claude::plugin::{
    MarketplaceSource, client_version, crew_version, manifest_version, marketplace, plugins,
    settings,
};
use crate::clients::claude::plugin::{PRODUCT, config_folder, settings_files};
use crate::engine::doctor::{
    ClientSettings, Findings, NAME, PLUGIN, PluginCheck, Severity, Version,
};
use crate::world::files::{disk, tree};
use crate::world::{client, env, git};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What makes the plugin's folder whole again.
const AGAIN: &str = "crew install, then /reload-plugins in running sessions";

/// What is known of the client.
pub(super) struct SeenClient {
    /// Its name, version and program, or why there is none.
    pub line: String,
    pub version: Option<Version>,
    /// The folder it reads crew's plugin from.
    pub folder: Option<PathBuf>,
    /// Whether it reports its plugins, and no crew is among them.
    pub lacks_crew: bool,
}

/// Looks at the client. `other`: the agent that `crew run` works with if it is not the client's;
/// `was_given`: a session was given the plugin, and nobody installed it.
pub(super) fn examine(
    here: &Path,
    named: Option<&Path>,
    other: Option<&str>,
    was_given: bool,
    found: &mut Findings,
) -> SeenClient {
    let mut seen =
        SeenClient { line: "none".to_owned(), version: None, folder: None, lacks_crew: false };
    let program = the_client(here, named, other, &mut seen, found);
    let ask = |words: &[&str]| client::ask(program.as_deref()?, words, here).ok();
    let all = ask(&["plugin", "list", "--json"]).and_then(|text| plugins(&text).ok());
    let source = ask(&["plugin", "marketplace", "list", "--json"]);
    let source = source.and_then(|text| marketplace(&text).ok().flatten());
    let files = the_settings(here);
    if let Some(all) = &all {
        seen.lacks_crew = !all.iter().any(is_crew) && !was_given;
        the_plugin(all, &files, was_given, found);
    }
    // A folder of this machine, or the client's own copy.
    let ours = all.iter().flatten().filter(|plugin| plugin.id == PLUGIN);
    let copy = ours.max_by_key(|plugin| plugin.enabled).and_then(|plugin| plugin.copy.clone());
    seen.folder = match source {
        Some(MarketplaceSource::Folder(folder)) => Some(folder),
        None | Some(MarketplaceSource::Elsewhere(_)) => copy,
    };
    if let Some(folder) = &seen.folder
        && holds_plugin(folder, found)
    {
        the_program(folder, here, found);
    }
    for ClientSettings { path, disables_hooks, managed_hooks_only, .. } in &files {
        let path = path.display();
        if *disables_hooks {
            let what = format!("{path} sets \"disableAllHooks\": no hook of crew's runs");
            found.broken("hooks-disabled", what, format!("take \"disableAllHooks\" out of {path}"));
        }
        if *managed_hooks_only {
            let what = format!("{path} allows managed hooks only: no hook of crew's runs");
            let fix = "ask this machine's administrator to allow crew's plugin";
            found.broken("hooks-managed", what, fix);
        }
    }
    seen
}

/// The client's program, if it answers.
fn the_client(
    here: &Path,
    named: Option<&Path>,
    other: Option<&str>,
    seen: &mut SeenClient,
    found: &mut Findings,
) -> Option<PathBuf> {
    let name = PRODUCT.name;
    let Some(program) = client::find(named, PRODUCT.program) else {
        let what = format!("`{}` is not on PATH, so no session can run loops", PRODUCT.program);
        match other {
            Some(agent) => found.add(
                Severity::Note,
                "client-missing",
                format!("{what}; crew run works with {agent}"),
                format!("none is needed, unless you want loops in {name}'s sessions"),
            ),
            None => found.broken(
                "client-missing",
                what,
                format!(
                    "install {name}, or name its program: crew doctor --client PATH; for crew run alone name \
                     another agent under [loop] in your settings file (crew config names it)"
                ),
            ),
        }
        return None;
    };
    let answer = client::ask(&program, &["--version"], here).map_err(|error| first_line(&error));
    let version = answer.and_then(|text| {
        let strange = || format!("`{} --version` prints {text:?}", program.display());
        client_version(&text).ok_or_else(strange)
    });
    let version = match version {
        Ok(version) => version,
        Err(why) => {
            "does not answer".clone_into(&mut seen.line);
            let fix =
                format!("install {name} again, or name its program: crew doctor --client PATH");
            found.broken("client-silent", format!("the client does not answer: {why}"), fix);
            return None;
        }
    };
    let (oldest, newest) = (PRODUCT.oldest, PRODUCT.newest_tried);
    let update = format!("{} update", PRODUCT.program);
    if version < oldest {
        let what =
            format!("{name} {version} is older than {oldest}: its hooks cannot continue a loop");
        found.broken("client-too-old", what, update);
    } else if version < newest {
        let lacks = PRODUCT.older_lacks;
        let what = format!("{name} {version} may lack what {newest} has: {lacks}");
        let fix =
            format!("{update}; until then Esc, or crew pause and crew cancel in another terminal");
        found.add(Severity::Note, "client-older", what, fix);
    }
    seen.line = format!("{name} {version}, {}", program.display());
    seen.version = Some(version);
    Some(program)
}

fn is_crew(plugin: &PluginCheck) -> bool {
    plugin.id.split('@').next() == Some(NAME)
}

fn the_plugin(
    all: &[PluginCheck],
    files: &[ClientSettings],
    was_given: bool,
    found: &mut Findings,
) {
    let (ours, others): (Vec<_>, Vec<_>) =
        all.iter().filter(|plugin| is_crew(plugin)).partition(|plugin| plugin.id == PLUGIN);
    for PluginCheck { id, scope, .. } in others.into_iter().filter(|other| other.enabled) {
        let what = format!("another plugin is also named {NAME}: {id}; either of them may answer");
        let fix = format!("{} plugin disable {id} --scope {scope}", PRODUCT.program);
        found.broken("plugin-shadowed", what, fix);
    }
    for error in ours.iter().flat_map(|plugin| &plugin.errors) {
        let what = format!("the client cannot load {PLUGIN}: {error}");
        found.broken("plugin-not-loaded", what, "crew install");
    }
    if ours.iter().any(|plugin| plugin.enabled) {
        return;
    }
    if let Some(file) = files.iter().rfind(|file| file.enables == Some(false)) {
        let path = file.path.display();
        let what = format!("{PLUGIN} is disabled by \"enabledPlugins\" in {path}");
        found.broken("plugin-disabled", what, format!("take \"{PLUGIN}\": false out of {path}"));
    } else if !ours.is_empty() {
        let what = format!("{PLUGIN} is installed, but not for this folder");
        found.broken("plugin-missing", what, "crew install (for all your folders)");
    } else if !was_given {
        let fix = "crew install; a session started with --plugin-dir needs none";
        found.broken("plugin-missing", format!("the client has no plugin {PLUGIN}"), fix);
    }
}

/// Whether a folder holds crew's plugin, of whatever version.
fn holds_plugin(folder: &Path, found: &mut Findings) -> bool {
    let text = |name: &str| disk::read_text(&folder.join(name), TEXT_BYTES).ok().flatten();
    let hooks = text(HOOKS).and_then(|text| serde_json::from_slice::<Value>(text.as_bytes()).ok());
    let has_hooks = hooks.is_some_and(|hooks| hooks.get("hooks").is_some_and(Value::is_object));
    let path = folder.display();
    match text(MANIFEST).as_deref().and_then(manifest_version) {
        Some(version) if has_hooks => {
            if version != VERSION {
                let what = format!("the plugin in {path} is of crew {version}, this is {VERSION}");
                found.broken("version-skew", what, AGAIN);
            }
            true
        }
        _ => {
            let what = format!("{path} does not hold crew's plugin with its hooks");
            found.broken("folder-broken", what, AGAIN);
            false
        }
    }
}

/// The program that the plugin's hooks run, under each of its names, or the launcher of a checkout.
fn the_program(folder: &Path, here: &Path, found: &mut Findings) {
    let launcher = folder.join("bin/launch");
    let programs = PROGRAMS.map(|name| folder.join(name));
    let is_checkout = disk::exists(&launcher) && !disk::exists(&programs[0]);
    let unusable = programs.iter().find(|program| !tree::is_program(program));
    if let Some(program) = unusable.filter(|_| !is_checkout) {
        let what = format!("{} is not a program, so no hook runs", program.display());
        return found.broken("program-broken", what, AGAIN);
    }
    let (program, said) = if is_checkout {
        let words = [&*launcher.to_string_lossy(), "--version"];
        // Without a binary the launcher exits silently and lets everything through.
        (launcher.display(), client::ask(Path::new("sh"), &words, here))
    } else {
        (programs[0].display(), client::ask(&programs[0], &["--version"], here))
    };
    match crew_version(&said.unwrap_or_default()) {
        Some(VERSION) => {}
        Some(version) => {
            let what = format!("the hooks run crew {version} ({program}), this is {VERSION}");
            found.broken("program-skew", what, AGAIN);
        }
        None => found.broken("program-broken", format!("{program} is not a working crew"), AGAIN),
    }
}

/// The client's settings files that can be read and apply here.
fn the_settings(here: &Path) -> Vec<ClientSettings> {
    let mut folders = vec![here.to_owned()];
    folders.extend(git::top(here).filter(|top| top != here));
    let mut found = Vec::new();
    for (path, managed) in settings_files(config_folder(env::path).as_deref(), &folders) {
        let text = disk::read_text(&path, TEXT_BYTES).ok().flatten();
        found.extend(text.and_then(|text| settings(path, &text, managed)));
    }
    found
}

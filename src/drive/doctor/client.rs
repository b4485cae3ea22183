//! What keeps the hooks of the client's sessions from running: the client itself, its settings, the
//! plugin it has, and the folder and the program behind that.

use std::path::{Path, PathBuf};

use minijinja::context;
use serde_json::Value;

use super::{Findings, TEXT_BYTES, VERSION};
use crate::drive::failure::short_error;
use crate::drive::plugin_files::{HOOKS, MANIFEST, PROGRAMS};
use engine::doctor::{ClientSettings, NAME, PLUGIN, PluginCheck, Version};
use readers::clients::claude::plugin::{PRODUCT, config_folder, settings_files};
use readers::clients::claude::plugin::{
    client_version, crew_version, manifest_version, marketplace_folder, parse_client_settings,
    parse_plugins,
};
use world::files::{disk, tree};
use world::{client, env, git};

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
pub(super) fn examine_client(
    here: &Path,
    named: Option<&Path>,
    other: Option<&str>,
    was_given: bool,
    found: &mut Findings,
) -> SeenClient {
    let answered = the_client(here, named, other, found);
    let program = answered.as_ref().ok().map(|(program, _)| program);
    let ask = |words: &[&str]| client::read_output(program?, words, here).ok();
    let all = ask(&["plugin", "list", "--json"]).and_then(|text| parse_plugins(&text).ok());
    let source = ask(&["plugin", "marketplace", "list", "--json"]);
    let folder = source.and_then(|text| marketplace_folder(&text).ok().flatten());
    let files = the_settings(here);
    let mut lacks_crew = false;
    if let Some(all) = &all {
        lacks_crew = !all.iter().any(is_crew) && !was_given;
        the_plugin(all, &files, was_given, found);
    }
    // A folder of this machine, or the client's own copy.
    let ours = all.iter().flatten().filter(|plugin| plugin.id == PLUGIN);
    let copy = ours.max_by_key(|plugin| plugin.enabled).and_then(|plugin| plugin.copy.clone());
    let folder = folder.or(copy);
    if let Some(folder) = &folder {
        the_folder(folder, here, found);
    }
    for ClientSettings { path, disables_hooks, managed_hooks_only, .. } in &files {
        if *disables_hooks {
            found.add("hooks-disabled", &context! { path });
        }
        if *managed_hooks_only {
            found.add("hooks-managed", &context! { path });
        }
    }
    let line = match &answered {
        Ok((program, version)) => format!("{} {version}, {}", PRODUCT.name, program.display()),
        Err(why) => (*why).to_owned(),
    };
    let version = answered.ok().map(|(_, version)| version);
    SeenClient { line, version, folder, lacks_crew }
}

/// The client's program and its version, if it answers; else a word for that.
fn the_client(
    here: &Path,
    named: Option<&Path>,
    other: Option<&str>,
    found: &mut Findings,
) -> Result<(PathBuf, Version), &'static str> {
    let Some(program) = client::find_program(named, PRODUCT.program) else {
        match other {
            Some(agent) => found.add("client-missing/other-agent", &context! { agent }),
            None => found.add("client-missing", &context! {}),
        }
        return Err("none");
    };
    let answer =
        client::read_output(&program, &["--version"], here).map_err(|error| short_error(&error));
    let version = answer.and_then(|text| {
        client_version(&text)
            .ok_or_else(|| format!("`{} --version` prints {text:?}", program.display()))
    });
    let version = version.map_err(|why| {
        found.add("client-silent", &context! { why });
        "does not answer"
    })?;
    let (said, oldest) = (version.to_string(), PRODUCT.oldest.to_string());
    let (newest, lacks) = (PRODUCT.newest_tried.to_string(), PRODUCT.older_lacks);
    if version < PRODUCT.oldest {
        found.add("client-too-old", &context! { version => said, oldest });
    } else if version < PRODUCT.newest_tried {
        found.add("client-older", &context! { version => said, newest, lacks });
    }
    Ok((program, version))
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
        found.add("plugin-shadowed", &context! { id, scope });
    }
    for error in ours.iter().flat_map(|plugin| &plugin.errors) {
        found.add("plugin-not-loaded", &context! { error });
    }
    if ours.iter().any(|plugin| plugin.enabled) {
        return;
    }
    if let Some(ClientSettings { path, .. }) =
        files.iter().rfind(|file| file.enables == Some(false))
    {
        found.add("plugin-disabled", &context! { path });
    } else if !ours.is_empty() {
        found.add("plugin-missing/here", &context! {});
    } else if !was_given {
        found.add("plugin-missing", &context! {});
    }
}

/// The folder of the plugin, and if it holds one of whatever version the program in it.
fn the_folder(folder: &Path, here: &Path, found: &mut Findings) {
    let text = |name: &str| disk::read_text(&folder.join(name), TEXT_BYTES).ok().flatten();
    let hooks = text(HOOKS).and_then(|text| serde_json::from_slice::<Value>(text.as_bytes()).ok());
    let has_hooks = hooks.is_some_and(|hooks| hooks.get("hooks").is_some_and(Value::is_object));
    let version = text(MANIFEST).as_deref().and_then(manifest_version);
    let (Some(version), true) = (version, has_hooks) else {
        return found.add("folder-broken", &context! { path => folder });
    };
    if version != VERSION {
        found.add("version-skew", &context! { path => folder, version });
    }
    the_program(folder, here, found);
}

/// The program that the plugin's hooks run, under each of its names, or the launcher of a checkout.
fn the_program(folder: &Path, here: &Path, found: &mut Findings) {
    let launcher = folder.join("bin/launch");
    let programs = PROGRAMS.map(|name| folder.join(name));
    let is_checkout = disk::exists(&launcher) && !disk::exists(&programs[0]);
    let unusable = programs.iter().find(|program| !tree::is_program(program));
    if let (Some(path), false) = (unusable, is_checkout) {
        return found.add("program-broken/no-program", &context! { path });
    }
    let (path, said) = if is_checkout {
        let words = [&*launcher.to_string_lossy(), "--version"];
        // Without a binary the launcher exits silently and lets everything through.
        (&launcher, client::read_output(Path::new("sh"), &words, here))
    } else {
        (&programs[0], client::read_output(&programs[0], &["--version"], here))
    };
    match crew_version(&said.unwrap_or_default()) {
        Some(VERSION) => {}
        Some(version) => found.add("program-skew", &context! { version, path }),
        None => found.add("program-broken", &context! { path }),
    }
}

/// The client's settings files that can be read and apply here.
fn the_settings(here: &Path) -> Vec<ClientSettings> {
    let mut folders = vec![here.to_owned()];
    folders.extend(git::find_top(here).filter(|top| top != here));
    let mut found = Vec::new();
    for (path, managed) in settings_files(config_folder(env::path).as_deref(), &folders) {
        let text = disk::read_text(&path, TEXT_BYTES).ok().flatten();
        found.extend(text.and_then(|text| parse_client_settings(path, &text, managed)));
    }
    found
}

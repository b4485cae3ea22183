//! Gathers everything the doctor judges, and changes nothing but the scratch folder. What cannot be
//! looked at is reported as such; one failed look does not stop the others.

pub mod cluster;
pub mod node;
mod own;
mod scratch;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::owner::{needs_hooks, owner_is_gone};
use crate::clients::claude::contents::{HOOKS, MANIFEST, PROGRAMS};
use crate::clients::claude::plugin::{
    MarketplaceSource, client_version, crew_version, manifest_version, marketplace, plugins,
    settings,
};
use crate::clients::claude::setup::{PLUGINS_DATA, PRODUCT, config_folder, settings_files};
use crate::clients::spelling::going_on;
use crate::engine::doctor::{
    ClientCheck, ClientSettings, DoctorFacts, Folder, HomeCheck as HomeFact, LoopFact, NAME,
    PLUGIN, PluginCheck, Program,
};
use crate::engine::record::LoopId;
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;
use crate::world::store::{self, Home, StoreError};
use crate::world::{client, env, git};

/// The most files of a loop's folder, or of a home, that are looked at.
const FILES_MAX: usize = 100_000;
/// The largest settings file, manifest or hooks file that is read.
const TEXT_BYTES: u64 = 4 << 20;

/// Examines this machine as seen from `here`.
pub fn examine(home: &Home, here: &Path, named: Option<&Path>) -> DoctorFacts {
    let (program, client) = the_client(here, named);
    let ask = |words: &[&str]| client::ask(program.as_deref()?, words, here).ok();
    let told = ask(&["plugin", "list", "--json"]).and_then(|text| plugins(&text).ok());
    let source = ask(&["plugin", "marketplace", "list", "--json"]);
    let source = source.and_then(|text| marketplace(&text).ok().flatten());
    let LoopFacts { ownerless: loops, in_sessions, unreadable } = the_loops(home);
    DoctorFacts {
        product: &PRODUCT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        folder: the_folder(source, told.as_deref()).map(|path| look_into(path, here)),
        client,
        plugins: told,
        settings: the_settings(here),
        own: own::settings(home, here),
        scratch: scratch::look(home, here),
        home: the_home(home),
        git: git::answers(here),
        crews: the_crews(),
        loops,
        in_sessions,
        unreadable,
    }
}

fn the_client(here: &Path, named: Option<&Path>) -> (Option<PathBuf>, ClientCheck) {
    let Some(program) = client::find(named, PRODUCT.program) else {
        return (None, ClientCheck::Absent);
    };
    let client = match client::ask(&program, &["--version"], here) {
        Err(error) => ClientCheck::Silent(own::first_line(&error)),
        Ok(text) => match client_version(&text) {
            Some(version) => ClientCheck::Present { program: program.clone(), version },
            None => {
                ClientCheck::Silent(format!("`{} --version` prints {text:?}", program.display()))
            }
        },
    };
    let answers = matches!(client, ClientCheck::Present { .. });
    (answers.then_some(program), client)
}

/// The folder the client reads the plugin from: a folder of this machine, or the client's own copy.
fn the_folder(
    source: Option<MarketplaceSource>,
    plugins: Option<&[PluginCheck]>,
) -> Option<PathBuf> {
    if let Some(MarketplaceSource::Folder(folder)) = source {
        return Some(folder);
    }
    let ours = plugins?.iter().filter(|plugin| plugin.id == PLUGIN);
    ours.max_by_key(|plugin| plugin.enabled)?.copy.clone()
}

fn look_into(path: PathBuf, here: &Path) -> Folder {
    let text = |name: &str| disk::read_text(&path.join(name), TEXT_BYTES).ok().flatten();
    let hooks = text(HOOKS).and_then(|text| serde_json::from_slice::<Value>(text.as_bytes()).ok());
    let (program, runs) = the_program(&path, here);
    Folder {
        version: text(MANIFEST).as_deref().and_then(manifest_version),
        hooks: hooks.is_some_and(|hooks| hooks.get("hooks").is_some_and(Value::is_object)),
        path,
        program,
        runs,
    }
}

/// The program the plugin's hooks run: the first that is not usable, else the binary behind them.
fn the_program(folder: &Path, here: &Path) -> (PathBuf, Program) {
    let launcher = folder.join("bin/launch");
    let [first, ..] = PROGRAMS.map(|name| folder.join(name));
    if disk::exists(&launcher) && !disk::exists(&first) {
        let words = [&*launcher.to_string_lossy(), "--version"];
        let said = client::ask(Path::new("sh"), &words, here).unwrap_or_default();
        // Without a binary the launcher exits silently and lets everything through.
        let runs = crew_version(&said).map(|version| Program::Version(version.to_owned()));
        return (launcher, runs.unwrap_or(Program::Absent));
    }
    for program in PROGRAMS.map(|name| folder.join(name)) {
        if tree::mode(&program).is_none() {
            return (program, Program::Absent);
        }
        if !tree::is_program(&program) {
            return (program, Program::NotExecutable);
        }
    }
    let said = client::ask(&first, &["--version"], here).unwrap_or_default();
    let version = crew_version(&said).map(|version| Program::Version(version.to_owned()));
    (first, version.unwrap_or(Program::Silent))
}

/// The client's settings files that exist and apply here.
fn the_settings(here: &Path) -> Vec<ClientSettings> {
    let mut folders = vec![here.to_owned()];
    folders.extend(git::top(here).filter(|top| top != here));
    let files = settings_files(config_folder(env::path).as_deref(), &folders);
    let read = |(path, managed): (PathBuf, bool)| match disk::read_text(&path, TEXT_BYTES) {
        Ok(text) => text.map(|text| settings(path, &text, managed)),
        Err(error) => Some(ClientSettings {
            path,
            broken: Some(error.to_string()),
            ..ClientSettings::default()
        }),
    };
    files.into_iter().filter_map(read).collect()
}

fn the_home(home: &Home) -> HomeFact {
    let root = home.root().to_owned();
    let mut settled = Vec::new();
    if let Some(data) = config_folder(env::path).map(|folder| folder.join(PLUGINS_DATA)) {
        let names = disk::names(&data, FILES_MAX);
        for name in names.iter().filter(|name| name.starts_with("crew-")) {
            let file = data.join(name).join("home");
            let said = disk::read_text(&file, TEXT_BYTES).ok().flatten();
            settled.extend(said.map(|line| (file, line.trim_end().into())));
        }
    }
    let unusable = unusable(&root);
    let mode = if unusable.is_none() { tree::mode(&root) } else { None };
    HomeFact { root, unusable, mode, settled }
}

/// Why a home cannot be used. A home that does not exist is made by the first start, if its folder
/// can be made.
fn unusable(root: &Path) -> Option<String> {
    if !disk::exists(root) {
        let above = root.ancestors().find(|folder| disk::exists(folder))?;
        let tried = disk::make_scratch_folder(above, env::random());
        let tried = tried.and_then(|scratch| disk::remove_scratch_folder(&scratch));
        return tried.err().map(|error| error.to_string());
    }
    let probe = root.join(format!(".doctor-{}", env::random()));
    let tried = disk::write(&probe, b"", Durability::Process).and_then(|()| disk::remove(&probe));
    tried.err().map(|error| error.to_string())
}

/// Every distinct program called `crew` on `PATH`, by the first of its names.
fn the_crews() -> Vec<PathBuf> {
    let mut seen = Vec::new();
    let mut crews = client::on_path(NAME);
    crews.retain(|crew| {
        let real = disk::real_path(crew).unwrap_or_else(|_| crew.clone());
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    crews
}

/// What is known of the loops of this home.
#[derive(Default)]
struct LoopFacts {
    ownerless: Vec<LoopFact>,
    in_sessions: Vec<(LoopId, PathBuf)>,
    unreadable: Vec<(LoopId, String)>,
}

fn the_loops(home: &Home) -> LoopFacts {
    let mut all = LoopFacts::default();
    for id in store::ids(home) {
        match store::load(home, &id) {
            // A start that was killed before its record was written.
            Err(StoreError::Absent(_)) => {}
            Err(error) => all.unreadable.push((id, error.to_string())),
            Ok(record) => {
                if needs_hooks(home, &record) {
                    all.in_sessions.push((record.id.clone(), record.place.checkout.clone()));
                }
                if owner_is_gone(home, &record) {
                    let going_on = going_on(&record);
                    let (id, checkout) = (record.id, record.place.checkout);
                    all.ownerless.push(LoopFact { id, checkout, going_on });
                }
            }
        }
    }
    all
}

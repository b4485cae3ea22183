//! Examines this machine, and changes nothing except the scratch folder. Each part reports its
//! findings, with what to do about them; if one part fails, the others still run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use minijinja::{Environment, Value, context};
use serde::Deserialize;
use serde_json::json;

use crate::drive::checks::check::missing_at_the_start;
use crate::drive::checks::scratch::ScratchTerms;
use crate::drive::checks::test_changes;
use crate::drive::end::prove;
use crate::drive::failure::short_error;
use crate::drive::find::{self, needs_hooks, owner_is_gone};
use crate::drive::installation::plugin_files::{HOOKS, MANIFEST, PROGRAMS};
use crate::drive::start::{agent, terms};
use crate::drive::tree::place;
use engine::doctor::{
    ClientSettings, Examination, Finding, NAME, PLUGIN, PluginCheck, Severity, Version, shell_word,
};
use engine::record::Loop;
use engine::test_changes::check_passed;
use engine::text::join_first_names;
use engine::text::templates;
use readers::agents;
use readers::clients::claude::plugin::{
    PLUGINS_DATA, PRODUCT, client_version, config_folder, crew_version, manifest_version,
    marketplace_folder, parse_client_settings, parse_plugins, settings_files,
};
use readers::clients::resume_command;
use readers::parse::settings::merge::merge_layers;
use readers::parse::settings::trust::list_trust_requests;
use readers::parse::settings::{ParsedSettings, SettingsOwner};
use world::files::disk::{self, Durability};
use world::files::tree;
use world::store::settings::{self, project_file, read_environment, user_file};
use world::store::{self, Home, StoreError};
use world::{client, env, git};

/// The maximum number of files of a home examined.
const FILES_MAX: usize = 100_000;
/// The largest settings file, manifest or hooks file that is read.
const TEXT_BYTES: u64 = 4 << 20;
/// Seconds that the checks may take, unless three times what they took before is longer.
const WITHIN_S: u64 = 60;
/// The maximum number of ignored paths that are named.
const LACKS_MAX: usize = 5;

/// Examines this machine as seen from `here`.
pub fn examine_machine(home: &Home, here: &Path, named: Option<&Path>) -> Examination {
    let mut found = Findings::default();
    let mut own = Findings::default();
    let other = read_settings(home, here, &mut own);
    let settled = settled_homes();
    let mut folders = settled.iter().filter_map(|(file, _)| file.parent());
    let was_given = folders.any(|data| data.ends_with(PRODUCT.given));
    let seen = examine_client(here, named, other.as_deref(), was_given, &mut found);
    found.extend(own.into_sorted());
    try_scratch_folder(home, here, &mut found);
    check_home(home, &settled, &mut found);
    if !git::can_run(here) {
        found.add("git-missing", &context! {});
    }
    check_path(&mut found);
    check_loops(home, seen.lacks_crew, &mut found);
    let root = home.root().display().to_string();
    let folder = seen.folder.map(|folder| folder.display().to_string());
    Examination {
        facts: json!({
            "client_version": seen.version.map(|version| version.to_string()),
            "plugin": folder,
            "home": root,
        }),
        rows: vec![
            ("client", seen.line),
            ("plugin", folder.unwrap_or_else(|| "none".to_owned())),
            ("loops", root),
        ],
        findings: found.into_sorted(),
    }
}

/// The files that pin the home for hooks, one for each of crew's plugins, with those homes.
fn settled_homes() -> Vec<(PathBuf, PathBuf)> {
    let mut settled = Vec::new();
    if let Some(data) = config_folder(env::path).map(|folder| folder.join(PLUGINS_DATA)) {
        for name in disk::names(&data, FILES_MAX).iter().filter(|name| name.starts_with("crew-")) {
            let file = data.join(name).join("home");
            let said = disk::read_text(&file, TEXT_BYTES).ok().flatten();
            settled.extend(said.map(|line| (file, line.trim_end().into())));
        }
    }
    settled
}

fn check_home(home: &Home, settled: &[(PathBuf, PathBuf)], found: &mut Findings) {
    let root = home.root();
    if let Err(why) = try_home(root) {
        found.add("home-unusable", &context! { root, why => why.to_string() });
    } else if let Some(mode) = tree::read_mode(root).filter(|mode| mode & 0o077 != 0) {
        found.add("home-open", &context! { root, mode => format!("{mode:04o}") });
    }
    for (file, theirs) in settled.iter().filter(|(_, theirs)| theirs != root) {
        found.add("home-differs", &context! { theirs, file, root });
    }
}

/// Whether a home can be used. A missing one is created by the first start, if its folder can be
/// created.
fn try_home(root: &Path) -> std::io::Result<()> {
    if disk::exists(root) {
        let probe = root.join(format!(".doctor-{}", env::random_number()));
        disk::write(&probe, b"", Durability::Process)?;
        return disk::remove(&probe);
    }
    let Some(above) = root.ancestors().find(|folder| disk::exists(folder)) else { return Ok(()) };
    tree::remove_scratch_folder(&disk::make_scratch_folder(above, env::random_number())?)
}

/// Searches for more than one program called `crew` on `PATH`.
fn check_path(found: &mut Findings) {
    let mut seen = Vec::new();
    let mut crews = client::on_path(NAME);
    crews.retain(|crew| {
        let real = disk::real_path(crew).unwrap_or_else(|_| crew.clone());
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    if let [first, others @ ..] = &*crews
        && !others.is_empty()
    {
        found.add("crew-twice", &context! { first, others });
    }
}

/// Searches for records that cannot be read, loops without an owner, and loops of live sessions
/// whose client has lost crew's plugin.
fn check_loops(home: &Home, lacks_crew: bool, found: &mut Findings) {
    for id in store::list_ids(home) {
        let record = match store::load(home, &id) {
            // A start that was killed before its record was written.
            Err(StoreError::Absent(_)) => continue,
            Err(why) => {
                let folder = home.loop_folder(&id);
                let (id, why) = (id.as_str(), why.to_string());
                found.add("record-unreadable", &context! { id, why, folder });
                continue;
            }
            Ok(record) => record,
        };
        let (id, checkout) = (id.as_str(), &record.place.checkout);
        if owner_is_gone(home, &record) {
            let resume = resume_command(&record);
            found.add("loop-ownerless", &context! { id, checkout, resume });
        }
        if lacks_crew && needs_hooks(home, &record) {
            found.add("loop-unjudged", &context! { id, checkout });
        }
    }
}

// What keeps loops from starting in a folder: crew's own settings, read one file at a time so that
// one fault does not hide another, and the scratch folder, where the checks of the newest loop are
// tried on the tree on which they passed.

/// Reads the settings in force in `here`. Returns the agent they name for `crew run`, if it is not
/// the built-in one and its program exists.
fn read_settings(home: &Home, here: &Path, found: &mut Findings) -> Option<String> {
    let place = place::find_place(here, None);
    let checkout = place.as_ref().map_or(here, |place| &place.checkout);
    let project = terms::read_file(Some(&project_file(checkout)), SettingsOwner::Projects);
    let user = terms::read_file(user_file().as_deref(), SettingsOwner::Users);
    let [project, user] = [project, user].map(|read| {
        read.unwrap_or_else(|faults| found.add_unreadable(&faults, "correct that line"))
    });
    if let Err(faults) = read_environment() {
        let () = found.add_unreadable(&faults, "correct or unset the variable");
    }
    let needs = list_trust_requests(&project.layer, &user.layer);
    let untrusted = settings::find_untrusted(home, checkout, needs).unwrap_or_default();
    if !untrusted.is_empty() {
        let untrusted: Vec<String> = untrusted.iter().map(ToString::to_string).collect();
        found.add("settings-untrusted", &context! { untrusted });
    }
    for key in [user, project].iter().flat_map(|file: &ParsedSettings| &file.warnings) {
        found.add("settings-unknown-key", &context! { key });
    }
    let in_force =
        merge_layers(&terms::load_settings(home, checkout, true).ok()?.layers, None).ok()?;
    let other = match agent::resolve_agent(&in_force, None) {
        Ok(agent) => {
            let program = agent.command.first().map_or("", String::as_str);
            let is_built_in = (&*agent.name, program) == (agents::DEFAULT, agents::DEFAULT);
            let mut others = agent::resolve_fallbacks(&in_force, &agent).unwrap_or_default();
            let is_there = agent::require_program(&agent, here).is_ok();
            let name = agent.name.clone();
            if !is_built_in {
                others.insert(0, agent);
            }
            for error in others.iter().filter_map(|agent| agent::require_program(agent, here).err())
            {
                found.add("agent-missing", &context! { error => short_error(&error) });
            }
            (is_there && !is_built_in).then_some(name)
        }
        Err(error) => {
            let (fault, hint) = (format!("{error:#}"), "correct that line");
            found.add("settings-unreadable", &context! { fault, hint });
            None
        }
    };
    let checks = in_force.checks();
    if let Some(error) = place.ok().and_then(|place| missing_at_the_start(&place, &checks).err()) {
        found.add("check-missing", &context! { error => short_error(&error) });
    }
    other
}

/// Tries the checks of the newest loop here in the scratch folder, if they passed when it ended.
fn try_scratch_folder(home: &Home, here: &Path, found: &mut Findings) {
    let Ok(Some(mut record)) = find::of_working_tree(home, here) else { return };
    let Some(evidence) = record.state.seen().evidence() else { return };
    if record.is_live() || evidence.checks.is_empty() || evidence.failing().next().is_some() {
        return;
    }
    record.environment = None;
    record.contract.trial.timeout_s = WITHIN_S;
    let Some(last) = prove::last_snapshot(home, &record) else { return };
    let terms = prove::proof_terms(home, &record, Some(&last), &|| false);
    let Ok(left) = test_changes::find_baseline(home, &record, Some(&last)) else { return };
    let (why, lacks) = match try_checks(terms, &record, &left.commit) {
        Ok(None) => return,
        Ok(Some(failed)) => failed,
        Err(why) => (why, Vec::new()),
    };
    found.add("scratch-folder", &context! { why, lacks => join_first_names(&lacks, LACKS_MAX) });
}

/// The first check that fails there, and the ignored paths that the folder lacks.
fn try_checks(
    terms: ScratchTerms<'_>,
    record: &Loop,
    tree: &str,
) -> Result<Option<(String, Vec<String>)>, String> {
    let Ok(mut scratch) = terms.open_folder() else { return Ok(None) };
    // A `no-worse` check may fail there as it does in the working tree.
    let checks = record.contract.checks.iter().filter(|check| !check.no_worse);
    let results = scratch.run_controls(&checks.collect::<Vec<_>>(), tree)?;
    let Some(failed) = results.iter().find(|result| !check_passed(result)) else { return Ok(None) };
    let why = format!("`{}` {}", failed.run, failed.what_happened());
    Ok(Some((why, scratch.left_out()?)))
}

// What the doctor finds. The name, the severity and the words of each finding are in
// `findings.toml`; whoever looks adds a finding by its name, with the values that its words use.

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Deserialize)]
struct FindingWords {
    severity: Severity,
    what: String,
    fix: String,
}

static WORDS: LazyLock<BTreeMap<String, FindingWords>> =
    LazyLock::new(|| toml::from_str(include_str!("findings.toml")).unwrap_or_default());

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = templates::new_environment();
    environment.add_global("client", PRODUCT.name);
    environment.add_global("program", PRODUCT.program);
    environment.add_global("this", VERSION);
    environment.add_filter("shell_word", |word: &str| shell_word(word));
    environment
});

/// The findings so far.
#[derive(Debug, Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds the finding of this name.
    pub fn add(&mut self, name: &str, values: &Value) {
        let Some(FindingWords { severity, what, fix }) = WORDS.get(name) else { return };
        let [what, fix] = [what, fix].map(|text| {
            let filled = TEMPLATES.render_str(text, values);
            filled.unwrap_or_else(|error| format!("{error:#}"))
        });
        let code = name.split('/').next().unwrap_or(name).to_owned();
        self.0.push(Finding { code, severity: *severity, what, fix });
    }

    /// Adds the faults of settings, one a line, and returns empty settings in their place.
    fn add_unreadable<T: Default>(&mut self, faults: &str, hint: &str) -> T {
        for fault in faults.lines() {
            self.add("settings-unreadable", &context! { fault, hint });
        }
        T::default()
    }

    /// Adds findings from elsewhere.
    pub fn extend(&mut self, found: impl IntoIterator<Item = Finding>) {
        self.0.extend(found);
    }

    /// All findings, the worst first.
    pub fn into_sorted(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|finding| finding.severity);
        self.0
    }
}

// What keeps the hooks of the client's sessions from running: the client itself, its settings, the
// plugin it has, and the folder and the program behind that.

/// What is known about the client.
struct SeenClient {
    /// Its name, version and program, or why there is none.
    line: String,
    version: Option<Version>,
    /// The folder it reads crew's plugin from.
    folder: Option<PathBuf>,
    /// Whether it reports its plugins, and no crew is among them.
    lacks_crew: bool,
}

/// Examines the client. `other`: the agent that `crew run` works with if it is not the client's;
/// `was_given`: the plugin was passed to a session, and was never installed.
fn examine_client(
    here: &Path,
    named: Option<&Path>,
    other: Option<&str>,
    was_given: bool,
    found: &mut Findings,
) -> SeenClient {
    let answered = check_client(here, named, other, found);
    let program = answered.as_ref().ok().map(|(program, _)| program);
    let ask = |words: &[&str]| client::read_output(program?, words, here).ok();
    let all = ask(&["plugin", "list", "--json"]).and_then(|text| parse_plugins(&text).ok());
    let source = ask(&["plugin", "marketplace", "list", "--json"]);
    let folder = source.and_then(|text| marketplace_folder(&text).ok().flatten());
    let files = read_client_settings(here);
    let mut lacks_crew = false;
    if let Some(all) = &all {
        lacks_crew = !all.iter().any(is_crew) && !was_given;
        check_plugin(all, &files, was_given, found);
    }
    // A folder of this machine, or the client's own copy.
    let ours = all.iter().flatten().filter(|plugin| plugin.id == PLUGIN);
    let copy = ours.max_by_key(|plugin| plugin.enabled).and_then(|plugin| plugin.copy.clone());
    let folder = folder.or(copy);
    if let Some(folder) = &folder {
        check_plugin_folder(folder, here, found);
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

/// The client's program and its version, if it answers; otherwise a word for the failure.
fn check_client(
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

fn check_plugin(
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

/// The folder of the plugin and, if it contains a plugin of any version, its program.
fn check_plugin_folder(folder: &Path, here: &Path, found: &mut Findings) {
    let text = |name: &str| disk::read_text(&folder.join(name), TEXT_BYTES).ok().flatten();
    let hooks = text(HOOKS)
        .and_then(|text| serde_json::from_slice::<serde_json::Value>(text.as_bytes()).ok());
    let has_hooks =
        hooks.is_some_and(|hooks| hooks.get("hooks").is_some_and(serde_json::Value::is_object));
    let version = text(MANIFEST).as_deref().and_then(manifest_version);
    let (Some(version), true) = (version, has_hooks) else {
        return found.add("folder-broken", &context! { path => folder });
    };
    if version != VERSION {
        found.add("version-skew", &context! { path => folder, version });
    }
    check_program(folder, here, found);
}

/// The program that the plugin's hooks run, under each of its names, or the launcher of a checkout.
fn check_program(folder: &Path, here: &Path, found: &mut Findings) {
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

/// The readable settings files of the client that apply here.
fn read_client_settings(here: &Path) -> Vec<ClientSettings> {
    let mut folders = vec![here.to_owned()];
    folders.extend(git::find_top(here).filter(|top| top != here));
    let mut found = Vec::new();
    for (path, managed) in settings_files(config_folder(env::path).as_deref(), &folders) {
        let text = disk::read_text(&path, TEXT_BYTES).ok().flatten();
        found.extend(text.and_then(|text| parse_client_settings(path, &text, managed)));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_finding_has_a_message_and_every_message_a_finding() {
        let sources = [include_str!("doctor.rs"), include_str!("slurm.rs")];
        let sources =
            sources.map(|text| text.split("#[cfg(test)]").next().unwrap_or_default()).concat();
        let is_name = |word: &&str| {
            let is_of_names = |c: char| c.is_ascii_lowercase() || "-/".contains(c);
            word.chars().all(is_of_names) && word.trim_matches('-').contains('-')
        };
        let added = sources.split('"').filter(is_name).map(str::to_owned);
        let added: BTreeSet<String> = added.filter(|word| !word.starts_with('-')).collect();
        let known: BTreeSet<String> = WORDS.keys().cloned().collect();
        assert_eq!(added, known);
    }
}

//! Examines this machine, and changes nothing but the scratch folder. Each thing that is looked at
//! reports its findings, with what to do about them; one failed look does not stop the others.

mod client;
pub mod cluster;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use minijinja::{Environment, Value, context};
use serde::Deserialize;
use serde_json::json;

use super::boundary::check::missing_at_the_start;
use super::find::{self, needs_hooks, owner_is_gone};
use super::scratch::ScratchTerms;
use super::start::{agent, place, terms};
use super::{prove, test_changes};
use crate::drive::failure::short_error;
use engine::doctor::{Examination, Finding, NAME, Severity, shell_word};
use engine::record::Loop;
use engine::templates;
use engine::test_changes::trial::check_passed;
use engine::text::join_first_names;
use readers::agents;
use readers::clients::claude::plugin::{PLUGINS_DATA, PRODUCT, config_folder};
use readers::clients::resume_command;
use readers::parse::settings::merge::merge_layers;
use readers::parse::settings::trust::list_trust_requests;
use readers::parse::settings::{ParsedSettings, SettingsOwner};
use world::files::disk::{self, Durability};
use world::files::tree;
use world::store::settings::{self, project_file, read_environment, read_settings_file, user_file};
use world::store::{self, Home, StoreError};
use world::{client as programs, env, git};

/// The most files of a home that are looked at.
const FILES_MAX: usize = 100_000;
/// The largest settings file, manifest or hooks file that is read.
const TEXT_BYTES: u64 = 4 << 20;
/// Seconds that the checks may take, unless three times what they took before is longer.
const WITHIN_S: u64 = 60;
/// The most ignored paths that are named.
const LACKS_MAX: usize = 5;

/// Examines this machine as seen from `here`.
pub fn examine_machine(home: &Home, here: &Path, named: Option<&Path>) -> Examination {
    let mut found = Findings::default();
    let mut own = Findings::default();
    let other = read_settings(home, here, &mut own);
    let settled = settled_homes();
    let is_given = |file: &Path| file.parent().is_some_and(|data| data.ends_with(PRODUCT.given));
    let was_given = settled.iter().any(|(file, _)| is_given(file));
    let seen = client::examine_client(here, named, other.as_deref(), was_given, &mut found);
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

/// The files that pin the home for hooks, one for each plugin of crew's, and those homes.
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

/// Whether a home can be used. One that does not exist is made by the first start, if its folder
/// can be made.
fn try_home(root: &Path) -> std::io::Result<()> {
    if disk::exists(root) {
        let probe = root.join(format!(".doctor-{}", env::random_number()));
        disk::write(&probe, b"", Durability::Process)?;
        return disk::remove(&probe);
    }
    let Some(above) = root.ancestors().find(|folder| disk::exists(folder)) else { return Ok(()) };
    tree::remove_scratch_folder(&disk::make_scratch_folder(above, env::random_number())?)
}

/// Looks for more than one program called `crew` on `PATH`.
fn check_path(found: &mut Findings) {
    let mut seen = Vec::new();
    let mut crews = programs::on_path(NAME);
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

/// Looks for records that cannot be read, loops without an owner, and loops of live sessions whose
/// client has lost crew's plugin.
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
    let mut unreadable = |faults: &str, cure: &str| {
        for fault in faults.lines() {
            found.add("settings-unreadable", &context! { fault, cure });
        }
    };
    let mut file = |path: &Path, whose| {
        let read = read_settings_file(path, whose, &agents::output_formats());
        read.unwrap_or_else(|faults| {
            unreadable(&faults, "correct that line");
            None
        })
    };
    let project = file(&project_file(checkout), SettingsOwner::Projects).unwrap_or_default();
    let user = user_file().and_then(|path| file(&path, SettingsOwner::Users)).unwrap_or_default();
    if let Err(faults) = read_environment() {
        unreadable(&faults, "correct or unset the variable");
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
            let is_there = agent::has_program(&agent, here).is_ok();
            let name = agent.name.clone();
            if !is_built_in {
                others.insert(0, agent);
            }
            for error in others.iter().filter_map(|agent| agent::has_program(agent, here).err()) {
                found.add("agent-missing", &context! { error => short_error(&error) });
            }
            (is_there && !is_built_in).then_some(name)
        }
        Err(error) => {
            let (fault, cure) = (format!("{error:#}"), "correct that line");
            found.add("settings-unreadable", &context! { fault, cure });
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
    let Some(evidence) = &record.state.evidence else { return };
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

/// The first check that fails there, and what git ignores here and the folder does not have.
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

    /// Adds those that others found.
    pub fn extend(&mut self, found: impl IntoIterator<Item = Finding>) {
        self.0.extend(found);
    }

    /// All of them, the worst first.
    pub fn into_sorted(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|finding| finding.severity);
        self.0
    }
}

#[cfg(test)]
mod tests;

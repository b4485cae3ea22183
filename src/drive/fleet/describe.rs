//! Reads a folder of tasks and makes it a fleet: the terms, a contract for each task, and what a
//! person has to trust first. A fault in any file, or a remote that cannot be used, starts nothing.
//! It writes nothing.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};

use super::executors::LOCAL;
use super::join::keep_its_way;
use crate::drive::boundary::check::missing_at_the_start;
use crate::drive::error_text::error_text;
use crate::drive::start::establish::Prepared;
use crate::drive::start::run::{first_prompt, prepare_at};
use crate::drive::start::{place, terms};
use crate::engine::fleet::{
    Fleet, FleetTask, FleetTerms, INCLUDE, LandingMode, Lease, Remote, TaskId, TypedTerms, manifest,
};
use crate::engine::git::{GitFault, GitSetting, GitTrouble};
use crate::engine::record::{
    Check, Contract, Dialect, Fragment, GitSteps, Place, Recipe, Role, Run,
};
use crate::engine::text::{count, distinct, named};
use crate::engine::usage::Money;
use crate::parse::arguments::{FleetRunArgs, UsageError};
use crate::parse::fleet as tasks;
use crate::parse::fleet::{FLEET_FILE, MAX_FLEET_FILE_BYTES};
use crate::parse::settings::merge::ValueOrigin;
use crate::parse::settings::trust::TrustRequest;
use crate::world::client::on_path;
use crate::world::clock;
use crate::world::files::disk;
use crate::world::git::include::INCLUDE_BYTES;
use crate::world::git::refs::Refs;
use crate::world::git::{self, steps};
use crate::world::store::{Home, fleets, hash, trust};

/// The most names in a folder of tasks.
const NAMES_MAX: usize = 20_000;
/// The most tasks that a note names.
const NAMED_MAX: usize = 3;

/// A fleet as its folder describes it; nothing is written yet.
#[derive(Debug)]
pub struct Described {
    pub fleet: Fleet,
    /// In the order in which they start, as if nobody had worked on one.
    pub tasks: Vec<Lease>,
    /// Files of the folder that are no tasks.
    pub left_out: Vec<String>,
    /// What the user should know: one sentence each.
    pub notes: Vec<String>,
    /// What a person has to trust and nobody has trusted yet.
    pub untrusted: Vec<TrustRequest>,
}

/// Reads a fleet's folder. A relative one starts at `here`, or at the root of the repository there,
/// as every command that crew prints names it.
pub fn describe(home: &Home, arguments: &FleetRunArgs, here: &Path) -> Result<Described> {
    let folder = folder_of(here, &arguments.folder)?;
    let top = git::top(&folder).context(
        "a fleet needs a git repository, and its folder is in none\nhint: git init, and a first commit",
    )?;
    let (files, left_out) = files(&folder)?;
    let own = disk::read(&folder.join(FLEET_FILE), MAX_FLEET_FILE_BYTES)?;
    let read = tasks::folder(files, own.as_deref(), hash);
    let (terms, read) = read.map_err(|faults| refusal(&folder, &faults))?;
    if read.is_empty() {
        bail!(
            "there is no task in {}\nhint: write one as a Markdown file: {}",
            folder.display(),
            arguments.folder.join("NAME.md").display()
        );
    }
    let mut fleet = fleet(&top, &folder, &terms, arguments)?;
    let mut notes = Vec::new();
    let planted = keep_its_way(home, &mut fleet, &terms, arguments, &mut notes)?;
    landable(&fleet)?;
    let place = place::place(&top, None)?;
    let known = terms::look(home, &place.checkout, true)?;
    let mut described = Vec::new();
    let mut faults: Vec<(String, Vec<String>)> = Vec::new();
    match land_checks(&fleet, &place) {
        Ok(told) => notes.extend(told),
        Err(error) => faults.push((in_a_line(&error), vec![FLEET_FILE.to_owned()])),
    }
    for task in read {
        let prepared = tasks::run_args(&task).map_err(Into::into).and_then(|mut typed| {
            // One word would be the name of a procedure.
            typed.start.task = vec![format!("{}\n", task.prompt)];
            let known = known.clone();
            contract(home, &fleet, prepare_at(home, typed, &top, place.clone(), known)?)
        });
        match prepared {
            Ok((contract, told)) => {
                notes = distinct(notes.into_iter().chain(told));
                described.push(Lease::new(&fleet, task, contract, fleet.started_at));
            }
            Err(error) => {
                let (file, what) = (format!("{}.md", task.id), in_a_line(&error));
                match faults.iter_mut().find(|(known, _)| *known == what) {
                    Some((_, files)) => files.push(file),
                    None => faults.push((what, vec![file])),
                }
            }
        }
    }
    if !faults.is_empty() {
        let line = |(what, files): &(String, Vec<String>)| format!("{}: {what}", files.join(", "));
        return Err(refusal(&folder, &faults.iter().map(line).collect::<Vec<_>>()));
    }
    notes.extend(reach(home, &fleet)?.into_iter().chain(unmeasured(&fleet, &described)));
    let asked = needs(&fleet, &terms, &described, &planted);
    let untrusted = trust::untrusted(home, &fleet.repository, asked)?;
    Ok(Described { fleet, tasks: described, left_out, notes, untrusted })
}

/// The contract of a task with what the fleet decides itself, and what the user should know of it.
fn contract(home: &Home, fleet: &Fleet, prepared: Prepared) -> Result<(Contract, Vec<String>)> {
    first_prompt(home, &prepared)?;
    let Prepared { mut contract, notes, .. } = prepared;
    if fleet.landing != LandingMode::No && contract.checks.iter().any(|check| check.no_worse) {
        bail!(
            "no-worse cannot be judged on main as it will be\nhint: use verify, or leave --land out"
        );
    }
    if let Some(run) = &mut contract.run {
        run.git = GitSteps { commit: true, ..GitSteps::default() };
        freeze(&mut run.recipe)?;
    }
    Ok((contract, notes))
}

/// The note for the tasks whose agents never report what they use, where the fleet limits that.
fn unmeasured(fleet: &Fleet, tasks: &[Lease]) -> Option<String> {
    let is_silent = |run: &Run| run.agent.dialect == Dialect::TEXT;
    let silent = tasks.iter().filter(|task| task.contract.run.as_ref().is_some_and(is_silent));
    let names: Vec<String> = silent.map(|task| task.id().to_string()).collect();
    (fleet.max_cost_micros > 0 && !names.is_empty()).then(|| {
        format!(
            "max-cost cannot count what these use: {}. Their agent does not report it, so each has \
             one iteration, and is blocked if it is not done then",
            named(&names, NAMED_MAX)
        )
    })
}

/// Refuses a landing's check whose program is missing. Another engine's jobs land elsewhere.
fn land_checks(fleet: &Fleet, place: &Place) -> Result<Option<String>> {
    if fleet.landing != LandingMode::Main || !fleet.is_local() {
        return Ok(None);
    }
    missing_at_the_start(place, &fleet.land_checks).context("[land] check")
}

/// An error with its way out, as a row of a list.
fn in_a_line(error: &Error) -> String {
    let told = error_text(error);
    let in_a_line = |(what, way_out)| format!("{what}; {}", tasks::as_keys(way_out));
    told.split_once("\nhint: ").map_or_else(|| told.clone(), in_a_line)
}

/// Refuses a landing that could not keep the tasks themselves from being changed.
fn landable(fleet: &Fleet) -> Result<()> {
    if fleet.landing != LandingMode::No && fleet.folder.is_empty() {
        bail!(
            "tasks at the root of the repository cannot be kept from landing changes of themselves\n\
             hint: put them in a folder of their own"
        );
    }
    Ok(())
}

/// Takes the text of every file that a prompt names: an agent could change the file, and another
/// machine has none. A template stays a file, for what it reads differs from prompt to prompt.
fn freeze(recipe: &mut Recipe) -> Result<()> {
    for fragment in recipe.0.values_mut().flatten() {
        let Fragment::File(path) = &*fragment else { continue };
        if path.extension().is_some_and(|it| it == "j2") {
            continue;
        }
        let text = disk::read_text(path, MAX_FLEET_FILE_BYTES)?;
        *fragment = Fragment::Text(text.unwrap_or_default());
    }
    Ok(())
}

fn folder_of(here: &Path, named: &Path) -> Result<PathBuf> {
    let below = here.join(named);
    let from_the_root = || Some(git::top(here)?.join(named)).filter(|it| disk::exists(it));
    let is_found = disk::exists(&below);
    let folder = if is_found { below } else { from_the_root().unwrap_or(below) };
    if disk::is_file(&folder) {
        bail!("{} is a file\nhint: name the folder of the tasks", folder.display());
    }
    Ok(disk::real_path(&folder)?)
}

/// The names and bytes of files.
type TaskTexts = Vec<(String, Vec<u8>)>;

/// The tasks' files with their bytes, and the names of the other files.
fn files(folder: &Path) -> Result<(TaskTexts, Vec<String>)> {
    let mut names = disk::list(folder, NAMES_MAX)?;
    names.sort();
    let (named, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|it| tasks::is_task(it));
    let mut files = Vec::new();
    for name in named {
        let bytes = disk::read(&folder.join(&name), MAX_FLEET_FILE_BYTES)?.unwrap_or_default();
        files.push((name, bytes));
    }
    let is_told = |name: &String| name != FLEET_FILE && !name.starts_with('.');
    Ok((files, others.into_iter().filter(is_told).collect()))
}

fn refusal(folder: &Path, faults: &[String]) -> Error {
    let lines = faults.iter().map(|fault| format!("\n  {fault}"));
    let lines: String = lines.collect();
    UsageError::new(
        format!("the fleet in {} cannot start:{lines}", folder.display()),
        "fix the files; nothing was started",
    )
    .into()
}

/// The terms of the fleet: what was typed before what its file says.
fn fleet(top: &Path, folder: &Path, terms: &FleetTerms, arguments: &FleetRunArgs) -> Result<Fleet> {
    let below = folder.strip_prefix(top).unwrap_or(folder).display().to_string();
    let name = terms.name.clone().unwrap_or_else(|| usual_name(top, folder));
    if let Err(why) = name.parse::<TaskId>() {
        bail!(
            "the fleet's name `{name}` cannot be used: {why}\nhint: name = \"NAME\" in {FLEET_FILE}"
        );
    }
    let (branch, head) = git::head(top);
    let head = head.context("there is no commit here yet\nhint: git commit the first one")?;
    let base = terms.base.clone().or(branch).unwrap_or(head);
    if !git::is_a_commit(top, &base) {
        let named =
            if terms.base.is_some() { format!("base in {FLEET_FILE}: ") } else { String::new() };
        bail!(
            "{named}there is no branch {base} here to start from\nhint: git branch --all lists them"
        );
    }
    let check = |run: &String| Check::new(run.as_str(), Role::Verify);
    Ok(Fleet {
        schema: manifest::SCHEMA,
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        name,
        repository: top.to_owned(),
        folder: below,
        base,
        slots: arguments.slots.or(terms.slots).unwrap_or(0),
        max_cost_micros: arguments.max_cost_micros.or(terms.max_cost_micros).unwrap_or(0),
        typed: TypedTerms { slots: arguments.slots, max_cost_micros: arguments.max_cost_micros },
        setup: terms.setup.clone(),
        include: disk::read_text(&top.join(INCLUDE), INCLUDE_BYTES)?,
        engine: arguments.on.clone().unwrap_or_else(|| LOCAL.to_owned()),
        remote: remote(top, arguments)?,
        landing: match arguments.land.as_deref() {
            Some("pr") => LandingMode::Pr,
            Some(_) => LandingMode::Main,
            None => LandingMode::No,
        },
        land_checks: terms.land_check.iter().map(check).collect(),
        started_at: clock::now().wall,
        trusted: steps::trusted(top),
        ..Fleet::default()
    })
}

/// The folder's name or, where that says nothing, the repository's, in whichever of its working
/// trees.
fn usual_name(top: &Path, folder: &Path) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let own = name(folder);
    if !["tasks", "fleet"].contains(&own.as_str()) {
        return own;
    }
    // A bare repository is no working tree.
    let main = git::head::roots(top).into_iter().next().filter(|it| git::top(it).is_some());
    name(main.as_deref().unwrap_or(top))
}

/// Everything in the folder that names a program or widens a limit, and the words of each task.
fn needs(
    fleet: &Fleet,
    terms: &FleetTerms,
    tasks: &[Lease],
    planted: &[GitSetting],
) -> Vec<TrustRequest> {
    let file = Path::new(&fleet.folder).join(FLEET_FILE);
    // A check that is taken away or a limit that is raised has to be seen, too.
    let FleetTerms { base, slots, max_cost_micros, land_check, .. } = terms;
    let all = |number: Option<u32>| number.map_or("usual".to_owned(), |it| it.to_string());
    let cost = max_cost_micros.map(|micros| Money::from_micros(micros).to_string());
    let whole = format!(
        "slots {}, base {}, max-cost {}, land checks {}",
        all(*slots),
        base.as_deref().unwrap_or("usual"),
        cost.as_deref().unwrap_or("none"),
        land_check.len()
    );
    let terms = std::iter::once(format!("terms: {whole}"));
    let planted = planted.iter().map(|GitSetting { name, value }| {
        let which = value.get(..8).unwrap_or(value);
        format!("git's setting {name} ({which}) changed since the fleet was started")
    });
    let setup = fleet.setup.iter().map(|run| format!("setup: {run}"));
    let checks = fleet.land_checks.iter().map(|check| format!("land check: {}", check.run));
    let pushes = fleet.remote.iter().map(|remote| {
        let Remote { name, url, .. } = remote;
        let main = match fleet.landing {
            LandingMode::Main => format!(", and {}", fleet.base),
            LandingMode::No | LandingMode::Pr => String::new(),
        };
        let (branches, leases) = (fleet.branch_of("*"), fleet.lease("*"));
        format!("pushes to {name} ({url}): branches {branches}, {leases}{main}")
    });
    let include = fleet.include.iter().map(|text| format!("{INCLUDE}: {text}"));
    let of_tasks = tasks.iter().map(|task| need(fleet, task));
    terms
        .chain(planted)
        .chain(setup)
        .chain(checks)
        .chain(pushes)
        .chain(include)
        .map(|what| trust_request(fleet, file.clone(), &what))
        .chain(of_tasks)
        .collect()
}

/// What a person has to trust of a task: its options, word for word, and its prompt.
fn need(fleet: &Fleet, lease: &Lease) -> TrustRequest {
    let FleetTask { id, revision, words, .. } = &lease.task;
    let mut words = shell_words::join(words);
    if lease.task.words.iter().any(|word| word == "--verify=auto") {
        let found: Vec<&str> =
            lease.contract.checks.iter().map(|check| check.run.as_str()).collect();
        words = format!("{words} (auto: {})", found.join("; "));
    }
    let path = Path::new(&fleet.folder).join(format!("{id}.md"));
    trust_request(fleet, path, &format!("task {id}, fingerprint {revision}: {words}"))
}

/// What a person has to trust because of this file.
fn trust_request(fleet: &Fleet, path: PathBuf, what: &str) -> TrustRequest {
    let text = format!("[fleet {}] {what}", fleet.name);
    TrustRequest { text, origin: ValueOrigin::File { path, line: 1 } }
}

/// Returns what the user should know: commits that the remote does not have.
///
/// # Errors
/// If the remote has no such branch or does not answer, if requests cannot be opened from here, or
/// if not all commits are here or would be there.
pub fn reach(home: &Home, fleet: &Fleet) -> Result<Option<String>> {
    let Fleet { repository, base, remote, landing, .. } = fleet;
    let Some(remote) = remote else { return Ok(None) };
    let Remote { name, url, .. } = remote;
    // Another engine's jobs run it on machines of their own.
    if *landing == LandingMode::Pr && fleet.is_local() && on_path("gh").is_empty() {
        bail!(
            "--land pr opens pull requests with gh, which is not on PATH\n\
             hint: install the GitHub CLI, and log in with gh auth login"
        );
    }
    if git::is_shallow(repository) {
        bail!(
            "this clone is shallow, and a fleet that pushes needs all of it\nhint: git fetch --unshallow"
        );
    }
    let branch = format!("refs/heads/{base}");
    // An agent may have written into the repository since the fleet was started.
    let hub = home.fleet(&fleet.name).join("hub.git");
    let folder = if disk::exists(&hub) { &hub } else { repository };
    let refs = Refs { folder, remote: url, stop: &|| false, patience: None };
    let terms = fleet.lease("_fleet");
    let there = refs.list(&[&branch, &terms]);
    let there = there.map_err(|fault| unreached(home, fleet, name, fault))?;
    let has_terms = there.iter().any(|it| it.name == terms);
    if let Some(Fleet { remote: Some(before), .. }) =
        fleets::manifest(home, &fleet.name)?.map(|kept| kept.value)
        && before.url != *url
        && !has_terms
    {
        bail!(
            "the leases of the fleet {0} are at {1}, and {name} has none of them\n\
             hint: push refs/crew/{0}/* to {name}, or crew fleet forget {0} to begin anew there",
            fleet.name,
            before.url
        );
    }
    let Some(tip) = there.into_iter().find(|it| it.name == branch) else {
        bail!(
            "{name} has no branch {base} for the tasks to start from\n\
             hint: push it there, or base = \"BRANCH\" in fleet.toml names one that {name} has"
        );
    };
    // The tip is not here if others pushed since the last fetch.
    let tracked = remote.tracked(base);
    let lacks = |known: String| Some((git::lacking(repository, &branch, &known)?, known));
    let (ahead, known) = [tip.id, tracked].into_iter().find_map(lacks).unwrap_or_default();
    if ahead == 0 {
        return Ok(None);
    }
    let branches = format!("refs/heads/{}", fleet.branch_of(""));
    if *landing == LandingMode::Main
        && let Some(task) = git::begun_beyond(repository, &branch, &known, &branches)
    {
        bail!(
            "{task} began on commits that {name}/{base} lacks, and would land them too\n\
             hint: git push {name} {base}"
        );
    }
    let is_behind = git::lacking(repository, &known, &branch) != Some(0);
    let pull =
        if is_behind { format!("git pull --rebase {name} {base}, and ") } else { String::new() };
    let commits = count(ahead, "commit");
    let them = if ahead == 1 { "it" } else { "them" };
    Ok(Some(format!(
        "{base} here is {commits} ahead of {name}/{base}: the tasks start without {them}\n\
         hint: {pull}git push {name} {base}"
    )))
}

/// Why the remote gave no list. Only a fleet that has not pushed yet goes on without it.
fn unreached(home: &Home, fleet: &Fleet, name: &str, fault: GitFault) -> Error {
    use GitTrouble::{Auth, Network, NoRemote};
    let GitFault { trouble: Auth | Network | NoRemote, cause, cure, .. } = fault else {
        return fault.into();
    };
    let known = fleets::manifest(home, &fleet.name).ok().flatten();
    let has_pushed = known.is_some_and(|known| known.value.remote.is_some());
    let url = fleet.remote.as_ref().map(|remote| &*remote.url);
    let has_moved =
        || url.is_some_and(|url| git::hub::remote_at(&fleet.repository, url, name).is_none());
    let without = match has_pushed {
        false => "; without --push, --land and --on it is not needed",
        true if has_moved() => "; --push or --land goes to the address that there is now",
        true => "",
    };
    anyhow!("the remote {name} cannot be reached: {cause}\nhint: {cure}{without}")
}

/// The remote of a fleet that pushes.
fn remote(top: &Path, arguments: &FleetRunArgs) -> Result<Option<Remote>> {
    let is_elsewhere = arguments.on.as_ref().is_some_and(|on| on != LOCAL);
    if !arguments.push && arguments.land.is_none() && !is_elsewhere {
        return Ok(None);
    }
    let Some((name, url)) = git::hub::remote_of(top) else {
        bail!(
            "this repository has no remote to push to\nhint: git remote add origin ADDRESS, or leave --push, --land and --on out"
        );
    };
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    if url.starts_with("http") && authority.is_some_and(|it| it.contains('@')) {
        bail!(
            "the address of {name} holds a name or a password, and every user of a machine sees the words of its processes\n\
             hint: git remote set-url {name} without it, and a credential helper"
        );
    }
    Ok(Some(Remote { name, url }))
}

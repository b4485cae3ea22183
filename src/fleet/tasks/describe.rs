//! Turns a folder of tasks into a fleet: its terms, and a contract for each task. A later start
//! keeps nothing of an earlier one: fleet.toml applies, and the command line overrides it. A fault
//! in any file prevents the start, and all faults are reported together.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result, bail};

use super::folder::{NamedBytes, is_task, read_folder};
use super::front_matter::{FLEET_FILE, Faults};
use super::options::{FleetFile, TaskOptions};
use super::trust::trust_requests;
use crate::drive::checks::check::missing_at_the_start;
use crate::drive::failure::failure_of;
use crate::drive::start::establish::Prepared;
use crate::drive::start::run::{first_prompt, prepare_at};
use crate::drive::start::terms;
use crate::drive::tree::place;
use crate::fleet::executors::{executor_of, executors_of_user};
use crate::fleet::record::{CloneSetup, FleetLimits, FleetTerms};
use crate::fleet::step::DescribedTask;
use crate::fleet::store::{self, refuse_other_fleet};
use engine::failure::Failure;
use engine::fleet::{FleetTask, INCLUDE, LOCAL, LandingMode, Remote, TaskId};
use engine::record::{Check, Contract, Dialect, Fragment, GitSteps, Recipe, Role};
use engine::text::{distinct_texts, join_first_names};
use readers::parse::amounts::Unit;
use readers::parse::arguments::FleetRunArgs;
use readers::parse::settings::merge::{amount_or_zero, clamp_to_u32};
use readers::parse::settings::trust::TrustRequest;
use world::files::disk;
use world::git::include::INCLUDE_BYTES;
use world::git::{self, remotes, steps};
use world::store::{Home, settings};

/// The maximum number of tasks in a fleet. Each takes about 1 KiB of the record at first, and 4 KiB
/// at most.
const TASKS_MAX: usize = 2000;
/// The maximum number of names in a folder of tasks.
const NAMES_MAX: usize = 20_000;
/// The maximum size of a task file and of fleet.toml, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The maximum size of a task's contract, in bytes of JSON: it is part of the spec of each attempt.
const MAX_CONTRACT_BYTES: usize = 1 << 20;
/// The time limit of `setup` in seconds, unless fleet.toml has one.
const SETUP_TIMEOUT_S: u64 = 45 * 60;
/// Each task with its options.
type TasksRead = Vec<(FleetTask, TaskOptions)>;
/// The hint on how to write an option in a file.
const OPTION_IN_A_FILE: &str =
    " (here as a key without --, under [task] in fleet.toml or in the front matter)";
/// The maximum number of tasks that a sentence names.
const NAMED_MAX: usize = 3;

/// A fleet as its folder describes it.
#[derive(Debug)]
pub struct DescribedFleet {
    pub terms: FleetTerms,
    /// The tasks, sorted by when they start.
    pub tasks: Vec<DescribedTask>,
    /// The files in the folder that are not tasks.
    pub left_out: Vec<String>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
    /// The items that need a person's trust and do not have it yet.
    pub untrusted: Vec<TrustRequest>,
}

/// Reads a fleet's folder. A relative path starts at `here`, or at the root of the repository
/// there, as in the commands that crew prints.
///
/// # Errors
/// All faults in the files; a folder outside a repository; an existing fleet with this name from
/// another repository or folder.
pub fn describe_fleet(
    home: &Home,
    arguments: &FleetRunArgs,
    here: &Path,
) -> Result<DescribedFleet> {
    let folder = find_folder(here, &arguments.folder).map_err(|error| fault_of_input(&error))?;
    let top = git::find_top(&folder).ok_or_else(|| place::git_needed("a fleet", &folder))?;
    let (file, read, left_out) =
        read_files(&folder, &arguments.folder).map_err(|error| fault_of_input(&error))?;
    let terms = build_terms(&top, &folder, &file, arguments)?;
    let known = store::read_local(home, &terms.name)?.map(|record| record.terms);
    known.iter().try_for_each(|known| refuse_other_fleet(&terms, known))?;
    let executors = executors_of_user().map_err(|error| fault_of_input(&error))?;
    executor_of(home, &terms, &executors, &|| false).map(drop)?;
    let (tasks, notes) = read_contracts(home, &terms, read, &folder)?;
    let asked = trust_requests(&terms, &file, &tasks, known.as_ref());
    let untrusted = settings::find_untrusted(home, &terms.repository, asked)?;
    Ok(DescribedFleet { terms, tasks, left_out, notes, untrusted })
}

fn find_folder(here: &Path, named: &Path) -> Result<PathBuf> {
    let mut folder = here.join(named);
    if !disk::exists(&folder)
        && let Some(from_the_root) = git::find_top(here).map(|top| top.join(named))
        && disk::exists(&from_the_root)
    {
        folder = from_the_root;
    }
    if disk::is_file(&folder) {
        bail!(Failure::new(
            format!("{} is a file", folder.display()),
            "name the folder of the tasks"
        ));
    }
    Ok(disk::real_path(&folder)?)
}

/// Reads fleet.toml, each task, and the names of the other files. `named` is the folder as a person
/// names it.
fn read_files(folder: &Path, named: &Path) -> Result<(FleetFile, TasksRead, Vec<String>)> {
    let (files, left_out) = list_files(folder)?;
    let own = disk::read(&folder.join(FLEET_FILE), MAX_FILE_BYTES)?;
    let read = read_folder(files, own.as_deref());
    let (file, read) = read.map_err(|faults| folder_error(folder, &faults))?;
    if read.is_empty() {
        bail!(Failure::new(
            format!("{} has no task", folder.display()),
            format!("write one as a Markdown file: {}", named.join("NAME.md").display())
        ));
    }
    if read.len() > TASKS_MAX {
        bail!(Failure::new(
            format!(
                "{} has {} tasks, and a fleet at most {TASKS_MAX}",
                folder.display(),
                read.len()
            ),
            "make several fleets of them"
        ));
    }
    Ok((file, read, left_out))
}

/// Reads the files of the tasks, and lists the names of the other files.
fn list_files(folder: &Path) -> Result<(Vec<NamedBytes>, Vec<String>)> {
    let mut names = disk::list_names(folder, NAMES_MAX + 1)?;
    if names.len() > NAMES_MAX {
        bail!(Failure::new(
            format!("{} has more than {NAMES_MAX} files", folder.display()),
            "put the tasks into a folder of their own"
        ));
    }
    names.sort();
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for name in names {
        if is_task(&name) {
            let bytes = disk::read(&folder.join(&name), MAX_FILE_BYTES)?.unwrap_or_default();
            files.push((name, bytes));
        } else if name != FLEET_FILE && !name.starts_with('.') {
            others.push(name);
        }
    }
    Ok((files, others))
}

fn folder_error(folder: &Path, faults: &[String]) -> Error {
    let lines = faults.join("\n  ");
    Failure::usage(
        format!("the fleet in {} cannot start:\n  {lines}", folder.display()),
        "fix the files; nothing was started",
    )
    .into()
}

/// Builds the fleet's terms. Typed options override the file.
fn build_terms(
    top: &Path,
    folder: &Path,
    file: &FleetFile,
    arguments: &FleetRunArgs,
) -> Result<FleetTerms> {
    let name = file.name.as_ref().map_or_else(|| usual_name(top, folder), TaskId::to_string);
    if let Err(why) = name.parse::<TaskId>() {
        bail!(Failure::usage(
            format!("the fleet's name {name:?} cannot be used: {why}"),
            format!("name = \"NAME\" in {FLEET_FILE}")
        ));
    }
    let below = folder.strip_prefix(top).unwrap_or(folder).display().to_string();
    let landing = arguments.land.unwrap_or_default();
    if landing != LandingMode::No && below.is_empty() {
        bail!(Failure::usage(
            "tasks at the root of the repository cannot be kept from landing changes of themselves",
            "put them in a folder of their own"
        ));
    }

    let executor = arguments.on.clone().unwrap_or_else(|| LOCAL.to_owned());
    let pushes = arguments.push || landing != LandingMode::No || executor != LOCAL;
    Ok(FleetTerms {
        name,
        repository: top.to_owned(),
        folder: below,
        base: find_base(top, file, arguments.base.as_deref())?,
        executor,
        remote: if pushes { Some(find_remote(top)?) } else { None },
        landing,
        land_checks: file.check.iter().map(|run| Check::new(run.as_str(), Role::Verify)).collect(),
        land_keep: file.keep.clone(),
        keeps_branches: file.keep_branches,
        limits: FleetLimits {
            slots: arguments.slots.unwrap_or_else(|| clamp_to_u32(amount_or_zero(file.slots))),
            max_cost_micros: arguments
                .max_cost_micros
                .unwrap_or_else(|| amount_or_zero(file.max_cost)),
            typed_slots: arguments.slots,
            typed_max_cost_micros: arguments.max_cost_micros,
        },
        clones: CloneSetup {
            setup: file.setup.clone(),
            setup_timeout_s: file.setup_timeout.map_or(SETUP_TIMEOUT_S, |time| time.0),
            include: disk::read_text(&top.join(INCLUDE), INCLUDE_BYTES)
                .map_err(|error| fault_of_input(&error.into()))?,
            trusted: steps::read_trusted(top),
        },
    })
}

impl FleetTerms {
    /// The command that continues the fleet as it was started.
    pub fn run_command(&self) -> String {
        let folder = if self.folder.is_empty() { "." } else { &self.folder };
        let mut command = format!("crew fleet run {}", shell_words::quote(folder));
        command += match self.landing {
            LandingMode::Main => " --land",
            LandingMode::Pr => " --land pr",
            LandingMode::No if self.remote.is_some() => " --push",
            LandingMode::No => "",
        };
        if self.executor != LOCAL {
            command.extend([" --on ", &shell_words::quote(&self.executor)]);
        }
        if let Some(slots) = self.limits.typed_slots {
            command.extend([" --slots ", &slots.to_string()]);
        }
        if let Some(micros) = self.limits.typed_max_cost_micros {
            command.extend([" --max-cost ", &Unit::Dollars.format_number(micros)]);
        }
        command
    }
}

/// The folder's name or, if that is generic, the repository's, the same in all of its working
/// trees. A bare repository called `.bare` or `.git` has the name of its parent folder.
fn usual_name(top: &Path, folder: &Path) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let own = name(folder);
    if !["tasks", "fleet"].contains(&own.as_str()) {
        return own;
    }
    let roots = git::head::list_roots(top);
    let main = roots.first().map_or(top, PathBuf::as_path);
    let is_hidden = name(main).starts_with('.');
    let named = name(if is_hidden { main.parent().unwrap_or(main) } else { main });
    named.strip_suffix(".git").unwrap_or(&named).to_owned()
}

/// Finds the branch that tasks start from: the one in the file, otherwise `usual`, otherwise the
/// one checked out.
fn find_base(top: &Path, file: &FleetFile, usual: Option<&str>) -> Result<String> {
    let (branch, head) = git::read_head(top);
    if head.is_none() {
        bail!(Failure::new("this repository has no commit yet", "make a first commit"));
    }
    let Some(base) = file.base.clone().or_else(|| usual.map(str::to_owned)).or(branch) else {
        bail!(Failure::new(
            "no branch is checked out here for the tasks to start from",
            format!("git switch BRANCH, or base = \"BRANCH\" in {FLEET_FILE}")
        ));
    };
    if git::find_commit(top, &format!("refs/heads/{base}")).is_none() {
        let place = if file.base.is_some() { "base in fleet.toml: " } else { "" };
        bail!(Failure::usage(
            format!("{place}this repository has no branch {base} to start from"),
            "git branch --all lists them"
        ));
    }
    Ok(base)
}

/// Finds the remote that the fleet pushes to.
fn find_remote(top: &Path) -> Result<Remote> {
    let Some((name, url)) = remotes::remote_of(top) else {
        bail!(Failure::new(
            "this repository has no remote to push to",
            "git remote add origin ADDRESS, or leave --push, --land and --on out"
        ));
    };
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    if url.starts_with("http") && authority.is_some_and(|text| text.contains('@')) {
        bail!(Failure::new(
            format!(
                "the address of {name} contains a user name or a password, and every user of a machine sees the arguments of its processes"
            ),
            format!("git remote set-url {name} without it, and a credential helper")
        ));
    }
    Ok(Remote { name, url })
}

/// Builds the contract of each task, with notes for the user.
fn read_contracts(
    home: &Home,
    terms: &FleetTerms,
    read: TasksRead,
    folder: &Path,
) -> Result<(Vec<DescribedTask>, Vec<String>)> {
    let place = place::find_place(&terms.repository, None)?;
    let known = terms::load_settings(home, &place.checkout, true)
        .map_err(|error| fault_of_input(&error))?;
    let trusted =
        terms::refuse_untrusted(home, &known, "").map_err(|error| fault_of_input(&error))?;
    let (mut tasks, mut notes) = (Vec::new(), Vec::from_iter(trusted));
    let mut faults = Faults::default();
    FLEET_FILE.clone_into(&mut faults.file);
    if terms.landing == LandingMode::Main {
        // The work of another executor's jobs lands here too.
        match missing_at_the_start(&place, &terms.land_checks) {
            Ok(note) => notes.extend(note),
            Err(error) => faults.add(None, format!("[land] check: {}", in_a_line(&error))),
        }
    }
    for (task, options) in read {
        faults.file = format!("{}.md", task.id);
        let (typed, place) = (options.run_args(&task.prompt), place.clone());
        match prepare_at(home, typed, &terms.repository, place, known.clone())
            .and_then(|prepared| read_contract(home, terms, prepared))
        {
            Ok((contract, more)) => {
                notes.extend(more);
                tasks.push(DescribedTask { task, contract });
            }
            Err(error) => faults.add(None, in_a_line(&error)),
        }
    }
    faults.into_result().map_err(|faults| folder_error(folder, &faults))?;
    notes.extend(unmeasured_agents(terms, &tasks));
    Ok((tasks, distinct_texts(notes.into_iter())))
}

/// Presents an error as a fault in the files or the command line. Settings apply to every task, so
/// their faults name no file of the folder, and no option of a fleet leaves them out.
fn fault_of_input(error: &Error) -> Failure {
    let Failure { text, hint, .. } = failure_of(error);
    match hint {
        Some(hint) if hint != terms::WITHOUT_PROJECT => Failure::usage(text, hint),
        _ => Failure::usage(text, "correct that; nothing was started"),
    }
}

/// Builds the contract of a task, with what the fleet itself decides, and notes for the user.
fn read_contract(
    home: &Home,
    terms: &FleetTerms,
    prepared: Prepared,
) -> Result<(Contract, Vec<String>)> {
    first_prompt(home, &prepared)?;
    let Prepared { mut contract, notes, .. } = prepared;
    if terms.landing != LandingMode::No && contract.checks.iter().any(|check| check.no_worse) {
        bail!(Failure::new(
            "no-worse cannot be judged on main as it will be",
            "use verify, or leave --land out"
        ));
    }
    if let Some(run) = &mut contract.run {
        run.git = GitSteps { commit: true, ..GitSteps::default() };
        freeze_recipe(&mut run.recipe, &terms.executor)?;
    }
    let bytes = serde_json::to_vec(&contract)?.len();
    if bytes > MAX_CONTRACT_BYTES {
        let [has, most] = [bytes, MAX_CONTRACT_BYTES].map(|bytes| bytes.div_ceil(1 << 10));
        bail!(Failure::new(
            format!(
                "with its escapes, phases and checks it has {has} KiB of JSON, and may have {most}"
            ),
            "put some of the prompt into another file, and name that"
        ));
    }
    Ok((contract, notes))
}

/// Inlines the contents of every file that a prompt names, because an agent could change it, and
/// another machine does not have it. A template stays a file, because it reads different files for
/// each prompt.
fn freeze_recipe(recipe: &mut Recipe, executor: &str) -> Result<()> {
    for fragment in recipe.0.values_mut().flatten() {
        let Fragment::File(path) = &*fragment else { continue };
        if path.extension().is_some_and(|end| end == "j2") {
            if executor != LOCAL {
                bail!(Failure::new(
                    format!(
                        "the template {} is on this machine, and {executor} runs the task on another",
                        path.display()
                    ),
                    "put its text into a file that is not a template"
                ));
            }
            continue;
        }
        let text = disk::read_text(path, MAX_FILE_BYTES)?;
        *fragment = Fragment::Text(text.unwrap_or_default());
    }
    Ok(())
}

/// Renders an error with its fix as a row of a list. A fix may name command-line options.
fn in_a_line(error: &Error) -> String {
    let failure = failure_of(error);
    let note = match &failure.hint {
        Some(fix) if fix.contains("--") => OPTION_IN_A_FILE,
        _ => "",
    };
    failure.join_with("; ") + note
}

/// The note about tasks whose agents never report their usage, if the fleet limits its cost.
fn unmeasured_agents(terms: &FleetTerms, tasks: &[DescribedTask]) -> Option<String> {
    let mut names = Vec::new();
    for DescribedTask { task, contract } in tasks {
        if contract.run.as_ref().is_some_and(|run| run.agent.dialect == Dialect::TEXT) {
            names.push(task.id.to_string());
        }
    }
    if terms.limits.max_cost_micros == 0 || names.is_empty() {
        return None;
    }
    Some(format!(
        "max-cost cannot count what these use: {}. Their agent does not report it, so each has \
         one iteration, and is blocked if it is not done then",
        join_first_names(&names, NAMED_MAX)
    ))
}

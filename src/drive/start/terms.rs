//! From the command line and the settings of a working tree to the terms of a loop: the contract,
//! or one clear reason for a refusal. Reports what in the project's file is not trusted, and
//! refuses a start that would depend on it. Settings are read at the start (a resume reads what the
//! contract lacks); the contract keeps a copy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};

use engine::claim::promise::Promise;
use engine::failure::{Failure, FailureKind};
use engine::protect::parse_glob;
use engine::record::{Contract, Fragment, Recipe, Run};
use engine::refuse;
use engine::test_changes::ProofTerms;
use engine::text::EscapedLine;
use readers::agents;
use readers::clients::ALL;
use readers::clients::inside_an_agent;
use readers::parse::arguments::LoopArgs;
use readers::parse::project::{Detection, FOLDERS, detect_commands, fixed_names, is_read};
use readers::parse::settings::merge::{Layer, Layers, Settings, amount_or_zero, merge_layers};
use readers::parse::settings::options::LoopOptions;
use readers::parse::settings::trust::{TrustRequest, list_trust_requests};
use readers::parse::settings::{ParsedSettings, SettingsOwner};
use readers::prompts::procedures::NAMES;
use world::env;
use world::files::{disk, tree};
use world::store::{Home, settings};

/// The variable that trusts a project's file without a person, for a driver outside a client.
const TRUST_VARIABLE: &str = "CREW_TRUST";

/// The hint for a fault in a project's file.
pub const WITHOUT_PROJECT: &str =
    "fix the file; until then `crew run --no-project` starts a loop here";

/// The settings of all tiers for one working tree.
#[derive(Debug, Clone)]
pub struct LoadedSettings {
    /// The tiers, without the typed one.
    pub layers: Layers,
    /// The name of the client for which a project may have set the variables; `None` if only the
    /// user can.
    client: Option<&'static str>,
    /// The working tree.
    checkout: PathBuf,
    /// The user's own file, whether or not it exists; `None` for a user without a home.
    pub user_file: Option<PathBuf>,
    /// The project's file, whether or not it exists.
    pub project_file: PathBuf,
    /// Everything in the project's file that needs trust, trusted or not.
    pub needs: Vec<TrustRequest>,
    /// The part of it that is not trusted yet.
    pub untrusted: Vec<TrustRequest>,
    /// Keys that were ignored: one sentence each.
    pub warnings: Vec<String>,
}

impl LoadedSettings {
    /// Whether a tier has a procedure of this name.
    pub fn has_procedure(&self, name: &str) -> bool {
        let Layers { user, project, .. } = &self.layers;
        let is_own = [user, project].iter().any(|layer| layer.procedures.contains_key(name));
        is_own || NAMES.contains(&name)
    }

    /// The source for a session of `client`: a project can set variables for it, so they must not
    /// name an account or make the project's settings trusted.
    pub fn in_a_session(mut self, client: &'static str) -> Self {
        self.client = Some(client);
        self.layers.environment.values.remove("account");
        self
    }
}

/// Reads every tier. Without `with_project` the project's file is not opened at all.
pub fn load_settings(home: &Home, checkout: &Path, with_project: bool) -> Result<LoadedSettings> {
    let (user_file, project_file) = (settings::user_file(), settings::project_file(checkout));
    let user = read_file(user_file.as_deref(), SettingsOwner::Users).map_err(Error::msg)?;
    let project = if with_project { Some(&*project_file) } else { None };
    let project = read_file(project, SettingsOwner::Projects)
        .map_err(|faults| Failure::new(faults, WITHOUT_PROJECT))?;
    let environment = settings::read_environment().map_err(Error::msg)?;
    let needs = list_trust_requests(&project.layer, &user.layer);
    let untrusted = settings::find_untrusted(home, checkout, needs.clone())?;
    let (user_layer, project_layer, typed) = (user.layer, project.layer, Layer::default());
    let known = LoadedSettings {
        layers: Layers { user: user_layer, project: project_layer, environment, typed },
        client: None,
        checkout: checkout.to_owned(),
        user_file,
        project_file,
        needs,
        untrusted,
        warnings: [user.warnings, project.warnings].concat(),
    };
    let is_an_agents = inside_an_agent(&env::raw);
    Ok(if is_an_agents { known.in_a_session(ALL[0].title()) } else { known })
}

/// The settings of a file; none where it does not exist.
pub fn read_file(file: Option<&Path>, owner: SettingsOwner) -> Result<ParsedSettings, String> {
    let Some(file) = file else { return Ok(ParsedSettings::default()) };
    let read = settings::read_settings_file(file, owner, &agents::output_formats())?;
    Ok(read.unwrap_or_default())
}

/// The settings of a loop that starts with `typed`, perhaps by a procedure from the files, and
/// notes for its user.
pub fn in_force(
    home: &Home,
    known: LoadedSettings,
    typed: Layer,
    procedure: Option<&str>,
) -> Result<(Settings, Vec<String>)> {
    let without = "; `crew run --no-project` starts a loop without them";
    let trusted = refuse_untrusted(home, &known, without)?;
    let mut notes: Vec<String> = trusted.into_iter().chain(known.warnings).collect();
    if known.layers.project != Layer::default() {
        let file = known.project_file.display();
        notes.push(format!("settings of {file} apply; crew config shows them"));
    }
    let settings =
        merge_layers(&Layers { typed, ..known.layers }, procedure).map_err(Error::msg)?;
    notes.extend(settings.notes().iter().cloned());
    check_recipe_files(&known.checkout, settings.recipe())?;
    Ok((settings, notes))
}

/// Requires that every file of a recipe exists, and that one named in the checkout is inside it: a
/// link could send the model files that are not the project's.
fn check_recipe_files(checkout: &Path, recipe: &Recipe) -> Result<()> {
    for fragment in recipe.0.values().flatten() {
        let Fragment::File(file) = fragment else { continue };
        disk::real_path(file).context("a piece of the prompt")?;
        if let Some(real) = tree::leads_out(checkout, file, file) {
            refuse!(
                format!("{} leads out of the checkout, to {}", file.display(), real.display()),
                "put the text there, or name the file in your own settings"
            );
        }
    }
    Ok(())
}

/// Refuses untrusted settings of the project, with the file and how to trust it. `without` is the
/// alternative. Returns a note if a variable trusts them.
pub fn refuse_untrusted(
    home: &Home,
    known: &LoadedSettings,
    without: &str,
) -> Result<Option<String>> {
    if known.untrusted.is_empty() {
        return Ok(None);
    }
    let variable = env::text(TRUST_VARIABLE);
    if known.client.is_none() && variable.as_deref() == Some("1") {
        let note = format!("{TRUST_VARIABLE}=1: the project's settings are trusted unread");
        return Ok(Some(note));
    }
    let mut lines = vec![
        "the project's settings need trust, which no person on this machine has given:".to_owned(),
    ];
    lines.extend(known.untrusted.iter().map(|need| format!("  {}: {need}", need.origin)));
    if let (Some(client), Some(_)) = (known.client, &variable) {
        lines.push(format!(
            "{TRUST_VARIABLE} does not count here: a project can set it for {client}"
        ));
    }
    let command = match home.overridden() {
        Some(_) => format!("CREW_HOME='{}' crew trust", home.root().display()),
        None => "crew trust".to_owned(),
    };
    let hint = format!("read them, then run `{command}` in a terminal here{without}");
    refuse!(lines.join("\n"), hint)
}

// The contract that the words ask for, with those settings in force.

/// The largest task, in bytes.
const TASK_BYTES: u64 = 1 << 20;
/// The word that replaces a command of `--verify`, for whatever [`detect_project`] finds.
const AUTO: &str = "auto";

/// What the user typed, as the highest tier of settings. `--verify auto` is resolved in `folder`.
pub fn typed_layer(mut options: LoopOptions, folder: &Path) -> Result<Layer> {
    for text in &options.terms.may_change {
        if let Err(expected) = parse_glob(text) {
            refuse!(
                "--may-change takes {expected}, not {text:?}",
                "--may-change 'tests/golden/**'"
            );
        }
    }
    options.terms.verify = typed_checks(&options.terms.verify, folder)?;
    Ok(Layer::from_options(&options)?)
}

fn typed_checks(typed: &[String], folder: &Path) -> Result<Vec<String>> {
    let mut commands = Vec::new();
    for command in typed {
        if command != AUTO {
            commands.push(command.clone());
            continue;
        }
        let found = detect_project(folder);
        if found.checks().is_empty() {
            refuse!(
                format!("--verify auto found no test command in {}", folder.display()),
                "name the command: --verify \"your test command\""
            );
        }
        commands.extend(found.checks().iter().map(|detected| detected.run().clone()));
    }
    Ok(commands)
}

/// The contract that the user's words request, with `settings` in force; a relative `--prompt-file`
/// starts at `cwd`.
pub fn build_contract(
    arguments: &LoopArgs,
    settings: &Settings,
    cwd: &Path,
    run: Option<Run>,
) -> Result<Contract> {
    let is_procedure = run.as_ref().is_some_and(|run| run.procedure.is_some());
    let is_bare = arguments.task.is_empty() && arguments.prompt_file.is_none();
    let start = if run.is_some() { "crew run" } else { "/crew:loop" };
    let task =
        if is_procedure && is_bare { String::new() } else { read_task(arguments, cwd, start)? };
    let promise = build_promise(arguments, settings, &task)?;
    let checks = settings.checks();
    let (terms, file) = (&settings.options().terms, &settings.options().file_terms);
    let is_tried = arguments.terms.prove.is_some();
    if (terms.require.is_some() || is_tried) && checks.is_empty() {
        let (option, grade) = match terms.require {
            Some(grade) => ("--require", format!(" {}", grade.label())),
            None => ("--prove", String::new()),
        };
        refuse!(
            "{option}{grade} needs a check: without one nothing can fail and then pass",
            "give --verify \"your test command\", or leave {option} out"
        );
    }
    let contract = Contract {
        task,
        promise,
        checks,
        limits: settings.limits(),
        protect: settings.layer().protect.iter().map(|glob| glob.value.clone()).collect(),
        require: terms.require,
        test_changes: terms.test_changes.unwrap_or_default(),
        questions: terms.questions.unwrap_or_default(),
        silent: *file.notices() == Some(false),
        trial: ProofTerms {
            prove: terms.prove.unwrap_or_default(),
            timeout_s: amount_or_zero(*file.prove_timeout()),
            setup: file.setup().clone(),
            tests: file.tests().clone(),
            may_change: terms.may_change.clone(),
        },
        run,
    };
    if !contract.limits.end_some_loops() && !contract.can_complete() {
        refuse!(
            "nothing would ever end this loop: it has no promise, no --until and no limit",
            "give --max-iterations, --max-duration, --stall or --until"
        );
    }
    Ok(contract)
}

/// The typed promise, otherwise the one the task names, otherwise the one in the settings,
/// otherwise the built-in word. The task overrides the files: an agent that reads one promise and
/// has to keep another never can.
fn build_promise(arguments: &LoopArgs, settings: &Settings, task: &str) -> Result<Option<Promise>> {
    if arguments.terms.no_promise {
        return Ok(None);
    }
    if arguments.terms.completion_promise.is_some() {
        return Ok(settings.default_promise());
    }
    let named = Promise::in_task(task)
        .map_err(|error| Failure::without_hint(FailureKind::Usage, error.to_string()))?;
    Ok(named.or(settings.default_promise()))
}

/// The task; `start` is the command that the error names if it is missing.
fn read_task(arguments: &LoopArgs, cwd: &Path, start: &str) -> Result<String> {
    let task = match (arguments.task(), &arguments.prompt_file) {
        (Some(task), _) => task,
        (None, Some(file)) => {
            let path = cwd.join(file);
            let bytes = disk::read(&path, TASK_BYTES)?.ok_or_else(|| {
                Failure::new(
                    format!("there is no --prompt-file {}", path.display()),
                    format!("write the task into it, or give it as words: {start} \"task\""),
                )
            })?;
            String::from_utf8(bytes)
                .ok()
                .with_context(|| format!("--prompt-file {} is not UTF-8 text", path.display()))?
        }
        (None, None) => {
            refuse!("a loop needs a task", "{start} \"task\" --verify \"command\"")
        }
    };
    if task.trim().is_empty() {
        refuse!("the task is empty", "{start} \"task\" --verify \"command\"");
    }
    if task.len() as u64 > TASK_BYTES {
        refuse!(
            "the task is longer than 1 MiB",
            "put the details in a file and name it in the task"
        );
    }
    Ok(task)
}

// The commands that test a folder: the one detection behind `crew init`, `--verify auto` and the
// suggestion of a start without checks.

/// The largest file that is read, and the maximum number of bytes read in all; a larger file is
/// ignored.
const FILE_BYTES: u64 = 1 << 20;
const ALL_BYTES: u64 = 16 << 20;
/// The maximum number of names examined in a folder, in addition to those that every project may
/// have.
const NAMES_MAX: usize = 5000;

/// Finds the checks that fit the files in the folder. A file that cannot be read, or whose name has
/// invisible characters, does not count.
pub fn detect_project(folder: &Path) -> Detection {
    let mut paths = Vec::new();
    for below in FOLDERS {
        let names = disk::names(&folder.join(below), NAMES_MAX);
        paths.extend(names.into_iter().map(|name| format!("{below}{name}")));
    }
    if paths.len() >= NAMES_MAX {
        paths.extend(
            fixed_names().filter(|name| disk::exists(&folder.join(name))).map(String::from),
        );
    }
    let (mut files, mut left) = (BTreeMap::new(), ALL_BYTES);
    for path in paths.into_iter().filter(|path| EscapedLine(path).to_string() == *path) {
        let text = if is_read(&path) {
            disk::read_text(&folder.join(&path), FILE_BYTES.min(left)).ok().flatten()
        } else {
            Some(String::new())
        };
        if let Some(text) = text {
            left = left.saturating_sub(text.len() as u64);
            files.insert(path, text);
        }
    }
    detect_commands(&files)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn detected_runs(folder: &Path) -> Vec<String> {
        detect_project(folder).checks().iter().map(|check| check.run().clone()).collect()
    }

    fn create_file(folder: &Path, name: &str) {
        drop(disk::create_private(&folder.join(name)).unwrap());
    }

    #[test]
    fn a_file_name_with_invisible_characters_suggests_no_check() {
        let folder = testkit::folder();
        create_file(folder.path(), "a\n[[check]]\nrole = \"gate\"\nrun = \"touch x\"\n#.csproj");
        assert!(detected_runs(folder.path()).is_empty());
        create_file(folder.path(), "a.csproj");
        assert_eq!(detected_runs(folder.path()), ["dotnet test"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_suggests_no_check() {
        let folder = testkit::folder();
        symlink("nowhere", folder.path().join("Cargo.toml")).unwrap();
        let file = disk::create_private(&folder.path().join("test_a.py")).unwrap();
        file.set_len(FILE_BYTES + 1).unwrap();
        assert!(detected_runs(folder.path()).is_empty());
    }

    #[test]
    fn many_other_files_hide_no_file_of_a_project() {
        let folder = testkit::folder();
        for number in 0..NAMES_MAX {
            create_file(folder.path(), &number.to_string());
        }
        create_file(folder.path(), "go.mod");
        assert_eq!(detected_runs(folder.path()), ["go test ./..."]);
    }
}

//! From the words of a command to the terms of a loop: the contract, or one clear reason for a
//! refusal.

use std::path::Path;

use anyhow::{Context, Error, Result, bail};

use super::detect;
use crate::engine::boundary::protect::glob;
use crate::engine::claim::promise::Promise;
use crate::engine::record::{Contract, Run};
use crate::engine::test_changes::trial::TrialTerms;
use crate::parse::arguments::LoopArgs;
use crate::parse::settings::merge::{Layer, Settings, amount};
use crate::parse::settings::options::LoopOptions;
use crate::world::files::disk;

/// The largest task, in bytes.
const TASK_BYTES: u64 = 1 << 20;
/// In place of a command of `--verify`: use what `detect` finds.
const AUTO: &str = "auto";

/// What the user typed, as the highest tier of settings. `--verify auto` is resolved in `folder`.
pub fn typed(mut options: LoopOptions, folder: &Path) -> Result<Layer> {
    for text in &options.terms.may_change {
        if let Err(expected) = glob(text) {
            bail!(
                "--may-change takes {expected}, not {text:?}\nhint: --may-change 'tests/golden/**'"
            );
        }
    }
    options.terms.verify = verify(&options.terms.verify, folder)?;
    Layer::typed(&options).map_err(Error::msg)
}

fn verify(typed: &[String], folder: &Path) -> Result<Vec<String>> {
    let mut commands = Vec::new();
    for command in typed {
        if command != AUTO {
            commands.push(command.clone());
            continue;
        }
        let found = detect::checks(folder).checks;
        if found.is_empty() {
            bail!(
                "--verify auto found no test command in {}\n\
                 hint: name the command: --verify \"your test command\"",
                folder.display()
            );
        }
        commands.extend(found.into_iter().map(|detected| detected.run));
    }
    Ok(commands)
}

/// The contract the user's words ask for, with `settings` in force; a relative `--prompt-file`
/// starts at `cwd`.
pub fn contract(
    arguments: &LoopArgs,
    settings: &Settings,
    cwd: &Path,
    run: Option<Run>,
) -> Result<Contract> {
    let is_procedure = run.as_ref().is_some_and(|run| run.procedure.is_some());
    let is_bare = arguments.task.is_empty() && arguments.prompt_file.is_none();
    let start = if run.is_some() { "crew run" } else { "/crew:loop" };
    let task = if is_procedure && is_bare { String::new() } else { task(arguments, cwd, start)? };
    let promise = promise(arguments, settings, &task)?;
    let checks = settings.checks();
    let terms = &settings.options.terms;
    let is_tried = arguments.terms.prove.is_some();
    if (terms.require.is_some() || is_tried) && checks.is_empty() {
        let (option, grade) = match terms.require {
            Some(grade) => ("--require", format!(" {}", grade.label())),
            None => ("--prove", String::new()),
        };
        bail!(
            "{option}{grade} needs a check: without one nothing can fail and then pass\n\
             hint: give --verify \"your test command\", or leave {option} out"
        );
    }
    let contract = Contract {
        task,
        promise,
        checks,
        limits: settings.limits(),
        protect: settings.layer.protect.iter().map(|glob| glob.value.clone()).collect(),
        require: terms.require,
        test_changes: terms.test_changes.unwrap_or_default(),
        questions: terms.questions.unwrap_or_default(),
        silent: terms.notices == Some(false),
        trial: TrialTerms {
            prove: terms.prove.unwrap_or_default(),
            timeout_s: amount(terms.prove_timeout),
            setup: terms.setup.clone(),
            tests: terms.tests.clone(),
            may_change: terms.may_change.clone(),
        },
        run,
    };
    if !contract.limits.end_every_loop() && !contract.can_complete() {
        bail!(
            "nothing would ever end this loop: it has no promise, no --until and no limit\n\
             hint: give --max-iterations, --max-duration or --until"
        );
    }
    Ok(contract)
}

/// The typed promise, else the one the task names, else that of the settings, else the built-in
/// word. The task overrides the files: an agent that reads one promise and is held to another can
/// never keep it.
fn promise(arguments: &LoopArgs, settings: &Settings, task: &str) -> Result<Option<Promise>> {
    if arguments.terms.no_promise {
        return Ok(None);
    }
    if arguments.terms.completion_promise.is_some() {
        return Ok(settings.promise());
    }
    Ok(Promise::in_task(task)?.or(settings.promise()))
}

/// The task; `start` is the command that the error names if it is missing.
fn task(arguments: &LoopArgs, cwd: &Path, start: &str) -> Result<String> {
    let task = match (arguments.task(), &arguments.prompt_file) {
        (Some(task), _) => task,
        (None, Some(file)) => {
            let path = cwd.join(file);
            let bytes = disk::read(&path, TASK_BYTES)?
                .with_context(|| {
                    format!(
                        "there is no --prompt-file {}\nhint: write the task into it, or give it as words: \
                         {start} \"task\"",
                        path.display()
                    )
                })?;
            String::from_utf8(bytes)
                .ok()
                .with_context(|| format!("--prompt-file {} is not UTF-8 text", path.display()))?
        }
        (None, None) => {
            bail!("a loop needs a task\nhint: {start} \"task\" --verify \"command\"")
        }
    };
    if task.trim().is_empty() {
        bail!("the task is empty\nhint: {start} \"task\" --verify \"command\"");
    }
    if task.len() as u64 > TASK_BYTES {
        bail!(
            "the task is longer than 1 MiB\nhint: put the details in a file and name it in the task"
        );
    }
    Ok(task)
}

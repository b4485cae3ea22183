//! From the words of a command to the terms of a loop: the contract, or one clear reason why not.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::engine::contract::{Check, Contract, Role};
use crate::engine::limits::Limits;
use crate::engine::promise::Promise;
use crate::parse::arguments::LoopArguments;
use crate::parse::duration::whole_seconds;
use crate::world::disk;

/// The largest task, in bytes.
const TASK_BYTES: u64 = 1 << 20;

/// The contract the user's words ask for; a `--prompt-file` is found from `cwd`.
pub fn contract(arguments: &LoopArguments, cwd: &Path) -> Result<Contract> {
    if arguments.max_cost.is_some() || arguments.max_tokens.is_some() {
        bail!(
            "--max-cost and --max-tokens cannot be kept yet: crew does not measure a session's usage\n\
             hint: bound the loop with --max-iterations and --max-duration"
        );
    }
    let task = task(arguments, cwd)?;
    let promise = match (&arguments.completion_promise, arguments.no_promise) {
        (Some(text), _) => Some(Promise::new(text)?),
        (None, true) => None,
        (None, false) => Some(Promise::in_task(&task)?.unwrap_or_default()),
    };
    let mut checks = Vec::new();
    for (commands, role) in [
        (&arguments.verify, Role::Verify),
        (&arguments.gate, Role::Gate),
        (&arguments.until, Role::Until),
    ] {
        checks.extend(commands.iter().map(|run| Check::new(run.as_str(), role)));
    }
    let built_in = Limits::default();
    let limits = Limits {
        max_iterations: arguments.max_iterations.unwrap_or(built_in.max_iterations),
        failure_threshold: arguments.failure_threshold.unwrap_or(built_in.failure_threshold),
        stall: arguments.stall.unwrap_or(built_in.stall),
        max_duration_s: arguments.max_duration.map_or(built_in.max_duration_s, whole_seconds),
        max_wait_s: built_in.max_wait_s,
    };
    let contract = Contract { task, promise, checks, limits };
    let bounded = contract.limits.max_iterations > 0 || contract.limits.max_duration_s > 0;
    if !bounded && !contract.can_complete() {
        bail!(
            "nothing would ever end this loop: it has no promise, no --until and no limit\n\
             hint: give --max-iterations, --max-duration or --until"
        );
    }
    Ok(contract)
}

fn task(arguments: &LoopArguments, cwd: &Path) -> Result<String> {
    let task = match (&arguments.task, &arguments.prompt_file) {
        (Some(task), _) => task.clone(),
        (None, Some(file)) => {
            let path = cwd.join(file);
            let bytes = disk::read(&path, TASK_BYTES)
                .with_context(|| format!("cannot read --prompt-file {}", path.display()))?
                .with_context(|| format!("there is no --prompt-file {}", path.display()))?;
            String::from_utf8(bytes)
                .ok()
                .with_context(|| format!("--prompt-file {} is not UTF-8 text", path.display()))?
        }
        (None, None) => {
            bail!("a loop needs a task\nhint: /crew:loop \"task\" --verify \"command\"")
        }
    };
    if task.trim().is_empty() {
        bail!("the task is empty\nhint: /crew:loop \"task\" --verify \"command\"");
    }
    if task.len() as u64 > TASK_BYTES {
        bail!(
            "the task is longer than 1 MiB\nhint: put the details in a file and name it in the task"
        );
    }
    Ok(task)
}

/// A check that fits what lies in the folder.
pub fn suggest(folder: &Path) -> Option<&'static str> {
    let known = [
        ("Cargo.toml", "cargo test"),
        ("package.json", "npm test"),
        ("pyproject.toml", "pytest"),
        ("pytest.ini", "pytest"),
        ("go.mod", "go test ./..."),
        ("justfile", "just test"),
        ("Makefile", "make test"),
    ];
    known.iter().find(|(file, _)| disk::exists(&folder.join(file))).map(|(_, command)| *command)
}

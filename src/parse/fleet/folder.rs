//! The folder of a fleet as a whole: its tasks with what fleet.toml adds, in the order in which
//! they start. One fault in one file is enough to refuse the folder.

use std::collections::{BTreeMap, BTreeSet};

use super::faults::Faults;
use super::fleet_file::{self, FLEET_FILE};
use super::options::Asked;
use super::task_file::{TaskFile, id_of, read_task};
use crate::engine::fleet::{FleetTask, FleetTerms, TaskId};
use crate::parse::spelling::nearest;

/// The hexadecimal digits of a revision.
const REVISION_DIGITS: usize = 12;

/// Reads the files of a fleet's folder: each task file with its name, and the bytes of fleet.toml.
/// The tasks come back in the order in which they start: by priority, then by name. `hash` is
/// SHA-256 in hexadecimal.
///
/// # Errors
/// Everything that is wrong in any of the files, by file and line.
pub fn folder(
    mut files: Vec<(String, Vec<u8>)>,
    fleet_toml: Option<&[u8]>,
    hash: fn(&[u8]) -> String,
) -> Result<(FleetTerms, Vec<FleetTask>), Vec<String>> {
    files.sort();
    let mut faults = Faults { file: FLEET_FILE.to_owned(), found: Vec::new() };
    let terms = text_of(fleet_toml.unwrap_or_default(), &mut faults);
    let (terms, asked) = fleet_file::read(terms.unwrap_or_default(), &mut faults);
    let mut tasks = Vec::new();
    for (name, bytes) in &files {
        faults.file.clone_from(name);
        let text = text_of(bytes, &mut faults);
        tasks.extend(text.and_then(|text| read_task(name, text, &mut faults)));
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    twins(&names, &mut faults);
    strangers(&names, &tasks, &mut faults);
    circles(&tasks, &mut faults);
    let mut faults = faults.found;
    if faults.is_empty() {
        let whole = tasks.into_iter().map(|task| complete(task, &asked, &terms, hash));
        let mut tasks: Vec<FleetTask> = whole.collect();
        tasks.sort_by(FleetTask::turn);
        return Ok((terms, tasks));
    }
    // The terms stand first, because they are wrong for all tasks.
    faults.sort_by_key(|fault| (fault.file != FLEET_FILE, fault.clone()));
    Err(faults.iter().map(ToString::to_string).collect())
}

/// A file's bytes as text. What is not UTF-8 would reach an agent as other words.
fn text_of<'bytes>(bytes: &'bytes [u8], faults: &mut Faults) -> Option<&'bytes str> {
    let refused = |error: std::str::Utf8Error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        faults.at(line, "this is not UTF-8: save the file as UTF-8");
    };
    std::str::from_utf8(bytes).map_err(refused).ok()
}

/// Names that differ only in case: one branch, where the file system ignores case.
fn twins(names: &[&str], faults: &mut Faults) {
    let mut first = BTreeMap::new();
    for name in names {
        let twin = *first.entry(name.to_lowercase()).or_insert(name);
        if twin != name {
            (*name).clone_into(&mut faults.file);
            faults.whole(format!("its name differs from {twin} only in case, and branches on some machines ignore that: rename one"));
        }
    }
}

/// What a task waits for that is not in the folder.
fn strangers(names: &[&str], tasks: &[TaskFile], faults: &mut Faults) {
    let ids: Vec<TaskId> = names.iter().filter_map(|name| id_of(name).ok()).collect();
    let known: BTreeSet<&str> = ids.iter().map(TaskId::as_str).collect();
    // A name of one letter is in every other.
    let names: Vec<&str> = known.iter().copied().filter(|name| name.len() > 2).collect();
    let waits = tasks.iter().flat_map(|task| task.task.after.iter().map(move |id| (task, id)));
    for (task, id) in waits.filter(|(_, id)| !known.contains(id.as_str())) {
        let guess = match nearest(id.as_str(), &names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "after names files of this folder, without .md".to_owned(),
        };
        fault_of_after(task, faults, format!("there is no task `{id}`: {guess}"));
    }
}

/// Tasks that wait for each other. Each is named once, in the first circle that is found.
fn circles(tasks: &[TaskFile], faults: &mut Faults) {
    let mut waiting: BTreeMap<&TaskId, &TaskFile> =
        tasks.iter().map(|task| (&task.task.id, task)).collect();
    loop {
        let before = waiting.len();
        let left: BTreeSet<&TaskId> = waiting.keys().copied().collect();
        waiting.retain(|_, task| task.task.after.iter().any(|id| left.contains(id)));
        if waiting.len() < before {
            continue;
        }
        let Some((_, start)) = waiting.first_key_value() else { return };
        let circle = circle(start, &waiting);
        let names = circle.iter().chain(&circle[..1]).map(|task| task.task.id.as_str());
        let names = names.collect::<Vec<_>>().join(" → ");
        fault_of_after(circle[0], faults, format!("these tasks wait for each other: {names}"));
        waiting.retain(|id, _| !circle.iter().any(|task| task.task.id == **id));
    }
}

/// A fault of a task's key `after`.
fn fault_of_after(task: &TaskFile, faults: &mut Faults, what: String) {
    faults.file = format!("{}.md", task.task.id);
    faults.at(task.after_line, what);
}

/// The circle that a task leads into, where each task waits for another that does.
fn circle<'task>(
    start: &'task TaskFile,
    waiting: &BTreeMap<&TaskId, &'task TaskFile>,
) -> Vec<&'task TaskFile> {
    let mut way = vec![start];
    while let Some(next) = way[way.len() - 1].task.after.iter().find_map(|id| waiting.get(id)) {
        if let Some(at) = way.iter().position(|task| task.task.id == next.task.id) {
            way.drain(..at);
            break;
        }
        way.push(next);
    }
    let first = (0..way.len()).min_by_key(|at| &way[*at].task.id).unwrap_or_default();
    way.rotate_left(first);
    way
}

fn complete(
    TaskFile { mut task, options, .. }: TaskFile,
    fleet: &Asked,
    terms: &FleetTerms,
    hash: fn(&[u8]) -> String,
) -> FleetTask {
    task.words = options.over(fleet).words();
    let setup = terms.setup.clone().unwrap_or_default();
    // With its length in front, no part can pass for the end of the one before.
    let parts = [&task.prompt, &setup].into_iter().chain(&task.words);
    let text: Vec<String> = parts.map(|part| format!("{} {part}", part.len())).collect();
    task.revision = hash(text.concat().as_bytes()).chars().take(REVISION_DIGITS).collect();
    task
}

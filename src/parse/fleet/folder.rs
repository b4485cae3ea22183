//! The folder of a fleet as a whole: its tasks with what fleet.toml adds, in the order in which
//! they start. One fault in one file is enough to refuse the folder.

use std::collections::{BTreeMap, BTreeSet};

use super::faults::FleetFault;
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
    let mut faults = Vec::new();
    let terms = text_of(FLEET_FILE, fleet_toml.unwrap_or_default());
    let terms = terms.and_then(fleet_file::read).map_err(|found| faults.extend(found));
    let (terms, asked) = terms.unwrap_or_default();
    let mut tasks = Vec::new();
    for (name, bytes) in &files {
        match text_of(name, bytes).map(|text| read_task(name, text)) {
            Ok(Ok(task)) => tasks.push(task),
            Ok(Err(refused)) => {
                faults.extend(refused.faults);
                tasks.extend(refused.rest.map(|it| *it));
            }
            Err(found) => faults.extend(found),
        }
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    faults.extend(twins(&names));
    faults.extend(strangers(&names, &tasks));
    faults.extend(circles(&tasks));
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
fn text_of<'bytes>(file: &str, bytes: &'bytes [u8]) -> Result<&'bytes str, Vec<FleetFault>> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        let what = "this is not UTF-8: save the file as UTF-8".to_owned();
        vec![FleetFault { file: file.to_owned(), line: Some(line), what }]
    })
}

/// Names that differ only in case: one branch, where the file system ignores case.
fn twins(names: &[&str]) -> Vec<FleetFault> {
    let mut first = BTreeMap::new();
    let twins = names.iter().filter_map(|name| {
        let twin = *first.entry(name.to_lowercase()).or_insert(name);
        let what = format!("its name differs from {twin} only in case, and branches on some machines ignore that: rename one");
        (twin != name).then(|| FleetFault { file: (*name).to_owned(), line: None, what })
    });
    twins.collect()
}

/// What a task waits for that is not in the folder.
fn strangers(names: &[&str], tasks: &[TaskFile]) -> Vec<FleetFault> {
    let ids: Vec<TaskId> = names.iter().filter_map(|name| id_of(name).ok()).collect();
    let known: BTreeSet<&str> = ids.iter().map(TaskId::as_str).collect();
    // A name of one letter is in every other.
    let names: Vec<&str> = known.iter().copied().filter(|name| name.len() > 2).collect();
    let waits = tasks.iter().flat_map(|task| task.after.iter().map(move |id| (task, id)));
    let unknown = waits.filter(|(_, id)| !known.contains(id.as_str()));
    let fault = |(task, id): (&TaskFile, &TaskId)| {
        let guess = match nearest(id.as_str(), &names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "after names files of this folder, without .md".to_owned(),
        };
        task.fault(format!("there is no task `{id}`: {guess}"))
    };
    unknown.map(fault).collect()
}

/// Tasks that wait for each other. Each is named once, in the first circle that is found.
fn circles(tasks: &[TaskFile]) -> Vec<FleetFault> {
    let mut waiting: BTreeMap<&TaskId, &TaskFile> =
        tasks.iter().map(|task| (&task.id, task)).collect();
    let mut faults = Vec::new();
    loop {
        let before = waiting.len();
        let left: BTreeSet<&TaskId> = waiting.keys().copied().collect();
        waiting.retain(|_, task| task.after.iter().any(|id| left.contains(id)));
        if waiting.len() < before {
            continue;
        }
        let Some((_, start)) = waiting.first_key_value() else { return faults };
        let circle = circle(start, &waiting);
        let names: Vec<&str> = circle.iter().chain(&circle[..1]).map(|it| it.id.as_str()).collect();
        let what = format!("these tasks wait for each other: {}", names.join(" → "));
        faults.push(circle[0].fault(what));
        waiting.retain(|id, _| !circle.iter().any(|task| task.id == **id));
    }
}

/// The circle that a task leads into, where each task waits for another that does.
fn circle<'task>(
    start: &'task TaskFile,
    waiting: &BTreeMap<&TaskId, &'task TaskFile>,
) -> Vec<&'task TaskFile> {
    let mut way = vec![start];
    while let Some(next) = way[way.len() - 1].after.iter().find_map(|id| waiting.get(id)) {
        if let Some(at) = way.iter().position(|task| task.id == next.id) {
            way.drain(..at);
            break;
        }
        way.push(next);
    }
    let first = (0..way.len()).min_by_key(|at| &way[*at].id).unwrap_or_default();
    way.rotate_left(first);
    way
}

impl TaskFile {
    /// A fault of the key `after`.
    fn fault(&self, what: String) -> FleetFault {
        FleetFault { file: format!("{}.md", self.id), line: self.after_line, what }
    }
}

fn complete(
    task: TaskFile,
    fleet: &Asked,
    terms: &FleetTerms,
    hash: fn(&[u8]) -> String,
) -> FleetTask {
    let TaskFile { id, prompt, options, after, touches, priority, .. } = task;
    let words = options.over(fleet).words();
    let setup = terms.setup.clone().unwrap_or_default();
    // With its length in front, no part can pass for the end of the one before.
    let parts = [&prompt, &setup].into_iter().chain(&words);
    let text: Vec<String> = parts.map(|part| format!("{} {part}", part.len())).collect();
    let revision = hash(text.concat().as_bytes()).chars().take(REVISION_DIGITS).collect();
    FleetTask { id, prompt, words, after, touches, priority, revision }
}

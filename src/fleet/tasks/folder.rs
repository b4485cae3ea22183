//! The folder of a fleet as a whole: what fleet.toml says of all tasks, and the task files, in the
//! order in which they start. In a task file the front matter says how the task runs, and the text
//! under it is the prompt; a file that could be meant in two ways is refused. Unlike a settings
//! file these refuse a key that they do not know, because a fleet spends money while nobody looks.
//! One fault in one file is enough to refuse the folder.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Table;

use super::faults::Faults;
use super::front_matter::{KeyValue, split, toml};
use super::options::{
    FRONT_MATTER, FleetFile, FrontMatter, LAND, TASK, TOP, TaskOptions, is_option, key_name,
    laid_over, read, words,
};
use crate::engine::fleet::task::USUAL_PRIORITY;
use crate::engine::fleet::{FleetTask, TaskId};
use crate::parse::spelling::nearest;
use crate::world::store::hash;

/// The name of the file that holds for all tasks.
pub const FLEET_FILE: &str = "fleet.toml";
/// The end of a task file's name.
const ENDING: &str = ".md";
/// The hexadecimal digits of a revision.
const REVISION_DIGITS: usize = 12;
/// The largest prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 256 << 10;

/// A task as its own file says it.
struct TaskFile {
    /// Without words and without a revision: they come with what holds for all tasks.
    task: FleetTask,
    options: Table,
    /// The line of the key `after`, counted from 1.
    after_line: Option<usize>,
}

/// Whether a file of a fleet's folder is a task, by its name. A README and a file whose name begins
/// with `_` or `.` is not.
pub fn is_task(name: &str) -> bool {
    let stem = name.strip_suffix(ENDING);
    stem.is_some_and(|stem| !stem.eq_ignore_ascii_case("readme") && !name.starts_with(['_', '.']))
}

/// The task's name in the name of its file.
fn id_of(file: &str) -> Result<TaskId, String> {
    file.strip_suffix(ENDING).unwrap_or(file).parse()
}

/// Reads the files of a fleet's folder: each task file with its name, and the bytes of fleet.toml.
/// The tasks are in the order in which they start: by priority, then by name.
///
/// # Errors
/// Everything that is wrong in any of the files, by file and line.
pub fn read_folder(
    mut files: Vec<(String, Vec<u8>)>,
    fleet_toml: Option<&[u8]>,
) -> Result<(FleetFile, Vec<(FleetTask, TaskOptions)>), Vec<String>> {
    files.sort();
    let mut faults = Faults::default();
    let text = begin(FLEET_FILE, fleet_toml.unwrap_or_default(), &mut faults);
    let (fleet, shared) = read_fleet_file(text.unwrap_or_default(), &mut faults);
    let mut tasks = Vec::new();
    for (name, bytes) in &files {
        let text = begin(name, bytes, &mut faults);
        tasks.extend(text.and_then(|text| read_task(name, text, &mut faults)));
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    refuse_twins(&names, &mut faults);
    refuse_unknown_tasks(&names, &tasks, &mut faults);
    refuse_circles(&tasks, &mut faults);
    let mut whole: Vec<(FleetTask, TaskOptions)> = Vec::new();
    for task in tasks {
        faults.file = format!("{}{ENDING}", task.task.id);
        whole.extend(complete(task, &shared, fleet.setup.as_deref(), &mut faults));
    }
    let faults = faults.into_lines();
    if faults.is_empty() {
        whole.sort_by(|(one, _), (other, _)| one.turn(other));
        Ok((fleet, whole))
    } else {
        Err(faults)
    }
}

/// Reads a task file; `name` is that of the file, with its ending. Where something is wrong in it,
/// the rest still counts for what is wrong between files: a fault here must not hide one there.
fn read_task(name: &str, text: &str, faults: &mut Faults) -> Option<TaskFile> {
    let id = id_of(name).map_err(|why| faults.at(None, format!("{why}; rename the file"))).ok();
    let (entries, body) = split(text).map_err(|(line, what)| faults.at(line, what)).ok()?;
    let prompt = body.trim_start_matches(['\r', '\n']).trim_end();
    if prompt.trim().is_empty() {
        faults.at(None, "there is no prompt: write what is to be done under the front matter");
    } else if prompt.contains('\0') {
        faults.at(None, "the prompt holds a NUL character: is it a text?");
    }
    if prompt.len() > MAX_PROMPT_BYTES {
        let [has, most] = [prompt.len(), MAX_PROMPT_BYTES].map(|bytes| bytes.div_ceil(1 << 10));
        faults.at(None, format!(
            "the prompt has {has} KiB, and may have {most}: put some of it into another file, and name that"
        ));
    }
    let (options, own): (Vec<&KeyValue>, Vec<&KeyValue>) =
        entries.iter().partition(|entry| is_option(&key_name(&entry.key)));
    let (_, options) = read::<TaskOptions>(&options, FRONT_MATTER, faults);
    let (front, _) = read::<FrontMatter>(&own, FRONT_MATTER, faults);
    let after_line = own.iter().rfind(|entry| entry.key == "after").map(|entry| entry.line);
    let task = FleetTask {
        id: id?,
        prompt: prompt.to_owned(),
        words: Vec::new(),
        after: front.after,
        touches: front.touches,
        priority: front.priority.unwrap_or(USUAL_PRIORITY),
        revision: String::new(),
    };
    Some(TaskFile { task, options, after_line })
}

/// What fleet.toml says, and the options of `[task]`.
fn read_fleet_file(text: &str, faults: &mut Faults) -> (FleetFile, Table) {
    let entries = toml(text, &["land", "task"]).unwrap_or_else(|(line, what)| {
        faults.at(line, what);
        Vec::new()
    });
    let of = |table| entries.iter().filter(|entry| entry.table == table).collect::<Vec<_>>();
    let (fleet, _) = read::<FleetFile>(&of(""), TOP, faults);
    let (land, _) = read(&of("land"), LAND, faults);
    let (_, shared) = read::<TaskOptions>(&of("task"), TASK, faults);
    (FleetFile { land, ..fleet }, shared)
}

/// A task with the options that all tasks share, its words and its revision.
fn complete(
    file: TaskFile,
    shared: &Table,
    setup: Option<&str>,
    faults: &mut Faults,
) -> Option<(FleetTask, TaskOptions)> {
    let TaskFile { mut task, options, .. } = file;
    let options = laid_over(shared, options);
    task.words = words(&options);
    // With its length in front, no part can pass for the end of the one before.
    let parts = [&*task.prompt, setup.unwrap_or_default()].into_iter();
    let parts = parts.chain(task.words.iter().map(String::as_str));
    let text: Vec<String> = parts.map(|part| format!("{} {part}", part.len())).collect();
    task.revision = hash(text.concat().as_bytes()).chars().take(REVISION_DIGITS).collect();
    match TaskOptions::deserialize(options) {
        Ok(options) => Some((task, options)),
        Err(error) => {
            faults.at(None, error.message());
            None
        }
    }
}

/// Begins with a file: its bytes as text. What is not UTF-8 would reach an agent as other words.
fn begin<'bytes>(name: &str, bytes: &'bytes [u8], faults: &mut Faults) -> Option<&'bytes str> {
    name.clone_into(&mut faults.file);
    let refused = |error: std::str::Utf8Error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        faults.at(line, "this is not UTF-8: save the file as UTF-8");
    };
    let text = std::str::from_utf8(bytes).map_err(refused).ok()?;
    text.clone_into(&mut faults.text);
    Some(text)
}

/// Names that differ only in case: one branch, where the file system ignores case.
fn refuse_twins(names: &[&str], faults: &mut Faults) {
    let mut first = BTreeMap::new();
    for name in names {
        let twin = *first.entry(name.to_lowercase()).or_insert(name);
        if twin != name {
            (*name).clone_into(&mut faults.file);
            faults.at(None, format!("its name differs from {twin} only in case, and branches on some machines ignore that: rename one"));
        }
    }
}

/// What a task waits for that is not in the folder.
fn refuse_unknown_tasks(names: &[&str], tasks: &[TaskFile], faults: &mut Faults) {
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
fn refuse_circles(tasks: &[TaskFile], faults: &mut Faults) {
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
    faults.file = format!("{}{ENDING}", task.task.id);
    faults.at(task.after_line, what);
}

/// The circle that a task leads into, where each task waits for another that does.
fn circle<'task>(
    start: &'task TaskFile,
    waiting: &BTreeMap<&TaskId, &'task TaskFile>,
) -> Vec<&'task TaskFile> {
    let mut path = vec![start];
    while let Some(next) = path[path.len() - 1].task.after.iter().find_map(|id| waiting.get(id)) {
        if let Some(at) = path.iter().position(|task| task.task.id == next.task.id) {
            path.drain(..at);
            break;
        }
        path.push(next);
    }
    let first = (0..path.len()).min_by_key(|at| &path[*at].task.id).unwrap_or_default();
    path.rotate_left(first);
    path
}

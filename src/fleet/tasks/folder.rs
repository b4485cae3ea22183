//! The folder of a fleet as a whole: what fleet.toml says about all tasks, and the task files,
//! sorted by when they start. A task file's front matter says how the task runs, and the text below
//! it is the prompt. Ambiguous files are refused, and so are unknown keys, unlike in settings
//! files, because a fleet spends money unattended. One fault in one file is enough to refuse the
//! folder.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::Table;

use super::front_matter::{FLEET_FILE, Faults, read_toml, split_front_matter};
use super::options::{
    FRONT_MATTER, FleetFile, LAND, TASK, TOP, TaskOptions, laid_over, option_words, read_options,
};
use engine::fleet::{FleetTask, TaskId, USUAL_PRIORITY};
use readers::parse::spelling::find_nearest;
use world::store::hash;

/// The extension of a task file.
const ENDING: &str = ".md";
/// The number of hexadecimal digits in a revision.
const REVISION_DIGITS: usize = 12;
/// The maximum size of a prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 256 << 10;

/// A task file, with what fleet.toml adds to it.
struct TaskFile {
    task: FleetTask,
    options: TaskOptions,
    /// The line of the key `after`, counted from 1.
    after_line: Option<usize>,
}

/// Whether a file in a fleet's folder is a task, judged by its name. A README, or a file whose name
/// begins with `_` or `.`, is not a task.
pub fn is_task(name: &str) -> bool {
    let stem = name.strip_suffix(ENDING);
    stem.is_some_and(|stem| !stem.eq_ignore_ascii_case("readme") && !name.starts_with(['_', '.']))
}

/// The contents of a folder: what applies to all tasks, and each task.
type ReadFolder = (FleetFile, Vec<(FleetTask, TaskOptions)>);

/// A file's name and its bytes.
pub type NamedBytes = (String, Vec<u8>);

/// Reads the files of a fleet's folder: the task files, and the bytes of fleet.toml.
/// The tasks are sorted by when they start: by priority, then by name.
///
/// # Errors
/// All faults in the files, by file and line.
pub fn read_folder(
    mut files: Vec<NamedBytes>,
    fleet_toml: Option<&[u8]>,
) -> Result<ReadFolder, Vec<String>> {
    files.sort();
    let mut faults = Faults::default();
    let text = decode_file(FLEET_FILE, fleet_toml.unwrap_or_default(), &mut faults);
    let (fleet, shared) = read_fleet_file(text.unwrap_or_default(), &mut faults);
    let (mut tasks, mut first) = (Vec::new(), BTreeMap::new());
    for (name, bytes) in &files {
        let text = decode_file(name, bytes, &mut faults);
        // Their branches would be the same on a file system that ignores case.
        let twin = *first.entry(name.to_lowercase()).or_insert(name);
        if twin != name {
            faults.add(None, format!("its name differs from {twin} only in case, and branches on some machines ignore that: rename one"));
        }
        let stem = name.strip_suffix(ENDING).unwrap_or(name);
        let setup = fleet.setup.as_deref();
        tasks.extend(text.and_then(|text| read_task(stem, text, (&shared, setup), &mut faults)));
    }
    let names: Vec<&str> = files.iter().filter_map(|(name, _)| name.strip_suffix(ENDING)).collect();
    refuse_unknown_tasks(&names, &tasks, &mut faults);
    refuse_circles(&tasks, &mut faults);
    faults.into_result()?;
    tasks.sort_by(|one, other| one.task.compare_turn(&other.task));
    Ok((fleet, tasks.into_iter().map(|file| (file.task, file.options)).collect()))
}

/// Starts reading a file, and decodes its bytes. Text that is not UTF-8 would reach an agent
/// garbled.
fn decode_file<'bytes>(
    name: &str,
    bytes: &'bytes [u8],
    faults: &mut Faults,
) -> Option<&'bytes str> {
    name.clone_into(&mut faults.file);
    let read = std::str::from_utf8(bytes);
    if let Err(error) = read {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        faults.add(line, "this is not UTF-8: save the file as UTF-8");
    }
    read.unwrap_or_default().clone_into(&mut faults.text);
    read.ok()
}

/// Reads fleet.toml, and the options under its `[task]`.
fn read_fleet_file(text: &str, faults: &mut Faults) -> (FleetFile, Table) {
    let entries = read_toml(text, &["land", "task"]).unwrap_or_else(|(line, what)| {
        faults.add(line, what);
        Vec::new()
    });
    let of = |table| entries.iter().filter(move |entry| entry.table == table);
    let mut fleet = read_options::<FleetFile>(of(""), TOP, faults);
    fleet.extend(read_options::<FleetFile>(of("land"), LAND, faults));
    let shared = read_options::<TaskOptions>(of("task"), TASK, faults);
    (all_of(fleet, faults), shared)
}

/// Reads keys together that were already checked one by one. A failure is reported, not ignored.
fn all_of<T: DeserializeOwned + Default>(keys: Table, faults: &mut Faults) -> T {
    T::deserialize(keys).unwrap_or_else(|error| {
        faults.add(None, error.message().to_owned());
        T::default()
    })
}

/// Reads a task file, with the options that all tasks share and the setup of their clones. If part
/// of it is wrong, the rest is still used to find faults between files, so that no fault hides
/// another.
fn read_task(
    name: &str,
    text: &str,
    (shared, setup): (&Table, Option<&str>),
    faults: &mut Faults,
) -> Option<TaskFile> {
    let id = name
        .parse::<TaskId>()
        .map_err(|why| faults.add(None, format!("{why}; rename the file")))
        .ok();
    let (entries, body) =
        split_front_matter(text).map_err(|(line, what)| faults.add(line, what)).ok()?;
    let prompt = body.trim_start_matches(['\r', '\n']).trim_end();
    if prompt.trim().is_empty() {
        faults.add(None, "the prompt is missing: write what is to be done under the front matter");
    } else if prompt.contains('\0') {
        faults.add(None, "the prompt contains a NUL character: is it a text file?");
    }
    if prompt.len() > MAX_PROMPT_BYTES {
        let [has, most] = [prompt.len(), MAX_PROMPT_BYTES].map(|bytes| bytes.div_ceil(1 << 10));
        faults.add(None, format!(
            "the prompt has {has} KiB, and may have {most}: put some of it into another file, and name that"
        ));
    }
    let all = laid_over(shared, read_options::<TaskOptions>(&entries, FRONT_MATTER, faults));
    let words = option_words(&all);
    // Each part begins with its length, so that no part can be mistaken for the end of the previous
    // one.
    let parts = [prompt, setup.unwrap_or_default()].into_iter();
    let parts = parts.chain(words.iter().map(String::as_str));
    let runs = parts.map(|part| format!("{} {part}", part.len())).collect::<Vec<_>>().concat();
    let options: TaskOptions = all_of(all, faults);
    let task = FleetTask {
        id: id?,
        prompt: prompt.to_owned(),
        words,
        after: options.after.clone(),
        touches: options.touches.clone(),
        priority: options.priority.unwrap_or(USUAL_PRIORITY),
        revision: hash(runs.as_bytes()).chars().take(REVISION_DIGITS).collect(),
    };
    let after_line = entries.iter().rfind(|entry| entry.key == "after").map(|entry| entry.line);
    Some(TaskFile { task, options, after_line })
}

/// Adds a fault for each task that waits for one that is not in the folder.
fn refuse_unknown_tasks(known: &[&str], tasks: &[TaskFile], faults: &mut Faults) {
    // A name of one or two letters is part of too many others.
    let names: Vec<&str> = known.iter().copied().filter(|name| name.len() > 2).collect();
    for task in tasks {
        for id in task.task.after.iter().filter(|id| !known.contains(&id.as_str())) {
            let guess = match find_nearest(id.as_str(), &names) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "after names files of this folder, without .md".to_owned(),
            };
            task.refuse_after(faults, format!("task `{id}` does not exist: {guess}"));
        }
    }
}

/// Adds a fault for tasks that wait for each other. Each task is named once, in the first cycle
/// found.
fn refuse_circles(tasks: &[TaskFile], faults: &mut Faults) {
    let mut waiting: BTreeMap<&TaskId, &TaskFile> =
        tasks.iter().map(|task| (&task.task.id, task)).collect();
    for start in tasks {
        let mut path = vec![start];
        while let Some(last) = path.last() {
            let Some(next) = last.task.after.iter().find_map(|id| waiting.get(id).copied()) else {
                waiting.remove(&last.task.id);
                path.pop();
                continue;
            };
            let Some(at) = path.iter().position(|task| task.task.id == next.task.id) else {
                path.push(next);
                continue;
            };
            let circle = path.split_off(at);
            let names = circle.iter().chain(&circle[..1]).map(|task| task.task.id.as_str());
            let names = names.collect::<Vec<_>>().join(" → ");
            circle[0].refuse_after(faults, format!("these tasks wait for each other: {names}"));
            for task in circle {
                waiting.remove(&task.task.id);
            }
        }
    }
}

impl TaskFile {
    /// Adds a fault in the task's key `after`.
    fn refuse_after(&self, faults: &mut Faults, what: String) {
        faults.file = format!("{}{ENDING}", self.task.id);
        faults.add(self.after_line, what);
    }
}

//! The folder of a fleet as a whole: what fleet.toml says of all tasks, and the task files, in the
//! order in which they start. In a task file the front matter says how the task runs, and the text
//! under it is the prompt; a file that could be meant in two ways is refused. Unlike a settings
//! file these refuse a key that they do not know, because a fleet spends money while nobody looks.
//! One fault in one file is enough to refuse the folder.

use std::collections::{BTreeMap, BTreeSet};

use super::front_matter::{Faults, FileValue, KeyValue, split, toml};
use super::options::{
    Asked, COMMAND, LAND_KEYS, TASK_KEYS, TOP_KEYS, each, key_name, refuse, refuse_key,
    refuse_repeats,
};
use crate::engine::boundary::protect;
use crate::engine::fleet::manifest::{MAX_PRIORITY, USUAL_PRIORITY};
use crate::engine::fleet::{FleetTask, FleetTerms, TaskId};
use crate::parse::amounts::Unit;
use crate::parse::arguments;
use crate::parse::settings::is_branch;
use crate::parse::spelling::nearest;

/// The name of the file that holds for all tasks.
pub const FLEET_FILE: &str = "fleet.toml";
/// The end of a task file's name.
const ENDING: &str = ".md";
/// The hexadecimal digits of a revision.
const REVISION_DIGITS: usize = 12;

/// The largest prompt, in bytes. A lease holds it twice, as JSON, in the message of a commit, which
/// git keeps up to 1 MiB: half of that is left for escapes, checks and messages.
const MAX_PROMPT_BYTES: usize = 256 << 10;

/// A task as its own file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFile {
    /// Without words and without a revision: they come with what holds for all tasks.
    pub task: FleetTask,
    pub options: Asked,
    /// The line of the key `after`, counted from 1.
    pub after_line: Option<usize>,
}

/// Whether a file of a fleet's folder is a task, by its name. A README and a file whose name begins
/// with `_` or `.` is none.
pub fn is_task(name: &str) -> bool {
    let stem = name.strip_suffix(ENDING);
    stem.is_some_and(|stem| !stem.eq_ignore_ascii_case("readme") && !name.starts_with(['_', '.']))
}

/// The task's name in the name of its file.
pub(super) fn id_of(file: &str) -> Result<TaskId, String> {
    file.strip_suffix(ENDING).unwrap_or(file).parse()
}

/// Reads a task file; `name` is that of the file, with its ending. Where something is wrong in it,
/// the rest still counts for what is wrong between files: a fault here must not hide one there.
pub(super) fn read_task(name: &str, text: &str, faults: &mut Faults) -> Option<TaskFile> {
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
    refuse_repeats(&entries, faults);
    let (mut after, mut after_line) = (Vec::new(), None);
    let (mut touches, mut priority) = (Vec::new(), USUAL_PRIORITY);
    let mut options = Asked::default();
    for entry in &entries {
        match key_name(&entry.key).as_str() {
            "after" => {
                let wanted = || "the name of a task or a list such as [a, b]".to_owned();
                let name = |text: &str| text.parse().map_err(|_| wanted());
                (after, after_line) = (each(entry, faults, name), Some(entry.line));
            }
            "touches" => {
                let glob = |text: &str| protect::glob(text).map(|_| text.to_owned());
                touches = each(entry, faults, glob);
            }
            "priority" => {
                let number = entry.value.text().ok().and_then(|text| text.parse().ok());
                priority = number.filter(|number| *number <= MAX_PRIORITY).unwrap_or_else(|| {
                    let wanted = "a whole number from 0 to 9, the most urgent";
                    refuse(entry, wanted, &entry.value, faults);
                    USUAL_PRIORITY
                });
            }
            _ => options.take(entry, &TASK_KEYS, faults),
        }
    }
    options.check(faults);
    let (prompt, words, revision) = (prompt.to_owned(), Vec::new(), String::new());
    let task = FleetTask { id: id?, prompt, words, after, touches, priority, revision };
    Some(TaskFile { task, options, after_line })
}

/// The terms of fleet.toml, and the options of `[task]` in a form that a task's own can be laid
/// over.
pub(super) fn read_terms(text: &str, faults: &mut Faults) -> (FleetTerms, Asked) {
    let (mut terms, mut asked) = (FleetTerms::default(), Asked::default());
    let entries = toml(text).unwrap_or_else(|(line, what)| {
        faults.at(line, what);
        Vec::new()
    });
    refuse_repeats(&entries, faults);
    for entry in &entries {
        match (entry.key.as_str(), &entry.value) {
            ("task", FileValue::Table(keys)) => {
                refuse_repeats(keys, faults);
                for entry in keys {
                    asked.take(entry, &[], faults);
                }
            }
            ("land", FileValue::Table(keys)) => {
                refuse_repeats(keys, faults);
                for entry in keys {
                    if LAND_KEYS.contains(&entry.key.as_str()) {
                        terms.land_check = each(entry, faults, a_command);
                    } else {
                        refuse_key(entry, &LAND_KEYS, false, faults);
                    }
                }
            }
            _ => take_term(&mut terms, entry, faults),
        }
    }
    asked.check(faults);
    terms.words = asked.words();
    (terms, asked)
}

/// A key above the tables.
fn take_term(terms: &mut FleetTerms, entry: &KeyValue, faults: &mut Faults) {
    let text = entry.value.text().ok().and_then(|text| a_command(text).ok());
    let (is_fit, wanted) = match key_name(&entry.key).as_str() {
        "name" => {
            terms.name = text.filter(|text| text.parse::<TaskId>().is_ok());
            (terms.name.is_some(), "a name fit for a branch")
        }
        "base" => {
            terms.base = text.filter(|text| is_branch(text));
            (terms.base.is_some(), "a branch")
        }
        "slots" => {
            let slots = text.and_then(|text| arguments::whole(&text).ok());
            terms.slots = slots.filter(|slots| *slots > 0);
            (terms.slots.is_some(), "a whole number from 1")
        }
        "max-cost" => {
            terms.max_cost_micros = text.and_then(|text| Unit::Dollars.read(&text).ok());
            (terms.max_cost_micros.is_some(), "an amount in US dollars")
        }
        "setup" => {
            terms.setup = text;
            (terms.setup.is_some(), COMMAND)
        }
        _ => return refuse_key(entry, &TOP_KEYS, false, faults),
    };
    if !is_fit {
        refuse(entry, wanted, &entry.value, faults);
    }
}

/// A text that is not blank.
fn a_command(text: &str) -> Result<String, String> {
    let is_blank = text.trim().is_empty() || text.contains('\0');
    if is_blank { Err(COMMAND.to_owned()) } else { Ok(text.to_owned()) }
}

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
    let (terms, asked) = read_terms(terms.unwrap_or_default(), &mut faults);
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
            faults.at(None, format!("its name differs from {twin} only in case, and branches on some machines ignore that: rename one"));
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

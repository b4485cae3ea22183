//! A task file: the front matter says how the task runs, the text under it is the prompt. A file
//! that could be meant in two ways is refused.

use super::faults::{Faults, FleetFault};
use super::front_matter::{KeyValue, split};
use super::keys::{TASK_KEYS, home_of};
use super::options::{Asked, each, key_name, refuse, refuse_repeats};
use crate::engine::boundary::protect;
use crate::engine::fleet::TaskId;
use crate::engine::fleet::manifest::{MAX_PRIORITY, USUAL_PRIORITY};

/// The end of a task file's name.
const ENDING: &str = ".md";

/// The largest prompt, in bytes. A lease holds it twice, as JSON, in the message of a commit, which
/// git keeps up to 1 MiB: half of that is left for escapes, checks and messages.
const MAX_PROMPT_BYTES: usize = 256 << 10;

/// A task as its own file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFile {
    pub id: TaskId,
    /// The text under the front matter, without blank lines around it.
    pub prompt: String,
    pub options: Asked,
    pub after: Vec<TaskId>,
    /// The line of the key `after`, counted from 1.
    pub after_line: Option<usize>,
    pub touches: Vec<String>,
    /// From 0 to 9, the most urgent.
    pub priority: u8,
}

/// A task file in which something is wrong.
#[derive(Debug)]
pub struct RefusedTask {
    /// All of it, by line.
    pub faults: Vec<FleetFault>,
    /// The rest, for what is wrong between files: a fault here must not hide one there.
    pub rest: Option<Box<TaskFile>>,
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

/// Reads a task file; `name` is that of the file, with its ending.
///
/// # Errors
/// Everything that is wrong in it.
pub fn read_task(name: &str, text: &str) -> Result<TaskFile, RefusedTask> {
    let mut faults = Faults::of(name);
    let id = id_of(name).map_err(|why| faults.whole(format!("{why}; rename the file"))).ok();
    let (entries, body) = match split(text) {
        Ok(parts) => parts,
        Err((line, what)) => {
            faults.at(line, what);
            return Err(RefusedTask { faults: faults.sorted(), rest: None });
        }
    };
    let prompt = body.trim_start_matches(['\r', '\n']).trim_end();
    if prompt.trim().is_empty() {
        faults.whole("there is no prompt: write what is to be done under the front matter");
    } else if prompt.contains('\0') {
        faults.whole("the prompt holds a NUL character: is it a text?");
    }
    if prompt.len() > MAX_PROMPT_BYTES {
        let [has, most] = [prompt.len(), MAX_PROMPT_BYTES].map(|bytes| bytes.div_ceil(1 << 10));
        faults.whole(format!(
            "the prompt has {has} KiB, and may have {most}: put some of it into another file, and name that"
        ));
    }
    refuse_repeats(entries.iter(), &mut faults);
    let (mut after, mut after_line) = (Vec::new(), None);
    let (mut touches, mut priority) = (Vec::new(), USUAL_PRIORITY);
    let mut options = Asked::default();
    for entry in &entries {
        match key_name(&entry.key).as_str() {
            "after" => {
                let wanted = || "the name of a task or a list such as [a, b]".to_owned();
                let name = |text: &str| text.parse().map_err(|_| wanted());
                (after, after_line) = (each(entry, &mut faults, name), Some(entry.line));
            }
            "touches" => {
                let glob = |text: &str| protect::glob(text).map(|_| text.to_owned());
                touches = each(entry, &mut faults, glob);
            }
            "priority" => priority = urgency(entry, &mut faults),
            name => match home_of(name) {
                Some(home) => faults.at(entry.line, format!("`{name}` belongs {home}")),
                None => options.take(entry, &TASK_KEYS, &mut faults),
            },
        }
    }
    options.check(&mut faults);
    let prompt = prompt.to_owned();
    let whole = |id| TaskFile { id, prompt, options, after, after_line, touches, priority };
    let (task, faults) = (id.map(whole), faults.sorted());
    match task {
        Some(task) if faults.is_empty() => Ok(task),
        rest => Err(RefusedTask { faults, rest: rest.map(Box::new) }),
    }
}

fn urgency(entry: &KeyValue, faults: &mut Faults<'_>) -> u8 {
    let number = entry.value.text().ok().and_then(|text| text.parse().ok());
    number.filter(|number| *number <= MAX_PRIORITY).unwrap_or_else(|| {
        let wanted = "a whole number from 0 to 9, the most urgent";
        refuse(entry, wanted, &entry.value, faults);
        USUAL_PRIORITY
    })
}

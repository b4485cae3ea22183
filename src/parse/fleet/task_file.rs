//! A task file: the front matter says how the task runs, the text under it is the prompt. A file
//! that could be meant in two ways is refused.

use super::faults::Faults;
use super::front_matter::split;
use super::options::{Asked, TASK_KEYS, each, key_name, refuse, refuse_repeats};
use crate::engine::boundary::protect;
use crate::engine::fleet::manifest::{MAX_PRIORITY, USUAL_PRIORITY};
use crate::engine::fleet::{FleetTask, TaskId};

/// The end of a task file's name.
const ENDING: &str = ".md";

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
    let id = id_of(name).map_err(|why| faults.whole(format!("{why}; rename the file"))).ok();
    let (entries, body) = split(text).map_err(|(line, what)| faults.at(line, what)).ok()?;
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

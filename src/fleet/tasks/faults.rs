//! What is wrong in the files of a fleet, collected so that all of it is reported together.

use engine::text::join_first_names;
use readers::parse::spelling::shorten_text;

/// The name of the file that holds for all tasks.
pub const FLEET_FILE: &str = "fleet.toml";
/// The most files that a line names.
const NAMED_MAX: usize = 8;

/// The faults so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The name of the file that is read.
    pub(super) file: String,
    /// What is in it.
    pub(super) text: String,
    found: Vec<Fault>,
}

/// What is wrong in one file. They sort by file and line, those of fleet.toml first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fault {
    is_of_task: bool,
    file: String,
    line: Option<usize>,
    what: String,
}

impl Faults {
    /// A fault at a line, counted from 1; without one, of the whole file. `what`: what is wrong and
    /// what to write instead, in one line.
    pub(super) fn add(&mut self, line: impl Into<Option<usize>>, what: impl Into<String>) {
        let (file, line, what) = (self.file.clone(), line.into(), what.into());
        self.found.push(Fault { is_of_task: file != FLEET_FILE, file, line, what });
    }

    /// A fault of what a line says: "LINE: WHY".
    pub(super) fn add_error(&mut self, line: usize, why: &str) {
        let written = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        self.add(line, format!("{}: {why}", shorten_text(written.trim().trim_end_matches(':'))));
    }

    /// Nothing was found.
    ///
    /// # Errors
    /// A line for each fault. What is wrong with several files as a whole is one.
    pub(super) fn into_result(mut self) -> Result<(), Vec<String>> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort();
        let mut rows: Vec<(Vec<String>, String)> = Vec::new();
        for Fault { file, line, what, .. } in self.found {
            // A name may have a line break in it.
            let file = shorten_text(&file);
            if let Some(line) = line {
                rows.push((vec![format!("{file}:{line}")], what));
            } else if let Some((files, _)) = rows.iter_mut().find(|(_, known)| *known == what) {
                files.push(file);
            } else {
                rows.push((vec![file], what));
            }
        }
        let line = |(files, what): &(Vec<String>, String)| {
            format!("{}: {what}", join_first_names(files, NAMED_MAX))
        };
        Err(rows.iter().map(line).collect())
    }
}

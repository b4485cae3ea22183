//! What is wrong in the files of a fleet: one sentence each, with the file and the line. Reading
//! continues behind a fault, so that all of them are told together.

use std::fmt;

/// Something wrong in one file of a fleet. They sort by file and line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FleetFault {
    /// The file's name.
    pub file: String,
    /// Counted from 1; `None` if it is not in one line.
    pub line: Option<usize>,
    /// What is wrong and what to write instead, in one line.
    pub what: String,
}

impl fmt::Display for FleetFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(out, "{}:{line}: {}", self.file, self.what),
            None => write!(out, "{}: {}", self.file, self.what),
        }
    }
}

/// The faults so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The file that is read.
    pub(super) file: String,
    pub(super) found: Vec<FleetFault>,
}

impl Faults {
    /// A fault at a line, counted from 1.
    pub(super) fn at(&mut self, line: impl Into<Option<usize>>, what: impl Into<String>) {
        let (file, line, what) = (self.file.clone(), line.into(), what.into());
        self.found.push(FleetFault { file, line, what });
    }

    /// A fault of the whole file.
    pub(super) fn whole(&mut self, what: impl Into<String>) {
        self.at(None, what);
    }
}

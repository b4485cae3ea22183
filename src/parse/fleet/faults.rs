//! What is wrong in the files of a fleet: one sentence each, with the file and the line. Reading
//! goes on behind a fault, so that all of them are told together.

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

/// The faults of one file so far.
#[derive(Debug)]
pub(super) struct Faults<'file> {
    file: &'file str,
    found: Vec<FleetFault>,
}

impl<'file> Faults<'file> {
    pub(super) fn of(file: &'file str) -> Self {
        Self { file, found: Vec::new() }
    }

    /// A fault at a line, counted from 1.
    pub(super) fn at(&mut self, line: usize, what: impl Into<String>) {
        self.add(Some(line), what.into());
    }

    /// A fault of the whole file.
    pub(super) fn whole(&mut self, what: impl Into<String>) {
        self.add(None, what.into());
    }

    fn add(&mut self, line: Option<usize>, what: String) {
        self.found.push(FleetFault { file: self.file.to_owned(), line, what });
    }

    /// All of them, by line.
    pub(super) fn sorted(mut self) -> Vec<FleetFault> {
        self.found.sort();
        self.found
    }
}

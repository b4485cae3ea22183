//! Where a prompt's text comes from: one of crew's own by name, or a file, which a reader is asked
//! for. Nothing here opens one.

use std::fmt;
use std::path::{Path, PathBuf};

use super::built_in;

/// The door to the files of fragments and includes.
pub trait Files {
    /// The text of a file, bounded, that the file `named_by` includes, or that is a fragment and
    /// named by itself. The error names the file and the cause.
    fn read(&self, path: &Path, named_by: &Path) -> Result<String, String>;
}

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// One of crew's own, by name.
    BuiltIn(String),
    File(PathBuf),
}

impl Source {
    /// Whether its text is a template; any other is literal.
    pub fn is_template(&self) -> bool {
        match self {
            Self::BuiltIn(_) => true,
            Self::File(path) => path.extension() == Some("hbs".as_ref()),
        }
    }

    /// What a template here means by including `name`: `crew/NAME.hbs` is one of crew's own; any
    /// other is a file, seen from the folder of the file that names it.
    pub fn include(&self, name: &str) -> Result<Self, String> {
        if let Some(own) = name.strip_prefix("crew/").and_then(|own| own.strip_suffix(".hbs")) {
            return Ok(Self::BuiltIn(own.to_owned()));
        }
        match self {
            Self::BuiltIn(_) => Err(format!("`{name}` is none of crew's own templates")),
            Self::File(path) => Ok(Self::File(plain(&path.with_file_name(name)))),
        }
    }

    /// Its text, as `includer` may have it; a fragment has none.
    pub fn text(&self, files: &dyn Files, includer: Option<&Self>) -> Result<String, String> {
        match self {
            Self::BuiltIn(name) => built_in::template(name).map(str::to_owned),
            Self::File(path) => match includer {
                Some(Self::File(includer)) => files.read(path, includer),
                _ => files.read(path, path),
            },
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(out, "crew/{name}.hbs"),
            Self::File(path) => path.display().fmt(out),
        }
    }
}

/// The path without `.` and with `..` taken literally, so that one file has one name.
fn plain(path: &Path) -> PathBuf {
    use std::path::Component::{CurDir, Normal, ParentDir};
    let mut plain = PathBuf::new();
    for part in path.components() {
        let can_climb = matches!(plain.components().next_back(), Some(Normal(_)));
        match part {
            CurDir => {}
            ParentDir if can_climb => {
                plain.pop();
            }
            _ => plain.push(part),
        }
    }
    plain
}

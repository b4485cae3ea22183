//! Where a prompt's text comes from: a built-in template by name, or a file, which the caller's
//! reader opens. Nothing here opens a file.

use std::fmt;
use std::path::{Path, PathBuf};

use super::built_in;
use crate::parse::fragment::plain;

/// Reads the files of fragments and includes.
pub trait Files {
    /// The bounded text of a file that `named_by` includes; a fragment is named by itself. The
    /// error names the file and the cause.
    fn read(&self, path: &Path, named_by: &Path) -> Result<String, String>;
}

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A built-in template, by name.
    BuiltIn(String),
    File(PathBuf),
}

impl Source {
    /// The source with this name: the inverse of `to_string`.
    pub fn named(name: &str) -> Self {
        match name.strip_prefix("crew/").and_then(|own| own.strip_suffix(".j2")) {
            Some(own) => Self::BuiltIn(own.to_owned()),
            None => Self::File(name.into()),
        }
    }

    /// Whether its text is a template; other text is literal.
    pub fn is_template(&self) -> bool {
        match self {
            Self::BuiltIn(_) => true,
            Self::File(path) => path.extension() == Some("j2".as_ref()),
        }
    }

    /// What `name` means when a template here includes it: `crew/NAME.j2` is a built-in template;
    /// anything else is a file, relative to the folder of the including file.
    pub fn include(&self, name: &str) -> Result<Self, String> {
        match (self, Self::named(name)) {
            (_, built_in @ Self::BuiltIn(_)) => Ok(built_in),
            (Self::BuiltIn(_), _) => Err(format!("`{name}` is none of crew's own templates")),
            (Self::File(path), _) => {
                let path = path.with_file_name(name);
                Ok(Self::File(plain(&path).unwrap_or(path)))
            }
        }
    }

    /// Its text, if `includer` may read it; a fragment has no includer.
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
            Self::BuiltIn(name) => write!(out, "crew/{name}.j2"),
            Self::File(path) => path.display().fmt(out),
        }
    }
}

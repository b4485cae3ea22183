//! An error as text: its causes on one line, and the way out on the next. A file operation that the
//! system refuses carries no way out, and gets one here. What git failed at is told apart.

use std::io::{self, ErrorKind};

use engine::git::{GitFault, GitTrouble};
use world::files::disk::Refused;
use world::store::StoreError;

/// The text of an error.
pub fn error_text(error: &anyhow::Error) -> String {
    let told = format!("{error:#}");
    match way_out(error).filter(|_| !told.contains("\nhint: ")) {
        Some(hint) => format!("{told}\nhint: {hint}"),
        None => told,
    }
}

/// What git said the trouble is, where that is what failed.
pub fn git_trouble(error: &anyhow::Error) -> Option<GitTrouble> {
    error.downcast_ref::<GitFault>().map(|fault| fault.trouble)
}

fn way_out(error: &anyhow::Error) -> Option<&'static str> {
    let refused = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(StoreError::Io(error)) => Some(error),
        _ => cause.downcast_ref::<io::Error>(),
    })?;
    refused.get_ref()?.is::<Refused>().then_some(())?;
    Some(match refused.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space on its disk",
        ErrorKind::NotFound => "correct the path",
        ErrorKind::FileTooLarge => "make it smaller, or move it away",
        _ => "make it readable and writable for you, or move away what is in its place",
    })
}

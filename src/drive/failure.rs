//! An error as the failure that the user reads: its causes on one line, and a hint. A file
//! operation that the system refuses has no hint of its own, and gets one here.

use std::io::{self, ErrorKind};

use anyhow::Error;

use engine::failure::{Failure, FailureKind};
use engine::git::{GitFault, GitTrouble};
use engine::text::one_line;
use world::files::disk::Refused;
use world::store::StoreError;

/// The maximum number of characters in an error on one line.
const SHORT_CHARS: usize = 1000;

/// The failure that the user reads for an error.
pub fn failure_of(error: &Error) -> Failure {
    let text = format!("{error:#}");
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return Failure { text, ..failure.clone() };
    }
    if let Some(fault) = error.downcast_ref::<GitFault>() {
        return Failure { text, ..fault.to_failure() };
    }
    let hint = hint_of_the_system(error).map(str::to_owned);
    Failure { hint, ..Failure::without_hint(FailureKind::Error, text) }
}

/// An error and its causes on one line, without its hint.
pub fn short_error(error: &Error) -> String {
    one_line(&format!("{error:#}"), SHORT_CHARS)
}

/// The kind of trouble that git reported, if a git step failed.
pub fn git_trouble(error: &Error) -> Option<GitTrouble> {
    error.downcast_ref::<GitFault>().map(|fault| fault.trouble)
}

fn hint_of_the_system(error: &Error) -> Option<&'static str> {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use engine::git::GitStep;
    use insta::assert_snapshot;
    use world::files::disk::cannot;

    use super::*;

    #[test]
    fn context_added_to_an_error_keeps_its_kind_and_its_hint() {
        let typed = Error::new(Failure::usage("there is no agent x", "did you mean y?"));
        let failure = failure_of(&typed.context("fallback x"));
        assert_eq!(failure.kind, FailureKind::Usage);
        assert_snapshot!(failure.with_hint(), @"
        fallback x: there is no agent x
        hint: did you mean y?
        ");
        let fault = GitFault::new(GitStep::Push, GitTrouble::NoRemote, "no remote", "add one");
        let failure = failure_of(&Error::new(fault).context("the last push"));
        assert_snapshot!(failure.in_a_line(), @"the last push: push failed: no remote; hint: add one");
        let refused = cannot("read", Path::new("/x"))(ErrorKind::NotFound.into());
        assert_snapshot!(failure_of(&refused.into()).in_a_line(), @"cannot read /x: entity not found; hint: correct the path");
        assert_eq!(failure_of(&Error::msg("odd\nhint: no")).hint, None);
    }

    #[test]
    fn an_error_in_one_line_leaves_out_the_hint_of_its_cause() {
        let error = Error::new(Failure::new("it holds:\n  a", "remove a")).context("stays");
        assert_snapshot!(short_error(&error), @"stays: it holds: a");
    }
}

//! Watches the folder of tasks while its fleet runs, and reads changes that the user has trusted.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::drive::failure::failure_of;
use crate::fleet::record::FleetTerms;
use crate::fleet::spec::DescribedTask;
use crate::fleet::tasks::{DescribedFleet, describe_fleet};
use engine::text::count;
use readers::parse::arguments::FleetRunArgs;
use world::clock::Deadline;
use world::env;
use world::files::disk;
use world::store::Home;

/// The pause between two reads.
const FOLDER_LOOK: Duration = Duration::from_secs(5);
/// The maximum number of files watched.
const FOLDER_MAX: usize = 20_000;

/// The folder of tasks, watched for changes.
pub(super) struct FolderWatch {
    arguments: FleetRunArgs,
    here: PathBuf,
    folder: PathBuf,
    trust: PathBuf,
    due: Deadline,
    /// The files as they were last read; empty before that, and if they could not be read.
    seen: Vec<(String, Option<(u64, i128)>)>,
    /// The last message about the folder.
    said: Option<String>,
}

impl FolderWatch {
    pub(super) fn new(home: &Home, arguments: &FleetRunArgs, terms: &FleetTerms) -> Result<Self> {
        Ok(Self {
            arguments: FleetRunArgs { base: Some(terms.base.clone()), ..arguments.clone() },
            here: env::current_folder()?,
            folder: terms.repository.join(&terms.folder),
            trust: home.trust_file(&terms.repository),
            due: Deadline::after(FOLDER_LOOK),
            seen: Vec::new(),
            said: None,
        })
    }

    fn read_stamps(&self) -> Vec<(String, Option<(u64, i128)>)> {
        let mut names = disk::names(&self.folder, FOLDER_MAX);
        names.sort();
        let files = names.into_iter().map(|name| {
            let stamp = disk::stamp(&self.folder.join(&name));
            (name, stamp)
        });
        files.chain([(String::new(), disk::stamp(&self.trust))]).collect()
    }

    /// Reads the fleet again if its folder has changed. Returns its terms and tasks, or a line with
    /// the reason why they stay as they were, such as text that the user has not trusted.
    pub(super) fn find_changes(
        &mut self,
        home: &Home,
    ) -> Option<Result<(FleetTerms, Vec<DescribedTask>), String>> {
        if !self.due.passed() {
            return None;
        }
        self.due = Deadline::after(FOLDER_LOOK);
        let seen = self.read_stamps();
        if seen == self.seen {
            return None;
        }
        self.seen = seen;
        let why = match describe_fleet(home, &self.arguments, &self.here) {
            Ok(DescribedFleet { terms, tasks, untrusted, .. }) if untrusted.is_empty() => {
                self.said = None;
                return Some(Ok((terms, tasks)));
            }
            Ok(found) => {
                let texts = found.untrusted.len();
                let wait = if texts == 1 { "waits" } else { "wait" };
                let texts = count(texts as u64, "new text");
                let run = found.terms.run_command();
                format!(
                    "{texts} in {} {wait} for trust: {run} in another terminal asks, and the next start",
                    found.terms.folder
                )
            }
            Err(error) => {
                self.seen.clear();
                format!("the tasks stay as they were: {}", failure_of(&error).in_a_line())
            }
        };
        let is_new = self.said.replace(why.clone()).as_ref() != Some(&why);
        is_new.then_some(Err(why))
    }
}

/// Whether a running fleet may adopt these terms.
pub(super) fn is_of(terms: &FleetTerms, new: &FleetTerms) -> bool {
    let is_same_place = terms.executor == new.executor && terms.remote == new.remote;
    is_same_place
        && (&terms.name, &terms.base, terms.landing) == (&new.name, &new.base, new.landing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tasks::fixture::{A_TASK, Yard};

    #[test]
    fn changes_before_the_first_read_are_found_and_unreadable_files_are_read_again() {
        let yard = Yard::new();
        let folder = yard.path("shop/tasks");
        let arguments = FleetRunArgs { folder, ..Yard::arguments() };
        let terms = yard.describe(&arguments).unwrap().terms;
        let mut watch = FolderWatch::new(&yard.home, &arguments, &terms).unwrap();
        let mut look = || {
            watch.due = Deadline::after(Duration::ZERO);
            let why = watch.find_changes(&yard.home)?.unwrap_err();
            Some((why, watch.seen.is_empty()))
        };
        let (why, is_forgotten) = look().unwrap();
        assert!(why.contains("for trust") && !is_forgotten, "{why}");
        assert_eq!(look(), None, "nothing has changed since");
        yard.write("shop/tasks/c.md", "---\nnothing: 1\n---\nDo it.\n");
        let (why, is_forgotten) = look().unwrap();
        assert!(why.starts_with("the tasks stay as they were") && is_forgotten, "{why}");
        yard.write("shop/tasks/c.md", A_TASK);
        assert!(look().unwrap().0.contains("for trust"));
    }
}

//! The protected paths of a loop, from crew's own look at the files. git is only asked what was in
//! the commit at which the loop started: which files git treats as unchanged or ignored is under
//! the agent's control.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::walk::{RULES_BYTES, Walk, Walked, rules};
use super::{disk, tree};
use crate::engine::boundary::protect::{Cover, IgnoreRules, Marks, Protected, Unseen};
use crate::engine::record::Loop;
use crate::world::clock::Deadline;
use crate::world::git;
use crate::world::store::home::git_hash;

/// The longest a look may take, without the time that git takes.
const LOOK: Duration = Duration::from_secs(20);
/// The most folder entries that a look visits.
const ENTRIES_MAX: usize = 500_000;
/// The same limit for a look at ignored files.
const LEFT_OUT_MAX: usize = 20_000;
/// The most marks a loop may start with: they are stored in the record.
const MARKS_MAX: usize = 50_000;
/// The largest file whose content is compared. For a larger one size and time are compared.
const MARKED_BYTES: u64 = 16 << 20;

/// The state that the protected paths are compared with from now on, and the paths that a glob
/// covers and git ignores.
pub fn begin(subject: &Loop) -> Result<(Protected, Vec<String>), Unseen> {
    let look = Look::at(subject)?;
    let everywhere = everywhere(subject)?;
    let found = IgnoreRules { everywhere, folders: BTreeMap::new() };
    let walked = look.walk(&found, true, true)?;
    let marks = look.marks(&walked.files)?;
    if marks.len() > MARKS_MAX {
        return Err(Unseen::TooMuch);
    }
    let mut left_out = walked.left_out;
    left_out.retain(|path| look.is_missed(path));
    left_out.sort();
    let ignored = IgnoreRules { folders: walked.rules, ..found };
    Ok((Protected { ignored, marks }, left_out))
}

/// The current marks.
pub fn look(subject: &Loop) -> Result<Marks, Unseen> {
    let look = Look::at(subject)?;
    let walked = if let Some(began) = &subject.protected {
        look.walk(&began.ignored, false, true)?
    } else {
        let rules = IgnoreRules { everywhere: everywhere(subject)?, ..IgnoreRules::default() };
        look.walk(&rules, true, false)?
    };
    look.marks(&walked.files)
}

/// The ignore rules that belong to no folder.
fn everywhere(subject: &Loop) -> Result<Vec<String>, Unseen> {
    let mut left = RULES_BYTES;
    let files = git::exclude_files(subject);
    let texts = files.iter().map(|file| rules(file, &mut left).ok_or(Unseen::TooMuch));
    texts.filter(|text| *text != Ok(String::new())).collect()
}

struct Look<'a> {
    top: &'a Path,
    cover: Cover,
    /// The covered files of the commit at which the loop started, each with the mark it would get.
    committed: BTreeMap<String, String>,
    /// `None` while the loop is starting.
    began: Option<&'a Protected>,
    /// The number of hexadecimal digits in the repository's hashes.
    digits: usize,
    deadline: Deadline,
}

impl<'a> Look<'a> {
    fn at(subject: &'a Loop) -> Result<Self, Unseen> {
        let cover = Cover::of(&subject.contract.protect);
        let mut committed = git::files(subject, cover.roots()).ok_or(Unseen::Git)?;
        committed.retain(|path, _| cover.covers(path) || cover.leads_plainly(path));
        Ok(Self {
            top: &subject.place.checkout,
            cover,
            committed,
            began: subject.protected.as_ref(),
            digits: subject.place.head.as_ref().map_or(0, String::len),
            deadline: Deadline::after(LOOK),
        })
    }

    fn walk(
        &self,
        rules: &IgnoreRules,
        reads_rules: bool,
        enters_repositories: bool,
    ) -> Result<Walked, Unseen> {
        let walk = Walk::over(self.top, &self.cover, rules, ENTRIES_MAX, self.deadline);
        Walk { reads_rules, enters_repositories, ..walk }.walk().ok_or(Unseen::TooMuch)
    }

    /// Whether an ignored path is or contains a file that a glob covers and the commit does not
    /// have. If answering takes more than a short look, the answer is no.
    fn is_missed(&self, path: &str) -> bool {
        let plain = path.trim_end_matches('/');
        if self.cover.covers(plain) {
            return !self.committed.contains_key(plain);
        }
        let rules = IgnoreRules::default();
        let walk = Walk::over(self.top, &self.cover, &rules, LEFT_OUT_MAX, self.deadline);
        let walk = Walk { from: plain.into(), ..walk };
        let holds_one = || walk.walk().is_some_and(|walked| !walked.files.is_empty());
        path.ends_with('/') && holds_one()
    }

    /// Marks what differs from the commit. It looks at the walked files, the files of the commit,
    /// and the files that were marked when the loop started: what git tracked or saw then is
    /// checked even if it is ignored now.
    fn marks(&self, walked: &[PathBuf]) -> Result<Marks, Unseen> {
        let no_marks = Marks::new();
        let began = self.began.map_or(&no_marks, |began| &began.marks);
        let known = self.committed.keys().filter(|path| self.cover.covers(path));
        let known = known.chain(began.keys()).map(|path| (path.clone(), (path.into(), false)));
        let walked =
            walked.iter().map(|path| (path.to_string_lossy().into_owned(), (path.clone(), true)));
        let paths: BTreeMap<String, (PathBuf, bool)> = known.chain(walked).collect();
        let mut marks = Marks::new();
        for (text, (path, is_walked)) in paths {
            if self.deadline.passed() {
                return Err(Unseen::TooMuch);
            }
            let is_hidden = !is_walked && self.is_behind_a_link(&path);
            let mark = if is_hidden { "gone".to_owned() } else { self.mark(&path) };
            if self.committed.get(&text) != Some(&mark) {
                marks.insert(text, mark);
            }
        }
        Ok(marks)
    }

    fn is_behind_a_link(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| self.top.join(above).is_symlink())
    }

    /// The first word is the kind of what is there; the rest is the hash of its content, as git
    /// computes it.
    fn mark(&self, path: &Path) -> String {
        let file = self.top.join(path);
        let hash = |bytes: &[u8]| git_hash(bytes, self.digits);
        let content = || Some(hash(&disk::read(&file, MARKED_BYTES).ok()??));
        match tree::kind(&file) {
            "link" => {
                let target = fs::read_link(&file).unwrap_or_default();
                let link = format!("link {}", hash(target.as_os_str().as_bytes()));
                content().map_or(link.clone(), |content| format!("{link} {content}"))
            }
            kind @ ("file" | "program") => {
                let content = content().unwrap_or_else(|| format!("{:?}", disk::stamp(&file)));
                format!("{kind} {content}")
            }
            kind => kind.to_owned(),
        }
    }
}

//! Brings the objects of a repository into the private git dir: as second names of its files, which
//! never change; as copies where the disk cannot; and those it borrows, too.

use std::io::ErrorKind;
use std::path::Path;

use crate::world::clock::Deadline;
use crate::world::files::disk;
use crate::world::files::tree::{self, Shared};

/// How many repositories may borrow from each other.
const DEPTH_MAX: u8 = 5;
/// The most names in one folder of objects.
const NAMES_MAX: usize = 1_000_000;
/// The most bytes of a list of the repositories from which one borrows.
const ALTERNATES_BYTES: u64 = 64 << 10;
/// How often the objects are listed again because some were packed meanwhile.
const ATTEMPTS: u8 = 3;

/// What takes longer than this, in milliseconds, or is larger, in bytes, is reported.
const WORTH_A_WORD: (u64, u64) = (1000, 100_000_000);

/// The result of filling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filled {
    /// Whether it was made now; otherwise there was one that works.
    pub is_new: bool,
    /// Bytes of objects that are also the repository's.
    pub linked_bytes: u64,
    /// Bytes of objects that had to be copied.
    pub copied_bytes: u64,
    /// Files linked and copied.
    pub files: u64,
    pub elapsed_ms: u64,
    /// How many files there are, where there is no repository.
    pub watched: Option<usize>,
}

impl Filled {
    /// "snapshots: 1.2 GB linked in 3 s", if it took long or much.
    pub fn words(&self) -> Option<String> {
        let is_worth_it = self.elapsed_ms > WORTH_A_WORD.0
            || self.linked_bytes + self.copied_bytes > WORTH_A_WORD.1;
        let size = |bytes: u64, how: &str| {
            let (whole, tenth) = (bytes / 1_000_000_000, bytes / 100_000_000 % 10);
            let mega = bytes.div_ceil(1_000_000);
            let size = if whole > 0 { format!("{whole}.{tenth} GB") } else { format!("{mega} MB") };
            (bytes > 0).then(|| format!("{size} {how}"))
        };
        let sizes = [size(self.linked_bytes, "linked"), size(self.copied_bytes, "copied")];
        let sizes: Vec<String> = sizes.into_iter().flatten().collect();
        let sizes = if sizes.is_empty() { "filled".to_owned() } else { sizes.join(", ") };
        is_worth_it.then(|| format!("snapshots: {sizes} in {} s", self.elapsed_ms.div_ceil(1000)))
    }
}

/// Links all objects of the folder `from`, and of those it names, into the folder `to`.
pub(super) fn link(from: &Path, to: &Path, deadline: Deadline) -> Result<Filled, String> {
    let mut filled = Filled::default();
    for attempt in 1.. {
        match all(from, to, deadline, &mut filled, DEPTH_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound && attempt < ATTEMPTS => {}
            result => return result.map(|()| filled).map_err(|error| error.to_string()),
        }
    }
    Ok(filled)
}

fn all(
    from: &Path,
    to: &Path,
    deadline: Deadline,
    filled: &mut Filled,
    depth: u8,
) -> std::io::Result<()> {
    let is_of_objects = |name: &String| {
        name == "pack" || (name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    for folder in disk::names(from, NAMES_MAX).into_iter().filter(is_of_objects) {
        let names = disk::names(&from.join(&folder), NAMES_MAX);
        // An index over several packs may name packs that are not there.
        let wanted = |name: &String| !name.starts_with("tmp_") && !name.starts_with("multi-pack");
        disk::make_private_folder(&to.join(&folder))?;
        for name in names.into_iter().filter(wanted) {
            if deadline.passed() {
                return Err(ErrorKind::TimedOut.into());
            }
            let file = from.join(&folder).join(&name);
            let bytes = disk::size(&file);
            match tree::share(&file, &to.join(&folder).join(&name), deadline)? {
                Shared::Linked => filled.linked_bytes += bytes,
                Shared::Copied => filled.copied_bytes += bytes,
                Shared::Known => continue,
            }
            filled.files += 1;
        }
    }
    let lenders = disk::read_text(&from.join("info/alternates"), ALTERNATES_BYTES)?;
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    for lender in lenders.unwrap_or_default().lines() {
        if !lender.is_empty() && !lender.starts_with('#') {
            all(&from.join(lender), to, deadline, filled, depth)?;
        }
    }
    Ok(())
}

//! Looks at a folder for the commands that test it: the one detection behind `crew init`,
//! `--verify auto` and the suggestion of a start without checks.

use std::collections::BTreeMap;
use std::path::Path;

use crate::engine::text::Shown;
use crate::parse::project::{Detection, FOLDERS, detect, fixed_names, is_read};
use crate::world::files::disk;

/// The largest file that is read, and the most that is read of all; a larger one is ignored.
const FILE_BYTES: u64 = 1 << 20;
const ALL_BYTES: u64 = 16 << 20;
/// The most names in a folder that are looked at, besides those that a project's files always have.
const NAMES_MAX: usize = 5000;

/// Finds the checks that fit the files in the folder. A file that cannot be read, or whose name
/// has characters that nobody sees, does not count.
pub fn checks(folder: &Path) -> Detection {
    let mut paths = Vec::new();
    for below in FOLDERS {
        let names = disk::names(&folder.join(below), NAMES_MAX);
        paths.extend(names.into_iter().map(|name| format!("{below}{name}")));
    }
    if paths.len() >= NAMES_MAX {
        paths.extend(fixed_names().filter(|it| disk::exists(&folder.join(it))).map(String::from));
    }
    let (mut files, mut left) = (BTreeMap::new(), ALL_BYTES);
    for path in paths.into_iter().filter(|path| Shown(path).to_string() == *path) {
        let text = if is_read(&path) {
            disk::read_text(&folder.join(&path), FILE_BYTES.min(left)).ok().flatten()
        } else {
            Some(String::new())
        };
        if let Some(text) = text {
            left = left.saturating_sub(text.len() as u64);
            files.insert(path, text);
        }
    }
    detect(&files)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn runs(folder: &Path) -> Vec<String> {
        checks(folder).checks.into_iter().map(|check| check.run).collect()
    }

    fn create(folder: &Path, name: &str) {
        drop(disk::create_private(&folder.join(name)).unwrap());
    }

    #[test]
    fn a_name_with_characters_that_nobody_sees_names_no_check() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), "a\n[[check]]\nrole = \"gate\"\nrun = \"touch x\"\n#.csproj");
        assert!(runs(folder.path()).is_empty());
        create(folder.path(), "a.csproj");
        assert_eq!(runs(folder.path()), ["dotnet test"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_names_no_check() {
        let folder = tempfile::tempdir().unwrap();
        symlink("nowhere", folder.path().join("Cargo.toml")).unwrap();
        let file = disk::create_private(&folder.path().join("test_a.py")).unwrap();
        file.set_len(FILE_BYTES + 1).unwrap();
        assert!(runs(folder.path()).is_empty());
    }

    #[test]
    fn many_other_files_hide_no_file_of_a_project() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..NAMES_MAX {
            create(folder.path(), &number.to_string());
        }
        create(folder.path(), "go.mod");
        assert_eq!(runs(folder.path()), ["go test ./..."]);
    }
}

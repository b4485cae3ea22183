//! Finds what runs tests, or is one, where no snapshot or no name shows it: in folders that git
//! ignores as a whole, in repositories inside, and behind links.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::engine::record::Loop;
use crate::engine::test_changes::kind::is_test;
use crate::world::files::disk;

/// Folders of installed programs, below the root of a checkout or where its checks run.
const PROGRAMS: [&str; 4] = ["node_modules/.bin", "vendor/bin", ".venv/bin", "venv/bin"];
/// The most names of one folder that are looked at, and the most bytes of one file.
const NAMES_MAX: usize = 10_000;
const FILE_BYTES: u64 = 4 << 20;

/// The installed programs that a word of a check's command names, or of a script that a package
/// manager runs for it.
pub fn installed(subject: &Loop) -> Vec<String> {
    let (checkout, folder) = (&subject.place.checkout, &subject.place.folder);
    let runs: Vec<&str> = subject.contract.checks.iter().map(|it| &*it.run).collect();
    let mut text = runs.join(" ");
    if ["npm", "yarn", "bun"].iter().any(|it| text.contains(it)) {
        let package = disk::read_text(&folder.join("package.json"), FILE_BYTES).ok().flatten();
        let package = serde_json::from_slice::<Value>(package.unwrap_or_default().as_bytes());
        text += &package.unwrap_or_default()["scripts"].to_string();
    }
    let words = text.split(|it: char| !it.is_alphanumeric() && !"-_.".contains(it));
    let in_both =
        |word| [checkout, folder].map(|it| PROGRAMS.map(|below| it.join(below).join(word)));
    let programs = words.flat_map(in_both).flatten();
    let path = |it: PathBuf| Some(it.strip_prefix(checkout).ok()?.to_str()?.to_owned());
    programs.filter(|it| disk::is_file(it)).filter_map(path).collect()
}

/// The repositories inside, and the links with the name of a test that lead out of the checkout;
/// what other such links lead to is added to the `tests`. `entries` are the mode and the path of
/// everything in the snapshot.
pub fn linked(
    checkout: &Path,
    entries: &[(String, String)],
    tests: &mut BTreeSet<String>,
) -> Vec<String> {
    let top = disk::real_path(checkout).unwrap_or_default();
    let mut outside = Vec::new();
    for (mode, path) in entries {
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_test_link = mode == "120000" && (is_test(name) || is_test(&format!("{name}/a")));
        let real = if is_test_link { disk::real_path(&checkout.join(path)).ok() } else { None };
        if mode == "160000" && disk::exists(&checkout.join(path).join(".git"))
            || real.as_ref().is_some_and(|real| !real.starts_with(&top))
        {
            outside.push(path.clone());
        } else if let Some(real) = real.filter(|real| *real != top) {
            let paths = entries.iter().map(|(_, path)| path);
            tests.extend(paths.filter(|it| top.join(it).starts_with(&real)).cloned());
        }
    }
    outside
}

/// The ignored files that Python obeys before any test, or in place of a source: modules that it
/// loads at its start, and compiled files that it does not compare with their source.
pub fn obeyed_by_python(checkout: &Path, ignored: &[String]) -> Vec<String> {
    let names = |folder: String| {
        let names = disk::names(&checkout.join(&folder), NAMES_MAX).into_iter();
        names.map(move |name| format!("{folder}{name}"))
    };
    let folders = ignored.iter().filter(|path| path.ends_with('/')).cloned();
    let libs = folders.clone().map(|folder| folder + "lib/");
    let versions = libs.clone().flat_map(names).map(|version| version + "/");
    let packages = versions.clone().map(|version| version + "site-packages/");
    let inside = folders.chain(libs).chain(versions).chain(packages).flat_map(names);
    let mut header = [0; 8];
    let mut is_unchecked = |path: &str| {
        let file = disk::open(&checkout.join(path)).ok().flatten();
        file.is_some_and(|mut file| file.read_exact(&mut header).is_ok())
            && header[4..] == [1, 0, 0, 0]
    };
    let is_obeyed = |path: &String| match path.rsplit('/').next() {
        Some("sitecustomize.py" | "usercustomize.py") => true,
        _ => path.ends_with("pyc") && !path.contains("/site-packages/") && is_unchecked(path),
    };
    inside.chain(ignored.iter().cloned()).filter(is_obeyed).collect()
}

//! Examines this machine, and changes nothing but the scratch folder. Each thing that is looked at
//! reports its findings, with what to do about them; one failed look does not stop the others.

mod client;
pub mod cluster;
mod project;

use std::path::{Path, PathBuf};

use anyhow::Error;
use serde_json::json;

use super::find::{needs_hooks, owner_is_gone};
use crate::clients::claude::plugin::{PLUGINS_DATA, PRODUCT, config_folder};
use crate::clients::spelling::going_on;
use crate::engine::doctor::{Examination, Findings, NAME, shell_word};
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;
use crate::world::store::{self, Home, StoreError};
use crate::world::{client as programs, env, git};

/// The most files of a home that are looked at.
const FILES_MAX: usize = 100_000;
/// The largest settings file, manifest or hooks file that is read.
const TEXT_BYTES: u64 = 4 << 20;

/// Examines this machine as seen from `here`.
pub fn examine(home: &Home, here: &Path, named: Option<&Path>) -> Examination {
    let mut found = Findings::default();
    let mut own = Findings::default();
    let other = project::read_settings(home, here, &mut own);
    let settled = settled_homes();
    let is_given = |file: &Path| file.parent().is_some_and(|data| data.ends_with(PRODUCT.given));
    let was_given = settled.iter().any(|(file, _)| is_given(file));
    let seen = client::examine(here, named, other.as_deref(), was_given, &mut found);
    found.extend(own.sorted());
    project::try_scratch_folder(home, here, &mut found);
    check_home(home, &settled, &mut found);
    if !git::answers(here) {
        let what = "`git` does not answer: changes and commits are not seen, and no loop can stall";
        found.warn("git-missing", what, "install git");
    }
    check_path(&mut found);
    check_loops(home, seen.lacks_crew, &mut found);
    let root = home.root().display().to_string();
    let folder = seen.folder.map(|folder| folder.display().to_string());
    Examination {
        facts: json!({
            "client_version": seen.version.map(|version| version.to_string()),
            "plugin": folder,
            "home": root,
        }),
        rows: vec![
            ("client", seen.line),
            ("plugin", folder.unwrap_or_else(|| "none".to_owned())),
            ("loops", root),
        ],
        findings: found.sorted(),
    }
}

/// The files that pin the home for hooks, one for each plugin of crew's, and those homes.
fn settled_homes() -> Vec<(PathBuf, PathBuf)> {
    let mut settled = Vec::new();
    if let Some(data) = config_folder(env::path).map(|folder| folder.join(PLUGINS_DATA)) {
        for name in disk::names(&data, FILES_MAX).iter().filter(|name| name.starts_with("crew-")) {
            let file = data.join(name).join("home");
            let said = disk::read_text(&file, TEXT_BYTES).ok().flatten();
            settled.extend(said.map(|line| (file, line.trim_end().into())));
        }
    }
    settled
}

fn check_home(home: &Home, settled: &[(PathBuf, PathBuf)], found: &mut Findings) {
    let root = home.root().display();
    if let Err(why) = try_home(home.root()) {
        let fix = format!("make {root} a folder you can write, or set CREW_HOME to one");
        found.broken("home-unusable", format!("loops cannot be kept in {root}: {why}"), fix);
    } else if let Some(mode) = tree::mode(home.root()).filter(|mode| mode & 0o077 != 0) {
        let what = format!("other users can read {root} (mode {mode:04o}); logs may hold secrets");
        found.warn("home-open", what, format!("chmod 700 {}", shell_word(&root.to_string())));
    }
    for (file, theirs) in settled.iter().filter(|(_, theirs)| theirs != home.root()) {
        let (file, theirs) = (file.display(), theirs.display());
        let what = format!(
            "hooks keep loops in {theirs} (named in {file}), but this terminal looks in {root}"
        );
        let word = shell_word(&theirs.to_string());
        let fix = format!("export CREW_HOME={word}, or remove {file} while no loop runs");
        found.broken("home-differs", what, fix);
    }
}

/// Whether a home can be used. One that does not exist is made by the first start, if its folder
/// can be made.
fn try_home(root: &Path) -> std::io::Result<()> {
    if disk::exists(root) {
        let probe = root.join(format!(".doctor-{}", env::random()));
        disk::write(&probe, b"", Durability::Process)?;
        return disk::remove(&probe);
    }
    let Some(above) = root.ancestors().find(|folder| disk::exists(folder)) else { return Ok(()) };
    disk::remove_scratch_folder(&disk::make_scratch_folder(above, env::random())?)
}

/// Looks for more than one program called `crew` on `PATH`.
fn check_path(found: &mut Findings) {
    let mut seen = Vec::new();
    let mut crews = programs::on_path(NAME);
    crews.retain(|crew| {
        let real = disk::real_path(crew).unwrap_or_else(|_| crew.clone());
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    let crews: Vec<String> = crews.iter().map(|crew| crew.display().to_string()).collect();
    if let [first, others @ ..] = &*crews
        && !others.is_empty()
    {
        let what =
            format!("more than one crew is on PATH: {first} runs, not {}", others.join(", "));
        found.warn("crew-twice", what, format!("remove {}", others.join(" and ")));
    }
}

/// Looks for records that cannot be read, loops without an owner, and loops of live sessions whose
/// client has lost crew's plugin.
fn check_loops(home: &Home, lacks_crew: bool, found: &mut Findings) {
    for id in store::ids(home) {
        let record = match store::load(home, &id) {
            // A start that was killed before its record was written.
            Err(StoreError::Absent(_)) => continue,
            Err(why) => {
                let what = format!("the record of loop {id} cannot be read: {why}");
                let folder = home.root().join("loops").join(id.as_str());
                let fix = format!(
                    "its journal says what happened; a newer crew may read it: {}",
                    folder.display()
                );
                found.warn("record-unreadable", what, fix);
                continue;
            }
            Ok(record) => record,
        };
        let checkout = record.place.checkout.display();
        if owner_is_gone(home, &record) {
            let what = format!("the owner of loop {id} ({checkout}) is gone");
            let fix = format!("{} resumes it; crew cancel {id} ends it", going_on(&record));
            found.warn("loop-ownerless", what, fix);
        }
        if lacks_crew && needs_hooks(home, &record) {
            let what =
                format!("nobody judges loop {id} ({checkout}): its client has no crew plugin");
            let fix =
                format!("crew cancel {id}, or crew install and /reload-plugins in its session");
            found.broken("loop-unjudged", what, fix);
        }
    }
}

/// The first line of a refusal, without its hint.
fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

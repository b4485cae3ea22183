//! Examines this machine, and changes nothing but the scratch folder. Each thing that is looked at
//! reports its findings, with what to do about them; one failed look does not stop the others.

mod client;
pub mod cluster;
mod findings;
mod project;

use std::path::{Path, PathBuf};

use anyhow::Error;
use minijinja::context;
use serde_json::json;

use self::findings::Findings;
use super::find::{needs_hooks, owner_is_gone};
use crate::clients::claude::plugin::{PLUGINS_DATA, PRODUCT, config_folder};
use crate::clients::spelling::going_on;
use crate::engine::doctor::{Examination, NAME};
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
        found.add("git-missing", &context! {});
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
    let root = home.root();
    if let Err(why) = try_home(root) {
        found.add("home-unusable", &context! { root, why => why.to_string() });
    } else if let Some(mode) = tree::mode(root).filter(|mode| mode & 0o077 != 0) {
        found.add("home-open", &context! { root, mode => format!("{mode:04o}") });
    }
    for (file, theirs) in settled.iter().filter(|(_, theirs)| theirs != root) {
        found.add("home-differs", &context! { theirs, file, root });
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
    if let [first, others @ ..] = &*crews
        && !others.is_empty()
    {
        found.add("crew-twice", &context! { first, others });
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
                let folder = home.loop_folder(&id);
                let (id, why) = (id.as_str(), why.to_string());
                found.add("record-unreadable", &context! { id, why, folder });
                continue;
            }
            Ok(record) => record,
        };
        let (id, checkout) = (id.as_str(), &record.place.checkout);
        if owner_is_gone(home, &record) {
            let resume = going_on(&record);
            found.add("loop-ownerless", &context! { id, checkout, resume });
        }
        if lacks_crew && needs_hooks(home, &record) {
            found.add("loop-unjudged", &context! { id, checkout });
        }
    }
}

/// The first line of a refusal, without its hint.
fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

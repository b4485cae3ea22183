//! Checks whose program is missing: what the start says about them, and what a check's own failure
//! says. It looks at files and runs nothing.

use anyhow::{Result, bail};

use crate::engine::record::{Check, Loop, Place};
use crate::parse::program::not_found;
use crate::parse::program::{ProgramNames, named};
use crate::world::files::disk;
use crate::world::{client, env};

/// Refuses a check that names a program not on `PATH`; reports files that do not exist yet.
pub fn at_the_start(place: &Place, checks: &[Check]) -> Result<Option<String>> {
    let mut absent: Vec<&str> = Vec::new();
    for check in checks {
        let Some(ProgramNames { program, file }) = named(&check.run) else { continue };
        if let Some(name) = program.filter(|name| client::on_path(name).is_empty()) {
            if !may_come_to_be(place) {
                bail!(
                    "{name} is not on PATH: `{}` ({}) cannot run\n\
                     hint: install it, or name another command",
                    check.run,
                    check.role.label()
                );
            }
            absent.push(name);
        }
        absent.extend(file.filter(|path| !disk::exists(&place.folder.join(path))));
    }
    absent.dedup();
    Ok((!absent.is_empty()).then(|| {
        let (do_not_exist, it) =
            if absent.len() == 1 { ("does not exist", "it") } else { ("do not exist", "them") };
        format!("{} {do_not_exist} yet: the agent may create {it}", absent.join(", "))
    }))
}

/// Whether a folder of `PATH` is in the checkout: then the agent can put a program there.
fn may_come_to_be(place: &Place) -> bool {
    env::search_path().iter().any(|folder| folder.starts_with(&place.checkout))
}

/// Why no agent can make a check pass that found no program: what is missing is outside the
/// checkout. A path in the checkout may be made later, and so may a program of the project's
/// package or of a `PATH` folder in the checkout.
pub fn at_its_end(subject: &Loop, check: &Check, output: &str) -> Option<String> {
    let Place { checkout, folder, .. } = &subject.place;
    let run = &check.run;
    let words: Vec<&str> = run.split_whitespace().collect();
    let name = not_found(output).or(words.first().copied())?;
    let is_missing_path = |word: &&str| {
        let path = folder.join(word);
        word.contains('/') && path.starts_with(checkout) && !disk::exists(&path)
    };
    let is_of_a_package = !words.contains(&name) && disk::exists(&folder.join("package.json"));
    let program = words.first().copied().unwrap_or_default();
    let is_for_the_agent = is_of_a_package
        || (!name.contains('/') && may_come_to_be(&subject.place))
        || [name, program].iter().any(is_missing_path);
    (!is_for_the_agent).then(|| {
        format!(
            "`{run}` finds no program `{name}` (exit 127); install it, or start with another check"
        )
    })
}

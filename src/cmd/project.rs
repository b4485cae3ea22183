//! The verbs about a project's settings.

use std::path::Path;

use anyhow::{Context, Error, Result, bail};

use super::{checkout, home, print};
use crate::clients::variables::inside_an_agent;
use crate::drive::start::detect;
use crate::drive::start::settings::look_without_a_start;
use crate::exit::Exit;
use crate::parse::project::Detected;
use crate::parse::settings::merge::merge;
use crate::report::settings::{File, Told, json, page};
use crate::report::{help, words};
use crate::world::env;
use crate::world::files::disk::{self, Durability};
use crate::world::store::settings::{project_file, user_file};
use crate::world::store::trust;

// `crew init`: writes a project's settings file with the checks that were found, and trusts what
// it has written. It never overwrites a file, and trusts nothing inside an agent.

/// Writes the file.
pub fn init() -> Result<Exit> {
    let (home, checkout) = (home()?, checkout()?);
    let file = project_file(&checkout);
    if disk::exists(&file) {
        bail!(
            "{} already exists\nhint: edit it, or remove it first; `crew config` shows what it says",
            file.display()
        );
    }
    let found = detect::checks(&checkout);
    let text = help::project(&pairs(&found.checks), &pairs(&found.others));
    let folder = file.parent().unwrap_or(&checkout);
    disk::make_folder(folder)?;
    stays_inside(folder, &checkout)?;
    disk::write(&file, text.as_bytes(), Durability::Machine)?;
    print::out(&format!("wrote {}", file.display()));
    if found.checks.is_empty() {
        print::out("no test command was found here: write yours under [[check]]");
        return Ok(Exit::SUCCESS);
    }
    let runs = words::commands(found.checks.iter().map(|check| check.run.as_str()));
    if inside_an_agent(&env::raw) {
        print::out(&format!(
            "a claim must pass {runs}, once a person has run `crew trust` in their own terminal"
        ));
        return Ok(Exit::SUCCESS);
    }
    let known = look_without_a_start(&home, &checkout)?;
    trust::trust(&home, &checkout, &known.needs)
        .with_context(|| format!("cannot save what is trusted in {}", home.root().display()))?;
    print::out(&format!("a claim must pass {runs}; trusted on this machine"));
    Ok(Exit::SUCCESS)
}

/// Refuses a folder that a link leads out of the checkout: the checks found there would be written
/// and trusted for another project.
fn stays_inside(folder: &Path, checkout: &Path) -> Result<()> {
    let (real, top) = (disk::real_path(folder)?, disk::real_path(checkout)?);
    if real.starts_with(&top) {
        return Ok(());
    }
    bail!(
        "{} leads out of the checkout, to {}\nhint: remove the link, or write the settings into {}",
        folder.display(),
        real.display(),
        settings_of_the_user()
    )
}

fn settings_of_the_user() -> String {
    user_file().map_or_else(|| "your own settings".to_owned(), |file| file.display().to_string())
}

fn pairs(detected: &[Detected]) -> Vec<(&str, &str)> {
    detected.iter().map(|check| (check.run.as_str(), check.because.as_str())).collect()
}

// `crew config`: what is in force here, and where each value came from. It changes nothing.

/// Shows what a loop started here would get.
pub fn config(as_json: bool) -> Result<Exit> {
    let known = look_without_a_start(&home()?, &checkout()?)?;
    let settings = merge(&known.layers, None).map_err(Error::msg)?;
    let files = [("user", known.user_file.as_ref()), ("project", Some(&known.project_file))];
    let files = files.into_iter().filter_map(|(of, path)| {
        let path = path?;
        Some(File { of, path: path.display().to_string(), is_there: disk::exists(path) })
    });
    let told = Told {
        settings: &settings,
        files: files.collect(),
        untrusted: &known.untrusted,
        warnings: &known.warnings,
    };
    if as_json {
        print::json(&json(&told));
        return Ok(Exit::SUCCESS);
    }
    print::folded(&page(&told));
    for warning in &known.warnings {
        print::err(&format!("crew: {warning}"));
    }
    if !known.untrusted.is_empty() {
        print::err("crew: these are not trusted, so no loop starts here:");
        known.untrusted.iter().for_each(|need| print::err(&format!("  {}: {need}", need.origin)));
        print::err("hint: read them, then run `crew trust`");
    }
    Ok(Exit::SUCCESS)
}

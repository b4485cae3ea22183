//! The verbs about a project's settings.

use std::path::Path;

use anyhow::{Context, Error, Result, bail};

use super::{current_checkout, print, refuse_an_agent, terminal_home};
use crate::drive::start::terms::{detect_project, load_settings};
use crate::exit::Exit;
use crate::report::settings::{ConfigPage, File, config_json, config_page};
use crate::report::{help, words};
use engine::failure::Failure;
use readers::clients::variables::inside_an_agent;
use readers::parse::project::DetectedCommand;
use readers::parse::settings::merge::merge_layers;
use readers::parse::settings::trust::TrustRequest;
use world::env;
use world::files::disk::{self, Durability};
use world::files::tree;
use world::store::settings::{project_file, user_file};
use world::store::{Home, settings};

/// Writes a project's settings file with the checks that were found, and trusts it. It never
/// overwrites a file, and trusts nothing inside an agent.
pub fn init_settings() -> Result<Exit> {
    let (home, checkout) = (terminal_home()?, current_checkout()?);
    let file = project_file(&checkout);
    if disk::exists(&file) {
        bail!(Failure::new(
            format!("{} already exists", file.display()),
            "edit it, or remove it first; `crew config` shows what it says"
        ));
    }
    let found = detect_project(&checkout);
    let text =
        help::project_settings(&run_and_source(found.checks()), &run_and_source(found.others()));
    let folder = file.parent().unwrap_or(&checkout);
    disk::make_folder(folder)?;
    // The checks found there would be written and trusted for another project.
    if let Some(real) = tree::leads_out(&checkout, folder, folder) {
        let own = user_file().map(|file| file.display().to_string());
        bail!(Failure::new(
            format!("{} leads out of the checkout, to {}", folder.display(), real.display()),
            format!(
                "remove the link, or write the settings into {}",
                own.as_deref().unwrap_or("your own settings")
            )
        ));
    }
    disk::write(&file, text.as_bytes(), Durability::Machine)?;
    print::out(&format!("wrote {}", file.display()));
    if found.checks().is_empty() {
        print::out("no test command was found here: write yours under [[check]]");
        return Ok(Exit::SUCCESS);
    }
    let runs = words::list_commands(found.checks().iter().map(|check| check.run().as_str()));
    if inside_an_agent(&env::raw) {
        print::out(&format!(
            "a claim must pass {runs}, once a person has run `crew trust` in their own terminal"
        ));
        return Ok(Exit::SUCCESS);
    }
    let known = load_settings(&home, &checkout, true)?;
    save_trust(&home, &checkout, &known.needs)?;
    print::out(&format!("a claim must pass {runs}; trusted on this machine"));
    Ok(Exit::SUCCESS)
}

fn run_and_source(detected: &[DetectedCommand]) -> Vec<(&str, &str)> {
    detected.iter().map(|check| (check.run().as_str(), check.because().as_str())).collect()
}

/// Shows the settings that a loop started here would get, and the origin of each value.
pub fn show_config(as_json: bool) -> Result<Exit> {
    let known = load_settings(&terminal_home()?, &current_checkout()?, true)?;
    let settings = merge_layers(&known.layers, None).map_err(Error::msg)?;
    let files = [("user", known.user_file.as_ref()), ("project", Some(&known.project_file))];
    let files = files.into_iter().filter_map(|(of, path)| {
        let path = path?;
        Some(File { of, path: path.display().to_string(), is_there: disk::exists(path) })
    });
    let config = ConfigPage {
        settings: &settings,
        files: files.collect(),
        untrusted: &known.untrusted,
        warnings: &known.warnings,
    };
    if as_json {
        print::json(&config_json(&config));
        return Ok(Exit::SUCCESS);
    }
    print::folded(&config_page(&config));
    print_warnings(&known.warnings);
    if !known.untrusted.is_empty() {
        let mut text = "these are not trusted, so no loop starts here:".to_owned();
        text.extend(known.untrusted.iter().map(|need| format!("\n  {}: {need}", need.origin)));
        print::failure(&Failure::new(text, "read them, then run `crew trust`"));
    }
    Ok(Exit::SUCCESS)
}

/// Prints what was ignored in the files.
fn print_warnings(warnings: &[String]) {
    for warning in warnings {
        print::err(&format!("crew: {warning}"));
    }
}

/// Lists everything that this project's file asks for, and trusts it after a person confirms. What
/// was listed is trusted, even if the file has changed since. An agent cannot do this.
pub fn trust_project(yes: bool, forget: bool) -> Result<Exit> {
    refuse_an_agent(Failure::new(
        "only a person can trust a project's commands, and this shell is an agent's",
        "run `crew trust` in your own terminal",
    ))?;
    let (home, checkout) = (terminal_home()?, current_checkout()?);
    if forget {
        return forget_all(&home, &checkout);
    }
    let known = load_settings(&home, &checkout, true)?;
    print_warnings(&known.warnings);
    let file = known.project_file.display();
    if !disk::exists(&known.project_file) {
        bail!(Failure::new(format!("there is no {file}"), "`crew init` writes one"));
    }
    if known.needs.is_empty() {
        print::out(&format!("nothing in {file} needs trust"));
        return Ok(Exit::SUCCESS);
    }
    print::out(&format!("what needs trust in {file}:"));
    for need in &known.needs {
        let mark = if known.untrusted.contains(need) { "new" } else { "trusted" };
        print::out(&format!("  {mark:<7}  {}: {need}", need.origin));
    }
    let count = known.untrusted.len();
    if count == 0 {
        print::out("all of it is trusted on this machine");
        return Ok(Exit::SUCCESS);
    }
    let these = if count == 1 { "this one".to_owned() } else { format!("these {count}") };
    let question = format!("Trust {these} on this machine?");
    ask_trust(&checkout, &known.untrusted, yes, &question, "trusted", "crew trust")?;
    print::out(&format!("trusted {count} on this machine, for loops in {}", checkout.display()));
    Ok(Exit::SUCCESS)
}

/// Asks a person once to trust all that was listed, unless `yes` does, and saves that for the
/// checkout. The error without trust says that nothing was `done` and that `command` asks again.
pub(super) fn ask_trust(
    checkout: &Path,
    listed: &[TrustRequest],
    yes: bool,
    question: &str,
    done: &str,
    command: &str,
) -> Result<()> {
    print::confirm(yes, question, done, command)?;
    save_trust(&terminal_home()?, checkout, listed)
}

fn save_trust(home: &Home, checkout: &Path, listed: &[TrustRequest]) -> Result<()> {
    settings::trust_requests(home, checkout, listed)
        .with_context(|| format!("cannot save what is trusted in {}", home.root().display()))
}

fn forget_all(home: &Home, checkout: &Path) -> Result<Exit> {
    let forgotten = settings::forget_trust(home, checkout)
        .with_context(|| format!("cannot forget what is trusted in {}", home.root().display()))?;
    let place = checkout.display();
    let forgotten = forgotten.map_err(|error| {
        Failure::new(
            format!("what was trusted in {place} cannot be listed: {error}"),
            "nothing there is trusted any more; `crew trust` asks again",
        )
    })?;
    if forgotten.is_empty() {
        print::out(&format!("nothing was trusted in {place}"));
    } else {
        print::out(&format!("no longer trusted on this machine, for loops in {place}:"));
        for text in forgotten {
            print::out(&format!("  {text}"));
        }
    }
    Ok(Exit::SUCCESS)
}

//! The subcommands that set crew up, on this machine (install, uninstall, doctor) and in a project
//! (init, config, trust), and those about crew itself: the demo and manual pages.

use std::path::Path;

use anyhow::{Context, Error, Result, bail};
use clap::CommandFactory;

use super::{
    any_home, current_checkout, list_loops, print, read_all, refuse_an_agent, terminal_home,
};
use crate::cli::{Cli, DoctorArgs, InstallArgs, with_those_below};
use crate::demo;
use crate::demo::DemoArgs;
use crate::drive::find::needs_hooks;
use crate::drive::installation::doctor::examine_machine;
use crate::drive::installation::install::{InstallScope, LineEntry, WrittenPlugin};
use crate::drive::installation::slurm::STEP_WITHIN;
use crate::drive::installation::{install, shell_files, slurm};
use crate::drive::start::terms::{detect_project, load_settings};
use crate::exit::Exit;
use crate::report::settings::{ConfigPage, File, config_json, config_page};
use crate::report::words::list_commands;
use crate::report::{help, setup as words};
use engine::doctor::Examination;
use engine::failure::Failure;
use engine::record::Loop;
use readers::clients::inside_an_agent;
use readers::parse::project::DetectedCommand;
use readers::parse::settings::merge::merge_layers;
use readers::parse::settings::trust::TrustRequest;
use world::files::disk::Durability;
use world::files::{disk, tree};
use world::process::signals::Signals;
use world::store::settings::{project_file, user_file};
use world::store::{Home, settings};
use world::{env, terminal};

/// Prints the page for man(1) of crew, or of one of its commands, from the text of `--help`.
pub fn print_man_page(verbs: &[String]) -> Result<Exit> {
    let mut command = Cli::command();
    command.build();
    for verb in verbs {
        let found = command.find_subcommand(verb).cloned();
        let found = found.ok_or_else(|| {
            Failure::usage(format!("there is no command `{verb}`"), "crew --help names them")
        })?;
        command = found;
    }
    let mut page = Vec::new();
    shell_files::manual_page(command).render(&mut page)?;
    print::bytes(&page);
    Ok(Exit::SUCCESS)
}

/// Prints the version.
pub fn print_version() -> Exit {
    print::out(&Cli::command().render_version());
    Exit::SUCCESS
}

/// Plays the demo, a loop or a fleet, and prints each scene as it happens.
pub fn play_demo(arguments: &DemoArgs) -> Result<Exit> {
    let has_pauses = !arguments.fast && !arguments.fleet && print::has_a_screen();
    if has_pauses && terminal::is_interactive() {
        print::aside("(any key hurries, and --fast leaves the pauses out)\n");
    }
    if demo::play_demo(arguments.fleet, has_pauses, print::folded_heads)? {
        return Ok(Exit::SUCCESS);
    }
    print::err("crew: interrupted; the demo's files are removed");
    Ok(Exit::INTERRUPTED)
}

/// Undoes an install for this person, or in this repository's settings; the records of loops stay.
/// Without `yes` it fails while a loop needs the hooks.
pub fn uninstall_plugin(scope: InstallScope, client: Option<&Path>, yes: bool) -> Result<Exit> {
    refuse_an_agent(refusal_to_an_agent("uninstall"))?;
    if scope == InstallScope::Project {
        install::unshare_plugin(client)?;
        print::out(words::UNSHARED);
        return Ok(Exit::SUCCESS);
    }
    let home = terminal_home()?;
    let mut loops = read_all(&home)?;
    loops.retain(|record| needs_hooks(&home, record));
    if !yes && let Some(first) = loops.first() {
        let list = list_loops(&home, &loops);
        bail!(words::loops_in_sessions(&first.id, loops.len(), list.trim_end()));
    }
    let line = install::remove_line();
    let files = shell_files::remove_files();
    let removed = install::uninstall_plugin(client)?;
    let found = (removed.was_registered, removed.was_there);
    let records = if disk::exists(home.root()) { Some(home.root()) } else { None };
    print::out(&words::uninstalled_page(&removed.folder, found, &removed.shared, records));
    if let Some(file) = line? {
        print::out(&words::removed_line_row(&file));
    }
    if files? {
        print::out(words::WITHOUT_SHELL_FILES);
    }
    for Loop { id, .. } in &loops {
        print::out(&words::unjudged_row(id));
    }
    Ok(Exit::SUCCESS)
}

/// Installs for a person, or for everyone who works in this repository.
pub fn install_plugin(arguments: &InstallArgs) -> Result<Exit> {
    refuse_an_agent(refusal_to_an_agent("install"))?;
    let client = arguments.client.as_deref();
    let scope = arguments.scope;
    if (arguments.status_line || arguments.shell_files) && scope != InstallScope::User {
        bail!(Failure::usage(
            "--status-line and --shell-files change your own files, for every folder",
            "leave --scope out"
        ));
    }
    if arguments.status_line {
        install::add_line(true)?;
    }
    if scope == InstallScope::Project {
        let address = install::share_plugin(arguments.marketplace.as_deref(), client)?;
        print::out(&words::shared_page(&address));
        return Ok(Exit::SUCCESS);
    }
    if arguments.marketplace.is_some() {
        bail!(Failure::usage(
            "--marketplace needs --scope project",
            "leave it out: for you alone the plugin is read from this machine"
        ));
    }
    let laid = install::install_plugin(scope, client);
    if let Ok(WrittenPlugin { folder, program, replaced }) = &laid {
        print::out(&words::installed_page(folder, program, replaced.as_deref(), scope.label()));
        if arguments.status_line {
            match install::add_line(false)? {
                LineEntry::Written(file) => print::out(&words::status_line_row(&file)),
                LineEntry::Left(why) => print::failure(&why),
            }
        }
    }
    // These files are useful without the client, too.
    if arguments.shell_files || (laid.is_ok() && scope == InstallScope::User) {
        place_shell_files(arguments.shell_files)?;
    }
    laid.map(|_| Exit::SUCCESS)
}

/// Places completions and man pages if that was typed, was done before, or a person agrees.
fn place_shell_files(typed: bool) -> Result<()> {
    let shell = env::path("SHELL").unwrap_or_default();
    let shell = shell.file_name().unwrap_or_default().to_string_lossy();
    let question = "Also add completions for your shell and man pages?";
    let is_wanted = typed
        || !shell_files::placed_files().is_empty()
        || (terminal::is_interactive() && print::agrees(question).unwrap_or(false));
    if !is_wanted {
        print::out(words::NO_SHELL_FILES);
        return Ok(());
    }
    let mut command = Cli::command();
    command.build();
    let placed = shell_files::place_files(&shell, with_those_below(&command))?;
    print::out(&words::shell_files(&shell, &placed));
    Ok(())
}

/// The error of `crew VERB` inside an agent.
pub fn refusal_to_an_agent(verb: &str) -> Failure {
    Failure::new(
        format!("only a person can {verb} crew, and this shell is an agent's"),
        format!("run `crew {verb}` in your own terminal"),
    )
}

/// Examines this machine as seen from the current folder, or a node of a cluster.
pub fn run_doctor(arguments: &DoctorArgs) -> Result<Exit> {
    let home = any_home()?;
    let DoctorArgs { json, client, on, agent, node, remote } = arguments;
    let (here, agent) = (env::current_folder()?, agent.as_deref());
    if !*node && on.is_none() {
        if agent.is_some() {
            return Err(Failure::usage("--agent is for a cluster", "name it: --on slurm").into());
        }
        return Ok(print_findings(&examine_machine(&home, &here, client.as_deref()), *json));
    }
    let signals = Signals::listen()?;
    let stop = || signals.times() > 0;
    let Some(executor) = on else {
        // The crew that asked prints the findings.
        let report = slurm::report_node(&home, &here, agent, remote.as_deref(), &stop);
        print::json(&serde_json::to_value(report)?);
        return Ok(signals.exit_code().map_or(Exit::SUCCESS, Exit::from_signal));
    };
    print::aside(&words::waiting_line(executor, STEP_WITHIN));
    let examined = slurm::examine_cluster(&home, &here, executor, agent, &stop)?;
    Ok(signals.exit_code().map_or_else(|| print_findings(&examined, *json), Exit::from_signal))
}

/// Prints what was found.
fn print_findings(examined: &Examination, as_json: bool) -> Exit {
    if as_json {
        print::json(&words::doctor_json(examined));
    } else {
        print::folded_heads(&words::doctor_page(examined));
    }
    if examined.is_broken() { Exit::ERROR } else { Exit::SUCCESS }
}

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
    let runs = list_commands(found.checks().iter().map(|check| check.run().as_str()));
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
            "nothing there is trusted now; `crew trust` asks again",
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

#[cfg(test)]
mod tests {
    use engine::boundary::window::APART;

    #[test]
    fn the_demo_states_the_time_between_two_returns() {
        let words = format!(" {} s after the first", APART.num_seconds());
        let script = include_str!("../demo/scripts/demo.toml");
        assert!(script.contains(&words), "{words}");
    }
}

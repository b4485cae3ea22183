//! The verbs about crew itself: install, uninstall, doctor, the demo and manual pages.

use super::reporter::has_a_screen;
use super::{any_home, list_loops, print, read_all, refuse_an_agent, terminal_home};
use crate::cli::{Cli, DoctorArgs, InstallArgs, with_those_below};
use crate::demo::{self, DemoArgs};
use crate::drive::find::needs_hooks;
use crate::drive::installation::doctor::examine_machine;
use crate::drive::installation::install;
use crate::drive::installation::install::{InstallScope, LineEntry, WrittenPlugin};
use crate::drive::installation::shell_files;
use crate::drive::installation::slurm;
use crate::drive::installation::slurm::STEP_WITHIN;
use crate::exit::Exit;
use crate::report::setup as words;
use anyhow::{Result, bail};
use clap::CommandFactory;
use engine::doctor::Examination;
use engine::failure::Failure;
use engine::record::Loop;
use std::path::Path;
use world::files::disk;
use world::process::signals::Signals;
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
    let has_pauses = !arguments.fast && !arguments.fleet && has_a_screen();
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

#[cfg(test)]
mod tests {
    use engine::window::APART;

    #[test]
    fn the_demo_states_the_time_between_two_returns() {
        let words = format!(" {} s after the first", APART.num_seconds());
        let script = include_str!("../demo/scripts/demo.toml");
        assert!(script.contains(&words), "{words}");
    }
}

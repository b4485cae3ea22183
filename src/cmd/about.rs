//! The verbs about crew itself: its demo, its pages for a shell and for man(1), its removal.

use std::path::Path;

use anyhow::{Result, bail};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::install::refusal_to_an_agent;
use super::{all, home, listed, print, refuse_an_agent};
use crate::cli::Cli;
use crate::demo::{self, DemoArgs, Played};
use crate::drive::install::{self, InstallScope, status_line};
use crate::drive::owner::needs_hooks;
use crate::engine::record::Loop;
use crate::exit::Exit;
use crate::parse::arguments::UsageError;
use crate::report::install as words;
use crate::world::files::disk;

// `crew completions`: what a shell needs to complete a command line of crew. It installs nothing.

/// Prints the completions of the requested shell.
pub fn completions(shell: Shell) -> Exit {
    let all = Cli::command();
    // Commands hidden from the help are not offered either.
    let shown = all.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut crew = Command::new("crew").version(env!("CARGO_PKG_VERSION")).subcommands(shown);
    let mut page = Vec::new();
    clap_complete::generate(shell, &mut crew, "crew", &mut page);
    print::bytes(&page);
    Exit::SUCCESS
}

// `crew man`: the pages for man(1), made from the text of `--help`. It installs nothing.

/// Prints the page of crew, or of one of its commands.
pub fn man(verbs: &[String]) -> Result<Exit> {
    let mut command = Cli::command();
    command.build();
    for verb in verbs {
        let found = command.find_subcommand(verb).cloned();
        let found = found.ok_or_else(|| {
            UsageError::new(format!("there is no command `{verb}`"), "crew --help names them")
        })?;
        command = found;
    }
    let mut page = Vec::new();
    Man::new(command).source(concat!("crew ", env!("CARGO_PKG_VERSION"))).render(&mut page)?;
    print::bytes(&page);
    Ok(Exit::SUCCESS)
}

/// Prints the version.
pub fn version() -> Exit {
    print::out(&Cli::command().render_version());
    Exit::SUCCESS
}

// `crew demo`: a whole loop through the real hook entry, or a whole fleet, with a scripted agent.

/// Plays the demo, each scene as it happens, or one iteration of the agent of a fleet's demo.
pub fn demo(arguments: &DemoArgs) -> Result<Exit> {
    if let [folder, task] = arguments.agent.as_slice() {
        print::out(demo::fleet::agent::act(Path::new(folder), task)?);
        return Ok(Exit::SUCCESS);
    }
    let played =
        if arguments.fleet { demo::play_fleet(print::folded) } else { demo::play(print::folded) };
    Ok(match played? {
        Played::ToTheEnd => Exit::SUCCESS,
        Played::Interrupted => {
            print::err("crew: interrupted; the demo's files are removed");
            Exit::INTERRUPTED
        }
    })
}

// `crew uninstall`: undoes what install did, and nothing else. The records of loops are never
// touched.

/// Uninstalls for this person, or from this repository's settings. Without `yes` it leaves the
/// hooks to loops that live by them.
pub fn uninstall(scope: InstallScope, client: Option<&Path>, yes: bool) -> Result<Exit> {
    refuse_an_agent(&refusal_to_an_agent("uninstall"))?;
    if scope == InstallScope::Project {
        install::unshare(client)?;
        print::out(words::UNSHARED);
        return Ok(Exit::SUCCESS);
    }
    let home = home()?;
    let mut loops = all(&home)?;
    loops.retain(|record| needs_hooks(&home, record));
    if !yes && let Some(first) = loops.first() {
        let (what, hint) = words::loops_in_sessions(&first.id, loops.len());
        bail!("{what}\nhint: {hint}\n{}", listed(&home, &loops).trim_end());
    }
    let line = status_line::remove();
    let removed = install::uninstall(client)?;
    let found = (removed.was_registered, removed.was_there);
    let records = disk::exists(home.root()).then(|| home.root());
    print::out(&words::uninstalled(&removed.folder, found, &removed.shared, records));
    if let Some(file) = line? {
        print::out(&words::without_a_line(&file));
    }
    for Loop { id, .. } in &loops {
        print::out(&words::unjudged(id));
    }
    Ok(Exit::SUCCESS)
}

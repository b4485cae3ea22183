//! The verbs: resolve what was typed, call a driver or a reader, print. No other room prints.

mod answer;
mod cancel;
mod completions;
mod config;
mod control_replies;
mod demo;
mod doctor;
mod drive;
mod follow;
mod handoff;
mod history;
pub mod hook;
mod init;
mod install;
mod loop_hint;
mod man;
mod pause;
pub mod print;
pub mod reporter;
mod resume;
mod run;
mod set;
mod show;
mod status;
mod tell;
mod trust;
mod uninstall;
mod watch;

use std::io;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};

use crate::cli::Verb;
use crate::clients::variables::inside_an_agent;
use crate::drive::control::Actor;
use crate::drive::find::{Found, find};
use crate::engine::record::{Loop, LoopId};
use crate::exit::Exit;
use crate::report::page;
use crate::world::files::disk;
use crate::world::store::home::Home;
use crate::world::store::{self, StoreError};
use crate::world::{env, git};

/// Carries out a verb.
pub fn dispatch(verb: &Verb) -> Result<Exit> {
    match verb {
        Verb::Run(arguments) => run::run(arguments),
        Verb::Drive(arguments) => drive::drive(arguments),
        Verb::Status(arguments) => status::status(arguments),
        Verb::History(arguments) => history::history(arguments),
        Verb::Show(arguments) => show::show(arguments),
        Verb::Watch(arguments) => watch::watch(arguments),
        Verb::Pause(arguments) => pause::pause(arguments),
        Verb::Cancel(arguments) => cancel::cancel(arguments),
        Verb::Resume(arguments) => resume::resume(arguments),
        Verb::Tell(arguments) => tell::tell(arguments),
        Verb::Set(arguments) => set::set(arguments),
        Verb::Handoff(arguments) => handoff::handoff(arguments),
        Verb::Install(arguments) => install::install(arguments),
        Verb::Uninstall(arguments) => uninstall::uninstall(arguments),
        Verb::Doctor(arguments) => doctor::doctor(arguments),
        Verb::Init => init::init(),
        Verb::Config(arguments) => config::config(arguments),
        Verb::Trust(arguments) => trust::trust(arguments),
        Verb::Demo => demo::demo(),
        Verb::Completions(arguments) => Ok(completions::completions(arguments)),
        Verb::Man(arguments) => man::man(arguments),
        Verb::Loop(arguments) => loop_hint::looped(arguments),
    }
}

/// The home of the terminal this was typed in.
fn home() -> Result<Home> {
    let home = Home::of_terminal();
    home.ok_or_else(|| anyhow!("HOME is not set\nhint: set HOME, or CREW_HOME to a folder"))
}

/// Who typed this: inside an agent crew only narrows, and the record says who it was.
fn actor() -> Actor {
    if inside_an_agent(&env::raw) { Actor::Agent } else { Actor::User }
}

/// The requested loop; `None` when several match, after listing them.
fn resolve_loop(home: &Home, name: Option<&str>) -> Result<Option<Loop>> {
    match find(home, name, &env::current_folder()?)? {
        Found::One(record) => Ok(Some(*record)),
        Found::None => bail!("there is no loop here\nhint: crew status --all lists every loop"),
        Found::Many(loops) => {
            print::err("crew: more than one loop could be meant\nhint: name one of these");
            print::err(&page::list(&loops));
            Ok(None)
        }
    }
}

/// Applies `ours` to the requested loop and prints the result. A newer crew's loop gets `theirs`:
/// the order that every crew version writes and honours.
fn ordered(
    name: Option<&str>,
    ours: impl FnOnce(&Home, &LoopId) -> Result<String>,
    (what, theirs): (&str, impl FnOnce(&Home, &LoopId) -> io::Result<()>),
) -> Result<Exit> {
    let home = home()?;
    let answer = match resolve_loop(&home, name) {
        Ok(Some(record)) => ours(&home, &record.id)?,
        Ok(None) => return Ok(Exit::USAGE),
        Err(error) => match error.downcast_ref() {
            Some(StoreError::Newer { id, made_by, is_over: true }) => {
                format!("loop {id} is over already, recorded by crew {made_by}, a newer one")
            }
            Some(StoreError::Newer { id, made_by, .. }) => {
                theirs(&home, id)?;
                format!("loop {id}: {what}; crew {made_by}, which runs it, obeys")
            }
            _ => return Err(error),
        },
    };
    print::out(&answer);
    Ok(Exit::SUCCESS)
}

/// All loops, the newest first. Reports why the others cannot be read.
fn all(home: &Home) -> Result<Vec<Loop>> {
    let (loops, others) = store::look_at_all(home)?;
    for error in others {
        print::err(&format!("crew: {error}"));
    }
    Ok(loops)
}

/// The working tree this was typed in; without git the current folder.
fn checkout() -> Result<PathBuf> {
    let folder = env::current_folder()?;
    match git::top(&folder) {
        Some(top) => Ok(top),
        None => Ok(disk::real_path(&folder)?),
    }
}

//! `crew install`: sets up the plugin in the client. Only a person may do that: an agent that could
//! install hooks could also replace them.

use anyhow::{Result, bail};

use super::{print, refuse_an_agent};
use crate::cli::InstallArgs;
use crate::drive::install::status_line::{self, LineEntry};
use crate::drive::install::{self, InstallScope};
use crate::exit::Exit;
use crate::parse::arguments::UsageError;
use crate::report::install as words;

/// Installs for a person, or for everyone who works in this repository.
pub fn install(arguments: &InstallArgs) -> Result<Exit> {
    refuse_an_agent(&refusal_to_an_agent("install"))?;
    let client = arguments.client.as_deref();
    let scope = arguments.scope;
    if arguments.status_line {
        if scope != InstallScope::User {
            bail!(UsageError::new(
                "--status-line changes your own settings, for every folder",
                "leave --scope out"
            ));
        }
        status_line::add(true)?;
    }
    if scope == InstallScope::Project {
        let address = install::share(arguments.marketplace.as_deref(), client)?;
        print::out(&words::shared(&address));
        return Ok(Exit::SUCCESS);
    }
    if arguments.marketplace.is_some() {
        bail!(UsageError::new(
            "--marketplace needs --scope project",
            "leave it out: for you alone the plugin is read from this machine"
        ));
    }
    let laid = install::install(scope, client)?;
    let replaced = laid.replaced.as_deref();
    print::out(&words::installed(&laid.folder, &laid.program, replaced, scope.label()));
    if arguments.status_line {
        match status_line::add(false)? {
            LineEntry::Written(file) => print::out(&words::with_a_line(&file)),
            LineEntry::Left(why) => print::err(&format!("crew: {why}")),
        }
    }
    Ok(Exit::SUCCESS)
}

/// The error inside an agent, for `verb`.
pub fn refusal_to_an_agent(verb: &str) -> String {
    format!(
        "only a person can {verb} crew, and this shell is an agent's\n\
         hint: run `crew {verb}` in your own terminal"
    )
}

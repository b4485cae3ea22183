//! The settings of a working tree: reads every tier, says what of the project's file is not trusted, and
//! refuses a start that would rest on it. Read once, at the start; the contract holds a copy.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, bail};

use crate::engine::settings::Layer;
use crate::engine::settings::merge::{Layers, Settings, merge};
use crate::engine::settings::trust::{Need, needs};
use crate::parse::settings::Read;
use crate::world::home::Home;
use crate::world::{env, settings, trust};

/// The variable that trusts a project's file without a person, for a driver outside Claude Code.
const TRUST_VARIABLE: &str = "CREW_TRUST";

/// What the tiers say about one working tree.
#[derive(Debug)]
pub struct Known {
    /// Nothing is typed in these.
    pub layers: Layers,
    /// The user's own file, whether it is there or not; `None` for a user without a home.
    pub user_file: Option<PathBuf>,
    /// The project's file, whether it is there or not.
    pub project_file: PathBuf,
    /// All in the project's file that needs trust, trusted or not.
    pub needs: Vec<Need>,
    /// The part of it that nobody has trusted.
    pub untrusted: Vec<Need>,
    /// Keys that were passed over: one sentence each.
    pub warnings: Vec<String>,
}

/// Reads every tier. Without `with_project` the project's file is not even opened.
pub fn look(home: &Home, checkout: &Path, with_project: bool) -> Result<Known> {
    let user_file = settings::user_file();
    let user = user_file.as_deref().map_or(Ok(None), settings::read).map_err(Error::msg)?;
    let user = user.unwrap_or_default();
    let project_file = settings::project_file(checkout);
    let project = if with_project { read_project(&project_file)? } else { Read::default() };
    let environment = settings::environment().map_err(Error::msg)?;
    let needs = needs(&project.layer, &user.layer);
    let untrusted = trust::untrusted(home, checkout, needs.clone())
        .with_context(|| format!("cannot read what is trusted in {}", home.root().display()))?;
    Ok(Known {
        layers: Layers {
            user: user.layer,
            project: project.layer,
            environment,
            typed: Layer::default(),
        },
        user_file,
        project_file,
        needs,
        untrusted,
        warnings: [user.warnings, project.warnings].concat(),
    })
}

fn read_project(file: &Path) -> Result<Read> {
    match settings::read(file) {
        Ok(read) => Ok(read.unwrap_or_default()),
        Err(faults) => bail!("{faults}\nhint: mend the file, or start with --no-project"),
    }
}

/// The settings of a loop that starts with `typed`, and what its user should know about them.
pub fn for_start(home: &Home, known: Known, typed: Layer) -> Result<(Settings, Vec<String>)> {
    if !known.untrusted.is_empty() {
        bail!(refusal(home, &known.untrusted));
    }
    let mut notes = known.warnings;
    if !known.layers.project.is_empty() {
        notes.push(format!(
            "settings of {} apply; crew config shows them",
            known.project_file.display()
        ));
    }
    let settings = merge(&Layers { typed, ..known.layers });
    notes.extend(settings.notes.iter().cloned());
    Ok((settings, notes))
}

fn refusal(home: &Home, untrusted: &[Need]) -> String {
    let mut lines =
        vec!["the project's settings want what nobody on this machine has trusted:".to_owned()];
    lines.extend(untrusted.iter().map(|need| format!("  {}: {need}", need.origin)));
    if env::text(TRUST_VARIABLE).is_some() {
        lines.push(format!(
            "{TRUST_VARIABLE} does not count here: a project can set it for Claude Code"
        ));
    }
    let elsewhere = home.overridden.as_ref();
    let command = elsewhere.map_or_else(
        || "crew trust".to_owned(),
        |_| format!("CREW_HOME='{}' crew trust", home.root().display()),
    );
    lines.push(format!(
        "hint: read them, then run `{command}` in a terminal here; or start with --no-project"
    ));
    lines.join("\n")
}

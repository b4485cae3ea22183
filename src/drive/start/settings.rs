//! The settings of a working tree: reads every tier, reports what of the project's file is not
//! trusted, and refuses a start that would rest on it. They are read at the start (a resume
//! reads what the contract lacks); the contract holds a copy.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};

use crate::agents;
use crate::clients::ALL;
use crate::clients::variables::inside_an_agent;
use crate::engine::record::{Fragment, Recipe};
use crate::parse::settings::Whose;
use crate::parse::settings::merge::{Layer, Layers, Settings, merge};
use crate::parse::settings::trust::{TrustRequest, needs};
use crate::prompts::procedures::NAMES;
use crate::world::env;
use crate::world::files::{disk, tree};
use crate::world::store::{Home, settings, trust};

/// The variable that trusts a project's file without a person, for a driver outside a client.
const TRUST_VARIABLE: &str = "CREW_TRUST";

/// What the tiers say about one working tree.
#[derive(Debug, Clone)]
pub struct LoadedSettings {
    /// Without the typed tier.
    pub layers: Layers,
    /// The name of the client for which a project can have set the variables; `None` where nobody
    /// but the user can.
    pub client: Option<&'static str>,
    /// Whether what was typed has an option that leaves the project's file out.
    can_do_without: bool,
    /// The working tree.
    pub checkout: PathBuf,
    /// The user's own file, whether or not it exists; `None` for a user without a home.
    pub user_file: Option<PathBuf>,
    /// The project's file, whether or not it exists.
    pub project_file: PathBuf,
    /// Everything in the project's file that needs trust, trusted or not.
    pub needs: Vec<TrustRequest>,
    /// The part of it that nobody has trusted.
    pub untrusted: Vec<TrustRequest>,
    /// Keys that were ignored: one sentence each.
    pub warnings: Vec<String>,
}

impl LoadedSettings {
    /// Whether a tier has a procedure of this name.
    pub fn has_procedure(&self, name: &str) -> bool {
        let Layers { user, project, .. } = &self.layers;
        let is_own = [user, project].iter().any(|layer| layer.procedures.contains_key(name));
        is_own || NAMES.contains(&name)
    }

    /// The same for a session of `client`: a project can set variables for it, so they must not
    /// name an account or make the project's settings trusted.
    pub fn in_a_session(mut self, client: &'static str) -> Self {
        self.client = Some(client);
        self.layers.environment.values.remove("account");
        self
    }
}

/// Reads every tier. Without `with_project` the project's file is not opened at all.
pub fn look(home: &Home, checkout: &Path, with_project: bool) -> Result<LoadedSettings> {
    let way_out = "fix the file, or start with --no-project";
    let known = read_tiers(home, checkout, with_project.then_some(way_out))?;
    Ok(LoadedSettings { can_do_without: true, ..known })
}

/// The same for a command without an option that leaves the project out.
pub fn look_without_option(home: &Home, checkout: &Path) -> Result<LoadedSettings> {
    let way_out = "fix the file; until then `crew run` starts here only with --no-project";
    read_tiers(home, checkout, Some(way_out))
}

/// Reads every tier; the project's if there is a `way_out` from its faults.
fn read_tiers(home: &Home, checkout: &Path, way_out: Option<&str>) -> Result<LoadedSettings> {
    let (user_file, project_file) = (settings::user_file(), settings::project_file(checkout));
    let read = |file: Option<&Path>, whose| match file {
        Some(file) => settings::read(file, whose, &agents::outputs()),
        None => Ok(None),
    };
    let user = read(user_file.as_deref(), Whose::Users).map_err(Error::msg)?.unwrap_or_default();
    let project = read(way_out.map(|_| &*project_file), Whose::Projects);
    let project = project.map_err(|faults| anyhow!("{faults}\nhint: {}", way_out.unwrap_or("")))?;
    let project = project.unwrap_or_default();
    let environment = settings::environment().map_err(Error::msg)?;
    let needs = needs(&project.layer, &user.layer);
    let untrusted = trust::untrusted(home, checkout, needs.clone())?;
    let known = LoadedSettings {
        layers: Layers {
            user: user.layer,
            project: project.layer,
            environment,
            typed: Layer::default(),
        },
        client: None,
        can_do_without: false,
        checkout: checkout.to_owned(),
        user_file,
        project_file,
        needs,
        untrusted,
        warnings: [user.warnings, project.warnings].concat(),
    };
    let is_an_agents = inside_an_agent(&env::raw);
    Ok(if is_an_agents { known.in_a_session(ALL[0].title) } else { known })
}

/// The settings of a loop that starts with `typed`, perhaps by a procedure from the files, and
/// notes for its user.
pub fn in_force(
    home: &Home,
    known: LoadedSettings,
    typed: Layer,
    procedure: Option<&str>,
) -> Result<(Settings, Vec<String>)> {
    let mut notes = Vec::new();
    if !known.untrusted.is_empty() {
        let is_trusted = env::text(TRUST_VARIABLE).as_deref() == Some("1");
        if known.client.is_some() || !is_trusted {
            bail!(refusal(home, &known));
        }
        notes.push(format!("{TRUST_VARIABLE}=1: the project's settings are trusted unread"));
    }
    notes.extend(known.warnings);
    if known.layers.project != Layer::default() {
        let file = known.project_file.display();
        notes.push(format!("settings of {file} apply; crew config shows them"));
    }
    let settings = merge(&Layers { typed, ..known.layers }, procedure).map_err(Error::msg)?;
    notes.extend(settings.notes.iter().cloned());
    look_at_files(&known.checkout, &settings.recipe)?;
    Ok((settings, notes))
}

/// Every file of a recipe must exist, and one that is named in the checkout must be in it: a link
/// would send the model files that are not the project's.
fn look_at_files(checkout: &Path, recipe: &Recipe) -> Result<()> {
    for fragment in recipe.0.values().flatten() {
        let Fragment::File(file) = fragment else { continue };
        disk::real_path(file).context("a piece of the prompt")?;
        if let Some(real) = tree::leads_out(checkout, file, file) {
            bail!(
                "{} leads out of the checkout, to {}\nhint: put the text there, or name the file in \
                 your own settings",
                file.display(),
                real.display()
            );
        }
    }
    Ok(())
}

fn refusal(home: &Home, known: &LoadedSettings) -> String {
    let mut lines = vec![
        "the project's settings need trust, and nobody on this machine has given it:".to_owned(),
    ];
    lines.extend(known.untrusted.iter().map(|need| format!("  {}: {need}", need.origin)));
    if let Some(client) = known.client.filter(|_| env::text(TRUST_VARIABLE).is_some()) {
        lines.push(format!(
            "{TRUST_VARIABLE} does not count here: a project can set it for {client}"
        ));
    }
    let command = match home.overridden {
        Some(_) => format!("CREW_HOME='{}' crew trust", home.root().display()),
        None => "crew trust".to_owned(),
    };
    let or_without = if known.can_do_without { "; or start with --no-project" } else { "" };
    lines.push(format!("hint: read them, then run `{command}` in a terminal here{or_without}"));
    lines.join("\n")
}

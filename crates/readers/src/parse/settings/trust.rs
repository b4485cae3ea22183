//! What a project's own file may not decide alone, because other people and agents write to a
//! checkout. Its commands, the limits it raises, a promise other than the user's own and its git
//! steps count only after the user has trusted that exact text on this machine. Values that only
//! narrow need no trust. The table of keys says which values widen a key.

use std::collections::BTreeSet;
use std::fmt;

use toml::Value;

use super::merge::{Layer, Sourced, ValueOrigin, built_in};
use super::options::{Key, Widens};
use engine::fleet::INCLUDE;
use engine::record::{Check, Permissions, Reaction};
use engine::test_changes::Prove;
use engine::text::{EscapedLine, variant_name};

/// The subject of a request, for a list of what is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustSubject {
    /// A project's settings file.
    Project,
    /// The limits of a fleet.
    Terms,
    /// This git setting, which has changed.
    GitSetting(String),
    Setup,
    LandCheck,
    /// What is pushed to this remote.
    Push(String),
    /// The list of files for new working trees.
    Include,
    /// The task of this name.
    Task(String),
}

/// One item that needs trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRequest {
    pub subject: TrustSubject,
    /// Everything relevant about it, byte for byte; its hash is recorded. The command comes last,
    /// so that no command can pass for another with other terms.
    pub text: String,
    pub origin: ValueOrigin,
}

impl fmt::Display for TrustSubject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => out.write_str("settings"),
            Self::Terms => out.write_str("terms"),
            Self::GitSetting(name) => write!(out, "git's setting {name}"),
            Self::Setup => out.write_str("setup"),
            Self::LandCheck => out.write_str("land check"),
            Self::Push(remote) => write!(out, "pushes to {remote}"),
            Self::Include => out.write_str(INCLUDE),
            Self::Task(name) => out.write_str(name),
        }
    }
}

impl TrustRequest {
    /// A request of a project's settings file.
    fn of_project(text: String, origin: &ValueOrigin) -> Self {
        Self { subject: TrustSubject::Project, text, origin: origin.clone() }
    }
}

impl fmt::Display for TrustRequest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        EscapedLine(&self.text).fmt(out)
    }
}

/// Everything in a project's layer that needs trust, each text once: every command of a check, a
/// reaction or an agent; every value wider than the user's own setting or, without one, than crew's
/// default; and a promise that differs from the user's. Prompts need no trust, because the agent
/// reads the checkout anyway.
pub fn list_trust_requests(project: &Layer, user: &Layer) -> Vec<TrustRequest> {
    // Without crew's own values everything would need trust.
    let built_in = &built_in().unwrap_or_default();
    let mut needs = Vec::new();
    // The project's own promise takes precedence over that of the user's procedures.
    let of_procedures = user.procedures.values().map(|own| &own.value.terms);
    let of_procedures: Vec<&Layer> = of_procedures.collect();
    needs_of_terms(&mut needs, "loop", project, &[user], &of_procedures, built_in);
    for (name, agent) in &project.agents {
        let text = format!("[agents.{name}] {}", agent.value);
        needs.push(TrustRequest::of_project(text, &agent.origin));
    }
    for reaction in &project.reactions {
        let Reaction { on, run, timeout_s } = &reaction.value;
        let text = format!("on {} (within {timeout_s}s): {run}", on.label());
        needs.push(TrustRequest::of_project(text, &reaction.origin));
    }
    for (name, procedure) in &project.procedures {
        let own = user.procedures.get(name).map(|own| &own.value.terms);
        let own: Vec<&Layer> = own.into_iter().chain([user]).collect();
        let table = format!("procedures.{name}");
        needs_of_terms(&mut needs, &table, &procedure.value.terms, &own, &[], built_in);
    }
    let mut known = BTreeSet::new();
    needs.retain(|need| known.insert(need.text.clone()));
    needs
}

/// The terms under `[table]` that need trust. `own` are the user's, the nearest first; a promise is
/// also compared with those of `others`.
fn needs_of_terms(
    needs: &mut Vec<TrustRequest>,
    table: &str,
    terms: &Layer,
    own: &[&Layer],
    others: &[&Layer],
    built_in: &Layer,
) {
    for (key, Sourced { value, origin }) in terms.values_as_listed() {
        let nearest = own.iter().find_map(|own| own.value(key.name()));
        let others = if *key.widens() == Widens::OtherOrOff { others } else { &[] };
        let others = others.iter().filter_map(|other| other.value(key.name()));
        let mut mine: Vec<Option<&Value>> = nearest.into_iter().chain(others).map(Some).collect();
        if mine.is_empty() {
            mine.push(None);
        }
        if mine.iter().any(|mine| key.is_wider(value, *mine, built_in)) {
            let (of, name) = key.split_name();
            let table = if of == "loop" { table } else { of };
            let text = format!("[{table}] {name} = {value}");
            needs.push(TrustRequest::of_project(text, origin));
        }
    }
    for Sourced { value, origin } in &terms.checks {
        needs.push(TrustRequest::of_project(describe_check(value), origin));
    }
}

impl Key {
    /// Whether `value` is wider than what the user allowed; `None` if the user's settings have no
    /// value.
    fn is_wider(&'static self, value: &Value, own: Option<&Value>, built_in: &Layer) -> bool {
        let allowed = own.or_else(|| built_in.value(self.name()));
        let [rank, most] = [Some(value), allowed].map(|value| Some(self.rank_value(value?)));
        match *self.widens() {
            Widens::Nothing => false,
            Widens::Every => true,
            Widens::More => rank > most,
            Widens::Less => rank < most,
            Widens::On => *value != Value::Boolean(false) && Some(value) != allowed,
            Widens::OtherOrOff if own.is_none() => *value == Value::Boolean(false),
            Widens::Other | Widens::OtherOrOff => Some(value) != allowed,
        }
    }

    /// How wide a value is: its number, with 0 as unlimited, or the position of its word in a list.
    fn rank_value(&self, value: &Value) -> u64 {
        let Some(unit) = *self.unit() else {
            let proofs = Prove::ALL.each_ref().map(variant_name).into_iter();
            let words = proofs.chain(Permissions::ALL.map(Permissions::label));
            return words.take_while(|word| Some(*word) != value.as_str()).count() as u64;
        };
        match unit.parse_value(value).unwrap_or(u64::MAX) {
            0 if *self.widens() == Widens::More => u64::MAX,
            number => number,
        }
    }
}

pub(super) fn describe_check(check: &Check) -> String {
    let Check { role, run, timeout_s, success_exit_code, no_worse } = check;
    let role = role.label();
    let or_no_worse = if *no_worse { " or no worse" } else { "" };
    format!("{role} (within {timeout_s}s, passes with {success_exit_code}{or_no_worse}): {run}")
}

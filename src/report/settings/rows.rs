//! Every setting but the checks as one row: its key, what is shown of it, and its value for programs.

use serde_json::{Value, json};

use crate::engine::promise::Promise;
use crate::engine::run::Fragment;
use crate::engine::settings::merge::Settings;
use crate::engine::settings::{Layer, Limit, Origin, Procedure, Sourced, Unit};
use crate::engine::text::Shown;
use crate::engine::usage::Money;

/// What is shown of a list without an entry, and of a branch that is not given.
pub(super) const NONE: &str = "none";

/// One setting.
#[derive(Debug)]
pub(super) struct Row {
    /// The table and the key, with a dot between.
    pub(super) key: String,
    pub(super) shown: String,
    pub(super) value: Value,
    /// Of a number.
    pub(super) unit: Option<&'static str>,
    pub(super) origin: Origin,
}

/// All of them, in the order they are shown.
pub(super) fn rows(settings: &Settings) -> Vec<Row> {
    let limits = Limit::ALL.into_iter().map(|limit| {
        let (table, _) = limit.key();
        of_limit(table, limit, &settings.limit(limit))
    });
    let mut rows: Vec<Row> = limits.collect();
    let promise = settings.promise.clone();
    let promise = promise.unwrap_or_else(|| Sourced::built_in(Some(Promise::default())));
    rows.push(of_promise("loop.completion_promise", &promise));
    rows.push(row("agent.name", &settings.agent.value, &settings.agent.origin));
    if let Some(arguments) = &settings.agent_arguments {
        let shown = format!("{:?}", arguments.value.list);
        rows.push(Row {
            shown,
            value: json!(arguments.value.list),
            ..row("agent.args", "", &arguments.origin)
        });
    }
    rows.push(row(
        "agent.permissions",
        settings.permissions.value.label(),
        &settings.permissions.origin,
    ));
    rows.push(of_switch("loop.commit", &settings.commit));
    rows.push(of_switch("loop.push", &settings.push));
    rows.push(of_branch("loop.rebase", &settings.rebase));
    rows.push(of_switch("loop.awake", &settings.awake));
    let protected = settings.protect.iter();
    rows.extend(protected.map(|glob| row("loop.protect", &glob.value, &glob.origin)));
    rows.extend(settings.reactions.iter().map(|reaction| {
        let (at, origin) = (&reaction.value, &reaction.origin);
        let value = json!({ "run": at.run, "timeout_s": at.timeout_s });
        Row { value, ..row(&format!("on.{}", at.on.label()), &at.run, origin) }
    }));
    rows.extend(settings.agents.iter().map(|(name, agent)| {
        row(&format!("agents.{name}"), &agent.value.to_string(), &agent.origin)
    }));
    // crew's own are `crew run --list`'s to show.
    let own = settings.procedures.iter().filter(|(_, it)| it.origin != Origin::BuiltIn);
    for (name, procedure) in own {
        of_procedure(&mut rows, &format!("procedures.{name}"), procedure);
    }
    rows
}

fn row(key: &str, text: &str, origin: &Origin) -> Row {
    Row {
        key: key.to_owned(),
        shown: Shown(text).to_string(),
        value: json!(text),
        unit: None,
        origin: origin.clone(),
    }
}

fn of_limit(table: &str, limit: Limit, sourced: &Sourced<u64>) -> Row {
    let number = sourced.value;
    let shown = match number {
        0 => "0 (none)".to_owned(),
        number => limit.written(number).trim_matches('"').to_owned(),
    };
    let (value, unit) = match limit.unit() {
        Unit::Iterations => (json!(number), "iterations"),
        Unit::Turns => (json!(number), "turns"),
        Unit::Days => (json!(number), "days"),
        Unit::Seconds => (json!(number), "s"),
        Unit::Micros => (json!(Money::from_micros(number).dollars()), "usd"),
        Unit::Tokens => (json!(number), "tokens"),
        Unit::Bytes => (json!(number), "bytes"),
    };
    let key = format!("{table}.{}", limit.key().1);
    Row { key, shown, value, unit: Some(unit), origin: sourced.origin.clone() }
}

fn of_switch(key: &str, switch: &Sourced<bool>) -> Row {
    let value = json!(switch.value);
    Row { value, ..row(key, &switch.value.to_string(), &switch.origin) }
}

fn of_promise(key: &str, promise: &Sourced<Option<Promise>>) -> Row {
    let word = promise.value.as_ref().map(Promise::as_str);
    Row { value: json!(word), ..row(key, word.unwrap_or(NONE), &promise.origin) }
}

fn of_branch(key: &str, branch: &Sourced<Option<String>>) -> Row {
    let shown = branch.value.as_deref().unwrap_or(NONE);
    Row { value: json!(branch.value), ..row(key, shown, &branch.origin) }
}

/// A procedure's recipe, and those of its terms that it names itself.
fn of_procedure(rows: &mut Vec<Row>, key: &str, procedure: &Sourced<Procedure>) {
    let Procedure { description, recipe, terms } = &procedure.value;
    rows.push(row(key, description.as_deref().unwrap_or_default(), &procedure.origin));
    let names = ["context", "observe", "orient", "decide", "act"];
    for (name, phase) in names.into_iter().zip(recipe.phases()) {
        rows.extend(phase.iter().map(|fragment| {
            let text = match fragment {
                Fragment::Text(text) => text.clone(),
                Fragment::File(path) => path.display().to_string(),
                Fragment::BuiltIn(name) => format!("builtin:{name}"),
            };
            row(&format!("{key}.{name}"), &text, &procedure.origin)
        }));
    }
    of_terms(rows, key, terms);
}

fn of_terms(rows: &mut Vec<Row>, key: &str, terms: &Layer) {
    let named = |name: &str| format!("{key}.{name}");
    rows.extend(terms.limits.iter().map(|(limit, sourced)| of_limit(key, *limit, sourced)));
    if let Some(promise) = &terms.promise {
        rows.push(of_promise(&named("completion_promise"), promise));
    }
    if let Some(agent) = &terms.agent {
        rows.push(row(&named("agent"), &agent.value, &agent.origin));
    }
    if let Some(kind) = &terms.permissions {
        rows.push(row(&named("permissions"), kind.value.label(), &kind.origin));
    }
    rows.extend(terms.commit.as_ref().map(|switch| of_switch(&named("commit"), switch)));
    rows.extend(terms.push.as_ref().map(|switch| of_switch(&named("push"), switch)));
    rows.extend(terms.rebase.as_ref().map(|branch| of_branch(&named("rebase"), branch)));
    rows.extend(terms.awake.as_ref().map(|switch| of_switch(&named("awake"), switch)));
    rows.extend(terms.protect.iter().map(|it| row(&named("protect"), &it.value, &it.origin)));
    rows.extend(terms.checks.iter().map(|check| {
        let check_of = &check.value.check;
        row(&named(check_of.role.label()), &check_of.run, &check.origin)
    }));
}

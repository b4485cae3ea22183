//! Every setting except the checks as one row: its key, the shown text, and its value for programs.

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::engine::record::Fragment;
use crate::engine::settings::merge::Settings;
use crate::engine::settings::{Key, Kind, ProcedureSettings, Sourced, Value, ValueOrigin};
use crate::engine::text::Shown;
use crate::engine::usage::Money;

/// What is shown for an empty list, and for a branch that is not set.
pub(super) const NONE: &str = "none";

/// One setting.
#[derive(Debug, Serialize)]
pub(super) struct ConfigRow {
    /// The table and the key, joined by a dot.
    pub(super) key: String,
    #[serde(skip)]
    pub(super) shown: String,
    pub(super) value: Json,
    /// The unit of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unit: Option<&'static str>,
    pub(super) origin: ValueOrigin,
}

/// All rows, in display order.
pub(super) fn rows(settings: &Settings) -> Vec<ConfigRow> {
    let layer = &settings.layer;
    let name = |key: Key| format!("{}.{}", key.table(), key.row().name);
    let values = layer.values.iter().map(|(key, value)| of_value(&name(*key), *key, value));
    let mut rows: Vec<ConfigRow> = values.collect();
    let protected = layer.protect.iter();
    rows.extend(protected.map(|glob| row("loop.protect", &glob.value, &glob.origin)));
    rows.extend(layer.reactions.iter().map(|reaction| {
        let (at, origin) = (&reaction.value, &reaction.origin);
        let value = json!({ "run": at.run, "timeout_s": at.timeout_s });
        ConfigRow { value, ..row(&format!("on.{}", at.on.label()), &at.run, origin) }
    }));
    rows.extend(layer.agents.iter().map(|(name, agent)| {
        row(&format!("agents.{name}"), &agent.value.to_string(), &agent.origin)
    }));
    // crew's own procedures are shown by `crew run --list`.
    let own = layer.procedures.iter().filter(|(_, it)| it.origin != ValueOrigin::BuiltIn);
    for (name, procedure) in own {
        of_procedure(&mut rows, &format!("procedures.{name}"), procedure);
    }
    rows
}

fn row(key: &str, text: &str, origin: &ValueOrigin) -> ConfigRow {
    ConfigRow {
        key: key.to_owned(),
        shown: Shown(text).to_string(),
        value: json!(text),
        unit: None,
        origin: origin.clone(),
    }
}

fn of_value(name: &str, key: Key, sourced: &Sourced<Value>) -> ConfigRow {
    let of = row(name, sourced.value.word().unwrap_or(NONE), &sourced.origin);
    let plain = || sourced.value.written(key.row().kind).trim_matches('"').to_owned();
    match &sourced.value {
        Value::Off => ConfigRow { value: Json::Null, ..of },
        Value::Switch(on) => ConfigRow { shown: plain(), value: json!(on), ..of },
        Value::Words(words) => ConfigRow { shown: plain(), value: json!(words), ..of },
        Value::Number(number) => {
            let shown = if *number == 0 { "0 (none)".to_owned() } else { plain() };
            let (value, unit) = match key.row().kind {
                Kind::Iterations => (json!(number), Some("iterations")),
                Kind::Turns => (json!(number), Some("turns")),
                Kind::Days => (json!(number), Some("days")),
                Kind::Seconds => (json!(number), Some("s")),
                Kind::Micros => (json!(Money::from_micros(*number).dollars()), Some("usd")),
                Kind::Tokens => (json!(number), Some("tokens")),
                Kind::Bytes => (json!(number), Some("bytes")),
                _ => (json!(number), None),
            };
            ConfigRow { shown, value, unit, ..of }
        }
        _ => of,
    }
}

/// A procedure's recipe, and the terms that it sets itself.
fn of_procedure(rows: &mut Vec<ConfigRow>, key: &str, procedure: &Sourced<ProcedureSettings>) {
    let ProcedureSettings { description, recipe, terms } = &procedure.value;
    rows.push(row(key, description.as_deref().unwrap_or_default(), &procedure.origin));
    for (phase, fragments) in &recipe.0 {
        let name = phase.label();
        rows.extend(fragments.iter().map(|fragment| {
            let text = match fragment {
                Fragment::Text(text) => text.clone(),
                Fragment::File(path) => path.display().to_string(),
                Fragment::BuiltIn(name) => format!("builtin:{name}"),
            };
            row(&format!("{key}.{name}"), &text, &procedure.origin)
        }));
    }
    let named = |name: &str| format!("{key}.{name}");
    rows.extend(
        terms.values.iter().map(|(term, value)| of_value(&named(term.row().name), *term, value)),
    );
    rows.extend(terms.protect.iter().map(|it| row(&named("protect"), &it.value, &it.origin)));
    rows.extend(
        terms
            .checks
            .iter()
            .map(|check| row(&named(check.value.role.label()), &check.value.run, &check.origin)),
    );
}

//! The output of `crew config`, for people and as JSON: every setting, its value and its origin.

use serde::Serialize;
use serde_json::{Value, json};
use toml::Value as Toml;

use super::events::SCHEMA;
use engine::record::{Check, Fragment, Role};
use engine::text::{EscapedLine, distinct_texts};
use engine::usage::Money;
use readers::parse::amounts::Unit;
use readers::parse::settings::merge::{
    ExecutorEntry, ProcedureSettings, Settings, Sourced, ValueOrigin,
};
use readers::parse::settings::options::Key;
use readers::parse::settings::trust::TrustRequest;

/// A settings file and whether it exists.
#[derive(Debug, Serialize)]
pub struct File {
    /// Its owner: "user" or "project".
    pub of: &'static str,
    pub path: String,
    pub is_there: bool,
}

/// Everything that `crew config` shows.
#[derive(Debug)]
pub struct ConfigPage<'a> {
    pub settings: &'a Settings,
    pub files: Vec<File>,
    pub untrusted: &'a [TrustRequest],
    pub warnings: &'a [String],
}

/// The page for people: a row for each value, below the name of its table. A mark shows which are
/// set.
pub fn config_page(config: &ConfigPage<'_>) -> String {
    let mut rows = config_rows(config.settings);
    for role in Role::ALL {
        let (before, key) = (rows.len(), format!("loop.{}", role.label()));
        let checks = config.settings.layer().checks.iter();
        let checks = checks.filter(|check| check.value.role == role);
        rows.extend(checks.map(|check| config_row(&key, &check.value.run, &check.origin)));
        if rows.len() == before {
            rows.push(config_row(&key, NONE, &ValueOrigin::BuiltIn));
        }
    }
    let first = width_of(rows.iter().map(|row| row.table_and_key().1));
    let second = width_of(rows.iter().map(|row| &*row.shown));
    let mut lines = Vec::new();
    for table in distinct_texts(rows.iter().map(|row| row.table_and_key().0.to_owned())) {
        lines.push(format!("[{table}]"));
        for row in rows.iter().filter(|row| row.table_and_key().0 == table) {
            let ConfigRow { shown, origin, .. } = row;
            let mark = if *origin == ValueOrigin::BuiltIn { ' ' } else { '*' };
            let (_, key) = row.table_and_key();
            lines.push(format!("{mark} {key:first$}  {shown:second$}  {origin}"));
        }
    }
    lines.push("\n* is set, the others are built in".to_owned());
    for file in &config.files {
        let there = if file.is_there { "" } else { " (not there)" };
        lines.push(format!("{} file: {}{there}", file.of, file.path));
    }
    lines.join("\n")
}

/// The width of a column with these strings.
fn width_of<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0).min(WIDTH_MAX)
}

/// The page for programs. Times are in seconds, money in US dollars.
pub fn config_json(config: &ConfigPage<'_>) -> Value {
    let checks = config.settings.layer().checks.iter().map(check_json);
    json!({
        "schema": SCHEMA,
        "settings": config_rows(config.settings),
        "checks": checks.collect::<Vec<_>>(),
        "files": config.files,
        "untrusted": config.untrusted.iter().map(|need| &need.text).collect::<Vec<_>>(),
        "warnings": config.warnings,
    })
}

fn check_json(sourced: &Sourced<Check>) -> Value {
    let mut check = json!(sourced.value);
    check["origin"] = json!(sourced.origin);
    check
}

/// The text of an empty list, and of a branch that is not set.
const NONE: &str = "none";
/// The widest column: a longer command does not move the other rows.
const WIDTH_MAX: usize = 40;

/// One setting.
#[derive(Debug, Serialize)]
struct ConfigRow {
    /// The table and the key, joined by a dot.
    key: String,
    #[serde(skip)]
    shown: String,
    value: Value,
    /// The unit of a number; not written for other values.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    origin: ValueOrigin,
}

impl ConfigRow {
    /// The name of the table, and of the key in it.
    fn table_and_key(&self) -> (&str, &str) {
        self.key.split_once('.').unwrap_or(("loop", &self.key))
    }
}

/// All rows except the checks, as they are displayed.
fn config_rows(settings: &Settings) -> Vec<ConfigRow> {
    let layer = settings.layer();
    let values = layer.values_as_listed().map(|(key, value)| {
        let (table, name) = key.split_name();
        row_of_value(&format!("{table}.{name}"), key, value)
    });
    let mut rows: Vec<ConfigRow> = values.collect();
    let protected = layer.protect.iter();
    rows.extend(protected.map(|glob| config_row("loop.protect", &glob.value, &glob.origin)));
    rows.extend(layer.reactions.iter().map(|reaction| {
        let (at, origin) = (&reaction.value, &reaction.origin);
        let value = json!({ "run": at.run, "timeout_s": at.timeout_s });
        ConfigRow { value, ..config_row(&format!("on.{}", at.on.label()), &at.run, origin) }
    }));
    rows.extend(layer.agents.iter().map(|(name, agent)| {
        config_row(&format!("agents.{name}"), &agent.value.to_string(), &agent.origin)
    }));
    for (name, executor) in &layer.executors {
        let ExecutorEntry { submit, status, cancel } = &executor.value;
        for (key, command) in [("submit", submit), ("status", status), ("cancel", cancel)] {
            rows.push(config_row(&format!("executor.{name}.{key}"), command, &executor.origin));
        }
    }
    for (name, procedure) in &layer.procedures {
        // crew's own procedures are shown by `crew run --list`.
        if procedure.origin != ValueOrigin::BuiltIn {
            push_procedure(&mut rows, &format!("procedures.{name}"), procedure);
        }
    }
    rows
}

fn config_row(key: &str, text: &str, origin: &ValueOrigin) -> ConfigRow {
    ConfigRow {
        key: key.to_owned(),
        shown: EscapedLine(text).to_string(),
        value: json!(text),
        unit: None,
        origin: origin.clone(),
    }
}

fn row_of_value(
    name: &str,
    key: &'static Key,
    Sourced { value, origin }: &Sourced<Toml>,
) -> ConfigRow {
    let of = config_row(name, value.as_str().unwrap_or(NONE), origin);
    let Some((unit, number)) =
        key.unit().and_then(|unit| Some((unit, unit.parse_value(value).ok()?)))
    else {
        return match value {
            Toml::Boolean(false) if ["rebase", "completion-promise"].contains(&key.name()) => {
                ConfigRow { value: Value::Null, ..of }
            }
            Toml::String(_) => of,
            value => ConfigRow { shown: value.to_string(), value: json!(value), ..of },
        };
    };
    let shown = if number == 0 { "0 (none)".to_owned() } else { unit.format_number(number) };
    let dollars = Money::from_micros(number).dollars();
    let value = if unit == Unit::Dollars { json!(dollars) } else { json!(number) };
    let unit = if key.counts().is_empty() { None } else { Some(key.counts()) };
    ConfigRow { shown, value, unit, ..of }
}

/// Adds the rows of a procedure: its recipe, and the terms that it sets itself.
fn push_procedure(rows: &mut Vec<ConfigRow>, key: &str, procedure: &Sourced<ProcedureSettings>) {
    let ProcedureSettings { description, recipe, terms } = &procedure.value;
    rows.push(config_row(key, description.as_deref().unwrap_or_default(), &procedure.origin));
    for (phase, fragments) in &recipe.0 {
        let name = phase.label();
        rows.extend(fragments.iter().map(|fragment| {
            let text = match fragment {
                Fragment::Text(text) => text.clone(),
                Fragment::File(path) => path.display().to_string(),
                Fragment::BuiltIn(name) => format!("builtin:{name}"),
            };
            config_row(&format!("{key}.{name}"), &text, &procedure.origin)
        }));
    }
    for (own, value) in terms.values_as_listed() {
        rows.push(row_of_value(&format!("{key}.{}", own.split_name().1), own, value));
    }
    for Sourced { value, origin } in &terms.protect {
        rows.push(config_row(&format!("{key}.protect"), value, origin));
    }
    for Sourced { value: check, origin } in &terms.checks {
        rows.push(config_row(&format!("{key}.{}", check.role.label()), &check.run, origin));
    }
}

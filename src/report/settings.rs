//! `crew config` in words and as JSON: every setting, its value, and where the value came from.

use serde_json::{Value, json};

use super::json::SCHEMA;
use crate::engine::promise::Promise;
use crate::engine::settings::merge::{ROLES, Settings};
use crate::engine::settings::trust::{Need, Shown};
use crate::engine::settings::{Limit, Origin, Unit};
use crate::engine::usage::Money;

/// A settings file and whether it is there.
#[derive(Debug)]
pub struct File {
    /// Whose it is: "user" or "project".
    pub of: &'static str,
    pub path: String,
    pub is_there: bool,
}

/// Everything `crew config` tells.
#[derive(Debug)]
pub struct Told<'a> {
    pub settings: &'a Settings,
    pub files: Vec<File>,
    pub untrusted: &'a [Need],
    pub warnings: &'a [String],
}

/// For people: one row for each value.
pub fn page(told: &Told<'_>) -> String {
    let mut rows: Vec<[String; 3]> = Vec::new();
    for limit in Limit::ALL {
        let (table, key) = limit.key();
        let sourced = told.settings.limit(limit);
        let value = match sourced.value {
            0 => "0 (none)".to_owned(),
            value => limit.written(value).trim_matches('"').to_owned(),
        };
        rows.push([format!("{table}.{key}"), value, sourced.origin.to_string()]);
    }
    let promise = told.settings.promise.as_ref();
    rows.push([
        "loop.completion_promise".to_owned(),
        promise.map_or_else(|| Promise::default().to_string(), |it| it.value.to_string()),
        promise.map_or_else(|| Origin::BuiltIn.to_string(), |it| it.origin.to_string()),
    ]);
    for role in ROLES {
        let checks = told.settings.checks.iter().filter(|it| it.value.check.role == role);
        let before = rows.len();
        for sourced in checks {
            let run = Shown(&sourced.value.check.run).to_string();
            rows.push([role.label().to_owned(), run, sourced.origin.to_string()]);
        }
        if rows.len() == before {
            rows.push([role.label().to_owned(), "none".to_owned(), Origin::BuiltIn.to_string()]);
        }
    }
    let mut lines = columns(&rows);
    lines.push(String::new());
    for file in &told.files {
        let there = if file.is_there { "" } else { " (not there)" };
        lines.push(format!("{} file: {}{there}", file.of, file.path));
    }
    lines.join("\n")
}

/// Left-aligned columns; the last is not padded.
fn columns(rows: &[[String; 3]]) -> Vec<String> {
    /// A longer command is not worth moving every other row for.
    const WIDTH_MAX: usize = 40;
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0).min(WIDTH_MAX)
    };
    let (first, second) = (width(0), width(1));
    let line =
        |[key, value, origin]: &[String; 3]| format!("{key:first$}  {value:second$}  {origin}");
    rows.iter().map(line).collect()
}

/// For programs. Times are in seconds, money in US dollars.
pub fn json(told: &Told<'_>) -> Value {
    let mut values = Vec::new();
    for limit in Limit::ALL {
        let (table, key) = limit.key();
        let sourced = told.settings.limit(limit);
        let (value, unit) = match limit.unit() {
            Unit::Iterations => (json!(sourced.value), "iterations"),
            Unit::Seconds => (json!(sourced.value), "s"),
            Unit::Micros => (json!(Money::from_micros(sourced.value).dollars()), "usd"),
            Unit::Tokens => (json!(sourced.value), "tokens"),
        };
        values.push(json!({
            "key": format!("{table}.{key}"),
            "value": value,
            "unit": unit,
            "origin": origin(&sourced.origin),
        }));
    }
    let promise = told.settings.promise.as_ref();
    values.push(json!({
        "key": "loop.completion_promise",
        "value": promise.map_or_else(Promise::default, |it| it.value.clone()),
        "origin": origin(promise.map_or(&Origin::BuiltIn, |it| &it.origin)),
    }));
    let checks = told.settings.checks.iter().map(|sourced| {
        let (named, check) = (&sourced.value, &sourced.value.check);
        json!({
            "name": named.name,
            "run": check.run,
            "role": check.role,
            "timeout_s": check.timeout_s,
            "success_exit_code": check.success_exit_code,
            "origin": origin(&sourced.origin),
        })
    });
    let files = told.files.iter();
    let files = files.map(|it| json!({ "of": it.of, "path": it.path, "is_there": it.is_there }));
    json!({
        "schema": SCHEMA,
        "settings": values,
        "checks": checks.collect::<Vec<_>>(),
        "files": files.collect::<Vec<_>>(),
        "untrusted": told.untrusted.iter().map(|need| &need.text).collect::<Vec<_>>(),
        "warnings": told.warnings,
    })
}

fn origin(origin: &Origin) -> Value {
    match origin {
        Origin::BuiltIn => json!({ "kind": "built-in" }),
        Origin::File { path, line } => json!({ "kind": "file", "path": path, "line": line }),
        Origin::Environment(name) => json!({ "kind": "environment", "variable": name }),
        Origin::Typed => json!({ "kind": "typed" }),
    }
}

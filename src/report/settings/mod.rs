//! The output of `crew config`, for people and as JSON: every setting, its value, and the origin of
//! the value.

mod rows;

use serde::Serialize;
use serde_json::{Value, json};

use self::rows::{NONE, rows};
use super::json::SCHEMA;
use crate::engine::record::{Check, Role};
use crate::engine::settings::merge::Settings;
use crate::engine::settings::trust::TrustRequest;
use crate::engine::settings::{Sourced, ValueOrigin};
use crate::engine::text::Shown;

/// A settings file and whether it exists.
#[derive(Debug, Serialize)]
pub struct File {
    /// Whose it is: "user" or "project".
    pub of: &'static str,
    pub path: String,
    pub is_there: bool,
}

/// Everything that `crew config` shows.
#[derive(Debug)]
pub struct Told<'a> {
    pub settings: &'a Settings,
    pub files: Vec<File>,
    pub untrusted: &'a [TrustRequest],
    pub warnings: &'a [String],
}

/// For people: one row for each value.
pub fn page(told: &Told<'_>) -> String {
    let mut rows: Vec<[String; 3]> = rows(told.settings)
        .into_iter()
        .map(|row| [row.key, row.shown, row.origin.to_string()])
        .collect();
    for role in Role::ALL {
        let checks = told.settings.layer.checks.iter().filter(|it| it.value.role == role);
        let (before, key) = (rows.len(), format!("loop.{}", role.label()));
        for sourced in checks {
            let run = Shown(&sourced.value.run).to_string();
            rows.push([key.clone(), run, sourced.origin.to_string()]);
        }
        if rows.len() == before {
            rows.push([key, NONE.to_owned(), ValueOrigin::BuiltIn.to_string()]);
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

/// Left-aligned columns; the last column is not padded.
fn columns(rows: &[[String; 3]]) -> Vec<String> {
    /// Other rows are not moved for a command longer than this.
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
    let checks = told.settings.layer.checks.iter().map(check);
    json!({
        "schema": SCHEMA,
        "settings": rows(told.settings),
        "checks": checks.collect::<Vec<_>>(),
        "files": told.files,
        "untrusted": told.untrusted.iter().map(|need| &need.text).collect::<Vec<_>>(),
        "warnings": told.warnings,
    })
}

fn check(sourced: &Sourced<Check>) -> Value {
    let mut check = json!(sourced.value);
    check["origin"] = json!(sourced.origin);
    check
}

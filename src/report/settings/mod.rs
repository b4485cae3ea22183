//! The output of `crew config`, for people and as JSON: every setting, its value, and the origin of
//! the value.

mod rows;

use serde::Serialize;
use serde_json::{Value, json};

use self::rows::{NONE, rows};
use super::events::SCHEMA;
use crate::engine::record::{Check, Role};
use crate::engine::settings::merge::Settings;
use crate::engine::settings::trust::TrustRequest;
use crate::engine::settings::{Sourced, ValueOrigin};
use crate::engine::text::{Shown, distinct};

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

/// For people: a row for each value, below the name of its table. A mark shows which are set.
pub fn page(told: &Told<'_>) -> String {
    let mut rows: Vec<[String; 4]> =
        rows(told.settings).iter().map(|it| cells(&it.key, &it.shown, &it.origin)).collect();
    for role in Role::ALL {
        let checks = told.settings.layer.checks.iter().filter(|it| it.value.role == role);
        let (before, key) = (rows.len(), format!("loop.{}", role.label()));
        rows.extend(checks.map(|it| cells(&key, &Shown(&it.value.run).to_string(), &it.origin)));
        if rows.len() == before {
            rows.push(cells(&key, NONE, &ValueOrigin::BuiltIn));
        }
    }
    let mut lines = Vec::new();
    for table in distinct(rows.iter().map(|[table, ..]| table.clone())) {
        lines.push(format!("[{table}]"));
        let all = rows.iter().zip(columns(&rows));
        lines.extend(all.filter(|([of, ..], _)| *of == table).map(|(_, line)| line));
    }
    lines.push("\n* is set, the others are built in".to_owned());
    for file in &told.files {
        let there = if file.is_there { "" } else { " (not there)" };
        lines.push(format!("{} file: {}{there}", file.of, file.path));
    }
    lines.join("\n")
}

/// The table, then the columns: the key with its mark, the value, and its origin.
fn cells(key: &str, shown: &str, origin: &ValueOrigin) -> [String; 4] {
    let (table, name) = key.split_once('.').unwrap_or(("loop", key));
    let mark = if *origin == ValueOrigin::BuiltIn { ' ' } else { '*' };
    [table.to_owned(), format!("{mark} {name}"), shown.to_owned(), origin.to_string()]
}

/// Left-aligned columns; the last column is not padded.
fn columns(rows: &[[String; 4]]) -> Vec<String> {
    /// Other rows are not moved for a command longer than this.
    const WIDTH_MAX: usize = 40;
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0).min(WIDTH_MAX)
    };
    let (first, second) = (width(1), width(2));
    let line =
        |[_, key, value, origin]: &[String; 4]| format!("{key:first$}  {value:second$}  {origin}");
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

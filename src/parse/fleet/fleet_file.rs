//! fleet.toml: what holds for all tasks of a folder. Unlike a settings file it refuses a key that
//! it does not know, because a fleet spends money while nobody looks.

use toml::de::{DeTable, DeValue};

use super::faults::{Faults, FleetFault};
use super::front_matter::{KeyValue, entry};
use super::keys::{CHECK, TABLES, TASK_KEYS, TOP_KEYS};
use super::options::{Asked, COMMAND, each, is_option, key_name, refuse, refuse_repeats};
use crate::engine::fleet::{FleetTerms, TaskId};
use crate::parse::settings::{broken, in_order, is_branch, line};
use crate::parse::spelling::{nearest, shown};
use crate::parse::{amounts, arguments};

/// The name of the file.
pub const FLEET_FILE: &str = "fleet.toml";

/// Reads the text of a fleet.toml.
///
/// # Errors
/// Every unknown key and every value that cannot be used.
#[cfg(test)]
pub fn read_fleet_file(text: &str) -> Result<FleetTerms, Vec<FleetFault>> {
    read(text).map(|(terms, _)| terms)
}

/// The terms, and the options of `[task]` in a form that a task's own can be laid over.
pub(super) fn read(text: &str) -> Result<(FleetTerms, Asked), Vec<FleetFault>> {
    let mut faults = Faults::of(FLEET_FILE);
    let (mut terms, mut asked) = (FleetTerms::default(), Asked::default());
    match DeTable::parse(text) {
        Ok(table) => {
            for (entry, value) in entries(text, table.get_ref(), &mut faults) {
                match (entry.key.as_str(), value) {
                    ("task", DeValue::Table(table)) => {
                        for (entry, _) in entries(text, table, &mut faults) {
                            take_option(&mut asked, &entry, &mut faults);
                        }
                    }
                    ("land", DeValue::Table(table)) => {
                        for (entry, _) in entries(text, table, &mut faults) {
                            take_landing(&mut terms, &entry, &mut faults);
                        }
                    }
                    _ => take(&mut terms, &entry, &mut faults),
                }
            }
            asked.check(&mut faults);
        }
        Err(error) => {
            let (at, what) = broken(text, &error);
            faults.at(line(text, &at), what);
        }
    }
    terms.words = asked.words();
    let faults = faults.sorted();
    if faults.is_empty() { Ok((terms, asked)) } else { Err(faults) }
}

/// What a table holds, in the order of the file.
fn entries<'text>(
    text: &str,
    table: &'text DeTable<'text>,
    faults: &mut Faults<'_>,
) -> Vec<(KeyValue, &'text DeValue<'text>)> {
    let items = in_order(table).into_iter();
    let entries: Vec<_> = items.map(|item| (entry(text, item), item.1.get_ref())).collect();
    refuse_repeats(entries.iter().map(|(entry, _)| entry), faults);
    entries
}

/// A key above the tables.
fn take(terms: &mut FleetTerms, entry: &KeyValue, faults: &mut Faults<'_>) {
    let text = entry.value.text().ok().filter(|text| is_filled(text));
    let wanted = match key_name(&entry.key).as_str() {
        "name" => {
            let name = text.and_then(|text| text.parse::<TaskId>().ok());
            put(&mut terms.name, name.map(|name| name.to_string()), "a name fit for a branch")
        }
        "base" => {
            let base = text.filter(|text| is_branch(text));
            put(&mut terms.base, base.map(str::to_owned), "a branch")
        }
        "slots" => {
            let slots = text.and_then(|text| arguments::whole(text).ok());
            put(&mut terms.slots, slots.filter(|slots| *slots > 0), "a whole number from 1")
        }
        "max-cost" => {
            let micros = text.and_then(amounts::dollars).map(amounts::micros);
            put(&mut terms.max_cost_micros, micros, "an amount in US dollars")
        }
        "setup" => put(&mut terms.setup, text.map(str::to_owned), COMMAND),
        _ => return faults.at(entry.line, unknown(&entry.key)),
    };
    if let Err(wanted) = wanted {
        refuse(entry, wanted, &entry.value, faults);
    }
}

/// Sets a field, or says what it takes.
fn put<T>(
    field: &mut Option<T>,
    value: Option<T>,
    wanted: &'static str,
) -> Result<(), &'static str> {
    *field = value;
    if field.is_some() { Ok(()) } else { Err(wanted) }
}

/// Whether it is not blank.
fn is_filled(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\0')
}

/// What a key above the tables may have been meant for.
fn unknown(key: &str) -> String {
    let name = key_name(key);
    if TABLES.contains(&key) {
        return format!("{key} is a table: write its keys under a line [{key}]");
    }
    let known: Vec<&str> = TOP_KEYS.into_iter().chain(TABLES).collect();
    let guess = match nearest(key, &known) {
        _ if name == CHECK => "it belongs under [land]".to_owned(),
        _ if is_option(&name) => "it belongs under [task]".to_owned(),
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the keys are {}, and the tables [task] and [land]", TOP_KEYS.join(", ")),
    };
    format!("unknown key `{}`: {guess}", shown(key))
}

/// A key of `[task]`.
fn take_option(asked: &mut Asked, entry: &KeyValue, faults: &mut Faults<'_>) {
    let name = key_name(&entry.key);
    let home = if TASK_KEYS.contains(&name.as_str()) {
        "in the front matter of a task"
    } else if TOP_KEYS.contains(&name.as_str()) && !is_option(&name) {
        "above the first table of the file"
    } else {
        return asked.take(entry, &[], faults);
    };
    faults.at(entry.line, format!("`{name}` belongs {home}"));
}

/// A key of `[land]`.
fn take_landing(terms: &mut FleetTerms, entry: &KeyValue, faults: &mut Faults<'_>) {
    if entry.key != CHECK {
        let key = shown(&entry.key);
        return faults.at(entry.line, format!("unknown key `{key}` in [land]: its key is {CHECK}"));
    }
    terms.land_check = each(entry, faults, |text| {
        is_filled(text).then(|| text.to_owned()).ok_or_else(|| COMMAND.to_owned())
    });
}

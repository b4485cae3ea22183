//! fleet.toml: what holds for all tasks of a folder. Unlike a settings file it refuses a key that
//! it does not know, because a fleet spends money while nobody looks.

use super::faults::Faults;
use super::front_matter::{FileValue, KeyValue, toml};
use super::options::{
    Asked, COMMAND, LAND_KEYS, TOP_KEYS, each, key_name, refuse, refuse_key, refuse_repeats,
};
use crate::engine::fleet::{FleetTerms, TaskId};
use crate::parse::settings::is_branch;
use crate::parse::{amounts, arguments};

/// The name of the file.
pub const FLEET_FILE: &str = "fleet.toml";

/// The terms, and the options of `[task]` in a form that a task's own can be laid over.
pub(super) fn read(text: &str, faults: &mut Faults) -> (FleetTerms, Asked) {
    let (mut terms, mut asked) = (FleetTerms::default(), Asked::default());
    let entries = toml(text).unwrap_or_else(|(line, what)| {
        faults.at(line, what);
        Vec::new()
    });
    refuse_repeats(&entries, faults);
    for entry in &entries {
        match (entry.key.as_str(), &entry.value) {
            ("task", FileValue::Table(keys)) => {
                refuse_repeats(keys, faults);
                for entry in keys {
                    asked.take(entry, &[], faults);
                }
            }
            ("land", FileValue::Table(keys)) => {
                refuse_repeats(keys, faults);
                for entry in keys {
                    take_landing(&mut terms, entry, faults);
                }
            }
            _ => take(&mut terms, entry, faults),
        }
    }
    asked.check(faults);
    terms.words = asked.words();
    (terms, asked)
}

/// A key above the tables.
fn take(terms: &mut FleetTerms, entry: &KeyValue, faults: &mut Faults) {
    let text = entry.value.text().ok().filter(|text| is_filled(text));
    let wanted = match key_name(&entry.key).as_str() {
        "name" => {
            terms.name = text.filter(|text| text.parse::<TaskId>().is_ok()).map(str::to_owned);
            terms.name.is_none().then_some("a name fit for a branch")
        }
        "base" => {
            terms.base = text.filter(|text| is_branch(text)).map(str::to_owned);
            terms.base.is_none().then_some("a branch")
        }
        "slots" => {
            let slots = text.and_then(|text| arguments::whole(text).ok());
            terms.slots = slots.filter(|slots| *slots > 0);
            terms.slots.is_none().then_some("a whole number from 1")
        }
        "max-cost" => {
            terms.max_cost_micros = text.and_then(amounts::dollars).map(amounts::micros);
            terms.max_cost_micros.is_none().then_some("an amount in US dollars")
        }
        "setup" => {
            terms.setup = text.map(str::to_owned);
            terms.setup.is_none().then_some(COMMAND)
        }
        _ => return refuse_key(entry, &TOP_KEYS, false, faults),
    };
    if let Some(wanted) = wanted {
        refuse(entry, wanted, &entry.value, faults);
    }
}

/// A key of `[land]`.
fn take_landing(terms: &mut FleetTerms, entry: &KeyValue, faults: &mut Faults) {
    if !LAND_KEYS.contains(&entry.key.as_str()) {
        return refuse_key(entry, &LAND_KEYS, false, faults);
    }
    terms.land_check = each(entry, faults, |text| {
        is_filled(text).then(|| text.to_owned()).ok_or_else(|| COMMAND.to_owned())
    });
}

/// Whether it is not blank.
fn is_filled(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\0')
}

//! Test support: the parts of the JSON schemas of crew's files, and a reader of the keywords that
//! they use. It refuses a keyword that it does not know.

#![expect(clippy::unwrap_used, reason = "only tests call this")]

use regex::Regex;
use serde_json::{Map, Value, json};

use super::amounts::Unit;

/// The dialect that editors with TOML read.
pub const DIALECT: &str = "http://json-schema.org/draft-07/schema#";
const NOT_BLANK: &str = r"\S";
/// A pattern for text that is not blank and does not begin like an option.
pub const NO_OPTION: &str = r"^\s*[^\s-]";
/// A pattern for a time as people write it; parts of a second are rounded up, so its units are left
/// out.
const TIME: &str = r"([0-9.]+\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|wks?|w|months?|M|years?|yrs?|y)\s*)+";

/// The schema of one text.
pub fn text() -> Value {
    json!({ "type": "string", "pattern": NOT_BLANK })
}

/// The schema of one string or a list of strings.
pub fn texts() -> Value {
    json!({ "type": ["string", "array"], "pattern": NOT_BLANK, "items": text() })
}

/// The schema of a command or a list of commands. A settings file cannot contain `auto`.
pub fn commands() -> Value {
    let mut commands = texts();
    commands["not"] = json!({ "const": "auto" });
    commands["items"] = command();
    commands
}

/// The schema of a command.
pub fn command() -> Value {
    json!({ "type": "string", "pattern": NOT_BLANK, "not": { "const": "auto" } })
}

/// The schema of a text, or `false` for none.
pub fn text_or_off() -> Value {
    json!({ "type": ["string", "boolean"], "pattern": NOT_BLANK, "not": { "const": true } })
}

/// The schema of a number with its unit.
pub fn amount(unit: Unit) -> Value {
    let (kind, pattern, most) = match unit {
        Unit::Count => ("integer", "^[0-9]+$".to_owned(), Some(u32::MAX)),
        Unit::Seconds => ("integer", format!("^(0|{TIME})$"), Some(0)),
        Unit::Dollars => ("number", r"^\$?[0-9]+(\.[0-9]+)?$".to_owned(), None),
        Unit::Tokens => ("integer", "^[0-9]+[kKmM]?$".to_owned(), None),
        Unit::Percent => ("integer", "^(100|[0-9]{1,2})%?$".to_owned(), Some(100)),
        Unit::Bytes => {
            let sizes = r"^(0|[0-9]+\s*(KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB|B))$";
            ("integer", sizes.to_owned(), Some(0))
        }
    };
    let mut amount = json!({ "type": [kind, "string"], "pattern": pattern, "minimum": 0 });
    if let Some(most) = most {
        amount["maximum"] = most.into();
    }
    amount
}

/// The schema of a time greater than 0.
pub fn some_time() -> Value {
    json!({ "type": "string", "pattern": format!("^{TIME}$") })
}

/// The schema of a number greater than 0.
pub fn some(mut count: Value) -> Value {
    count["minimum"] = 1.into();
    count["pattern"] = "^0*[1-9][0-9]*$".into();
    count
}

/// A part of a schema with the description that an editor shows.
pub fn described(mut part: Value, description: &str) -> Value {
    part["description"] = description.into();
    part
}

/// The schema of a table with these keys and no others. `_` may replace `-` in a key; `also` lists
/// further spellings.
pub fn table(keys: impl IntoIterator<Item = (String, Value)>, also: &[&str]) -> Value {
    let properties: Map<_, _> = keys.into_iter().collect();
    let hyphens =
        properties.keys().filter(|key| key.contains('-')).map(|key| key.replace('-', "_"));
    let others = also.iter().map(|key| (*key).to_owned()).chain(hyphens);
    let others = others.collect::<Vec<_>>().join("|");
    let mut table =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !others.is_empty() {
        table["patternProperties"] = json!({ format!("^({others})$"): true });
    }
    table
}

/// A reference to each of these definitions.
pub fn references<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(String, Value)> {
    let reference = |name: &str| json!({ "$ref": format!("#/definitions/{name}") });
    names.into_iter().map(|name| (name.to_owned(), reference(name))).collect()
}

/// The values that a part of a schema refuses, each with its place.
pub fn refused(schema: &Value, part: &Value, value: &Value, at: &str) -> Vec<String> {
    let Some(keywords) = part.as_object() else {
        return if part == &json!(true) { Vec::new() } else { vec![format!("{at} is not known")] };
    };
    let mut all = Vec::new();
    for (keyword, rule) in keywords {
        let is_kept = match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "definitions" => true,
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                let part = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
                all.extend(refused(schema, part, value, at));
                true
            }
            "type" => {
                let one = std::slice::from_ref(rule);
                rule.as_array().map_or(one, Vec::as_slice).iter().any(|kind| is_a(value, kind))
            }
            "enum" => rule.as_array().unwrap().contains(value),
            "const" => rule == value,
            "not" => !refused(schema, rule, value, at).is_empty(),
            "pattern" => value.as_str().is_none_or(|text| is_like(text, rule.as_str().unwrap())),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "maxLength" => {
                value.as_str().is_none_or(|value| value.len() as u64 <= rule.as_u64().unwrap())
            }
            "minItems" => {
                value.as_array().is_none_or(|value| value.len() as u64 >= rule.as_u64().unwrap())
            }
            "items" => {
                for one in value.as_array().into_iter().flatten() {
                    all.extend(refused(schema, rule, one, at));
                }
                true
            }
            "propertyNames" => {
                for name in value.as_object().into_iter().flat_map(Map::keys) {
                    all.extend(refused(schema, rule, &json!(name), at));
                }
                true
            }
            "required" => {
                let names = rule.as_array().unwrap();
                value.as_object().is_none_or(|table| {
                    names.iter().all(|name| table.contains_key(name.as_str().unwrap()))
                })
            }
            "additionalProperties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    let part = part_of(part, name);
                    all.extend(refused(schema, part, value, &format!("{at}.{name}")));
                }
                true
            }
            // They are read with it.
            "properties" | "patternProperties" => part.get("additionalProperties").is_some(),
            unknown => panic!("the keyword {unknown} is not known here"),
        };
        if !is_kept {
            all.push(format!("{at} = {value}: {keyword} {rule}"));
        }
    }
    all
}

/// The part of a table's schema for one of its keys.
fn part_of<'a>(table: &'a Value, name: &str) -> &'a Value {
    let patterns = table["patternProperties"].as_object().into_iter().flatten();
    let mut like = patterns.filter(|(pattern, _)| is_like(name, pattern)).map(|(_, part)| part);
    table["properties"].get(name).or(like.next()).unwrap_or(&table["additionalProperties"])
}

fn is_like(text: &str, pattern: &str) -> bool {
    Regex::new(pattern).unwrap().is_match(text)
}

fn is_a(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("the type {unknown} is not known here"),
    }
}

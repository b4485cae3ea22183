//! The environment variables for settings. Each refusal names the variable and a value that works.

use std::collections::BTreeMap;

use super::values::{Written, example};
use crate::engine::settings::{Key, Layer, Sourced, ValueOrigin};

/// Reads all of them; `get` returns the text of a variable that is set. The error has one line for
/// each that cannot be used.
pub fn variables(get: &dyn Fn(&str) -> Option<String>) -> Result<Layer, String> {
    let (mut layer, mut faults) = (Layer::default(), BTreeMap::new());
    for key in Key::all() {
        let row = key.row();
        let set = row.variable.and_then(|name| Some((name, get(name)?)));
        let Some((name, text)) = set else { continue };
        let written = Written { name, example: example(row), text: text.trim(), value: None };
        match written.read(row.kind) {
            Ok(value) => {
                let origin = ValueOrigin::Environment { variable: name };
                layer.values.insert(key, Sourced { value, origin });
            }
            Err(fault) => {
                faults.insert(key, fault);
            }
        }
    }
    let faults: Vec<String> = faults.into_values().collect();
    if faults.is_empty() { Ok(layer) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::settings::Value;

    #[test]
    fn a_variable_is_read_by_its_kind_or_refused_with_a_value_that_works() {
        let read = |variables_set: &[(&str, &str)]| {
            let get = |name: &str| {
                let set = variables_set.iter().find(|(set, _)| *set == name);
                set.map(|(_, text)| (*text).to_owned())
            };
            variables(&get)
        };
        let layer = read(&[
            ("CREW_TIMEOUT", "45m"),
            ("CREW_AGENT", "codex"),
            ("CREW_MODEL", "gpt-x"),
            ("CREW_PERMISSIONS", "auto"),
            ("CREW_COMMIT", "1"),
            ("CREW_PUSH", "false"),
            ("CREW_REBASE", "0"),
        ])
        .unwrap();
        let value = |key| layer.value(key).unwrap();
        assert_eq!(value(Key::Timeout), &Value::Number(2700));
        let switches = [Key::Commit, Key::Push, Key::Rebase].map(value);
        assert_eq!(switches, [&Value::Switch(true), &Value::Switch(false), &Value::Off]);
        assert_eq!(layer.word(Key::Model), Some("gpt-x"));
        let agent = &layer.values[&Key::Agent];
        assert_eq!(
            (agent.value.word(), agent.origin.to_string().as_str()),
            (Some("codex"), "$CREW_AGENT")
        );
        let faults = read(&[
            ("CREW_TIMEOUT", "90"),
            ("CREW_MAX_TURNS", "many"),
            ("CREW_KEEP_LOGS", "2"),
            ("CREW_PERMISSIONS", "acceptEdits"),
            ("CREW_COMMIT", "yes"),
            ("CREW_REBASE", "-x"),
        ]);
        assert_snapshot!(faults.unwrap_err(), @r#"
        CREW_TIMEOUT takes a time with its unit, such as 90m, 12h or "1h 30m", not `90`: CREW_TIMEOUT=10m
        CREW_MAX_TURNS takes a whole number, not `many`: CREW_MAX_TURNS=50
        CREW_KEEP_LOGS takes a size with its unit, such as 500MiB or 2GiB, not `2`: CREW_KEEP_LOGS=2GiB
        CREW_PERMISSIONS takes default, accept-edits, auto or bypass, not `acceptEdits`: CREW_PERMISSIONS=accept-edits
        CREW_COMMIT takes 1 or 0, not `yes`: CREW_COMMIT=1
        CREW_REBASE takes a branch, or 0, not `-x`: CREW_REBASE=main
        "#);
    }
}

//! The variables of the environment that stand for settings. Each refusal names the variable and a value that
//! works.

use super::terms::is_branch;
use super::values::number;
use crate::engine::agent::Permissions;
use crate::engine::settings::{Layer, Limit, Origin, Sourced};
use crate::parse::spelling::{nearest, shown};

/// Reads all of them; `get` gives the text of one that is set. The error is one line for each that cannot be
/// used.
pub fn variables(get: &dyn Fn(&str) -> Option<String>) -> Result<Layer, String> {
    let mut reader = Reader { get, faults: Vec::new() };
    let mut layer = Layer::default();
    for limit in Limit::ALL {
        let read = |text: &str| number(limit, text);
        if let Some(value) = reader.read(limit.variable(), read) {
            layer.limits.insert(limit, value);
        }
    }
    layer.agent = reader.read("CREW_AGENT", |text| Ok(text.to_owned()));
    layer.permissions = reader.read("CREW_PERMISSIONS", permissions);
    layer.commit = reader.read("CREW_COMMIT", switch);
    layer.push = reader.read("CREW_PUSH", switch);
    layer.rebase = reader.read("CREW_REBASE", rebase);
    layer.awake = reader.read("CREW_AWAKE", switch);
    if reader.faults.is_empty() { Ok(layer) } else { Err(reader.faults.join("\n")) }
}

/// What is wanted, and an example of it.
type Wanted = (&'static str, &'static str);

struct Reader<'get> {
    get: &'get dyn Fn(&str) -> Option<String>,
    faults: Vec<String>,
}

impl Reader<'_> {
    fn read<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&str) -> Result<T, Wanted>,
    ) -> Option<Sourced<T>> {
        let text = (self.get)(name)?;
        match read(text.trim()) {
            Ok(value) => Some(Sourced { value, origin: Origin::Environment(name) }),
            Err((wanted, example)) => {
                let text = shown(text.trim());
                self.faults.push(format!("{name} takes {wanted}, not `{text}`: {name}={example}"));
                None
            }
        }
    }
}

fn permissions(text: &str) -> Result<Permissions, Wanted> {
    let kind = Permissions::ALL.into_iter().find(|kind| kind.label() == text);
    kind.ok_or_else(|| {
        let meant = nearest(text, &Permissions::ALL.map(Permissions::label));
        ("default, accept-edits, auto or bypass", meant.unwrap_or("accept-edits"))
    })
}

fn switch(text: &str) -> Result<bool, Wanted> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(("1 or 0", "1")),
    }
}

fn rebase(text: &str) -> Result<Option<String>, Wanted> {
    match text {
        "0" | "false" => Ok(None),
        branch if is_branch(branch) => Ok(Some(branch.to_owned())),
        _ => Err(("a branch, or 0", "main")),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

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
            ("CREW_PERMISSIONS", "auto"),
            ("CREW_COMMIT", "1"),
            ("CREW_PUSH", "false"),
            ("CREW_REBASE", "0"),
        ])
        .unwrap();
        assert_eq!(layer.limits[&Limit::Timeout].value, 2700);
        let switches = [layer.commit, layer.push].map(|switch| switch.unwrap().value);
        assert_eq!((switches, layer.rebase.unwrap().value), ([true, false], None));
        let agent = layer.agent.unwrap();
        assert_eq!(
            (agent.value.as_str(), agent.origin.to_string().as_str()),
            ("codex", "$CREW_AGENT")
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

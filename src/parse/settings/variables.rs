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

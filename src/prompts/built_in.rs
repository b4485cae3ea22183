//! crew's own templates, compiled in: a recipe uses `NAME`, another template
//! `{% include "crew/NAME.j2" %}`. It reads no file.

use crate::parse::spelling::nearest;

macro_rules! templates {
    ($($procedure:literal),+; $($part:literal),+) => {
        /// The name and text of each template: the phases of each procedure, and common parts.
        const TEMPLATES: &[(&str, &str)] = &[
            $(
                template!($procedure, "/observe"),
                template!($procedure, "/orient"),
                template!($procedure, "/decide"),
                template!($procedure, "/act"),
            )+
            $(template!($part)),+
        ];
    };
}

macro_rules! template {
    ($($name:literal),+) => {
        (concat!($($name),+), include_str!(concat!("fragments/", $($name),+, ".j2")))
    };
}

templates!["audit", "bootstrap", "build", "fix", "plan"; "checks", "commit", "evidence", "tree"];

/// The text of the template with this name.
///
/// # Errors
/// When it does not exist; the error suggests the name that was probably meant.
pub fn template(name: &str) -> Result<&'static str, String> {
    let found = TEMPLATES.iter().find(|(own, _)| *own == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = names().collect();
        let near = nearest(name, &names);
        let near = near.map_or_else(String::new, |near| format!("; did you mean crew/{near}.j2?"));
        format!("crew has no template crew/{name}.j2{near}")
    })
}

/// The names of all templates.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEMPLATES.iter().map(|(name, _)| *name)
}

//! How a person's git shows a difference on a terminal. It is asked outside every repository: an
//! agent could set a pager in its own.

use std::path::Path;

use super::command::{Command, whole};
use crate::world::env;

/// The colours of a difference and its pager, by their keys.
const KEYS: &str = r"^(color\.diff\.|core\.pager$)";

/// The settings of colours as `-c` takes them, "color.diff.new=blue", or `None` where a person
/// wants none; and the pager: of `GIT_PAGER`, `core.pager` and `PAGER` the first that is set.
/// `outside` is a folder in no repository.
pub fn of_person(outside: &Path) -> (Option<Vec<String>>, String) {
    let asked = |arguments: &[&str]| {
        let ended = Command::default().run(outside, arguments, || false);
        let printed = ended.ok().and_then(whole).unwrap_or_default();
        String::from_utf8_lossy(&printed).into_owned()
    };
    let (mut colours, mut pager) = (Vec::new(), None);
    let listed = asked(&["config", "-z", "--get-regexp", KEYS]);
    for (key, value) in listed.split('\0').filter_map(|entry| entry.split_once('\n')) {
        match key {
            "core.pager" => pager = Some(value.to_owned()),
            _ => colours.push(format!("{key}={value}")),
        }
    }
    let pager = env::text("GIT_PAGER").or(pager).or_else(|| env::text("PAGER"));
    let has_colour = asked(&["config", "--get-colorbool", "color.diff", "true"]);
    let colours = Some(colours).filter(|_| has_colour.trim_end() != "false");
    (colours, pager.unwrap_or_else(|| "less".to_owned()))
}

//! The rules of crew's own settings files.

use super::Facts;
use super::findings::Finding;
use super::findings::Severity::{Broken, Warning};
use super::rules::add;

pub(super) fn settings(facts: &Facts, all: &mut Vec<Finding>) {
    let own = &facts.own;
    for fault in &own.faults {
        let fix = "correct that line: until then no loop starts here".to_owned();
        add(all, "settings-unreadable", Broken, fault.clone(), fix);
    }
    if !own.untrusted.is_empty() {
        let what = format!(
            "the project's settings want what nobody on this machine has trusted, so no loop starts here: {}",
            own.untrusted.join("; ")
        );
        let fix = "read it, then run `crew trust` in a terminal here; or start with --no-project";
        add(all, "settings-untrusted", Broken, what, fix.to_owned());
    }
    for key in &own.unknown {
        let fix = "correct or remove the key; `crew config` shows what is in force".to_owned();
        add(all, "settings-unknown-key", Warning, key.clone(), fix);
    }
}

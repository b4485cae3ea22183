//! The rules for crew's own settings files. They report and change nothing.

use super::Severity::{Broken, Warning};
use super::rules::add;
use super::{DoctorFacts, Finding};

pub(super) fn settings(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    let own = &facts.own;
    for (faults, way_out) in
        [(&own.faults, "correct that line"), (&own.variables, "correct or unset the variable")]
    {
        for fault in faults {
            let fix = format!("{way_out}: until then no loop starts here");
            add(all, "settings-unreadable", Broken, fault.clone(), fix);
        }
    }
    if !own.untrusted.is_empty() {
        let what = format!(
            "the project's settings need trust, and nobody on this machine has given it, so no loop starts here: {}",
            own.untrusted.join("; ")
        );
        let fix = "read it, then run `crew trust` in a terminal here; or start with --no-project";
        add(all, "settings-untrusted", Broken, what, fix.to_owned());
    }
    for what in &own.agents_missing {
        let fix = "install it, or name another under [agent]: until then crew run starts nothing";
        add(all, "agent-missing", Broken, what.clone(), fix.to_owned());
    }
    if let Some(what) = &own.check_missing {
        let fix = "install it, or name another command: until then no loop starts here";
        add(all, "check-missing", Broken, what.clone(), fix.to_owned());
    }
    for key in &own.unknown {
        let fix = "correct or remove the key; `crew config` shows what is in force".to_owned();
        add(all, "settings-unknown-key", Warning, key.clone(), fix);
    }
}

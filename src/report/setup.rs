//! The pages of `crew install` and `crew uninstall`, and the doctor's findings, for people and as
//! JSON.

use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use minijinja::{Value, context};
use serde_json::json;

use super::events::SCHEMA;
use super::words;
use engine::doctor::{Examination, Finding, Severity};
use engine::failure::Failure;
use engine::record::LoopId;
use engine::text::templates::Fact;
use engine::text::{count, variant_name};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Renders a row of a page: its name and its value.
fn page_row(name: &str, value: impl Display) -> String {
    format!("  {name:<8} {value}\n")
}

/// Renders a page of `templates/setup.j2`.
fn render_page(values: Value) -> String {
    let values = context! { version => VERSION, ..values };
    let mut page = String::new();
    for Fact { name, text, detail } in words::render_rows("setup.j2", &values) {
        page += &if name.is_empty() { text + "\n" } else { page_row(&name, text) };
        page.extend(detail.iter().map(|line| page_row("", line)));
    }
    page
}

/// The page of an installation for the user.
pub fn installed_page(
    folder: &Path,
    program: &Path,
    replaced: Option<&str>,
    scope: &str,
) -> String {
    render_page(context! { page => "installed", folder, program, replaced, scope })
}

/// The row of an installation that also shows the loop in the client's status line.
pub fn status_line_row(settings: &Path) -> String {
    let settings = settings.display();
    page_row("line", format!("the status line of new sessions shows the loop: {settings}"))
}

/// The row of an uninstallation that removed the loop from the status line.
pub fn removed_line_row(settings: &Path) -> String {
    page_row("line", format!("taken out of {}", settings.display()))
}

/// The row of an installation without completions and manual pages.
pub const NO_SHELL_FILES: &str =
    "  shell    crew install --shell-files adds completions and man pages";
/// The row of an uninstallation that removed completions and manual pages.
pub const WITHOUT_SHELL_FILES: &str = "  shell    the completions and man pages are removed";

/// The rows of the completions and manual pages that are installed now, and of foreign files that
/// were left in their places.
pub fn shell_files(shell: &str, [placed, left]: &[Vec<PathBuf>; 2]) -> String {
    render_page(context! { page => "shell", shell, placed, left })
}

/// The page of an installation for everybody who works in a repository.
pub fn shared_page(address: &str) -> String {
    render_page(context! { page => "shared", address })
}

/// The line for a repository whose settings no longer ask for crew.
pub const UNSHARED: &str = ".claude/settings.json no longer asks for crew's plugin; commit it";

/// The page of an uninstallation. `found`: whether the client had the plugin, and whether its
/// folder existed. `shared` are the checkouts whose settings still ask for it.
pub fn uninstalled_page(
    folder: &Path,
    found: (Option<bool>, bool),
    shared: &[PathBuf],
    records: Option<&Path>,
) -> String {
    let (was_registered, was_there) = found;
    let shared: Vec<PathBuf> =
        shared.iter().map(|checkout| checkout.join(".claude/settings.json")).collect();
    render_page(
        context! { page => "uninstalled", folder, was_registered, was_there, shared, records },
    )
}

/// Why an uninstallation is refused while `count` loops run in sessions. Its hint names the first
/// loop, and ends with the list of them.
pub fn loops_in_sessions(first: &LoopId, count: usize, list: &str) -> Failure {
    let what = if count == 1 {
        format!("loop {first} runs in a session, and no hook judges it without the plugin")
    } else {
        format!("{count} loops run in sessions, and no hook judges them without the plugin")
    };
    let hint = format!(
        "crew pause {first} or crew cancel {first} first: its record stays, and crew resume {first} continues \
         it in fresh processes; crew uninstall --yes does it anyway\n{list}"
    );
    Failure::new(what, hint)
}

/// The row of an uninstallation for a loop that still runs in a session.
pub fn unjudged_row(id: &LoopId) -> String {
    page_row("loop", format!("no hook judges loop {id} any longer: crew cancel {id}"))
}

/// The line for a session whose plugin and binary have different versions.
pub fn skew_line(plugin: &str, launched: bool) -> String {
    let fix = if launched {
        "update both to one version: cargo build --release in the checkout, or claude plugin update crew@crew"
    } else {
        "crew install, then /reload-plugins"
    };
    format!("crew: the plugin is of version {plugin}, its binary of {VERSION}. Fix: {fix}")
}

/// The page of `crew doctor`: the facts, every finding with its fix, and a summary.
pub fn doctor_page(examined: &Examination) -> String {
    let mut text = format!("crew {VERSION}\n");
    text.extend(examined.rows.iter().map(|(name, value)| page_row(name, value)));
    for Finding { severity, what, fix, .. } in &examined.findings {
        let _ = write!(text, "\n{}: {what}\n  fix: {fix}\n", variant_name(severity));
    }
    let [broken, warnings] = [Severity::Broken, Severity::Warning].map(|severity| {
        examined.findings.iter().filter(|finding| finding.severity == severity).count() as u64
    });
    let _ = match broken {
        0 => write!(text, "\nnothing is broken"),
        broken => write!(text, "\n{broken} broken"),
    };
    if warnings > 0 {
        let _ = write!(text, ", {}", count(warnings, "warning"));
    }
    text + "\n"
}

/// The page of `crew doctor` as JSON.
pub fn doctor_json(examined: &Examination) -> serde_json::Value {
    let mut json = json!({
        "schema": SCHEMA,
        "version": VERSION,
        "broken": examined.is_broken(),
        "findings": examined.findings,
    });
    if let (Some(json), Some(facts)) = (json.as_object_mut(), examined.facts.as_object()) {
        json.extend(facts.clone());
    }
    json
}

/// The line shown until a cluster answers.
pub fn waiting_line(executor: &str, within: Duration) -> String {
    let minutes = count(within.as_secs() / 60, "minute");
    format!("crew: waiting for a place on {executor} and for the checks there, {minutes} at most")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn an_installation_ends_with_what_to_do_next() {
        let folder = Path::new("/home/me/.local/share/crew/plugin");
        let program = Path::new("/home/me/.cargo/bin/crew");
        assert_snapshot!(installed_page(folder, program, Some("0.0.9"), "user"), @r#"
        crew 0.1.0 is installed in place of 0.0.9 (scope user)
          plugin   /home/me/.local/share/crew/plugin
          runs     /home/me/.cargo/bin/crew
          next     in running sessions: /reload-plugins, or restart them
          try      /crew:loop "Make the tests pass" --max-iterations 5 --verify "your test command"
          help     crew doctor
        "#);
    }

    #[test]
    fn an_uninstallation_lists_what_is_left() {
        let folder = Path::new("/home/me/.local/share/crew/plugin");
        let shared = [PathBuf::from("/repo")];
        let records = Path::new("/home/me/.local/state/crew");
        assert_snapshot!(uninstalled_page(folder, (Some(true), true), &shared, Some(records)), @"
        crew is uninstalled
          removed  /home/me/.local/share/crew/plugin
          shared   /repo/.claude/settings.json still asks for it
                   crew uninstall --scope project, there
          next     in running sessions: /reload-plugins, or restart them
          kept     the records of all loops, in /home/me/.local/state/crew
        ");
        let nothing = |found| uninstalled_page(folder, (found, false), &[], None);
        assert_snapshot!(nothing(Some(false)), @"crew is not installed here");
        assert_snapshot!(nothing(None), @"crew is not installed here; `claude` is not on PATH, so the client could not be asked");
        assert_snapshot!(uninstalled_page(folder, (Some(false), false), &[], Some(records)), @"
        crew is not installed here
          kept     the records of all loops, in /home/me/.local/state/crew
        ");
    }

    #[test]
    fn an_uninstallation_names_live_loops_and_what_to_do_first() {
        let id = LoopId::from_random(7);
        let refusal = |count| loops_in_sessions(&id, count, "").with_hint();
        assert_snapshot!(refusal(1) + &refusal(2) + &unjudged_row(&id), @"
        loop haaaaaaa runs in a session, and no hook judges it without the plugin
        hint: crew pause haaaaaaa or crew cancel haaaaaaa first: its record stays, and crew resume haaaaaaa continues it in fresh processes; crew uninstall --yes does it anyway
        2 loops run in sessions, and no hook judges them without the plugin
        hint: crew pause haaaaaaa or crew cancel haaaaaaa first: its record stays, and crew resume haaaaaaa continues it in fresh processes; crew uninstall --yes does it anyway
          loop     no hook judges loop haaaaaaa any longer: crew cancel haaaaaaa
        ");
    }
}

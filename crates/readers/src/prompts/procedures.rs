//! The procedures: named recipes for `crew run`, and how any of them is listed. crew's own are the
//! lowest tier of settings. It reads no file.

use std::fmt::Write as _;

use toml::Value;

use super::{fragments, variables};
use crate::parse::amounts::Unit;
use crate::parse::settings::merge::{ProcedureSettings, Settings};
use crate::parse::spelling::find_nearest;
use engine::record::{Fragment, Phase};

/// The names of the procedures that crew brings, as they are displayed.
pub const NAMES: [&str; 5] = ["build", "plan", "fix", "audit", "bootstrap"];

/// The names of all procedures, crew's own first.
fn list_names(settings: &Settings) -> Vec<&str> {
    let own = settings.layer().procedures.keys().map(String::as_str);
    NAMES.into_iter().chain(own.filter(|name| !NAMES.contains(name))).collect()
}

/// The procedure that a word probably names.
pub fn nearest_to<'settings>(word: &str, settings: &'settings Settings) -> Option<&'settings str> {
    find_nearest(word, &list_names(settings))
}

/// The page of `crew run --list`.
pub fn render_list(settings: &Settings) -> String {
    let names = list_names(settings);
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let procedures = &settings.layer().procedures;
    let named = names.into_iter().filter_map(|name| Some((name, &procedures.get(name)?.value)));
    named.fold(String::new(), |mut text, (name, one)| {
        let about = one.description.as_deref().unwrap_or_default();
        let _ = writeln!(text, "{name:<width$}  {about} ({})", render_iterations(one));
        text
    })
}

fn render_iterations(procedure: &ProcedureSettings) -> String {
    let most =
        procedure.terms.value("max-iterations").and_then(|most| Unit::Count.parse_value(most).ok());
    match most {
        None => "the loop's own limit".to_owned(),
        Some(0) => "no limit on iterations".to_owned(),
        Some(1) => "1 iteration".to_owned(),
        Some(count) => format!("{count} iterations"),
    }
}

/// The page of `crew run --list NAME`: what it is, when it ends, and its phases before they are
/// filled in. `None` where the procedure does not exist.
pub fn render_page(settings: &Settings, name: &str) -> Option<String> {
    let procedure = &settings.layer().procedures.get(name)?.value;
    let end = if procedure.terms.value("completion-promise") == Some(&Value::Boolean(false)) {
        "done after its last iteration, without a claim"
    } else {
        "done when the agent's claim is believed"
    };
    let about = procedure.description.as_deref().unwrap_or_default();
    let mut text = format!("{name}: {about}\n{}, {end}\n", render_iterations(procedure));
    for phase in Phase::ALL {
        for fragment in procedure.recipe.fragments_of(phase) {
            let (from, body) = match fragment {
                Fragment::Text(words) => ("text".to_owned(), words.as_str()),
                Fragment::File(path) => (path.display().to_string(), ""),
                Fragment::BuiltIn(name) => {
                    (format!("crew/{name}.j2"), fragments::find_template(name).unwrap_or_default())
                }
            };
            let _ = write!(text, "\n## {} ({from})\n", phase.label().to_uppercase());
            if !body.is_empty() {
                let _ = write!(text, "\n{}\n", body.trim_end());
            }
        }
    }
    let _ = write!(text, "\nThe variables of a template:\n\n{}", variables::render_table());
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use insta::assert_snapshot;

    use super::*;
    use crate::parse::settings::merge::{Layers, merge_layers};
    use crate::parse::settings::{SettingsOwner, parse_settings};

    fn settings(procedure: &str, user: &str, project: &str) -> Settings {
        let read = |text: &str, path: &str, whose| {
            parse_settings(text, Path::new(path), whose, &["text"], &|_| true).unwrap().layer
        };
        let user = read(user, "/home/config.toml", SettingsOwner::Users);
        let project = read(project, "/repo/.claude/crew.toml", SettingsOwner::Projects);
        merge_layers(&Layers { user, project, ..Layers::default() }, Some(procedure)).unwrap()
    }

    const RELEASE: &str =
        "[procedures.release]\ndescription = 'cut a release'\nact = 'prompts/release.j2'";

    #[test]
    fn the_list_has_a_line_for_every_procedure() {
        assert_snapshot!(render_list(&settings("release", "", RELEASE)), @"
        build      take the next task of the plan, build it whole, run the checks (5 iterations)
        plan       compare what is wanted with what is there and write PLAN.md; no code (5 iterations)
        fix        make failing checks pass, one cause at a time (10 iterations)
        audit      look for defects, area by area, and write AUDIT.md; no code (5 iterations)
        bootstrap  learn how the project works and write AGENTS.md (1 iteration)
        release    cut a release (the loop's own limit)
        ");
        let changed = "[procedures.fix]\ndescription = 'mend'\nmax-iterations = 2";
        let changed = render_list(&settings("fix", changed, ""));
        assert_eq!(changed.lines().count(), 5, "{changed}");
        assert!(changed.contains("\nfix        mend (2 iterations)\n"), "{changed}");
    }

    #[test]
    fn a_page_says_what_a_procedure_is_and_shows_its_phases() {
        let page = |name: &str| render_page(&settings("release", "", RELEASE), name);
        assert_snapshot!(page("release").unwrap().replace(&variables::render_table(), ""), @"
        release: cut a release
        the loop's own limit, done when the agent's claim is believed

        ## ACT (/repo/.claude/prompts/release.j2)

        The variables of a template:
        ");
        let bootstrap = page("bootstrap").unwrap();
        assert!(bootstrap.starts_with("bootstrap: learn how the project works and write AGENTS.md\n1 iteration, done after its last iteration, without a claim\n\n## OBSERVE (crew/bootstrap/observe.j2)\n\nGet to know"));
        assert_eq!(page("nightly"), None);
    }

    #[test]
    fn a_misspelled_procedure_is_recognized() {
        let table =
            [("biuld", Some("build")), ("audits", Some("audit")), ("releas", Some("release"))];
        let settings = settings("release", "", RELEASE);
        for (word, expected) in table {
            assert_eq!(nearest_to(word, &settings), expected, "{word}");
        }
        assert_eq!(nearest_to("refactor", &settings), None);
    }

    #[test]
    fn a_procedures_own_value_takes_precedence_over_the_general_one() {
        let (loops, build) = ("[loop]\nmax-iterations = ", "[procedures.build]\nmax-iterations = ");
        let table = [
            (String::new(), String::new(), 5),
            (format!("{loops}20"), String::new(), 5),
            (format!("{loops}20\n{build}8"), String::new(), 8),
            (format!("{loops}20\n{build}8"), format!("{loops}7"), 8),
            (format!("{build}8"), format!("{loops}7\n{build}6"), 6),
        ];
        for (user, project, expected) in table {
            let settings = settings("build", &user, &project);
            assert_eq!(settings.limits().max_iterations, expected, "{user} {project}");
        }
    }

    #[test]
    fn a_phase_given_by_a_file_replaces_crews_own() {
        let project = "[procedures.build]\nact = [\"prompts/act.md\", \"Be brief\"]\norient = []";
        let changed = settings("build", "", project);
        let act = [
            Fragment::File("/repo/.claude/prompts/act.md".into()),
            Fragment::Text("Be brief".to_owned()),
        ];
        assert_eq!(changed.recipe().fragments_of(Phase::Act), act);
        let crews = |phase: &str| [Fragment::BuiltIn(format!("build/{phase}"))];
        assert_eq!(changed.recipe().fragments_of(Phase::Observe), crews("observe"));
        assert_eq!(
            changed.recipe().fragments_of(Phase::Orient),
            crews("orient"),
            "an empty list says nothing"
        );
    }

    #[test]
    fn a_procedure_can_ask_for_no_claim() {
        let promise = |user: &str| settings("bootstrap", user, "").default_promise();
        assert_eq!(promise(""), None);
        let asked = promise("[procedures.bootstrap]\ncompletion-promise = \"DONE\"").unwrap();
        assert_eq!(asked.as_str(), "DONE");
    }
}

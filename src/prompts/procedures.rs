//! The procedures: named recipes for `crew run`. It holds the built-in ones, and how any of them is
//! listed; it reads no file.

use std::fmt::Write as _;

use super::{fragments, variables};
use crate::engine::record::{Fragment, Phase, Recipe};
use crate::parse::spelling::nearest;

/// A named recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Procedure {
    pub name: String,
    /// What it does, in one line.
    pub about: String,
    pub recipe: Recipe,
    /// The iteration limit unless another is given; `None` for the loop's own.
    pub iterations: Option<u32>,
    /// Whether a claim can complete it. One without claims ends at its limit and is then complete.
    pub claims: bool,
}

/// Name, description, iterations, and whether a claim can complete it.
const BUILT_IN: [(&str, &str, u32, bool); 5] = [
    ("build", "take the next task of the plan, build it whole, run the checks", 5, true),
    ("plan", "compare what is wanted with what is there and write PLAN.md; no code", 5, true),
    ("fix", "make failing checks pass, one cause at a time", 10, true),
    ("audit", "look for defects, area by area, and write AUDIT.md; no code", 5, true),
    ("bootstrap", "learn how the project works and write AGENTS.md", 1, false),
];

/// The built-in procedure with this name.
pub fn find(name: &str) -> Option<Procedure> {
    let (name, about, iterations, claims) =
        *BUILT_IN.iter().find(|(built_in, ..)| *built_in == name)?;
    let phases = Phase::ALL.into_iter().skip(1);
    let phase = |phase: Phase| vec![Fragment::BuiltIn(format!("{name}/{}", phase.label()))];
    Some(Procedure {
        name: name.to_owned(),
        about: about.to_owned(),
        recipe: Recipe(phases.map(|it| (it, phase(it))).collect()),
        iterations: Some(iterations),
        claims,
    })
}

/// The names of the built-in procedures, in display order.
pub fn names() -> [&'static str; 5] {
    BUILT_IN.map(|(name, ..)| name)
}

/// The procedure that was probably meant by a word, among the built-in ones and `own`.
pub fn procedure_of(word: &str, own: &[Procedure]) -> Option<String> {
    let names: Vec<&str> =
        own.iter().map(|procedure| procedure.name.as_str()).chain(names()).collect();
    nearest(word, &names).map(str::to_owned)
}

/// The page of `crew run --list`. A procedure of `own` replaces the built-in one with its name.
pub fn list(own: &[Procedure]) -> String {
    let built_in = names().into_iter().filter_map(find);
    let built_in = built_in.filter(|one| own.iter().all(|other| other.name != one.name));
    let all: Vec<Procedure> = built_in.chain(own.iter().cloned()).collect();
    let width = all.iter().map(|one| one.name.chars().count()).max().unwrap_or_default();
    all.iter().fold(String::new(), |mut text, one| {
        let _ = writeln!(text, "{:<width$}  {} ({})", one.name, one.about, iterations(one));
        text
    })
}

fn iterations(procedure: &Procedure) -> String {
    match procedure.iterations {
        None => "the loop's own limit".to_owned(),
        Some(0) => "no limit of iterations".to_owned(),
        Some(1) => "1 iteration".to_owned(),
        Some(count) => format!("{count} iterations"),
    }
}

/// The page of `crew run --list NAME`: what it is, when it ends, and its phases before they are
/// filled in.
pub fn page(procedure: &Procedure) -> String {
    let end = if procedure.claims {
        "done when the agent's claim is believed"
    } else {
        "done after its last iteration; no claim is asked for"
    };
    let Procedure { name, about, recipe, .. } = procedure;
    let mut text = format!("{name}: {about}\n{}, {end}\n", iterations(procedure));
    for phase in Phase::ALL {
        for fragment in recipe.of(phase) {
            let (from, body) = match fragment {
                Fragment::Text(words) => ("text".to_owned(), words.as_str()),
                Fragment::File(path) => (path.display().to_string(), ""),
                Fragment::BuiltIn(name) => {
                    (format!("crew/{name}.j2"), fragments::template(name).unwrap_or_default())
                }
            };
            let _ = write!(text, "\n## {} ({from})\n", phase.label().to_uppercase());
            if !body.is_empty() {
                let _ = write!(text, "\n{}\n", body.trim_end());
            }
        }
    }
    let _ = write!(text, "\nThe variables of a template:\n\n{}", variables::table());
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn own(name: &str) -> Procedure {
        let file = Fragment::File("/repo/prompts/release.j2".into());
        let recipe = Recipe([(Phase::Act, vec![file])].into());
        let about = "cut a release".to_owned();
        Procedure { name: name.to_owned(), about, recipe, iterations: None, claims: true }
    }

    #[test]
    fn the_list_has_a_line_for_every_procedure() {
        assert_snapshot!(list(&[own("release")]), @"
        build      take the next task of the plan, build it whole, run the checks (5 iterations)
        plan       compare what is wanted with what is there and write PLAN.md; no code (5 iterations)
        fix        make failing checks pass, one cause at a time (10 iterations)
        audit      look for defects, area by area, and write AUDIT.md; no code (5 iterations)
        bootstrap  learn how the project works and write AGENTS.md (1 iteration)
        release    cut a release (the loop's own limit)
        ");
        assert_eq!(list(&[own("fix")]).lines().count(), 5, "an own one replaces a built-in one");
    }

    #[test]
    fn a_page_says_what_a_procedure_is_and_shows_its_phases() {
        assert_snapshot!(page(&own("release")).replace(&variables::table(), ""), @"
        release: cut a release
        the loop's own limit, done when the agent's claim is believed

        ## ACT (/repo/prompts/release.j2)

        The variables of a template:
        ");
        let bootstrap = page(&find("bootstrap").unwrap());
        assert!(bootstrap.starts_with("bootstrap: learn how the project works and write AGENTS.md\n1 iteration, done after its last iteration; no claim is asked for\n\n## OBSERVE (crew/bootstrap/observe.j2)\n\nGet to know"));
    }

    #[test]
    fn a_word_that_is_nearly_a_procedure_is_recognised() {
        let table =
            [("biuld", Some("build")), ("audits", Some("audit")), ("releas", Some("release"))];
        for (word, expected) in table {
            assert_eq!(procedure_of(word, &[own("release")]).as_deref(), expected, "{word}");
        }
        assert_eq!(procedure_of("refactor", &[]), None);
    }
}

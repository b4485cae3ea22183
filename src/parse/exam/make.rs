//! What a goal of a makefile comes to: its rules with those of its prerequisites, and the variables
//! they use. `make` itself would also run functions and included files; they are left as they are.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The most rules one goal may lead to.
const RULES_MAX: usize = 50;
/// Variables that change every recipe.
const OF_ALL: [&str; 5] = ["SHELL", ".SHELLFLAGS", "MAKEFLAGS", "GNUMAKEFLAGS", OTHER];
/// In place of the name of a variable: a line that may change every recipe.
const OTHER: &str = "include";

/// A goal with everything it leads to.
#[derive(Debug, Default)]
pub struct Entry {
    pub text: String,
    /// Its commands, with simple variables replaced.
    pub commands: Vec<String>,
}

struct Rule<'a> {
    goals: Vec<&'a str>,
    needs: Vec<&'a str>,
    commands: Vec<&'a str>,
}

/// The rules and variables of a makefile.
#[derive(Default)]
pub struct Makefile<'a> {
    rules: Vec<Rule<'a>>,
    /// Name, value and whole line.
    variables: Vec<(&'a str, &'a str, &'a str)>,
}

impl<'a> Makefile<'a> {
    /// Reads a makefile; what it does not understand is left out.
    pub fn read(text: &'a str) -> Self {
        let mut file = Self::default();
        let mut is_in_rule = false;
        for line in text.lines() {
            if let Some(command) = line.strip_prefix('\t') {
                if let (true, Some(rule)) = (is_in_rule, file.rules.last_mut()) {
                    rule.commands.push(command);
                }
                continue;
            }
            let line = line.trim_end();
            if line.trim_start().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            is_in_rule = false;
            let plain = line.trim_start_matches("export ").trim_start_matches("override ");
            if let Some(included) = line.trim_start_matches('-').strip_prefix("include ") {
                file.variables.push((OTHER, included, line));
            } else if let Some((name, value)) = assignment(plain) {
                file.variables.push((name, value, line));
            } else if line.starts_with('.') && !line.starts_with(".PHONY") {
                file.variables.push((OTHER, "", line));
            } else if let Some((goals, rest)) = line.split_once(':') {
                let (needs, first) = rest.split_once(';').unwrap_or((rest, ""));
                let commands = [first.trim()].into_iter().filter(|it| !it.is_empty()).collect();
                let needs = needs.trim_start_matches(':').split_whitespace().collect();
                let goals = goals.split_whitespace().collect();
                file.rules.push(Rule { goals, needs, commands });
                is_in_rule = true;
            } else if ["export", "unexport"].iter().any(|word| line.starts_with(word)) {
                file.variables.push((OTHER, "", line));
            }
        }
        file
    }

    /// The goal of `make` without one.
    pub fn first_goal(&self) -> Option<String> {
        let goals = self.rules.iter().flat_map(|rule| &rule.goals);
        goals.into_iter().find(|goal| !goal.starts_with('.')).map(|goal| (*goal).to_owned())
    }

    /// What a goal leads to; `None` if it has no rule.
    pub fn recipe(&self, goal: &str) -> Option<Entry> {
        let mut recipe = Entry::default();
        let mut open = vec![goal];
        let mut seen = BTreeSet::new();
        while let Some(goal) = open.pop() {
            if !seen.insert(goal) || seen.len() > RULES_MAX {
                continue;
            }
            for rule in self.rules.iter().filter(|rule| rule.goals.contains(&goal)) {
                let lines =
                    rule.commands.iter().fold(String::new(), |all, it| all + "\t" + it + "\n");
                let _ = write!(recipe.text, "{goal}: {}\n{lines}", rule.needs.join(" "));
                recipe.commands.extend(self.commands(&rule.commands));
                open.extend(rule.needs.iter().rev());
            }
        }
        if recipe.text.is_empty() {
            return None;
        }
        self.add_variables(&mut recipe.text);
        Some(recipe)
    }

    /// The commands without make's prefixes, with continued lines joined.
    fn commands(&self, lines: &[&str]) -> Vec<String> {
        let text = lines.join("\n").replace("\\\n", " ");
        let plain = text.lines().map(|line| line.trim_start_matches(['@', '-', '+', ' ']));
        plain.map(|line| self.expand(line)).collect()
    }

    /// Replaces variables by their values, and those by theirs.
    fn expand(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for _ in 0..3 {
            for (name, value, _) in &self.variables {
                line = line
                    .replace(&format!("$({name})"), value)
                    .replace(&format!("${{{name}}}"), value);
            }
        }
        line
    }

    /// Adds the lines of the variables that a text uses.
    fn add_variables(&self, text: &mut String) {
        let mut added = BTreeSet::new();
        loop {
            let next = self.variables.iter().enumerate().find(|(index, (name, _, line))| {
                let is_used =
                    [format!("$({name}"), format!("${{{name}")].iter().any(|it| text.contains(it));
                let is_exported = line.starts_with("export ") || line.starts_with("unexport ");
                (is_used || is_exported || OF_ALL.contains(name)) && !added.contains(index)
            });
            let Some((index, (_, _, line))) = next else { return };
            added.insert(index);
            let _ = writeln!(text, "{line}");
        }
    }
}

/// `NAME = value`, also with `:=`, `?=`, `+=` and `!=`.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!']).trim();
    let is_name = !name.is_empty() && !name.contains([' ', '\t', ':', '$']);
    is_name.then(|| (name, value.trim()))
}

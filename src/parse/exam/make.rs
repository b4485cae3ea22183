//! What a goal of a makefile comes to: its rules with those of its prerequisites, and the variables
//! they use. What only `make` itself could tell, such as a condition or an included file, belongs
//! to every goal as it is written.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The most rules one goal may lead to.
const RULES_MAX: usize = 50;
/// Variables that change every recipe.
const OF_ALL: [&str; 5] = ["SHELL", "MAKEFLAGS", "GNUMAKEFLAGS", "VPATH", OTHER];
/// In place of the name of a variable: a line that may change every recipe.
const OTHER: &str = "";

/// How the definition of a variable over several lines begins.
const DEFINES: [&str; 4] = ["define ", "export define ", "override define ", "private define "];
/// Words that begin a line which is not a rule.
const RESERVED: [&str; 15] = [
    "include", "-include", "sinclude", "ifdef", "ifndef", "ifeq", "ifneq", "else", "endif",
    "export", "unexport", "undefine", "vpath", "load", "-load",
];

/// A goal with everything it leads to.
#[derive(Debug, Default)]
pub struct Entry {
    pub text: String,
    /// Its commands, with simple variables replaced.
    pub commands: Vec<String>,
    /// The goals in it for which a file of that name would be taken.
    pub files: Vec<String>,
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
    /// The goals that are not files.
    phony: Vec<&'a str>,
}

impl<'a> Makefile<'a> {
    /// Reads a makefile. What is neither a plain rule nor a plain assignment, such as a condition
    /// or an included file, may change every recipe.
    pub fn read(text: &'a str) -> Self {
        let mut file = Self::default();
        let (mut is_in_rule, mut is_in_define) = (false, false);
        for whole in text.lines() {
            let line = whole.trim();
            let command = whole.strip_prefix('\t').filter(|_| is_in_rule && !is_in_define);
            if let (Some(command), Some(rule)) = (command, file.rules.last_mut()) {
                rule.commands.push(command);
                continue;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            is_in_rule = false;
            is_in_define |= DEFINES.iter().any(|words| line.starts_with(words));
            let plain = line.trim_start_matches("export ").trim_start_matches("override ");
            let first = line.split_whitespace().next().unwrap_or_default();
            let assigned = assignment(plain).filter(|_| !is_in_define);
            let is_reserved = is_in_define || RESERVED.contains(&first);
            if let Some((name, value)) = assigned {
                file.variables.push((name, value, line));
            } else if let Some(rule) = rule(line).filter(|_| !is_reserved) {
                let is_phony = rule.goals == [".PHONY"];
                is_in_rule = !is_phony;
                if is_phony {
                    file.phony.extend(rule.needs);
                } else {
                    file.rules.push(rule);
                }
            } else {
                file.variables.push((OTHER, "", line));
            }
            is_in_define &= first != "endef";
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
                let is_file = !self.phony.contains(&goal) && !rule.commands.is_empty();
                recipe.files.extend(is_file.then(|| goal.to_owned()));
                open.extend(rule.needs.iter().rev());
            }
        }
        if recipe.text.is_empty() {
            return None;
        }
        self.add_variables(&mut recipe.text);
        Some(recipe)
    }

    /// The commands without make's prefixes.
    fn commands(&self, lines: &[&str]) -> Vec<String> {
        let plain = lines.iter().map(|line| line.trim_start_matches(['@', '-', '+', ' ']));
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

/// `NAME = value`, also with `:=`, `?=`, `+=` and `!=`; not for a name with a dot, which means
/// something to `make` itself.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!']).trim();
    let is_name = !name.is_empty() && !name.contains([' ', '\t', ':', '$']);
    (is_name && !name.starts_with('.')).then(|| (name, value.trim()))
}

/// `goals: needs ; command` with nothing to expand in the goals, and none that means something to
/// `make` itself.
fn rule(line: &str) -> Option<Rule<'_>> {
    let (goals, rest) = line.split_once(':')?;
    let is_special = |goal: &&str| goal.starts_with('.') && !goal.starts_with("./");
    let goals: Vec<&str> = goals.split_whitespace().collect();
    let is_assigned = rest.trim_start_matches(':').starts_with('=');
    let is_strange = |goal: &&str| is_special(goal) || goal.contains(['%', '$', '=']);
    let is_plain = goals == [".PHONY"] || !(is_assigned || goals.iter().any(is_strange));
    let (needs, first) = rest.split_once(';').unwrap_or((rest, ""));
    let commands = [first.trim()].into_iter().filter(|it| !it.is_empty()).collect();
    let needs = needs.trim_start_matches(':').split_whitespace().collect();
    is_plain.then_some(Rule { goals, needs, commands })
}

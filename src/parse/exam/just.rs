//! What a recipe of a justfile comes to: its lines with those of the recipes it depends on, the
//! variables they use, and the settings of the file.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::make::Entry;

/// The most recipes one may lead to.
const RECIPES_MAX: usize = 50;

struct JustRecipe<'a> {
    name: &'a str,
    /// Its line, after those of its attributes.
    header: Vec<&'a str>,
    needs: Vec<&'a str>,
    lines: Vec<&'a str>,
}

/// The recipes of a justfile.
#[derive(Default)]
pub struct Justfile<'a> {
    recipes: Vec<JustRecipe<'a>>,
    /// Name and line of each variable; a setting has no name.
    variables: Vec<(&'a str, &'a str)>,
    aliases: Vec<(&'a str, &'a str)>,
}

impl<'a> Justfile<'a> {
    /// Reads a justfile; what it does not understand may change every recipe.
    pub fn read(text: &'a str) -> Self {
        let mut file = Self::default();
        let mut attributes = Vec::new();
        for line in text.lines() {
            if line.starts_with([' ', '\t']) {
                if let Some(recipe) = file.recipes.last_mut() {
                    recipe.lines.push(line.trim());
                }
            } else if line.starts_with('#') || line.trim().is_empty() {
            } else if line.starts_with('[') {
                attributes.push(line);
            } else if ["set ", "export "].iter().any(|word| line.starts_with(word)) {
                file.variables.push(("", line));
            } else if let Some((name, value)) = line.split_once(":=") {
                let name = name.trim();
                match name.strip_prefix("alias ") {
                    Some(alias) => file.aliases.push((alias.trim(), value.trim())),
                    None => file.variables.push((name, line)),
                }
            } else if let Some((header, needs)) = line.split_once(':') {
                let name = header.split_whitespace().next().unwrap_or_default();
                let needs = needs.split(|it: char| it.is_whitespace() || "()&".contains(it));
                let needs = needs.filter(|need| !need.is_empty()).collect();
                let name = name.trim_start_matches('@');
                let mut header = std::mem::take(&mut attributes);
                header.push(line);
                file.recipes.push(JustRecipe { name, header, needs, lines: Vec::new() });
            } else {
                file.variables.push(("", line));
            }
        }
        file
    }

    /// The recipe of `just` without one.
    pub fn first_recipe(&self) -> Option<String> {
        self.recipes.first().map(|recipe| recipe.name.to_owned())
    }

    /// What a recipe leads to; `None` if there is no such recipe.
    pub fn recipe(&self, name: &str) -> Option<Entry> {
        let mut recipe = Entry::default();
        let alias = |name| self.aliases.iter().find(|(alias, _)| *alias == name).map(|(_, to)| *to);
        let mut open = vec![alias(name).unwrap_or(name)];
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name) || seen.len() > RECIPES_MAX {
                continue;
            }
            for found in self.recipes.iter().filter(|found| found.name == name) {
                let lines = [&found.header[..], &found.lines[..]].concat();
                let _ = writeln!(recipe.text, "{}", lines.join("\n"));
                let plain = found.lines.iter().map(|line| line.trim_start_matches(['@', '-']));
                recipe.commands.extend(plain.map(str::to_owned));
                open.extend(found.needs.iter().rev());
            }
        }
        if recipe.text.is_empty() {
            return None;
        }
        for (name, line) in &self.variables {
            if name.is_empty() || recipe.text.contains(name) {
                let _ = writeln!(recipe.text, "{line}");
            }
        }
        Some(recipe)
    }
}

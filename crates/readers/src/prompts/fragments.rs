//! A recipe's fragments, read and checked: every include expanded, every name known. A text comes
//! from a built-in template by name, or from a file, which the caller's reader opens. A template
//! has access only to the given values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;

use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};
use serde_json::Value;

use super::variables::{Values, find_variable};
use crate::parse::fragment::normalize_path;
use crate::parse::patterns::TEMPLATE_TAG;
use crate::parse::spelling::find_nearest;
use engine::record::{Fragment, Phase, Recipe};

/// The maximum depth of includes.
const DEPTH_MAX: usize = 16;
/// The maximum number of bytes in a whole recipe.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum number of steps of filling in one template: nested loops could take forever.
const STEPS_MAX: u64 = 1_000_000;
/// The maximum number of bytes in a tag, and of `elif` in a template: the parser needs stack
/// for each operator and each `elif`, and counts neither.
const TAG_BYTES_MAX: usize = 1024;
const ELIFS_MAX: usize = 64;

macro_rules! templates {
    ($($name:literal)+) => {
        [$(($name, include_str!(concat!("fragments/", $name, ".j2")))),+]
    };
}

/// crew's own templates by their names: the phases of each procedure, and common parts. Another
/// template includes one by `{% include "crew/NAME.j2" %}`.
const TEMPLATES: [(&str, &str); 24] = templates![
    "audit/observe" "audit/orient" "audit/decide" "audit/act"
    "bootstrap/observe" "bootstrap/orient" "bootstrap/decide" "bootstrap/act"
    "build/observe" "build/orient" "build/decide" "build/act"
    "fix/observe" "fix/orient" "fix/decide" "fix/act"
    "plan/observe" "plan/orient" "plan/decide" "plan/act"
    "checks" "commit" "evidence" "tree"
];

/// The text of crew's own template with this name.
///
/// # Errors
/// When it does not exist; the error suggests the name that was probably intended.
pub fn find_template(name: &str) -> Result<&'static str, String> {
    let found = TEMPLATES.iter().find(|(own, _)| *own == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let near = find_nearest(name, &TEMPLATES.map(|(own, _)| own));
        let near = near.map_or_else(String::new, |near| format!("; did you mean crew/{near}.j2?"));
        format!("crew has no template crew/{name}.j2{near}")
    })
}

/// Reads the bounded text of a file that another file includes; a fragment counts as including
/// itself. The error names the file and the cause.
pub type ReadFile<'a> = &'a dyn Fn(&Path, &Path) -> Result<String, String>;

// A text is named by its file's path, one of crew's own templates by `crew/NAME.j2`.

/// The name of one of crew's own templates; `None` for a file.
fn built_in_name(source: &str) -> Option<&str> {
    source.strip_prefix("crew/")?.strip_suffix(".j2")
}

/// Whether a fragment is a template; any other is literal.
fn is_template(source: &str) -> bool {
    Path::new(source).extension() == Some("j2".as_ref())
}

/// The text that `name` refers to when a template includes it: one of crew's own, else a file,
/// relative to the folder of the including file.
fn resolve_include(name: &str, includer: &str) -> Result<String, String> {
    if built_in_name(name).is_some() {
        return Ok(name.to_owned());
    }
    if built_in_name(includer).is_some() {
        return Err(format!("crew has no template `{name}`"));
    }
    let path = Path::new(includer).with_file_name(name);
    Ok(normalize_path(&path).unwrap_or(path).display().to_string())
}

/// The text of `source`, if `includer` may read it; a fragment counts as including itself.
fn text_of(source: &str, includer: &str, files: ReadFile<'_>) -> Result<String, String> {
    match built_in_name(source) {
        Some(name) => find_template(name).map(str::to_owned),
        None => files(Path::new(source), Path::new(includer)),
    }
}

/// A piece of a prompt, ready to be filled in.
#[derive(Debug, Clone)]
enum PromptPiece {
    /// Inserted unchanged.
    Literal(String),
    /// Filled in with the values of its variables; by its name.
    Template(String),
}

/// A recipe, read and checked.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    phases: BTreeMap<Phase, Vec<PromptPiece>>,
    /// The variables that its templates use: no other needs to be looked up.
    pub wanted: BTreeSet<&'static str>,
    bytes: usize,
    /// The bytes of each template that was read, with all that it includes.
    sizes: BTreeMap<String, usize>,
    /// The templates, by the names of their fragments.
    environment: Environment<'static>,
}

impl Parts {
    /// Reads and checks every fragment of a recipe.
    ///
    /// # Errors
    /// The first fault, with its file and line: an unreadable file, a template's syntax, an unknown
    /// name, a circle of includes.
    pub fn read_recipe(recipe: &Recipe, files: ReadFile<'_>) -> Result<Self, String> {
        let mut parts = Self { environment: build_environment(), ..Self::default() };
        for phase in Phase::ALL {
            for fragment in recipe.fragments_of(phase) {
                let piece = match fragment {
                    Fragment::Text(text) => PromptPiece::Literal(text.clone()),
                    Fragment::File(path) => parts.read_piece(path.display().to_string(), files)?,
                    Fragment::BuiltIn(name) => {
                        parts.read_piece(format!("crew/{name}.j2"), files)?
                    }
                };
                parts.phases.entry(phase).or_default().push(piece);
            }
        }
        Ok(parts)
    }

    fn read_piece(&mut self, source: String, files: ReadFile<'_>) -> Result<PromptPiece, String> {
        if is_template(&source) {
            self.add_source(&source, files, &mut Vec::new())?;
            return Ok(PromptPiece::Template(source));
        }
        text_of(&source, &source, files).map(PromptPiece::Literal)
    }

    /// Whether a phase has a fragment.
    pub fn has_phase(&self, phase: Phase) -> bool {
        self.phases.contains_key(&phase)
    }

    /// The text of a phase, with these values in it.
    ///
    /// # Errors
    /// When a template cannot be filled in; the error has its name and line.
    pub fn fill_phase(&self, phase: Phase, values: &Values) -> Result<String, String> {
        let mut all = String::new();
        for piece in self.phases.get(&phase).into_iter().flatten() {
            if !all.is_empty() {
                all.push_str(if all.ends_with('\n') { "\n" } else { "\n\n" });
            }
            match piece {
                PromptPiece::Literal(text) => all.push_str(text),
                PromptPiece::Template(name) => {
                    let template = self.environment.get_template(name);
                    let filled = template.and_then(|template| template.render(values));
                    all.push_str(filled.map_err(explain_error)?.trim_end());
                }
            }
        }
        Ok(all)
    }

    /// Reads one text with everything it includes. `open` are the templates being read, each
    /// included by the one before.
    fn add_source(
        &mut self,
        source: &str,
        files: ReadFile<'_>,
        open: &mut Vec<String>,
    ) -> Result<(), String> {
        if open.iter().any(|including| including == source) {
            return Err(format!("{source} includes itself"));
        }
        if open.len() > DEPTH_MAX {
            return Err(format!("too many includes: at most {DEPTH_MAX} deep"));
        }
        if let Some(size) = self.sizes.get(source) {
            return self.count_bytes(*size);
        }
        let before = self.bytes;
        let mut text = text_of(source, open.last().map_or(source, String::as_str), files)?;
        self.count_bytes(text.len())?;
        if is_template(source) {
            open.push(source.to_owned());
            self.check_tags(source, &text, files, open)?;
            open.pop();
        } else {
            text = format!("{{{{ {} }}}}", Value::from(text));
        }
        self.environment
            .add_template_owned(source.to_owned(), text.clone())
            .map_err(explain_error)?;
        let template = self.environment.get_template(source).map_err(explain_error)?;
        for name in template.undeclared_variables(false).into_iter().collect::<BTreeSet<_>>() {
            let before = text.split(name.as_str()).next().unwrap_or_default();
            self.wanted
                .insert(find_variable(&name).map_err(|why| render_fault(source, before, why))?);
        }
        self.sizes.insert(source.to_owned(), self.bytes - before);
        Ok(())
    }

    /// Counts what a file adds to the prompt, each time that it is included.
    fn count_bytes(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= BYTES_MAX {
            return Ok(());
        }
        Err("the templates of this prompt are over 16 MiB in all".to_owned())
    }

    /// Reads what a template includes, and refuses tags that the parser has no stack for.
    fn check_tags(
        &mut self,
        source: &str,
        text: &str,
        files: ReadFile<'_>,
        open: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut elifs = 0;
        for found in TEMPLATE_TAG.captures_iter(text) {
            let Some(tag) = found.name("tag") else { continue };
            let before = &text[..tag.start()];
            elifs += usize::from(tag.as_str().contains("elif"));
            if tag.len() > TAG_BYTES_MAX || elifs > ELIFS_MAX {
                let most = format!("a tag over {TAG_BYTES_MAX} bytes, or over {ELIFS_MAX} `elif`");
                return Err(render_fault(source, before, most));
            }
            if let Some(include) = found.name("include") {
                let quoted = include.as_str().trim();
                let file = quoted.trim_matches(['"', '\'']);
                if file.is_empty() || file.len() + 2 != quoted.len() {
                    let why = "an include is {% include \"FILE\" %}";
                    return Err(render_fault(source, before, why));
                }
                resolve_include(file, source)
                    .and_then(|included| self.add_source(&included, files, open))
                    .map_err(|why| render_fault(source, before, why))?;
            }
        }
        Ok(())
    }
}

/// Renders a fault with its line number; `before` is the text before it.
fn render_fault(source: &str, before: &str, why: impl Display) -> String {
    format!("{why} (in {source}:{})", before.matches('\n').count() + 1)
}

/// The error of a template, with its causes; each names its file and line.
fn explain_error(error: Error) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

fn build_environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_keep_trailing_newline(true);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(STEPS_MAX));
    environment.set_path_join_callback(|name, includer| {
        resolve_include(name, includer).unwrap_or_else(|_| name.to_owned()).into()
    });
    environment
}

#[cfg(test)]
#[path = "fragments_tests.rs"]
mod tests;

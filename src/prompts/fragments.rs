//! A recipe's fragments, read and checked: every include expanded, every name known. A text comes
//! from a built-in template by name, or from a file, which the caller's reader opens. A template
//! reaches nothing beyond the given values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};
use serde_json::Value;

use super::variables::{Values, named};
use crate::engine::record::{Fragment, Phase, Recipe};
use crate::parse::fragment::plain;
use crate::parse::patterns::TEMPLATE_TAG;
use crate::parse::spelling::nearest;

/// How deep includes may go.
const DEPTH_MAX: usize = 16;
/// The most bytes of a whole recipe.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most steps of filling in one template: loops in loops would take forever.
const STEPS_MAX: u64 = 1_000_000;
/// The most bytes of a tag, and the most `elif` of a template: the parser needs stack for each
/// operator and each `elif`, and counts neither.
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
/// When it does not exist; the error suggests the name that was probably meant.
pub fn template(name: &str) -> Result<&'static str, String> {
    let found = TEMPLATES.iter().find(|(own, _)| *own == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let near = nearest(name, &TEMPLATES.map(|(own, _)| own));
        let near = near.map_or_else(String::new, |near| format!("; did you mean crew/{near}.j2?"));
        format!("crew has no template crew/{name}.j2{near}")
    })
}

/// Reads the bounded text of a file that another one includes; a fragment is named by itself. The
/// error names the file and the cause.
pub type ReadFile<'a> = &'a dyn Fn(&Path, &Path) -> Result<String, String>;

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// A built-in template, by name.
    BuiltIn(String),
    File(PathBuf),
}

impl Source {
    /// The source with this name: the inverse of `to_string`.
    fn named(name: &str) -> Self {
        match name.strip_prefix("crew/").and_then(|own| own.strip_suffix(".j2")) {
            Some(own) => Self::BuiltIn(own.to_owned()),
            None => Self::File(name.into()),
        }
    }

    /// Whether its text is a template; other text is literal.
    fn is_template(&self) -> bool {
        match self {
            Self::BuiltIn(_) => true,
            Self::File(path) => path.extension() == Some("j2".as_ref()),
        }
    }

    /// What `name` means when a template here includes it: `crew/NAME.j2` is a built-in template;
    /// anything else is a file, relative to the folder of the including file.
    fn include(&self, name: &str) -> Result<Self, String> {
        match (self, Self::named(name)) {
            (_, built_in @ Self::BuiltIn(_)) => Ok(built_in),
            (Self::BuiltIn(_), _) => Err(format!("`{name}` is none of crew's own templates")),
            (Self::File(path), _) => {
                let path = path.with_file_name(name);
                Ok(Self::File(plain(&path).unwrap_or(path)))
            }
        }
    }

    /// Its text, if `includer` may read it; a fragment has no includer.
    fn text(&self, files: ReadFile<'_>, includer: Option<&Self>) -> Result<String, String> {
        match (self, includer) {
            (Self::BuiltIn(name), _) => template(name).map(str::to_owned),
            (Self::File(path), Some(Self::File(includer))) => files(path, includer),
            (Self::File(path), _) => files(path, path),
        }
    }
}

impl Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(out, "crew/{name}.j2"),
            Self::File(path) => path.display().fmt(out),
        }
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
    /// The templates, by the text of their [`Source`].
    environment: Environment<'static>,
}

impl Parts {
    /// Reads and checks every fragment of a recipe.
    ///
    /// # Errors
    /// The first fault, with its file and line: an unreadable file, a template's syntax, an unknown
    /// name, a circle of includes.
    pub fn read(recipe: &Recipe, files: ReadFile<'_>) -> Result<Self, String> {
        let mut parts = Self { environment: environment(), ..Self::default() };
        for phase in Phase::ALL {
            for fragment in recipe.of(phase) {
                let piece = match fragment {
                    Fragment::Text(text) => PromptPiece::Literal(text.clone()),
                    Fragment::File(path) => parts.piece(&Source::File(path.clone()), files)?,
                    Fragment::BuiltIn(name) => {
                        parts.piece(&Source::BuiltIn(name.clone()), files)?
                    }
                };
                parts.phases.entry(phase).or_default().push(piece);
            }
        }
        Ok(parts)
    }

    fn piece(&mut self, source: &Source, files: ReadFile<'_>) -> Result<PromptPiece, String> {
        if source.is_template() {
            return self.add(source, files, &mut Vec::new()).map(PromptPiece::Template);
        }
        source.text(files, None).map(PromptPiece::Literal)
    }

    /// Whether a phase has a fragment.
    pub fn has(&self, phase: Phase) -> bool {
        self.phases.contains_key(&phase)
    }

    /// The text of a phase, with these values in it.
    ///
    /// # Errors
    /// When a template cannot be filled in; the error has its name and line.
    pub fn fill(&self, phase: Phase, values: &Values) -> Result<String, String> {
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
                    all.push_str(filled.map_err(explain)?.trim_end());
                }
            }
        }
        Ok(all)
    }

    /// Reads one file with everything it includes; returns its name in the environment. `open` are
    /// the templates being read, each included by the one before.
    fn add(
        &mut self,
        source: &Source,
        files: ReadFile<'_>,
        open: &mut Vec<Source>,
    ) -> Result<String, String> {
        let name = source.to_string();
        if open.contains(source) {
            return Err(format!("{name} includes itself in a circle"));
        }
        if open.len() > DEPTH_MAX {
            return Err(format!("too many includes: at most {DEPTH_MAX} deep"));
        }
        if let Some(size) = self.sizes.get(&name) {
            self.count(*size)?;
            return Ok(name);
        }
        let before = self.bytes;
        let mut text = source.text(files, open.last())?;
        self.count(text.len())?;
        if source.is_template() {
            open.push(source.clone());
            self.check_tags(source, &text, files, open)?;
            open.pop();
        } else {
            text = format!("{{{{ {} }}}}", Value::from(text));
        }
        self.environment.add_template_owned(name.clone(), text.clone()).map_err(explain)?;
        let template = self.environment.get_template(&name).map_err(explain)?;
        for name in template.undeclared_variables(false).into_iter().collect::<BTreeSet<_>>() {
            let before = text.split(name.as_str()).next().unwrap_or_default();
            self.wanted.insert(named(&name).map_err(|why| at(source, before, why))?);
        }
        self.sizes.insert(name.clone(), self.bytes - before);
        Ok(name)
    }

    /// Counts what a file adds to the prompt, each time that it is included.
    fn count(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= BYTES_MAX {
            return Ok(());
        }
        Err("the templates of this prompt are over 16 MiB in all".to_owned())
    }

    /// Reads what a template includes, and refuses tags that the parser has no stack for.
    fn check_tags(
        &mut self,
        source: &Source,
        text: &str,
        files: ReadFile<'_>,
        open: &mut Vec<Source>,
    ) -> Result<(), String> {
        let mut elifs = 0;
        for found in TEMPLATE_TAG.captures_iter(text) {
            let Some(tag) = found.name("tag") else { continue };
            let wrong = |why: String| at(source, &text[..tag.start()], why);
            elifs += usize::from(tag.as_str().contains("elif"));
            if tag.len() > TAG_BYTES_MAX || elifs > ELIFS_MAX {
                let most = format!("a tag over {TAG_BYTES_MAX} bytes, or over {ELIFS_MAX} `elif`");
                return Err(wrong(most));
            }
            if let Some(include) = found.name("include") {
                let quoted = include.as_str().trim();
                let file = quoted.trim_matches(['"', '\'']);
                if file.is_empty() || file.len() + 2 != quoted.len() {
                    return Err(wrong("an include is {% include \"FILE\" %}".to_owned()));
                }
                self.add(&source.include(file).map_err(wrong)?, files, open).map_err(wrong)?;
            }
        }
        Ok(())
    }
}

/// What is wrong, and where: behind the text `before` it.
fn at(source: &Source, before: &str, why: impl Display) -> String {
    format!("{why} (in {source}:{})", before.matches('\n').count() + 1)
}

/// The error of a template, with its causes; each names its file and line.
fn explain(error: Error) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_keep_trailing_newline(true);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(STEPS_MAX));
    environment.set_path_join_callback(|name, includer| {
        let included = Source::named(includer).include(name);
        included.map_or_else(|_| name.to_owned(), |source| source.to_string()).into()
    });
    environment
}

#[cfg(test)]
#[path = "fragments_tests.rs"]
mod tests;

//! Reads a template with everything it includes, and looks every name up before anything is filled
//! in. A template reaches nothing beyond the given values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};
use serde_json::Value;

use super::source::{Files, Source};
use super::variables::{Variable, named};
use crate::parse::patterns::TEMPLATE_TAG;

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

/// Reads the templates of one recipe.
pub struct TemplateReader<'files> {
    files: &'files dyn Files,
    /// The templates being read, each included by the one before.
    open: Vec<Source>,
    bytes: usize,
    /// The bytes of each template that was read, with all that it includes.
    sizes: BTreeMap<String, usize>,
    /// The templates read so far, by the text of their [`Source`].
    pub environment: Environment<'static>,
    /// The variables named so far.
    pub wanted: BTreeSet<Variable>,
}

impl<'files> TemplateReader<'files> {
    /// A reader that has read nothing yet.
    pub fn new(files: &'files dyn Files) -> Self {
        let (open, sizes, wanted) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Self { files, open, bytes: 0, sizes, environment: environment(), wanted }
    }

    /// Reads one file with everything it includes; returns its name in the environment.
    pub fn read(&mut self, source: &Source) -> Result<String, String> {
        let name = source.to_string();
        if self.open.contains(source) {
            return Err(format!("{name} includes itself in a circle"));
        }
        if self.open.len() > DEPTH_MAX {
            return Err(format!("too many includes: at most {DEPTH_MAX} deep"));
        }
        if let Some(size) = self.sizes.get(&name) {
            self.count(*size)?;
            return Ok(name);
        }
        let before = self.bytes;
        let mut text = source.text(self.files, self.open.last())?;
        self.count(text.len())?;
        if source.is_template() {
            self.open.push(source.clone());
            self.check_tags(source, &text)?;
            self.open.pop();
        } else {
            text = format!("{{{{ {} }}}}", Value::from(text));
        }
        self.environment.add_template_owned(name.clone(), text.clone()).map_err(explain)?;
        self.look_names_up(source, &text)?;
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
    fn check_tags(&mut self, source: &Source, text: &str) -> Result<(), String> {
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
                self.read(&source.include(file).map_err(wrong)?).map_err(wrong)?;
            }
        }
        Ok(())
    }

    fn look_names_up(&mut self, source: &Source, text: &str) -> Result<(), String> {
        let template = self.environment.get_template(&source.to_string()).map_err(explain)?;
        let names = template.undeclared_variables(false);
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            let before = text.split(name.as_str()).next().unwrap_or_default();
            let meaning = named(&name).map_err(|why| at(source, before, why))?;
            self.wanted.insert(meaning.variable);
        }
        Ok(())
    }
}

/// What is wrong, and where: behind the text `before` it.
fn at(source: &Source, before: &str, why: impl Display) -> String {
    format!("{why} (in {source}:{})", before.matches('\n').count() + 1)
}

/// The error of a template, with its causes; each names its file and line.
pub fn explain(error: Error) -> String {
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

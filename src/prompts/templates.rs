//! Reads a template: checks its syntax, expands its includes and looks every name up before
//! anything is filled in. It refuses what could reach beyond the given values: dynamic partials,
//! decorators, lookups and logging.

use std::collections::BTreeSet;
use std::fmt::Display;

use handlebars::Template;
use handlebars::template::{
    BlockParam, DecoratorTemplate, HelperTemplate, Parameter, TemplateElement,
};

use super::nesting;
use super::source::{Files, Source};
use super::variables::{Meaning, Variable, VariableKind, named};

/// How deep includes may go.
const DEPTH_MAX: usize = 16;
/// The most includes and bytes of a whole recipe: files that each include another twice would grow
/// without end.
const INCLUDES_MAX: usize = 256;
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The block helpers: what may follow `#`.
const BLOCKS: [&str; 4] = ["if", "unless", "each", "raw"];
/// The helpers that compute a value.
const HELPERS: [&str; 10] = ["eq", "ne", "gt", "gte", "lt", "lte", "and", "or", "not", "len"];
/// The variables for the position of an item of `#each`.
const LOCALS: [&str; 3] = ["@index", "@first", "@last"];

/// The variable that a value names, if it names one.
type Found = Result<Option<&'static Meaning>, String>;

/// Reads the templates of one recipe.
pub struct TemplateReader<'files> {
    files: &'files dyn Files,
    /// The templates being read, each included by the one before, with the line of each.
    open: Vec<(Source, usize)>,
    includes: usize,
    bytes: usize,
    /// The variables named so far.
    pub wanted: BTreeSet<Variable>,
}

/// The meaning of names at one place of a template.
#[derive(Clone, Default)]
struct Scope {
    /// The number of enclosing `#each` blocks.
    depth: usize,
    /// The names they introduced with `as |…|`.
    given: Vec<String>,
}

impl<'files> TemplateReader<'files> {
    /// A reader that has read nothing yet.
    pub fn new(files: &'files dyn Files) -> Self {
        Self { files, open: Vec::new(), includes: 0, bytes: 0, wanted: BTreeSet::new() }
    }

    /// Reads one template with everything it includes.
    pub fn template(&mut self, origin: &Source) -> Result<Template, String> {
        self.read(origin, &Scope::default())
    }

    fn read(&mut self, origin: &Source, scope: &Scope) -> Result<Template, String> {
        let text = self.text(origin)?;
        nesting::check(&text).map_err(|why| format!("{origin}: {why}"))?;
        let mut template = Template::compile(&text).map_err(|error| {
            let line = error.pos().map_or_else(String::new, |(line, _)| format!(":{line}"));
            let why = error.reason().to_string();
            format!("{origin}{line}: {}", why.lines().next().unwrap_or_default())
        })?;
        self.open.push((origin.clone(), 1));
        self.check(&mut template, scope)?;
        self.open.pop();
        Ok(template)
    }

    fn text(&mut self, origin: &Source) -> Result<String, String> {
        let includer = self.open.last().map(|(includer, _)| includer);
        let text = origin.text(self.files, includer).map_err(|why| self.wrong(why))?;
        self.bytes += text.len();
        if self.bytes > BYTES_MAX {
            return Err(self.wrong("the templates of this prompt are over 16 MiB in all"));
        }
        Ok(text)
    }

    /// What is wrong, and where.
    fn wrong(&self, why: impl Display) -> String {
        self.open
            .last()
            .map_or_else(|| why.to_string(), |(origin, line)| format!("{origin}:{line}: {why}"))
    }

    /// Looks up every name and expands every include.
    fn check(&mut self, template: &mut Template, scope: &Scope) -> Result<(), String> {
        let elements = std::mem::take(&mut template.elements);
        let mapping = std::mem::take(&mut template.mapping);
        for (index, mut element) in elements.into_iter().enumerate() {
            let place = mapping.get(index);
            if let (Some(place), Some((_, line))) = (place, self.open.last_mut()) {
                *line = place.0;
            }
            let new = if let TemplateElement::PartialExpression(include) = &element {
                self.include(include, scope)?.elements
            } else {
                self.element(&mut element, scope)?;
                vec![element]
            };
            template.mapping.extend(new.iter().filter_map(|_| place.cloned()));
            template.elements.extend(new);
        }
        Ok(())
    }

    fn element(&mut self, element: &mut TemplateElement, scope: &Scope) -> Result<(), String> {
        match element {
            TemplateElement::Expression(inserted) | TemplateElement::HtmlExpression(inserted) => {
                self.inserted(inserted, scope)
            }
            TemplateElement::HelperBlock(block) => self.block(block, scope),
            TemplateElement::RawString(_) | TemplateElement::Comment(_) => Ok(()),
            _ => {
                Err(self
                    .wrong("an include is {{> FILE}}; it has no block, and {{* }} does not exist"))
            }
        }
    }

    fn include(&mut self, include: &DecoratorTemplate, scope: &Scope) -> Result<Template, String> {
        let name = include.name.as_name().unwrap_or_default().trim_matches(['\'', '[', ']']);
        if name.is_empty() || !include.params.is_empty() || !include.hash.is_empty() {
            return Err(self.wrong("an include is {{> FILE}}, with nothing but the file's name"));
        }
        let open: Vec<&Source> = self.open.iter().map(|(origin, _)| origin).collect();
        let includer = open.last().map_or(Source::BuiltIn(String::new()), |last| (*last).clone());
        let included = includer.include(name).map_err(|why| self.wrong(why))?;
        if open.contains(&&included) {
            return Err(self.wrong(format!("{included} includes itself in a circle")));
        }
        self.includes += 1;
        if self.open.len() > DEPTH_MAX || self.includes > INCLUDES_MAX {
            let bounds = format!("at most {DEPTH_MAX} deep and {INCLUDES_MAX} in all");
            return Err(self.wrong(format!("too many includes: {bounds}")));
        }
        if included.is_template() {
            return self.read(&included, scope);
        }
        let mut literal = Template::new();
        literal.elements.push(TemplateElement::RawString(self.text(&included)?));
        Ok(literal)
    }

    /// `{{name}}`, or `{{helper value …}}`.
    fn inserted(&mut self, inserted: &HelperTemplate, scope: &Scope) -> Result<(), String> {
        if inserted.params.is_empty() && inserted.hash.is_empty() {
            let meaning = self.value(&inserted.name, scope)?;
            return match meaning.filter(|meaning| meaning.kind == VariableKind::List) {
                Some(Meaning { name, .. }) => Err(self.wrong(format!(
                    "`{name}` is a list: {{{{#each {name}}}}}{{{{this}}}}{{{{/each}}}}"
                ))),
                None => Ok(()),
            };
        }
        self.helper(inserted, &HELPERS)?;
        self.values(inserted, scope)
    }

    fn block(&mut self, block: &mut HelperTemplate, scope: &Scope) -> Result<(), String> {
        self.helper(block, &BLOCKS)?;
        let name = block.name.as_name().unwrap_or_default();
        if name == "raw" {
            return Ok(());
        }
        let mut inner = scope.clone();
        if name == "each" {
            let first = block.params.first();
            let meaning = first.map_or(Ok(None), |list| self.value(list, scope))?;
            if meaning.is_none_or(|meaning| meaning.kind != VariableKind::List) {
                return Err(self.wrong("#each needs a list: `failing` or `words`"));
            }
            inner.depth += 1;
            inner.given.extend(given(block.block_param.as_ref()));
        }
        self.values(block, scope)?;
        if let Some(template) = &mut block.template {
            self.check(template, &inner)?;
        }
        block.inverse.as_mut().map_or(Ok(()), |inverse| self.check(inverse, scope))
    }

    fn helper(&self, helper: &HelperTemplate, known: &[&str]) -> Result<(), String> {
        let name = helper.name.as_name().unwrap_or_default();
        if known.contains(&name) {
            return Ok(());
        }
        let what = if helper.block { "block `#" } else { "helper `" };
        Err(self.wrong(format!("there is no {what}{name}`; there are {}", known.join(", "))))
    }

    fn values(&mut self, helper: &HelperTemplate, scope: &Scope) -> Result<(), String> {
        for parameter in helper.params.iter().chain(helper.hash.values()) {
            self.value(parameter, scope)?;
        }
        Ok(())
    }

    /// Looks up one value; returns the variable if it is one.
    fn value(&mut self, value: &Parameter, scope: &Scope) -> Found {
        match value {
            Parameter::Literal(_) => Ok(None),
            Parameter::Subexpression(computed) => {
                if let TemplateElement::Expression(helper) = computed.as_element() {
                    self.inserted(helper, scope)?;
                }
                Ok(None)
            }
            named => self.path(named.as_name().unwrap_or_default(), scope),
        }
    }

    fn path(&mut self, raw: &str, scope: &Scope) -> Found {
        let is_item = raw == "this" || LOCALS.contains(&raw);
        if is_item && scope.depth > 0 || scope.given.iter().any(|given| given == raw) {
            return Ok(None);
        }
        if is_item {
            return Err(self.wrong(format!("`{raw}` has a meaning only inside #each")));
        }
        let climbed = "../".repeat(scope.depth);
        let name = match raw.strip_prefix("@root") {
            Some(rest) => rest.strip_prefix(['.', '/']),
            None => raw.strip_prefix(climbed.as_str()),
        };
        let name = name.ok_or_else(|| {
            let plain = raw.trim_start_matches("../");
            self.wrong(format!("inside #each a variable is written `@root.{plain}`"))
        })?;
        let meaning = named(name).map_err(|why| self.wrong(why))?;
        self.wanted.insert(meaning.variable);
        Ok(Some(meaning))
    }
}

/// The names that a block introduces with `as |…|`.
fn given(names: Option<&BlockParam>) -> Vec<String> {
    let names = match names {
        Some(BlockParam::Pair((one, other))) => vec![one, other],
        Some(BlockParam::Single(one)) => vec![one],
        _ => Vec::new(),
    };
    names.into_iter().filter_map(|name| name.as_name().map(str::to_owned)).collect()
}

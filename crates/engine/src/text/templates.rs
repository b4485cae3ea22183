//! Fills in the templates of crew's own messages, the `.j2` files in the folder beside this file. A
//! value is inserted as it is and never expanded again.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, Value, escape_formatter};
use serde::Serialize;

use crate::text::{clean_text, clip_line, count, join_first_names, one_line, quote_words};

/// Templates by name.
type Templates = [(&'static str, &'static str)];

const TEMPLATES: &Templates = &[
    ("ahead.j2", include_str!("templates/ahead.j2")),
    ("commit.j2", include_str!("templates/commit.j2")),
    ("ending.j2", include_str!("templates/ending.j2")),
    ("facts.j2", include_str!("templates/facts.j2")),
    ("handoff.j2", include_str!("templates/handoff.j2")),
    ("next.j2", include_str!("templates/next.j2")),
    ("prompt.j2", include_str!("templates/prompt.j2")),
    ("prompt_again.j2", include_str!("templates/prompt_again.j2")),
    ("prompt_next.j2", include_str!("templates/prompt_next.j2")),
    ("prompt_start.j2", include_str!("templates/prompt_start.j2")),
    ("prompt_woken.j2", include_str!("templates/prompt_woken.j2")),
    ("results.j2", include_str!("templates/results.j2")),
    ("rules.j2", include_str!("templates/rules.j2")),
    ("rules_brief.j2", include_str!("templates/rules_brief.j2")),
    ("rules_full.j2", include_str!("templates/rules_full.j2")),
    ("run.j2", include_str!("templates/run.j2")),
    ("sent_back.j2", include_str!("templates/sent_back.j2")),
    ("seen.j2", include_str!("templates/seen.j2")),
    ("verdict.j2", include_str!("templates/verdict.j2")),
];

/// The maximum number of names in a list of them.
const NAMED: usize = 4;

/// Parsed when the first message is rendered, because most hooks render none.
static OWN: LazyLock<Environment<'static>> =
    LazyLock::new(|| add_templates(new_environment(), TEMPLATES));
/// The templates whose lines are rows.
static ROWS: LazyLock<Environment<'static>> = LazyLock::new(|| add_templates(of_rows(), TEMPLATES));

/// Renders a template with these values. A fault of the template is reported in its place; the
/// tests render every one.
pub fn render_template(name: &str, values: &Value) -> String {
    let template = OWN.get_template(name);
    let rendered = template.and_then(|template| template.render(values));
    rendered.unwrap_or_else(|error| format!("{error:#}"))
}

/// A row of a page: its name, and what crew found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The name, one word: `why`, `tests`.
    pub name: String,
    pub text: String,
    /// What was printed or said, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detail: Vec<String>,
}

impl Fact {
    /// A row that consists of one text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), detail: Vec::new() }
    }
}

/// The rows of a template of this folder.
pub fn template_rows(name: &str, values: &Value) -> Vec<Fact> {
    rows_of(&ROWS, name, values)
}

/// The rows of a template. Each of its lines is the name of a row, a bar and the text; a line
/// without a name belongs to the row before it.
pub fn rows_of(environment: &Environment<'_>, name: &str, values: &Value) -> Vec<Fact> {
    let template = environment.get_template(name);
    let text = template.and_then(|template| template.render(values));
    let text = text.unwrap_or_else(|error| format!("error|{error:#}"));
    let mut rows: Vec<Fact> = Vec::new();
    for (name, text) in text.lines().filter_map(|line| line.split_once('|')) {
        match rows.last_mut() {
            Some(row) if name.is_empty() => row.detail.push(text.to_owned()),
            _ => rows.push(Fact::new(name, text)),
        }
    }
    rows
}

/// The environment with these templates, which are parsed when they are needed.
pub fn add_templates(
    mut environment: Environment<'static>,
    templates: &'static Templates,
) -> Environment<'static> {
    environment.set_loader(|name| {
        Ok(templates.iter().find(|(own, _)| *own == name).map(|(_, text)| (*text).to_owned()))
    });
    environment
}

/// The environment of templates whose lines are rows. A value has no line break: none can begin a
/// row of its own.
pub fn of_rows() -> Environment<'static> {
    let mut environment = new_environment();
    environment.set_formatter(|out, state, value| match value.as_str() {
        _ if value.is_none() => Ok(()),
        Some(text) => Ok(out.write_str(&text.replace(['\n', '\r'], " "))?),
        None => escape_formatter(out, state, value),
    });
    environment
}

/// The settings and filters of all of crew's own templates.
pub fn new_environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_formatter(|out, state, value| {
        if value.is_none() { Ok(()) } else { escape_formatter(out, state, value) }
    });
    environment.add_filter("clean", |text: &str| clean_text(text));
    environment.add_filter("clip", |text: &str, most: usize| clip_line(text, most));
    environment.add_filter("count", |number: u64, noun: &str| count(number, noun));
    environment.add_filter("one_line", |text: &str, most: usize| one_line(text, most));
    environment
        .add_filter("named", |names: Vec<String>, most: usize| join_first_names(&names, most));
    environment.add_filter("listed", |names: Vec<String>| list_names(&names));
    environment.add_filter("quoted", |text: &str| quote_words(text));
    environment.add_filter("section", |body: &str, title: &str| render_section(body, title));
    environment
}

/// A section of a page below its heading; empty if the body is empty.
fn render_section(body: &str, title: &str) -> String {
    let end = if body.ends_with('\n') { "\n" } else { "\n\n" };
    if body.is_empty() { String::new() } else { format!("## {title}\n\n{body}{end}") }
}

/// Joins names, such as "a", "a and b" or "a, b, c, d and 3 more".
fn list_names(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if names.len() <= NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED),
    }
}

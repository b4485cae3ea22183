//! Renders the templates of terminal output: the `.j2` files in the folder beside this file.

use std::sync::LazyLock;

use minijinja::{Environment, Value};

use super::words::run_duration;
use engine::templates::{self, Fact};
use engine::text::{EscapedLine, clip_line_at_word};
use engine::usage::tokens_text;

const TEMPLATES: &[(&str, &str)] = &[
    ("chapter.j2", include_str!("templates/chapter.j2")),
    ("contract.j2", include_str!("templates/contract.j2")),
    ("iteration.j2", include_str!("templates/iteration.j2")),
    ("line.j2", include_str!("templates/line.j2")),
    ("progress.j2", include_str!("templates/progress.j2")),
    ("project.toml.j2", include_str!("templates/project.toml.j2")),
    ("setup.j2", include_str!("templates/setup.j2")),
    ("totals.j2", include_str!("templates/totals.j2")),
];
/// The most characters of a person's or the agent's words in a line.
const WORDS_MAX: usize = 120;

static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = templates::add_templates(templates::of_rows(), TEMPLATES);
    environment.add_filter("short", |text: &str| clip_line_at_word(text, WORDS_MAX));
    environment.add_filter("shown", |text: &str| EscapedLine(text).to_string());
    environment.add_filter("tokens", tokens_text);
    environment.add_filter("took", run_duration);
    environment.add_filter("upper_first", upper_first);
    environment
});

/// Renders a template of rows.
pub fn render_rows(name: &str, values: &Value) -> Vec<Fact> {
    templates::rows_of(&PAGES, name, values)
}

/// Renders a template that is one row.
pub fn render_row(name: &str, values: &Value) -> String {
    render_rows(name, values).into_iter().map(|row| row.text).collect()
}

/// Renders a template that is a whole file.
pub fn render_file(name: &str, values: &Value) -> String {
    let template = PAGES.get_template(name).and_then(|template| template.render(values));
    template.unwrap_or_else(|error| format!("{error:#}")) + "\n"
}

fn upper_first(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

//! Fills in the templates of what people read at a terminal: the `.j2` files in the folder beside
//! this file.

use std::sync::LazyLock;

use minijinja::{Environment, Value};

use crate::engine::text::clip_line_at_word;
use crate::engine::usage::tokens_text;
use crate::engine::words::templates::environment;

const TEMPLATES: [(&str, &str); 1] = [("progress.j2", include_str!("templates/progress.j2"))];
/// The most characters of a person's or the agent's words in a line.
const WORDS_MAX: usize = 120;

static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    environment.add_filter("short", |text: &str| clip_line_at_word(text, WORDS_MAX));
    environment.add_filter("tokens", tokens_text);
    environment.add_filter("upper_first", upper_first);
    environment.set_loader(|name| {
        Ok(TEMPLATES.iter().find(|(own, _)| *own == name).map(|(_, text)| (*text).to_owned()))
    });
    environment
});

/// The text of a template with these values. It reports a fault of the template in its place; the
/// tests fill every one in.
pub fn render(name: &str, values: &Value) -> String {
    let template = PAGES.get_template(name);
    let rendered = template.and_then(|template| template.render(values));
    rendered.unwrap_or_else(|error| format!("{error:#}"))
}

fn upper_first(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

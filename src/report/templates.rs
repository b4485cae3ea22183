//! Fills in the templates of what people read at a terminal: the `.j2` files in the folder beside
//! this file.

use std::sync::LazyLock;

use minijinja::{Environment, Value, escape_formatter};

use crate::engine::text::clip_line_at_word;
use crate::engine::usage::tokens_text;
use crate::engine::words::templates::environment;

const TEMPLATES: [(&str, &str); 1] = [("progress.j2", include_str!("templates/progress.j2"))];
/// The most characters of a person's or the agent's words in a line.
const WORDS_MAX: usize = 120;

static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    // A value has no line break: none can begin a line of its own.
    environment.set_formatter(|out, state, value| match value.as_str() {
        _ if value.is_none() => Ok(()),
        Some(text) => Ok(out.write_str(&text.replace(['\n', '\r'], " "))?),
        None => escape_formatter(out, state, value),
    });
    environment.add_filter("short", |text: &str| clip_line_at_word(text, WORDS_MAX));
    environment.add_filter("tokens", tokens_text);
    environment.add_filter("upper_first", upper_first);
    environment.set_loader(|name| {
        Ok(TEMPLATES.iter().find(|(own, _)| *own == name).map(|(_, text)| (*text).to_owned()))
    });
    environment
});

/// The text of a template with these values; an error is a fault of the template.
pub fn render(name: &str, values: &Value) -> Result<String, minijinja::Error> {
    PAGES.get_template(name)?.render(values)
}

fn upper_first(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

//! Words for people: numbers, durations and lists, and the templates in the folder `templates`.

use engine::text::templates::{self, Fact};
use engine::text::{EscapedLine, clean_text, clip_line, clip_line_at_word, distinct_texts};
use engine::usage::tokens_text;
use minijinja::{Environment, Value};
use std::sync::LazyLock;

/// A number with separators: "4,230".
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration in the lines of a run: "45.2s", "2m16s", "1h2m16s".
pub fn run_duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}.{}s", ms % 1000 / 100),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// A list of commands, each once: "`a`, `b` and `c`".
pub fn list_commands<'a>(commands: impl Iterator<Item = &'a str>) -> String {
    let mut quoted =
        distinct_texts(commands.map(|command| format!("`{}`", clip_line(command, 80))));
    match quoted.pop() {
        None => String::new(),
        Some(last) if quoted.is_empty() => last,
        Some(last) => format!("{} and {last}", quoted.join(", ")),
    }
}

/// The commands that messages name for a terminal.
const FOR_A_TERMINAL: [&str; 11] = [
    "cancel", "config", "doctor", "fleet", "init", "pause", "resume", "set", "status", "tell",
    "trust",
];

/// Cleans a message and rewrites crew's commands in it for a terminal where `crew` is not on
/// `PATH`: `program` replaces it. `keeps_quotes` leaves quoted commands unchanged.
pub fn with_program_path(text: &str, program: &str, keeps_quotes: bool) -> String {
    let mut text = clean_text(text);
    let before_commands: &[&str] = if keeps_quotes { &[" "] } else { &[" ", "`"] };
    for verb in FOR_A_TERMINAL {
        for before in before_commands {
            text =
                text.replace(&format!("{before}crew {verb}"), &format!("{before}{program} {verb}"));
        }
    }
    text
}

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
/// The maximum number of characters in a person's or the agent's words in a line.
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

#[cfg(test)]
mod tests {
    use super::*;
    use engine::text::{format_duration, format_size};

    #[test]
    fn numbers_and_durations_are_formatted_as_people_write_them() {
        let durations = [450, 45_000, 252_400, 43_080_000].map(format_duration);
        assert_eq!(durations, ["450ms", "45s", "4m 12s", "11h 58m"]);
        let taken = [15_000, 45_290, 136_000, 43_089_000].map(run_duration);
        assert_eq!(taken, ["15.0s", "45.2s", "2m16s", "11h58m9s"]);
        let sizes = [640, 12_900, 3_450_000, 1_234_000_000].map(format_size);
        assert_eq!(sizes, ["640 B", "12 KB", "3.4 MB", "1.2 GB"]);
        let numbers = [0, 999, 4230, 100_000, 1_234_567].map(group_digits);
        assert_eq!(numbers, ["0", "999", "4,230", "100,000", "1,234,567"]);
        assert_eq!(list_commands(["a", "b", "a", "c"].into_iter()), "`a`, `b` and `c`");
        assert_eq!(list_commands(["a"].into_iter()), "`a`");
    }
}

#[cfg(test)]
mod called_tests {
    use super::*;

    #[test]
    fn only_commands_for_a_terminal_are_given_with_the_path_of_crew() {
        let text = "crew: paused; \u{fdd4}crew resume k3v9 resumes it\nhint: `crew cancel k3v9`, /crew:resume, a crew of two";
        let expected = "crew: paused; ~/crew/target/release/crew resume k3v9 resumes it\n\
            hint: `~/crew/target/release/crew cancel k3v9`, /crew:resume, a crew of two";
        assert_eq!(with_program_path(text, "~/crew/target/release/crew", false), expected);
    }
}

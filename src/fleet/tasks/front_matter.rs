//! The keys of a fleet's files: fleet.toml, and the front matter of a task file, which is YAML
//! between two `---` or TOML between two `+++`. Both become TOML values with the line of each key;
//! `options` knows what a key means. Only keys, strings and lists of YAML are accepted: an alias,
//! an anchor or a tag is usually a glob or a command without its quotes. The faults of all files
//! are collected and reported together.

use granit_parser::{Event, Parser, ScalarStyle, StrInput, options};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use engine::text::join_first_names;
use readers::parse::settings::{items_as_written, line_number, locate_syntax_error};
use readers::parse::spelling::shorten_text;

/// The line of a fault, counted from 1, and what is wrong there.
pub(super) type Broken = (usize, String);

/// The fences of front matter in YAML and in TOML.
const FENCES: [&str; 2] = ["---", "+++"];
/// The maximum number of keys in front matter, more than there are to set.
const MAX_KEYS: usize = 100;

/// A key in a file, and its value.
#[derive(Debug)]
pub(super) struct KeyValue {
    /// The table that contains the key; empty above the first table.
    pub(super) table: String,
    pub(super) key: String,
    /// The line of the key, counted from 1.
    pub(super) line: usize,
    /// The value; a number is a string with the digits as written. `None` if YAML has no value
    /// here, or one without its quotes.
    pub(super) value: Option<Value>,
}

/// Splits a task file into its keys and the text below them. Each fence is a line of its own, the
/// first one the first line of the file.
pub(super) fn split_front_matter(text: &str) -> Result<(Vec<KeyValue>, &str), Broken> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let fence = text.lines().next().unwrap_or_default().trim_end();
    if !FENCES.contains(&fence) {
        return find_misplaced(text).map_or(Ok((Vec::new(), text)), Err);
    }
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        if start > 0 && line.trim_end() == fence {
            // Includes the first line break, so that line numbers match the file.
            let front = &text[fence.len()..start];
            let entries =
                if fence == FENCES[0] { read_yaml(front)? } else { read_toml(front, &[])? };
            return match entries.get(MAX_KEYS) {
                Some(entry) => Err((entry.line, format!("there are more than {MAX_KEYS} keys"))),
                None => Ok((entries, &text[end..])),
            };
        }
    }
    let what = "opens the front matter and nothing closes it: end it with a line";
    Err((1, format!("`{fence}` {what} `{fence}`")))
}

/// Finds a fence below blank lines: read as text, its keys would be lost silently.
fn find_misplaced(text: &str) -> Option<Broken> {
    let lines = text.lines().map(|line| line.trim_matches('\u{feff}').trim());
    let (at, first) = lines.enumerate().find(|(_, line)| !line.is_empty())?;
    let is_rule = first.trim_matches('-').is_empty() || first.trim_matches('+').is_empty();
    let what = if first.starts_with("<<<<<<<") {
        "a merge is open here: resolve it".to_owned()
    } else if FENCES.contains(&first) {
        format!(
            "front matter begins on the first line: remove what is before this `{first}`, or write the prompt above it"
        )
    } else if is_rule && first.len() > 1 {
        format!("`{first}` is not a fence: front matter is between lines `---` or `+++`")
    } else {
        return None;
    };
    Some((at + 1, what))
}

/// Reads the keys and values of TOML, including those in the `tables`.
pub(super) fn read_toml(text: &str, tables: &[&str]) -> Result<Vec<KeyValue>, Broken> {
    let root = DeTable::parse(text).map_err(|error| {
        let (at, what) = locate_syntax_error(text, &error);
        (line_number(text, &at), what)
    })?;
    let mut entries = Vec::new();
    for (key, value) in items_as_written(root.get_ref()) {
        let (table, items) = match value.get_ref() {
            DeValue::Table(table) if tables.contains(&&**key.get_ref()) => {
                (key.get_ref().to_string(), items_as_written(table))
            }
            _ => (String::new(), vec![(key, value)]),
        };
        entries.extend(items.into_iter().map(|(key, value)| KeyValue {
            table: table.clone(),
            key: key.get_ref().to_string(),
            line: line_number(text, &key.span()),
            value: Some(toml_value(text, value)),
        }));
    }
    Ok(entries)
}

fn toml_value(text: &str, value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        // With Windows line endings, a shell would read the carriage return as part of the last
        // word.
        DeValue::String(text) => text.replace("\r\n", "\n").into(),
        // Keep the digits as written: formatting the number could change them.
        DeValue::Integer(_) | DeValue::Float(_) => {
            text.get(value.span()).unwrap_or_default().replace('_', "").into()
        }
        DeValue::Boolean(on) => (*on).into(),
        DeValue::Array(list) => {
            Value::Array(list.iter().map(|one| toml_value(text, one)).collect())
        }
        // No key accepts these; serde would read a date as a string.
        DeValue::Datetime(_) | DeValue::Table(_) => Table::new().into(),
    }
}

fn read_yaml(text: &str) -> Result<Vec<KeyValue>, Broken> {
    let options = options! { emit_unresolved_aliases: true };
    let mut nodes = Nodes(Parser::new_from_str_with_options(text, options));
    let mut entries = Vec::new();
    match nodes.next()? {
        (Event::StreamEnd, _) => return Ok(entries),
        (Event::MappingStart(_, 0, None), _) => {}
        (_, line) => return Err((line, "the front matter takes lines of KEY: VALUE".to_owned())),
    }
    loop {
        let (event, line) = nodes.next()?;
        if event == Event::MappingEnd {
            break;
        }
        let Some(Value::String(key)) = nodes.read_value(&event)? else {
            return Err((line, "a key of the front matter is a word".to_owned()));
        };
        let (event, _) = nodes.next()?;
        entries.push(KeyValue {
            table: String::new(),
            key,
            line,
            value: nodes.read_value(&event)?,
        });
    }
    match nodes.next()? {
        (Event::StreamEnd, _) => Ok(entries),
        (_, line) => {
            Err((line, "the front matter is one YAML document, and another begins here".to_owned()))
        }
    }
}

/// The events of a YAML text.
struct Nodes<'text>(Parser<'text, StrInput<'text>>);

impl<'text> Nodes<'text> {
    /// The next event that begins or ends a value, or ends the text, with its line.
    fn next(&mut self) -> Result<(Event<'text>, usize), Broken> {
        loop {
            match self.0.next_event() {
                Some(Ok((
                    Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd,
                    _,
                ))) => {}
                Some(Ok((event, span))) => return Ok((event, span.start.line())),
                Some(Err(error)) => {
                    let what = error.info();
                    let way_out =
                        "a value that holds `: ` or ` #`, or begins with a mark, needs quotes";
                    return Err((
                        error.marker().line(),
                        format!("this is not YAML: {what}; {way_out}"),
                    ));
                }
                None => return Err((1, "this is not YAML: it ends too early".to_owned())),
            }
        }
    }

    /// Reads the value that an event begins. The parser limits the nesting depth.
    fn read_value(&mut self, event: &Event<'text>) -> Result<Option<Value>, Broken> {
        let mut parts = Vec::new();
        if matches!(event, Event::SequenceStart(..) | Event::MappingStart(..)) {
            loop {
                match self.next()?.0 {
                    Event::SequenceEnd | Event::MappingEnd => break,
                    event => parts.push(self.read_value(&event)?),
                }
            }
        }
        Ok(match event {
            // In the core schema of YAML 1.2, `yes` and `on` are strings.
            Event::Scalar(text, ScalarStyle::Plain, 0, None) => match &**text {
                "" | "~" | "null" | "Null" | "NULL" => None,
                "true" | "True" | "TRUE" => Some(true.into()),
                "false" | "False" | "FALSE" => Some(false.into()),
                text => Some(text.into()),
            },
            Event::Scalar(text, _, 0, None) => Some((&**text).into()),
            Event::SequenceStart(_, 0, None) => {
                parts.into_iter().collect::<Option<_>>().map(Value::Array)
            }
            Event::MappingStart(_, 0, None) => Some(Table::new().into()),
            // An alias, or something with an anchor or a tag.
            _ => None,
        })
    }
}

/// The name of the file with the settings of all tasks.
pub const FLEET_FILE: &str = "fleet.toml";
/// The maximum number of files that one fault names.
const NAMED_MAX: usize = 8;

/// The faults found so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The name of the file being read.
    pub(super) file: String,
    /// The contents of that file.
    pub(super) text: String,
    found: Vec<Fault>,
}

/// A fault in one file. Faults are sorted by file and line, those in fleet.toml first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fault {
    is_of_task: bool,
    file: String,
    line: Option<usize>,
    what: String,
}

impl Faults {
    /// Adds a fault at a line, counted from 1, or in the file as a whole. `what` says in one line
    /// what is wrong and what to write instead.
    pub(super) fn add(&mut self, line: impl Into<Option<usize>>, what: impl Into<String>) {
        let (file, line, what) = (self.file.clone(), line.into(), what.into());
        self.found.push(Fault { is_of_task: file != FLEET_FILE, file, line, what });
    }

    /// Adds a fault in a line's contents: "LINE: WHY".
    pub(super) fn add_error(&mut self, line: usize, why: &str) {
        let written = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        self.add(line, format!("{}: {why}", shorten_text(written.trim().trim_end_matches(':'))));
    }

    /// Succeeds if no fault was found.
    ///
    /// # Errors
    /// A line for each fault. A fault that several files share is one line.
    pub(super) fn into_result(mut self) -> Result<(), Vec<String>> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort();
        let mut rows: Vec<(Vec<String>, String)> = Vec::new();
        for Fault { file, line, what, .. } in self.found {
            // A file's name may contain a line break.
            let file = shorten_text(&file);
            if let Some(line) = line {
                rows.push((vec![format!("{file}:{line}")], what));
            } else if let Some((files, _)) = rows.iter_mut().find(|(_, known)| *known == what) {
                files.push(file);
            } else {
                rows.push((vec![file], what));
            }
        }
        let lines = rows.iter();
        Err(lines
            .map(|(files, what)| format!("{}: {what}", join_first_names(files, NAMED_MAX)))
            .collect())
    }
}

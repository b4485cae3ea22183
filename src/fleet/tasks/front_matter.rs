//! The keys of a fleet's files, and what is wrong in them: fleet.toml, and the front matter of a
//! task file, which is YAML between two `---` or TOML between two `+++`. They become plain values;
//! `options` knows what a key means. Of YAML it takes keys, texts and lists: an alias, an anchor
//! or a tag is refused, because it is a glob or a command whose quotes were forgotten. Reading
//! continues behind a fault, so that all of them are reported together.

use std::fmt;
use std::slice;

use granit_parser::{Event, Parser, ScalarStyle, StrInput, options};
use toml::Value;
use toml::de::{DeTable, DeValue};

use crate::parse::settings::{Item, broken, in_order, line};
use crate::parse::spelling::shown;

/// Something wrong in one file of a fleet. They sort by file and line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FleetFault {
    /// The file's name.
    pub file: String,
    /// Counted from 1; `None` if it is not in one line.
    pub line: Option<usize>,
    /// What is wrong and what to write instead, in one line.
    pub what: String,
}

impl fmt::Display for FleetFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A name may have a line break in it.
        let file = shown(&self.file);
        match self.line {
            Some(line) => write!(out, "{file}:{line}: {}", self.what),
            None => write!(out, "{file}: {}", self.what),
        }
    }
}

/// The faults so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The file that is read.
    pub(super) file: String,
    pub(super) found: Vec<FleetFault>,
}

impl Faults {
    /// A fault at a line, counted from 1; without one, of the whole file.
    pub(super) fn at(&mut self, line: impl Into<Option<usize>>, what: impl Into<String>) {
        let (file, line, what) = (self.file.clone(), line.into(), what.into());
        self.found.push(FleetFault { file, line, what });
    }
}

/// A line, counted from 1, and what is wrong there.
pub(super) type Broken = (usize, String);

/// The most keys of a front matter, which is more than there are to set.
const MAX_KEYS: usize = 100;
/// A value that was left out.
const EMPTY: &str = "an empty value";

/// A key of a file and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyValue {
    pub(super) key: String,
    /// The line of the key, counted from 1.
    pub(super) line: usize,
    pub(super) value: FileValue,
}

/// A value as a file writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileValue {
    /// A text, or a number with the digits it was written with.
    Text(String),
    Switch(bool),
    List(Vec<Self>),
    /// A table, in the order of the file.
    Table(Vec<KeyValue>),
    /// What no key takes, in words.
    Unfit(&'static str),
}

impl FileValue {
    /// The value as a message names it.
    pub(super) fn found(&self) -> String {
        match self {
            Self::Text(text) => format!("`{}`", shown(text)),
            Self::Switch(on) => format!("`{on}`"),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Unfit(what) => (*what).to_owned(),
        }
    }

    /// The text; `None` for any other value.
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The value for serde, with numbers as texts; `None` for a table and for what no key takes.
    pub(super) fn for_serde(&self) -> Option<Value> {
        match self {
            Self::Text(text) => Some(Value::String(text.clone())),
            Self::Switch(on) => Some(Value::Boolean(*on)),
            Self::List(list) => {
                list.iter().map(Self::for_serde).collect::<Option<_>>().map(Value::Array)
            }
            Self::Table(_) | Self::Unfit(_) => None,
        }
    }

    /// What a list holds, or the value itself.
    pub(super) fn each(&self) -> &[Self] {
        if let Self::List(list) = self { list } else { slice::from_ref(self) }
    }

    fn list(values: Vec<Self>) -> Self {
        let nested = |value: &Self| matches!(value, Self::List(_));
        let flat = |value| if nested(&value) { Self::Unfit("a list in a list") } else { value };
        Self::List(values.into_iter().map(flat).collect())
    }
}

/// The keys of a task file, and the text under them. A fence is a line of its own, and the first
/// one stands on the first line.
pub(super) fn split(text: &str) -> Result<(Vec<KeyValue>, &str), Broken> {
    type Read = fn(&str) -> Result<Vec<KeyValue>, Broken>;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().next().unwrap_or_default().trim_end();
    let read: Read = match first {
        "---" => yaml,
        "+++" => toml,
        _ => return misplaced(text).map_or(Ok((Vec::new(), text)), Err),
    };
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        if start > 0 && line.trim_end() == first {
            // The end of the first line is in it, so that its lines are those of the file.
            let entries = read(&text[first.len()..start])?;
            return match entries.get(MAX_KEYS) {
                Some(entry) => Err((entry.line, format!("there are more than {MAX_KEYS} keys"))),
                None => Ok((entries, &text[end..])),
            };
        }
    }
    Err((
        1,
        format!(
            "`{first}` opens the front matter and nothing closes it: end it with a line `{first}`"
        ),
    ))
}

/// A fence under blank lines: read as text, all that it says would be lost without a word.
fn misplaced(text: &str) -> Option<Broken> {
    let is_blank = |line: &str| line.trim_matches('\u{feff}').trim().is_empty();
    let (at, first) = text.lines().enumerate().find(|(_, line)| !is_blank(line))?;
    let fence = first.trim_matches('\u{feff}').trim();
    if first.starts_with("<<<<<<<") {
        return Some((at + 1, "a merge is open here: resolve it".to_owned()));
    }
    let is_of = |mark: char| fence.len() > 1 && fence.chars().all(|it| it == mark);
    if fence.len() != 3 && (is_of('-') || is_of('+')) {
        let what =
            format!("`{fence}` is not a fence: front matter is between lines `---` or `+++`");
        return Some((at + 1, what));
    }
    let what = format!(
        "front matter begins on the first line: remove what is before this `{fence}`, or write the prompt above it"
    );
    if ["---", "+++"].contains(&fence) { Some((at + 1, what)) } else { None }
}

/// The keys and values of a TOML text.
pub(super) fn toml(text: &str) -> Result<Vec<KeyValue>, Broken> {
    let table = DeTable::parse(text).map_err(|error| {
        let (at, what) = broken(text, &error);
        (line(text, &at), what)
    })?;
    Ok(items(text, table.get_ref()))
}

fn items(text: &str, table: &DeTable<'_>) -> Vec<KeyValue> {
    let item = |(key, value): Item<'_>| {
        let line = line(text, &key.span());
        KeyValue { key: key.get_ref().to_string(), line, value: written(text, value) }
    };
    in_order(table).into_iter().map(item).collect()
}

fn written(text: &str, value: &toml::Spanned<DeValue<'_>>) -> FileValue {
    match value.get_ref() {
        // In a file of Windows a shell would take the carriage return for a part of the last word.
        DeValue::String(text) => FileValue::Text(text.replace("\r\n", "\n")),
        // The number that a program would make of it may be written in another way.
        DeValue::Integer(_) | DeValue::Float(_) => {
            FileValue::Text(text.get(value.span()).unwrap_or_default().replace('_', ""))
        }
        DeValue::Boolean(on) => FileValue::Switch(*on),
        DeValue::Array(list) => {
            FileValue::list(list.iter().map(|one| written(text, one)).collect())
        }
        DeValue::Datetime(_) => FileValue::Unfit("a date"),
        DeValue::Table(table) => FileValue::Table(items(text, table)),
    }
}

fn yaml(text: &str) -> Result<Vec<KeyValue>, Broken> {
    let options = options! { emit_unresolved_aliases: true };
    let mut nodes = Nodes(Parser::new_from_str_with_options(text, options));
    let (event, at) = nodes.within_document()?;
    if event == Event::StreamEnd {
        return Ok(Vec::new());
    }
    let value = nodes.value(&event)?;
    match (value, nodes.within_document()?) {
        (FileValue::Table(entries), (Event::StreamEnd, _)) => Ok(entries),
        (FileValue::Unfit(EMPTY), (Event::StreamEnd, _)) => Ok(Vec::new()),
        (FileValue::Table(_) | FileValue::Unfit(EMPTY), (_, line)) => {
            Err((line, "the front matter is one YAML document, and another begins here".to_owned()))
        }
        _ => Err((at, "the front matter takes lines of KEY: VALUE".to_owned())),
    }
}

/// The events of a YAML text.
struct Nodes<'text>(Parser<'text, StrInput<'text>>);

impl<'text> Nodes<'text> {
    /// The next event and its line.
    fn next(&mut self) -> Result<(Event<'text>, usize), Broken> {
        match self.0.next_event() {
            Some(Ok((event, span))) => Ok((event, span.start.line())),
            Some(Err(error)) => {
                let what = error.info();
                let way_out =
                    "a value that holds `: ` or ` #`, or begins with a mark, needs quotes";
                Err((error.marker().line(), format!("this is not YAML: {what}; {way_out}")))
            }
            None => Err((1, "this is not YAML: it ends too early".to_owned())),
        }
    }

    /// The next event that is not the beginning or the end of a document.
    fn within_document(&mut self) -> Result<(Event<'text>, usize), Broken> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
                other => return Ok(other),
            }
        }
    }

    /// The value that an event begins. The parser limits how deep values are nested.
    fn value(&mut self, event: &Event<'text>) -> Result<FileValue, Broken> {
        let unquoted = match event {
            Event::Alias(_) | Event::UnresolvedAlias(_) => Some('*'),
            event if event.anchor_id().is_some() => Some('&'),
            event if event.tag().is_some() => Some('!'),
            _ => None,
        };
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => plain(text),
            Event::Scalar(text, ..) => FileValue::Text(text.to_string()),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match self.next()?.0 {
                        Event::SequenceEnd => break FileValue::list(list),
                        event => list.push(self.value(&event)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut entries = Vec::new();
                loop {
                    let (event, line) = self.next()?;
                    if event == Event::MappingEnd {
                        break FileValue::Table(entries);
                    }
                    let FileValue::Text(key) = self.value(&event)? else {
                        return Err((line, "a key of the front matter is a word".to_owned()));
                    };
                    let (event, _) = self.next()?;
                    entries.push(KeyValue { key, line, value: self.value(&event)? });
                }
            }
            _ => FileValue::Unfit(EMPTY),
        };
        Ok(match unquoted {
            Some('*') => FileValue::Unfit("an alias (a value that begins with `*` needs quotes)"),
            Some('&') => FileValue::Unfit("an anchor (a value that begins with `&` needs quotes)"),
            Some(_) => FileValue::Unfit("a tag (a value that begins with `!` needs quotes)"),
            None => value,
        })
    }
}

/// A text without quotes, by the core rules of YAML 1.2: `yes` and `on` are texts.
fn plain(text: &str) -> FileValue {
    match text {
        "true" | "True" | "TRUE" => FileValue::Switch(true),
        "false" | "False" | "FALSE" => FileValue::Switch(false),
        "" | "~" | "null" | "Null" | "NULL" => FileValue::Unfit(EMPTY),
        text => FileValue::Text(text.to_owned()),
    }
}

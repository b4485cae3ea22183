//! The page for the next worker: what a person or another agent needs to continue where this loop
//! stopped, made from the same value as the page for a person. crew fills in every fact it has,
//! quotes what an agent said, and writes no section that would be empty.

use chrono::{DateTime, Utc};
use minijinja::context;

use crate::evidence::changes::Changes;
use crate::record::Loop;
use crate::templates::render_template;
use crate::text;
use crate::view::Page;

const AUTHOR: &str = "What the author of this page says (not checked)";
const NEEDS: &str = "Needs a person";
const NEXT: &str = "Next steps";
const CONTEXT: &str = "Context for resume";
/// A handoff's file name: `<type>-<UTC time>.md`.
pub fn file_name(kind: &str, at: DateTime<Utc>) -> String {
    format!("{kind}-{}.md", file_time(at))
}

/// A time as part of a file's name: `20261118T110640Z`.
pub fn file_time(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%SZ").to_string()
}

/// Whether a page is one of this loop.
pub fn is_of(subject: &Loop, page: &str) -> bool {
    page.lines().any(|line| line == format!("loop: {}", subject.id))
}

/// Whether crew wrote a page, with all its facts.
pub fn is_whole(page: &str) -> bool {
    page.contains(&format!("\n## {CONTEXT}\n"))
}

/// What a page has of somebody's own words.
pub fn authors_words(page: &str) -> Option<&str> {
    let (_, words) = page.split_once(&format!("\n## {AUTHOR}\n\n"))?;
    // They may have headings of their own, but none of these.
    let ends = [NEEDS, NEXT].map(|title| words.find(&format!("\n## {title}\n")));
    let end = ends.into_iter().flatten().min().unwrap_or(words.len());
    Some(words[..end].trim())
}

/// The page for a loop that ended, or that somebody hands over. `told` is their own text.
pub fn render_handoff(page: &Page, told: &str, kind: &str, at: DateTime<Utc>) -> String {
    let changes = page.changes.as_ref();
    let files = changes.iter().flat_map(|changes| &changes.files).map(|file| {
        context! { kind => file.kind.kind_word(), path => file.path, yours => file.yours }
    });
    let resume = page.resume.as_ref().map(|resume| {
        let mut steps = std::iter::once(&page.next).chain(&page.then).map(|step| &step.command);
        steps.find(|step| step.starts_with(resume)).unwrap_or(resume)
    });
    let values = context! {
        page,
        kind,
        timestamp => at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        // A branch may be named `@` or `true`, which mean something else in YAML.
        branch => page.branch.as_deref().map(|name| text::safe_json(&name.into())),
        took => text::format_duration(page.awake_ms.max(1000) / 1000 * 1000),
        titles => context! { author => AUTHOR, needs => NEEDS, next => NEXT, context => CONTEXT },
        told => lower_headings(told),
        changed => changes.and_then(Changes::change_words),
        files => files.collect::<Vec<_>>(),
        all_files => changes.map_or(0, Changes::file_count),
        resume,
    };
    render_template("handoff.j2", &values) + "\n"
}

/// Somebody's own words, with each heading that would pass for one of crew's a level below them.
fn lower_headings(told: &str) -> String {
    let crews = [NEEDS, NEXT, CONTEXT].map(|title| format!("## {title}"));
    let is_crews = |line: &str| crews.iter().any(|heading| heading == line.trim_end());
    let line = |line: &str| format!("{}{line}", if is_crews(line) { "#" } else { "" });
    told.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "handoff_tests.rs"]
mod tests;

//! The story of a loop as one self-contained HTML page without scripts or external addresses. All
//! text is foreign and is escaped; a policy also forbids a browser to run or load anything. The
//! facts of the terminal's page come first, then what that has no room for: every iteration, in a
//! table and in charts, the output of the checks, and everything else that happened.

use minijinja::{Value, context};
use serde::Serialize;

use super::{
    StoryPage, check_values, contract_rows, date_and_time, driver_name, driver_names, event_line,
    journal_remarks,
};
use crate::report::page::{COLUMNS, IterationColumn, time_text};
use crate::report::words::group_digits;
use engine::evidence::{ClaimResult, Evidence};
use engine::journal::story::{Iteration, StoryEvent};
use engine::record::Outcome;
use engine::text::templates;
use engine::text::{clean_text, format_briefly};
use engine::usage::Money;
use engine::view::{Fact, IterationLine};

/// The template of the page, with its style.
const TEMPLATE: &str = include_str!("story.html.j2");
/// The number of iterations above which each gets less room, to keep the page small.
const MANY: usize = 1_000;
/// The maximum number of characters in an agent's words.
const SAID_CHARS: usize = 300;
/// The maximum number of characters of an agent's words, if there are many iterations.
const SAID_CHARS_OF_MANY: usize = 60;
/// The maximum number of bars of a chart; beyond that, iterations in a row share one.
const BARS_MAX: usize = 240;

/// The colour of an iteration's result: a class of the page's style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Shade {
    Quiet,
    Good,
    Bad,
}

/// Renders the page.
pub fn render_html(known: &StoryPage<'_>) -> String {
    let (page, record, story) = (known.page, known.view.record, known.story);
    let shade = match page.outcome {
        Some(Outcome::Completed) => Shade::Good,
        Some(_) => Shade::Bad,
        None => Shade::Quiet,
    };
    let last = record.state.seen().evidence().as_ref();
    let all: Vec<&Iteration> = story.iterations().collect();
    let lines: Vec<_> =
        all.iter().map(|one| IterationLine::from_iteration(one, page.proof)).collect();
    let columns = COLUMNS.into_iter().filter(|IterationColumn { is_extra, cell, .. }| {
        !is_extra || lines.iter().any(|line| !cell(line).is_empty())
    });
    let columns: Vec<IterationColumn> = columns.collect();
    let iterations = all.iter().zip(&lines).map(|(iteration, line)| {
        let cells: Vec<String> = columns.iter().map(|column| (column.cell)(line)).collect();
        context! { shade => shade_of(&iteration.evidence), cells, ..Value::from_serialize(line) }
    });
    let now = date_and_time(known.reading.now, known.reading.offset);
    let as_of = if record.is_live() { Some(now) } else { None };
    let mut terms = contract_rows(&known.view);
    terms.retain(|term| term.name != "task");
    terms.push(Fact::new("run by", driver_names(story)));
    render_template(&context! {
        page,
        shade,
        time => time_text(page, known.reading),
        as_of,
        charts => chart_values(&all),
        columns => columns.iter().map(|column| column.heading).collect::<Vec<_>>(),
        said_chars => if all.len() > MANY { SAID_CHARS_OF_MANY } else { SAID_CHARS },
        iterations => iterations.collect::<Vec<_>>(),
        last => last.map(|last| last.iteration),
        checks => last.map(check_values).unwrap_or_default(),
        terms,
        happenings => other_events(known),
    })
}

/// Renders the template; every text is escaped.
fn render_template(values: &Value) -> String {
    let mut environment = templates::new_environment();
    environment.set_keep_trailing_newline(true);
    environment.add_filter("code", |text: String| Value::from_safe_string(with_code(&text)));
    environment.set_formatter(|out, _, value| {
        let text = value.to_string();
        let text = if value.is_safe() { text } else { escape_html(&text) };
        out.write_str(&text).map_err(Into::into)
    });
    environment.render_str(TEMPLATE, values).unwrap_or_else(|error| format!("{error:#}"))
}

fn shade_of(evidence: &Evidence) -> Shade {
    match evidence.claim {
        ClaimResult::Accepted => Shade::Good,
        _ if evidence.failure.is_some() || evidence.failing().next().is_some() => Shade::Bad,
        _ if evidence.checks.is_empty() => Shade::Quiet,
        _ => Shade::Good,
    }
}

/// The charts that have something to show: each iteration's time, failing tests and cost. The table
/// below them has the same figures.
fn chart_values(all: &[&Iteration]) -> Vec<Value> {
    if all.len() < 2 {
        return Vec::new();
    }
    let each = all.len().div_ceil(BARS_MAX);
    let of =
        if each == 1 { "each iteration".to_owned() } else { format!("every {each} iterations") };
    let bars: Vec<&[&Iteration]> = all.chunks(each).collect();
    let times = bars.iter().map(|bar| Some(bar.iter().map(|one| one.elapsed_ms).sum()));
    let failing = bars.iter().map(|bar| failing_tests(bar.last()?));
    let costs = bars.iter().map(|bar| {
        let usages = bar.iter().filter_map(|one| one.evidence.usage.as_ref());
        Some(usages.map(|usage| usage.cost.micros()).sum())
    });
    let words_of: [fn(u64) -> String; 3] = [
        format_briefly,
        |count| count.to_string(),
        |micros| Money::from_micros(micros).to_string(),
    ];
    let table: [(String, Vec<Option<u64>>); 3] = [
        (format!("Time of {of}"), times.collect()),
        ("Failing tests, where they ran".to_owned(), failing.collect()),
        (format!("Cost of {of}"), costs.collect()),
    ];
    let shown = table.into_iter().zip(words_of).filter_map(|((name, values), words)| {
        let most = values.iter().flatten().max().copied().filter(|most| *most > 0)?;
        let bars = bars.iter().zip(values).map(|(bar, value)| {
            context! {
                number => bar.first().map(|one| one.evidence.iteration),
                shade => bar.iter().map(|one| shade_of(&one.evidence)).max(),
                words => value.map(words).unwrap_or_default(),
                // A bar with a value is always visible, even at 0.
                height => value.map_or(0, |value| (value.saturating_mul(100) / most).max(2)),
            }
        });
        let name = format!("{name}, at most {}", words(most));
        Some(context! { name, bars => bars.collect::<Vec<_>>() })
    });
    shown.collect()
}

/// How many tests failed; `None` where no check named its tests.
fn failing_tests(iteration: &Iteration) -> Option<u64> {
    let tests = iteration.evidence.checks.iter().filter_map(|check| check.tests.as_ref());
    tests.map(|tests| u64::from(tests.failed())).reduce(|sum, failed| sum + failed)
}

/// Events that are neither an iteration nor an end, each with its time.
fn other_events(known: &StoryPage<'_>) -> Vec<(String, String)> {
    let story = known.story;
    let mut lines = Vec::new();
    if story.chapters().earlier() > 0 {
        let text = format!("{} lines before these", group_digits(story.chapters().earlier()));
        lines.push(("earlier".to_owned(), text));
    }
    for chapter in story.chapters().iter() {
        if !matches!(*chapter.what(), StoryEvent::Iteration(_)) {
            let time = date_and_time(chapter.at(), known.reading.offset);
            lines.push((time, event_line(chapter.what())));
        }
    }
    lines.extend(journal_remarks(story).into_iter().map(|remark| ("journal".to_owned(), remark)));
    if known.view.record.is_live()
        && let Some(last) = story.drivers().iter().last()
    {
        lines.push(("now".to_owned(), format!("run by {}", driver_name(last))));
    }
    lines
}

/// Escapes a string for HTML. Whatever is between two backticks on a line becomes code.
fn with_code(text: &str) -> String {
    let escaped = escape_html(text);
    let (mut html, mut rest) = (String::new(), escaped.as_str());
    while let Some((before, after)) = rest.split_once('`')
        && let Some((code, after)) = after.split_once('`')
    {
        let is_code = !code.is_empty() && !code.contains('\n');
        let [begin, end] = if is_code { ["<code>", "</code>"] } else { ["`", "`"] };
        html += &[before, begin, code, end].concat();
        rest = after;
    }
    html + rest
}

/// Escapes a string for HTML: no character of it can end or open a tag or an attribute, or reverse
/// the writing direction around it.
fn escape_html(text: &str) -> String {
    clean_text(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_text_can_break_out_of_its_element() {
        assert_eq!(
            escape_html("</pre><script>alert('x & \"y\"')</script>\u{1b}[2J\u{202e}"),
            "&lt;/pre&gt;&lt;script&gt;alert(&#39;x &amp; &quot;y&quot;&#39;)&lt;/script&gt;"
        );
    }

    #[test]
    fn text_between_backticks_is_code() {
        for (text, expected) in [
            ("plain", "plain"),
            ("`a < b` passes", "<code>a &lt; b</code> passes"),
            ("`a` and `b`", "<code>a</code> and <code>b</code>"),
            ("`a` and one ` alone", "<code>a</code> and one ` alone"),
            ("`", "`"),
            ("``", "``"),
            ("```sh\nmake\n```", "```sh\nmake\n```"),
            ("`a\nb` and `c`", "`a\nb` and <code>c</code>"),
            ("``a`` and `b`", "``a`` and <code>b</code>"),
            ("", ""),
        ] {
            assert_eq!(with_code(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_markup_survives_in_a_message(text in "\\PC*[<>&\"']\\PC*") {
            let escaped = escape_html(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        }
    }
}

//! The story of a loop as one self-contained HTML page: no script, and no address it would fetch
//! from. Every text in it comes from elsewhere and is escaped. A policy also forbids a browser to
//! run or load anything. It has the facts of the page in the same order, then what a page has no
//! room for: every iteration, as a table and as bars in colours of the page's style, the output of
//! the checks, and everything else that happened.

use minijinja::{Value, context};
use serde::Serialize;

use super::{StoryPage, checks, contract, date_and_time, drivers, remarks, told_in_a_line, who};
use crate::report::page::{COLUMNS, IterationColumn, time};
use crate::report::words::grouped;
use engine::evidence::{ClaimResult, Evidence};
use engine::journal::story::{Iteration, What};
use engine::record::Outcome;
use engine::text::{brief, clean};
use engine::usage::Money;
use engine::view::{Fact, IterationLine};
use engine::words::templates;

/// The page, and its style.
const TEMPLATE: &str = include_str!("story.html.j2");
/// From so many iterations on each has less room, so that the page stays small.
const MANY: usize = 1_000;
/// The longest words of an agent, in characters, and those of each of many.
const SAID_CHARS: usize = 300;
const SAID_CHARS_OF_MANY: usize = 60;
/// The most bars of a chart; iterations in a row share one beyond that.
const BARS_MAX: usize = 240;

/// How an iteration ended, as far as a colour can show it: a class of the page's style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Shade {
    Quiet,
    Good,
    Bad,
}

/// The page.
pub fn html(known: &StoryPage<'_>) -> String {
    let (page, record, story) = (known.page, known.view.record, known.story);
    let shade = match page.outcome {
        Some(Outcome::Completed) => Shade::Good,
        Some(_) => Shade::Bad,
        None => Shade::Quiet,
    };
    let last = record.state.evidence.as_ref();
    let all: Vec<&Iteration> = story.iterations().collect();
    let lines: Vec<_> = all.iter().map(|it| IterationLine::of(it, page.proof)).collect();
    let has = |it: &IterationColumn| lines.iter().any(|line| !(it.cell)(line).is_empty());
    let columns = COLUMNS.into_iter().filter(|it| !it.is_extra || has(it));
    let columns: Vec<IterationColumn> = columns.collect();
    let iterations = all.iter().zip(&lines).map(|(it, line)| {
        let cells: Vec<String> = columns.iter().map(|column| (column.cell)(line)).collect();
        context! { shade => shade_of(&it.evidence), cells, ..Value::from_serialize(line) }
    });
    let mut terms = contract(&known.view);
    terms.retain(|term| term.name != "task");
    terms.push(Fact::new("run by", drivers(story)));
    render(&context! {
        page,
        shade,
        time => time(page, known.reading),
        as_of => record.is_live().then(|| date_and_time(known.reading.now, known.reading)),
        charts => charts(&all),
        columns => columns.iter().map(|it| it.heading).collect::<Vec<_>>(),
        said_chars => if all.len() > MANY { SAID_CHARS_OF_MANY } else { SAID_CHARS },
        iterations => iterations.collect::<Vec<_>>(),
        last => last.map(|last| last.iteration),
        checks => last.map(checks).unwrap_or_default(),
        terms,
        happenings => happenings(known),
    })
}

/// Fills the template in; every text is escaped.
fn render(values: &Value) -> String {
    let mut environment = templates::environment();
    environment.set_keep_trailing_newline(true);
    environment.add_filter("code", |text: String| Value::from_safe_string(with_code(&text)));
    environment.set_formatter(|out, _, value| {
        let text = value.to_string();
        let text = if value.is_safe() { text } else { escape(&text) };
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

/// All charts that have something to show: how long each iteration took, how many tests failed,
/// what it cost. Each figure is also in the table beneath.
fn charts(all: &[&Iteration]) -> Vec<Value> {
    let each = all.len().div_ceil(BARS_MAX).max(1);
    let of =
        if each == 1 { "each iteration".to_owned() } else { format!("every {each} iterations") };
    let bars: Vec<&[&Iteration]> = all.chunks(each).collect();
    let sum = |value: fn(&Iteration) -> u64| -> Vec<Option<u64>> {
        bars.iter().map(|bar| Some(bar.iter().map(|it| value(it)).sum())).collect()
    };
    let times = sum(|it| it.elapsed_ms);
    let costs = sum(|it| it.evidence.usage.as_ref().map_or(0, |usage| usage.cost.micros()));
    let failing = bars.iter().map(|bar| failing_tests(bar.last()?)).collect();
    let words_of: [fn(u64) -> String; 3] =
        [brief, |count| count.to_string(), |micros| Money::from_micros(micros).to_string()];
    let table = [
        (format!("Time of {of}"), times),
        ("Failing tests, where they ran".to_owned(), failing),
        (format!("Cost of {of}"), costs),
    ];
    let shown = table.into_iter().zip(words_of).filter_map(|((name, values), words)| {
        let most = values.iter().flatten().max().copied().filter(|most| *most > 0)?;
        let bars = bars.iter().zip(values).map(|(bar, value)| {
            context! {
                number => bar.first().map(|it| it.evidence.iteration),
                shade => bar.iter().map(|it| shade_of(&it.evidence)).max(),
                words => value.map(words).unwrap_or_default(),
                // One that has a value is never invisible, not even at 0.
                height => value.map_or(0, |value| (value.saturating_mul(100) / most).max(2)),
            }
        });
        let name = format!("{name}, at most {}", words(most));
        Some(context! { name, bars => bars.collect::<Vec<_>>() })
    });
    if all.len() < 2 { Vec::new() } else { shown.collect() }
}

/// `None` where no check named its tests.
fn failing_tests(iteration: &Iteration) -> Option<u64> {
    let tests = iteration.evidence.checks.iter().filter_map(|it| it.tests.as_ref());
    tests.map(|tests| u64::from(tests.failed)).reduce(|sum, failed| sum + failed)
}

/// What is neither an iteration nor an end, each with its time.
fn happenings(known: &StoryPage<'_>) -> Vec<(String, String)> {
    let story = known.story;
    let earlier = story.chapters.earlier;
    let earlier = (earlier > 0).then(|| format!("{} lines before these", grouped(earlier)));
    let chapters = story.chapters.iter();
    let others = chapters.filter(|chapter| !matches!(chapter.what, What::Iteration(_)));
    let last = story.drivers.iter().last().filter(|_| known.view.record.is_live());
    let lines = earlier.map(|text| ("earlier".to_owned(), text)).into_iter();
    lines
        .chain(others.map(|chapter| {
            (date_and_time(chapter.at, known.reading), told_in_a_line(&chapter.what))
        }))
        .chain(remarks(story).into_iter().map(|remark| ("journal".to_owned(), remark)))
        .chain(last.map(|last| ("now".to_owned(), format!("run by {}", who(last)))))
        .collect()
}

/// Text escaped for HTML, with what is between two backticks of a line as code.
fn with_code(text: &str) -> String {
    let escaped = escape(text);
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

/// Text escaped for HTML: no character of it can end or open a tag or an attribute, or reverse the
/// direction of the text around it.
fn escape(text: &str) -> String {
    clean(text)
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
    fn no_text_can_leave_its_place() {
        assert_eq!(
            escape("</pre><script>alert('x & \"y\"')</script>\u{1b}[2J\u{202e}"),
            "&lt;/pre&gt;&lt;script&gt;alert(&#39;x &amp; &quot;y&quot;&#39;)&lt;/script&gt;"
        );
    }

    #[test]
    fn what_is_between_two_backticks_is_code() {
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
        fn no_letter_of_markup_survives(text in "\\PC*[<>&\"']\\PC*") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        }
    }
}

//! The story of a loop as one self-contained HTML page: no script, and no address it would fetch
//! from. Every text in it comes from elsewhere and is escaped. A policy also forbids a browser to
//! run or load anything. It has the facts of the page in the same order, then what a page has no
//! room for: every iteration, the output of the checks, and everything else that happened.

use minijinja::{Environment, Value, context};

use super::chart::{Shade, charts};
use super::{StoryPage, chapter_line, contract, drivers, remarks, who};
use crate::engine::evidence::Verdict;
use crate::engine::journal::story::{Iteration, What};
use crate::engine::record::{Outcome, Role};
use crate::engine::text::{clean, one_line};
use crate::engine::view::{Fact, IterationLine, LastWords, Step};
use crate::report::page::time;
use crate::report::words::{brief, grouped};

/// The page, and its style.
const TEMPLATE: &str = include_str!("story.html.j2");
/// From so many iterations on each has less room, so that the page stays small.
const MANY: usize = 1_000;
/// The longest words of an agent, in characters, and those of each of many.
const SAID_CHARS: usize = 300;
const SAID_CHARS_OF_MANY: usize = 60;
/// The longest column of files, in characters.
const FILES_CHARS: usize = 60;

/// The page.
pub fn html(known: &StoryPage<'_>) -> String {
    let (page, record, story) = (known.page, known.view.record, known.story);
    let shade = match page.outcome {
        Some(Outcome::Completed) => Shade::Good,
        Some(_) => Shade::Bad,
        None => Shade::Quiet,
    };
    let mut ending: Vec<Value> = page.ending.iter().map(fact).collect();
    ending.push(named("time", &time(page, known.reading)));
    ending.extend(record.is_live().then(|| named("as of", &known.time(known.reading.now))));
    let handoff = page.handoff.iter().map(|file| named("handoff", file));
    let next = std::iter::once(("next", &page.next));
    let steps = next.chain(page.then.iter().map(|then| ("then", then)));
    let step = |(name, step): (&str, &Step)| {
        context! { name, command => step.command, what => step.what }
    };
    let evidence = record.state.evidence.as_ref();
    let all: Vec<&Iteration> = story.iterations().collect();
    let terms = contract(record).into_iter().filter(|(name, _)| *name != "task");
    render(&context! {
        title => format!("loop {} · {}", page.id, page.verdict),
        shade => shade.class(),
        remark => page.remark,
        task => page.task,
        ending,
        charts => Value::from_safe_string(charts(story.iterations())),
        has_costs => all.iter().any(|it| it.evidence.cost().is_some()),
        has_agents => all.iter().any(|it| it.evidence.agent.is_some()),
        iterations => all.iter().map(|it| iteration(known, it, all.len())).collect::<Vec<_>>(),
        results => page.results.iter().map(fact).chain(handoff).collect::<Vec<_>>(),
        steps => steps.map(step).collect::<Vec<_>>(),
        last => evidence.map(|last| last.iteration),
        checks => checks(known),
        terms => terms.chain([("run by", drivers(story))]).collect::<Vec<_>>(),
        happenings => happenings(known),
    })
}

/// Fills the template in; every text is escaped.
fn render(values: &Value) -> String {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(true);
    environment.add_filter("code", |text: String| Value::from_safe_string(with_code(&text)));
    environment.set_formatter(|out, _, value| {
        let text = value.to_string();
        let text = if value.is_safe() { text } else { escape(&text) };
        out.write_str(&text).map_err(Into::into)
    });
    environment.render_str(TEMPLATE, values).unwrap_or_default()
}

fn fact(fact: &Fact) -> Value {
    context! { name => fact.name, text => fact.text, detail => fact.detail.join("\n") }
}

fn named(name: &str, text: &str) -> Value {
    context! { name, text }
}

fn iteration(known: &StoryPage<'_>, iteration: &Iteration, all: usize) -> Value {
    let line = IterationLine::of(iteration, known.page.proof);
    let most = if all > MANY { SAID_CHARS_OF_MANY } else { SAID_CHARS };
    let said = match &line.said {
        LastWords::Crew(words) => one_line(words, most),
        LastWords::Agent(words) => format!("“{}”", one_line(words, most)),
        LastWords::Nothing => String::new(),
    };
    context! {
        number => line.number,
        time => brief(line.elapsed_ms),
        cost => line.cost.unwrap_or_default(),
        agent => line.agent.unwrap_or_default(),
        files => one_line(&line.files, FILES_CHARS),
        shade => Shade::of(&iteration.evidence).class(),
        checks => line.checks,
        said,
    }
}

/// What each check printed at the last boundary.
fn checks(known: &StoryPage<'_>) -> Vec<Value> {
    let evidence = known.view.record.state.evidence.as_ref();
    let checks = evidence.into_iter().flat_map(|evidence| &evidence.checks);
    let shown = checks.map(|check| {
        let roles: Vec<&str> = check.roles.iter().copied().map(Role::label).collect();
        let shade = if check.verdict == Verdict::Passed { Shade::Good } else { Shade::Bad };
        context! {
            roles => roles.join(", "), run => check.run, shade => shade.class(),
            what => check.what_happened(), tail => check.tail,
        }
    });
    shown.collect()
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
        .chain(others.map(|chapter| (known.time(chapter.at), chapter_line(chapter))))
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

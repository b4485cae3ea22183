//! The story of a loop as one self-contained HTML page: no script, and no address it would fetch
//! from. Every text in it comes from elsewhere and is escaped. A policy also forbids a browser to
//! run or load anything. It has the facts of the page in the same order, then what a page has no
//! room for: every iteration, the output of the checks, and everything else that happened.

use std::fmt::Write as _;

use super::chart::{Shade, charts};
use super::{StoryPage, chapter_line, contract, drivers, remarks, who};
use crate::engine::evidence::Verdict;
use crate::engine::journal::story::What;
use crate::engine::page::{Fact, IterationLine, LastWords, Page, Step};
use crate::engine::record::{Outcome, Role};
use crate::engine::text::{clean, one_line};
use crate::report::page::time;
use crate::report::words::{brief, grouped};

/// From so many iterations on each has less room, so that the page stays small.
const MANY: usize = 1_000;
/// The longest words of an agent, in characters, and those of each of many.
const SAID_CHARS: usize = 300;
const SAID_CHARS_OF_MANY: usize = 60;
/// The longest column of files, in characters.
const FILES_CHARS: usize = 60;

const HEAD: &str = include_str!("head.html");
const STYLE: &str = include_str!("style.html");

/// The page.
pub fn html(known: &StoryPage<'_>) -> String {
    let page = known.page;
    let title = escape(&format!("loop {} · {}", page.id, page.verdict));
    let mut text = format!("{HEAD}<title>{title}</title>\n{STYLE}<body>\n<main>\n");
    let shade = match page.outcome {
        Some(Outcome::Completed) => Shade::Good,
        Some(_) => Shade::Bad,
        None => Shade::Quiet,
    };
    let _ = writeln!(text, "<h1 class=\"{}\">{title}</h1>", shade.class());
    if let Some(remark) = &page.remark {
        let _ = writeln!(text, "<p class=\"remark\">{}</p>", escape(remark));
    }
    let _ = writeln!(text, "<p class=\"task\">{}</p>", escape(&page.task));
    text.push_str("<dl>\n");
    page.ending.iter().for_each(|fact| told(&mut text, fact));
    row(&mut text, "time", &time(page, known.reading));
    if known.record.is_live() {
        row(&mut text, "as of", &known.time(known.reading.now));
    }
    text.push_str("</dl>\n");
    iterations(&mut text, known);
    results(&mut text, page);
    output(&mut text, known);
    terms(&mut text, known);
    happenings(&mut text, known);
    text.push_str("</main>\n</body>\n</html>\n");
    text
}

fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
}

fn told(text: &mut String, fact: &Fact) {
    let detail = fact.detail.join("\n");
    let detail = if detail.is_empty() { detail } else { format!("<pre>{}</pre>", escape(&detail)) };
    let (name, value) = (escape(fact.name), escape(&fact.text));
    let _ = writeln!(text, "<dt>{name}</dt><dd>{value}{detail}</dd>");
}

/// There may be ten thousand rows, so the style holds their look, and cells have no end tags.
fn iterations(text: &mut String, known: &StoryPage<'_>) {
    let all = known.story.iterations().count();
    if all == 0 {
        return;
    }
    let most = if all > MANY { SAID_CHARS_OF_MANY } else { SAID_CHARS };
    text.push_str("<h2>Iterations</h2>\n");
    text.push_str(&charts(known.story.iterations()));
    let has_costs = known.story.iterations().any(|it| it.evidence.cost().is_some());
    let cost = if has_costs { "<th scope=\"col\">cost" } else { "" };
    let has_agents = known.story.iterations().any(|it| it.evidence.agent.is_some());
    let agent = if has_agents { "<th scope=\"col\">agent" } else { "" };
    let _ = writeln!(
        text,
        "<table class=\"all\">\n<tr><th scope=\"col\">n<th scope=\"col\">time{cost}{agent}<th scope=\"col\">changed\
         <th scope=\"col\">checks<th scope=\"col\">said</tr>"
    );
    for iteration in known.story.iterations() {
        let line = IterationLine::of(iteration, known.page.proof);
        let said = match &line.said {
            LastWords::Crew(words) => escape(&one_line(words, most)),
            LastWords::Agent(words) => format!("“{}”", escape(&one_line(words, most))),
            LastWords::Nothing => String::new(),
        };
        let cost = line.cost.as_deref().unwrap_or_default();
        let cost = if has_costs { format!("<td>{}", escape(cost)) } else { String::new() };
        let agent = line.agent.as_deref().unwrap_or_default();
        let agent = if has_agents { format!("<td>{}", escape(agent)) } else { String::new() };
        let _ = writeln!(
            text,
            "<tr><td>{}<td>{}{cost}{agent}<td>{}<td class=\"{}\">{}<td>{said}</tr>",
            line.number,
            brief(line.elapsed_ms),
            escape(&one_line(&line.files, FILES_CHARS)),
            Shade::of(&iteration.evidence).class(),
            escape(&line.checks),
        );
    }
    text.push_str("</table>\n");
}

fn results(text: &mut String, page: &Page) {
    text.push_str("<h2>Result</h2>\n<dl>\n");
    page.results.iter().for_each(|fact| told(text, fact));
    page.handoff.iter().for_each(|file| row(text, "handoff", file));
    let mut step = |name: &str, step: &Step| {
        let (command, what) = (escape(&step.command), escape(&step.what));
        let _ = writeln!(text, "<dt>{name}</dt><dd><code>{command}</code> {what}</dd>");
    };
    step("next", &page.next);
    page.then.iter().for_each(|then| step("then", then));
    text.push_str("</dl>\n");
}

/// What each check printed at the last boundary.
fn output(text: &mut String, known: &StoryPage<'_>) {
    let Some(evidence) = &known.record.state.evidence else { return };
    if evidence.checks.is_empty() {
        return;
    }
    let _ = writeln!(text, "<h2>Checks after iteration {}</h2>", evidence.iteration);
    for check in &evidence.checks {
        let roles: Vec<&str> = check.roles.iter().copied().map(Role::label).collect();
        let shade = if check.verdict == Verdict::Passed { Shade::Good } else { Shade::Bad };
        let _ = writeln!(
            text,
            "<p>{} <code>{}</code> <span class=\"{}\">{}</span></p>",
            escape(&roles.join(", ")),
            escape(&check.run),
            shade.class(),
            escape(&check.what_happened())
        );
        if !check.tail.is_empty() {
            let _ = writeln!(text, "<pre>{}</pre>", escape(&check.tail));
        }
    }
}

/// What was asked for, and who worked.
fn terms(text: &mut String, known: &StoryPage<'_>) {
    text.push_str("<h2>Contract</h2>\n<dl>\n");
    for (name, value) in contract(known.record).iter().filter(|(name, _)| *name != "task") {
        row(text, name, value);
    }
    row(text, "driver", &drivers(known.story));
    text.push_str("</dl>\n");
}

fn happenings(text: &mut String, known: &StoryPage<'_>) {
    text.push_str("<h2>What else happened</h2>\n<table class=\"else\">\n");
    let mut cell = |name: &str, value: &str| {
        let (name, value) = (escape(name), escape(value));
        let _ = writeln!(text, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
    };
    if known.story.chapters.earlier > 0 {
        cell("earlier", &format!("{} lines before these", grouped(known.story.chapters.earlier)));
    }
    for chapter in known.story.chapters.iter() {
        if !matches!(chapter.what, What::Iteration(_)) {
            cell(&known.time(chapter.at), &chapter_line(chapter));
        }
    }
    for remark in remarks(known.story) {
        cell("journal", &remark);
    }
    if let Some(last) = known.story.drivers.iter().last().filter(|_| known.record.is_live()) {
        cell("now", &format!("driven by {}", who(last)));
    }
    text.push_str("</table>\n");
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

    proptest! {
        #[test]
        fn no_letter_of_markup_survives(text in "\\PC*[<>&\"']\\PC*") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        }
    }
}

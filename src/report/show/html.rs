//! The story of a loop as one self-contained HTML page: no script, and no address it would fetch
//! from. Every text in it comes from elsewhere and is escaped. A policy also forbids a browser to
//! run or load anything.

use std::fmt::Write as _;

use super::{StoryPage, chapter_line, contract, drivers, happened, remarks, who};
use crate::engine::evidence::{Evidence, Verdict};
use crate::engine::journal::story::What;
use crate::engine::record::{Outcome, Role};
use crate::engine::text::clean;
use crate::report::line;
use crate::report::words::took;

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"#;

const STYLE: &str = "<style>
:root { --good: #1a7f37; --bad: #b42318; --quiet: #57606a; --line: #d0d7de; --bar: #8fb4e8 }
@media (prefers-color-scheme: dark) {
  :root { --good: #56d364; --bad: #ff7b72; --quiet: #9198a1; --line: #3d444d; --bar: #31588f }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
pre, code { font-family: ui-monospace, monospace; font-size: .9em }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line); padding: .7rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line) }
td { overflow-wrap: anywhere } .all td { white-space: nowrap; font-variant-numeric: tabular-nums }
.all td:nth-child(4) { width: 8rem } .all td:nth-child(5) { white-space: normal }
.good { color: var(--good) } .bad { color: var(--bad) } .quiet { color: var(--quiet) }
.all i { display: block; background: var(--bar); height: .6rem; min-width: 1px }
</style>
";

/// The page.
pub fn html(known: &StoryPage<'_>) -> String {
    let record = known.record;
    let title = escape(&format!("loop {}: {}", record.id, line::status_line(record)));
    let mut text = format!("{HEAD}<title>{title}</title>\n{STYLE}<body>\n");
    let tone = match record.outcome() {
        Some(Outcome::Completed) => "good",
        Some(_) => "bad",
        None => "quiet",
    };
    let _ = writeln!(text, "<h1 class=\"{tone}\">{title}</h1>");
    if known.owner_is_gone {
        text.push_str("<p class=\"bad\">Its owner is gone, and the loop with it.</p>\n");
    }
    summary(&mut text, known);
    checks(&mut text, known);
    iterations(&mut text, known);
    happenings(&mut text, known);
    text.push_str("</body>\n</html>\n");
    text
}

fn summary(text: &mut String, known: &StoryPage<'_>) {
    let record = known.record;
    text.push_str("<table>\n");
    if let Some(ending) = &record.state.ending {
        row(text, "why", &ending.why);
    }
    row(text, "started", &known.time(record.started_at));
    row(text, "time awake", &took(record.state.awake_ms));
    if let Some(spread) = record.spread() {
        let [min, mean, max] = [spread.min, spread.mean, spread.max].map(took);
        row(text, "each iteration", &format!("min {min}, mean {mean}, max {max}"));
    }
    if let Some(spent) = record.spent() {
        row(text, "cost", &spent);
    }
    for (name, value) in contract(record).iter().filter(|(name, _)| *name != "task") {
        row(text, name, value);
    }
    row(text, "driver", &drivers(known.story));
    for commit in &known.since.commits {
        row(text, "commit", commit);
    }
    text.push_str("</table>\n");
    let _ = writeln!(text, "<h2>Task</h2>\n<pre>{}</pre>", escape(&record.contract.task));
    if !known.since.diffstat.trim().is_empty() {
        let diffstat = escape(known.since.diffstat.trim_end());
        let _ = writeln!(text, "<h2>Changed files</h2>\n<pre>{diffstat}</pre>");
    }
}

fn row(text: &mut String, name: &str, value: &str) {
    let (name, value) = (escape(name), escape(value));
    let _ = writeln!(text, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
}

fn checks(text: &mut String, known: &StoryPage<'_>) {
    let Some(evidence) = &known.record.state.evidence else { return };
    if evidence.checks.is_empty() {
        return;
    }
    let _ = writeln!(text, "<h2>Checks after iteration {}</h2>", evidence.iteration);
    for check in &evidence.checks {
        let roles: Vec<&str> = check.roles.iter().copied().map(Role::label).collect();
        let tone = if check.verdict == Verdict::Passed { "good" } else { "bad" };
        let _ = writeln!(
            text,
            "<p>{} <code>{}</code> <span class=\"{tone}\">{}</span></p>",
            escape(&roles.join(", ")),
            escape(&check.run),
            escape(&check.what_happened())
        );
        if !check.tail.is_empty() {
            let _ = writeln!(text, "<pre>{}</pre>", escape(&check.tail));
        }
    }
}

/// There may be ten thousand rows, so the style holds their look, and cells have no end tags.
fn iterations(text: &mut String, known: &StoryPage<'_>) {
    let story = known.story;
    let longest = story.iterations().map(|it| it.elapsed_ms).max().unwrap_or_default().max(1);
    text.push_str(
        "<h2>Iterations</h2>\n<table class=\"all\">\n<tr><th>n</th><th>ended</th><th>time</th>",
    );
    text.push_str("<th></th><th>what it was</th><th>cost</th></tr>\n");
    for chapter in story.chapters.iter() {
        if let What::Iteration(iteration) = &chapter.what {
            let share = iteration.elapsed_ms.saturating_mul(100) / longest;
            let tone = tone(&iteration.evidence);
            let _ = writeln!(
                text,
                "<tr><td>{}<td>{}<td>{}<td><i style=\"width:{share}%\"></i><td{tone}>{}<td>{}</tr>",
                iteration.number,
                known.time(chapter.at),
                took(iteration.elapsed_ms),
                escape(&happened(&iteration.evidence).join(" · ")),
                escape(&iteration.evidence.cost().unwrap_or_default())
            );
        }
    }
    text.push_str("</table>\n");
}

fn tone(evidence: &Evidence) -> &'static str {
    use crate::engine::evidence::ClaimResult;
    match evidence.claim {
        ClaimResult::Accepted => " class=\"good\"",
        _ if evidence.failure.is_some() || evidence.failing().next().is_some() => " class=\"bad\"",
        _ => "",
    }
}

fn happenings(text: &mut String, known: &StoryPage<'_>) {
    text.push_str("<h2>What else happened</h2>\n<table>\n");
    if known.story.chapters.earlier > 0 {
        let earlier = format!("{} lines before these", known.story.chapters.earlier);
        row(text, "", &earlier);
    }
    for chapter in known.story.chapters.iter() {
        if !matches!(chapter.what, What::Iteration(_)) {
            row(text, &known.time(chapter.at), &chapter_line(chapter));
        }
    }
    for remark in remarks(known.story) {
        row(text, "", &remark);
    }
    if let Some(last) = known.story.drivers.iter().last().filter(|_| known.record.is_live()) {
        row(text, "now", &format!("driven by {}", who(last)));
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

//! The pictures in `docs/pictures`: real runs, drawn from what a terminal gets. Times and ids are
//! masked, so that a run today draws what one a year ago drew. `just pictures` draws them again.

use anstyle_svg::Term;
use regex::Regex;
use serde_json::{Value, json};

use crate::child::Running;
use crate::run::World;
use crate::sandbox::{DEADLINE, Sandbox, checkout, crew};
use crate::tidy::pattern;

/// The columns of every picture.
pub(crate) const COLUMNS: u16 = 92;
/// The classes of a drawing that have a colour: its name on a dark and on a light ground. No other
/// colour can be read on both.
const COLOURS: [(&str, &str, &str); 5] = [
    ("fg", "#e6edf3", "#1f2328"),
    ("bg", "#0d1117", "#f6f8fa"),
    ("fg-red", "#ff7b72", "#cf222e"),
    ("fg-green", "#3fb950", "#1a7f37"),
    ("fg-yellow", "#d29922", "#8a5a00"),
];

/// The picture of a screen: light, or dark where a reader wants that.
fn drawn(screen: &str) -> String {
    // What a screen in tmux has instead.
    let names = [("001", "red"), ("002", "green"), ("003", "yellow")];
    let svg = Term::new().min_width_px(usize::from(COLUMNS) * 42 / 5).render_svg(screen);
    let svg = names.iter().fold(svg, |svg, (number, name)| {
        svg.replace(&format!("fg-ansi256-{number}"), &format!("fg-{name}"))
    });
    let rule = pattern(r"(?m)^    \.((?:fg|bg)[a-z0-9-]*) \{.*\n");
    let used: Vec<&str> = rule.captures_iter(&svg).map(|it| it.get(1).unwrap().as_str()).collect();
    let rules = |pick: fn(&(&str, &str, &str)) -> String| {
        let of = |class: &&str| COLOURS.iter().find(|it| it.0 == *class).expect(class);
        let rules = used.iter().map(of).map(|it| format!(".{} {{ fill: {} }} ", it.0, pick(it)));
        rules.collect::<String>().trim_end().to_owned()
    };
    let (dark, light) = (rules(|it| it.1.to_owned()), rules(|it| it.2.to_owned()));
    let colours = format!("    {light}\n    @media (prefers-color-scheme: dark) {{ {dark} }}\n");
    let svg =
        rule.replace_all(&svg, "").replacen("  <style>\n", &format!("  <style>\n{colours}"), 1);
    let size = pattern(r#"<svg width="(\d+)px" height="(\d+)px""#);
    let svg = size.replace(&svg, r#"<svg width="$1" height="$2" viewBox="0 0 $1 $2""#);
    svg.replace(".dimmed { opacity: 0.4; }", ".dimmed { opacity: 0.65; }")
}

/// Holds a screen against its picture, or draws it with `CREW_PICTURES=1`.
#[track_caller]
pub(crate) fn compare(name: &str, screen: &str) {
    let lines: Vec<&str> = screen.trim_matches('\n').lines().map(str::trim_end).collect();
    let drawn = drawn(&lines.join("\n"));
    let file = checkout().join(format!("docs/pictures/{name}.svg"));
    if std::env::var("CREW_PICTURES").as_deref() == Ok("1") {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(drawn.len() < 60_000, "{name}: {} bytes", drawn.len());
    assert!(kept == drawn, "{} differs; `just pictures` draws it again:\n{screen}", file.display());
}

/// The text with each of these patterns replaced.
pub(crate) fn masked(text: &str, masks: &[(&str, &str)]) -> String {
    masks.iter().fold(text.to_owned(), |text, (regex, same)| {
        let regex: &Regex = &pattern(regex);
        regex.replace_all(&text, *same).into_owned()
    })
}

/// The text with the matches of a pattern replaced, each by the next of these.
pub(crate) fn in_turn(text: &str, regex: &str, same: &[&str]) -> String {
    let mut same = same.iter();
    pattern(regex).replace_all(text, |_: &regex::Captures<'_>| *same.next().unwrap()).into_owned()
}

/// What a person sees who types this at a terminal, with the line that was typed.
pub(crate) fn typed(sandbox: &Sandbox, words: &str) -> String {
    let run = format!("stty cols {COLUMNS}; '{}' {words}", crew().display());
    let mut terminal = sandbox.command("script");
    terminal.args(["--quiet", "--return", "--command", &run, "/dev/null"]);
    terminal.env("TERM", "xterm-256color");
    let told = Running::start(terminal, None).wait(DEADLINE).stdout.replace('\r', "");
    format!("\u{1b}[2m$\u{1b}[0m \u{1b}[1mcrew {words}\u{1b}[0m\n\n{told}")
}

#[test]
fn the_picture_of_a_session() {
    let sandbox = Sandbox::new();
    sandbox.put_crew_on_the_path();
    let told = typed(&sandbox, "demo --fast");
    let (_, told) = told.split_once("> /crew:loop").unwrap();
    let (told, _) = told.split_once("The temporary folder is gone").unwrap();
    let masks = [
        (r"loop [a-z][a-z0-9]{7}\b", "loop k3v9q2xw"),
        (r"(?m)^(    \d) +\d+s", "$1  9s"),
        (r"\d+s, from \d\d:\d\d to \d\d:\d\d", "31s, from 22:31 to 22:31"),
        (r"\b[0-9a-f]{7}\b", "4f2c9d1"),
    ];
    compare("session", &masked(&format!("\u{1b}[1m> /crew:loop{told}"), &masks));
}

const TESTS: &str = r#"
say() { if [ "$2" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; bad=1; fi; n=$((n + 1)); }
n=1; echo 1..6
for name in adds_lines keeps_cents rounds_half_even splits_a_discount refunds_in_full takes_many_taxes; do
    say "$name" "$(grep -x "$name" done.txt)"
done
exit ${bad:-0}
"#;

/// The times of a loop as of an evening: three iterations of some minutes.
fn in_the_evening(world: &World) {
    let minutes = [4, 9, 6];
    let at = |minute: i64| {
        json!(chrono::DateTime::from_timestamp(1_768_516_260 + minute * 60, 0).unwrap())
    };
    let file = world.file("loop.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["started_at"] = at(0);
    record["elapsed_ms"] = json!(minutes.map(|it| it * 60_000));
    record["state"]["awake_ms"] = json!(minutes.iter().sum::<i64>() * 60_000);
    record["state"]["ended_at"] = at(19);
    std::fs::write(file, record.to_string()).unwrap();
    let file = world.file("journal.jsonl");
    let mut ended = minutes.iter();
    let lines = std::fs::read_to_string(&file).unwrap();
    let lines = lines.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some(elapsed_ms) = line.pointer_mut("/event/boundary/elapsed_ms") {
            *elapsed_ms = json!(ended.next().unwrap() * 60_000);
        }
        line["at"] = at(19);
        format!("{line}\n")
    });
    std::fs::write(file, lines.collect::<String>()).unwrap();
}

#[test]
fn the_picture_of_the_closing_page() {
    let world = World::new(&[
        "printf 'rounds_half_even\nsplits_a_discount\n' >> done.txt; echo 'Rounding is right now; refunds are next.'",
        "echo refunds_in_full >> done.txt; echo 'All done.'; echo '<promise>COMPLETE</promise>'",
        "echo takes_many_taxes >> done.txt; echo rates > rates.txt; echo 'Every test passes.'; echo '<promise>COMPLETE</promise>'",
    ]);
    world.sandbox.write("tests.sh", TESTS);
    world.sandbox.write("done.txt", "adds_lines\nkeeps_cents\n");
    world.sandbox.git(&["add", "."]);
    world.sandbox.git(&["commit", "--quiet", "--message", "Invoices"]);
    let task = "Split a discount over the lines of an invoice so that refunds add up to the cent";
    let ran = world.crew(&["run", task, "--verify", "sh tests.sh", "-n", "8", "--commit"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    in_the_evening(&world);
    let id = world.id();
    let masks = [
        (r", \d+d ago", ""),
        (r"2026-01-15 ", ""),
        (r"\b[0-9a-f]{12}\b", "4f2c9d1b07e3"),
        (r"\b[0-9a-f]{7}\b", "4f2c9d1"),
    ];
    let page = typed(&world.sandbox, "status").replace(&id, "k3v9q2xw");
    compare("closing-page", &masked(&page, &masks));
}

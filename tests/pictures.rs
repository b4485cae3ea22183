//! The pictures in `docs/pictures`: real runs, drawn from what a terminal gets. Times and ids are
//! masked, so that every run draws the same picture. `just pictures` draws them again.

use anstyle_svg::Term;
use chrono::{TimeDelta, Utc};
use regex::Regex;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::{Terminal, in_a_terminal};
use crate::fleet::{FleetWorld, LONG};
use crate::run::{CLAIM, HANG, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox, checkout, crew, poll_until};
use crate::spawned::Running;
use crate::tidy::pattern;

/// The columns of every picture.
const COLUMNS: u16 = 92;
/// The classes of a drawing that have a colour, each with its name on a dark and on a light
/// background. No other colour is readable on both.
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

/// Compares a screen with its picture, or draws the picture with `CREW_PICTURES=1`.
#[track_caller]
fn compare(name: &str, screen: &str) {
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
fn masked(text: &str, masks: &[(&str, &str)]) -> String {
    masks.iter().fold(text.to_owned(), |text, (regex, same)| {
        let regex: &Regex = &pattern(regex);
        regex.replace_all(&text, *same).into_owned()
    })
}

/// The text with the matches of a pattern replaced, each by the next of these.
fn in_turn(text: &str, regex: &str, same: &[&str]) -> String {
    let mut same = same.iter();
    pattern(regex).replace_all(text, |_: &regex::Captures<'_>| *same.next().unwrap()).into_owned()
}

/// The text with its commits renamed, in the order of their first occurrence.
fn with_other_commits(text: &str) -> String {
    let names = ["4f2c9d1", "b81e6a0", "07e3c5d", "9ad2f48"];
    let mut known: Vec<String> = Vec::new();
    let rename = |commit: &regex::Captures<'_>| {
        let place = known.iter().position(|other| *other == commit[0]);
        names[place.unwrap_or_else(|| {
            known.push(commit[0].to_owned());
            known.len() - 1
        })]
    };
    pattern(r"\b[0-9a-f]{7}\b").replace_all(text, rename).into_owned()
}

/// The screen of a user who types this at a terminal, with the typed line.
fn typed(sandbox: &Sandbox, words: &str) -> String {
    let run = format!("stty cols {COLUMNS}; '{}' {words}", crew().display());
    let mut terminal = sandbox.command("script");
    terminal.args(["--quiet", "--return", "--command", &run, "/dev/null"]);
    terminal.env("TERM", "xterm-256color");
    let shown = Running::start(terminal, None).wait(DEADLINE).stdout.replace('\r', "");
    format!("\u{1b}[2m$\u{1b}[0m \u{1b}[1mcrew {words}\u{1b}[0m\n\n{shown}")
}

#[test]
fn the_session_picture_shows_real_output() {
    let sandbox = Sandbox::new();
    sandbox.put_crew_on_the_path();
    let shown = typed(&sandbox, "demo --fast");
    let (_, shown) = shown.split_once("> /crew:loop").unwrap();
    let (shown, _) = shown.split_once("The temporary folder is gone").unwrap();
    let masks = [
        (r"loop [a-z][a-z0-9]{7}\b", "loop k3v9q2xw"),
        (r"(?m)^(    \d) +\d+[smh]", "$1  9s"),
        (r"\d+[smh], from \d\d:\d\d to \d\d:\d\d", "31s, from 22:31 to 22:31"),
    ];
    let screen = format!("\u{1b}[1m> /crew:loop{shown}");
    compare("session", &with_other_commits(&masked(&screen, &masks)));
}

/// The tests of the project whose loop has the closing page.
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

/// A loop of three iterations over the invoices of a shop, one evening.
fn invoices() -> World {
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
    world
}

#[test]
#[ignore = "long"]
fn the_closing_page_picture_shows_real_output() {
    let world = invoices();
    let masks = [(r", \d+d ago", ""), (r"2026-01-15 ", "")];
    let page = typed(&world.sandbox, "status").replace(&world.id(), "k3v9q2xw");
    compare("closing-page", &with_other_commits(&masked(&page, &masks)));
}

/// A browser draws the page, with the fonts of its machine: only `just pictures` draws it.
#[test]
#[ignore = "long"]
fn the_story_picture_shows_real_output() {
    let file = checkout().join("docs/pictures/story.png");
    if std::env::var("CREW_PICTURES").as_deref() == Ok("1") {
        let world = invoices();
        let page = world.sandbox.file("story.html");
        world.crew(&["show", "--html", page.to_str().unwrap()]).success();
        let html = std::fs::read_to_string(&page).unwrap().replace(&world.id(), "k3v9q2xw");
        let html = masked(&html, &[(r", \d+d ago", ""), (r"2026-01-15 ", "")]);
        std::fs::write(&page, with_other_commits(&html)).unwrap();
        let browsers = "for name in chromium google-chrome; do command -v $name && exit; done";
        let browser = world.sandbox.sh(browsers).stdout;
        assert!(!browser.is_empty(), "no chromium: {} cannot be drawn", file.display());
        let mut chromium = world.sandbox.command(browser.trim());
        chromium.args([
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--window-size=800,1030",
        ]);
        chromium.arg(format!("--screenshot={}", file.display())).arg(page);
        let ran = Running::start(chromium, None).wait(LONG);
        assert_eq!(ran.code(), 0, "{ran:#?}");
    }
    let size = std::fs::metadata(&file).map_or(0, |file| file.len());
    assert!((1..150_000).contains(&size), "{}: {size} bytes", file.display());
}

/// Sets when a loop ended.
fn ended_ago(world: &World, id: &str, minutes: i64) {
    let file = world.sandbox.crew_home().join(format!("loops/{id}/loop.json"));
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let last = Utc::now() - TimeDelta::minutes(minutes);
    record["state"]["last_iteration_at"] = json!(last);
    record["state"]["ended_at"] = json!(last);
    std::fs::write(file, record.to_string()).unwrap();
}

#[test]
#[ignore = "long"]
fn the_board_picture_shows_real_output() {
    in_a_terminal(|| {
        let world = World::new(&[]);
        let run = |folder: &str, task: &str, steps: &[&str], options: &[&str]| {
            let folder = world.sandbox.home().join("w").join(folder);
            let folder = folder.display().to_string();
            world.sandbox.git(&["worktree", "add", "--quiet", &folder]);
            world.steps(steps);
            world.crew_in(&folder, &[&["run", task, "-q"], options].concat());
            world.loops()[0]["id"].as_str().unwrap().to_owned()
        };
        let check = ["--verify", "grep -q limits api.py"];
        let asks = "echo '<promise>BLOCKED: the password of database user backup_ro</promise>'";
        let limits = format!("echo limits >> api.py; {CLAIM}");
        let api = run("api", "Add rate limits to the endpoints", &[WORK, &limits], &check);
        let backup = run("backup", "Set up the nightly backup of the database", &[asks], &[]);
        let infra = run("infra", "Remove the dead feature flags", &[WORK], &["-n", "3"]);
        for (id, minutes) in [(&api, 90), (&backup, 150), (&infra, 390)] {
            ended_ago(&world, id, minutes);
        }
        let work = "echo rounding >> invoices.py; echo 'Rounding is right now; refunds are next.'";
        world.steps(&[work, work, &format!("echo 'Refunds are off by one cent.'; {HANG}")]);
        let shop = world.sandbox.home().join("w/shop");
        world.sandbox.git(&["worktree", "add", "--quiet", &shop.display().to_string()]);
        let task = "Split a discount over the lines of an invoice";
        let mut running = world.sandbox.command(world.sandbox.build().path());
        running.args(["run", task, "-n", "8", "-q"]).current_dir(&shop);
        let running = Running::start(running, None);
        poll_until("the agent hangs", || world.note("hangs").exists());
        let shop = world.loops()[0]["id"].as_str().unwrap().to_owned();
        let mut watch = world.sandbox.command(world.sandbox.build().path());
        watch.arg("watch").current_dir(world.sandbox.home()).env("LANG", "C.UTF-8");
        let terminal = Terminal::start(&world.sandbox, &watch);
        terminal.resize(COLUMNS, 20);
        terminal.wait_for_text("3/8");
        terminal.key("Down");
        terminal.wait_for_text("off by one cent");
        let ids = [(api, "k3v9"), (backup, "m7qa"), (infra, "c2xd"), (shop, "t8wz")];
        let screen = ids
            .iter()
            .fold(terminal.coloured_screen(), |screen, (id, same)| screen.replace(&id[..4], same));
        let masks = [(r"3/8 +\d+[sm]", "3/8      2m"), (r" +\d+s  ", "  4m  ")];
        let screen = masked(&screen, &masks);
        let times = ["23:09", "21:39", "16:39"];
        compare("board", &in_turn(&screen, r"\d\d:\d\d", &times));
        drop(running);
    });
}

/// Some tasks land, one asks, two are at work, the others wait.
const AT_WORK: &str = r#"echo "$iteration" >> "work-$task"
case $task in
pay-retries) echo '<promise>BLOCKED: which payment provider first?</promise>' ;;
vat | search) test "$iteration" -lt 2 || wait_for go; echo 'The tables are there.' ;;
*) claim ;;
esac"#;

// `vat` comes after `user-model`: else it could hold the slot in which `user-model` is to land.
#[test]
#[ignore = "long"]
fn the_fleet_picture_shows_real_output() {
    let world = FleetWorld::new(AT_WORK)
        .tasks(&["addresses", "pay-retries"], "priority = 3\nverify = ['ls work-*']")
        .tasks(&["user-model"], "priority = 2\nafter = ['addresses']\nverify = ['ls work-*']")
        .tasks(&["search"], "priority = 1\nafter = ['addresses']")
        .tasks(&["vat"], "after = ['user-model']")
        .tasks(&["invoices"], "after = ['vat']")
        .tasks(&["emails"], "after = ['search', 'user-model']")
        .terms("slots = 2\n[land]\ncheck = ['true']")
        .shared()
        .ready();
    let running = world.start(&["--land"]);
    world.until("two are at work, and two have landed", |world| {
        let at_work = ["vat", "search"].iter().all(|task| world.begun(task) == [1, 2]);
        let page = world.crew(&["fleet", "status"]).stdout;
        at_work && page.contains("2 of 7 landed") && !page.contains("is not pushed yet")
    });
    let page = typed(&world.sandbox, "fleet status");
    let masks = [
        (r"\d+[ms] ago", "9m ago"),
        (r"begun 9m ago · about .* left", "begun 38m ago · about 20m left"),
        (r"(\d/10) +\d+[ms]  ", "$1  4m  "),
        (r", \d+ commits? elsewhere", ""),
        (r"(?m) {2,}(slot \d)$", "  $1"),
    ];
    let page = with_other_commits(&masked(&page, &masks));
    compare("fleet", &in_turn(&page, r"slot \d", &["slot 0", "slot 1"]));
    running.signal(Signal::INT);
    world.allow("go");
    running.wait(LONG);
}

//! Foreign text that crew reads: the time of a reset, a pasted command, the files that name a
//! project's tests. Each pattern of `crates/readers/src/parse/patterns.txt` matches here with the
//! release binary.

use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::client::Reply;
use crate::faults::Client;
use crate::run::{CLAIM, World};
use crate::sandbox::{Sandbox, poll_until};

/// The longest spread of the ends of many waits.
const SPREAD: TimeDelta = TimeDelta::seconds(30);
/// Far beyond the end of a loop that waits for a limit that is over `soon`.
pub(crate) const OVER_WITHIN: Duration = Duration::from_secs(5 * 60);

/// The last whole minute before now plus `ahead`, because the text names no seconds.
fn minute_in(ahead: TimeDelta) -> DateTime<Utc> {
    (Utc::now() + ahead).duration_trunc(TimeDelta::minutes(1)).unwrap()
}

/// A time in about two minutes, which is sooner than any wait of a loop that knows no reset.
pub(crate) fn soon() -> DateTime<Utc> {
    minute_in(TimeDelta::seconds(160))
}

/// A limit whose end is only in the message.
pub(crate) fn limit_in_words(reset: DateTime<Utc>) -> Reply {
    let words = reset.format("You've hit your session limit · resets %-I:%M%P").to_string();
    Reply::error(429, "rate_limit_error", &words).no_retry()
}

/// When the only loop tries again.
#[track_caller]
fn due(sandbox: &Sandbox) -> DateTime<Utc> {
    let mut loops = std::fs::read_dir(sandbox.crew_home().join("loops")).unwrap();
    let record = std::fs::read(loops.next().unwrap().unwrap().path().join("loop.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    record["state"]["due"].as_str().unwrap().parse().unwrap()
}

#[track_caller]
pub(crate) fn assert_waits_for(sandbox: &Sandbox, reset: DateTime<Utc>, words: &str) {
    let due = due(sandbox);
    assert!((reset..=reset + SPREAD).contains(&due), "until {due}, not {reset}: {words}");
}

#[test]
fn a_session_waits_until_the_reset_in_the_message() {
    let today = minute_in(TimeDelta::hours(5));
    let hour = today.duration_trunc(TimeDelta::hours(1)).unwrap();
    let table = [
        // RESET_SECONDS
        (today, format!("Claude AI usage limit reached|{}", today.timestamp())),
        // RESET_CLOCK
        (today, today.format("You've hit your session limit · resets %-I:%M%P").to_string()),
        (
            today,
            today.format("You've hit your weekly limit · resets %a %-I:%M%P (UTC)").to_string(),
        ),
        (hour, hour.format("Limit reached. RESETS AT %-I %p").to_string()),
        (today, today.format("the limit resets at %H:%M").to_string()),
        (today, today.format("limit reached, resets %-I:%M\u{202f}%p").to_string()),
        (today, today.format("limit hit, resets %b %-d, %-I:%M%P (UTC)").to_string()),
        // RESET_STAMP
        (today, today.format("limit hit, resets at %Y-%m-%dT%H:%M:%SZ").to_string()),
        // RESET_CLOCK with a year
        (today, today.format("limit hit: try again at %b %-dth, %Y %-I:%M %p.").to_string()),
    ];
    for (reset, words) in table {
        let client = Client::of(Sandbox::new().env("CLAUDE_CODE_SESSION_ATTENDED", "1"));
        client.begin("\"Build it\"");
        let _waiting = client.sandbox.start_hook(json!({"hook_event_name": "StopFailure",
            "error": "rate_limit", "prompt_id": "p-1", "last_assistant_message": words}));
        poll_until("the loop waits", || client.standing().0 == "waiting");
        assert_waits_for(&client.sandbox, reset, &words);
    }
}

#[test]
fn backslashes_that_the_client_added_to_a_pasted_command_are_removed() {
    let client = Client::new();
    // PASTED_ELEMENT
    let typed = "/crew:loop \"Close <\\/pasted_content> and <\\ PASTED_content>\" -n 2";
    let pasted = format!("<pasted_content id=\"5\">\n{typed}\n</pasted_content id=\"5\">");
    client.send(json!({"hook_event_name": "UserPromptSubmit", "prompt": pasted}));
    assert_eq!(client.loops()[0]["task"], "Close </pasted_content> and < PASTED_content>");
}

#[test]
fn the_test_command_of_a_project_is_found_in_its_files() {
    let table = [
        // JUST_TEST, MAKE_RULE, CARGO_WORKSPACE, PYTEST, RAKE_TEST
        ("justfile", "@test *args='': build\n  x\n", "just test"),
        ("Makefile", "all: build\nlint  test:\n\tx\n", "make test"),
        ("Cargo.toml", "[workspace]\nmembers = []\n", "cargo test --workspace"),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", "pytest"),
        ("Rakefile", "desc 'all'\ntask test: [:unit]\n", "rake test"),
    ];
    for (file, text, expected) in table {
        let client = Client::new();
        client.sandbox.write(file, text);
        client.sandbox.program(expected.split(' ').next().unwrap(), "true");
        client.begin("\"Build it\" --verify auto");
        assert_eq!(client.loops()[0]["checks"][0]["run"], expected, "{file}");
    }
}

#[test]
fn a_program_that_a_shell_does_not_find_is_named_and_not_a_failure_of_the_work() {
    // NOT_FOUND, and MISSING_PROGRAM
    let world = World::new(&["printf 'true' > made", CLAIM]);
    world.sandbox.write("made", "sh -c 'exit 1'\necho 'make: *** [test] Error 127'; exit 2");
    world.crew(&["run", "do it", "--verify", "sh made"]).success();
    assert_eq!(world.the_loop()["proof"], "passing");
    let world = World::new(&[CLAIM]);
    world.crew(&["run", "do it", "--verify", "true && no-such-program"]);
    let why = world.the_loop()["why"].to_string();
    assert!(why.contains("finds no program `no-such-program`"), "{why}");
}

#[test]
fn a_limit_in_the_error_of_a_plain_agent_is_waited_for_but_not_one_in_its_output() {
    // SERVICE_LIMIT, RESET_WAIT, TIME_PART; API_STATUS is matched in `run::retries`
    let limited = "echo 'Error: HTTP 429 Too Many Requests, retry after 2 seconds' >&2; exit 1";
    let world = World::new(&[limited, CLAIM]);
    let ran = world.crew(&["run", "Build the app"]);
    assert_eq!((ran.code(), world.calls()), (0, 2), "{ran:?}");
    assert_eq!(world.the_loop()["completed_iterations"], 1);
    let again =
        "(Error: HTTP 429 Too Many Requests, retry after 2 seconds), then iteration 1 again";
    assert!(ran.stdout.contains(again), "{ran:?}");

    for step in [
        "echo 'rate limit exceeded'; exit 1",
        "echo 'rate limit exceeded' >&2",
        "echo 'item 429' >&2; exit 1",
    ] {
        let world = World::new(&[step, CLAIM]);
        assert_eq!(world.crew(&["run", "Build the app"]).code(), 0, "{step}");
        assert_eq!(world.the_loop()["completed_iterations"], 2, "{step}");
    }
}

#[test]
fn a_template_includes_a_file_but_not_within_a_comment_or_raw_text() {
    // TEMPLATE_TAG
    let world = World::new(&[CLAIM]);
    world.sandbox.write("part.md", "the part {{ gone }}");
    let text = "{# {% include \"gone\" %} #}{% raw %}{% include \"raw\" %}{% endraw %} \
                {%- include \"part.md\" -%}\n";
    world.sandbox.write("act.j2", text);
    let shown = world.crew(&["run", "make it", "--dry-run", "--act", "act.j2"]).success();
    assert!(shown.contains("{% include \"raw\" %}the part {{ gone }}\n"), "{shown}");
}

#[test]
fn tests_inside_a_rust_file_are_distinguished_from_its_code() {
    // RUST_TEST_MODULE and RUST_TEST: the module is put back. RUST_TEST_CONDITION: it cannot be.
    for (edit, why) in [
        ("s/super::f/super::g/", "it passes only with the change of src/lib.rs"),
        (
            "s/u8 { 1 }/u8 { if cfg!(any(test, unix)) { super::g() } else { 1 } }/",
            "`cfg(test)` code",
        ),
    ] {
        let world =
            World::new(&[&format!("sed -i.bak '{edit}' src/lib.rs; rm src/lib.rs.bak\n{CLAIM}")]);
        let text = "pub fn f() -> u8 { 1 }\n\n# [cfg( test )]\nmod tests {\n    #[test]\n    fn is_one() {\n        \
                    assert_eq!(super::f(), 1);\n    }\n}\n";
        world.sandbox.write("src/lib.rs", text);
        world.sandbox.git(&["add", "-A"]);
        world.sandbox.git(&["commit", "-qm", "Code with its tests"]);
        let check = ["--verify", "grep -q super::g src/lib.rs"];
        world.crew(&[&["run", "do it", "-n", "1", "--stall", "0"], &check[..]].concat());
        let ended = world.the_loop();
        assert_eq!(ended["proof"], "passing", "{edit}: {ended:#}");
        assert!(ended["why"].as_str().unwrap().contains(why), "{edit}: {ended:#}");
    }
}

//! The usage of a session, read from transcripts that are late, long, old, rewritten or missing.

use std::fs::{OpenOptions, create_dir_all};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::Door;

/// A model with a price of a millionth of a dollar for a token of input, and five for one of
/// output.
const MODEL: &str = "claude-haiku-4-5-20251001";

fn now() -> String {
    let now: chrono::DateTime<chrono::Utc> = std::time::SystemTime::now().into();
    now.to_rfc3339()
}

/// A line of the client about one block of a message.
fn line(id: &str, input: u64, output: u64) -> Value {
    json!({
        "type": "assistant", "timestamp": now(),
        "message": {"id": id, "model": MODEL, "role": "assistant",
            "content": [{"type": "text", "text": id}],
            "usage": {"input_tokens": input, "output_tokens": output}},
    })
}

pub(super) fn append(file: &Path, lines: &[Value]) {
    create_dir_all(file.parent().unwrap()).unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
}

impl Door {
    pub(super) fn transcript(&self) -> PathBuf {
        self.sandbox.home().join(".claude/projects/repo/session.jsonl")
    }

    pub(super) fn agent(&self, name: &str) -> PathBuf {
        let session = self.transcript().with_extension("");
        session.join("subagents").join(format!("agent-{name}.jsonl"))
    }

    /// The loop's sums: input, output, and the cost in millionths of a dollar.
    #[track_caller]
    fn used(&self, id: &str) -> (u64, u64, u64) {
        let usage = &self.status(id)["usage"];
        let tokens = |kind: &str| usage["tokens"][kind].as_u64().unwrap();
        let micros = (usage["cost_usd"].as_f64().unwrap() * 1e6).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small sum")]
        (tokens("input"), tokens("output"), micros as u64)
    }
}

#[test]
fn a_message_is_counted_once_however_late_and_in_however_many_lines_it_is_reported() {
    let door = Door::new();
    let file = door.transcript();
    append(&file, &[line("before", 9_000, 9_000)]);
    let id = door.begin("\"Build it\" --stall 0");
    let late = json!({"timestamp": "2020-01-01T00:00:00.000Z"});
    let mut old = line("old, and flushed late", 7_000, 7_000);
    old["timestamp"] = late["timestamp"].clone();
    append(&file, &[old, json!({"type": "user"}), line("a", 100, 1), line("a", 100, 20)]);
    door.stop("one").assert_goes_on();
    assert_eq!(door.used(&id), (100, 20, 200));
    append(&file, &[line("a", 100, 30), line("b", 10, 1)]);
    let answer = door.stop("two").assert_goes_on();
    assert_eq!(door.used(&id), (110, 31, 265));
    assert!(answer.line().contains(" · $0.0003"), "{}", answer.line());
    // The client is in the middle of a line.
    let mut text = line("c", 5, 0).to_string();
    let rest = text.split_off(text.len() / 2);
    let write = |text: &str| {
        let mut file = OpenOptions::new().append(true).open(&file).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    write(&text);
    door.stop("three").assert_goes_on();
    assert_eq!(door.used(&id), (110, 31, 265));
    write(&format!("{rest}\n"));
    door.stop("four").assert_goes_on();
    assert_eq!(door.used(&id), (115, 31, 270));
    let evidence = &door.record(&id)["state"]["evidence"]["usage"];
    assert_eq!(evidence["tokens"]["input"], 5, "{evidence}");
}

#[test]
fn each_message_of_the_sessions_subagents_is_counted_once() {
    let door = Door::new();
    append(&door.transcript(), &[json!({"type": "user"})]);
    let mut old = line("old", 5_000, 0);
    old["timestamp"] = "2020-01-01T00:00:00.000Z".into();
    append(&door.agent("old"), &[old]);
    let id = door.begin("\"Build it\" --stall 0");
    append(&door.agent("one"), &[line("x", 10, 0)]);
    append(&door.agent("two"), &[line("y", 100, 0)]);
    door.stop("one").assert_goes_on();
    assert_eq!(door.used(&id).0, 110);
    append(&door.agent("two"), &[line("y", 100, 0), line("z", 1_000, 0)]);
    append(&door.agent("three"), &[line("w", 10_000, 0)]);
    door.stop("two").assert_goes_on();
    door.stop("three").assert_goes_on();
    assert_eq!(door.used(&id).0, 11_110);
}

#[test]
fn usage_too_long_for_one_boundary_is_read_at_the_next_and_shown_as_a_minimum_until_then() {
    let door = Door::new();
    append(&door.transcript(), &[json!({"type": "user"})]);
    let id = door.begin("\"Build it\" --stall 0");
    let padding = json!({"type": "user", "message": {"content": "x".repeat(900_000)}});
    for number in 0..6 {
        append(&door.transcript(), &[line(&format!("m{number}"), 1_000_000, 0), padding.clone()]);
    }
    let answer = door.stop("one").assert_goes_on();
    assert!(answer.line().contains(" · at least $5.00"), "{}", answer.line());
    assert_eq!(door.record(&id)["state"]["usage"]["behind"], true);
    let answer = door.stop("two").assert_goes_on();
    assert!(answer.line().contains(" · $6.00"), "{}", answer.line());
    // A line of more than a megabyte is not read, and the sum says so from then on.
    let endless = json!({"message": "x".repeat(2 << 20), "assistant": 1});
    append(&door.transcript(), &[endless, line("after", 1_000_000, 0)]);
    let answer = door.stop("three").assert_goes_on();
    assert!(answer.line().contains(" · at least $7.00"), "{}", answer.line());
}

#[test]
fn a_rewritten_transcript_is_not_counted_again() {
    let door = Door::new();
    append(&door.transcript(), &[json!({"type": "user", "pad": "x".repeat(2000)})]);
    let id = door.begin("\"Build it\" --stall 0");
    append(&door.transcript(), &[line("a", 100, 0)]);
    door.stop("one").assert_goes_on();
    let kept = line("a", 100, 0);
    let mut dated = kept.clone();
    dated["timestamp"] = "2020-01-01T00:00:00.000Z".into();
    std::fs::remove_file(door.transcript()).unwrap();
    append(&door.transcript(), &[dated, kept, line("b", 10, 0)]);
    door.stop("two").assert_goes_on();
    assert_eq!(door.used(&id).0, 110);
}

#[test]
fn a_transcript_that_is_rewritten_at_every_turn_is_counted() {
    let door = Door::new();
    append(&door.transcript(), &[json!({"type": "user"})]);
    let id = door.begin("\"Build it\" --stall 0");
    for (turn, tokens) in [("one", 100), ("two", 1_000), ("and three", 10)] {
        std::fs::remove_file(door.transcript()).unwrap();
        append(&door.transcript(), &[line(turn, tokens, 0), json!({"type": "user"})]);
        door.stop(turn).assert_goes_on();
        assert_eq!(door.record(&id)["state"]["evidence"]["context_tokens"], tokens);
    }
    assert_eq!(door.used(&id).0, 1_110);
    let shown = door.sandbox.crew(&["show", &id, "--iteration", "2"]).success();
    assert!(shown.contains("context 1k tokens"), "{shown}");
}

#[test]
fn a_limit_on_money_ends_the_loop_and_more_money_continues_it() {
    let door = Door::new();
    append(&door.transcript(), &[json!({"type": "user"})]);
    let id = door.begin("\"Build it\" --stall 0 --max-cost 2 --max-tokens 10M");
    append(&door.transcript(), &[line("one", 1_900_000, 0)]);
    let answer = door.stop("one").assert_goes_on();
    assert!(answer.line().contains(" · $1.90 of $2.00, 1.9M of 10M tokens"), "{}", answer.line());
    append(&door.transcript(), &[line("two", 200_000, 0)]);
    let page = door.stop("two").assert_lets_go();
    assert!(page.line().contains("the cost limit of $2.00 is reached: $2.10"), "{page:#?}");
    assert!(page.line().contains(&format!("/crew:resume {id} --max-cost +2")), "{page:#?}");
    assert_eq!(door.status(&id)["outcome"], "exhausted");
    let handoff = std::fs::read_to_string(&door.handoffs()[0]).unwrap();
    assert!(handoff.contains(", $2.10 of $2.00, 2.1M of 10M tokens"), "{handoff}");
    let resume = |words: &str| {
        door.command(&format!("{id} {words}")).with("command_name", "crew:resume").send()
    };
    let refused = resume("-n +5");
    assert!(
        refused.refusal().contains(&format!("/crew:resume {id} --max-cost +2")),
        "{refused:#?}"
    );
    append(&door.transcript(), &[line("in between", 5_000_000, 0)]);
    resume("--max-cost +5").assert_goes_on();
    append(&door.transcript(), &[line("three", 100_000, 0)]);
    door.stop("three").assert_goes_on();
    assert_eq!(door.used(&id).0, 2_200_000);
    let lowered = door.sandbox.crew(&["set", &id, "--max-cost", "1"]).success();
    assert!(lowered.contains("$1.00, 10M tokens"), "{lowered}");
    door.stop("four").assert_lets_go();
    assert_eq!(door.status(&id)["outcome"], "exhausted");
}

#[test]
fn a_limit_on_money_is_not_exceeded_unnoticed_without_a_transcript() {
    let door = Door::new();
    let id = door.begin("\"Build it\" --stall 0 --max-cost 5");
    let page = door.stop("one").assert_lets_go();
    assert!(page.line().contains("cannot be kept"), "{}", page.line());
    assert_eq!(door.status(&id)["outcome"], "blocked");
}

#[test]
fn a_limit_on_money_waits_for_a_transcript_that_the_client_is_about_to_create() {
    let door = Door::new();
    let id = door.begin("\"Build it\" --stall 0 --max-cost 5");
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| door.stop("one"));
        std::thread::sleep(Duration::from_millis(300));
        append(&door.transcript(), &[line("one", 100, 0)]);
        stop.join().unwrap().assert_goes_on();
    });
    assert_eq!(door.used(&id).0, 100);
}

#[test]
fn a_cancel_from_outside_counts_the_usage_of_its_iteration() {
    let door = Door::new();
    append(&door.transcript(), &[json!({"type": "user"})]);
    let id = door.begin("\"Build it\" --stall 0");
    append(&door.transcript(), &[line("one", 100, 0)]);
    door.stop("one").assert_goes_on();
    append(&door.transcript(), &[line("two", 10, 0)]);
    door.sandbox.crew(&["cancel", &id]).success();
    assert_eq!(door.used(&id).0, 110);
}

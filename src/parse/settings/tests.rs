use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::engine::settings::merge::Layers;
use crate::engine::settings::{Key, Sourced, Value};

pub(super) fn parsed(text: &str, path: &str, whose: Whose) -> Result<Read, String> {
    parse(text, Path::new(path), whose, &["text", "claude", "codex"], &|_| true)
}

fn read(text: &str) -> Result<Read, String> {
    parsed(text, "crew.toml", Whose::Users)
}

/// The result of each text, in the given order: `text` ⇒ error or warnings.
pub(super) fn told(texts: &[&str]) -> String {
    told_of(texts, "crew.toml", Whose::Users)
}

pub(super) fn told_of(texts: &[&str], path: &str, whose: Whose) -> String {
    let told = texts.iter().map(|text| {
        let (kind, lines) = match parsed(text, path, whose) {
            Ok(read) => ("warning", read.warnings.join("\n")),
            Err(faults) => ("error", faults),
        };
        format!("{}\n  {kind}: {}\n", text.trim(), lines.replace('\n', "\n  "))
    });
    told.collect()
}

/// No layer except the built-in agent.
pub(super) fn bare() -> Layers {
    let mut layers = Layers::default();
    layers.built_in.values.insert(Key::Agent, Sourced::built_in(Value::Text("claude".to_owned())));
    layers
}

#[test]
fn a_whole_file_becomes_a_layer_and_every_value_knows_its_line() {
    let text = r#"# ours
[loop]
max_iterations = 1_5
max_duration = "1h 30m"
completion_promise = "ALL DONE"
failure_threshold = 0
stall = 4
max_cost = 2.5
max_tokens = "500k"
verify = ["cargo test",
  'sh -c "a b"']
gate = []

[wait]
max = 0

[[check]]
run = """
cargo clippy
"""
role = "gate"
timeout = "20m"
success_exit_code = 2

[[check]]
run = "b"
"#;
    let read = read(text).unwrap();
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    let values = read.layer.values.values();
    let limits: Vec<String> = values
        .filter(|sourced| matches!(sourced.value, Value::Number(_)))
        .map(|sourced| format!("{:?} {}", sourced.value, sourced.origin))
        .collect();
    assert_eq!(
        limits,
        [
            "Number(15) crew.toml:3",
            "Number(0) crew.toml:6",
            "Number(4) crew.toml:7",
            "Number(5400) crew.toml:4",
            "Number(2500000) crew.toml:8",
            "Number(500000) crew.toml:9",
            "Number(0) crew.toml:15"
        ]
    );
    let checks: Vec<String> = read
        .layer
        .checks
        .iter()
        .map(|sourced| {
            let check = &sourced.value;
            let terms = (check.timeout_s, check.success_exit_code);
            format!("{} {} {:?} {terms:?}", sourced.origin, check.role.label(), check.run)
        })
        .collect();
    assert_snapshot!(checks.join("\n"), @r#"
    crew.toml:10 verify "cargo test" (600, 0)
    crew.toml:11 verify "sh -c \"a b\"" (600, 0)
    crew.toml:17 gate "cargo clippy\n" (1200, 2)
    crew.toml:25 verify "b" (600, 0)
    "#);
    let promise = &read.layer.values[&Key::Promise];
    assert_eq!(
        (promise.value.word(), promise.origin.to_string()),
        (Some("ALL DONE"), "crew.toml:5".to_owned())
    );
}

#[test]
fn a_file_that_is_no_toml_or_has_the_wrong_shape_names_line_and_fix() {
    assert_snapshot!(told(&[
        "[loop\nstall = 3",
        "[loop]\nmax_iterations 15",
        "[loop]\nverify = [\"cargo test]",
        "[loop]\nstall = 3\nstall = 4",
        "[loop]\nstall = 3\n\n[loop]\nstall = 4",
        "loop = 5",
        "wait = []",
        "check = \"cargo test\"",
        "check = [\"cargo test\"]",
        "[check]\nrun = \"cargo test\"",
    ]), @r#"
    [loop
    stall = 3
      error: crew.toml:1: this is not TOML: unclosed table, expected `]`
    [loop]
    max_iterations 15
      error: crew.toml:2: this is not TOML: key with no value, expected `=`
    [loop]
    verify = ["cargo test]
      error: crew.toml:2: this is not TOML: unclosed array, expected `]`
    [loop]
    stall = 3
    stall = 4
      error: crew.toml:3: stall is given twice: keep one of them
    [loop]
    stall = 3

    [loop]
    stall = 4
      error: crew.toml:4: loop is given twice: keep one of them
    loop = 5
      error: crew.toml:1: loop is a table: write its keys under a line [loop]
    wait = []
      error: crew.toml:1: wait is a table: write its keys under a line [wait]
    check = "cargo test"
      error: crew.toml:1: check is a list of tables: write [[check]], in double brackets
    check = ["cargo test"]
      error: crew.toml:1: check is a list of tables: write [[check]], in double brackets
    [check]
    run = "cargo test"
      error: crew.toml:1: check is a list of tables: write [[check]], in double brackets
    "#);
}

#[test]
fn a_bad_value_names_line_key_and_fix() {
    assert_snapshot!(told(&[
        "[loop]\nmax_iterations = \"15\"",
        "[loop]\nmax_iterations = -1",
        "[loop]\nmax_iterations = 5_000_000_000",
        "[loop]\nstall = 2.5",
        "[loop]\nmax_duration = 90",
        "[loop]\nmax_duration = \"90\"",
        "[loop]\nmax_duration = \"soon\"",
        "[loop]\nmax_duration = \"200 years\"",
        "[loop]\nmax_cost = -5",
        "[loop]\nmax_cost = 1e3",
        "[loop]\nmax_cost = \"five\"",
        "[loop]\nmax_tokens = 1.5",
        "[loop]\nmax_tokens = \"1.5M\"",
        "[loop]\ncompletion_promise = \"FAILURE\"",
        "[loop]\ncompletion_promise = \"\"",
        "[wait]\nmax = true",
    ]), @r#"
    [loop]
    max_iterations = "15"
      error: crew.toml:2: max_iterations takes a whole number without quotes, not "15": max_iterations = 15
    [loop]
    max_iterations = -1
      error: crew.toml:2: max_iterations takes a whole number from 0 (no limit) to 4294967295, not -1: max_iterations = 15
    [loop]
    max_iterations = 5_000_000_000
      error: crew.toml:2: max_iterations takes a whole number from 0 (no limit) to 4294967295, not 5_000_000_000: max_iterations = 15
    [loop]
    stall = 2.5
      error: crew.toml:2: stall takes a whole number without quotes, not 2.5: stall = 3
    [loop]
    max_duration = 90
      error: crew.toml:2: max_duration takes a time with its unit, in quotes, not 90: max_duration = "12h"
    [loop]
    max_duration = "90"
      error: crew.toml:2: max_duration takes a time with its unit, such as 90m, 12h or "1h 30m", not "90": max_duration = "12h"
    [loop]
    max_duration = "soon"
      error: crew.toml:2: max_duration takes a time with its unit, such as 90m, 12h or "1h 30m", not "soon": max_duration = "12h"
    [loop]
    max_duration = "200 years"
      error: crew.toml:2: max_duration takes a time of at most ten years, not "200 years": max_duration = "12h"
    [loop]
    max_cost = -5
      error: crew.toml:2: max_cost takes an amount in US dollars, not -5: max_cost = 5.00
    [loop]
    max_cost = 1e3
      error: crew.toml:2: max_cost takes an amount in US dollars, not 1e3: max_cost = 5.00
    [loop]
    max_cost = "five"
      error: crew.toml:2: max_cost takes an amount in US dollars, not "five": max_cost = 5.00
    [loop]
    max_tokens = 1.5
      error: crew.toml:2: max_tokens takes a number of tokens, such as 500k or 2M, not 1.5: max_tokens = "500k"
    [loop]
    max_tokens = "1.5M"
      error: crew.toml:2: max_tokens takes a number of tokens, such as 500k or 2M, not "1.5M": max_tokens = "500k"
    [loop]
    completion_promise = "FAILURE"
      error: crew.toml:2: completion_promise: the promise cannot be FAILURE: that word is how the agent says it is not done; choose another, such as COMPLETE
    [loop]
    completion_promise = ""
      error: crew.toml:2: completion_promise takes a text in quotes, not "": completion_promise = "ALL DONE"
    [wait]
    max = true
      error: crew.toml:2: max takes a time with its unit, in quotes, not true: max = "12h"
    "#);
}

#[test]
fn money_and_tokens_are_written_with_or_without_quotes_and_read_back_to_the_last_digit() {
    let value = |text: &str, key| read(text).unwrap().layer.number(key).unwrap();
    for (text, expected) in [
        ("5", 5_000_000),
        ("2.50", 2_500_000),
        ("\"$2.50\"", 2_500_000),
        ("0.012345", 12_345),
        ("1_000", 1_000_000_000),
        ("0", 0),
    ] {
        let found = value(&format!("[loop]\nmax_cost = {text}"), Key::MaxCost);
        assert_eq!(found, expected, "{text}");
        let amount = Value::Number(found).written(Key::MaxCost.row().kind);
        let written = format!("[loop]\nmax_cost = {amount}");
        assert_eq!(value(&written, Key::MaxCost), found, "{written}");
    }
    for (text, expected) in
        [("2_000_000", 2_000_000), ("\"500k\"", 500_000), ("\"2M\"", 2_000_000), ("1_234", 1_234)]
    {
        let found = value(&format!("[loop]\nmax_tokens = {text}"), Key::MaxTokens);
        assert_eq!(found, expected, "{text}");
        let number = Value::Number(found).written(Key::MaxTokens.row().kind);
        let written = format!("[loop]\nmax_tokens = {number}");
        assert_eq!(value(&written, Key::MaxTokens), found, "{written}");
    }
}

#[test]
fn a_bad_check_names_line_key_and_fix() {
    assert_snapshot!(told(&[
        "[loop]\nverify = \"cargo test\"",
        "[loop]\ngate = [\"cargo test\", 5]",
        "[loop]\nuntil = [\"auto\"]",
        "[[check]]\nrole = \"gate\"",
        "[[check]]\nrun = \" \"",
        "[[check]]\nrun = \"a\"\nrole = \"verfy\"",
        "[[check]]\nrun = \"a\"\ntimeout = \"0\"",
        "[[check]]\nrun = \"a\"\nsuccess_exit_code = 256",
        "[[check]]\nrun = \"a\\u0000b\"",
    ]), @r#"
    [loop]
    verify = "cargo test"
      error: crew.toml:2: verify takes a list of commands, not "cargo test": verify = ["cargo test"]
    [loop]
    gate = ["cargo test", 5]
      error: crew.toml:2: gate takes a command in quotes, not 5: gate = ["cargo test"]
    [loop]
    until = ["auto"]
      error: crew.toml:2: until cannot be `auto` in a file: write the command, or let `crew init` do it
    [[check]]
    role = "gate"
      error: crew.toml:1: this [[check]] has no command: run = "cargo test"
    [[check]]
    run = " "
      error: crew.toml:2: run takes a command in quotes, not " ": run = "cargo test"
    [[check]]
    run = "a"
    role = "verfy"
      error: crew.toml:3: role takes verify, gate or until, not "verfy": role = "verify"
    [[check]]
    run = "a"
    timeout = "0"
      error: crew.toml:3: timeout takes a time of at least a second, not "0": timeout = "10m"
    [[check]]
    run = "a"
    success_exit_code = 256
      error: crew.toml:3: success_exit_code takes an exit status from 0 to 255, not 256: success_exit_code = 0
    [[check]]
    run = "a\u0000b"
      error: crew.toml:2: run takes a command without a NUL character, not "a\u0000b": run = "cargo test"
    "#);
}

#[test]
fn every_fault_of_a_file_is_told_at_once() {
    assert_snapshot!(told(&["[loop]\nstall = true\nmax_iterations = \"x\"\nmax_iteration = 3"]), @r#"
    [loop]
    stall = true
    max_iterations = "x"
    max_iteration = 3
      error: crew.toml:2: stall takes a whole number without quotes, not true: stall = 3
      crew.toml:3: max_iterations takes a whole number without quotes, not "x": max_iterations = 15
    "#);
}

#[test]
fn an_unknown_key_is_a_warning_with_a_guess_and_the_rest_of_the_file_counts() {
    let texts = [
        "[loop]\nmax_iteration = 5",
        "[loop]\nmax-iterations = 5",
        "[loop]\ncolour = \"red\"",
        "max_iterations = 5",
        "[wait]\nmax_wait = \"1h\"",
        "[[check]]\nrun = \"a\"\ncommand = \"b\"",
        "[[checks]]\nrun = \"a\"",
        "[agents.mine]\nargv = [\"a\"]",
        "[loop]\nrole = \"gate\"",
        "[[check]]\nrun = \"a\"\nmodel = \"opus\"",
    ];
    assert_snapshot!(told(&texts), @r#"
    [loop]
    max_iteration = 5
      warning: crew.toml:2: unknown key `max_iteration` in [loop]: did you mean `max_iterations`?
    [loop]
    max-iterations = 5
      warning: crew.toml:2: unknown key `max-iterations` in [loop]: did you mean `max_iterations`?
    [loop]
    colour = "red"
      warning: crew.toml:2: unknown key `colour` in [loop], ignored
    max_iterations = 5
      warning: crew.toml:1: unknown key `max_iterations`: it belongs under [loop]
    [wait]
    max_wait = "1h"
      warning: crew.toml:2: unknown key `max_wait` in [wait]: did you mean `max`?
    [[check]]
    run = "a"
    command = "b"
      warning: crew.toml:3: unknown key `command` in [[check]], ignored
    [[checks]]
    run = "a"
      warning: crew.toml:1: unknown key `checks`: did you mean `check`?
    [agents.mine]
    argv = ["a"]
      warning: crew.toml:2: unknown key `argv` in [agents.mine]: did you mean `args`?
    [loop]
    role = "gate"
      warning: crew.toml:2: unknown key `role` in [loop]: it belongs under [[check]]
    [[check]]
    run = "a"
    model = "opus"
      warning: crew.toml:3: unknown key `model` in [[check]]: it belongs under [loop]
    "#);
    let read = read("[loop]\nmax_iteration = 5\nstall = 2").unwrap();
    assert_eq!(read.layer.number(Key::Stall), Some(2));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text: String, key in "[a-z_]{1,12}", value in ".{0,20}") {
        let _ = read(&text);
        let _ = read(&format!("[loop]\n{key} = {value}\n[[check]]\n{key} = {value}"));
    }
}

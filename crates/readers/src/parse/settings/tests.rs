use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::merge::{Layers, merge_layers};
use super::*;

pub(super) fn parsed(
    text: &str,
    path: &str,
    whose: SettingsOwner,
) -> Result<ParsedSettings, String> {
    parse_settings(text, Path::new(path), whose, &["text", "claude", "codex"], &|_| true)
}

pub(super) fn read(text: &str) -> Result<ParsedSettings, String> {
    parsed(text, "crew.toml", SettingsOwner::Users)
}

/// The result of each text in turn: `text` ⇒ error or warnings.
pub(super) fn render_results(texts: &[&str]) -> String {
    render_results_of(texts, "crew.toml", SettingsOwner::Users)
}

pub(super) fn render_results_of(texts: &[&str], path: &str, whose: SettingsOwner) -> String {
    let results = texts.iter().map(|text| {
        let (kind, lines) = match parsed(text, path, whose) {
            Ok(read) => ("warning", read.warnings.join("\n")),
            Err(faults) => ("error", faults),
        };
        format!("{}\n  {kind}: {}\n", text.trim(), lines.replace('\n', "\n  "))
    });
    results.collect()
}

#[test]
fn a_whole_file_becomes_a_layer_in_which_every_value_has_its_line() {
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
    let values = read.layer.values_as_listed().filter(|(key, _)| key.unit().is_some());
    let limits: Vec<String> =
        values.map(|(key, it)| format!("{} {} {}", key.name(), it.value, it.origin)).collect();
    assert_snapshot!(limits.join("\n"), @r#"
    max-iterations 15 crew.toml:3
    failure-threshold 0 crew.toml:6
    stall 4 crew.toml:7
    max-duration "1h 30m" crew.toml:4
    max-cost 2.5 crew.toml:8
    max-tokens "500k" crew.toml:9
    wait.max 0 crew.toml:15
    "#);
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
    crew.toml:10 verify "sh -c \"a b\"" (600, 0)
    crew.toml:17 gate "cargo clippy\n" (1200, 2)
    crew.toml:25 verify "b" (600, 0)
    "#);
    let promise = &read.layer.values["completion-promise"];
    assert_eq!(promise.value.as_str(), Some("ALL DONE"));
    assert_eq!(promise.origin.to_string(), "crew.toml:5");
}

#[test]
fn invalid_toml_or_a_wrong_shape_is_reported_with_line_and_fix() {
    assert_snapshot!(render_results(&[
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
    assert_snapshot!(render_results(&[
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
      warning: 
    [loop]
    max_iterations = -1
      error: crew.toml:2: max_iterations = -1: expected a whole number, such as 15
    [loop]
    max_iterations = 5_000_000_000
      error: crew.toml:2: max_iterations = 5_000_000_000: expected a whole number up to 4294967295
    [loop]
    stall = 2.5
      error: crew.toml:2: stall = 2.5: expected a whole number, such as 15
    [loop]
    max_duration = 90
      error: crew.toml:2: max_duration = 90: expected a time with its unit, such as 90m, 12h or "1h 30m"
    [loop]
    max_duration = "90"
      error: crew.toml:2: max_duration = "90": expected a time with its unit, such as 90m, 12h or "1h 30m"
    [loop]
    max_duration = "soon"
      error: crew.toml:2: max_duration = "soon": expected a time with its unit, such as 90m, 12h or "1h 30m"
    [loop]
    max_duration = "200 years"
      error: crew.toml:2: max_duration = "200 years": expected a time of at most ten years
    [loop]
    max_cost = -5
      error: crew.toml:2: max_cost = -5: expected US dollars, such as 5.00
    [loop]
    max_cost = 1e3
      warning: 
    [loop]
    max_cost = "five"
      error: crew.toml:2: max_cost = "five": expected US dollars, such as 5.00
    [loop]
    max_tokens = 1.5
      error: crew.toml:2: max_tokens = 1.5: expected a whole number, perhaps with k or M, such as 500k
    [loop]
    max_tokens = "1.5M"
      error: crew.toml:2: max_tokens = "1.5M": expected a whole number, perhaps with k or M, such as 500k
    [loop]
    completion_promise = "FAILURE"
      error: crew.toml:2: completion_promise = "FAILURE": the promise cannot be FAILURE: that word is how the agent says it is not done; choose another, such as COMPLETE
    [loop]
    completion_promise = ""
      error: crew.toml:2: completion_promise = "": expected a string that is not blank and not an option
    [wait]
    max = true
      error: crew.toml:2: max = true: expected a time with its unit, such as 90m, 12h or "1h 30m"
    "#);
}

#[test]
fn money_and_tokens_are_written_with_or_without_quotes_and_read_back_to_the_last_digit() {
    let value = |text: &str, name: &str| {
        let layer = read(text).unwrap().layer;
        let key = Key::find_in_table("loop", name).unwrap();
        let number = key.unit().unwrap().parse_value(layer.value(name).unwrap()).unwrap();
        (number, key.unit().unwrap().format_number(number))
    };
    for (name, text, expected) in [
        ("max-cost", "5", 5_000_000),
        ("max-cost", "2.50", 2_500_000),
        ("max-cost", "\"$2.50\"", 2_500_000),
        ("max-cost", "0.012345", 12_345),
        ("max-cost", "1_000", 1_000_000_000),
        ("max-cost", "0", 0),
        ("max-tokens", "2_000_000", 2_000_000),
        ("max-tokens", "\"500k\"", 500_000),
        ("max-tokens", "\"2M\"", 2_000_000),
        ("max-tokens", "1_234", 1_234),
    ] {
        let (found, written) = value(&format!("[loop]\n{name} = {text}"), name);
        assert_eq!(found, expected, "{text}");
        assert_eq!(value(&format!("[loop]\n{name} = {written:?}"), name).0, found, "{written}");
    }
}

#[test]
fn a_bad_check_names_line_key_and_fix() {
    assert_snapshot!(render_results(&[
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
      warning: 
    [loop]
    gate = ["cargo test", 5]
      error: crew.toml:2: gate = ["cargo test", 5]: expected a string or a list of strings, not 5
    [loop]
    until = ["auto"]
      error: crew.toml:2: until = ["auto"]: write the command, or let `crew init` do it
    [[check]]
    role = "gate"
      error: crew.toml:1: [[check]]: missing field `run`
    [[check]]
    run = " "
      error: crew.toml:1: [[check]]: expected a command
    [[check]]
    run = "a"
    role = "verfy"
      error: crew.toml:3: role = "verfy": expected one of `verify`, `gate`, `until`
    [[check]]
    run = "a"
    timeout = "0"
      error: crew.toml:1: a timeout is at least a second, and an exit code is from 0 to 255
    [[check]]
    run = "a"
    success_exit_code = 256
      error: crew.toml:1: a timeout is at least a second, and an exit code is from 0 to 255
    [[check]]
    run = "a\u0000b"
      error: crew.toml:1: [[check]]: expected a command
    "#);
}

#[test]
fn every_fault_of_a_file_is_reported_at_once() {
    assert_snapshot!(render_results(&["[loop]\nstall = true\nmax_iterations = \"x\"\nmax_iteration = 3"]), @r#"
    [loop]
    stall = true
    max_iterations = "x"
    max_iteration = 3
      error: crew.toml:2: stall = true: expected a whole number, such as 15
      crew.toml:3: max_iterations = "x": expected a whole number, such as 15
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
    assert_snapshot!(render_results(&texts), @r#"
    [loop]
    max_iteration = 5
      warning: crew.toml:2: unknown key `max_iteration` in [loop]: did you mean `max-iterations`?
    [loop]
    max-iterations = 5
      warning: 
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
    assert_eq!(read.layer.value("stall"), Some(&toml::Value::Integer(2)));
}

proptest! {
    #[test]
    fn no_input_makes_the_reader_panic(text: String, key in "[a-z_]{1,12}", value in ".{0,20}") {
        let _ = read(&text);
        let _ = read(&format!("[loop]\n{key} = {value}\n[[check]]\n{key} = {value}"));
    }
}

#[test]
fn each_option_that_settings_may_hold_has_its_key() {
    let mut command = clap::Command::new("all");
    command = <options::LimitOptions as clap::Args>::augment_args(command);
    command = <options::TermOptions as clap::Args>::augment_args(command);
    command = <options::ProcessOptions as clap::Args>::augment_args(command);
    let known = names_in("loop");
    for option in command.get_arguments().filter_map(clap::Arg::get_long) {
        assert!(known.contains(&option) || option == "no-promise", "{option} has no key");
    }
}

#[test]
fn the_built_in_values_are_valid_and_apply_to_a_loop_without_settings() {
    let settings = merge_layers(&Layers::default(), None).unwrap();
    assert_eq!(settings.limits(), engine::fixture::USUAL_LIMITS);
    assert_eq!(merge::amount_or_zero(*settings.options().process.timeout()), 3600);
}

#[test]
fn typed_options_are_the_highest_tier_and_a_relative_limit_is_refused_at_a_start() {
    let typed = |words: &[&str]| {
        let command = <options::LimitOptions as clap::Args>::augment_args(clap::Command::new("x"));
        let matches = command.no_binary_name(true).try_get_matches_from(words).unwrap();
        let limits = clap::FromArgMatches::from_arg_matches(&matches).unwrap();
        Layer::from_options(&LoopOptions { limits, ..LoopOptions::default() })
    };
    let layer = typed(&["-n", "4", "--max-duration", "90m", "--max-cost=2.5"]).unwrap();
    let shown: Vec<String> =
        layer.values_as_listed().map(|(key, it)| format!("{} {}", key.name(), it.value)).collect();
    assert_eq!(shown, ["max-iterations 4", "max-duration \"1h 30m\"", "max-cost \"2.50\""]);
    let refused = typed(&["-n", "+4"]).unwrap_err();
    assert_eq!(refused.text, "`+` adds to the limit of a loop that exists");
    assert!(refused.hint.is_some());
}

fn layer(key: &'static str, value: &str) -> Layer {
    let mut layer = Layer::default();
    layer.values.insert(key, Sourced::from_options(toml::Value::String(value.to_owned())));
    layer
}

fn checks(checks: &[(&str, Role)]) -> Layer {
    let checks = checks.iter().map(|(run, role)| Check::new(*run, *role));
    let checks = checks.map(Sourced::from_options).collect();
    Layer { checks, ..Layer::default() }
}

#[test]
fn a_higher_tier_wins_and_the_environment_variable_sets_a_ceiling() {
    // User, project, environment, typed; the value in force, and whether a note is expected.
    let table: [([Option<u64>; 4], u64, bool); 10] = [
        ([None, None, None, None], 0, false),
        ([Some(20), None, None, None], 20, false),
        ([Some(20), Some(15), None, None], 15, false),
        ([Some(20), Some(30), None, None], 30, false),
        ([None, None, Some(5), None], 5, false),
        ([Some(4), None, Some(5), None], 4, false),
        ([Some(20), Some(0), Some(5), None], 5, false),
        ([None, None, Some(5), Some(4)], 4, false),
        ([None, None, Some(5), Some(0)], 5, true),
        ([None, None, Some(0), Some(6)], 6, false),
    ];
    for (given, expected, noted) in table {
        let [user, project, environment, typed] = given.map(|value| {
            value.map(|cost| layer("max-cost", &cost.to_string())).unwrap_or_default()
        });
        let settings = merge_layers(&Layers { user, project, environment, typed }, None).unwrap();
        let found = settings.limits().max_cost_micros / 1_000_000;
        assert_eq!((found, settings.notes().len()), (expected, usize::from(noted)), "{given:?}");
    }
}

#[test]
fn checks_of_files_replace_each_other_role_by_role_and_typed_ones_are_added() {
    let user = checks(&[("mine", Role::Verify), ("mine too", Role::Gate)]);
    let project = checks(&[("lint", Role::Gate), ("a", Role::Verify), ("b", Role::Verify)]);
    let typed = checks(&[("typed", Role::Verify)]);
    let layers = Layers { user, project, ..Layers::default() };
    let runs = |layers: &Layers| -> Vec<String> {
        merge_layers(layers, None).unwrap().checks().into_iter().map(|check| check.run).collect()
    };
    assert_eq!(runs(&layers), ["a", "b", "lint"]);
    assert_eq!(runs(&Layers { typed, ..layers.clone() }), ["typed", "a", "b", "lint"]);
    let typed = checks(&[("b", Role::Verify), ("lint", Role::Until)]);
    assert_eq!(runs(&Layers { typed, ..layers }), ["b", "a", "lint", "lint"]);
    assert_eq!(runs(&Layers::default()), Vec::<String>::new());
}

#[test]
fn a_procedures_own_limit_wins_over_one_for_all_loops_and_a_typed_one_over_both() {
    let procedure =
        ProcedureSettings { terms: layer("max-iterations", "7"), ..ProcedureSettings::default() };
    let procedures = [("p".to_owned(), Sourced::from_options(procedure))].into();
    let mut layers = Layers {
        user: Layer { procedures, ..layer("max-iterations", "20") },
        project: layer("max-iterations", "30"),
        ..Layers::default()
    };
    let max = |layers: &Layers, name| merge_layers(layers, name).unwrap().limits().max_iterations;
    assert_eq!((max(&layers, None), max(&layers, Some("p"))), (30, 7));
    layers.typed = layer("max-iterations", "9");
    assert_eq!(max(&layers, Some("p")), 9);
}

#[test]
fn a_typed_cost_above_the_ceiling_is_reported() {
    let environment = layer("max-cost", "5.00");
    let typed = layer("max-cost", "7.50");
    let layers = Layers { environment, typed, ..Layers::default() };
    insta::assert_snapshot!(merge_layers(&layers, None).unwrap().notes().join("\n"), @"--max-cost 7.50 is ignored: CREW_MAX_COST=5.00 is the highest cost of a loop here");
}

/// The entry as the file would write it, or the error.
fn agent(lines: &str) -> String {
    let file = format!("[agents.mine]\n{lines}");
    let read =
        parse_settings(&file, Path::new("crew.toml"), SettingsOwner::Users, &["text"], &|_| true);
    read.map_or_else(
        |faults| format!("{faults:?}"),
        |read| read.layer.agents["mine"].value.to_string(),
    )
}

#[test]
fn the_options_that_make_an_agent_report_events_are_part_of_what_is_trusted() {
    let lines = "command = [\"m\"]\nallow = \"--allow=Bash({check})\"\n\
                 usage_file = \"--used\"\nenvironment = { LEVEL = \"low\" }";
    assert_snapshot!(agent(lines), @r#"{ allow = "--allow=Bash({check})", command = ["m"], environment = { LEVEL = "low" }, usage-file = "--used" }"#);
}

#[test]
fn an_allow_rule_without_a_check_and_an_invalid_variable_name_are_refused() {
    for (line, expected) in [
        ("allow = \"--allow\"", "allow is an argument with {check} in it"),
        ("environment = \"LEVEL=low\"", "expected a table"),
        ("environment = { \"A=B\" = \"x\" }", "a variable without ="),
        ("environment = { LEVEL = 1 }", "expected a string"),
    ] {
        assert!(agent(line).contains(expected), "{line}: {}", agent(line));
    }
}

#[test]
fn each_role_of_a_check_has_its_own_key() {
    let roles = Role::ALL.map(Role::label);
    assert!(roles.iter().all(|role| CHECK_KEYS.contains(role)), "{roles:?}");
    assert_eq!(CHECK_KEYS.len(), roles.len() + 1, "and no-worse is a kind of verify");
}

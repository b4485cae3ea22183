//! The grammar as a table: what may be typed after `/crew:loop`, with the result of each.

use super::*;
use crate::parse::amounts::{Amount, Limit};
use crate::parse::settings::options::{LimitOptions, TermOptions};
use engine::boundary::limits::LimitChange;

fn parse(raw: &str) -> Result<LoopArgs, Failure> {
    parse_loop(raw).map(|read| read.expect("it does not ask for help"))
}

fn task(text: &str) -> LoopArgs {
    LoopArgs { task: vec![text.to_owned()], ..LoopArgs::default() }
}

fn none() -> LoopArgs {
    LoopArgs::default()
}

fn iterations(most: u64, mut arguments: LoopArgs) -> LoopArgs {
    arguments.limits.max_iterations = Some(limit(most));
    arguments
}

fn limit<const UNIT: usize>(number: u64) -> Limit<UNIT> {
    Limit { amount: Amount(number), adds: false }
}

fn promise(text: &str, mut arguments: LoopArgs) -> LoopArgs {
    arguments.terms.completion_promise = Some(text.parse().unwrap());
    arguments
}

fn verify(command: &str) -> LoopArgs {
    let terms = TermOptions { verify: texts(&[command]), ..TermOptions::default() };
    LoopArgs { terms, ..none() }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[track_caller]
fn reads(raw: &str, expected: LoopArgs) {
    assert_eq!(parse(raw).map_err(|error| error.with_hint()), Ok(expected), "{raw}");
}

#[track_caller]
fn refuses(raw: &str, expected: &str) {
    assert_eq!(parse(raw).map_err(|error| error.with_hint()), Err(expected.to_owned()), "{raw}");
}

#[test]
fn a_missing_task_shows_the_help() {
    for raw in ["", "  \r\n\t", "\"\"", "\"  \""] {
        reads(raw, none());
    }
    for raw in ["--help", "fix it -h"] {
        assert_eq!(parse_loop(raw), Ok(None));
    }
    reads("-n 5", iterations(5, none()));
}

#[test]
fn an_option_comes_before_or_after_the_task_in_five_spellings() {
    let expected = iterations(15, task("fix the login"));
    for option in ["--max-iterations 15", "--max-iterations=15", "-n 15", "-n15", "-n=15"] {
        reads(&format!("\"fix the login\" {option}"), expected.clone());
        reads(&format!("{option} \"fix the login\""), expected.clone());
        reads(&format!("fix the login {option}"), expected.clone());
        reads(&format!("  {option}\r\n  fix the login\n"), expected.clone());
    }
    reads("-n \"15\" fix the login", expected.clone());
    reads("-n=\"15\" 'fix the login'", expected);
}

#[test]
fn vector_12_and_fault_11_an_option_with_an_equals_sign_is_not_task_text() {
    let expected = iterations(3, promise("DONE", task("Build it")));
    reads("Build it --max-iterations=3 --completion-promise=DONE", expected);
}

#[test]
fn fault_10_a_promise_of_several_words_is_kept_whole() {
    let expected = promise("BUILD  COMPLETE", task("x"));
    reads("x --completion-promise \"BUILD  COMPLETE\"", expected.clone());
    reads("--completion-promise='BUILD  COMPLETE' x", expected);
}

#[test]
fn every_option_has_its_field() {
    let raw = "-n 0 --no-promise --verify \"cargo test\" --verify=make --until './done \"now\"' \
               --gate \"sh -c \\\"exit 0\\\"\" --failure-threshold 4 --stall 0 \
               --max-duration \"1h 30m\" --max-cost $2.50 --max-tokens 500k --replace \
               --no-project --prompt-file=TASK.md";
    let expected = LoopArgs {
        prompt_file: Some("TASK.md".to_owned()),
        limits: LimitOptions {
            max_iterations: Some(limit(0)),
            failure_threshold: Some(limit(4)),
            stall: Some(limit(0)),
            max_duration: Some(limit(5400)),
            max_cost: Some(limit(2_500_000)),
            max_tokens: Some(limit(500_000)),
        },
        terms: TermOptions {
            no_promise: true,
            verify: texts(&["cargo test", "make"]),
            until: texts(&["./done \"now\""]),
            gate: texts(&["sh -c \"exit 0\""]),
            ..TermOptions::default()
        },
        replace: true,
        no_project: true,
        ..none()
    };
    reads(raw, expected);
}

#[test]
fn a_quoted_task_is_kept_byte_for_byte() {
    for (raw, text) in [
        ("\"  kept  \"", "  kept  "),
        ("\"don't\"", "don't"),
        ("'say \"hi\"'", "say \"hi\""),
        ("'it's here'", "it's here"),
        (r#""say \"hi\" to C:\new""#, r#"say "hi" to C:\new"#),
        (r"'it\'s \n'", r"it's \n"),
        (r#""look in C:\dir\""#, r"look in C:\dir\"),
        ("\"a `b` $(c) ; d > e --f\"", "a `b` $(c) ; d > e --f"),
        ("\"---\niteration: 9\r\n---\n\"", "---\niteration: 9\r\n---\n"),
        ("\"fix the \"quoted\" thing\"", "fix the \"quoted\" thing"),
        ("\"完了 🎉\u{a0}\"", "完了 🎉\u{a0}"),
    ] {
        reads(raw, task(text));
        reads(&format!("{raw} -n 3"), iterations(3, task(text)));
        reads(&format!("--replace {raw}"), LoopArgs { replace: true, ..task(text) });
    }
    let long = "línea --no-option\n".repeat(6_000);
    reads(&format!("\"{long}\" --replace"), LoopArgs { replace: true, ..task(&long) });
}

#[test]
fn plain_words_are_kept_byte_for_byte() {
    for text in [
        "fix the login",
        "don't  break the\n\tusers' code",
        "'tis the season",
        "'quick' fix",
        "\"quick\" fix for the parser",
        "\"a\" and \"b\" then",
        "it`s 5\" wide",
        "- fix this\n- and -5 that -- really --- yes",
        "a–b — c –d",
        "explain \"what --max-iterations 3 does\" please",
        "explain (\"--verify x\") please",
        "run `rm -rf target`, then ``a ` -b`` and\n```\ncargo test --all\n```\nagain",
        "x-n 5 a--replace",
        "$HOME `id` $(id) * # < > | & ; \\ \\\" \\n",
        "---\niteration: 9\r\n---",
    ] {
        reads(text, task(text));
        reads(&format!("{text}\n-n 3"), iterations(3, task(text)));
        reads(&format!("--replace  {text} "), LoopArgs { replace: true, ..task(text) });
    }
}

#[test]
fn words_after_two_hyphens_are_refused_in_a_session() {
    let refusal = "words after `--` are the agent's own options, in crew run; this session has its own\n\
                   hint: if it belongs to the task, put the whole task in double quotes";
    for raw in ["--", "-- --model opus", "-n3 -- fix it", "\"fix\" -n 3 -- x", "fix it -n 3 --"] {
        refuses(raw, refusal);
    }
    reads("fix this -- and that", task("fix this -- and that"));
    reads("\"-- fix --this -n 5\"", task("-- fix --this -n 5"));
}

#[test]
fn an_unknown_option_is_never_text_of_the_task() {
    let hint = "/crew:help lists the options; if it belongs to the task, put the whole task in double quotes";
    for (raw, option, hint) in [
        ("fix --max-iteration 3", "--max-iteration", "did you mean --max-iterations?"),
        ("--max_iterations=3 fix", "--max_iterations", "did you mean --max-iterations?"),
        ("fix -max-iterations 3", "-max-iterations", "did you mean --max-iterations?"),
        ("--Verify x", "--Verify", "did you mean --verify?"),
        ("--verfiy x", "--verfiy", "did you mean --verify?"),
        ("-N 3", "-N", hint),
        ("fix -x", "-x", hint),
        ("use rm -rf here", "-rf", hint),
        ("it`s \"5 --chatty", "--chatty", hint),
        ("say \" so --chatty \"", "--chatty", hint),
        ("a ` --chatty \"echo `x`\"", "--chatty", hint),
        ("\"fix\" --chatty", "--chatty", hint),
    ] {
        refuses(raw, &format!("unknown option `{option}`\nhint: {hint}"));
    }
    let long = format!("--{}", "abcdefghi".repeat(9));
    refuses(&long, &format!("unknown option `{}…`\nhint: {hint}", &long[..40]));
}

#[test]
fn a_typographic_dash_before_an_option_is_named() {
    let fault = |typed: &str, right| {
        format!("`{typed}` begins with a typographic dash\nhint: type {right}")
    };
    let long = fault("—max-iterations", "two hyphens instead, `--max-iterations`");
    refuses("fix it —max-iterations 3", &long);
    refuses("\"fix it\" —max-iterations=3", &long);
    refuses("fix it –n 3", &fault("–n", "a hyphen instead, `-n`"));
    refuses("–n3 fix it", &fault("–n3", "a hyphen instead, `-n`"));
    refuses("x −-replace", &fault("−-replace", "two hyphens instead, `--replace`"));
}

#[test]
fn a_value_is_never_missing_empty_or_another_option() {
    for (raw, option) in
        [("fix --verify", "--verify <CMD>"), ("x -n --replace", "--max-iterations <N>")]
    {
        let error = parse(raw).expect_err(raw).with_hint();
        assert!(error.starts_with(&format!("`{option}` needs a value\nhint: ")), "{raw}: {error}");
    }
    for (raw, fault) in [
        ("--until ' ' x", "invalid value ` ` for `--until <CMD>`"),
        ("--gate \"\" x", "`--gate <CMD>` needs a value"),
        ("--verify= make", "`--verify <CMD>` needs a value"),
    ] {
        refuses(raw, &format!("{fault}\nhint: text that is not blank"));
    }
    reads("--verify=-x", verify("-x"));
    reads("--verify \"-x\"", verify("-x"));
    reads("--verify=\"-x\"", verify("-x"));
    refuses(
        "--verify \"cargo test -n 3",
        "the quote that opens the value of --verify is never closed\nhint: add \" where the value ends",
    );
    refuses(
        "x --replace=yes",
        "`--replace` does not accept a value, but `yes` follows it\nhint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes",
    );
    refuses(
        "x --help=all",
        "`--help` does not accept a value, but `all` follows it\nhint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes",
    );
}

#[test]
fn an_option_that_is_not_a_check_may_be_given_only_once() {
    refuses(
        "x -n 3 --max-iterations 3",
        "`--max-iterations <N>` is given twice\nhint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes",
    );
    refuses(
        "x --replace --replace",
        "`--replace` is given twice\nhint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes",
    );
    reads("--gate a --gate a", {
        let terms = TermOptions { gate: texts(&["a", "a"]), ..TermOptions::default() };
        LoopArgs { terms, ..none() }
    });
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    refuses(
        "x --no-promise --completion-promise Y",
        "`--no-promise` cannot be used with `--completion-promise <TEXT>`\n\
         hint: give one of the two",
    );
    refuses(
        "x --prompt-file y",
        "`[TASK]...` cannot be used with `--prompt-file <FILE>`\nhint: give one of the two",
    );
}

#[test]
fn the_task_may_be_given_in_only_one_place() {
    let hint = "put the whole task in double quotes, and values of several words too";
    for (raw, text) in [
        ("fix -n 3 the login", "the login"),
        ("\"fix\" --verify cargo test", "test"),
        ("--verify cargo test -n 3 \"fix\"", "\"fix\""),
        (
            "\"fix\" -n 3 \"this\" or that is much too long to be shown",
            "\"this\" or that is much too long to be sh…",
        ),
    ] {
        refuses(raw, &format!("`{text}` is outside the task\nhint: {hint}"));
    }
    let unclosed = "the quote that opens the task is never closed\n\
                    hint: add a double quote where the task ends, or remove the first one";
    refuses("\"fix the login -n 3", unclosed);
    refuses(r#""say \"hi\" -n 3"#, unclosed);
    refuses(
        "/crew:loop \"fix it\" -n 3",
        "the task begins with `/crew:loop`\nhint: remove the second one, or put the task in double quotes",
    );
}

#[test]
fn a_number_that_cannot_be_read_is_refused_with_an_example() {
    let (count, tokens) =
        ("a whole number, such as 15", "a whole number, perhaps with k or M, such as 500k");
    let unit = "a time with its unit, such as 90m, 12h or \"1h 30m\"";
    for (option, name, value, wanted) in [
        ("--max-iterations", "N", "many", count),
        ("--max-iterations", "N", "-5", count),
        ("--max-iterations", "N", "1.5", count),
        ("--max-iterations", "N", "4294967296", "a whole number up to 4294967295"),
        ("--max-iterations", "N", "99999999999999999999", "a whole number up to 4294967295"),
        ("--max-iterations", "N", "15 ", count),
        ("--stall", "N", "off", count),
        ("--max-duration", "D", "90", unit),
        ("--max-duration", "D", "1h30", unit),
        ("--max-duration", "D", "12 parsecs", unit),
        ("--max-duration", "D", "-1h", unit),
        ("--max-duration", "D", "5ms", "a time of at least a second"),
        ("--max-duration", "D", "11y", "a time of at most ten years"),
        ("--max-duration", "D", "18446744073709551615s 1000ms", "a time of at most ten years"),
        ("--max-cost", "USD", "1e3", "US dollars, such as 5.00"),
        ("--max-cost", "USD", "5€", "US dollars, such as 5.00"),
        ("--max-tokens", "N", "1.5M", tokens),
        ("--max-tokens", "N", "k", tokens),
        ("--max-tokens", "N", "500 k", tokens),
    ] {
        let expected = format!("invalid value `{value}` for `{option} <{name}>`\nhint: {wanted}");
        refuses(&format!("fix it {option} \"{value}\""), &expected);
    }
}

#[test]
fn durations_money_and_tokens_have_a_few_spellings() {
    for (raw, expected) in [
        ("--max-duration 12h", 43_200),
        ("--max-duration 90m", 5_400),
        ("--max-duration \"1h 30m\"", 5_400),
        ("--max-duration 0", 0),
        ("--max-duration 0s", 0),
        ("--max-cost 5", 5_000_000),
        ("--max-cost $5", 5_000_000),
        ("--max-cost 5.00", 5_000_000),
        ("--max-tokens 0", 0),
        ("--max-tokens 7", 7),
        ("--max-tokens 2k", 2_000),
        ("--max-tokens 3M", 3_000_000),
    ] {
        let limits = parse(raw).unwrap().limits;
        let typed: Vec<LimitChange> = limits.limit_changes().into_values().collect();
        assert_eq!(typed, [LimitChange::To(expected)], "{raw}");
    }
}

#[test]
fn an_option_that_a_quote_left_open_has_swallowed_is_refused_and_a_closed_one_is_text() {
    for (raw, flag) in [
        ("\"Build it --verify \"cargo test\"", "--verify"),
        ("\"Build it --max-cost=5 --verify=\"cargo test\"", "--max-cost"),
        ("'Build it --gate 'cargo test'", "--gate"),
    ] {
        let expected = format!(
            "{flag} is inside the task, whose quotes do not balance\n\
             hint: close the quote before {flag}, or give the task with --prompt-file"
        );
        assert_eq!(parse(raw).expect_err(raw).with_hint(), expected, "{raw}");
    }
    for task in [
        "Explain --verify \"cargo test\" to me",
        "Document --verify",
        "A 12\" screen, and --verify",
        "Say \"don't --stop",
    ] {
        assert_eq!(parse(&format!("\"{task}\"")).unwrap().task().as_deref(), Some(task), "{task}");
    }
}

#[test]
fn a_resume_in_a_session_accepts_a_name_limits_and_a_message() {
    let read = |raw: &str| {
        let it = parse_resume(raw).map_err(|error| error.with_hint())?;
        let limits = it.set().limits().limit_changes().into_values();
        let iterations = limits.last().map(|change| format!("{change:?}"));
        Ok::<_, String>(
            [it.set().name().clone(), it.answer().tell().clone(), iterations]
                .map(Option::unwrap_or_default),
        )
    };
    let table = [
        ("", ["", "", ""]),
        (" k3v9abcd ", ["k3v9abcd", "", ""]),
        ("k3v9 -n +10", ["k3v9", "", "By(10)"]),
        ("-n=3 --tell \"use the old one\" k3v9", ["k3v9", "use the old one", "To(3)"]),
        ("--tell='it\\'s \"here\"'", ["", "it's \"here\"", ""]),
        ("k3v9 --tell yes", ["k3v9", "yes", ""]),
        ("--tell \"--agent x; `date` $(id)\"", ["", "--agent x; `date` $(id)", ""]),
    ];
    for (raw, expected) in table {
        assert_eq!(read(raw), Ok(expected.map(str::to_owned)), "{raw}");
    }
    let wrong = [
        "one two",
        "--tell",
        "--tell -n 3",
        "--tell \"open",
        "--agent codex",
        "-- x",
        "--tell use it",
    ];
    let errors: Vec<String> = wrong.iter().map(|raw| read(raw).unwrap_err()).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
    unexpected word `two`
    hint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes
    `--tell <TEXT>` needs a value
    hint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes
    `--tell <TEXT>` needs a value
    hint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes
    the quote that opens the value of --tell is never closed
    hint: add " where the value ends
    `--agent` is an option of crew run
    hint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes
    unexpected word `--`
    hint: put a whole message in double quotes: --tell "use the old parser"
    unexpected word `it`
    hint: put a whole message in double quotes: --tell "use the old parser"
    "#);
}

//! Arguments that a shell has split: those of `crew run`, `crew resume` and `crew set`.

use clap::{Args, Command};

use super::*;
use crate::parse::amounts::{Amount, OrOff};
use engine::boundary::limits::{LimitChange, change_limits};
use engine::fixture::{USUAL_LIMITS, a_loop};
use engine::record::{Limits, Permissions};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn typed<A: Args + FromArgMatches>(verb: &'static str, words: &[&str]) -> Result<A, Failure> {
    let given = [&["crew", verb], words].concat();
    let read = of_shell(given.into_iter().map(OsString::from).collect())?;
    let verb = A::augment_args(Command::new(verb));
    let refused_by_clap = |error| usage_failure(&error, "crew run --help");
    let matches = Command::new("crew").subcommand(verb).try_get_matches_from(read);
    let matches = matches.map_err(refused_by_clap)?;
    refuse_words_apart(&matches)?;
    A::from_arg_matches(matches.subcommand().unwrap().1).map_err(refused_by_clap)
}

fn read(given: &[&str]) -> RunArgs {
    typed("run", given).unwrap_or_else(|error| panic!("{given:?}: {error}"))
}

fn iterations(start: &LoopArgs) -> Option<u64> {
    start.limits.max_iterations.map(|limit| limit.amount.0)
}

fn refused(given: &[&str]) -> String {
    typed::<RunArgs>("run", given).expect_err("it is refused").with_hint()
}

#[test]
fn options_come_before_or_after_the_task_which_is_kept_byte_for_byte() {
    let task = "fix `this` & $HOME <b>\n  {{#if}} ${{ secrets.X }} 'now'";
    for given in [
        vec![task, "-n", "3", "--agent", "codex"],
        vec!["-n3", "--agent=codex", task],
        vec!["--agent", "codex", "--max-iterations=3", task, "--"],
    ] {
        let typed = read(&given);
        assert_eq!(typed.start.task().as_deref(), Some(task), "{given:?}");
        let agent = typed.options.process.agent().as_deref();
        assert_eq!((iterations(&typed.start), agent), (Some(3), Some("codex")));
    }
    let task = |given: &[&str]| read(given).start.task();
    for (given, expected) in [
        (&["fix", "the", "tests"][..], Some("fix the tests")),
        (&["fix", "-5", "-", "now"], Some("fix -5 - now")),
        (&["--fix it"], Some("--fix it")),
        (&["-x, --y: fix both"], Some("-x, --y: fix both")),
        (&["- fix it"], Some("- fix it")),
        (&["--list"], None),
    ] {
        assert_eq!(task(given).as_deref(), expected, "{given:?}");
    }
}

#[test]
fn words_after_two_hyphens_are_passed_to_the_agent() {
    let typed = read(&["fix it", "-n3", "--", "--effort", "high", "--", "-n", "x y"]);
    let start = typed.start;
    assert_eq!((start.task().as_deref(), iterations(&start)), (Some("fix it"), Some(3)));
    let expected = words(&["--effort", "high", "--", "-n", "x y"]);
    assert_eq!(typed.options.words, Some(expected));
    let none = read(&["--", "fix it"]);
    assert_eq!((none.start.task(), none.options.words), (None, Some(words(&["fix it"]))));
    assert_eq!(read(&["fix it"]).options.words, None);
    let resumed = resumed(&["k3v9", "--model", "opus", "--", "-n", "3"]).unwrap();
    assert_eq!(resumed.set.name().as_deref(), Some("k3v9"));
    assert_eq!(resumed.options.process.model().as_deref(), Some("opus"));
    assert_eq!(resumed.options.words, Some(words(&["-n", "3"])));
}

#[test]
fn every_option_of_the_terminal_has_its_field() {
    let typed = read(&[
        "-c",
        "one",
        "--context",
        "two",
        "--observe",
        "a",
        "--orient",
        "b",
        "--decide",
        "c",
        "--act",
        "d",
        "--agent-cmd",
        "x --y",
        "--model",
        "opus",
        "--permissions",
        "bypass",
        "--timeout",
        "1h",
        "--idle-timeout",
        "0",
        "--delay",
        "30s",
        "--commit",
        "--push",
        "--rebase",
        "main",
        "--worktree",
        "w",
        "--dry-run",
        "--detach",
        "--json",
        "-v",
        "-q",
    ]);
    let (recipe, run) = (typed.recipe, typed.options);
    assert_eq!(recipe.context, ["one", "two"]);
    let phases = [recipe.observe, recipe.orient, recipe.decide, recipe.act];
    assert_eq!(phases.concat(), ["a", "b", "c", "d"]);
    assert_eq!(run.agent_cmd.as_deref(), Some("x --y"));
    let process = run.process;
    assert_eq!(process.model().as_deref(), Some("opus"));
    assert_eq!(*process.permissions(), Some(Permissions::Bypass));
    let times = [*process.timeout(), *process.idle_timeout(), *process.delay()];
    assert_eq!(times, [3600, 0, 30].map(|seconds| Some(Amount(seconds))));
    assert!(*process.commit() && *process.push() && typed.dry_run && run.detach);
    let OutputArgs { json, verbose, quiet } = run.output;
    assert!(json && verbose && quiet);
    assert_eq!(*process.rebase(), Some(OrOff::On("main".to_owned())));
    assert_eq!(typed.worktree.as_deref(), Some("w"));
}

#[test]
fn an_invalid_command_line_is_refused_with_a_hint() {
    for (given, expected) in [
        (&["x", "--agnt", "codex"][..], "unknown option `--agnt`\nhint: did you mean --agent?"),
        (&["x", "--verify", "--commit"], "`--verify <CMD>` needs a value\nhint: crew run --help"),
        (&["--commit now"], "unknown option `--commit now`\nhint: did you mean --commit?"),
        (
            &["x", "—push"],
            "`—push` begins with a typographic dash\nhint: type two hyphens instead, `--push`",
        ),
        (&["x", "--tell", "y"], "unknown option `--tell`\nhint: did you mean --stall?"),
        (&["x", "--verify"], "`--verify <CMD>` needs a value\nhint: crew run --help"),
        (&["x", "-c="], "`--context <TEXT>` needs a value\nhint: text that is not blank"),
        (
            &["x", "--agent", "codex", "--agent-cmd", "mine"],
            "`--agent <NAME>` cannot be used with `--agent-cmd <CMD>`\nhint: give one of the two",
        ),
        (
            &["x", "--push=yes"],
            "`--push` does not accept a value, but `yes` follows it\nhint: crew run --help",
        ),
        (&["x", "-v", "--verbose"], "`--verbose` is given twice\nhint: crew run --help"),
        (
            &["x", "--commit=some"],
            "`--commit` does not accept a value, but `some` follows it\nhint: crew run --help",
        ),
        (
            &["x", "--permissions", "all"],
            "invalid value `all` for `--permissions <KIND>`\n\
             hint: it can be default, accept-edits, auto, bypass",
        ),
    ] {
        assert_eq!(refused(given), expected, "{given:?}");
    }
    assert_eq!(read(&["x", "--verify=-x"]).start.terms.verify, ["-x"]);
    assert!(refused(&["fix", "--verify", "cargo", "test"]).starts_with("`test` is outside"));
}

fn resumed(given: &[&str]) -> Result<ResumeArgs, Failure> {
    typed("resume", given)
}

#[test]
fn resume_accepts_a_name_limits_and_the_options_of_a_run() {
    let typed =
        resumed(&["k3v9", "-n", "+10", "--agent", "codex", "--detach", "--max-cost=+5"]).unwrap();
    assert_eq!(typed.set.name().as_deref(), Some("k3v9"));
    let limits = typed.set.limits();
    let changes: Vec<LimitChange> = limits.limit_changes().into_values().collect();
    assert_eq!(changes, [LimitChange::By(10), LimitChange::By(5_000_000)]);
    assert_eq!(typed.options.process.agent().as_deref(), Some("codex"));
    assert!(typed.options.detach);
}

#[test]
fn options_that_only_a_start_accepts_are_refused_by_resume() {
    let only =
        ["--list", "--worktree", "-c", "--context", "--observe", "--orient", "--decide", "--act"];
    for option in only {
        let error = resumed(&[option, "x"]).expect_err(option).with_hint();
        assert!(
            error.starts_with(&format!("`{option}` is an option of crew run\nhint: ")),
            "{error}"
        );
    }
    assert!(resumed(&["--no-project"]).unwrap().no_project);
}

/// The limits of a loop after one command with these arguments.
fn moved(limits: &Limits, typed: &str) -> Result<Limits, String> {
    let mut subject = a_loop();
    subject.contract.limits = limits.clone();
    let set = parse_resume(typed).map_err(|error| error.with_hint())?;
    Ok(change_limits(&set.set().limits().limit_changes(), &subject, 0))
}

const NO_VALUE: &str = "`--max-iterations <N>` needs a value\nhint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes";
const NO_WORD: &str = "unexpected word `b`\nhint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes";
const NO_OPTION: &str = "`--verify` is an option of crew run\nhint: /crew:help lists the options; if it belongs to the task, put the whole task in double quotes";

#[test]
fn limits_are_set_or_raised_and_junk_is_refused_with_a_hint() {
    let before = Limits { max_cost_micros: 2_000_000, max_tokens: 1_000, ..USUAL_LIMITS };
    let table = [
        ("", Ok((10, 3, 5, 43_200, 2_000_000, 1_000))),
        ("-n +10", Ok((20, 3, 5, 43_200, 2_000_000, 1_000))),
        ("-n+10", Ok((20, 3, 5, 43_200, 2_000_000, 1_000))),
        ("-n30 --stall=0", Ok((30, 3, 0, 43_200, 2_000_000, 1_000))),
        ("--max-iterations 0 --failure-threshold +1", Ok((0, 4, 5, 43_200, 2_000_000, 1_000))),
        ("--max-duration +2h --max-cost 5", Ok((10, 3, 5, 50_400, 5_000_000, 1_000))),
        ("--max-cost +$2.50 --max-tokens=2M", Ok((10, 3, 5, 43_200, 4_500_000, 2_000_000))),
        ("--max-cost 0 --max-tokens +500k", Ok((10, 3, 5, 43_200, 0, 501_000))),
        ("-n", Err(NO_VALUE)),
        (
            "-n ten",
            Err("invalid value `ten` for `--max-iterations <N>`\nhint: a whole number, such as 15"),
        ),
        (
            "--max-duration 5",
            Err(
                "invalid value `5` for `--max-duration <D>`\nhint: a time with its unit, such as 90m, 12h or \"1h 30m\"",
            ),
        ),
        (
            "--max-cost five",
            Err("invalid value `five` for `--max-cost <USD>`\nhint: US dollars, such as 5.00"),
        ),
        ("a b", Err(NO_WORD)),
        ("--verify true", Err(NO_OPTION)),
        ("--stal 3", Err("unknown option `--stal`\nhint: did you mean --stall?")),
    ];
    for (typed, expected) in table {
        let all = moved(&before, typed).map(|limits| {
            let Limits { max_iterations, failure_threshold, stall, max_duration_s, .. } = limits;
            let spent = (limits.max_cost_micros, limits.max_tokens);
            (max_iterations, failure_threshold, stall, max_duration_s, spent.0, spent.1)
        });
        assert_eq!(all, expected.map_err(str::to_owned), "{typed}");
    }
    assert_eq!(parse_resume("k3v9 -n 5").unwrap().set().name().as_deref(), Some("k3v9"));
}

#[test]
fn narrowing_differs_from_raising_and_zero_is_the_widest_limit() {
    let limits = USUAL_LIMITS;
    let priced = Limits { max_cost_micros: 5_000_000, max_tokens: 9, ..USUAL_LIMITS };
    for (before, typed, expected) in [
        (&limits, "-n 5", true),
        (&limits, "-n 10", true),
        (&limits, "-n 11", false),
        (&limits, "-n 0", false),
        (&limits, "--stall 2", true),
        (&limits, "--max-duration 13h", false),
        (&limits, "--max-cost 5", true),
        (&limits, "--max-tokens 1M -n 11", false),
        (&priced, "--max-cost 4.99", true),
        (&priced, "--max-cost +0.01", false),
        (&priced, "--max-cost 0", false),
        (&priced, "--max-tokens 10", false),
    ] {
        assert_eq!(moved(before, typed).unwrap().are_within(before), expected, "{typed}");
    }
}

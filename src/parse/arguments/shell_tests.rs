//! Arguments that a shell has split: those of `crew run`, `crew resume` and `crew set`.

use std::time::Duration;

use super::*;
use crate::engine::boundary::limits::{LimitChange, changed};
use crate::engine::fixture::a_loop;
use crate::engine::record::{Limits, Permissions};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn typed<A: FromArgMatches>(command: &Command, words: &[&str]) -> Result<A, UsageError> {
    let given = command.get_name().split(' ').chain(words.iter().copied());
    let read = of_shell(given.map(OsString::from).collect())?;
    let matches = command.clone().try_get_matches_from(&read[2..]);
    let read = matches.and_then(|matches| A::from_arg_matches(&matches));
    read.map_err(|error| UsageError::of(&error, "crew run --help"))
}

fn read(given: &[&str]) -> RunArgs {
    typed(&RUN, given).unwrap_or_else(|error| panic!("{given:?}: {error}"))
}

fn refused(given: &[&str]) -> String {
    typed::<RunArgs>(&RUN, given).expect_err("it is refused").to_string()
}

#[test]
fn options_stand_before_or_after_the_task_which_comes_through_byte_for_byte() {
    let task = "fix `this` & $HOME <b>\n  {{#if}} ${{ secrets.X }} 'now'";
    for given in [
        vec![task, "-n", "3", "--agent", "codex"],
        vec!["-n3", "--agent=codex", task],
        vec!["--agent", "codex", "--max-iterations=3", task, "--"],
    ] {
        let typed = read(&given);
        assert_eq!(typed.start.task.as_deref(), Some(task), "{given:?}");
        let agent = typed.options.agent.as_deref();
        assert_eq!((typed.start.limits.max_iterations, agent), (Some(3), Some("codex")));
    }
    let task = |given: &[&str]| read(given).start.task;
    for (given, expected) in [
        (&["fix", "the", "tests"][..], Some("fix the tests")),
        (&["fix", "-5", "-", "now"], Some("fix -5 - now")),
        (&["--fix it"], Some("--fix it")),
        (&["-x, --y: fix both"], Some("-x, --y: fix both")),
        (&["- fix it"], Some("- fix it")),
        (&["--list"], None),
        (&[" "], None),
    ] {
        assert_eq!(task(given).as_deref(), expected, "{given:?}");
    }
}

#[test]
fn words_after_two_hyphens_are_the_agents() {
    let typed = read(&["fix it", "-n3", "--", "--effort", "high", "--", "-n", "x y"]);
    let start = typed.start;
    assert_eq!((start.task.as_deref(), start.limits.max_iterations), (Some("fix it"), Some(3)));
    let expected = words(&["--effort", "high", "--", "-n", "x y"]);
    assert_eq!(typed.options.words, Some(expected));
    let none = read(&["--", "fix it"]);
    assert_eq!((none.start.task, none.options.words), (None, Some(words(&["fix it"]))));
    assert_eq!(read(&["fix it", "--"]).options.words, Some(Vec::new()));
    assert_eq!(read(&["fix it"]).options.words, None);
    let resumed = resumed(&["k3v9", "--model", "opus", "--", "-n", "3"]).unwrap();
    assert_eq!(resumed.set.name.as_deref(), Some("k3v9"));
    assert_eq!(resumed.options.model.as_deref(), Some("opus"));
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
    assert_eq!(run.model.as_deref(), Some("opus"));
    assert_eq!(run.permissions, Some(Permissions::Bypass));
    let times = [run.timeout, run.idle_timeout, run.delay];
    assert_eq!(times, [3600, 0, 30].map(|seconds| Some(Duration::from_secs(seconds))));
    assert!(run.commit && run.push && typed.dry_run && run.detach);
    let OutputArgs { json, verbose, quiet } = run.output;
    assert!(json && verbose && quiet);
    assert_eq!([run.rebase.as_deref(), typed.worktree.as_deref()], [Some("main"), Some("w")]);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_way_out() {
    let way_out = "\nhint: if it is the agent's, put it after `--`; if it belongs to the task, put the whole task in double quotes";
    for (given, expected) in [
        (
            &["x", "--agnt", "codex"][..],
            &*format!("unknown option `--agnt`: did you mean `--agent`?{way_out}"),
        ),
        (
            &["x", "--verify", "--commit"],
            "--verify needs a value, but `--commit` follows it\n\
             hint: write a value that begins with a hyphen as --verify=\"--commit\"",
        ),
        (
            &["--commit now"],
            &format!("unknown option `--commit now`: did you mean `--commit`?{way_out}"),
        ),
        (
            &["x", "—push"],
            "`—push` begins with a typographic dash\nhint: type two hyphens instead, `--push`",
        ),
        (&["x", "--tell", "y"], &format!("`--tell` is an option of crew resume{way_out}")),
        (&["x", "--verify"], "--verify needs a value\nhint: --verify CMD"),
        (&["x", "-c="], "--context needs a value\nhint: --context TEXT"),
        (
            &["x", "-n", "+5"],
            "invalid value `+5` for `--max-iterations <N>`\nhint: a whole number, such as 15",
        ),
        (
            &["x", "--agent", "codex", "--agent-cmd", "mine"],
            "`--agent <NAME>` cannot be used with `--agent-cmd <CMD>`\nhint: give one of the two",
        ),
        (
            &["x", "--push=yes"],
            "`--push` takes no value, but `yes` follows it\nhint: crew run --help",
        ),
        (&["x", "-v", "--verbose"], "`--verbose` is given twice\nhint: crew run --help"),
        (
            &["x", "--commit=some"],
            "`--commit` takes no value, but `some` follows it\nhint: crew run --help",
        ),
        (
            &["x", "--permissions", "all"],
            "invalid value `all` for `--permissions <KIND>`\n\
             hint: it can be default, accept-edits, auto, bypass",
        ),
    ] {
        assert_eq!(refused(given), expected, "{given:?}");
    }
    assert_eq!(read(&["x", "--verify=-x"]).start.verify, ["-x"]);
    let swallowed = "Build it --verify \"cargo test";
    assert!(refused(&[swallowed]).starts_with("--verify stands inside the task"));
}

fn resumed(given: &[&str]) -> Result<ResumeArgs, UsageError> {
    typed(&RESUME, given)
}

#[test]
fn resume_takes_a_name_limits_and_the_options_of_a_run() {
    let typed =
        resumed(&["k3v9", "-n", "+10", "--agent", "codex", "--detach", "--max-cost=+5"]).unwrap();
    assert_eq!(typed.set.name.as_deref(), Some("k3v9"));
    let limits = typed.set.limits;
    assert_eq!(limits.max_iterations, Some(LimitChange::By(10)));
    assert_eq!(limits.max_cost_micros, Some(LimitChange::By(5_000_000)));
    assert_eq!(typed.options.agent.as_deref(), Some("codex"));
    assert!(typed.options.detach);
}

#[test]
fn what_only_a_start_can_do_is_refused_after_resume() {
    let only =
        ["--list", "--worktree", "-c", "--context", "--observe", "--orient", "--decide", "--act"];
    for option in only {
        for word in [option.to_owned(), format!("{option}=x")] {
            let error = resumed(&[&word, "x"]).expect_err(option).to_string();
            assert_eq!(
                error,
                format!(
                    "`{option}` is an option of crew run\n\
                     hint: crew resume --help names what can be changed"
                )
            );
        }
    }
    assert!(resumed(&["--no-project"]).unwrap().project.no_project);
}

/// The limits of a loop after one command with these arguments.
fn moved(limits: &Limits, typed: &str) -> Result<Limits, String> {
    let mut subject = a_loop();
    subject.contract.limits = limits.clone();
    let set = resume(typed).map_err(|error| error.to_string())?;
    Ok(changed(&set.set.limits.by_key().collect(), &subject, 0))
}

#[test]
fn limits_are_set_or_raised_and_junk_is_refused_with_the_way_out() {
    let before = Limits { max_cost_micros: 2_000_000, max_tokens: 1_000, ..Limits::default() };
    let table = [
        ("", Ok((10, 3, 5, 43_200, 2_000_000, 1_000))),
        ("-n +10", Ok((20, 3, 5, 43_200, 2_000_000, 1_000))),
        ("-n+10", Ok((20, 3, 5, 43_200, 2_000_000, 1_000))),
        ("-n30 --stall=0", Ok((30, 3, 0, 43_200, 2_000_000, 1_000))),
        ("--max-iterations 0 --failure-threshold +1", Ok((0, 4, 5, 43_200, 2_000_000, 1_000))),
        ("--max-duration +2h --max-cost 5", Ok((10, 3, 5, 50_400, 5_000_000, 1_000))),
        ("--max-cost +$2.50 --max-tokens=2M", Ok((10, 3, 5, 43_200, 4_500_000, 2_000_000))),
        ("--max-cost 0 --max-tokens +500k", Ok((10, 3, 5, 43_200, 0, 501_000))),
        ("-n", Err("--max-iterations needs a value\nhint: --max-iterations N")),
        (
            "-n ten",
            Err(
                "invalid value `ten` for `--max-iterations <N>`\nhint: a whole number, such as 15; + before it adds",
            ),
        ),
        (
            "--max-duration 5",
            Err(
                "invalid value `5` for `--max-duration <D>`\nhint: a time with its unit, such as 90m, 12h or \"1h 30m\"; + before it adds",
            ),
        ),
        (
            "--max-cost five",
            Err(
                "invalid value `five` for `--max-cost <USD>`\nhint: US dollars, such as 5.00; + before it adds",
            ),
        ),
        ("a b", Err("unexpected word `b`\nhint: /crew:help lists the options")),
        (
            "--verify true",
            Err(
                "`--verify` is an option of /crew:loop and crew run\nhint: /crew:resume takes limits, such as -n +10, and --tell \"TEXT\"",
            ),
        ),
        (
            "--stal 3",
            Err(
                "unknown option `--stal`: did you mean `--stall`?\nhint: /crew:resume takes limits, such as -n +10, and --tell \"TEXT\"",
            ),
        ),
    ];
    for (typed, expected) in table {
        let all = moved(&before, typed).map(|it| {
            let Limits { max_iterations, failure_threshold, stall, max_duration_s, .. } = it;
            let spent = (it.max_cost_micros, it.max_tokens);
            (max_iterations, failure_threshold, stall, max_duration_s, spent.0, spent.1)
        });
        assert_eq!(all, expected.map_err(str::to_owned), "{typed}");
    }
    assert_eq!(resume("k3v9 -n 5").unwrap().set.name.as_deref(), Some("k3v9"));
}

#[test]
fn narrowing_is_told_from_raising_and_zero_is_the_widest() {
    let limits = Limits::default();
    let priced = Limits { max_cost_micros: 5_000_000, max_tokens: 9, ..Limits::default() };
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

use chrono::DateTime;
use proptest::prelude::*;

use super::service::ServiceWait;
use super::*;
use engine::boundary::facts::AgentClosing;
use engine::claim::Claim;
use engine::claim::promise::Promise;
use engine::record::Role;

const PROMPT: &str = "Go <b>&\" on";

/// The report that the reader of this agent makes of this output: "CASE: CLAIM, other facts".
pub(super) fn render_report(agent: &str, case: &str, errors: &str, stream: &str) -> String {
    let mut reader = create_reader(&find_agent(agent).unwrap());
    errors.lines().for_each(|line| reader.read_error(line));
    for line in stream.lines() {
        reader.render_line(line);
    }
    let now = DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap();
    format!("{case}: {}", summary(&mut reader, now))
}

/// The report of a reader on one line.
pub(super) fn summary(reader: &mut OutputReader, now: DateTime<FixedOffset>) -> String {
    let wait = reader.service_wait(now);
    let report = reader.report(now);
    let claim = match report.claim("Go.", "Go.", Some(&Promise::default())) {
        Claim::Success => "claims success",
        Claim::None => "no claim",
        _ => "a near miss",
    };
    let closing = match &report.agent.closing {
        AgentClosing::Plain => None,
        AgentClosing::Failed(how) => Some(how.clone()),
        AgentClosing::Missing => Some("not closed".to_owned()),
    };
    let error = report.agent.error.as_ref().map(|error| match error {
        ApiError::Transient { reset, is_limit, .. } => {
            let what = if *is_limit { "a limit" } else { "an outage" };
            let until = reset.map_or_else(String::new, |at| format!(" until {}", at.format("%R")));
            format!("{what}{until}")
        }
        ApiError::Fatal { hint, .. } => format!("blocked: {hint}"),
        ApiError::Request { message } => format!("a refused request: {message}"),
    });
    let wait = wait.map(|wait| match wait {
        ServiceWait { is_hopeless: true, .. } => "tries in vain".to_owned(),
        ServiceWait { pause: Some(pause), .. } => format!("pauses for {} s", pause.as_secs()),
        _ => "waits".to_owned(),
    });
    let flags = [(report.agent.cut, "cut"), (report.agent.out_of_turns, "out of turns")];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.to_owned());
    let denied = match report.agent.denied.as_slice() {
        [] => None,
        denied => Some(format!("denied {}", denied.join(", "))),
    };
    let used = report.usage.map(|used| {
        let lost = if used.lost { "at least " } else { "" };
        format!("{lost}{} tokens", used.tokens.total())
    });
    let rest = closing.into_iter().chain(error).chain(wait).chain(flags).chain(denied).chain(used);
    [claim.to_owned()].into_iter().chain(rest).collect::<Vec<_>>().join(", ")
}

fn line(agent: &Agent, permissions: Permissions, max_turns: u32) -> Result<String, String> {
    asked(agent, &Run { permissions, max_turns, ..Run::default() }, &[])
}

/// A run of this agent under these permissions.
fn run_of(agent: &str, permissions: Permissions) -> Run {
    Run { agent: find_agent(agent).unwrap(), permissions, ..Run::default() }
}

fn asked(agent: &Agent, run: &Run, checks: &[Check]) -> Result<String, String> {
    let run = Run { agent: agent.clone(), ..run.clone() };
    let launch = build_launch(&run, "agent", PROMPT, checks, "USED");
    let launch = launch.map_err(|failure| failure.join_with(": "))?;
    let input = if launch.input.is_empty() { "" } else { " < prompt" };
    assert!(["", PROMPT].contains(&launch.input.as_str()));
    Ok(format!("{} {}{input}", launch.program, launch.arguments.join(" ")))
}

#[test]
fn each_agent_is_asked_in_its_own_words() {
    use Permissions::{AcceptEdits, Auto, Bypass, Default};
    let claude = "claude -p --output-format stream-json --verbose";
    let codex = "codex exec --json --skip-git-repo-check";
    let gemini = "gemini --output-format stream-json --skip-trust";
    let opencode = "opencode run --format json --print-logs --log-level ERROR";
    let table = [
        ("claude", Default, 0, format!("{claude} < prompt")),
        ("claude", AcceptEdits, 0, format!("{claude} --permission-mode acceptEdits < prompt")),
        ("claude", Auto, 7, format!("{claude} --permission-mode auto --max-turns 7 < prompt")),
        ("claude", Bypass, 0, format!("{claude} --dangerously-skip-permissions < prompt")),
        ("codex", Default, 0, format!("{codex} < prompt")),
        ("codex", AcceptEdits, 0, format!("{codex} --sandbox workspace-write < prompt")),
        (
            "codex",
            Bypass,
            0,
            format!("{codex} --dangerously-bypass-approvals-and-sandbox < prompt"),
        ),
        ("gemini", AcceptEdits, 0, format!("{gemini} --approval-mode=auto_edit < prompt")),
        ("opencode", Bypass, 0, format!("{opencode} --auto < prompt")),
        ("opencode", AcceptEdits, 0, format!("{opencode} < prompt")),
        (
            "qwen",
            AcceptEdits,
            5,
            "qwen -o stream-json --approval-mode auto-edit --max-session-turns 5 < prompt"
                .to_owned(),
        ),
        ("droid", AcceptEdits, 0, "droid exec --auto low < prompt".to_owned()),
        ("pi", Bypass, 0, "pi -p < prompt".to_owned()),
        (
            "kiro-cli",
            Bypass,
            0,
            "kiro-cli chat --no-interactive --trust-all-tools < prompt".to_owned(),
        ),
        (
            "cursor-agent",
            Bypass,
            0,
            "cursor-agent -p --output-format text --trust --force Go <b>&\" on".to_owned(),
        ),
        (
            "copilot",
            AcceptEdits,
            0,
            "copilot --output-format json --no-ask-user --no-auto-update --allow-tool=write \
             --usage-output-file USED < prompt"
                .to_owned(),
        ),
    ];
    for (name, permissions, max_turns, expected) in table {
        assert_eq!(
            line(&find_agent(name).unwrap(), permissions, max_turns),
            Ok(expected),
            "{name}"
        );
    }
}

#[test]
fn an_option_that_an_agent_does_not_support_is_refused_with_a_hint() {
    use Permissions::{AcceptEdits, Auto, Bypass, Default};
    let own = parse_agent_command("mine --fast").unwrap();
    let empty = Agent { command: Vec::new(), ..own.clone() };
    let table = [
        (
            find_agent("codex").unwrap(),
            Auto,
            0,
            "agent codex does not support --permissions auto: choose --permissions default or accept-edits or bypass",
        ),
        (
            find_agent("cursor-agent").unwrap(),
            AcceptEdits,
            0,
            "agent cursor-agent does not support --permissions accept-edits: choose --permissions default or auto or bypass",
        ),
        (
            find_agent("codex").unwrap(),
            Default,
            3,
            "agent codex has no limit on turns: remove max_turns from the settings, or use --timeout as the limit",
        ),
        (
            own.clone(),
            Bypass,
            0,
            "agent mine does not accept --permissions bypass: put the agent's own option into its command",
        ),
        (empty, Default, 0, "agent mine has no command: write `command = [\"program\", …]`"),
    ];
    for (agent, permissions, max_turns, expected) in table {
        assert_eq!(line(&agent, permissions, max_turns), Err(expected.to_owned()));
    }
    assert_eq!(line(&own, AcceptEdits, 0), Ok("mine --fast < prompt".to_owned()));
}

#[test]
fn the_model_and_the_users_arguments_follow_the_agents_own() {
    let run = |words: &[&str]| Run {
        permissions: Permissions::Default,
        model: Some("big".to_owned()),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        ..Run::default()
    };
    let table = [
        ("claude", "claude -p --output-format stream-json --verbose --model big --x y < prompt"),
        ("codex", "codex exec --json --skip-git-repo-check -m big --x y < prompt"),
    ];
    for (name, expected) in table {
        let line = asked(&find_agent(name).unwrap(), &run(&["--x", "y"]), &[]);
        assert_eq!(line.as_deref(), Ok(expected));
    }
    let cursor = find_agent("cursor-agent").unwrap();
    let refused = "agent cursor-agent does not accept --model: give it its own option after `--`, as in -- --model big";
    assert_eq!(asked(&cursor, &run(&[]), &[]), Err(refused.to_owned()));
    let run = Run { model: None, ..run(&["--model", "big"]) };
    let line = asked(&cursor, &run, &[]).unwrap();
    assert!(line.ends_with(" --trust --model big Go <b>&\" on"), "{line}");
}

#[test]
fn an_agent_that_may_edit_may_run_only_the_checks() {
    use Permissions::{AcceptEdits, Auto, Bypass, Default};
    let checks = [
        ("cargo test", Role::Verify),
        ("cargo test", Role::Gate),
        ("test -f \"a, b\" && cat x", Role::Until),
        ("ls *.rs", Role::Verify),
        ("(cd a; make)", Role::Verify),
        ("two\nlines", Role::Gate),
    ];
    let checks = checks.map(|(run, role)| Check::new(run, role));
    let claude = find_agent("claude").unwrap();
    let line = asked(&claude, &Run { permissions: AcceptEdits, ..Run::default() }, &checks);
    let expected = "claude -p --output-format stream-json --verbose --allowedTools=Bash(cargo test) \
                    --allowedTools=Bash(test -f \"a, b\" && cat x) --permission-mode acceptEdits < prompt";
    assert_eq!(line.as_deref(), Ok(expected));
    let run = run_of("claude", AcceptEdits);
    let unnamed = not_allowed(&run, &checks);
    assert_eq!(unnamed, ["ls *.rs", "(cd a; make)", "two\nlines"]);
    for other in [Default, Auto, Bypass] {
        let line = asked(&claude, &Run { permissions: other, ..Run::default() }, &checks).unwrap();
        assert!(
            !line.contains("Bash(") && not_allowed(&run_of("claude", other), &checks).is_empty()
        );
    }
    assert_eq!(not_allowed(&run_of("codex", AcceptEdits), &checks), [""; 0]);
    let plain = [
        ("copilot", "--allow-tool=shell(cargo test)"),
        ("gemini", "--allowed-tools=run_shell_command(cargo test)"),
        ("qwen", "--allowed-tools=run_shell_command(cargo test)"),
    ];
    for (name, rule) in plain {
        let run = run_of(name, AcceptEdits);
        let launch = build_launch(&run, "agent", PROMPT, &checks, "USED").unwrap();
        let rules: Vec<&String> =
            launch.arguments.iter().filter(|rule| rule.contains('(')).collect();
        assert_eq!(rules, [rule], "{name}");
        let unnamed = [checks[2].run.as_str(), "ls *.rs", "(cd a; make)", "two\nlines"];
        assert_eq!(not_allowed(&run, &checks), unnamed, "{name}");
    }
}

#[test]
fn an_agent_gets_the_variables_that_make_it_report_its_waits() {
    let launch =
        build_launch(&run_of("qwen", Permissions::Default), "agent", PROMPT, &[], "USED").unwrap();
    assert_eq!(launch.variables.get("QWEN_CODE_UNATTENDED_RETRY").map(String::as_str), Some("1"));
}

#[test]
fn an_agent_without_a_login_blocks_the_loop_although_it_prints_no_event() {
    let gemini = "Please set an Auth method in your .gemini/settings.json or specify one of";
    let copilot = "Error: No authentication information found.\n\nCopilot can be authenticated";
    let closed = r#"{"type":"result","exitCode":0}"#;
    let qwen = r#"{"type":"result","is_error":true,"error":{"message":"No auth type is selected. Please configure"}}"#;
    let rows = [
        render_report("gemini", "gemini", gemini, ""),
        render_report("copilot", "copilot", copilot, ""),
        render_report("copilot", "copilot, at its end", copilot, closed),
        render_report("qwen", "qwen", "", qwen),
    ];
    insta::assert_snapshot!(rows.join("\n"), @"
    gemini: no claim, not closed, blocked: log in again, or fix the API key, at least 0 tokens
    copilot: no claim, not closed, blocked: log in again, or fix the API key, at least 0 tokens
    copilot, at its end: no claim, at least 0 tokens
    qwen: no claim, blocked: log in again, or fix the API key, at least 0 tokens
    ");
}

#[test]
fn an_argument_has_no_nul_and_a_length_that_the_system_accepts() {
    let run = run_of("cursor-agent", Permissions::Default);
    let ask = |prompt: &str| build_launch(&run, "agent", prompt, &[], "USED");
    let longest = "x".repeat(ARGUMENT_BYTES_MAX);
    assert_eq!(ask(&longest).unwrap().arguments.last().unwrap(), &longest);
    let error = ask(&format!("{longest}x")).unwrap_err().text;
    assert!(error.starts_with("the prompt has 131072 bytes, and agent cursor-agent"), "{error}");
    assert_eq!(ask("a\0b").unwrap_err().hint.as_deref(), Some("remove the NUL character"));
}

fn any_line() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("type"),
        Just("assistant"),
        Just("user"),
        Just("system"),
        Just("result"),
        Just("message"),
        Just("content"),
        Just("tool_use"),
        Just("id"),
        Just("usage"),
        Just("item"),
        Just("item.completed"),
        Just("turn.failed"),
        Just("error"),
        Just("rate_limit_event"),
        Just("modelUsage"),
        Just("delta"),
        Just("data"),
        Just("part"),
        Just("text"),
        Just("step_finish"),
        Just("assistant.message"),
        Just("model.call_failure"),
        Just("x"),
    ];
    let leaf = prop_oneof![
        word.clone().prop_map(|word| format!("\"{word}\"")),
        any::<f64>().prop_map(|number| format!("{number:e}")),
        Just("null".to_owned()),
        Just("true".to_owned()),
    ];
    let json = leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|members| {
                let pairs: Vec<String> =
                    members.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", pairs.join(","))
            }),
        ]
    });
    prop_oneof![4 => json, 1 => ".{0,40}", 1 => Just("{\"type\":\"assistant\",".to_owned())]
}

proptest! {
    #[test]
    fn no_output_makes_a_reader_panic_or_show_control_codes(
        lines in prop::collection::vec(any_line(), 0..20),
    ) {
        let now = DateTime::parse_from_rfc3339("2026-11-22T01:40:00Z").unwrap();
        for name in known_names() {
            let agent = find_agent(&name).unwrap();
            let mut reader = create_reader(&agent);
            for line in &lines {
                let seen = reader.render_line(line).unwrap_or_default();
                let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
                prop_assert!(!seen.contains(steers), "{seen:?}");
            }
            reader.tool_is_open();
            reader.service_wait(now);
            let report = reader.report(now);
            prop_assert_eq!(report.may_echo, !has_events(&agent));
        }
    }
}

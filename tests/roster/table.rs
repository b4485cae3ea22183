//! The table: the expected and actual result of each cell, and the differences.

use std::fmt::Write;

use super::agent::{Agent, claude, codex, copilot, gemini, opencode, qwen};
use super::cell::{EXCEPT_TITLES, Row};
use crate::client::say;

const EXPECTED: &str = include_str!("expected.txt");

/// Prints the results, one row for each scenario.
pub(super) fn print(agent: &Agent, rows: &[Row]) {
    let name = format!("{} {}", agent.name, agent.version);
    let mut text = format!(
        "{name:<17}{:<18} exit  iterations  failures  tokens   cost     requests  next start  seconds  why\n",
        "ends as"
    );
    for row in rows {
        let exit = row.exit.map_or("-".to_owned(), |code| code.to_string());
        writeln!(
            text,
            "{:<17}{:<18} {exit:<4}  {:<10}  {:<8}  {:<7}  {:<7}  {:<8}  {:<10}  {:<7}  {}",
            row.scenario,
            row.end,
            row.iterations,
            row.failures,
            row.tokens,
            row.cost,
            row.requests,
            row.next,
            row.seconds,
            row.why,
        )
        .unwrap();
    }
    say(&text);
}

/// The cells with an unexpected result, with both lines of each.
pub(super) fn unexpected(agent: &Agent, rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let expected = expected(row.scenario, agent.name);
        let came = shape(row, &expected);
        if came != expected {
            let why = &row.why;
            writeln!(text, "{:<16}expected {}", row.scenario, expected.join(" | ")).unwrap();
            writeln!(text, "{:<16}came     {} ({why})", "", came.join(" | ")).unwrap();
        }
    }
    text
}

/// The results in the columns of the expected line, whose cells are used where they match.
fn shape(row: &Row, expected: &[&str]) -> Vec<String> {
    let exit = row.exit.map_or("-".to_owned(), |code| code.to_string());
    let usage = match row.cost.as_str() {
        "exact" | "-" if row.tokens == EXCEPT_TITLES => "exact".to_owned(),
        "exact" | "-" => row.tokens.clone(),
        cost => format!("{}, cost {cost}", row.tokens),
    };
    let cells = [
        row.end.clone(),
        exit,
        row.iterations.to_string(),
        row.failures.to_string(),
        usage,
        row.requests.to_string(),
        row.next.clone(),
    ];
    let cells = cells.into_iter().enumerate();
    let cell = |(index, came): (usize, String)| {
        let expected = expected.get(index).filter(|expected| is_met(expected, &came));
        expected.map_or(came, |&expected| expected.to_owned())
    };
    cells.map(cell).collect()
}

/// Whether a result matches: `*` matches anything, and "1-2 min" a time within it.
fn is_met(expected: &str, came: &str) -> bool {
    let minutes = |text: &str| text.parse::<u32>().ok();
    let within = expected.strip_suffix(" min").and_then(|it| it.split_once('-'));
    let came = came.strip_suffix(" min").and_then(minutes);
    let is_within = |(least, most): (&str, &str)| {
        came.is_some_and(|came| minutes(least) <= Some(came) && Some(came) <= minutes(most))
    };
    expected == "*" || within.is_some_and(is_within)
}

#[test]
fn an_expected_cell_accepts_only_what_it_says() {
    let table = [
        ("*", "7 min", true),
        ("1-2 min", "1 min", true),
        ("1-2 min", "2 min", true),
        ("1-2 min", "3 min", false),
        ("1-2 min", "the reset", false),
    ];
    for (expected, came, is) in table {
        assert_eq!(is_met(expected, came), is, "{expected} {came}");
    }
}

/// The line of this agent, otherwise that of any agent.
fn expected(scenario: &str, agent: &str) -> Vec<&'static str> {
    let lines = EXPECTED.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let lines: Vec<Vec<&str>> =
        lines.map(|line| line.split('|').map(str::trim).collect()).collect();
    let find = |agent: &str| lines.iter().find(|line| line[..2] == [scenario, agent]);
    let line = find(agent).or_else(|| find("any"));
    line.unwrap_or_else(|| panic!("expected.txt has no line for {scenario}"))[2..].to_vec()
}

/// The text of `docs/reference/agents.md` about an agent, made from the expected results.
fn words_of_the_page(agent: &Agent) -> String {
    let is =
        |scenario: &str, column: usize, word: &str| expected(scenario, agent.name)[column] == word;
    let reports = match (is("claim", 4, "exact"), agent.prices.is_some()) {
        (true, true) => "reports tokens and cost",
        (true, false) => "reports tokens",
        (false, _) => "reports no tokens",
    };
    let limit = match (is("429 an hour", 6, "60 min"), is("limit in words", 6, "the reset")) {
        (true, true) => "a limit's end is known from a header or from its words",
        (true, false) => "a limit's end is known from a header",
        (false, true) => "a limit's end is known from its words",
        (false, false) => "a limit's end is not known",
    };
    let blocks = match (is("quota", 0, "blocked"), is("denied", 0, "blocked")) {
        (true, true) => "; the loop blocks without credit and without a tool that it needs",
        (true, false) => "; the loop blocks without credit",
        (false, true) => "; the loop blocks without a tool that it needs",
        (false, false) => "",
    };
    format!("- `{}`: {}; {reports}; {limit}{blocks}.", agent.name, agent.version)
}

#[test]
fn the_page_of_agents_says_what_is_expected_of_each_agent() {
    let page = include_str!("../../docs/reference/agents.md").replace("\n  ", " ");
    for agent in [claude(), codex(), copilot(), gemini(), opencode(), qwen()] {
        let line = words_of_the_page(&agent);
        assert!(page.lines().any(|it| it == line), "docs/reference/agents.md lacks\n{line}");
    }
}

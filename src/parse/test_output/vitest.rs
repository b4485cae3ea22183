//! Vitest: "      Tests  1 failed | 3 passed (4)". What failed is named in its summary, with
//! `--reporter=verbose` every test.

use super::{Line, Runner, add_total};
use crate::engine::evidence::test_run::{TestRun, TestStatus, add};

#[derive(Default)]
pub(super) struct Vitest {
    run: TestRun,
    is_known: bool,
}

impl Runner for Vitest {
    fn letters(&self) -> &'static str {
        "TN⎯F✓×↓□"
    }

    fn line(&mut self, Line { whole: line, text, .. }: Line<'_>) {
        if let Some(totals) = text.strip_prefix("Tests  ") {
            self.totals(totals);
        } else if line.starts_with("No test files found, exiting with code ") {
            self.is_known = true;
        } else if let Some(suites) =
            text.strip_prefix("⎯").filter(|it| it.contains("Failed Suites "))
        {
            let number = suites.split("Failed Suites ").nth(1);
            let number = number.and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
            add(&mut self.run.errors, number.unwrap_or(0));
            self.is_known = true;
        } else if let Some(name) = line.strip_prefix(" FAIL  ").filter(|name| name.contains(" > "))
        {
            self.run.name(without_project(name), TestStatus::Failed);
        } else if let Some((mark, name)) = line.strip_prefix(' ').and_then(|it| it.split_once(' '))
        {
            self.test(mark, name);
        }
    }

    fn report(self: Box<Self>) -> Option<TestRun> {
        self.is_known.then_some(self.run)
    }
}

impl Vitest {
    /// "1 failed | 3 passed | 1 skipped (5)"
    fn totals(&mut self, totals: &str) {
        self.is_known |= totals.trim() == "no tests";
        let Some((totals, _)) = totals.rsplit_once(" (") else { return };
        self.is_known = true;
        for (number, word) in totals.split(" | ").filter_map(|part| part.trim().split_once(' ')) {
            let Ok(number) = number.parse::<u32>() else { continue };
            add_total(&mut self.run, number, word);
        }
    }

    /// "✓ a.test.js > cart > is empty 3ms"
    fn test(&mut self, mark: &str, name: &str) {
        let status = match mark {
            "✓" => TestStatus::Passed,
            "×" => TestStatus::Failed,
            "↓" | "□" => TestStatus::Skipped,
            _ => return,
        };
        if !name.contains(" > ") {
            return;
        }
        let is_time = |word: &str| {
            word.strip_suffix("ms").is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let name = name.rsplit_once(' ').filter(|(_, end)| is_time(end)).map_or(name, |it| it.0);
        self.run.name(without_project(name), status);
    }
}

/// The name without " |project| " before it.
fn without_project(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix('|').and_then(|rest| rest.split_once("| ")).map_or(name, |(_, name)| name)
}

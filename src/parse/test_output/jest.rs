//! Jest: "Tests: 1 failed, 3 passed, 4 total". Failed tests are named once each, with `--verbose`
//! all of them.

use super::{Line, Runner, add_total, counts};
use crate::engine::evidence::test_run::{TestRun, TestStatus, add};

#[derive(Default)]
pub(super) struct Jest {
    run: TestRun,
    is_known: bool,
    file: String,
}

impl Runner for Jest {
    fn letters(&self) -> &'static str {
        "TNFP●"
    }

    fn line(&mut self, Line { whole: line, text, .. }: Line<'_>) {
        if let Some(totals) = line.strip_prefix("Tests: ") {
            self.totals(totals);
        } else if line.starts_with("No tests found, exiting with code ") {
            self.is_known = true;
        } else if let Some(file) = text.strip_prefix("FAIL ").or(text.strip_prefix("PASS ")) {
            file.split(" (").next().unwrap_or(file).trim().clone_into(&mut self.file);
        } else if text == "● Test suite failed to run" {
            add(&mut self.run.errors, 1);
        } else if let Some(name) = line.strip_prefix("  ● ") {
            // A message of jest itself has two blanks: "●  Cannot log after tests are done".
            if name.starts_with(" process.exit called with ") {
                self.run.unfinished = Some(name.trim().to_owned());
                self.is_known = true;
            }
            let is_a_test =
                !self.file.is_empty() && !name.starts_with("Console") && !name.starts_with(' ');
            if is_a_test {
                self.run.name(&format!("{} › {name}", self.file), TestStatus::Failed);
            }
        }
    }

    fn report(self: Box<Self>) -> Option<TestRun> {
        self.is_known.then_some(self.run)
    }
}

impl Jest {
    fn totals(&mut self, totals: &str) {
        if !totals.trim_end().ends_with(" total") {
            return;
        }
        self.is_known = true;
        for (number, word) in counts(totals) {
            add_total(&mut self.run, number, word);
        }
    }
}

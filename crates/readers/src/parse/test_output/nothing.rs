//! Recognizes that nothing ran or that a cached result was repeated: by sentences of the table,
//! some of them about a goal of make or gradle that tests, and by a reader of "number + test word"
//! for runners that the table does not have. It can only lower a proof.

use memchr::memchr_iter;

use super::Line;
use super::table::TABLE;
use engine::evidence::test_run::{TestRun, add_to_total};
use engine::text::{is_word_of, one_line};

/// The longest line that is read, in bytes: a sentence is short.
const LINE_BYTES: usize = 300;
/// How many characters of the line are shown.
const SHOWN_CHARS: usize = 100;

#[derive(Default)]
pub(super) struct NothingRan {
    stated: Option<String>,
    zero: Option<String>,
    replayed: Option<String>,
    ran: bool,
}

impl NothingRan {
    /// Counts a line that a row of the table reads as "nothing ran".
    pub(super) fn note_nothing_ran(&mut self, Line { text, .. }: Line<'_>) {
        keep_first(&mut self.stated, text);
    }

    /// Counts a line that a row of the table reads as "a cached result was repeated".
    pub(super) fn note_replay(&mut self, Line { text, .. }: Line<'_>) {
        keep_first(&mut self.replayed, text);
    }

    pub(super) fn take_line(&mut self, Line { text, .. }: Line<'_>) {
        if text.is_empty() || text.len() > LINE_BYTES {
            return;
        }
        // Every line of a log is asked, and the search for a text is slow.
        let bytes = text.as_bytes();
        if memchr_iter(b'h', bytes).any(|at| bytes[..at].ends_with(b"cac"))
            && (is_replayed(text) || is_all_cached(text))
        {
            keep_first(&mut self.replayed, text);
        }
        match tests_in(text) {
            Some(0) => keep_first(&mut self.zero, text),
            Some(_) => self.ran = true,
            None => {}
        }
    }

    /// Adds the findings to a run. A sentence counts only if no test is reported to have run.
    pub(super) fn add_to_run(self, run: Option<TestRun>) -> Option<TestRun> {
        let is_new = run.is_none();
        let mut run = run.unwrap_or_default();
        let ran = self.ran || run.ran_any() || run.skipped > 0 || self.replayed.is_some();
        let zero = if is_new { self.zero } else { None };
        run.nothing = if ran { None } else { self.stated.or(zero) };
        if self.replayed.is_some() && !run.ran_any() {
            add_to_total(&mut run.uncounted, 1);
        }
        run.replayed = self.replayed;
        let says_nothing = run.nothing.is_none() && run.replayed.is_none();
        if is_new && says_nothing { None } else { Some(run) }
    }
}

/// Keeps the first such line; a longer one is not a sentence.
fn keep_first(kept: &mut Option<String>, text: &str) {
    if text.len() <= LINE_BYTES {
        kept.get_or_insert_with(|| one_line(text, SHOWN_CHARS));
    }
}

fn is_replayed(text: &str) -> bool {
    TABLE.sentences("replayed").any(|words| text.contains(words))
}

/// Whether a line is turbo's summary that every result came from the cache: "Cached:    39 cached,
/// 39 total".
fn is_all_cached(text: &str) -> bool {
    let counts = text.strip_prefix("Cached:").and_then(|counts| counts.split_once(" cached, "));
    counts.is_some_and(|(cached, rest)| {
        let cached = cached.trim();
        cached != "0" && rest.trim().strip_suffix(" total") == Some(cached)
    })
}

/// Whether a goal of that name runs tests.
pub(super) fn is_action(name: &str) -> bool {
    let name = name.rsplit(':').next().unwrap_or(name).to_ascii_lowercase();
    let prepares = name.starts_with("compile") || name.starts_with("process");
    let words = ["test", "check", "spec", "verify", "coverage", "integration", "unit", "e2e"];
    !prepares && !name.ends_with("classes") && words.iter().any(|word| name.contains(word))
}

/// How many tests a line reports: "0 examples, 0 failures", "Tests run: 3, Failures: 0".
fn tests_in(text: &str) -> Option<u32> {
    let bytes = text.as_bytes();
    let starts = memchr_iter(b' ', bytes).map(|at| at + 1).chain([0]);
    let starts = starts.map(|at| at + usize::from(bytes.get(at) == Some(&b'(')));
    let starts = starts.filter(|at| bytes.get(*at).is_some_and(u8::is_ascii_digit));
    starts.filter_map(|at| tests_at(text, at)).max()
}

/// The number at this place, if it counts tests.
fn tests_at(text: &str, at: usize) -> Option<u32> {
    let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = text[at..].split_at(digits);
    let is_whole = after.is_empty() || after.starts_with([' ', ',']);
    let is_of_tests = is_whole && (is_followed(after.trim_start()) || is_labelled(&text[..at]));
    if is_of_tests { number.parse().ok() } else { None }
}

/// Whether a test word follows that does not say how tests ended, unlike "0 tests failed".
fn is_followed(after: &str) -> bool {
    const WORDS: &str = "test tests example examples spec specs scenario scenarios passing passed runs doctests properties";
    let words = after.split([' ', ',', ';', '.', ')', ':']);
    let mut words = words.filter(|word| !word.is_empty());
    let is_test = words.next().is_some_and(|word| is_word_of(WORDS, word));
    is_test && !matches!(words.next(), Some("failed" | "skipped" | "found" | "selected" | "files"))
}

/// Whether a label precedes the number: "Tests run:", "Total tests:", "Passed:", "0 tests failed
/// out of".
fn is_labelled(before: &str) -> bool {
    const LABELS: [&str; 6] =
        ["Tests run:", "Total tests:", "Passed:", "Tests:", "failed out of", "# PASS:"];
    LABELS.iter().any(|label| before.trim_end().ends_with(label))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::test_output::TestOutput;

    fn read(text: &str) -> Option<TestRun> {
        let mut output = TestOutput::default();
        text.lines().for_each(|line| output.take_line(line));
        output.report()
    }

    #[test]
    fn each_runners_words_for_an_empty_run_are_recognized() {
        for text in [
            "Test project /shop/build\nNo tests were found!!!",
            "No test matches the given testcase filter `Name~X` in /shop/bin/Shop.dll",
            "No projects matched the filters in \"/shop\"",
            "[==========] Running 0 tests from 0 test suites.\n[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.",
            "Test Suite 'All tests' passed at 2026-01-02 03:04:05.678.\n\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds",
            "\n  0 passing (1ms)\n",
            "No examples found.\n\nFinished in 0.0004 seconds\n0 examples, 0 failures\n",
            "make: 'test' is up to date.",
            "make[1]: Nothing to be done for 'check'.",
            "[INFO] No tests to run.",
            "> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s",
            "No tests executed!",
            "No tasks were executed as part of this run.",
            " WARNING  No tasks were executed as part of this run. ",
            "There are no tests to run",
            "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips",
            "ok | 0 passed | 0 failed (0ms)",
        ] {
            assert!(read(text).is_some_and(|run| run.nothing.is_some()), "{text}");
        }
    }

    #[test]
    fn a_test_run_a_build_and_a_linter_do_not_count_as_empty_runs() {
        for text in [
            "No tests were found!!!\n3 examples, 0 failures",
            "100% tests passed, 0 tests failed out of 5",
            "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\nTests run: 0, Failures: 0",
            "make: 'app' is up to date.",
            "0 errors, 0 warnings",
            "Found 0 problems",
            "12 files left unchanged.",
            "make[1]: Nothing to be done for 'check'.\n# TOTAL: 1\n# PASS:  1\n# FAIL:  0",
            "> Task :compileTestJava UP-TO-DATE\n> Task :testClasses UP-TO-DATE\n> Task :test",
            "> Task :compileTestJava NO-SOURCE\n> Task :test\n3 passing",
        ] {
            assert!(read(text).is_none_or(|run| run.nothing.is_none()), "{text}");
        }
    }

    #[test]
    fn a_cached_result_is_a_replay_and_not_an_empty_run() {
        for text in [
            "shop:test: cache hit, replaying logs 0123456789abcdef\nshop:test: 0 passing",
            "shop:test: cache hit, suppressing logs 0123456789abcdef",
            "Cached:    39 cached, 39 total",
            "> Task :test UP-TO-DATE",
            "> Task :web:test FROM-CACHE",
            "> nx run web:test  [existing outputs match the cache, left as is]",
            "//shop:tax_test                     (cached) PASSED in 0.1s",
            "@shop//:tax_test                    (cached) PASSED in 0.1s",
            "web:vitest: cache hit, replaying logs 0123456789abcdef",
        ] {
            let run = read(text).unwrap();
            assert!(run.replayed.is_some() && run.nothing.is_none() && run.ran_any(), "{text}");
        }
    }

    #[test]
    fn tests_that_started_and_never_finished_are_unfinished() {
        for text in [
            "running 3 tests\ntest a ... ok\n",
            "collecting ... collected 3 items\n\ntest_a.py::test_a PASSED [ 33%]\n",
            "1..5\nok 1 - a\nok 2 - b\n",
            "1..5\nok 1 - a\nBail out! database not there\n",
            "  ●  process.exit called with \"0\"\n",
        ] {
            assert!(read(text).is_some_and(|run| run.unfinished.is_some()), "{text}");
        }
        for text in ["collected 2 items\n2 passed in 0.01s\n", "1..2\nok\nok\n", "ok 1 - a\n1..1\n"]
        {
            assert!(read(text).is_none_or(|run| run.unfinished.is_none()), "{text}");
        }
    }
}

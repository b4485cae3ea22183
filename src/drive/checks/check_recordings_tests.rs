//! Recorded output of real test runners is counted as the runners count it.

use engine::evidence::test_run::{TestRun, TestStatus};
use readers::parse::test_output::TestOutput;

fn read_test_run(text: &str) -> Option<TestRun> {
    let mut output = TestOutput::default();
    text.lines().for_each(|line| output.take_line(line));
    output.report()
}

fn count_tests(run: &TestRun) -> [u32; 5] {
    [run.passed, run.failed, run.skipped, run.filtered, run.errors]
}

/// The recordings of real runners: the name, what the project was written to contain (passed,
/// failed, skipped, filtered out, errors), and the output.
#[expect(clippy::disallowed_methods, reason = "a test reads its fixtures")]
fn read_recordings() -> Vec<(String, [u32; 5], String)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tests");
    let folders = std::fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let recording = |file: std::fs::DirEntry| {
        let name = file.path().display().to_string();
        let counts = name.rsplit('.').nth(1).unwrap().split('-');
        let counts: Vec<u32> =
            counts.map(|it| it.trim_end_matches(char::is_alphabetic).parse().unwrap()).collect();
        let bytes = std::fs::read(file.path()).unwrap();
        (name, counts.try_into().unwrap(), String::from_utf8_lossy(&bytes).into_owned())
    };
    files.map(|file| recording(file.unwrap())).collect()
}

#[test]
fn each_runners_counts_are_read_even_with_colours_and_windows_line_endings() {
    let recordings = read_recordings();
    assert!(recordings.len() > 100, "{} recordings", recordings.len());
    for (name, expected, text) in recordings {
        let coloured = text.replace('\n', "\x1b[0m\r\n\x1b[2m\x1b[31m");
        for text in [text, coloured] {
            let run = read_test_run(&text).unwrap_or_else(|| panic!("no tests in {name}"));
            assert_eq!(count_tests(&run), expected, "{name}");
        }
    }
}

#[test]
fn failed_tests_are_named_wherever_the_runner_names_them() {
    for (name, [_, failed, ..], text) in read_recordings() {
        let run = read_test_run(&text).unwrap_or_default();
        let named = run.names_with(TestStatus::Failed).count();
        // Recorded with a reporter of dots.
        let names_none = name.contains("node/many");
        assert!(named > 0 || failed == 0 || names_none, "{name}");
        assert!(run.tests.keys().all(|name| !name.trim().is_empty()), "{name}");
    }
}

//! A report in the XML of `JUnit`, printed whole: one element a test.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{Line, parse_milliseconds};
use engine::evidence::test_run::{TestRun, TestStatus, add_to_total};

/// The largest report that is read, in bytes.
const REPORT_BYTES: usize = 16 << 20;

/// Collects the lines of reports.
#[derive(Default)]
pub(super) struct JUnit {
    xml: String,
    is_open: bool,
    /// The tag that ends the report.
    end: &'static str,
}

/// The test whose element is open.
struct Case {
    name: String,
    took: Option<u32>,
    /// What the element within it says; it passed without one.
    status: TestStatus,
    is_error: bool,
    message: String,
}

impl JUnit {
    /// Takes a line, if a report has begun.
    pub(super) fn take_line(&mut self, Line { whole: line, text, .. }: Line<'_>) {
        if !self.is_open {
            if !text.starts_with("<?xml") && !text.starts_with("<testsuite") {
                return;
            }
            self.end = "</testsuite>";
        }
        if line.contains("<testsuites") {
            self.end = "</testsuites>";
        }
        self.is_open = !line.ends_with(self.end);
        if self.xml.len() + line.len() < REPORT_BYTES {
            self.xml.push_str(line);
            self.xml.push('\n');
        }
    }

    /// What the reports said; `None` if there was none, or one was cut: half of the tests are not
    /// the tests.
    pub(super) fn report(self) -> Option<TestRun> {
        let mut run = TestRun::default();
        let mut reader = Reader::from_str(&self.xml);
        reader.config_mut().expand_empty_elements = true;
        let (mut open, mut is_known, mut depth) = (None::<Case>, false, 0_u32);
        loop {
            match reader.read_event().ok()? {
                Event::Start(tag) => match (tag.name().as_ref(), &mut open) {
                    (b"testsuites" | b"testsuite", _) => depth += 1,
                    (b"testcase", _) => open = Some(Case::from_tag(&tag)),
                    (_, Some(case)) => case.mark_status(&tag),
                    _ => {}
                },
                Event::End(tag) => match tag.name().as_ref() {
                    b"testsuites" | b"testsuite" => {
                        is_known = true;
                        depth = depth.saturating_sub(1);
                    }
                    b"testcase" => {
                        if let Some(case) = open.take() {
                            case.count_in(&mut run);
                        }
                    }
                    _ => {}
                },
                Event::Eof if is_known && depth == 0 => return Some(run),
                Event::Eof => return None,
                _ => {}
            }
        }
    }
}

impl Case {
    fn from_tag(tag: &BytesStart<'_>) -> Self {
        let [class, name, time] =
            ["classname", "name", "time"].map(|name| read_attribute(tag, name));
        let class = class.filter(|class| !class.is_empty()).map(|class| class + ".");
        let took = time.and_then(|seconds| parse_milliseconds(&format!("{seconds}s")));
        let name = class.unwrap_or_default() + &name.unwrap_or_default();
        let status = TestStatus::Passed;
        Self { name, took, status, is_error: false, message: String::new() }
    }

    /// Marks the end of the test by an element within it.
    fn mark_status(&mut self, tag: &BytesStart<'_>) {
        match tag.name().as_ref() {
            b"failure" => self.status = TestStatus::Failed,
            b"error" => (self.status, self.is_error) = (TestStatus::Failed, true),
            b"skipped" if !self.is_error => self.status = TestStatus::Skipped,
            _ => return,
        }
        self.message = read_attribute(tag, "message").unwrap_or_default();
    }

    fn count_in(self, run: &mut TestRun) {
        if self.is_error {
            add_to_total(&mut run.errors, 1);
        } else {
            run.count_test(self.status);
        }
        run.add_name(&self.name, self.status);
        run.add_time(&self.name, self.took);
        if self.status == TestStatus::Failed {
            run.failed_for(&self.name, &self.message);
        }
    }
}

fn read_attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.try_get_attribute(name).ok()??;
    Some(found.unescape_value().ok()?.into_owned())
}

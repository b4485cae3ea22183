//! A report in the XML of `JUnit`, printed whole: one element a test.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{Line, milliseconds};
use crate::engine::evidence::test_run::{TestRun, TestStatus, add};

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
#[derive(Default)]
struct Case {
    name: String,
    took: Option<u32>,
    /// What the element within it says; it passed without one.
    status: Option<TestStatus>,
    is_error: bool,
    message: String,
}

impl JUnit {
    /// Takes a line, if a report has begun.
    pub(super) fn line(&mut self, Line { whole: line, text, .. }: Line<'_>) {
        let begins = |mark: &str| text.starts_with(mark);
        if !self.is_open && !begins("<?xml") && !begins("<testsuite") {
            return;
        }
        if !self.is_open {
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
        let mut open: Option<Case> = None;
        let (mut is_known, mut depth) = (false, 0_u32);
        loop {
            match reader.read_event() {
                Ok(Event::Start(tag)) if is_suite(tag.name().as_ref()) => depth += 1,
                Ok(Event::Start(tag)) if tag.name().as_ref() == b"testcase" => {
                    open = Some(Case::of(&tag));
                }
                Ok(Event::Empty(tag)) if tag.name().as_ref() == b"testcase" => {
                    Case::of(&tag).count(&mut run);
                }
                Ok(Event::Start(tag) | Event::Empty(tag)) => {
                    if let Some(case) = &mut open {
                        case.mark(&tag);
                    }
                }
                Ok(Event::End(tag)) => match tag.name().as_ref() {
                    b"testcase" => open.take().into_iter().for_each(|case| case.count(&mut run)),
                    name if is_suite(name) => {
                        is_known = true;
                        depth = depth.saturating_sub(1);
                    }
                    _ => {}
                },
                Err(_) => return None,
                Ok(Event::Eof) => break,
                Ok(_) => {}
            }
        }
        (is_known && depth == 0).then_some(run)
    }
}

fn is_suite(name: &[u8]) -> bool {
    matches!(name, b"testsuites" | b"testsuite")
}

impl Case {
    fn of(tag: &BytesStart<'_>) -> Self {
        let [class, name, time] = ["classname", "name", "time"].map(|name| attribute(tag, name));
        let class = class.filter(|class| !class.is_empty()).map(|class| class + ".");
        let took = time.and_then(|seconds| milliseconds(&format!("{seconds}s")));
        let name = class.unwrap_or_default() + &name.unwrap_or_default();
        Self { name, took, ..Self::default() }
    }

    /// By an element within it.
    fn mark(&mut self, tag: &BytesStart<'_>) {
        match tag.name().as_ref() {
            b"failure" => self.status = Some(TestStatus::Failed),
            b"error" => self.is_error = true,
            b"skipped" => self.status = Some(TestStatus::Skipped),
            _ => return,
        }
        self.message = attribute(tag, "message").unwrap_or_default();
    }

    fn count(self, run: &mut TestRun) {
        let status = self.status.unwrap_or(TestStatus::Passed);
        if self.is_error {
            add(&mut run.errors, 1);
        } else {
            run.count(status);
        }
        let status = if self.is_error { TestStatus::Failed } else { status };
        run.name(&self.name, status);
        run.took(&self.name, self.took);
        if status == TestStatus::Failed {
            run.failed_for(&self.name, &self.message);
        }
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.try_get_attribute(name).ok()??;
    Some(found.unescape_value().ok()?.into_owned())
}

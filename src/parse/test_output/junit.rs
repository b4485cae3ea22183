//! A report in the XML of `JUnit`, printed whole: one element a test.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::Line;
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
struct Case {
    name: String,
    status: TestStatus,
    is_error: bool,
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
                Ok(Event::Start(tag)) => match tag.name().as_ref() {
                    b"testsuites" | b"testsuite" => depth += 1,
                    b"testcase" => open = Some(Case::of(&tag)),
                    name => open.iter_mut().for_each(|case| case.mark(name)),
                },
                Ok(Event::Empty(tag)) => match tag.name().as_ref() {
                    b"testcase" => Case::of(&tag).count(&mut run),
                    name => open.iter_mut().for_each(|case| case.mark(name)),
                },
                Ok(Event::End(tag)) => match tag.name().as_ref() {
                    b"testcase" => open.take().into_iter().for_each(|case| case.count(&mut run)),
                    b"testsuites" | b"testsuite" => {
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

impl Case {
    fn of(tag: &BytesStart<'_>) -> Self {
        let (mut class, mut name) = (None, String::new());
        for attribute in tag.attributes().with_checks(false).filter_map(Result::ok) {
            let value = || attribute.unescape_value().unwrap_or_default();
            match attribute.key.as_ref() {
                b"classname" => class = Some(value()),
                b"name" => name = value().into_owned(),
                _ => {}
            }
        }
        if let Some(class) = class.filter(|class| !class.is_empty()) {
            name.insert(0, '.');
            name.insert_str(0, &class);
        }
        Self { name, status: TestStatus::Passed, is_error: false }
    }

    /// By an element within it.
    fn mark(&mut self, element: &[u8]) {
        match element {
            b"failure" => self.status = TestStatus::Failed,
            b"error" => self.is_error = true,
            b"skipped" => self.status = TestStatus::Skipped,
            _ => {}
        }
    }

    fn count(self, run: &mut TestRun) {
        match self.status {
            _ if self.is_error => add(&mut run.errors, 1),
            TestStatus::Passed => add(&mut run.passed, 1),
            TestStatus::Failed => add(&mut run.failed, 1),
            TestStatus::Skipped => add(&mut run.skipped, 1),
        }
        let status = if self.is_error { TestStatus::Failed } else { self.status };
        run.name(&self.name, status);
    }
}

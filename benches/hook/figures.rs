//! Figures and the table they are shown in. Nothing is measured here.

use std::fmt::Write as _;
use std::time::Duration;

/// Times of one kind of call.
#[derive(Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn add(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// The median, in milliseconds: other work on the machine changes it least.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        milliseconds(sorted[sorted.len() / 2])
    }

    /// The slowest one, in milliseconds.
    pub fn slowest(&self) -> f64 {
        self.0.iter().copied().map(milliseconds).fold(0.0, f64::max)
    }
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// One line of the table.
#[derive(Debug)]
pub struct Row {
    pub what: String,
    pub measured: String,
    pub beside: String,
    /// The result, in the bound's own unit; a row without a bound is for comparison only.
    pub result: String,
    pub bound: String,
    pub holds: Option<bool>,
}

impl Row {
    /// A row whose bound is a ratio of two medians.
    pub fn ratio(what: &str, measured: &Samples, beside: (&str, &Samples), bound: f64) -> Self {
        let ratio = measured.median() / beside.1.median();
        Self {
            what: what.to_owned(),
            measured: format!("{:.2} ms", measured.median()),
            beside: format!("{} {:.2} ms", beside.0, beside.1.median()),
            result: format!("{ratio:.2} ×"),
            bound: format!("≤ {bound} ×"),
            holds: Some(ratio <= bound),
        }
    }

    /// The same, for comparison only.
    pub fn comparison(what: &str, measured: &Samples, beside: (&str, &Samples)) -> Self {
        let row = Self::ratio(what, measured, beside, 0.0);
        Self { bound: "none".to_owned(), holds: None, ..row }
    }

    /// A row whose bound is a number in `unit`.
    pub fn below(what: &str, result: f64, unit: &str, beside: String, bound: f64) -> Self {
        let result_text = format!("{result:.1} {unit}");
        Self {
            what: what.to_owned(),
            measured: result_text.clone(),
            beside,
            result: result_text,
            bound: format!("≤ {bound} {unit}"),
            holds: Some(result <= bound),
        }
    }
}

/// The rows as Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| what | measured | beside it, in the same run | result | bound | |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let verdict = match row.holds {
            Some(true) => "holds",
            Some(false) => "**missed**",
            None => "",
        };
        let Row { what, measured, beside, result, bound, .. } = row;
        let _ =
            writeln!(text, "| {what} | {measured} | {beside} | {result} | {bound} | {verdict} |");
    }
    text
}

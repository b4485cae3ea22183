//! The one place that prints. A reader that went away is a quiet end, not an error.

use std::io::{Write, stderr, stdout};

/// For whoever reads the result.
pub fn out(text: &str) {
    let line = if text.ends_with('\n') { "" } else { "\n" };
    offer(format!("{text}{line}").as_bytes());
}

/// The bytes as they are; `false` when nobody reads any more.
pub fn offer(bytes: &[u8]) -> bool {
    let mut stream = stdout().lock();
    stream.write_all(bytes).and_then(|()| stream.flush()).is_ok()
}

/// For whoever watches.
pub fn err(text: &str) {
    let mut stream = stderr().lock();
    let _ = stream.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stream.write_all(b"\n");
    }
}

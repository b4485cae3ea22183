//! The one place that prints. A reader that went away is a quiet end, not an error.

use std::io::{Write, stderr, stdout};

/// For whoever reads the result.
pub fn out(text: &str) {
    let mut stream = stdout().lock();
    let _ = stream.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stream.write_all(b"\n");
    }
    let _ = stream.flush();
}

/// For whoever watches.
pub fn err(text: &str) {
    let mut stream = stderr().lock();
    let _ = stream.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stream.write_all(b"\n");
    }
}

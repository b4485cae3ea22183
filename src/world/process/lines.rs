//! Cuts a stream into lines as it arrives. A line that is too long is passed on when its buffer is
//! full, and the rest of it separately, so that no line needs more memory than the given limit.

use std::borrow::Cow;

use memchr::memchr;

/// The buffer capacity that is kept for the next line.
const ROOM: usize = 64 << 10;

/// A piece of a stream, as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePiece<'a> {
    /// A line with its break; without one at the end of the stream, or where it was cut.
    Line(&'a [u8]),
    /// The rest of a line that was cut.
    Rest(&'a [u8]),
}

/// Cuts a stream into lines.
#[derive(Debug)]
pub struct LineCutter {
    /// The longest line, in bytes.
    most: usize,
    /// The longest line that begins as an event does, in bytes.
    most_of_event: usize,
    begun: Vec<u8>,
    is_cut: bool,
}

impl LineCutter {
    /// Cuts lines after `most` bytes.
    pub fn new(most: usize) -> Self {
        Self::with_events(most, most)
    }

    /// Cuts lines after `most` bytes, and a line that begins with `{` after `most_of_event`: no
    /// other line can be a JSON event, so none is worth that much memory.
    pub fn with_events(most: usize, most_of_event: usize) -> Self {
        Self { most, most_of_event, begun: Vec::new(), is_cut: false }
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(LinePiece<'_>)) {
        let mut left = bytes;
        while !left.is_empty() {
            let length = memchr(b'\n', left).map_or(left.len(), |at| at + 1);
            let (piece, rest) = left.split_at(length);
            left = rest;
            self.take(piece, &mut each);
        }
    }

    /// Ends the stream. Returns what has no line break.
    pub fn end(self) -> Option<Vec<u8>> {
        Some(self.begun).filter(|begun| !begun.is_empty())
    }

    /// `piece` has at most one line break, as its last byte.
    fn take(&mut self, piece: &[u8], each: &mut impl FnMut(LinePiece<'_>)) {
        let is_end = piece.ends_with(b"\n");
        if self.is_cut {
            each(LinePiece::Rest(piece));
            self.is_cut = !is_end;
        } else if is_end && self.begun.is_empty() {
            each(LinePiece::Line(piece));
        } else {
            let is_event = self.begun.first().or(piece.first()) == Some(&b'{');
            let most = if is_event { self.most_of_event } else { self.most };
            let (fits, rest) = piece.split_at(piece.len().min(most - self.begun.len()));
            self.begun.extend_from_slice(fits);
            if is_end || self.begun.len() == most {
                each(LinePiece::Line(&self.begun));
                self.begun.clear();
                self.begun.shrink_to(ROOM);
                self.is_cut = !fits.ends_with(b"\n");
            }
            if !rest.is_empty() {
                self.take(rest, each);
            }
        }
    }
}

/// A line as text, without its break; bytes that are not UTF-8 are replaced. The text has at most
/// `most` bytes, although a replacement takes three bytes.
pub fn text_of(line: &[u8], most: usize) -> Cow<'_, str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Ok(text) = std::str::from_utf8(line) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(line.len().min(most));
    for chunk in line.utf8_chunks() {
        let replaced = if chunk.invalid().is_empty() { "" } else { "\u{fffd}" };
        if text.len() + chunk.valid().len() + replaced.len() > most {
            break;
        }
        text.push_str(chunk.valid());
        text.push_str(replaced);
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces cut from a stream that arrives like this; the rest of a cut line is in brackets.
    fn cut(most: usize, pieces: &[&str]) -> Vec<String> {
        cut_by(LineCutter::new(most), pieces)
    }

    fn cut_by(mut lines: LineCutter, pieces: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let mut each = |piece: LinePiece<'_>| {
            found.push(match piece {
                LinePiece::Line(line) => String::from_utf8_lossy(line).into_owned(),
                LinePiece::Rest(rest) => format!("[{}]", String::from_utf8_lossy(rest)),
            });
        };
        for piece in pieces {
            lines.feed(piece.as_bytes(), &mut each);
        }
        if let Some(rest) = lines.end() {
            each(LinePiece::Line(&rest));
        }
        found
    }

    #[test]
    fn lines_come_whole_however_the_stream_is_cut() {
        assert_eq!(cut(99, &["a\nbc", "d\n", "\ne"]), ["a\n", "bcd\n", "\n", "e"]);
        assert_eq!(cut(99, &["", "\n"]), ["\n"]);
    }

    #[test]
    fn a_line_too_long_is_cut_and_the_next_one_is_whole() {
        assert_eq!(cut(4, &["ab", "cdef", "gh\nij\n"]), ["abcd", "[ef]", "[gh\n]", "ij\n"]);
        // A line that arrives in one piece needs no buffer.
        assert_eq!(cut(4, &["abcdef\nx"]), ["abcdef\n", "x"]);
        assert_eq!(cut(4, &["ab", "cd", "\nx\n"]), ["abcd", "[\n]", "x\n"]);
    }

    #[test]
    fn only_a_line_that_can_be_an_event_gets_the_room_of_one() {
        let cut = |pieces: &[&str]| cut_by(LineCutter::with_events(2, 4), pieces);
        assert_eq!(cut(&["{", "abcd\n"]), ["{abc", "[d\n]"]);
        assert_eq!(cut(&["a", "{cd\n{e"]), ["a{", "[cd\n]", "{e"]);
    }

    #[test]
    fn a_line_of_no_text_is_replaced_within_its_bound() {
        assert_eq!(text_of(b"plain\r\n", 99), "plain");
        assert_eq!(text_of(b"a\xff\xfeb\n", 99), "a\u{fffd}\u{fffd}b");
        assert!(text_of(&[0xff; 100], 100).len() <= 100);
    }
}

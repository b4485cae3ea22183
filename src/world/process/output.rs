//! The part of a child's output that is kept in memory: its beginning and its end, within fixed
//! bounds however much it prints.

/// How much of an output is kept, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct OutputBounds {
    pub head: usize,
    pub tail: usize,
}

/// The kept part of an output.
#[derive(Debug)]
pub struct BoundedOutput {
    bounds: OutputBounds,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// In bytes.
    left_out: usize,
}

impl BoundedOutput {
    /// An empty output.
    pub fn new(bounds: OutputBounds) -> Self {
        Self { bounds, head: Vec::new(), tail: Vec::new(), left_out: 0 }
    }

    /// Adds what was read.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = self.bounds.head.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[room..]);
        // Cuts rarely, not at every read: a cut moves the whole tail.
        if self.tail.len() > 2 * self.bounds.tail + (64 << 10) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let surplus = self.tail.len().saturating_sub(self.bounds.tail);
        self.tail.drain(..surplus);
        self.left_out += surplus;
    }

    /// The kept output, with a line in place of what was left out, and whether there is such a
    /// line.
    pub fn take(mut self) -> (Vec<u8>, bool) {
        self.cut();
        let mut all = self.head;
        if self.left_out > 0 {
            all.extend_from_slice(format!("\n… {} bytes left out …\n", self.left_out).as_bytes());
        }
        all.append(&mut self.tail);
        (all, self.left_out > 0)
    }

    /// Only the end.
    pub fn take_tail(mut self) -> Vec<u8> {
        self.cut();
        self.tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let mut kept = BoundedOutput::new(OutputBounds { head: 16 << 10, tail: 48 << 10 });
        kept.add(b"first\n");
        for _ in 0..40_000 {
            kept.add(b"0123456789");
        }
        kept.add(b"\nlast");
        let (all, is_cut) = kept.take();
        let bound = 64 << 10;
        assert!(all.starts_with(b"first\n") && all.ends_with(b"\nlast"));
        assert!(all.len() < bound + 64);
        let left_out = format!("\n… {} bytes left out …\n", 400_011 - bound);
        assert!(is_cut && String::from_utf8(all).unwrap().contains(&left_out));
    }
}

//! Reads which iterations of a loop a person means: `4`, `2..6`. A word of other characters is not
//! about iterations: it names a loop.

/// Some iterations of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iterations {
    /// What this one changed.
    One(u32),
    /// From the end of one to the end of another; 0 is the state before the first.
    Between(u32, u32),
}

/// Reads the word; `None` if it is not about iterations.
pub fn iterations(word: &str) -> Option<Iterations> {
    match word.split_once("..") {
        None => word.parse().ok().map(Iterations::One),
        Some((from, to)) => Some(Iterations::Between(from.parse().ok()?, to.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_digits_is_an_iteration_and_any_other_a_loop() {
        let table = [
            ("4", Some(Iterations::One(4))),
            ("0..12", Some(Iterations::Between(0, 12))),
            ("k3v9", None),
            ("2..", None),
            ("..3", None),
            ("", None),
        ];
        for (word, expected) in table {
            assert_eq!(iterations(word), expected, "{word:?}");
        }
    }
}

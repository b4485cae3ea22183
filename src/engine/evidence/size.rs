//! The approximate size of a prompt: no agent reports its tokens beforehand, so four characters
//! count as a token. A prompt that is too big causes a warning and is never refused.

const CHARS_PER_TOKEN: u64 = 4;

/// A prompt's size against its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Approximate.
    pub tokens: u64,
    /// 0 means none.
    pub budget: u64,
}

impl Size {
    /// The size of a prompt.
    pub fn of(prompt: &str, budget: u64) -> Self {
        let chars = u64::try_from(prompt.chars().count()).unwrap_or(u64::MAX);
        Self { tokens: chars.div_ceil(CHARS_PER_TOKEN), budget }
    }

    /// Whether it exceeds the budget, which is worth a warning.
    pub fn is_over(self) -> bool {
        self.budget > 0 && self.tokens > self.budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_characters_are_a_token_and_over_budget_is_more_than_it() {
        let table = [
            ("", 1, 0, false),
            ("日本語", 1, 1, false),
            ("12345", 1, 2, true),
            ("12345", 2, 2, false),
            ("12345", 0, 2, false),
        ];
        for (text, budget, tokens, is_over) in table {
            let size = Size::of(text, budget);
            assert_eq!((size.tokens, size.is_over()), (tokens, is_over), "{text:?} of {budget}");
        }
    }
}

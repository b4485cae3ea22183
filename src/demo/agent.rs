//! The demo's script: a shell library with two faults, its tests, and an agent that fixes it in
//! three iterations and claims too early once. It is only text: nothing here acts, and no model is
//! asked.

/// What the user types after `/crew:loop`.
pub const COMMAND: &str =
    r#""Make every test in test.sh pass" --verify "sh test.sh" --max-iterations 5"#;

/// The name of the library.
pub const LIBRARY: &str = "numbers.sh";
/// The library as the agent finds it.
pub const BROKEN: &str = include_str!("scripts/numbers.sh");

/// The name of the tests.
pub const TESTS: &str = "test.sh";
/// The tests, which the agent never touches.
pub const TESTS_TEXT: &str = include_str!("scripts/test.sh");

/// One iteration of the agent.
#[derive(Debug)]
pub struct Turn {
    /// What it does, as its client would show it.
    pub does: &'static str,
    /// The edit: this text of the library becomes that one.
    pub from: &'static str,
    pub to: &'static str,
    /// Whether it commits its work.
    pub commits: bool,
    /// Its final message.
    pub says: &'static str,
}

/// The whole script.
pub const TURNS: [Turn; 3] = [
    Turn {
        does: "edits numbers.sh: sum adds instead of subtracting",
        from: "total - number",
        to: "total + number",
        commits: false,
        says: "sum is right now. Next I will look at largest.",
    },
    Turn {
        does: "edits numbers.sh: largest compares the right way round",
        from: "-lt",
        to: "-gt",
        commits: false,
        says: "That was the last fault; everything passes.\n\n<promise>COMPLETE</promise>",
    },
    Turn {
        does: "edits numbers.sh: largest begins with the first number, not with 0; runs the tests; commits",
        from: "best=0",
        to: "best=$1",
        commits: true,
        says: "The test for negative numbers did fail. All three pass now.\n\n<promise>COMPLETE</promise>",
    },
];

/// The library as the agent leaves it.
pub fn fixed() -> String {
    let fix = |library: String, turn: &Turn| library.replace(turn.from, turn.to);
    TURNS.iter().fold(BROKEN.to_owned(), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edit_finds_its_text_once() {
        let mut library = BROKEN.to_owned();
        for turn in &TURNS {
            assert_eq!(library.matches(turn.from).count(), 1, "{}", turn.does);
            library = library.replace(turn.from, turn.to);
        }
    }
}

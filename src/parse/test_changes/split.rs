//! Splits a text of `sh` into its simple commands, with what becomes of the output of each. Quotes
//! and substitutions are obeyed; variables are not expanded, so a word with one loses it.

/// One simple command, without the substitutions in it, which are commands of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    pub words: Vec<String>,
    /// Whether its output is a part of another command: `$(…)`, `<(…)`, backticks.
    pub is_substituted: bool,
    /// The programs that its output is piped into, in order.
    pub pipes_into: Vec<String>,
    /// Whether the commands after it run beside it.
    pub is_in_background: bool,
}

/// What is being read: the text itself, or a substitution in it.
#[derive(Default)]
struct Frame {
    text: String,
    quote: Option<char>,
    /// What ends the substitution; `None` for the text itself.
    end: Option<char>,
    /// The commands of the present pipeline.
    pipeline: Vec<usize>,
}

#[derive(Default)]
struct Splitter {
    commands: Vec<SimpleCommand>,
    frames: Vec<Frame>,
}

/// The commands of a text, in order.
pub fn split_commands(run: &str) -> Vec<SimpleCommand> {
    let mut splitter = Splitter { frames: vec![Frame::default()], ..Splitter::default() };
    let mut letters = run.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        let Some(frame) = splitter.frames.last_mut() else { break };
        if frame.quote == Some('\'') && letter != '\'' {
            frame.text.push(letter);
            continue;
        }
        match (frame.quote, letter) {
            (_, '\\') => frame.text.extend([Some(letter), letters.next()].into_iter().flatten()),
            (None, _) if frame.end == Some(letter) => splitter.close(),
            (_, '`') => splitter.open('`'),
            (_, '$') | (None, '<' | '>') if next == Some('(') => {
                letters.next();
                splitter.open(')');
            }
            (_, '$') if next == Some('{') => while letters.next_if(|it| *it != '}').is_some() {},
            (None, '<' | '>') => {
                frame.text.extend([' ', letter, ' ']);
                while letters.next_if(|it| "<>&".contains(*it)).is_some() {}
            }
            (Some(open), _) if open == letter => {
                frame.quote = None;
                frame.text.push(letter);
            }
            (None, '\'' | '"') => {
                frame.quote = Some(letter);
                frame.text.push(letter);
            }
            (None, '|') if next != Some('|') => splitter.end_command(),
            (None, '&') => {
                let is_and = letters.next_if_eq(&'&').is_some();
                splitter.end_pipeline();
                if let Some(last) = splitter.commands.last_mut() {
                    last.is_in_background = !is_and && next != Some('>');
                }
            }
            (None, ';' | '|' | '\n' | '(' | ')') => splitter.end_pipeline(),
            (None, '{' | '}') if frame.text.trim_end().is_empty() => splitter.end_pipeline(),
            _ => frame.text.push(letter),
        }
    }
    while !splitter.frames.is_empty() {
        splitter.close();
    }
    splitter.commands
}

impl Splitter {
    fn open(&mut self, end: char) {
        self.frames.push(Frame { end: Some(end), ..Frame::default() });
    }

    fn close(&mut self) {
        self.end_pipeline();
        self.frames.pop();
    }

    fn end_command(&mut self) {
        let is_substituted = self.frames.len() > 1;
        let Some(frame) = self.frames.last_mut() else { return };
        let text = std::mem::take(&mut frame.text);
        // A quote that is not closed is no reason to see nothing.
        let by_space = || text.split_whitespace().map(str::to_owned).collect();
        let words: Vec<String> = shell_words::split(&text).unwrap_or_else(|_| by_space());
        let Some(program) = words.first() else { return };
        for earlier in &frame.pipeline {
            self.commands[*earlier].pipes_into.push(program.clone());
        }
        frame.pipeline.push(self.commands.len());
        self.commands.push(SimpleCommand { words, is_substituted, ..SimpleCommand::default() });
    }

    fn end_pipeline(&mut self) {
        self.end_command();
        if let Some(frame) = self.frames.last_mut() {
            frame.pipeline.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_at_operators_and_substitutions() {
        let shown = |run: &str| -> Vec<String> {
            let show = |it: SimpleCommand| {
                let inner = if it.is_substituted { "$" } else { "" };
                let beside = if it.is_in_background { " &" } else { "" };
                let pipes: Vec<String> =
                    it.pipes_into.iter().map(|into| format!(" | {into}")).collect();
                format!("{inner}{}{}{beside}", it.words.join("·"), pipes.concat())
            };
            split_commands(run).into_iter().map(show).collect()
        };
        for (run, expected) in [
            ("cd a && sh check.sh; true", &["cd·a", "sh·check.sh", "true"][..]),
            ("(cd a && x) && (cd b && y)", &["cd·a", "x", "cd·b", "y"]),
            ("bash -o pipefail -c 'a | b'", &["bash·-o·pipefail·-c·a | b"]),
            ("[ \"$(sh greet.sh)\" = Hello ]", &["$sh·greet.sh", "[··=·Hello·]"]),
            (
                "sh greet.sh | sort | grep -q Hello",
                &["sh·greet.sh | sort | grep", "sort | grep", "grep·-q·Hello"],
            ),
            ("diff <(sh a.sh) b.txt 2>&1", &["$sh·a.sh", "diff·b.txt·2·>·1"]),
            ("sh < f", &["sh·<·f"]),
            ("serve 2>&1 & curl x && true", &["serve·2·>·1 &", "curl·x", "true"]),
            ("a &> log; b", &["a", ">·log", "b"]),
            ("${X}/a \"`b c`\"", &["$b·c", "/a·"]),
            ("echo 'a", &["echo·'a"]),
            ("a\\;b", &["a;b"]),
        ] {
            assert_eq!(shown(run), expected, "{run}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_split(run in "[ a-z$(){}`'\"|&;<>\\\\\n]{0,60}") {
            let _ = split_commands(&run);
        }
    }
}

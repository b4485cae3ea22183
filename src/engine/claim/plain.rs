//! A program's output as a person reads it: without the codes that colour it and move the cursor.

use std::iter::Peekable;
use std::str::Chars;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

/// The text without terminal codes and other control characters. A carriage return, alone or before a
/// line feed, is a line break; a code that is not finished takes the rest of its line with it at most.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => skip_code(&mut characters),
            '\r' => {
                characters.next_if_eq(&'\n');
                plain.push('\n');
            }
            '\n' | '\t' => plain.push(character),
            _ if character.is_control() => {}
            _ => plain.push(character),
        }
    }
    plain
}

/// Skips what follows an escape, by the rules of ECMA-48: `[…` up to a letter or the like, `]…` and its
/// kin up to a bell or `ESC \`, else one character.
fn skip_code(characters: &mut Peekable<Chars<'_>>) {
    match characters.next_if(|it| !matches!(it, '\n' | '\r')) {
        Some('[') => {
            while characters.next_if(|it| matches!(it, ' '..='?')).is_some() {}
            characters.next_if(|it| matches!(it, '@'..='~'));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(inner) = characters.next_if(|it| !matches!(it, '\n' | '\r')) {
                if inner == BELL {
                    return;
                }
                if inner == ESCAPE {
                    characters.next_if_eq(&'\\');
                    return;
                }
            }
        }
        Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
            characters.next_if(|it| !it.is_control());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_removed_and_text_is_kept() {
        let table = [
            ("plain é 漢", "plain é 漢"),
            ("\x1b[1;32mgreen\x1b[0m", "green"),
            ("\x1b[38;2;1;2;3mrgb\x1b[m", "rgb"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;https://x.y\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b(Btext\x1b=", "text"),
            ("tab\there\u{0}\u{8}", "tab\there"),
            ("\x1b[2K\x1b[1Gagain", "again"),
            ("\x1b]0;never closed\nnext", "\nnext"),
            ("\x1b[31\nnext", "\nnext"),
            ("end\x1b", "end"),
        ];
        for (text, expected) in table {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
}

//! What is typed into Claude Code and reaches crew as a prompt: a pasted command, an order to crew,
//! or a message for the agent. A command that has its own event is not read again here.

use super::{COMMANDS, ClaudeCode};
use crate::clients::HookEvent;
use crate::clients::spelling::split;
use crate::parse::patterns::PASTED_ELEMENT;
use crate::parse::requests::{after_an_order, typed};

/// Reads a prompt. `is_anothers` says that the user did not write it: a schedule or a peer did.
pub(super) fn read(prompt: &str, is_anothers: bool) -> HookEvent {
    match pasted_command(prompt) {
        Some(_) if is_anothers => return HookEvent::NotOurs,
        Some((name, raw)) => return HookEvent::Command { name, raw, sure: true },
        // Such a command has its own event.
        None if prompt.trim_start().starts_with(COMMANDS) => return HookEvent::NotOurs,
        None => {}
    }
    let words = without_old_orders(prompt);
    if let Some(order) = typed(words) {
        return HookEvent::Order(order);
    }
    match split(&ClaudeCode, words).filter(|_| words != prompt) {
        Some((name, raw)) => {
            HookEvent::Command { name: name.to_owned(), raw: raw.to_owned(), sure: false }
        }
        None if is_the_clients(prompt) => HookEvent::Notified,
        None => HookEvent::Prompted,
    }
}

/// The command inside a prompt that is one pasted element: the client sends a command that was
/// pasted whole as text. Returns the command's name and its raw arguments.
fn pasted_command(prompt: &str) -> Option<(String, String)> {
    let inner = prompt.trim().strip_prefix("<pasted_content")?;
    let (attributes, inner) = inner.split_once('>')?;
    let (inner, rest) = inner.rsplit_once("</pasted_content")?;
    let closing = rest.strip_suffix('>')?;
    let single = closing.is_empty() || closing == attributes;
    if !single || inner.contains("<pasted_content") {
        return None;
    }
    let inner = PASTED_ELEMENT.replace_all(inner, "<$1");
    let command = inner.trim().strip_prefix(COMMANDS)?;
    let end = command.find(char::is_whitespace).unwrap_or(command.len());
    Some((command[..end].to_owned(), command[end..].to_owned()))
}

/// A message without the orders glued to its front. The client puts an obeyed message back into its
/// input line, and the next text typed is glued to it.
fn without_old_orders(message: &str) -> &str {
    let mut left = message.trim();
    while let Some(rest) =
        after_an_order(left).filter(|rest| rest.starts_with(COMMANDS) || rest.starts_with("crew "))
    {
        left = rest;
    }
    left
}

/// Whether the client wrote the prompt: a wake, or the end of a background task.
fn is_the_clients(prompt: &str) -> bool {
    prompt.trim_start().starts_with("<task-notification>")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_command_pasted_whole_is_found_and_anything_around_it_is_not_one() {
        let table = [
            (
                "\n\n<pasted_content id=\"5\">\n/crew:loop fix\nall\n</pasted_content>",
                Some(("loop", " fix\nall")),
            ),
            (
                "<pasted_content id=\"5\">\n/crew:loop a\n</pasted_content id=\"5\">\n",
                Some(("loop", " a")),
            ),
            ("<pasted_content id=\"5\">/crew:status</pasted_content>\n", Some(("status", ""))),
            (
                "<pasted_content id=\"5\">/crew:loop a <\\/pasted_content> b</pasted_content id=\"5\">",
                Some(("loop", " a </pasted_content> b")),
            ),
            ("<pasted_content id=\"1\">\n/other:loop a\n</pasted_content>", None),
            ("look: <pasted_content id=\"1\">\n/crew:loop a\n</pasted_content>", None),
            ("<pasted_content id=\"1\">\n/crew:loop a\n</pasted_content> thanks", None),
            ("<pasted_content id=\"1\">\n/crew:loop a\n</pasted_content id=\"2\">", None),
            ("/crew:loop a", None),
        ];
        for (prompt, expected) in table {
            let found = pasted_command(prompt);
            let found = found.as_ref().map(|(name, raw)| (name.as_str(), raw.as_str()));
            assert_eq!(found, expected, "{prompt}");
        }
    }

    #[test]
    fn what_is_glued_to_an_order_that_was_obeyed_is_what_is_meant() {
        let table = [
            ("crew cancel/crew:cancel-loop", "/crew:cancel-loop"),
            ("crew pausecrew status", "crew status"),
            ("crew pausecrew statuscrew cancel wrong branch", "crew cancel wrong branch"),
            ("crew status/crew:handoff \"half\"", "/crew:handoff \"half\""),
            ("crew pause", "crew pause"),
            ("crew pauses often", "crew pauses often"),
            ("crew cancel k3v9abcdcrew status", "crew status"),
            ("crew status k3v9abcd/crew:resume k3v9abcd", "/crew:resume k3v9abcd"),
            ("crew cancel k3v9abcd", "crew cancel k3v9abcd"),
            ("crew cancel k3v9abcd crew status", "crew cancel k3v9abcd crew status"),
            ("crew pause /crew:status", "crew pause /crew:status"),
            ("please crew pausecrew status", "please crew pausecrew status"),
        ];
        for (message, expected) in table {
            assert_eq!(without_old_orders(message), expected, "{message:?}");
        }
    }

    #[test]
    fn a_wakes_own_text_is_not_the_user() {
        assert!(is_the_clients("<task-notification>\n<summary>Stop hook feedback</summary>"));
        assert!(!is_the_clients("what is a <task-notification>?"));
    }

    proptest! {
        #[test]
        fn no_prompt_makes_the_reader_panic(prompt: String) {
            let _ = read(&prompt, false);
            let _ = read(&format!("<pasted_content {prompt}"), false);
        }
    }
}

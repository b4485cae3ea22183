//! What a person types to crew in the middle of the agent's work, as a message that is nothing else.

/// A message that is crew's to obey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    Pause,
    Status,
    Cancel { reason: Option<String> },
}

/// Reads a message; `None` for everything that is the agent's to read.
pub fn typed(message: &str) -> Option<Typed> {
    let message = message.trim();
    if message.lines().count() != 1 {
        return None;
    }
    let mut words = message.split_whitespace();
    if words.next() != Some("crew") {
        return None;
    }
    let verb = words.next()?;
    let rest: Vec<&str> = words.collect();
    match (verb, rest.is_empty()) {
        ("pause", true) => Some(Typed::Pause),
        ("status", true) => Some(Typed::Status),
        ("cancel", empty) => Some(Typed::Cancel { reason: (!empty).then(|| rest.join(" ")) }),
        _ => None,
    }
}

/// A message without the orders that stand before it with nothing between. The client puts a message that was
/// obeyed back into its input line, and what is typed next is glued to it.
pub fn without_old_orders(message: &str) -> &str {
    let mut left = message.trim();
    while let Some(rest) = ["crew pause", "crew status", "crew cancel"]
        .iter()
        .find_map(|order| left.strip_prefix(order))
        .filter(|rest| rest.starts_with("/crew:") || rest.starts_with("crew "))
    {
        left = rest;
    }
    left
}

/// Whether a prompt is the client's own: a wake, or the end of a background task.
pub fn is_the_clients(prompt: &str) -> bool {
    prompt.trim_start().starts_with("<task-notification>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_that_is_an_order_and_nothing_else_is_obeyed() {
        let cancel = |reason: &str| Some(Typed::Cancel { reason: Some(reason.to_owned()) });
        let table = [
            ("crew pause", Some(Typed::Pause)),
            (" crew  status ", Some(Typed::Status)),
            ("crew cancel", Some(Typed::Cancel { reason: None })),
            ("crew cancel wrong branch", cancel("wrong branch")),
            ("crew pause please", None),
            ("please crew pause", None),
            ("crew pause\nand then", None),
            ("Crew pause", None),
            ("crew", None),
            ("the crew cancels", None),
        ];
        for (message, expected) in table {
            assert_eq!(typed(message), expected, "{message:?}");
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
}

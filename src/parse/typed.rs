//! Messages that a person types to crew while the agent works. Only a message that consists of
//! nothing else counts.

/// A message for crew to obey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    Pause,
    Status,
    Cancel { reason: Option<String> },
}

/// Reads a message; `None` for everything that is meant for the agent.
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
}

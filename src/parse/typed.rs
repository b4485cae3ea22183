//! Messages that a person types to crew while the agent works. Only a message that consists of
//! nothing else counts. Whether a word is a loop's id, only the loops of the machine can tell.

use crate::engine::record::LoopId;

/// A message for crew to obey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    pub order: Order,
    /// The first word after it, if a loop may have it for an id. Where none has, the word is part
    /// of a reason, and a pause or a status is meant for the agent.
    pub named: Option<LoopId>,
    words: Vec<String>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Pause,
    Status,
    Cancel,
}

impl Order {
    const ALL: [Self; 3] = [Self::Pause, Self::Status, Self::Cancel];

    /// The word for it in a message and in a terminal.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Status => "status",
            Self::Cancel => "cancel",
        }
    }
}

impl Typed {
    /// The reason of a cancel; `has_id` says that its first word is a loop's id.
    pub fn reason(&self, has_id: bool) -> Option<String> {
        let words = &self.words[usize::from(has_id && self.named.is_some())..];
        (!words.is_empty()).then(|| words.join(" "))
    }
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
    let order = Order::ALL.into_iter().find(|order| order.label() == verb)?;
    let words: Vec<String> = words.map(str::to_owned).collect();
    let named = words.first().and_then(|word| word.parse().ok());
    let is_whole = words.is_empty() || order == Order::Cancel;
    (is_whole || (words.len() == 1 && named.is_some())).then_some(Typed { order, named, words })
}

/// What follows an order, and perhaps an id, at the front of a message; `None` without one.
pub fn after_an_order(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("crew ")?;
    let rest = Order::ALL.iter().find_map(|order| rest.strip_prefix(order.label()))?;
    let id = rest.strip_prefix(' ').and_then(|rest| rest.split_at_checked(ID_BYTES));
    let behind_an_id = id.filter(|(id, _)| id.parse::<LoopId>().is_ok()).map(|(_, rest)| rest);
    Some(behind_an_id.unwrap_or(rest))
}

/// The length of a loop's id.
const ID_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// An order, the id it may name, and its reason if a loop has that id and if none has.
    fn read(message: &str) -> Option<[String; 4]> {
        let typed = typed(message)?;
        let reason = |has_id| typed.reason(has_id).unwrap_or_default();
        let named = typed.named.as_ref().map(ToString::to_string).unwrap_or_default();
        Some([typed.order.label().to_owned(), named, reason(true), reason(false)])
    }

    #[test]
    fn only_a_message_that_is_an_order_and_nothing_else_is_obeyed() {
        let table = [
            ("crew pause", Some(["pause", "", "", ""])),
            (" crew  status ", Some(["status", "", "", ""])),
            ("crew cancel", Some(["cancel", "", "", ""])),
            ("crew cancel wrong branch", Some(["cancel", "", "wrong branch", "wrong branch"])),
            ("crew pause please", None),
            ("please crew pause", None),
            ("crew pause\nand then", None),
            ("Crew pause", None),
            ("crew", None),
            ("crew resume", None),
            ("the crew cancels", None),
        ];
        for (message, expected) in table {
            assert_eq!(read(message), expected.map(|it| it.map(str::to_owned)), "{message:?}");
        }
    }

    #[test]
    fn the_first_word_after_an_order_may_be_a_loops_id() {
        let id = "k3v9abcd";
        let table = [
            ("crew pause k3v9abcd", Some(["pause", id, "", id])),
            ("crew status k3v9abcd ", Some(["status", id, "", id])),
            ("crew cancel k3v9abcd", Some(["cancel", id, "", id])),
            (
                "crew cancel k3v9abcd wrong branch",
                Some(["cancel", id, "wrong branch", "k3v9abcd wrong branch"]),
            ),
            ("crew cancel the k3v9abcd", Some(["cancel", "", "the k3v9abcd", "the k3v9abcd"])),
            ("crew cancel k3v9", Some(["cancel", "", "k3v9", "k3v9"])),
            ("crew pause k3v9", None),
            ("crew pause k3v9abcd please", None),
            ("crew pause K3V9ABCD", None),
        ];
        for (message, expected) in table {
            assert_eq!(read(message), expected.map(|it| it.map(str::to_owned)), "{message:?}");
        }
    }
}

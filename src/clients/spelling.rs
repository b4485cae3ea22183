//! How a person types crew's commands: in a client as that spells them, else in a terminal.

use super::{Client, of};
use crate::engine::boundary::limits::raise;
use crate::engine::record::Loop;
use crate::engine::record::owner::Driver;

/// A command of crew's as a client spells it; where none reaches a hook, as a terminal does.
pub fn command(client: &dyn Client, name: &str) -> String {
    format!("{}{name}", client.abilities().commands.unwrap_or("crew "))
}

/// A command of crew's for whoever drives this loop.
pub fn of_loop(subject: &Loop, name: &str) -> String {
    match subject.driver() {
        Driver::Session => command(of(&subject.state.owner), name),
        Driver::Process => format!("crew {name}"),
    }
}

/// The command that goes on with a loop, in the driver it has, with what is spent raised.
pub fn going_on(subject: &Loop) -> String {
    format!("{} {}{}", of_loop(subject, "resume"), subject.id, raise(subject))
}

/// The name of a command of crew's, and the text behind it.
pub fn split<'text>(client: &dyn Client, text: &'text str) -> Option<(&'text str, &'text str)> {
    let rest = text.trim().strip_prefix(client.abilities().commands?)?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some((&rest[..end], rest[end..].trim()))
}

//! How a person types crew's commands: in a client as that client spells them, else as in a
//! terminal.

use super::{Client, of};
use crate::engine::boundary::limits::raise;
use crate::engine::record::{Driver, Loop, Outcome};

/// A crew command as a client spells it. If no command reaches a hook, it is spelled as in a
/// terminal.
pub fn command(client: &dyn Client, name: &str) -> String {
    format!("{}{name}", client.abilities().commands.unwrap_or("crew "))
}

/// A crew command for whoever drives this loop.
pub fn of_loop(subject: &Loop, name: &str) -> String {
    match subject.driver() {
        Driver::Session => command(of(&subject.state.owner), name),
        Driver::Process => format!("crew {name}"),
    }
}

/// The command that resumes a loop: by its fleet, else with its current driver and with the limits
/// raised that are reached.
pub fn going_on(subject: &Loop) -> String {
    let alone = || format!("{} {}{}", of_loop(subject, "resume"), subject.id, raise(subject));
    subject.fleet_resume().unwrap_or_else(alone)
}

/// How a loop is stopped while it runs: "crew pause k3v9abcd, crew cancel k3v9abcd".
pub fn stopping(subject: &Loop) -> String {
    let id = &subject.id;
    match subject.driver() {
        Driver::Session => format!(
            "{}, {}; in any terminal: crew cancel {id}",
            of_loop(subject, "pause"),
            of_loop(subject, "cancel-loop")
        ),
        Driver::Process => format!("crew pause {id}, crew cancel {id}"),
    }
}

/// How a loop that is over may go on, for a hint: "crew resume k3v9abcd resumes it".
pub fn way_on(subject: &Loop) -> String {
    let start = || match subject.driver() {
        Driver::Session => of_loop(subject, "loop"),
        Driver::Process => "crew run".to_owned(),
    };
    match subject.outcome() {
        Some(Outcome::Completed) => format!("start a new one with {}", start()),
        _ => format!("{} resumes it", going_on(subject)),
    }
}

/// The name of a crew command, and the text after it; `None` if the text is not one.
pub fn split<'text>(client: &dyn Client, text: &'text str) -> Option<(&'text str, &'text str)> {
    let rest = text.trim().strip_prefix(client.abilities().commands?)?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some((&rest[..end], rest[end..].trim()))
}

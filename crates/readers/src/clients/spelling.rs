//! The spelling of crew's commands as a person types them: in a client as that client spells them,
//! else as in a terminal.

use super::{Client, client_of};
use engine::boundary::limits::raise_options;
use engine::record::{Driver, Loop, Outcome, Owner};

/// A crew command as a client spells it. If no command reaches a hook, it is spelled as in a
/// terminal.
pub fn spell_command(client: &Client, name: &str) -> String {
    format!("{}{name}", client.commands.unwrap_or("crew "))
}

/// A crew command for whoever drives this loop.
pub fn of_loop(subject: &Loop, name: &str) -> String {
    match subject.driver() {
        Driver::Session => spell_command(client_of(&subject.state.owner), name),
        Driver::Process => format!("crew {name}"),
    }
}

/// The command that resumes a loop from a terminal: by its fleet, else with the reached limits
/// raised.
pub fn resume_command(subject: &Loop) -> String {
    match subject.fleet_resume() {
        Some(command) => command,
        None => format!("crew resume {}{}", subject.id, raise_options(subject)),
    }
}

/// The command that resumes a loop as it is typed where `owner` is.
pub fn resume_command_at(owner: &Owner, subject: &Loop) -> String {
    match owner.driver {
        Driver::Session => in_its_session(&resume_command(subject), subject),
        Driver::Process => resume_command(subject),
    }
}

/// The commands that stop a running loop from a terminal.
pub fn spell_stop(subject: &Loop) -> String {
    let id = &subject.id;
    format!("crew pause {id}, crew cancel {id}")
}

/// A text about a loop, with the commands of a terminal in it as they are typed in the session that
/// reads it.
pub fn in_its_session(text: &str, subject: &Loop) -> String {
    if subject.driver() == Driver::Process {
        return text.to_owned();
    }
    let id = &subject.id;
    let [resume, pause, cancel] =
        ["resume", "pause", "cancel-loop"].map(|name| of_loop(subject, name));
    text.replace(&format!("crew resume {id}"), &format!("{resume} {id}")).replace(
        &spell_stop(subject),
        &format!("{pause}, {cancel}; in any terminal: crew cancel {id}"),
    )
}

/// What a person can do with a loop that has ended, for a hint: "crew resume k3v9abcd resumes it".
pub fn next_step(subject: &Loop) -> String {
    match subject.outcome() {
        Some(Outcome::Completed) if !subject.state.git.pending_steps().is_empty() => {
            format!("{} does what is pending", resume_command(subject))
        }
        Some(Outcome::Completed) if subject.driver() == Driver::Session => {
            format!("start a new one with {}, or with crew run", of_loop(subject, "loop"))
        }
        Some(Outcome::Completed) => "start a new one with crew run".to_owned(),
        _ => format!("{} resumes it", resume_command(subject)),
    }
}

/// The name of a crew command, and the text after it; `None` if the text is not one.
pub fn split_command<'text>(client: &Client, text: &'text str) -> Option<(&'text str, &'text str)> {
    let rest = text.trim().strip_prefix(client.commands?)?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some((&rest[..end], rest[end..].trim()))
}

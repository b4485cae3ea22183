//! Keeps the machine from sleeping while a run works, with the system's own program for that. The
//! program runs as long as this process holds one end of a pipe, so it cannot outlive crew. It
//! promises no more than that program: crew counts on it only once it has started the command it
//! was given.

use std::io::{self, PipeReader, PipeWriter};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Call;
use crate::world::client;
use crate::world::clock::Deadline;

/// The programs, with the arguments each needs before the command that it runs.
const PROGRAMS: [(&str, &[&str]); 2] = [
    (
        "systemd-inhibit",
        &["--what=sleep:idle", "--who=crew", "--why=an agent is at work", "--mode=block"],
    ),
    ("caffeinate", &["-i"]),
];
/// Its parent exits at once, so that it does not descend from crew: all descendants are ended with
/// an iteration. It uses descriptor 3, because a shell replaces the standard input of a background
/// command.
const APART: &str = r#"exec 3<&0; "$@" sh -c 'echo; exec cat > /dev/null' <&3 3<&- &"#;
/// The longest wait for the program to start its command.
const WITHIN: Duration = Duration::from_secs(1);

/// Keeps the machine awake until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Awake {
    /// The name of the program that does it.
    pub by: &'static str,
    _held: PipeWriter,
}

/// Keeps the machine awake; `None` where no program can.
pub fn keep() -> Option<Awake> {
    PROGRAMS.into_iter().filter(|(program, _)| !client::on_path(program).is_empty()).find_map(
        |(program, arguments)| {
            let held = start(program, arguments).ok().flatten()?;
            Some(Awake { by: program, _held: held })
        },
    )
}

fn start(program: &str, arguments: &[&str]) -> io::Result<Option<PipeWriter>> {
    let (input, held) = io::pipe()?;
    let (word, output) = io::pipe()?;
    let call = Call::shell(APART, Path::new("/")).args(["sh", program]).args(arguments);
    let deadline = Deadline::after(WITHIN);
    let mut shell = call.spawn(input, output)?;
    let is_apart = deadline.poll(Duration::from_millis(1), || shell.try_wait().transpose());
    Ok((is_apart.is_some() && says_a_word(&word, deadline)?).then_some(held))
}

/// Whether any output comes before the end of the output and before the deadline.
fn says_a_word(output: &PipeReader, deadline: Deadline) -> io::Result<bool> {
    let left = deadline.left();
    let wait =
        Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    let comes = poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&wait))? > 0;
    Ok(comes && rustix::io::read(output, &mut [0; 1])? > 0)
}

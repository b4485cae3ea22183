//! Keeps the machine from sleeping while a run works, by the system's own program for that. It runs for as long
//! as this process holds one end of a pipe, so no death of crew can leave it; and it promises nothing that the
//! program did not: only once it runs what it was given has it the machine's word.
#![expect(
    clippy::disallowed_methods,
    reason = "a child that is no descendant, so that none of them is"
)]

use super::spawn;
use std::io::{self, PipeReader, PipeWriter};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::world::client;
use crate::world::clock::Deadline;

/// The programs, with what each wants before the command that it runs.
const PROGRAMS: [(&str, &[&str]); 2] = [
    (
        "systemd-inhibit",
        &["--what=sleep:idle", "--who=crew", "--why=an agent is at work", "--mode=block"],
    ),
    ("caffeinate", &["-i"]),
];
/// Its parent ends at once, so that it is nobody's descendant: whatever descends from crew is ended with an
/// iteration. Descriptor 3, because a shell takes the standard input of what it runs beside itself.
const APART: &str = r#"exec 3<&0; "$@" sh -c 'echo; exec cat > /dev/null' <&3 3<&- &"#;
/// The longest wait for the machine's word.
const WITHIN: Duration = Duration::from_secs(1);

/// Holds the machine awake until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Awake {
    /// The program that does it.
    pub by: &'static str,
    _held: PipeWriter,
}

/// Keeps the machine awake; `None` where no program does.
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
    let mut command = Command::new("sh");
    command.args(["-c", APART, "sh", program]).args(arguments).current_dir("/");
    command.stdin(input).stdout(output).stderr(Stdio::null());
    spawn::leave_the_terminal(&mut command);
    let deadline = Deadline::after(WITHIN);
    let mut shell = command.spawn()?;
    drop(command);
    let is_apart = deadline.poll(Duration::from_millis(1), || shell.try_wait().transpose());
    Ok((is_apart.is_some() && says_a_word(&word, deadline)?).then_some(held))
}

/// Whether something comes before the end of the output, or of the time.
fn says_a_word(output: &PipeReader, deadline: Deadline) -> io::Result<bool> {
    let left = deadline.left();
    let wait =
        Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    let comes = poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&wait))? > 0;
    Ok(comes && rustix::io::read(output, &mut [0; 1])? > 0)
}

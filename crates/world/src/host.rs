//! This machine: its identity and its last boot, without which a process id means nothing; whether
//! it can reach another machine; and keeping it awake.

use std::io::{self, PipeReader, PipeWriter};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::system::uname;

use super::process::Call;
use crate::clock::Deadline;
use crate::home::hash;
use crate::{client, terminal};
use engine::record::Host;

/// The longest id that is read.
#[cfg(target_os = "linux")]
const ID_BYTES: u64 = 256;

/// The identity of this machine and its last boot.
pub fn this_host() -> Option<Host> {
    let (machine, boot) = read_ids()?;
    // The machine id itself must not be exposed (machine-id(5)), and other programs read the
    // record.
    let machine =
        if machine.is_empty() { machine } else { hash(format!("crew {machine}").as_bytes()) };
    Some(Host { name: uname().nodename().to_string_lossy().into_owned(), machine, boot })
}

/// The ids of the machine and of its last boot. A container may lack the first, which is then
/// empty.
#[cfg(target_os = "linux")]
fn read_ids() -> Option<(String, String)> {
    let machine = read_id("/etc/machine-id").unwrap_or_default();
    Some((machine, read_id("/proc/sys/kernel/random/boot_id")?))
}

#[cfg(target_os = "linux")]
fn read_id(file: &str) -> Option<String> {
    let text = super::files::disk::read_text(file.as_ref(), ID_BYTES).ok()??;
    Some(text.trim().to_owned())
}

#[cfg(not(target_os = "linux"))]
fn read_ids() -> Option<(String, String)> {
    let arguments = ["-n", "kern.uuid", "kern.bootsessionuuid"];
    let output = super::process::output_of("sysctl", &arguments)?;
    let mut lines = output.lines().map(|line| line.trim().to_owned());
    Some((lines.next()?, lines.next()?))
}

// Whether a machine can be reached: one connection, which is closed at once. Nothing is sent or
// read.

/// The maximum number of addresses of one name tried.
const ADDRESSES_MAX: usize = 4;

/// Connects to a port within this time; the error is the reason for a failure.
pub fn connect_within(host: &str, port: u16, within: Duration) -> io::Result<()> {
    let place = (host.to_owned(), port);
    let (sender, receiver) = channel();
    // The system looks a name up without a deadline. The thread ends with the process.
    thread::spawn(move || sender.send(open_connection(&place, within)));
    let late = io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
    receiver.recv_timeout(within).unwrap_or(Err(late))
}

fn open_connection(place: &(String, u16), within: Duration) -> io::Result<()> {
    let mut last = io::Error::other("the name has no address");
    for address in place.to_socket_addrs()?.take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&address, within) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

// Keeps the machine from sleeping during a run, with the system's own program for that. The program
// runs as long as this process holds one end of a pipe, so it cannot outlive crew. crew relies on
// it only once it has started the command it was given.

/// The programs that keep a machine awake, with the arguments each needs before the command that it
/// runs.
const PROGRAMS: [(&str, &[&str]); 2] = [
    (
        "systemd-inhibit",
        &["--what=sleep:idle", "--who=crew", "--why=an agent is at work", "--mode=block"],
    ),
    ("caffeinate", &["-i"]),
];
/// Starts the program so that it does not descend from crew, which ends all descendants with an
/// iteration: its parent exits at once. It uses descriptor 3, because a shell replaces the standard
/// input of a background command.
const APART: &str = r#"exec 3<&0; "$@" sh -c 'echo; exec cat > /dev/null' <&3 3<&- &"#;
/// The longest wait for the program to start its command.
const WITHIN: Duration = Duration::from_secs(1);

/// Keeps the machine awake until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Awake {
    _held: PipeWriter,
}

/// Keeps the machine awake, and names the program that does so; `None` if none can.
pub fn keep_awake() -> Option<(&'static str, Awake)> {
    for (program, arguments) in PROGRAMS {
        if !client::on_path(program).is_empty()
            && let Ok(Some(held)) = start_awake(program, arguments)
        {
            return Some((program, Awake { _held: held }));
        }
    }
    None
}

fn start_awake(program: &str, arguments: &[&str]) -> io::Result<Option<PipeWriter>> {
    let (input, held) = io::pipe()?;
    let (word, output) = io::pipe()?;
    let call = Call::shell(APART, Path::new("/")).args(["sh", program]).args(arguments);
    let deadline = Deadline::after(WITHIN);
    let mut shell = call.spawn(input, output)?;
    let is_apart = deadline.poll(Duration::from_millis(1), || shell.try_wait().transpose());
    Ok((is_apart.is_some() && says_a_word(&word, deadline)?).then_some(held))
}

/// Whether the program prints anything before the end of its output and before the deadline.
fn says_a_word(output: &PipeReader, deadline: Deadline) -> io::Result<bool> {
    Ok(terminal::input_comes(output, deadline.left())?
        && rustix::io::read(output, &mut [0; 1])? > 0)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[test]
    fn a_port_with_a_listener_accepts_a_connection() {
        let (_listener, port) = listen();
        connect_within("127.0.0.1", port, Duration::from_secs(30)).unwrap();
    }

    #[test]
    fn a_port_without_a_listener_refuses_a_connection() {
        // A child that another test starts has a copy of the listener until it runs its program,
        // and another test may get the released port: one of a few ports must refuse.
        let refused = (0..20).any(|_| {
            let (listener, port) = listen();
            drop(listener);
            let answer = connect_within("127.0.0.1", port, Duration::from_secs(30));
            answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        });
        assert!(refused, "twenty ports that nobody listens on accepted a connection");
    }
}

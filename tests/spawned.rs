//! A child of a test: in a separate session, as the client starts its hooks, with its output read
//! as it arrives. It is ended by its own group at a deadline or with the test, never by a name, and
//! it never sees the terminal or the standard input of the test run.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

const POLL: Duration = Duration::from_millis(5);

/// The results of a child.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The exit code; a child ended by a signal fails the test.
    #[track_caller]
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    /// The child's standard output, if it exited with 0; otherwise the test fails.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert!(self.status.success(), "{self:#?}");
        self.stdout
    }
}

/// A running child. Dropping it kills its group.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    reaped: bool,
    stdout: Stream,
    stderr: Stream,
}

impl Running {
    /// Starts `command` in a new session. With `input` its standard input is a socket, as a hook's
    /// is; without, it is empty.
    pub(crate) fn start(mut command: Command, input: Option<Vec<u8>>) -> Self {
        let ours = input.map(|bytes| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            command.stdin(Stdio::from(OwnedFd::from(theirs)));
            (ours, bytes)
        });
        if ours.is_none() {
            command.stdin(Stdio::null());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        in_new_session(&mut command);
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        // The command still holds their end of the socket.
        drop(command);
        if let Some((mut socket, bytes)) = ours {
            // A child that does not read its input is free to exit first.
            std::thread::spawn(move || socket.write_all(&bytes).ok());
        }
        let stdout = Stream::read(child.stdout.take().unwrap());
        let stderr = Stream::read(child.stderr.take().unwrap());
        Self { child, reaped: false, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its standard output so far.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Whether it has ended, without waiting for its output.
    pub(crate) fn has_ended(&self) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()), options).is_ok_and(|ended| ended.is_some())
    }

    /// Its standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Sends a signal to the child alone, not to its group.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for its end and the end of its output; past the deadline its group is killed and the
    /// test fails with what it had written.
    #[track_caller]
    pub(crate) fn wait(mut self, deadline: Duration) -> Ran {
        let end = Instant::now() + deadline;
        let mut status = None;
        while Instant::now() < end {
            if status.is_none() {
                status = self.child.try_wait().unwrap();
                self.reaped = status.is_some();
            }
            if let Some(status) = status.filter(|_| self.stdout.ended() && self.stderr.ended()) {
                return Ran { status, stdout: self.stdout.text(), stderr: self.stderr.text() };
            }
            std::thread::sleep(POLL);
        }
        // The child itself has ended, but a process of its group still holds its output open.
        kill_process_group(self.pid(), Signal::KILL).ok();
        panic!(
            "not over after {deadline:?} (exit: {status:?})\nstdout: {}\nstderr: {}",
            self.stdout.text(),
            self.stderr.text()
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            kill_process_group(self.pid(), Signal::KILL).ok();
            self.child.wait().ok();
        }
    }
}

#[derive(Debug)]
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn read(mut source: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = source.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self { bytes, reader }
    }

    fn ended(&self) -> bool {
        self.reader.is_finished()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }
}

#[expect(unsafe_code, reason = "std has no safe way to start a child in a session of its own")]
pub(crate) fn in_new_session(command: &mut Command) {
    // SAFETY: setsid is async-signal-safe, and the closure neither allocates nor locks.
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(drop).map_err(std::io::Error::from));
    }
}

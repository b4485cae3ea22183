//! One measured call: a child in a separate session, as the client starts its hooks, with its input
//! already waiting. The time runs from before its start to its end; nothing else is done meanwhile.

use std::collections::BTreeMap;
use std::io::{PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A call to make.
#[derive(Debug, Clone)]
pub struct Call {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub input: String,
    pub folder: PathBuf,
    pub environment: BTreeMap<String, String>,
}

/// The result of a call.
#[derive(Debug)]
pub struct Told {
    pub elapsed: Duration,
    /// Everything it printed, on both streams.
    pub output: String,
    pub success: bool,
}

impl Call {
    /// The same call through another program, which gets this one as its arguments.
    pub fn through(&self, program: &Path, options: &[&str]) -> Self {
        let mut arguments: Vec<String> = options.iter().map(|&option| option.into()).collect();
        arguments.push(self.program.display().to_string());
        arguments.extend(self.arguments.iter().cloned());
        Self { program: program.into(), arguments, ..self.clone() }
    }

    pub fn run(&self) -> Told {
        together(std::slice::from_ref(self)).remove(0)
    }

    /// Starts it and returns without waiting.
    pub fn start(&self) -> Running {
        let (mut command, reader) = self.prepare();
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        drop(command);
        Running { child, reader }
    }

    fn prepare(&self) -> (Command, PipeReader) {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        // A payload is far smaller than the socket's buffer.
        ours.write_all(self.input.as_bytes()).unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stderr(writer.try_clone().unwrap())
            .stdout(writer);
        in_new_session(&mut command);
        (command, reader)
    }
}

/// Starts all calls, then waits for each in turn. Each time is from the first start.
pub fn together(calls: &[Call]) -> Vec<Told> {
    let prepared: Vec<_> = calls.iter().map(Call::prepare).collect();
    let begin = Instant::now();
    let running: Vec<Running> = prepared
        .into_iter()
        .map(|(mut command, reader)| {
            let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
            Running { child, reader }
        })
        .collect();
    running.into_iter().map(|running| running.finish(begin)).collect()
}

/// A running call.
#[derive(Debug)]
pub struct Running {
    child: Child,
    reader: PipeReader,
}

impl Running {
    /// Asks for its end.
    pub fn ask_to_end(&self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }

    /// Ends it as the client does, and waits for it.
    pub fn end(self) -> Told {
        self.ask_to_end();
        self.finish(Instant::now())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end. Its time is from `begin`.
    pub fn finish(mut self, begin: Instant) -> Told {
        let mut output = String::new();
        self.reader.read_to_string(&mut output).unwrap();
        let status = self.child.wait().unwrap();
        Told { elapsed: begin.elapsed(), output, success: status.success() }
    }
}

#[expect(unsafe_code, reason = "std has no safe way to start a child in a session of its own")]
fn in_new_session(command: &mut Command) {
    // SAFETY: setsid is async-signal-safe, and the closure neither allocates nor locks.
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(drop).map_err(std::io::Error::from));
    }
}

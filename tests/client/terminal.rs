//! The client in a terminal: a tmux server on the test's own socket, ended with the test. The test
//! reads the screen and presses keys, as a user does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};

use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::Running;

/// An Enter that follows text faster than this is treated as part of a paste.
const TYPIST: Duration = Duration::from_millis(600);
/// The prompt of a client's input line.
const PROMPT: &str = "❯";
/// Runs a program and outlives it, even if Ctrl-C is pressed.
const OUTLIVE: &str = "trap : INT; \"$0\" \"$@\"; sleep 600";
/// How long a client may take to end when its terminal is closed.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Terminal<'world> {
    sandbox: &'world Sandbox,
    socket: PathBuf,
    client: Pid,
}

impl<'world> Terminal<'world> {
    pub(super) fn open(sandbox: &'world Sandbox, client: &Command) -> Self {
        let terminal = Self::start(sandbox, client);
        terminal.wait_for_text(PROMPT);
        terminal
    }

    /// Opens a terminal with any other program.
    pub(crate) fn start(sandbox: &'world Sandbox, client: &Command) -> Self {
        // Some systems limit a socket's path: nothing longer than this below the root.
        let socket = sandbox.root().join("t");
        let mut tmux = tmux_command(sandbox, &socket);
        tmux.envs(client.get_envs().filter_map(|(name, value)| Some((name, value?))));
        tmux.args("-u -f /dev/null new-session -d -x 150 -y 45 -P -F #{pane_pid}".split(' '));
        tmux.arg(client.get_program()).args(client.get_args());
        // What tmux has read of the last screen is still there when the client has ended.
        tmux.args([";", "set-option", "-g", "remain-on-exit", "on"]);
        // The process in it identifies the new session.
        let printed = Running::start(tmux, None).wait(DEADLINE).success();
        let client = printed.trim().parse().ok().and_then(Pid::from_raw).unwrap();
        Self { sandbox, socket, client }
    }

    /// Opens a terminal with a program that ends. When the process of a terminal ends, tmux drops
    /// what it has not read yet, so here that process is a shell.
    pub(crate) fn start_in_shell(sandbox: &'world Sandbox, program: &Command) -> Self {
        let mut shell = sandbox.command("sh");
        shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.args(["-c", OUTLIVE]).arg(program.get_program()).args(program.get_args());
        Self::start(sandbox, &shell)
    }

    /// The current screen.
    pub(crate) fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p"])
    }

    /// The current screen with its colours.
    #[cfg(target_os = "linux")]
    pub(crate) fn coloured_screen(&self) -> String {
        self.ask(&["capture-pane", "-e", "-p"])
    }

    /// The screen with everything that has scrolled out of it.
    pub(crate) fn scrollback(&self) -> String {
        self.ask(&["capture-pane", "-p", "-S", "-"])
    }

    /// Waits until the screen shows `text`; the failure shows the screen instead.
    #[track_caller]
    pub(crate) fn wait_for_text(&self, text: &str) {
        self.wait_for_screen(text, |screen| screen.contains(text));
    }

    #[track_caller]
    pub(crate) fn wait_for_screen(&self, expected: &str, mut is_so: impl FnMut(&str) -> bool) {
        let mut last = String::new();
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            poll_until(expected, || {
                last = self.screen();
                is_so(&last)
            });
        }));
        assert!(looked.is_ok(), "the screen does not show {expected}:\n{last}");
    }

    /// From now on also writes every byte of the program's output to this file.
    pub(crate) fn tap(&self) -> PathBuf {
        let file = self.sandbox.root().join("tmp/bytes");
        self.ask(&["pipe-pane", "-o", &format!("cat > '{}'", file.display())]);
        file
    }

    /// Types text until the program's input line shows it: a busy client reads text and the Enter
    /// after it at once, and treats both as a paste.
    #[track_caller]
    pub(crate) fn type_text(&self, text: &str) {
        self.ask(&["send-keys", "-l", "--", text]);
        let joined = |text: &str| text.split_whitespace().collect::<String>();
        self.wait_for_screen(text, |screen| {
            let input = screen.rsplit(PROMPT).next().unwrap_or_default();
            joined(input).contains(&joined(text))
        });
    }

    /// Pastes, in the brackets a terminal puts around pasted text.
    pub(crate) fn paste(&self, text: &str) {
        let file = self.sandbox.root().join("tmp/paste");
        std::fs::write(&file, text).unwrap();
        self.ask(&["load-buffer", "-b", "crew", &file.display().to_string()]);
        self.ask(&["paste-buffer", "-p", "-d", "-b", "crew"]);
    }

    pub(crate) fn enter(&self) {
        std::thread::sleep(TYPIST);
        self.key("Enter");
    }

    pub(crate) fn escape(&self) {
        self.key("Escape");
    }

    /// Presses any other key, by tmux's name: `C-c`, `C-u`, `Up`.
    pub(crate) fn key(&self, name: &str) {
        self.ask(&["send-keys", name]);
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.ask(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// The client's process.
    pub(crate) fn pid(&self) -> Pid {
        self.client
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let mut command = self.tmux();
        command.args(arguments);
        Running::start(command, None).wait(DEADLINE).success()
    }

    fn tmux(&self) -> Command {
        tmux_command(self.sandbox, &self.socket)
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = self.tmux();
        command.arg("kill-server");
        // The client may already have ended it.
        drop(Running::start(command, None).wait(DEADLINE));
        // At its end the client writes into its home, which is about to be removed.
        let end = Instant::now() + FAREWELL;
        while test_kill_process(self.client).is_ok() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn tmux_command(sandbox: &Sandbox, socket: &Path) -> Command {
    let mut command = sandbox.command(installed("tmux").unwrap());
    command.env_clear().env("LANG", "C.UTF-8").env("TERM", "xterm-256color");
    command.arg("-S").arg(socket);
    command
}

/// A program from the `PATH` of the test run.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

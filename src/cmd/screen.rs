//! A terminal that is used as a whole: it is raw while something draws on it, and restored however
//! that ends, also after an error or a panic.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, KeyEvent, KeyEventKind};
use ratatui::{DefaultTerminal, Frame};

use world::env;

/// A whole terminal and its keys.
#[derive(Debug)]
pub struct FullScreen {
    terminal: DefaultTerminal,
    keys: Receiver<KeyEvent>,
}

impl FullScreen {
    /// Whether there is a terminal that can be used as a whole.
    pub fn is_possible() -> bool {
        let is_smart = env::text("TERM").is_some_and(|term| term != "dumb");
        io::stdin().is_terminal() && io::stdout().is_terminal() && is_smart
    }

    /// Takes the terminal. A panic restores it before its message is printed.
    pub fn open() -> io::Result<Self> {
        Ok(Self { terminal: ratatui::try_init()?, keys: read_keys() })
    }

    /// Its columns and rows.
    pub fn size(&self) -> io::Result<(usize, usize)> {
        let size = self.terminal.size()?;
        Ok((size.width.into(), size.height.into()))
    }

    /// Draws a frame; only what changed is written.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// The next key within `wait`; `None` without one.
    pub fn next_key(&self, wait: Duration) -> io::Result<Option<KeyEvent>> {
        match self.keys.recv_timeout(wait) {
            Ok(key) => Ok(Some(key)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the terminal is gone")),
        }
    }
}

/// Reads the keys in a separate thread, which ends with the process: the library never returns from
/// reading a terminal that is gone, and the board must.
fn read_keys() -> Receiver<KeyEvent> {
    let (sender, keys) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            let key = event.as_key_event().filter(|key| key.kind != KeyEventKind::Release);
            if key.is_some_and(|key| sender.send(key).is_err()) {
                return;
            }
        }
    });
    keys
}

/// Restores the terminal. A panic has done that already, and a second time would move the cursor
/// into its message.
impl Drop for FullScreen {
    fn drop(&mut self) {
        if !thread::panicking() {
            ratatui::restore();
        }
    }
}

//! What a run does with its terminal beside printing: its title, and notices. Without a terminal
//! there is none of this. The user's own title comes back when the run ends, however it ends.

use crate::cmd::print;
use crate::engine::events::RunEvent;
use crate::report::attention::{KEEP_TITLE, RESTORE_TITLE, Title, notice, of_event};
use crate::world::{clock, env};

/// The title and whether it is shown.
#[derive(Debug, Default)]
pub struct Attention {
    title: Title,
    /// The title the terminal was last given; `None` while it shows its own.
    shown: Option<String>,
    is_wanted: bool,
}

impl Attention {
    /// For this terminal; `None` if it takes no such codes.
    pub fn of_terminal() -> Option<Self> {
        notice("", &env::text).map(|_| Self::default())
    }

    /// Applies an event. Nothing is shown before the loop's own settings are known.
    pub fn on_event(&mut self, event: &RunEvent<'_>) {
        if let RunEvent::Started(record) | RunEvent::Resumed(record) = event {
            self.is_wanted = !record.contract.silent;
        }
        self.title.on_event(event);
        if !self.is_wanted {
            return;
        }
        if let Some(told) = of_event(event, clock::local()).and_then(|it| notice(&it, &env::text)) {
            print::codes(&told);
        }
        if matches!(event, RunEvent::Finished { .. }) {
            self.is_wanted = false;
            self.restore();
        } else {
            self.show();
        }
    }

    fn show(&mut self) {
        let code = self.title.code();
        if self.shown.is_none() {
            print::codes(KEEP_TITLE);
        }
        if self.shown.as_ref() != Some(&code) {
            print::codes(&code);
            self.shown = Some(code);
        }
    }

    fn restore(&mut self) {
        if self.shown.take().is_some() {
            print::codes(RESTORE_TITLE);
        }
    }
}

impl Drop for Attention {
    fn drop(&mut self) {
        self.restore();
    }
}

//! Whose attempt it is: whether a process lives can be told on its own machine alone. Elsewhere it
//! counts as gone once its lease stands still.

use crate::engine::fleet::Attempt;
use crate::world::clock::Stopwatch;
use crate::world::fault;
use crate::world::host;
use crate::world::store::{Home, hash};

/// How long a lease stands still before its attempt counts as gone: five heartbeats, on this
/// machine's own clock while it is awake.
const STALE_MS: u64 = 5 * 60 * 1000;

/// What names this machine since it was started, and this home.
pub fn seat(home: &Home) -> String {
    // Containers of one machine share all but their names.
    let host = host::host().map(|it| format!("{} {} {}", it.name, it.machine, it.boot));
    let seat = format!("{} {}", host.unwrap_or_default(), home.root().display());
    hash(seat.as_bytes())[..16].to_owned()
}

/// Whether an attempt's process can be looked at from here.
pub fn is_here(home: &Home, attempt: &Attempt) -> bool {
    attempt.seat == seat(home)
}

/// The most milliseconds that count between two looks. In a longer gap the remote was away, and its
/// writer could not have moved it either.
const GAP_MS: u64 = 30_000;

/// How long something has had the same value.
#[derive(Debug, Default)]
pub struct Stillness {
    last: Option<(String, Stopwatch)>,
    /// For how many milliseconds it was looked at since it last changed.
    still_ms: u64,
    moves: u32,
}

impl Stillness {
    /// Whether it has had this value for so long that its writer is gone.
    pub fn is_stale(&mut self, value: &str) -> bool {
        match &self.last {
            Some((last, since)) if last == value => {
                self.still_ms += since.elapsed_ms().min(GAP_MS);
            }
            _ => (self.still_ms, self.moves) = (0, self.moves + 1),
        }
        self.last = Some((value.to_owned(), Stopwatch::start()));
        self.still_ms >= fault::stale_ms(STALE_MS)
    }

    /// Whether the value has changed since it was first looked at.
    pub fn has_moved(&self) -> bool {
        self.moves > 1
    }
}

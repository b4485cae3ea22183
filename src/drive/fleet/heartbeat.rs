//! The heartbeat of an attempt whose lease other machines read, also during a long iteration. An
//! attempt that finds its lease in other hands ends its own loop: what it does now is for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::memory::Memory;
use super::tie::{FENCED, own};
use crate::engine::fleet::{FleetRequest, TaskId};
use crate::engine::record::{Actor, LoopId};
use crate::world::clock::{self, Stopwatch};
use crate::world::process::descendants;
use crate::world::store::{self, Home};

/// Milliseconds between two beats.
const BEAT_MS: u64 = 60_000;
/// Between two looks whether the attempt is over.
const LOOK: Duration = Duration::from_millis(200);

/// Beats until it is dropped.
pub struct Heartbeat(Arc<AtomicBool>);

impl Heartbeat {
    /// Begins; `None` where no other machine reads the lease.
    pub fn start(home: &Home, memory: &Memory, task: &TaskId, attempt: &str) -> Option<Self> {
        if !memory.is_shared() {
            return None;
        }
        let over = Arc::new(AtomicBool::new(false));
        let heartbeat = Self(Arc::clone(&over));
        let (home, memory) = (home.clone(), memory.clone());
        let (task, attempt) = (task.clone(), attempt.to_owned());
        // git dies with the thread that started it, so this one stays for as long as it beats.
        thread::spawn(move || {
            let (mut last, mut own_loop) = (Stopwatch::start(), None);
            while !over.load(Ordering::Relaxed) {
                if last.elapsed_ms() >= BEAT_MS {
                    last = Stopwatch::start();
                    let beat = || beat(&home, &memory, &task, &attempt, &mut own_loop);
                    descendants::beside(beat);
                }
                clock::sleep(LOOK);
            }
        });
        Some(heartbeat)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One beat. A remote that does not answer is asked again at the next one.
fn beat(home: &Home, memory: &Memory, task: &TaskId, attempt: &str, own_loop: &mut Option<LoopId>) {
    let beaten = memory.change(task, |lease| {
        let is_ours = own(lease, attempt).is_some();
        if is_ours {
            lease.at = clock::now().wall;
        }
        is_ours
    });
    let Ok(kept) = beaten else { return };
    if let Some(found) = kept.value.attempt().filter(|found| found.id == attempt) {
        own_loop.clone_from(&kept.value.loop_id);
        if let (true, Some(id)) = (found.rests(), &kept.value.loop_id) {
            wake(home, memory, task, id);
        }
    } else if let Some(id) = own_loop {
        let _ = store::order_cancel(home, id, Actor::User, Some(FENCED));
    }
}

/// Passes an order of the fleet on to a loop that rests, and would only ask after that.
fn wake(home: &Home, memory: &Memory, task: &TaskId, id: &LoopId) {
    let Ok(fleet) = memory.manifest() else { return };
    let Some(order) = fleet.value.order_of(task) else { return };
    let _ = match order.what {
        FleetRequest::Pause => store::order_pause(home, id, order.by, true),
        FleetRequest::Cancel => store::order_cancel(home, id, order.by, order.reason.as_deref()),
    };
}

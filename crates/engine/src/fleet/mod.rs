//! What the other rooms know of fleets: the tasks, what an attempt carries over to the next one,
//! why a landing is refused, and the queue for the slots of a machine.

pub mod refusal;
pub mod slots;
pub mod task;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;

pub use self::refusal::{INCLUDE, Refusal, refusal_evidence, touches_the_fleet, without_markers};
pub use self::slots::{Pace, SlotCount};
pub use self::task::{FleetTask, LandingMode, Remote, TaskId};
pub use super::record::Carried;

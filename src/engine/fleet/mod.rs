//! Many loops at once, as values: a fleet and its tasks, the lease that holds each task, and what
//! may start next. Nothing here knows where a lease is kept or what runs a job.

pub mod events;
pub mod landing;
pub mod lease;
pub mod manifest;
pub mod overlap;
pub mod plan;
mod rows;
pub mod slots;
pub mod standing;
pub mod stored;
pub mod task;
pub mod way_out;

#[cfg(test)]
pub mod fixture;

pub use self::events::FleetEvent;
pub use self::landing::{INCLUDE, Refusal, evidence, touches_the_fleet, without_markers};
pub use self::lease::{Attempt, Carried, JobPhase, Landed, Lease, TaskEnding, TaskState};
pub use self::manifest::{Fleet, FleetOrder, FleetRequest, LOCAL, LandingMode, Remote, TypedTerms};
pub use self::overlap::overlap;
pub use self::plan::{FleetPlan, Places, Start, WaitsFor};
pub use self::slots::{Pace, SlotCount};
pub use self::standing::{Standing, StandingCounts, StandingGroup, StandingNews, StandingRow};
pub use self::stored::{RecordFault, StoredRecord, UnreadableLease};
pub use self::task::{FleetTask, FleetTerms, TaskId};

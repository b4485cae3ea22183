//! Many loops at once, as values: a fleet and its tasks, the lease that holds each task, and what
//! may start next. Nothing here knows where a lease is kept or what runs a job.

pub mod events;
pub mod lease;
pub mod manifest;
pub mod plan;
pub mod refusal;
pub mod slots;
pub mod standing;

#[cfg(test)]
pub mod fixture;

pub use self::events::{FleetEvent, TaskEvent};
pub use self::lease::{Attempt, Carried, JobPhase, Landed, Lease, TaskEnding, TaskState};
pub use self::manifest::{Fleet, FleetOrder, FleetRequest, LandingMode, Remote, TypedTerms};
pub use self::manifest::{FleetTask, FleetTerms, TaskId};
pub use self::manifest::{RecordFault, UnreadableLease};
pub use self::plan::{FleetPlan, Start, WaitsFor, overlap};
pub use self::refusal::{INCLUDE, Refusal, evidence, touches_the_fleet, without_markers};
pub use self::slots::{Pace, SlotCount};
pub use self::standing::{Standing, StandingCounts, StandingGroup, StandingNews, StandingRow};

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

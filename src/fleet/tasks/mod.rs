//! Reads a folder of tasks as the user writes it: what it says, what the user has to trust in it,
//! and the contract of each task. It writes nothing and contacts no remote.

mod describe;
#[cfg(test)]
mod describe_tests;
#[cfg(test)]
pub mod fixture;
#[cfg(test)]
mod fleet_file_tests;
mod folder;
mod front_matter;
mod options;
pub mod plan_page;
#[cfg(test)]
mod properties;
#[cfg(test)]
pub mod schema_tests;
#[cfg(test)]
mod tests;
pub mod trust;

pub use self::describe::{DescribedFleet, describe_fleet};

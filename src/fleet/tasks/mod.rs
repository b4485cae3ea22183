//! A folder of tasks, as a person writes it: what it says, what of it a person has to trust, and
//! the contract of each task. It writes nothing and asks no remote.

mod describe;
#[cfg(test)]
mod describe_tests;
mod faults;
#[cfg(test)]
pub mod fixture;
#[cfg(test)]
mod fleet_file_tests;
mod folder;
mod front_matter;
mod options;
#[cfg(test)]
mod properties;
#[cfg(test)]
pub mod schema_tests;
#[cfg(test)]
mod tests;
pub mod trust;

pub use self::describe::{describe_fleet, refuse_other_fleet, refuse_other_folder};
use super::record::FleetSetup;
use super::step::DescribedTask;
use readers::parse::settings::trust::TrustRequest;

/// A fleet as its folder describes it.
#[derive(Debug)]
pub struct DescribedFleet {
    pub setup: FleetSetup,
    /// In the order in which they start.
    pub tasks: Vec<DescribedTask>,
    /// Files of the folder that are not tasks.
    pub left_out: Vec<String>,
    /// What the user should know: one sentence each.
    pub notes: Vec<String>,
    /// The texts that need a person's trust and do not have it yet.
    pub untrusted: Vec<TrustRequest>,
}

//! The process driver: every iteration is a fresh process of the agent's command line, so its
//! context is always clean, and only crew keeps running. It repeats until the record says that the
//! loop is over or paused. It judges no iteration: the boundary does, as in a session.

mod attempt;
mod driver;
mod git;
mod ledger;
mod machine;
mod ports;
mod step;

pub use self::attempt::who_worked;
pub use self::driver::{drive_loop, hand_over, take_record};
pub use self::git::settle_steps;
pub use self::ports::{Admission, IterationGate};

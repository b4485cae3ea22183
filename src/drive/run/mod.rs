//! The process driver: every iteration is a fresh process of the agent's command line, so its
//! context is always clean, and crew is what lasts. It repeats until the record says that the loop
//! is over or paused. It judges no iteration: the boundary does, as in a session.

mod actors;
mod attempt;
mod changes;
mod driver;
mod git;
mod hand_over;
mod ledger;
mod machine;
mod ports;
mod reactions;
mod step;

pub use self::attempt::who_worked;
pub use self::driver::drive_loop;
pub use self::git::settle_steps;
pub use self::hand_over::{hand_over, take_record};
pub use self::ports::{Admission, IterationGate};

//! Starts a child in a separate session, waits with a deadline, keeps a bounded part of its output,
//! and leaves none of its processes behind. It reports how the child ended and never judges that.

pub mod agent;
pub mod awake;
mod call;
pub mod children;
pub mod descendants;
mod feed;
pub mod groups;
pub mod identity;
pub mod lines;
mod output;
#[cfg(test)]
pub mod own_process;
mod pipes;
mod runner;
pub mod signals;
pub mod spawn;
pub mod table;

#[cfg(not(target_os = "linux"))]
pub use self::call::output_of;
pub use self::call::{Call, Capture, EachLine, ExitCause, FinishedProcess, Stop};
pub use self::feed::Watch;
pub use self::pipes::Stream;
pub use self::runner::StopRequest;

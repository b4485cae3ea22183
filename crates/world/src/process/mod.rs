//! Starts child processes in separate sessions, waits with a deadline, keeps a bounded part of
//! their output, and leaves none of their processes behind. It reports how a child ended and never
//! judges that.
#![expect(clippy::disallowed_methods, reason = "this is the one door to processes")]

mod call;
pub mod descendants;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod groups;
pub mod identity;
mod output;
pub mod signals;

#[cfg(not(target_os = "linux"))]
pub use self::call::output_of;
pub use self::call::{CLOSED, Call, ExitCause, FinishedAgent, FinishedProcess, Stop, StopRequest};
pub use self::output::{Capture, ERRORS_MARK, LineCutter, LinePiece, Stream, Watch};

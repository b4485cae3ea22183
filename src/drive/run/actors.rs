//! The ports of a run that act for it: they change its record, and report what they do.

use std::path::Path;

use super::ledger::Ledger;
use super::ports::{IterationGate, IterationRun};
use crate::drive::prompt::Prompt;
use engine::record::{Ending, Loop, Place, Run};
use readers::agents::Launch;

/// The gate of a fleet; `None` for a run that a person typed.
pub type KnownGate<'a> = Option<&'a dyn IterationGate>;
/// A prompt and the command line that carries it, or why there is none.
pub type PreparedAgent = Result<(Prompt, Launch), String>;

/// The loop's working tree and its repository.
pub trait Workspace {
    /// Why its folder is missing.
    fn missing_reason(&self, place: &Place) -> Option<String>;
    /// How a loop ends whose repository is lost. It is known before the end is recorded, so that no
    /// page of a finished loop omits it.
    fn lost_ending(&self, record: &Loop) -> Option<Ending>;
    /// Takes what a person changed while no agent was at work as the loop found it.
    fn follow_person(&self, ledger: &mut Ledger<'_>);
    /// Names the state of a tree in which nobody works.
    fn close(&self, record: &Loop);
    fn is_closed(&self, record: &Loop) -> bool;
    /// Commits and pushes, and crosses that out. Ends a loop whose repository is lost.
    fn keep_work(&mut self, ledger: &mut Ledger<'_>, commits: bool, pushes: bool);
    /// Rebases the branch onto another that moved. False when that needs a person and has ended the
    /// loop. A gate knows where the branch was before, and what becomes of a conflict.
    fn rebase(&self, ledger: &mut Ledger<'_>, onto: &str, gate: KnownGate<'_>) -> bool;
}

/// Starts agents.
pub trait AgentRunner {
    /// The prompt of this iteration, and the command line that carries it.
    fn prepare(&self, record: &Loop, run: &Run, handoff: Option<&Path>) -> PreparedAgent;
    /// Starts the agent and watches it to its end.
    fn run(&self, ledger: &Ledger<'_>, run: &Run, asked: (&str, &Launch)) -> IterationRun;
}

//! The fixed parts of a loop that runs in fresh processes, besides the task, promise, checks and
//! limits of its contract: the agent, the recipe of its prompts, and the steps around an iteration.
//! A running loop never takes them from the settings again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Loop;
use super::agent::{Agent, Permissions};
use crate::engine::text::word;

/// The process driver's part of the contract.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The procedure it was started with; `None` for a task.
    pub procedure: Option<String>,
    pub agent: Agent,
    /// The agents that stand in for it while its account is at a limit, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<Agent>,
    pub permissions: Permissions,
    /// The model requested from the agent; `None` leaves the choice to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name of the account whose limits it shares; `None` stands for the agent's program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Arguments after the agent's own: the words that a person typed after `--`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    pub recipe: Recipe,
    pub pace: IterationTimes,
    /// The most turns of the agent in one iteration; 0 means no limit.
    pub max_turns: u32,
    /// The tokens of a prompt above which crew warns; 0 means never.
    pub token_budget: u64,
    /// The percentage of its context after which an iteration is followed by a handoff page; 0
    /// means never.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub redline: u8,
    pub git: GitSteps,
    pub reactions: Vec<Reaction>,
    /// Lets the machine sleep while the loop works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_sleep: bool,
}

impl Loop {
    /// How full the last iteration's context was, if that passed the run's redline.
    pub fn past_redline(&self) -> Option<u8> {
        let redline = self.contract.run.as_ref()?.redline;
        let percent = self.state.evidence.as_ref()?.context_percent?;
        (redline > 0 && percent >= redline).then_some(percent)
    }
}

/// A phase of one iteration, in the order of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Context,
    Observe,
    Orient,
    Decide,
    /// Takes the place of the task if there is none.
    Act,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Self; 5] =
        [Self::Context, Self::Observe, Self::Orient, Self::Decide, Self::Act];

    /// The word used in files, options and, in capitals, as a heading of a prompt.
    pub fn label(self) -> &'static str {
        word(&self)
    }
}

/// The parts of a prompt besides the task: the fragments of each phase, in the order given. A phase
/// without any may be absent or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recipe(pub BTreeMap<Phase, Vec<Fragment>>);

impl Recipe {
    /// The fragments of a phase.
    pub fn of(&self, phase: Phase) -> &[Fragment] {
        self.0.get(&phase).map_or(&[], Vec::as_slice)
    }
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fragment {
    /// A person's words, byte for byte.
    Text(String),
    /// An absolute path, read again for every iteration: a template if its name ends in `.j2`,
    /// else literal.
    File(PathBuf),
    /// One of crew's own templates, by name.
    BuiltIn(String),
}

/// The times of an iteration, in seconds; 0 means "none" for each.
#[expect(clippy::struct_field_names, reason = "each name ends with its unit")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationTimes {
    /// The longest an iteration may take.
    pub timeout_s: u64,
    /// The longest the agent may print nothing while none of its tool calls is open.
    pub idle_timeout_s: u64,
    /// The pause between two iterations.
    pub delay_s: u64,
}

/// What crew does with git around an iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSteps {
    /// Commits what an iteration changed.
    pub commit: bool,
    /// Pushes after an iteration.
    pub push: bool,
    /// The branch to rebase onto before an iteration, if it moved.
    pub rebase: Option<String>,
    /// The branch to push if a person resumed on another one than that of the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A user's command at a moment of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    pub on: LoopMoment,
    /// Run by `sh -c`.
    pub run: String,
    /// Seconds until it is ended and counts as failed.
    pub timeout_s: u64,
}

/// The moments that a reaction can be set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopMoment {
    /// Before an iteration; a failure skips it.
    IterationStart,
    /// After an iteration; a failure makes the iteration a failure.
    IterationEnd,
    /// When the loop begins to wait for the model's service or after a crash.
    Wait,
    /// When half of the stall limit has passed without progress.
    Stall,
    /// When the loop is over.
    Finish,
}

impl LoopMoment {
    /// All of them, in the order of a loop's life.
    pub const ALL: [Self; 5] =
        [Self::IterationStart, Self::IterationEnd, Self::Wait, Self::Stall, Self::Finish];

    /// The word used in files and variables.
    pub fn label(self) -> &'static str {
        word(&self)
    }
}

//! What of the settings a run of fresh processes takes into its contract.

use super::Limit;
use super::merge::Settings;
use crate::engine::run::{GitSteps, Pace, Reaction};

/// How much of the iterations' logs is kept, over all loops; 0 is "all of it".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub bytes: u64,
    pub days: u64,
}

impl Settings {
    /// The times of an iteration.
    pub fn pace(&self) -> Pace {
        Pace {
            timeout_s: self.limit(Limit::Timeout).value,
            idle_timeout_s: self.limit(Limit::IdleTimeout).value,
            delay_s: self.limit(Limit::Delay).value,
        }
    }

    /// The most turns of one iteration; 0 is no limit.
    pub fn max_turns(&self) -> u32 {
        self.count(Limit::MaxTurns)
    }

    /// The tokens past which a prompt is warned of; 0 is never.
    pub fn token_budget(&self) -> u64 {
        self.limit(Limit::TokenBudget).value
    }

    /// What crew does with git around an iteration.
    pub fn git(&self) -> GitSteps {
        GitSteps {
            commit: self.commit.value,
            push: self.push.value,
            rebase: self.rebase.value.clone(),
            ..GitSteps::default()
        }
    }

    /// The user's commands at the moments of a loop.
    pub fn contract_reactions(&self) -> Vec<Reaction> {
        self.reactions.iter().map(|reaction| reaction.value.clone()).collect()
    }

    /// Globs of paths that the agent must not change.
    pub fn protected(&self) -> Vec<String> {
        self.protect.iter().map(|glob| glob.value.clone()).collect()
    }

    /// How much of the logs is kept.
    pub fn keep(&self) -> Keep {
        Keep { bytes: self.limit(Limit::KeepLogs).value, days: self.limit(Limit::KeepDays).value }
    }
}

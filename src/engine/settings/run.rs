//! The settings that a loop copies into its contract. It decides no value itself.

use super::merge::Settings;
use super::{Key, Value};
use crate::engine::claim::promise::Promise;
use crate::engine::record::{
    Check, GitSteps, IterationTimes, Limits, Permissions, Proof, QuestionMode, Reaction,
};
use crate::engine::test_changes::TestChanges;
use crate::engine::test_changes::trial::{Prove, TrialTerms};

/// How much of the iteration logs of all loops is kept, and of the snapshots of all working trees;
/// 0 means "all of it".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogRetention {
    pub bytes: u64,
    /// In bytes.
    pub snapshots: u64,
    /// For both.
    pub days: u64,
}

impl Settings {
    /// A limit; 0 means none.
    pub fn number(&self, key: Key) -> u64 {
        self.layer.number(key).unwrap_or_default()
    }

    /// A limit that is a small count.
    pub fn count(&self, key: Key) -> u32 {
        u32::try_from(self.number(key)).unwrap_or(u32::MAX)
    }

    /// A switch.
    pub fn is_on(&self, key: Key) -> bool {
        self.layer.value(key) == Some(&Value::Switch(true))
    }

    /// The limits of a contract.
    pub fn limits(&self) -> Limits {
        Limits::of(|key| self.number(key))
    }

    /// The promise of a task that names none; `None` if no claim is asked for.
    pub fn promise(&self) -> Option<Promise> {
        let Value::Promise(promise) = self.layer.value(Key::Promise)? else { return None };
        Some(promise.clone())
    }

    /// The weakest proof that completes a loop.
    pub fn require(&self) -> Option<Proof> {
        let Value::Proof(proof) = self.layer.value(Key::Require)? else { return None };
        Some(*proof)
    }

    /// What a changed test does to a claim.
    pub fn test_changes(&self) -> TestChanges {
        let value = self.layer.value(Key::TestChanges);
        if let Some(Value::TestChanges(mode)) = value { *mode } else { TestChanges::default() }
    }

    /// Who answers what the agent asks in a session.
    pub fn questions(&self) -> QuestionMode {
        let value = self.layer.value(Key::Questions);
        if let Some(Value::Questions(mode)) = value { *mode } else { QuestionMode::default() }
    }

    /// Whether and how the work is tried before the loop ends.
    pub fn trial(&self) -> TrialTerms {
        let globs = |key| match self.layer.value(key) {
            Some(Value::Words(globs)) => globs.clone(),
            _ => Vec::new(),
        };
        TrialTerms {
            prove: match self.layer.value(Key::Prove) {
                Some(Value::Prove(prove)) => *prove,
                _ => Prove::default(),
            },
            timeout_s: self.number(Key::ProveTimeout),
            setup: self.layer.word(Key::Setup).map(str::to_owned),
            tests: globs(Key::Tests),
            may_change: globs(Key::MayChange),
        }
    }

    /// The checks of a contract.
    pub fn contract_checks(&self) -> Vec<Check> {
        self.layer.checks.iter().map(|check| check.value.clone()).collect()
    }

    /// What the agent may do without being asked.
    pub fn permissions(&self) -> Permissions {
        let value = self.layer.value(Key::Permissions);
        if let Some(Value::Permissions(kind)) = value { *kind } else { Permissions::default() }
    }

    /// The times of an iteration.
    pub fn pace(&self) -> IterationTimes {
        IterationTimes {
            timeout_s: self.number(Key::Timeout),
            idle_timeout_s: self.number(Key::IdleTimeout),
            delay_s: self.number(Key::Delay),
        }
    }

    /// What crew does with git around an iteration.
    pub fn git(&self) -> GitSteps {
        GitSteps {
            commit: self.is_on(Key::Commit),
            push: self.is_on(Key::Push),
            rebase: self.layer.word(Key::Rebase).map(str::to_owned),
            ..GitSteps::default()
        }
    }

    /// The user's commands at the moments of a loop.
    pub fn contract_reactions(&self) -> Vec<Reaction> {
        self.layer.reactions.iter().map(|reaction| reaction.value.clone()).collect()
    }

    /// Globs of paths that the agent must not change.
    pub fn protected(&self) -> Vec<String> {
        self.layer.protect.iter().map(|glob| glob.value.clone()).collect()
    }

    /// How much of the logs and snapshots is kept.
    pub fn keep(&self) -> LogRetention {
        LogRetention {
            bytes: self.number(Key::KeepLogs),
            snapshots: self.number(Key::KeepSnapshots),
            days: self.number(Key::KeepDays),
        }
    }
}

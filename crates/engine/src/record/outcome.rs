//! How a loop ends, in one of eight words, and the proof of a completed one.

use super::{CompletionBasis, EndReason, Loop, WeakProof};
use crate::evidence::{Evidence, IterationStatus};
use crate::text::variant_name;
use crate::usage::{Earlier, Spread, Usage};
use derive_getters::Getters;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// Why a loop is over. Every outcome except `Completed` can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Completed,
    /// A limit was reached.
    Exhausted,
    /// Too many failures in a row.
    Aborted,
    /// No progress for too long.
    Stalled,
    /// The user is needed.
    Blocked,
    Cancelled,
    /// The owner is gone, or a wait would have been too long.
    Interrupted,
    Error,
}

impl Outcome {
    /// All outcomes, the best first.
    pub const ALL: [Self; 8] = [
        Self::Completed,
        Self::Exhausted,
        Self::Aborted,
        Self::Stalled,
        Self::Blocked,
        Self::Cancelled,
        Self::Interrupted,
        Self::Error,
    ];

    /// The word used in messages, files and JSON.
    pub fn label(self) -> &'static str {
        variant_name(&self)
    }

    /// Whether a task of a fleet that ended so needs a person: nothing else tries it again.
    pub fn leaves_a_task_undone(self) -> bool {
        !matches!(self, Self::Completed | Self::Cancelled)
    }
}

/// The proof of a `completed` loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proof {
    /// A test also fails when the work is taken away.
    Proven,
    /// A check that had failed in or before this loop now passes, and so do all others.
    Checked,
    /// The checks pass, and no earlier failure shows that the work made them pass.
    Passing,
    /// Nothing was checked; only the agent's word supports it.
    Claimed,
}

impl Proof {
    /// The proofs that a loop may require.
    pub const REQUIRED: [Self; 2] = [Self::Checked, Self::Proven];

    /// How it falls short of `required`; `None` if it suffices. `why_not` says why no more could be
    /// shown.
    pub fn falls_short(self, required: Option<Self>, why_not: Option<&str>) -> Option<WeakProof> {
        let required = required?;
        let is_enough = match required {
            Self::Proven => self == Self::Proven,
            _ => matches!(self, Self::Proven | Self::Checked),
        };
        let why_not = why_not.map(str::to_owned);
        (!is_enough).then_some(WeakProof { proof: self, required, why_not })
    }

    /// The word used in messages, files and JSON.
    pub fn label(self) -> &'static str {
        variant_name(&self)
    }

    /// The meaning of the word, for the final report to a person.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Proven => "a test fails without the work and passes with it",
            Self::Checked => "a check that had failed now passes",
            Self::Passing => "the checks pass; nothing shows that the work made them pass",
            Self::Claimed => "nothing was checked: this is the agent's word",
        }
    }
}

/// Who makes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    User,
    /// An agent may only narrow.
    Agent,
}

impl Actor {
    /// The word used in files and messages.
    pub fn label(self) -> &'static str {
        variant_name(&self)
    }
}

impl Ending {
    /// An ending without a proof.
    pub fn new(outcome: Outcome, reason: impl Into<EndReason>) -> Self {
        Self { outcome, proof: None, reason: reason.into(), proof_notes: Vec::new() }
    }

    /// A completed loop.
    pub fn completed(proof: Proof, basis: CompletionBasis) -> Self {
        let reason = EndReason::Completed { basis, remark: None };
        Self { proof: Some(proof), ..Self::new(Outcome::Completed, reason) }
    }

    /// The whole reason, with the notes, as a sentence fragment.
    pub fn full_reason(&self) -> String {
        let reason = self.reason.to_string();
        std::iter::once(&reason).chain(&self.proof_notes).cloned().collect::<Vec<_>>().join("; ")
    }

    /// What a person should know beyond what completed it; empty if there is nothing.
    pub fn remarks(&self) -> Vec<&str> {
        let notes = self.proof_notes.iter().map(String::as_str);
        self.reason.remarks().chain(notes).collect()
    }

    /// Ended on request.
    pub fn cancelled(by: Actor, reason: Option<&str>) -> Self {
        let reason = reason.map(str::to_owned);
        Self::new(Outcome::Cancelled, EndReason::Cancelled { by, reason })
    }
}

/// An outcome with its reason, ready to be recorded and shown.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Ending {
    pub outcome: Outcome,
    /// The proof of a completed loop; `None` for every other outcome.
    pub proof: Option<Proof>,
    pub reason: EndReason,
    /// Notes about the runs that looked for a better proof, if they did not find one.
    pub proof_notes: Vec<String>,
}

/// Also writes the reason as a sentence, for people and for programs that read the files.
impl Serialize for Ending {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { outcome, proof, reason, proof_notes } = self;
        let mut fields = serializer.serialize_struct("Ending", 5)?;
        fields.serialize_field("outcome", outcome)?;
        fields.serialize_field("proof", proof)?;
        fields.serialize_field("why", &reason.to_string())?;
        fields.serialize_field("reason", reason)?;
        fields.serialize_field("proof_notes", proof_notes)?;
        fields.end()
    }
}

// The results of many loops together: how they ended, how long their iterations took, what they
// cost.

/// The results of a loop's iterations, added up.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    #[serde(rename = "iterations_completed")]
    completed: u32,
    #[serde(rename = "iterations_failed")]
    failed: u32,
    #[serde(rename = "iterations_timed_out")]
    timed_out: u32,
    #[serde(rename = "iterations_skipped")]
    #[getter(copy)]
    skipped: u32,
    #[serde(rename = "iterations_interrupted")]
    #[getter(copy)]
    interrupted: u32,
    /// The number of changed files of any kind, each counted once an iteration.
    files_changed: u64,
    /// How many of the files were new.
    files_created: u64,
    /// How many of the files had other contents.
    files_modified: u64,
}

impl Tally {
    /// Adds an iteration.
    pub fn count_iteration(&mut self, evidence: &Evidence) {
        *match evidence.status {
            IterationStatus::Completed => &mut self.completed,
            IterationStatus::Failed => &mut self.failed,
            IterationStatus::TimedOut => &mut self.timed_out,
            IterationStatus::Skipped => &mut self.skipped,
            IterationStatus::Interrupted => &mut self.interrupted,
        } += 1;
        if let Some(changes) = &evidence.changes {
            self.files_changed += changes.file_count();
            self.files_created += changes.created;
            self.files_modified += changes.modified;
        }
    }

    fn add_tally(&mut self, other: &Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.skipped += other.skipped;
        self.interrupted += other.interrupted;
        self.files_changed += other.files_changed;
        self.files_created += other.files_created;
        self.files_modified += other.files_modified;
    }
}

/// The totals of ended loops.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The number of loops for each outcome, without zeros.
    outcomes: BTreeMap<Outcome, u64>,
    /// The number of completed loops for each proof.
    proofs: BTreeMap<&'static str, u64>,
    /// The number of iterations of all loops.
    iterations: u64,
    #[serde(flatten)]
    tally: Tally,
    /// Tests that passed after the last iteration of each loop.
    tests_passed: u64,
    /// Tests that failed after the last iteration of each loop.
    tests_failed: u64,
    /// The time that all loops worked.
    awake_ms: u64,
    /// The shortest, the mean and the longest iteration; `None` for fewer than two.
    iteration_ms: Option<Spread>,
    /// How many of the newest loops in a row did not complete.
    failure_streak: u64,
    /// The maximum number of loops in a row that did not complete.
    longest_failure_streak: u64,
    #[serde(skip)]
    usage: Usage,
}

impl Totals {
    /// Adds up ended loops, the newest first.
    pub fn from_loops<'a>(loops: impl IntoIterator<Item = &'a Loop>) -> Self {
        let mut totals = Self::default();
        let (mut times, mut streak) = (Earlier::default(), 0);
        for subject in loops {
            let Some(ending) = subject.state.end().ending() else { continue };
            *totals.outcomes.entry(ending.outcome).or_default() += 1;
            if let Some(proof) = &ending.proof {
                *totals.proofs.entry(variant_name(proof)).or_default() += 1;
            }
            totals.iterations += u64::from(subject.state.counts().completed());
            totals.tally.add_tally(subject.state.counts().tally());
            let checks = subject.state.seen().evidence().iter().flat_map(|seen| &seen.checks);
            for tests in checks.filter_map(|check| check.tests.as_ref()) {
                totals.tests_passed += u64::from(tests.passed());
                totals.tests_failed += u64::from(tests.failed());
            }
            totals.awake_ms = totals.awake_ms.saturating_add(subject.state.time().awake_ms());
            totals.usage.add_usage(subject.state.work().usage());
            times.merge_times(&subject.earlier);
            subject.elapsed_ms.iter().for_each(|ms| times.add_time(*ms));
            streak = if ending.outcome == Outcome::Completed { 0 } else { streak + 1 };
            totals.longest_failure_streak = totals.longest_failure_streak.max(streak);
            if !totals.outcomes.contains_key(&Outcome::Completed) {
                totals.failure_streak = streak;
            }
        }
        totals.iteration_ms = times.spread();
        totals
    }

    /// The number of loops.
    pub fn loop_count(&self) -> u64 {
        self.outcomes.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::changes::Changes;
    use crate::fixture::{SetState, a_loop};
    use crate::record::{Ending, Proof, Status};

    fn ended(outcome: Outcome, iterations_ms: &[u64]) -> Loop {
        let mut subject = a_loop();
        subject.state.set("status", Status::Finished);
        let proof = (outcome == Outcome::Completed).then_some(Proof::Checked);
        subject.state.set("ending", Ending { proof, ..Ending::new(outcome, "so") });
        subject.state.set("completed", iterations_ms.len());
        subject.state.set("awake_ms", iterations_ms.iter().sum::<u64>());
        for ms in iterations_ms {
            subject.add_time(*ms);
        }
        subject
    }

    #[test]
    fn loops_are_summed_up_by_their_outcomes_times_and_consecutive_failures() {
        use Outcome::{Completed, Exhausted, Stalled};
        let loops = vec![
            ended(Exhausted, &[10, 30]),
            ended(Completed, &[20]),
            ended(Stalled, &[]),
            ended(Exhausted, &[4]),
            ended(Completed, &[6]),
            a_loop(),
        ];
        let totals = Totals::from_loops(&loops);
        insta::assert_snapshot!(serde_json::to_string_pretty(&totals).unwrap(), @r#"
        {
          "outcomes": {
            "completed": 2,
            "exhausted": 2,
            "stalled": 1
          },
          "proofs": {
            "checked": 2
          },
          "iterations": 5,
          "iterations_completed": 0,
          "iterations_failed": 0,
          "iterations_timed_out": 0,
          "iterations_skipped": 0,
          "iterations_interrupted": 0,
          "files_changed": 0,
          "files_created": 0,
          "files_modified": 0,
          "tests_passed": 0,
          "tests_failed": 0,
          "awake_ms": 70,
          "iteration_ms": {
            "min": 4,
            "mean": 14,
            "max": 30
          },
          "failure_streak": 1,
          "longest_failure_streak": 2
        }
        "#);
        assert_eq!(totals.loop_count(), 5);
        let changes = Changes { created: 1, modified: 2, deleted: 4, ..Changes::default() };
        let mut worked = ended(Exhausted, &[10]);
        let evidence = Evidence { changes: Some(changes), ..Evidence::default() };
        let mut tally = worked.state.counts().tally().clone();
        tally.count_iteration(&evidence);
        worked.state.set("tally", tally);
        let tally = Totals::from_loops(&[worked.clone(), worked]).tally;
        let files = [tally.files_changed, tally.files_created, tally.files_modified];
        assert_eq!(files, [14, 2, 4]);
        assert_eq!(Totals::from_loops(&loops[2..4]).failure_streak, 2);
        assert_eq!(Totals::from_loops(&[]), Totals::default());
    }
}

//! What a loop remembers from one boundary to the next: who works, its checks, its git steps with
//! the failed push or commit that a page shows, its working tree. It decides nothing, and runs no
//! git.

use super::{Agent, Driver, Loop, LoopMoment, Run, Status};
use crate::evidence::{CheckResult, Verdict, is_failure};
use crate::text::{clock_time, count};
use crate::usage::{Usage, tokens_text};
use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use derive_getters::Getters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of the share that a session used.
const SESSION: &str = "session";
/// The name for shares whose agent is unknown.
const EARLIER: &str = "earlier";

/// The agent that works in place of the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FallbackAgent {
    /// Its name among the fallbacks.
    pub agent: String,
    /// When the first one's turn comes.
    pub until: DateTime<Utc>,
}

/// What one agent contributed to a loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentShare {
    iterations: u32,
    usage: Usage,
}

/// What a loop with fallbacks remembers of its agents.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMemory {
    /// The fallback that works now; `None` while the first agent works.
    pub active_fallback: Option<FallbackAgent>,
    /// The fallbacks that cannot work for a reason that only the user can remove.
    pub out: Vec<String>,
    /// The only agent that worked before the first share; `None` if there was none, several, or if
    /// it is unknown.
    alone: Option<String>,
    /// The shares of agents by name, and of the sessions that took over the loop; together they are
    /// the loop's.
    shares: BTreeMap<String, AgentShare>,
}

impl Run {
    /// All agents, beginning with the first.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        std::iter::once(&self.agent).chain(&self.fallback)
    }

    /// The run as this agent performs it: model and extra words are meant for the first agent
    /// alone.
    pub fn as_done_by(&self, agent: &Agent) -> Self {
        if agent.name == self.agent.name {
            return self.clone();
        }
        Self { agent: agent.clone(), model: None, words: Vec::new(), ..self.clone() }
    }
}

impl Loop {
    /// The agent whose turn it is in fresh processes: the first one or a fallback.
    pub fn worker(&self) -> Option<&Agent> {
        let run = self.contract.run.as_ref()?;
        if self.driver() != Driver::Process {
            return None;
        }
        let AgentMemory { active_fallback, out, .. } = self.state.work().agents();
        let fallback = active_fallback.as_ref().filter(|fallback| !out.contains(&fallback.agent));
        let agent = fallback.and_then(|one| run.fallback.iter().find(|by| by.name == one.agent));
        Some(agent.unwrap_or(&run.agent))
    }

    /// The fallback that works in place of the first agent.
    pub fn working_fallback(&self) -> Option<&FallbackAgent> {
        let active_fallback = self.state.work().agents().active_fallback.as_ref()?;
        if self.worker()?.name == active_fallback.agent { Some(active_fallback) } else { None }
    }

    /// The fallback agent that is running now; an agent that waits is at a limit, too.
    pub fn running_fallback(&self) -> Option<&FallbackAgent> {
        if self.state.status() == Status::Running { self.working_fallback() } else { None }
    }

    /// "B for A, limited until 03:10", on the reader's clock.
    pub fn fallback_until(&self, at: DateTime<FixedOffset>) -> Option<String> {
        let FallbackAgent { agent, until } = self.running_fallback()?;
        let own = &self.contract.run.as_ref()?.agent.name;
        Some(format!("{agent} for {own}, limited until {}", clock_time(*until, at)))
    }

    /// The agents that can work for this loop, its own first.
    pub fn able_agents(&self) -> impl Iterator<Item = &Agent> {
        let agents = self.contract.run.iter().flat_map(Run::agents);
        agents.filter(|agent| !self.state.work().agents().out.contains(&agent.name))
    }

    /// The agent whose turn it is, where the loop has several.
    pub fn one_of_several(&self) -> Option<&Agent> {
        let has_several = self.contract.run.as_ref().is_some_and(|run| !run.fallback.is_empty());
        if has_several { self.worker() } else { None }
    }

    /// Counts what was used, and which of several agents did it, or a session in between.
    pub fn count_use(&mut self, iterations: u32, usage: Option<&Usage>) {
        let has_several = self.one_of_several().is_some();
        let worker = self.worker().map_or_else(|| SESSION.to_owned(), |agent| agent.name.clone());
        let completed = self.state.counts().completed();
        let (total, AgentMemory { alone, shares, .. }) = self.state.use_mut();
        let before = AgentShare { iterations: completed, usage: total.clone() };
        if let Some(usage) = usage {
            total.add_usage(usage);
        }
        let is_first = before == AgentShare::default();
        if shares.is_empty() && !has_several {
            let is_alone = is_first || alone.as_ref() == Some(&worker);
            *alone = if is_alone { Some(worker) } else { None };
            return;
        }
        if shares.is_empty() && !is_first {
            shares.insert(alone.take().unwrap_or_else(|| EARLIER.to_owned()), before);
        }
        let share = shares.entry(worker).or_default();
        share.iterations += iterations;
        if let Some(usage) = usage {
            share.usage.add_usage(usage);
        }
    }

    /// "A 5 iterations, $1.20 · 300k tokens; B 3 iterations, 90k tokens", where several worked.
    pub fn describe_shares(&self) -> Option<String> {
        let shares = &self.state.work().agents().shares;
        let texts = shares.iter().map(|(name, AgentShare { iterations, usage })| {
            let tokens = usage.tokens.total();
            let used = match usage.cost.0 {
                _ if tokens == 0 => String::new(),
                0 => format!(", {} tokens", tokens_text(tokens)),
                _ => format!(", {} · {} tokens", usage.cost, tokens_text(tokens)),
            };
            format!("{name} {}{used}", count(*iterations, "iteration"))
        });
        if shares.len() > 1 { Some(texts.collect::<Vec<_>>().join("; ")) } else { None }
    }
}

// What a loop remembers of a check from one boundary to the next.

/// What a loop remembers of a check: its last result, except unknown ones.
#[derive(Getters, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckMemory {
    #[getter(copy)]
    last: Verdict,
    /// The fewest tests that passed in a run that failed, 0 if it spoke of none; `None` if it never
    /// failed in or before the loop.
    pub failed_with: Option<u32>,
    /// Whether the command of a run was not found, which is not a failure of the check.
    #[getter(copy)]
    program_missing: bool,
    /// The number of completed iterations at that time.
    #[getter(copy)]
    after: u32,
    exit: Option<i32>,
    #[getter(copy)]
    elapsed_ms: u64,
    /// The end of its output before the first iteration, for the first prompt; bounded as in the
    /// evidence.
    pub tail: String,
}

impl CheckMemory {
    /// The memory of a result, which replaces `before`.
    pub fn from_result(result: &CheckResult, after: u32, before: Option<&Self>) -> Self {
        let passed = result.test_run.as_ref().map_or(0, |run| run.passed);
        let failed_with = is_failure(result).then_some(passed);
        let known = before.and_then(|before| before.failed_with);
        Self {
            last: result.verdict,
            failed_with: failed_with.into_iter().chain(known).min(),
            program_missing: result.program_missing
                || before.is_some_and(|before| before.program_missing),
            after,
            exit: result.exit,
            elapsed_ms: result.elapsed_ms,
            tail: String::new(),
        }
    }

    /// Whether it failed in or before the loop.
    pub fn ever_failed(&self) -> bool {
        self.failed_with.is_some()
    }

    /// Forgets that it failed: what failed was another check.
    pub fn forget_failures(&mut self) {
        self.failed_with = None;
    }

    /// "failed (exit 1)": the result, as far as it was kept.
    pub fn what_happened(&self) -> String {
        self.last.what_happened(self.exit, self.elapsed_ms)
    }
}

// What a loop remembers of its git steps: its last push, and the failures since a step last
// worked. It runs no git.

/// The results of its git steps so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitMemory {
    pub pushed: Option<Sent>,
    /// Commits that failed since one last worked.
    pub commits: Failures,
    /// Pushes that failed since one last worked.
    pub pushes: Failures,
    /// What is left to do after the last boundary or the end, and was not tried yet.
    pub pending: Pending,
}

/// What a recorded boundary or end still requires. Each item is removed once it was tried, so that
/// the next crew completes what a killed one left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub commit: bool,
    pub push: bool,
    /// The commands for the end of the loop.
    pub reaction: bool,
}

impl Pending {
    /// What is left to do after a boundary with this loop as its result; `counted` says whether it
    /// counted an iteration.
    pub fn after_boundary(subject: &Loop, counted: bool) -> Self {
        let before = subject.state.git().pending;
        let (Some(run), Driver::Process) = (&subject.contract.run, subject.driver()) else {
            return before;
        };
        let is_here = counted && subject.place.repository.is_some();
        Self {
            commit: before.commit || (is_here && run.git.commit),
            push: before.push || (is_here && run.git.push),
            reaction: !subject.is_live()
                && run.reactions.iter().any(|reaction| reaction.on == LoopMoment::Finish),
        }
    }

    /// Whether everything is done.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// "commit", "push", "reaction": those that are left.
    pub fn pending_names(self) -> Vec<&'static str> {
        let all = [(self.commit, "commit"), (self.push, "push"), (self.reaction, "reaction")];
        all.into_iter().filter(|(is_left, _)| *is_left).map(|(_, name)| name).collect()
    }
}

/// What crew itself pushed last in this loop, or found pushed at its first rebase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub remote: String,
    /// The branch on the remote.
    pub branch: String,
    pub commit: String,
    /// The commit that crew's own rebase made from it. A push may replace the commit only with this
    /// one.
    pub rebased: Option<String>,
}

/// Consecutive failed tries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    pub count: u32,
    /// The last cause, with its remedy.
    pub why: String,
}

impl Failures {
    /// Counts one more failure.
    pub fn add_failure(&mut self, why: String) {
        *self = Self { count: self.count.saturating_add(1), why };
    }
}

impl GitMemory {
    /// What is pending or failed when it was last tried: all that a resume of an ended loop does.
    pub fn pending_steps(&self) -> Pending {
        Pending {
            commit: self.pending.commit || self.commits.count > 0,
            push: self.pending.push || self.pushes.count > 0,
            reaction: self.pending.reaction,
        }
    }

    /// The first thing left to do, for a row in a list, such as ", not pushed"; empty if there is
    /// nothing.
    pub fn left_in_a_list(&self) -> &'static str {
        match self.pending_steps() {
            Pending { commit: true, .. } => ", not committed",
            Pending { push: true, .. } => ", not pushed",
            Pending { reaction: true, .. } => ", reaction pending",
            _ => "",
        }
    }

    /// "not committed yet · not pushed, 2 tries failed: …"; `None` if nothing is left to do.
    pub fn describe_undone(&self) -> Option<String> {
        let Pending { commit, push, reaction } = self.pending;
        let steps = [(commit, &self.commits, "not committed"), (push, &self.pushes, "not pushed")];
        let mut undone = Vec::new();
        for (is_pending, Failures { count, why }, what) in steps {
            match count {
                0 if is_pending => undone.push(format!("{what} yet")),
                0 => {}
                1 => undone.push(format!("{what}, 1 try failed: {why}")),
                count => undone.push(format!("{what}, {count} tries failed: {why}")),
            }
        }
        if reaction {
            undone.push("its reaction to the end has not run yet".to_owned());
        }
        if undone.is_empty() { None } else { Some(undone.join(" · ")) }
    }
}

// What a loop remembers of its working tree: the last snapshot, what was checked out, and which
// states it has already been in.

/// How many states are remembered, the newest.
const REMEMBERED: usize = 32;
/// How many hexadecimal digits of a state's identity are remembered.
const DIGITS: usize = 12;

/// What is checked out in a working tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedOut {
    /// The checked-out branch; `None` on a detached head.
    pub branch: Option<String>,
    /// The checked-out commit; `None` before the first commit, and where it is not known.
    pub commit: Option<String>,
}

/// A repository inside a working tree: a submodule, or another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryInside {
    /// Its checked-out commit; `None` before the first.
    pub commit: Option<String>,
    /// A hash of the uncommitted changes; `None` if there are none.
    pub uncommitted: Option<String>,
}

/// A working tree as it was when examined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeSeen {
    /// A string that is equal for equal trees.
    pub identity: String,
    /// The snapshot of the tree; `None` where none are taken.
    pub snapshot: Option<String>,
    /// What is checked out; `None` outside git.
    pub head: Option<CheckedOut>,
    /// What differs from the snapshot and is not in it, by path.
    pub left_out: Vec<String>,
    /// The repositories inside it, by path.
    pub repositories: BTreeMap<String, RepositoryInside>,
    /// The commits of all branches and working trees; empty where they are too many.
    pub tips: Vec<String>,
}

/// The part of a loop's state that is about its tree, besides the identity.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMemory {
    /// The snapshot of the tree at the last boundary.
    snapshot: Option<String>,
    head: Option<CheckedOut>,
    /// The repositories inside the tree at the last boundary, by path.
    repositories: BTreeMap<String, RepositoryInside>,
    /// The commits of all branches and working trees at the last boundary.
    tips: Vec<String>,
    /// The beginnings of the identities at the ends of iterations, the newest last; 0 is the state
    /// before the first.
    recent: Vec<(u32, String)>,
}

impl TreeMemory {
    /// The iteration after which the tree was in this state before, the newest.
    pub fn seen_after(&self, identity: &str) -> Option<u32> {
        let found = self.recent.iter().rev().find(|(_, seen)| *seen == identity_start(identity));
        found.map(|(iteration, _)| *iteration)
    }

    /// Whether the tree was in this state before the first iteration.
    pub fn began_as(&self, identity: &str) -> bool {
        self.recent.iter().any(|(after, seen)| *after == 0 && seen == identity_start(identity))
    }
    /// Remembers the tree at the end of the last iteration, or before the first one.
    pub(super) fn remember_tree(&mut self, completed: u32, seen: Option<TreeSeen>) {
        let Some(TreeSeen { identity, snapshot, head, repositories, tips, .. }) = seen else {
            self.snapshot = None;
            return;
        };
        self.recent.retain(|(iteration, _)| *iteration < completed);
        self.recent.push((completed, identity_start(&identity).to_owned()));
        self.recent.drain(..self.recent.len().saturating_sub(REMEMBERED));
        (self.snapshot, self.head) = (snapshot, head);
        (self.repositories, self.tips) = (repositories, tips);
    }
}

fn identity_start(identity: &str) -> &str {
    identity.get(..DIGITS).unwrap_or(identity)
}

impl From<&str> for TreeSeen {
    fn from(identity: &str) -> Self {
        Self { identity: identity.to_owned(), ..Self::default() }
    }
}

// A moment on two clocks: wall time and awake time. It reads neither clock.

/// One instant on both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The wall clock, for dates, resets and people.
    pub wall: DateTime<Utc>,
    /// Milliseconds that this machine has been awake since boot, for durations.
    pub awake_ms: u64,
}

impl Moment {
    /// How long the machine slept since `earlier`: the wall time that passed minus the awake time.
    /// A clock that was set forward looks the same.
    pub fn asleep_since(self, earlier: Self) -> TimeDelta {
        let awake = self.awake_ms.saturating_sub(earlier.awake_ms);
        let awake = TimeDelta::milliseconds(i64::try_from(awake).unwrap_or(i64::MAX / 2));
        self.wall - earlier.wall - awake
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

#[cfg(test)]
mod git_memory_tests {
    use super::*;

    #[test]
    fn unfinished_git_steps_are_described_in_one_line_until_they_succeed() {
        let mut memory = GitMemory::default();
        assert_eq!(memory.describe_undone(), None);
        memory.pushes.add_failure("no remote; git remote add origin ADDRESS".to_owned());
        memory.commits.add_failure("locked".to_owned());
        memory.commits.add_failure("locked again; remove .git/index.lock".to_owned());
        assert_eq!(
            memory.describe_undone().as_deref(),
            Some(
                "not committed, 2 tries failed: locked again; remove .git/index.lock · \
                 not pushed, 1 try failed: no remote; git remote add origin ADDRESS"
            )
        );
        memory.commits = Failures::default();
        memory.pending = Pending { commit: true, push: true, reaction: true };
        assert_eq!(
            memory.describe_undone().as_deref(),
            Some(
                "not committed yet · not pushed, 1 try failed: no remote; git remote add origin \
                 ADDRESS · its reaction to the end has not run yet"
            )
        );
        memory.pending = Pending::default();
        assert!(memory.describe_undone().unwrap().starts_with("not pushed"));
    }
}

#[cfg(test)]
mod tree_memory_tests {
    use super::*;
    use crate::fixture::SetState;
    use crate::record::State;

    #[test]
    fn the_newest_trees_are_remembered_one_per_iteration() {
        let mut state = State::default();
        for iteration in 0..40 {
            state.set("completed", iteration);
            state.remember_tree(Some("replaced before the next iteration".into()));
            state.remember_tree(Some(format!("{iteration:012} and more").as_str().into()));
        }
        let seen = |identity: &str| state.seen().trees().seen_after(identity);
        assert_eq!(seen("000000000039 or less"), Some(39));
        assert_eq!(seen("000000000008"), Some(8));
        assert_eq!(seen("000000000007"), None);
        assert_eq!(seen("replaced before"), None);
        state.remember_tree(None);
        assert_eq!(
            (state.seen().tree().clone(), state.seen().trees().recent.len()),
            (None, REMEMBERED)
        );
    }
}

#[cfg(test)]
mod moment_tests {
    use super::*;
    use crate::fixture::at;

    #[test]
    fn sleep_is_the_difference_between_the_wall_clock_and_the_time_awake() {
        let mut woken = at(60);
        assert_eq!(woken.asleep_since(at(0)), TimeDelta::zero());
        woken.wall += TimeDelta::hours(7);
        assert_eq!(woken.asleep_since(at(0)), TimeDelta::hours(7));
    }
}

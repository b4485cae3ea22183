//! Who works in a loop of fresh processes: its own agent or, while the account of that one is at a
//! limit, one of its fallbacks. It chooses nobody; it is what a loop remembers of the choice.

use std::collections::BTreeMap;

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Serialize};

use super::{Agent, Driver, Loop, Run, Status};
use crate::engine::text::{clock_time, count};
use crate::engine::usage::{Usage, tokens_text};

/// Whose share it is what a session used.
const SESSION: &str = "session";
/// Whose it is what nobody can be named for.
const EARLIER: &str = "earlier";

/// The agent that works in place of the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandIn {
    /// Its name among the fallbacks.
    pub agent: String,
    /// When the first one's turn comes.
    pub until: DateTime<Utc>,
}

/// What one agent did of a loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentShare {
    pub iterations: u32,
    pub usage: Usage,
}

/// What a loop with fallbacks remembers of its agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentMemory {
    /// `None` while the first one works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<StandIn>,
    /// The fallbacks that cannot work, because only a person can change why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub out: Vec<String>,
    /// Who did all that was done before the first share; `None` if nobody, several, or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<String>,
    /// By the agents' names, and of the sessions that took the loop; together they are the loop's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<String, AgentShare>,
}

impl Run {
    /// All agents, the first of them first.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        std::iter::once(&self.agent).chain(&self.fallback)
    }

    /// The run as this agent does it: model and words are meant for the first one alone.
    pub fn by(&self, agent: &Agent) -> Self {
        if agent.name == self.agent.name {
            return self.clone();
        }
        Self { agent: agent.clone(), model: None, words: Vec::new(), ..self.clone() }
    }
}

impl Loop {
    /// The agent whose turn it is in fresh processes: the first one, or who stands in for it.
    pub fn worker(&self) -> Option<&Agent> {
        let run = self.contract.run.as_ref().filter(|_| self.driver() == Driver::Process)?;
        let AgentMemory { stand_in, out, .. } = &self.state.agents;
        let stand_in = stand_in.as_ref().filter(|it| !out.contains(&it.agent));
        let stand_in = stand_in.and_then(|it| run.fallback.iter().find(|by| by.name == it.agent));
        Some(stand_in.unwrap_or(&run.agent))
    }

    /// Who works in place of the first agent.
    pub fn stand_in(&self) -> Option<&StandIn> {
        let stand_in = self.state.agents.stand_in.as_ref()?;
        self.worker().filter(|agent| agent.name == stand_in.agent).map(|_| stand_in)
    }

    /// The same while it is at work: whoever waits is at a limit, too.
    pub fn stand_in_at_work(&self) -> Option<&StandIn> {
        self.stand_in().filter(|_| self.state.status == Status::Running)
    }

    /// "B for A, limited until 03:10", on the reader's clock.
    pub fn stand_in_at(&self, at: DateTime<FixedOffset>) -> Option<String> {
        let StandIn { agent, until } = self.stand_in_at_work()?;
        let own = &self.contract.run.as_ref()?.agent.name;
        Some(format!("{agent} for {own}, limited until {}", clock_time(*until, at)))
    }

    /// The agents that can work for this loop, its own first.
    pub fn able_agents(&self) -> impl Iterator<Item = &Agent> {
        let agents = self.contract.run.iter().flat_map(Run::agents);
        agents.filter(|agent| !self.state.agents.out.contains(&agent.name))
    }

    /// The agent whose turn it is, where the loop has several.
    pub fn one_of_several(&self) -> Option<&Agent> {
        let has_several = self.contract.run.as_ref().is_some_and(|run| !run.fallback.is_empty());
        self.worker().filter(|_| has_several)
    }

    /// Counts what was used, and which of several agents did it, or a session in between.
    pub fn count_use(&mut self, iterations: u32, usage: Option<&Usage>) {
        let has_several = self.one_of_several().is_some();
        let worker = self.worker().map_or_else(|| SESSION.to_owned(), |agent| agent.name.clone());
        let state = &mut self.state;
        let before = AgentShare { iterations: state.completed, usage: state.usage.clone() };
        if let Some(usage) = usage {
            state.usage.add(usage);
        }
        let AgentMemory { alone, shares, .. } = &mut state.agents;
        let is_first = before == AgentShare::default();
        if shares.is_empty() && !has_several {
            *alone = Some(worker).filter(|it| is_first || alone.as_ref() == Some(it));
            return;
        }
        if shares.is_empty() && !is_first {
            shares.insert(alone.take().unwrap_or_else(|| EARLIER.to_owned()), before);
        }
        let share = shares.entry(worker).or_default();
        share.iterations += iterations;
        if let Some(usage) = usage {
            share.usage.add(usage);
        }
    }

    /// "A 5 iterations, $1.20 · 300k tokens; B 3 iterations, 90k tokens", where several worked.
    pub fn shares(&self) -> Option<String> {
        let shares = &self.state.agents.shares;
        let share = |(name, share): (&String, &AgentShare)| {
            let AgentShare { iterations, usage } = share;
            let tokens = usage.tokens.total();
            let used = match usage.cost.0 {
                _ if tokens == 0 => String::new(),
                0 => format!(", {} tokens", tokens_text(tokens)),
                _ => format!(", {} · {} tokens", usage.cost, tokens_text(tokens)),
            };
            format!("{name} {}{used}", count(*iterations, "iteration"))
        };
        let texts: Vec<String> = shares.iter().map(share).collect();
        (texts.len() > 1).then(|| texts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::engine::fixture::{a_run, at};
    use crate::engine::usage::{Money, Tokens};

    fn with_codex() -> Loop {
        let mut subject = a_run(None);
        let run = subject.contract.run.as_mut().unwrap();
        run.model = Some("opus".to_owned());
        run.words = vec!["--effort".to_owned()];
        run.fallback = vec![Agent { name: "codex".to_owned(), ..Agent::default() }];
        subject
    }

    fn codex_works(subject: &mut Loop) {
        let until = at(0).wall + TimeDelta::hours(1);
        subject.state.agents.stand_in = Some(StandIn { agent: "codex".to_owned(), until });
    }

    #[test]
    fn the_first_agent_works_unless_a_fallback_of_the_loop_stands_in() {
        let mut subject = with_codex();
        let name = |subject: &Loop| subject.worker().map(|agent| agent.name.clone()).unwrap();
        assert_eq!(name(&subject), "claude");
        codex_works(&mut subject);
        assert_eq!(name(&subject), "codex");
        let told = subject.stand_in_at(at(0).wall.fixed_offset());
        assert_eq!(told.unwrap(), "codex for claude, limited until 12:06");
        // While all are limited, none of them works.
        subject.state.status = Status::Waiting;
        assert_eq!(
            (subject.stand_in_at(at(0).wall.fixed_offset()), subject.stand_in_at_work()),
            (None, None)
        );
        assert!(subject.stand_in().is_some());
        subject.state.status = Status::Running;
        // A resume took it off the list.
        subject.contract.run.as_mut().unwrap().fallback.clear();
        assert_eq!((name(&subject), subject.one_of_several()), ("claude".to_owned(), None));
        subject.state.owner.driver = Driver::Session;
        assert_eq!(subject.worker(), None);
    }

    #[test]
    fn the_model_and_the_words_are_the_first_agents() {
        let run = with_codex().contract.run.unwrap();
        assert_eq!(run.by(&run.agent), run);
        let other = run.by(&run.fallback[0]);
        assert_eq!((other.agent.name.as_str(), other.model, other.words.len()), ("codex", None, 0));
        assert_eq!((other.permissions, other.pace), (run.permissions, run.pace));
    }

    #[test]
    fn each_agent_has_its_share_and_the_shares_add_up() {
        let mut subject = with_codex();
        let used = |cost: u64, input: u64| {
            let tokens = Tokens { input, ..Tokens::default() };
            Usage { cost: Money(cost * 10_000_000_000), tokens, ..Usage::default() }
        };
        // Two iterations before the loop had a fallback.
        let fallback = std::mem::take(&mut subject.contract.run.as_mut().unwrap().fallback);
        subject.count_use(2, Some(&used(100, 200_000)));
        subject.state.completed = 2;
        assert!(subject.state.agents.shares.is_empty());
        subject.contract.run.as_mut().unwrap().fallback = fallback;
        subject.count_use(1, Some(&used(20, 100_000)));
        assert_eq!(subject.shares(), None);
        codex_works(&mut subject);
        subject.count_use(0, Some(&used(0, 30_000)));
        subject.count_use(1, Some(&used(0, 60_000)));
        subject.count_use(1, None);
        let expected = "claude 3 iterations, $1.20 · 300k tokens; codex 2 iterations, 90k tokens";
        assert_eq!(subject.shares().unwrap(), expected);
        // A session takes the loop in between, then a run without a fallback.
        subject.state.owner.driver = Driver::Session;
        subject.count_use(1, Some(&used(30, 50_000)));
        subject.state.owner.driver = Driver::Process;
        subject.state.agents.stand_in = None;
        subject.contract.run.as_mut().unwrap().fallback.clear();
        subject.count_use(1, Some(&used(0, 10_000)));
        let expected = "claude 4 iterations, $1.20 · 310k tokens; codex 2 iterations, 90k tokens; \
                        session 1 iteration, $0.30 · 50k tokens";
        assert_eq!(subject.shares().unwrap(), expected);
        // An iteration that did not count was paid, too.
        let mut paid = with_codex();
        paid.state.usage = used(0, 5000);
        codex_works(&mut paid);
        paid.count_use(1, Some(&used(0, 1000)));
        let expected = "codex 1 iteration, 1k tokens; earlier 0 iterations, 5k tokens";
        assert_eq!(paid.shares().unwrap(), expected);
        assert_eq!(subject.state.usage.tokens.input, 450_000);
    }

    #[test]
    fn what_came_before_the_first_fallback_is_named_for_whoever_did_it_alone() {
        let count = |subject: &mut Loop, driver: Driver, agent: &str| {
            subject.state.owner.driver = driver;
            agent.clone_into(&mut subject.contract.run.as_mut().unwrap().agent.name);
            subject.count_use(1, None);
            subject.state.completed += 1;
        };
        let (session, run) = (Driver::Session, Driver::Process);
        let table = [
            (vec![(run, "claude"); 2], "claude 2 iterations; codex 1 iteration"),
            (vec![(session, "claude"); 2], "codex 1 iteration; session 2 iterations"),
            (vec![(run, "claude"), (run, "qwen")], "codex 1 iteration; earlier 2 iterations"),
            (vec![(session, "codex"), (run, "codex")], "codex 1 iteration; earlier 2 iterations"),
        ];
        for (before, expected) in table {
            let mut subject = a_run(None);
            for (driver, agent) in before {
                count(&mut subject, driver, agent);
            }
            let other = Agent { name: "gemini".to_owned(), ..Agent::default() };
            subject.contract.run.as_mut().unwrap().fallback = vec![other];
            count(&mut subject, run, "codex");
            assert_eq!(subject.shares().unwrap(), expected);
            assert_eq!(subject.state.agents.alone, None);
        }
    }
}

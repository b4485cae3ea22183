//! Tests of what a loop remembers.

use chrono::TimeDelta;

use super::*;
use crate::fixture::{SetState, a_run, at};
use crate::usage::{Money, Tokens};

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
    let fallback = FallbackAgent { agent: "codex".to_owned(), until };
    subject.state.set("agents.active_fallback", fallback);
}

#[test]
fn the_first_agent_works_unless_a_fallback_replaces_it() {
    let mut subject = with_codex();
    let name = |subject: &Loop| subject.worker().map(|agent| agent.name.clone()).unwrap();
    assert_eq!(name(&subject), "claude");
    codex_works(&mut subject);
    assert_eq!(name(&subject), "codex");
    let shown = subject.fallback_until(at(0).wall.fixed_offset());
    assert_eq!(shown.unwrap(), "codex for claude, limited until 12:06");
    // While all are limited, none of them works.
    subject.state.set("status", Status::Waiting);
    assert_eq!(
        (subject.fallback_until(at(0).wall.fixed_offset()), subject.running_fallback()),
        (None, None)
    );
    assert!(subject.working_fallback().is_some());
    subject.state.set("status", Status::Running);
    // A resume took it off the list.
    subject.contract.run.as_mut().unwrap().fallback.clear();
    assert_eq!((name(&subject), subject.one_of_several()), ("claude".to_owned(), None));
    subject.state.set("owner.driver", Driver::Session);
    assert_eq!(subject.worker(), None);
}

#[test]
fn the_model_and_the_extra_words_are_for_the_first_agent() {
    let run = with_codex().contract.run.unwrap();
    assert_eq!(run.as_done_by(&run.agent), run);
    let other = run.as_done_by(&run.fallback[0]);
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
    subject.state.set("completed", 2);
    assert!(subject.state.work().agents().shares.is_empty());
    subject.contract.run.as_mut().unwrap().fallback = fallback;
    subject.count_use(1, Some(&used(20, 100_000)));
    assert_eq!(subject.describe_shares(), None);
    codex_works(&mut subject);
    subject.count_use(0, Some(&used(0, 30_000)));
    subject.count_use(1, Some(&used(0, 60_000)));
    subject.count_use(1, None);
    let expected = "claude 3 iterations, $1.20 · 300k tokens; codex 2 iterations, 90k tokens";
    assert_eq!(subject.describe_shares().unwrap(), expected);
    // A session takes the loop in between, then a run without a fallback.
    subject.state.set("owner.driver", Driver::Session);
    subject.count_use(1, Some(&used(30, 50_000)));
    subject.state.set("owner.driver", Driver::Process);
    subject.state.set("agents.active_fallback", None::<FallbackAgent>);
    subject.contract.run.as_mut().unwrap().fallback.clear();
    subject.count_use(1, Some(&used(0, 10_000)));
    let expected = "claude 4 iterations, $1.20 · 310k tokens; codex 2 iterations, 90k tokens; \
                    session 1 iteration, $0.30 · 50k tokens";
    assert_eq!(subject.describe_shares().unwrap(), expected);
    // An iteration that did not count was paid, too.
    let mut paid = with_codex();
    paid.state.set("usage", used(0, 5000));
    codex_works(&mut paid);
    paid.count_use(1, Some(&used(0, 1000)));
    let expected = "codex 1 iteration, 1k tokens; earlier 0 iterations, 5k tokens";
    assert_eq!(paid.describe_shares().unwrap(), expected);
    assert_eq!(subject.state.work().usage().tokens.input, 450_000);
}

#[test]
fn work_from_before_the_first_fallback_is_credited_to_the_agent_that_did_it() {
    let count = |subject: &mut Loop, driver: Driver, agent: &str| {
        subject.state.set("owner.driver", driver);
        agent.clone_into(&mut subject.contract.run.as_mut().unwrap().agent.name);
        subject.count_use(1, None);
        subject.state.set("completed", subject.state.counts().completed() + 1);
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
        assert_eq!(subject.describe_shares().unwrap(), expected);
        assert_eq!(subject.state.work().agents().alone, None);
    }
}

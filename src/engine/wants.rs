//! Which costly looks are worth their cost at this boundary, from the cheap one: `wants` is asked again
//! after each batch of checks until it wants no more.

use super::claim::Claim;
use super::contract::{Check, Role};
use super::facts::{ApiError, CheckResult, Order, ProcessEnd, Seen, Verdict};
use super::looped::Loop;

/// What to look at next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wants {
    /// Checks to run now, in this order, each command once.
    pub checks: Vec<Check>,
    /// Whether the state of the working tree is worth reading.
    pub tree: bool,
    /// Whether that of the protected paths is.
    pub protected: bool,
}

/// Every `gate`; then every `verify` if there is a success claim; `until` if no claim was accepted; and
/// `verify` after all if every `until` passed. Nothing at all when the iteration does not count.
pub fn wants(subject: &Loop, seen: &Seen, done: &[CheckResult]) -> Wants {
    if breaks_off(seen) || !ran_an_iteration(seen) {
        return Wants::default();
    }
    let tree = subject.contract.limits.stall > 0 || !seen.agent.denied.is_empty();
    match seen.agent.process {
        Some(ProcessEnd::BrokenOff(_)) => return Wants::default(),
        Some(ProcessEnd::Skipped(_)) => return Wants { tree, ..Wants::default() },
        _ => {}
    }
    let contract = &subject.contract;
    let left = |role: Role| -> Vec<Check> {
        let mut checks: Vec<Check> = Vec::new();
        for check in contract.of_role(role) {
            let known = done.iter().any(|result| result.run == check.run)
                || checks.iter().any(|chosen| chosen.run == check.run);
            if !known {
                checks.push(check.clone());
            }
        }
        checks
    };
    let claimed = *seen.heard() == Claim::Success;
    let mut checks = left(Role::Gate);
    if claimed {
        for check in left(Role::Verify) {
            if checks.iter().all(|chosen| chosen.run != check.run) {
                checks.push(check);
            }
        }
    }
    let accepted =
        claimed && passed(subject, done, Role::Verify) && passed(subject, done, Role::Gate);
    if checks.is_empty() && !accepted {
        checks = left(Role::Until);
        let any_until = contract.of_role(Role::Until).next().is_some();
        if checks.is_empty() && any_until && passed(subject, done, Role::Until) {
            checks = left(Role::Verify);
        }
    }
    Wants { checks, tree, protected: !contract.protect.is_empty() }
}

/// Whether every check of a role passed.
pub fn passed(subject: &Loop, done: &[CheckResult], role: Role) -> bool {
    subject.contract.of_role(role).all(|check| {
        done.iter().any(|result| result.run == check.run && result.verdict == Verdict::Passed)
    })
}

/// Whether an order breaks the iteration off: any cancel, and a pause that finds the agent at work. Where its
/// process has ended by itself, a pause only keeps the next one from beginning.
pub fn breaks_off(seen: &Seen) -> bool {
    match seen.order {
        Some(Order::Cancel { .. }) => true,
        Some(Order::Pause) => {
            matches!(
                seen.agent.process,
                None | Some(ProcessEnd::BrokenOff(_) | ProcessEnd::Skipped(_))
            )
        }
        None => false,
    }
}

/// A transient or fatal API error, or a pending background task without a claim, ends no iteration.
pub fn ran_an_iteration(seen: &Seen) -> bool {
    let failed_to_run =
        matches!(seen.agent.error, Some(ApiError::Transient { .. } | ApiError::Fatal { .. }));
    !failed_to_run && waits_for(seen).is_none()
}

/// The background work a boundary waits for. A near miss is no claim: "I will say it when the build is
/// done" waits too.
pub fn waits_for(seen: &Seen) -> Option<&str> {
    let work = seen.agent.background.as_deref()?;
    matches!(seen.heard(), Claim::None | Claim::NearMiss(_)).then_some(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::facts::Order;
    use crate::engine::fixture::{a_loop_with, facts, result};

    const ALL: [(&str, Role); 3] =
        [("test", Role::Verify), ("lint", Role::Gate), ("deploy", Role::Until)];

    fn wanted(checks: &[(&str, Role)], claim: Claim, done: &[(&str, Verdict)]) -> Vec<String> {
        let done: Vec<_> = done.iter().map(|(run, verdict)| result(run, *verdict)).collect();
        let wants = wants(&a_loop_with(checks), &facts(claim).seen, &done);
        wants.checks.into_iter().map(|check| check.run).collect()
    }

    #[test]
    fn gates_run_always_verify_on_a_claim_until_when_no_claim_was_accepted() {
        use Verdict::{Failed, Passed};
        let success = || Claim::Success;
        let none = || Claim::None;
        assert_eq!(wanted(&ALL, none(), &[]), ["lint"]);
        assert_eq!(wanted(&ALL, none(), &[("lint", Passed)]), ["deploy"]);
        assert_eq!(wanted(&ALL, none(), &[("lint", Passed), ("deploy", Failed)]), [""; 0]);
        assert_eq!(wanted(&ALL, none(), &[("lint", Passed), ("deploy", Passed)]), ["test"]);
        assert_eq!(wanted(&ALL, success(), &[]), ["lint", "test"]);
        assert_eq!(wanted(&ALL, success(), &[("lint", Passed), ("test", Passed)]), [""; 0]);
        assert_eq!(wanted(&ALL, success(), &[("lint", Failed), ("test", Passed)]), ["deploy"]);
    }

    #[test]
    fn the_same_command_runs_once_a_boundary() {
        let twice = [("test", Role::Gate), ("test", Role::Verify), ("test", Role::Gate)];
        assert_eq!(wanted(&twice, Claim::Success, &[]), ["test"]);
        assert_eq!(wanted(&twice, Claim::Success, &[("test", Verdict::Failed)]), [""; 0]);
    }

    #[test]
    fn nothing_is_looked_at_when_the_loop_is_cancelled_or_the_service_failed() {
        let subject = a_loop_with(&ALL);
        let mut cancelled = facts(Claim::Success).seen;
        cancelled.order = Some(Order::Pause);
        assert_eq!(wants(&subject, &cancelled, &[]), Wants::default());
        let mut failed = facts(Claim::None).seen;
        failed.agent.error =
            Some(ApiError::Transient { message: "overloaded".to_owned(), reset: None });
        assert_eq!(wants(&subject, &failed, &[]), Wants::default());
    }
}

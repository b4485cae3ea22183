//! The pages: how a loop ended, the status of one, and a list of all.

use std::fmt::Write as _;
use std::path::Path;

use super::words::took;
use super::{line, run};
use crate::clients::spelling::going_on;
use crate::engine::boundary::limits;
use crate::engine::evidence::{ClaimResult, Evidence, Verdict};
use crate::engine::record::{Driver, Loop, Outcome, Status};
use crate::engine::text::{clip, count, duration, plain, tail_of};
use crate::engine::words::handoff::Since;

/// The page of an ended loop: its outcome and proof, the reason, what it used, what it changed, and
/// one next command.
pub fn finish(subject: &Loop, since: &Since, handoff: Option<&Path>) -> String {
    let mut text = format!("loop {}: {}\n", subject.id, line::status_line(subject));
    optional(&mut text, "why", subject.state.ending.as_ref().map(|ending| ending.why.clone()));
    row(&mut text, "time", &time(subject));
    each(&mut text, subject);
    optional(&mut text, "cost", subject.spent());
    let summary = since.diffstat.lines().last().unwrap_or("no tracked file changed").trim();
    let commits = count(since.commits.len() as u64, "commit");
    if subject.place.head.is_some() {
        let untracked = match since.untracked {
            0 => String::new(),
            files => format!(" · {}", count(files, "untracked file")),
        };
        row(&mut text, "changes", &format!("{commits} · {summary}{untracked}"));
    }
    optional(&mut text, "git", undone(subject));
    checks(&mut text, subject);
    errors(&mut text, subject);
    optional(&mut text, "handoff", handoff.map(|page| page.display().to_string()));
    row(&mut text, "next", &next(subject));
    text
}

/// One row of a page: a name and its value.
pub fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<8} {value}");
}

fn time(subject: &Loop) -> String {
    let newest = subject.elapsed_ms.iter().rev().take(5).rev();
    let each: Vec<String> = newest.map(|ms| duration(*ms)).collect();
    let all = duration(subject.state.awake_ms);
    match each.len() {
        0 => all,
        _ => format!("{all} awake (last iterations: {})", each.join(", ")),
    }
}

/// The spread of the iterations' times.
fn each(text: &mut String, subject: &Loop) {
    if let Some(spread) = subject.spread() {
        let [min, mean, max] = [spread.min, spread.mean, spread.max].map(took);
        row(text, "each", &format!("min {min} · mean {mean} · max {max}"));
    }
}

/// A row, if there is a value for it.
pub fn optional(text: &mut String, name: &str, value: Option<String>) {
    if let Some(value) = value {
        row(text, name, &value);
    }
}

/// The git steps that failed and were not made up for.
fn undone(subject: &Loop) -> Option<String> {
    subject.state.git.undone().map(|undone| clip(&undone, 500))
}

fn checks(text: &mut String, subject: &Loop) {
    for check in &subject.contract.checks {
        let mut last = subject.state.evidence.iter().flat_map(|last| &last.checks);
        let passed = last.any(|it| it.run == check.run && it.verdict == Verdict::Passed);
        let mut happened = subject.last_of(&check.run).unwrap_or_else(|| "not run".to_owned());
        let memory = subject.state.checks.get(&check.run);
        if passed && memory.is_some_and(|memory| memory.ever_failed) {
            happened.push_str(", after it had failed");
        }
        let run = clip(&check.run, 60);
        row(text, check.role.label(), &format!("`{run}` {happened}"));
    }
    let reports = subject.state.evidence.iter().flat_map(|last| &last.checks);
    for report in reports.filter_map(|check| check.tests.as_ref()) {
        optional(text, "tests", report.taken_away().or(report.still_failing()));
    }
    if let Some(failed) = subject.state.evidence.iter().flat_map(Evidence::failing).next() {
        tail(text, &tail_of(&failed.tail, 600));
    }
}

/// The last lines of the agent's standard error, if they are the failure with which the loop ended.
fn errors(text: &mut String, subject: &Loop) {
    let last = subject.state.evidence.as_ref().map_or("", |evidence| &evidence.errors);
    if !last.is_empty() {
        row(text, "agent", "its last lines on standard error:");
        tail(text, &tail_of(last, 600));
    }
}

/// Output of a check or an agent, indented and without terminal control codes.
pub fn tail(text: &mut String, printed: &str) {
    for line in plain(printed).lines() {
        let _ = writeln!(text, "           | {line}");
    }
}

/// The one command to continue with.
fn next(subject: &Loop) -> String {
    match (subject.outcome(), &subject.place.head) {
        (Some(Outcome::Completed), _) if subject.state.trees.snapshot.is_some() => {
            format!("crew diff {}   (read what it did)", subject.id)
        }
        (Some(Outcome::Completed), Some(head)) => {
            format!("git diff {}   (read what it did)", head.get(..12).unwrap_or(head))
        }
        (Some(Outcome::Completed), None) => "read what it did".to_owned(),
        (Some(Outcome::Blocked), _) if asks_a_person(subject) => {
            format!("{} --tell \"your answer\"", going_on(subject))
        }
        _ => going_on(subject),
    }
}

/// Whether the agent itself reported that it is blocked.
fn asks_a_person(subject: &Loop) -> bool {
    let last = subject.state.evidence.as_ref();
    subject.driver() == Driver::Process
        && last.is_some_and(|last| matches!(last.claim, ClaimResult::Blocked(_)))
}

/// The status of one loop.
pub fn status(subject: &Loop, owner_is_gone: bool, since: &Since) -> String {
    if !subject.is_live() {
        return finish(subject, since, None);
    }
    let mut text = format!("loop {}: {}\n", subject.id, line::status_line(subject));
    if owner_is_gone {
        let who = if subject.driver() == Driver::Session { "client" } else { "crew" };
        row(&mut text, "owner", &format!("gone: its {who} has ended, and the loop with it"));
    }
    row(&mut text, "task", &clip(&run::task(subject), 100));
    optional(&mut text, "worker", run::worker(subject));
    row(&mut text, "time", &time(subject));
    optional(&mut text, "cost", subject.spent());
    row(&mut text, "limits", &limits::named(&subject.contract.limits));
    row(&mut text, "folder", &subject.place.folder.display().to_string());
    optional(&mut text, "git", undone(subject));
    checks(&mut text, subject);
    let is_at_rest = owner_is_gone || subject.state.status == Status::Paused;
    let next = if is_at_rest { going_on(subject) } else { "crew pause, crew cancel".to_owned() };
    row(&mut text, "next", &next);
    text
}

/// A list, one loop per line.
pub fn list(loops: &[Loop]) -> String {
    if loops.is_empty() {
        return "no loops\n".to_owned();
    }
    loops.iter().fold(String::new(), |mut text, subject| {
        let started = subject.started_at.format("%Y-%m-%d %H:%M");
        let task = clip(&run::task(subject), 50);
        let status = line::status_line(subject);
        let _ = writeln!(text, "{}  {started}  {status:<36}  {task}", subject.id);
        text
    })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::boundary::decide::{apply, decide};
    use crate::engine::boundary::judge::judge;
    use crate::engine::boundary::limits::reached;
    use crate::engine::claim::Claim;
    use crate::engine::fixture::{a_loop, a_loop_with, a_run, facts, result};
    use crate::engine::record::{Ending, Role};
    use crate::engine::usage::Money;

    fn ended(verdict: Verdict) -> Loop {
        let mut subject = a_loop_with(&[("cargo test", Role::Verify)]);
        subject.contract.limits.max_iterations = 1;
        subject.place.head = Some("1a2b3c4d5e6f7a8b".to_owned());
        let mut facts = facts(Claim::Success);
        facts.checks = vec![result("cargo test", verdict)];
        let judged = judge(&subject, &facts);
        let decision = decide(&judged, &facts);
        apply(judged, &decision)
    }

    #[test]
    fn a_completed_loop_names_its_proof_and_one_next_command() {
        let since = Since {
            commits: vec!["1a2b3c4 Add lists".to_owned()],
            diffstat: " src/lib.rs | 4 ++--\n 1 file changed, 2 insertions(+)".to_owned(),
            ..Since::default()
        };
        assert_snapshot!(finish(&ended(Verdict::Passed), &since, None), @"
        loop haaaaaaa: completed, unbroken after 1 iteration
          why      the checks pass; they were never seen to fail
          time     1m awake (last iterations: 1m)
          changes  1 commit · 1 file changed, 2 insertions(+)
          verify   `cargo test` passed
          next     git diff 1a2b3c4d5e6f   (read what it did)
        ");
    }

    #[test]
    fn an_exhausted_loop_shows_the_failing_check_and_the_handoff() {
        let handoff = Path::new("/repo/.claude/branches/main/handoffs/exhausted.md");
        let since = Since { untracked: 2, ..Since::default() };
        let page = finish(&ended(Verdict::Failed), &since, Some(handoff));
        assert_snapshot!(page, @"
        loop haaaaaaa: exhausted after 1 iteration
          why      the limit of 1 iteration is reached
          time     1m awake (last iterations: 1m)
          changes  0 commits · no tracked file changed · 2 untracked files
          verify   `cargo test` failed (exit 1)
                   | output of cargo test
          handoff  /repo/.claude/branches/main/handoffs/exhausted.md
          next     /crew:resume haaaaaaa -n +10
        ");
    }

    #[test]
    fn a_loop_that_spent_its_money_says_how_much_and_how_to_allow_more() {
        let mut subject = ended(Verdict::Passed);
        subject.contract.limits.max_iterations = 0;
        subject.contract.limits.max_cost_micros = 1_500_000;
        subject.state.ending = None;
        subject.state.usage.tokens.input = 123_456;
        subject.state.usage.cost = Money::from_micros(1_840_000);
        let why = reached(&subject).unwrap();
        subject.state.ending = Some(Ending { outcome: Outcome::Exhausted, proof: None, why });
        assert_snapshot!(finish(&subject, &Since::default(), None), @"
        loop haaaaaaa: exhausted after 1 iteration
          why      the cost limit of $1.50 is reached: $1.84
          time     1m awake (last iterations: 1m)
          cost     $1.84 · 123k tokens
          changes  0 commits · no tracked file changed
          verify   `cargo test` passed
          next     /crew:resume haaaaaaa --max-cost +5
        ");
    }

    #[test]
    fn a_run_of_several_iterations_shows_their_spread_and_resumes_in_a_terminal() {
        let mut subject = a_run(Some("build"));
        for seconds in [45, 39, 52] {
            let mut facts = facts(Claim::None);
            facts.now.awake_ms = subject.state.began.awake_ms + seconds * 1000 + 250;
            subject = judge(&subject, &facts).after;
        }
        subject.state.status = Status::Finished;
        let why = "cancelled by the user".to_owned();
        subject.state.ending = Some(Ending { outcome: Outcome::Cancelled, proof: None, why });
        assert_snapshot!(finish(&subject, &Since::default(), None), @"
        loop haaaaaaa: cancelled after 3 iterations
          why      cancelled by the user
          time     2m 16s awake (last iterations: 45s, 39s, 52s)
          each     min 39.2s · mean 45.5s · max 52.2s
          next     crew resume haaaaaaa
        ");
    }

    #[test]
    fn a_mended_check_says_that_it_had_failed() {
        let subject = a_loop_with(&[("cargo test", Role::Verify)]);
        let mut failing = facts(Claim::Success);
        failing.checks = vec![result("cargo test", Verdict::Failed)];
        let mut passing = facts(Claim::Success);
        passing.checks = vec![result("cargo test", Verdict::Passed)];
        let judged = judge(&judge(&subject, &failing).after, &passing);
        let decision = decide(&judged, &passing);
        assert_snapshot!(finish(&apply(judged, &decision), &Since::default(), None), @"
        loop haaaaaaa: completed, checked after 2 iterations
          why      a check that had failed now passes
          time     1m awake (last iterations: 1m, 0ms)
          each     min 0.0s · mean 30.0s · max 1m0s
          verify   `cargo test` passed, after it had failed
          next     read what it did
        ");
    }

    #[test]
    fn a_running_loop_says_how_it_stands_and_when_its_owner_is_gone() {
        assert_snapshot!(status(&a_loop(), true, &Since::default()), @"
        loop haaaaaaa: running, iteration 1 of 10
          owner    gone: its client has ended, and the loop with it
          task     Build the todo API
          time     0ms
          limits   up to 10 iterations, 12h
          folder   /repo
          next     /crew:resume haaaaaaa
        ");
    }

    #[test]
    fn a_list_has_one_loop_a_line() {
        assert_snapshot!(list(&[a_loop(), ended(Verdict::Passed)]), @"
        haaaaaaa  2026-11-18 11:06  running, iteration 1 of 10            Build the todo API
        haaaaaaa  2026-11-18 11:06  completed, unbroken after 1 iteration  Build the todo API
        ");
        assert_eq!(list(&[]), "no loops\n");
    }
}

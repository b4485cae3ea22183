//! Gathers the facts of a boundary that are slow to get: runs its checks batch by batch and reads
//! the working tree. It holds no lock except the boundary's own, and judges nothing.

use std::time::Duration;

use super::Open;
use crate::clients::spelling::of_loop;
use crate::drive::{missing, tree};
use crate::engine::boundary::facts::{Facts, Seen};
use crate::engine::boundary::limits::{overtime_ms, time_left_ms};
use crate::engine::boundary::wants::wants;
use crate::engine::events::RunEvent;
use crate::engine::evidence::test_report::{TestMemories, is_no_worse};
use crate::engine::evidence::{CheckResult, Verdict};
use crate::engine::record::{Check, Loop};
use crate::engine::text::{period, plain};
use crate::engine::usage::Usage;
use crate::parse::test_output::TestOutput;
use crate::world::clock::{self, Deadline};
use crate::world::files::protected;
use crate::world::process::groups::{self, Note};
use crate::world::process::{self, ExitCause, ProcessSpec, Stop};
use crate::world::recorded_environment;
use crate::world::store::{Home, test_memory};

/// The status a shell exits with when it does not find a program.
const NOT_FOUND: i32 = 127;
/// The longest all checks of one boundary may take together.
const CHECKS_WITHIN: Duration = Duration::from_secs(45 * 60);

/// Until when checks may run, and the reason for that limit.
struct Within {
    deadline: Deadline,
    why: String,
}

impl Within {
    /// The loop's remaining time and a margin, never more than all checks of one boundary may take.
    /// Time during which crew itself was stopped (`missed_ms`) does not count.
    fn of(subject: &Loop, missed_ms: u64) -> Self {
        let limits = &subject.contract.limits;
        let left = time_left_ms(subject, clock::now().awake_ms.saturating_sub(missed_ms))
            .map(|left| Duration::from_millis(left.saturating_add(overtime_ms(limits))));
        let Some(left) = left.filter(|left| *left < CHECKS_WITHIN) else {
            let why = "the checks of this boundary took 45 minutes".to_owned();
            return Self { deadline: Deadline::after(CHECKS_WITHIN), why };
        };
        let limit = period(limits.max_duration_s);
        let why = format!("it outlasted the loop's time limit of {limit}");
        Self { deadline: Deadline::after(left), why }
    }
}

impl Open {
    /// Gathers what is wanted and reports each check; `usage` is already known. `stop` ends a
    /// running check early. Returns `None` when it ended one: then nothing is known about this
    /// boundary.
    pub fn gather(
        &self,
        seen: Seen,
        usage: Option<Usage>,
        stop: Stop<'_>,
        tell: &dyn Fn(&RunEvent<'_>),
    ) -> Option<Facts> {
        let subject = &self.before;
        let within = Within::of(subject, seen.agent.missed_ms);
        let looks = seen.looks(&subject.contract);
        let look = || looks.tree.then(|| tree::look(&self.home, subject)).flatten();
        let left = look();
        let changes = left.as_ref().and_then(|left| tree::changes(&self.home, subject, left));
        // Before the checks, because they may write where the agent must not.
        let is_protected = looks.protected && subject.protected.is_some();
        let protected = is_protected.then(|| protected::look(subject));
        let mut facts = Facts {
            seen,
            now: clock::now(),
            checks: Vec::new(),
            tests_before: test_memory::read(&self.home, &subject.id),
            tree_checked: left.clone(),
            tree: left,
            changes,
            protected,
            usage,
        };
        loop {
            let wanted = wants(subject, &facts);
            if wanted.is_empty() {
                break;
            }
            for check in &wanted {
                let (home, before) = (&self.home, &facts.tests_before);
                let result = run_and_report(home, subject, check, before, &within, stop, tell)?;
                facts.checks.push(result);
            }
            facts.now = clock::now();
        }
        if !facts.checks.is_empty() {
            facts.tree_checked = look();
            facts.now = clock::now();
        }
        if let Some(agents) = &facts.tree {
            tree::name_the_end(&self.home, subject, agents, facts.tree_checked.as_ref());
        }
        Some(facts)
    }
}

/// Runs every check without a known result, each command once, until `stop` ends one. Returns those
/// that finished.
pub fn each(
    home: &Home,
    subject: &Loop,
    stop: Stop<'_>,
    tell: &dyn Fn(&RunEvent<'_>),
) -> Vec<CheckResult> {
    let within = Within::of(subject, 0);
    let mut done: Vec<CheckResult> = Vec::new();
    for check in subject.contract.before_the_first() {
        let is_known = subject.state.checks.contains_key(&check.run);
        if is_known || done.iter().any(|result| result.run == check.run) {
            continue;
        }
        let before = TestMemories::new();
        match run_and_report(home, subject, check, &before, &within, stop, tell) {
            Some(result) => done.push(result),
            None => break,
        }
    }
    done
}

fn run_and_report(
    home: &Home,
    subject: &Loop,
    check: &Check,
    before: &TestMemories,
    within: &Within,
    stop: Stop<'_>,
    tell: &dyn Fn(&RunEvent<'_>),
) -> Option<CheckResult> {
    tell(&RunEvent::CheckStarted(&check.run));
    let mut result = run(home, subject, check, within, stop)?;
    if check.no_worse && result.verdict == Verdict::Failed && is_no_worse(before, &result) {
        result.verdict = Verdict::Passed;
    }
    tell(&RunEvent::CheckEnded(&result));
    Some(result)
}

fn run(
    home: &Home,
    subject: &Loop,
    check: &Check,
    within: &Within,
    stop: Stop<'_>,
) -> Option<CheckResult> {
    let unknown = |why: String, elapsed_ms, tail: &str| CheckResult {
        run: check.run.clone(),
        verdict: Verdict::Unknown,
        elapsed_ms,
        tail: format!("{why}\n{tail}").trim_end().to_owned(),
        incurable: Some(format!("`{}` {why}", check.run)),
        ..CheckResult::default()
    };
    if within.deadline.passed() {
        return Some(unknown(format!("was not run: {}", within.why), 0, ""));
    }
    let plan = recorded_environment::plan(subject);
    if let Some(why) = plan.refusal(&of_loop(subject, "resume")) {
        return Some(unknown(why, 0, ""));
    }
    let mut variables = plan.variables();
    variables.push(("CREW_LOOP", subject.id.to_string()));
    variables.push(("CREW_ITERATION", subject.iteration().to_string()));
    variables.extend(subject.state.owner.search_path.clone().map(|path| ("PATH", path)));
    let (own, left) = (Duration::from_secs(check.timeout_s), within.deadline.left());
    let arguments = ["-c", &check.run];
    let spec = ProcessSpec {
        without: &plan.dropped,
        variables: &variables,
        within: Some(own.min(left)),
        ..ProcessSpec::of("sh", &arguments, &subject.place.folder)
    };
    let note = groups::note(home, &subject.id).ok();
    let note = note.as_ref().map(Note::file);
    let mut tests = TestOutput::new();
    let ended = match process::run_by_lines(&spec, note, stop, &mut |line| tests.line(line)) {
        Ok(ended) => ended,
        Err(error) => return Some(unknown(format!("could not be started: {error}"), 0, "")),
    };
    let elapsed_ms = ended.elapsed_ms;
    let tail = plain(&String::from_utf8_lossy(&ended.output));
    let (verdict, exit) = match ended.cause {
        ExitCause::Stopped => return None,
        ExitCause::Signal(_) => {
            let why = "was ended by a signal that crew did not send".to_owned();
            return Some(unknown(why, elapsed_ms, &tail));
        }
        ExitCause::TimedOut if left < own => {
            return Some(unknown(format!("was cut: {}", within.why), elapsed_ms, &tail));
        }
        ExitCause::Exit(code) if code == check.success_exit_code => (Verdict::Passed, Some(code)),
        ExitCause::Exit(code) => (Verdict::Failed, Some(code)),
        ExitCause::TimedOut | ExitCause::Idle | ExitCause::Lingered => (Verdict::TimedOut, None),
    };
    let is_missing = verdict == Verdict::Failed && exit == Some(NOT_FOUND);
    let incurable = if is_missing { missing::at_its_end(subject, check, &tail) } else { None };
    let (run, roles) = (check.run.clone(), Vec::new());
    let test_run = tests.report();
    let tests = None;
    Some(CheckResult { run, roles, verdict, exit, elapsed_ms, tail, incurable, test_run, tests })
}

#[cfg(test)]
#[path = "gather_recordings_tests.rs"]
mod recordings;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixture::a_run;

    #[test]
    fn the_time_for_checks_does_not_pass_while_crew_is_stopped() {
        let mut subject = a_run(None);
        subject.contract.limits.max_duration_s = 600;
        subject.state.began.awake_ms = 0;
        let stopped = clock::now().awake_ms;
        let left = |missed_ms| Within::of(&subject, missed_ms).deadline.left();
        assert!(left(stopped) > Duration::from_secs(600), "its time and a tenth more");
    }
}

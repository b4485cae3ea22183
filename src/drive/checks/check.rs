//! Runs one check of a loop, with its environment and its deadlines, and keeps some of its output.
//! It judges nothing.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use engine::boundary::limits::{overtime_ms, time_left_ms};
use engine::evidence::{CheckResult, Verdict};
use engine::record::{Check, Loop, Place};
use engine::refuse;
use engine::text::{format_period, plain_text};
use readers::clients::of_loop;
use readers::parse::shell_command::{ProgramNames, finds_no_program, not_found, parse_program};
use readers::parse::test_output::TestOutput;
use world::clock::{self, Deadline};
use world::files::disk;
use world::process::{Call, ExitCause, Stop, descendants};
use world::store::Home;
use world::{client, env, recorded_environment};

/// The status a shell exits with when it does not find a program.
const NOT_FOUND: i32 = 127;
/// The longest time that all checks of one boundary may take together.
const CHECKS_WITHIN: Duration = Duration::from_secs(45 * 60);

/// The deadline for checks, and the reason for it.
#[derive(Debug)]
pub struct Within {
    deadline: Deadline,
    why: String,
}

impl Within {
    /// A separate time limit; `why` is reported for a check that it ended.
    pub fn at_most(time: Duration, why: &str) -> Self {
        Self { deadline: Deadline::after(time), why: why.to_owned() }
    }

    /// The loop's remaining time and a margin, but at most the time for all checks of one boundary.
    /// Time during which crew itself was stopped (`missed_ms`) does not count.
    pub fn for_subject(subject: &Loop, missed_ms: u64) -> Self {
        let limits = &subject.contract.limits;
        let left = time_left_ms(subject, clock::now().awake_ms.saturating_sub(missed_ms))
            .map(|left| Duration::from_millis(left.saturating_add(overtime_ms(limits))));
        match left {
            Some(left) if left < CHECKS_WITHIN => {
                let limit = format_period(limits.max_duration_s);
                Self::at_most(left, &format!("it exceeded the loop's time limit of {limit}"))
            }
            _ => Self::at_most(CHECKS_WITHIN, "the checks of this iteration took 45 minutes"),
        }
    }
}

/// Runs a check in a folder. `None` when `stop` ended it.
pub fn run_check(
    home: &Home,
    subject: &Loop,
    check: &Check,
    folder: &Path,
    within: &Within,
    stop: Stop<'_>,
) -> Option<CheckResult> {
    if within.deadline.passed() {
        return Some(unknown_result(check, format!("was not run: {}", within.why), 0, ""));
    }
    let plan = recorded_environment::plan_environment(subject);
    if let Some(why) = plan.refusal_text(&of_loop(subject, "resume")) {
        return Some(unknown_result(check, why, 0, ""));
    }
    let mut variables = plan.changed_variables();
    variables.push(("CREW_LOOP", subject.id.to_string()));
    variables.push(("CREW_ITERATION", subject.iteration().to_string()));
    variables.extend(search_path(home, subject, folder).map(|path| ("PATH", path)));
    let (own, left) = (Duration::from_secs(check.timeout_s), within.deadline.left());
    let mut tests = TestOutput::default();
    let mut take_line = |line: &str| tests.take_line(line);
    let call = Call::shell(&check.run, folder)
        .without(&plan.dropped)
        .envs(variables)
        .within(own.min(left))
        .noted(home.groups_folder(&subject.id))
        .each_line(&mut take_line);
    let ended = match descendants::leaving_none(|| call.run(stop)) {
        Ok(ended) => ended,
        Err(error) => {
            return Some(unknown_result(check, format!("could not be started: {error}"), 0, ""));
        }
    };
    let elapsed_ms = ended.elapsed_ms();
    let tail = plain_text(&ended.text());
    let (verdict, exit) = match ended.cause() {
        ExitCause::Stopped => return None,
        ExitCause::Signal(_) => {
            let why = "was killed by a signal that crew did not send".to_owned();
            return Some(unknown_result(check, why, elapsed_ms, &tail));
        }
        ExitCause::TimedOut if left < own => {
            return Some(unknown_result(
                check,
                format!("was cut: {}", within.why),
                elapsed_ms,
                &tail,
            ));
        }
        ExitCause::Exit(code) if code == check.success_exit_code => (Verdict::Passed, Some(code)),
        ExitCause::Exit(code) => (Verdict::Failed, Some(code)),
        ExitCause::TimedOut | ExitCause::Idle | ExitCause::Lingered => (Verdict::TimedOut, None),
    };
    let is_missing = verdict == Verdict::Failed && exit == Some(NOT_FOUND);
    let incurable = if is_missing { missing_at_its_end(subject, check, &tail) } else { None };
    let test_run = tests.report();
    let is_silent = test_run.as_ref().is_none_or(|run| !run.ran_any() && !run.has_failed());
    let program_missing = verdict == Verdict::Failed && is_silent && finds_no_program(exit, &tail);
    let run = check.run.clone();
    let found = CheckResult { run, verdict, exit, elapsed_ms, tail, ..CheckResult::default() };
    Some(CheckResult { incurable, program_missing, test_run, ..found })
}

/// The result of a check that says nothing about the work.
fn unknown_result(check: &Check, why: String, elapsed_ms: u64, tail: &str) -> CheckResult {
    CheckResult {
        run: check.run.clone(),
        verdict: Verdict::Unknown,
        elapsed_ms,
        tail: format!("{why}\n{tail}").trim_end().to_owned(),
        incurable: Some(why),
        ..CheckResult::default()
    }
}

/// The `PATH` of a check, if it differs from this process's. In the scratch folder, entries inside
/// the checkout are replaced with those of the scratch folder: a changed program must not judge
/// itself.
fn search_path(home: &Home, subject: &Loop, folder: &Path) -> Option<String> {
    let own = subject.state.owner().search_path.clone();
    let checkout = &subject.place.checkout;
    let scratch = home.scratch_folder(checkout);
    if !folder.starts_with(&scratch) {
        return own;
    }
    let path = own.or_else(|| env::text("PATH"))?;
    let moved = path.split(':').map(|entry| match Path::new(entry).strip_prefix(checkout) {
        Ok(below) => scratch.join(below).display().to_string(),
        Err(_) => entry.to_owned(),
    });
    Some(moved.collect::<Vec<_>>().join(":"))
}

// Checks whose program is missing: what the start reports about them, and what the check's own
// failure shows. Only files are examined; nothing runs.

/// Refuses a check that names a program not on `PATH`; reports files that do not exist yet.
pub fn missing_at_the_start(place: &Place, checks: &[Check]) -> Result<Option<String>> {
    let mut absent: Vec<&str> = Vec::new();
    for check in checks {
        let Some(ProgramNames { program, file }) = parse_program(&check.run) else { continue };
        if let Some(name) = program.filter(|name| client::on_path(name).is_empty()) {
            if !may_come_to_be(place) {
                refuse!(
                    format!(
                        "{name} is not on PATH: `{}` ({}) cannot run",
                        check.run,
                        check.role.label()
                    ),
                    "install it, or name another command"
                );
            }
            absent.push(name);
        }
        absent.extend(file.filter(|path| !disk::exists(&place.folder.join(path))));
    }
    absent.dedup();
    let (do_not_exist, it) = match absent.len() {
        0 => return Ok(None),
        1 => ("does not exist", "it"),
        _ => ("do not exist", "them"),
    };
    let files = absent.join(", ");
    Ok(Some(format!("{files} {do_not_exist} yet: the agent may create {it}")))
}

/// Whether the checkout contains a folder of `PATH`: then the agent can put a program there.
fn may_come_to_be(place: &Place) -> bool {
    env::search_path().iter().any(|folder| folder.starts_with(&place.checkout))
}

/// Why no agent can make a check pass whose program was not found: it is missing outside the
/// checkout. A path in the checkout may be made later, and so may a program of the project's
/// package or of a `PATH` folder in the checkout.
fn missing_at_its_end(subject: &Loop, check: &Check, output: &str) -> Option<String> {
    let Place { checkout, folder, .. } = &subject.place;
    let words: Vec<&str> = check.run.split_whitespace().collect();
    let name = not_found(output).or(words.first().copied())?;
    let is_of_a_package = !words.contains(&name) && disk::exists(&folder.join("package.json"));
    let program = words.first().copied().unwrap_or_default();
    let is_for_the_agent = is_of_a_package
        || (!name.contains('/') && may_come_to_be(&subject.place))
        || [name, program].into_iter().any(|word| {
            let path = folder.join(word);
            word.contains('/') && path.starts_with(checkout) && !disk::exists(&path)
        });
    if is_for_the_agent {
        return None;
    }
    Some(format!("finds no program `{name}` (exit 127); install it, or start with another check"))
}

#[cfg(test)]
#[path = "check_recordings_tests.rs"]
mod recordings;

#[cfg(test)]
mod tests {
    use super::*;
    use engine::fixture::{SetState, a_run};

    #[test]
    fn the_time_for_checks_does_not_pass_while_crew_is_stopped() {
        let mut subject = a_run(None);
        subject.contract.limits.max_duration_s = 600;
        subject.state.set("began.awake_ms", 0);
        let stopped = clock::now().awake_ms;
        let left = |missed_ms| Within::for_subject(&subject, missed_ms).deadline.left();
        assert!(left(stopped) > Duration::from_secs(600), "its time and a tenth more");
    }
}

//! The costly looks a boundary wants: runs its checks, one batch after the other, and reads the state of
//! the working tree. No lock but the boundary's own is held meanwhile.

use std::time::Duration;

use crate::engine::claim::plain::plain;
use crate::engine::contract::{Check, Role};
use crate::engine::facts::{CheckResult, Facts, Seen, Verdict};
use crate::engine::looped::Loop;
use crate::engine::news::News;
use crate::engine::wants::wants;
use crate::world::clock::{self, Deadline};
use crate::world::fingerprint::fingerprint;
use crate::world::groups::{self, Note};
use crate::world::home::Home;
use crate::world::process::{self, End, FOR_READING, Order};
use crate::world::protected;

/// The longest all checks of one boundary may take together.
const CHECKS_WITHIN: Duration = Duration::from_secs(45 * 60);

/// Looks at all that is wanted, and tells of each check. `stop` ends a running check early. `None` when a check was ended by it:
/// then nothing is known about this boundary.
pub fn gather(
    home: &Home,
    subject: &Loop,
    seen: Seen,
    stop: &dyn Fn() -> bool,
    tell: &dyn Fn(&News<'_>),
) -> Option<Facts> {
    let deadline = Deadline::after(CHECKS_WITHIN);
    let mut done: Vec<CheckResult> = Vec::new();
    let mut wanted = wants(subject, &seen, &done);
    let look = |wanted: bool| wanted.then(|| fingerprint(subject)).flatten().map(|it| it.hash);
    let tree = look(wanted.tree);
    // Before the checks, which may write where the agent must not.
    let is_protected = wanted.protected && subject.protected.is_some();
    let protected = is_protected.then(|| protected::look(subject));
    while !wanted.checks.is_empty() {
        for check in &wanted.checks {
            done.push(told(home, subject, check, deadline, stop, tell)?);
        }
        wanted = wants(subject, &seen, &done);
    }
    let tree_checked = if done.is_empty() { tree.clone() } else { look(wanted.tree) };
    Some(Facts {
        seen,
        now: clock::now(),
        checks: done,
        tree,
        tree_checked,
        protected,
        usage: None,
    })
}

/// Runs the checks of one role, each command once. `None` when one was ended by `stop`.
pub fn of_role(
    home: &Home,
    subject: &Loop,
    role: Role,
    stop: &dyn Fn() -> bool,
    tell: &dyn Fn(&News<'_>),
) -> Option<Vec<CheckResult>> {
    let deadline = Deadline::after(CHECKS_WITHIN);
    let mut done: Vec<CheckResult> = Vec::new();
    for check in subject.contract.of_role(role) {
        if done.iter().all(|result| result.run != check.run) {
            done.push(told(home, subject, check, deadline, stop, tell)?);
        }
    }
    Some(done)
}

fn told(
    home: &Home,
    subject: &Loop,
    check: &Check,
    deadline: Deadline,
    stop: &dyn Fn() -> bool,
    tell: &dyn Fn(&News<'_>),
) -> Option<CheckResult> {
    tell(&News::CheckStarted(&check.run));
    let result = run(home, subject, check, deadline, stop)?;
    tell(&News::CheckEnded(&result));
    Some(result)
}

fn run(
    home: &Home,
    subject: &Loop,
    check: &Check,
    deadline: Deadline,
    stop: &dyn Fn() -> bool,
) -> Option<CheckResult> {
    let result = |verdict, exit, elapsed_ms, tail: String| CheckResult {
        run: check.run.clone(),
        verdict,
        exit,
        elapsed_ms,
        tail,
    };
    if deadline.passed() {
        let tail = "not run: the checks of this boundary took 45 minutes".to_owned();
        return Some(result(Verdict::Unknown, None, 0, tail));
    }
    let mut variables = vec![
        ("CREW_LOOP", subject.id.to_string()),
        ("CREW_ITERATION", subject.iteration().to_string()),
    ];
    variables.extend(subject.state.owner.search_path.clone().map(|path| ("PATH", path)));
    let order = Order {
        program: "sh",
        arguments: &["-c", &check.run],
        folder: &subject.place.folder,
        variables: &variables,
        within: Duration::from_secs(check.timeout_s).min(deadline.left()),
        keep: FOR_READING,
        with_errors: true,
    };
    let note = groups::note(home, &subject.id).ok();
    let ended = match process::run(&order, note.as_ref().map(Note::file), stop) {
        Ok(ended) => ended,
        Err(error) => {
            let tail = format!("could not be started: {error}");
            return Some(result(Verdict::Unknown, None, 0, tail));
        }
    };
    let tail = plain(&String::from_utf8_lossy(&ended.output));
    match ended.end {
        End::Stopped => None,
        End::Exit(code) => {
            let passed = code == check.success_exit_code;
            let verdict = if passed { Verdict::Passed } else { Verdict::Failed };
            Some(result(verdict, Some(code), ended.elapsed_ms, tail))
        }
        End::TimedOut => Some(result(Verdict::TimedOut, None, ended.elapsed_ms, tail)),
        End::ForeignSignal => Some(result(Verdict::Unknown, None, ended.elapsed_ms, tail)),
    }
}

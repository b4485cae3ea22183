//! The folder where the checks of a loop run on another state of its working tree: laid out from a
//! snapshot, prepared by `setup` and .worktreeinclude, and kept, so that the next run is faster.
//! Nothing in it reaches the working tree of the user.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::drive::checks::check::{Within, run_check};
use engine::evidence::{CheckResult, Verdict};
use engine::record::{Check, Loop, Role};
use engine::test_changes::{TriedCheck, check_passed, failing_tests};
use engine::text::format_period;
use readers::parse::test_changes::path_out;
use world::clock::{self, Deadline, Stopwatch};
use world::env;
use world::files::disk::{self, Lock};
use world::git::snapshots::Snapshots;
use world::git::snapshots::checkout::{is_linked, is_set_up, left_out, link_ignored, mark_set_up};
use world::process::Stop;
use world::store::Home;

/// The longest time that one process waits for another that works in the same folder.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The shortest time between two states of the tree. Tools that compare times in whole seconds, as
/// Python does with its compiled files, would mistake the second for the first.
const APART: Duration = Duration::from_millis(1100);

/// The limit used in place of one that is switched off. Each check still has its own limit.
const UNLIMITED: Duration = Duration::from_secs(7 * 24 * 3600);

/// The terms of the runs in the folder.
#[derive(Clone, Copy)]
pub struct ScratchTerms<'a> {
    pub home: &'a Home,
    pub subject: &'a Loop,
    /// The snapshot of the tree that the agent left; `None` without snapshots.
    pub now: Option<&'a str>,
    /// The time by which a session's boundary has to end.
    pub latest: Option<Deadline>,
    /// The limit that all runs at one end share, once they have begun.
    pub shared: Option<SharedLimit>,
    /// The condition that ends a check early.
    pub stop: Stop<'a>,
}

/// A limit shared by several runs.
#[derive(Clone, Copy)]
pub struct SharedLimit {
    deadline: Deadline,
    seconds: u64,
}

impl<'a> ScratchTerms<'a> {
    /// Starts one limit for all runs now: the loop's own, or three times the duration of its checks
    /// when they last ran.
    pub fn beginning_now(self, took_ms: u64) -> Self {
        let own_s = self.subject.contract.trial.timeout_s;
        let seconds = own_s.max(took_ms.saturating_mul(3).div_ceil(1000));
        let deadline = Deadline::after(Duration::from_secs(seconds));
        Self { shared: (own_s > 0).then_some(SharedLimit { deadline, seconds }), ..self }
    }

    /// Opens the folder. Everything in it ends within the limits, or when `stop` returns true.
    pub fn open_folder(self) -> Result<ScratchFolder<'a>, String> {
        let folder = self.home.scratch_folder(&self.subject.place.checkout);
        let parent = folder.parent().unwrap_or(Path::new("/"));
        disk::make_private_folder(parent).map_err(|error| error.to_string())?;
        let lock = disk::take_lock(&folder.with_extension("lock"), LOCK_WAIT);
        let lock = lock.map_err(|error| error.to_string())?;
        let lock =
            lock.ok_or("another crew process runs checks in the scratch folder of this checkout")?;
        Ok(ScratchFolder {
            terms: self,
            snapshots: Snapshots::of(self.home, self.subject),
            folder,
            within: self.check_limit(),
            laid_out: None,
            holds: None,
            was_set_up: false,
            _lock: lock,
        })
    }

    /// The snapshots of the tree as the loop found it, and of what the agent left.
    pub fn both_trees(&self) -> Result<(String, &'a str), String> {
        let now = self.now.ok_or("no snapshots are kept here")?;
        let found = Snapshots::of(self.home, self.subject).as_found(&self.subject.id);
        Ok((found.ok_or("the tree as the loop found it is not known")?, now))
    }

    fn check_limit(&self) -> Within {
        let left = self.latest.map(Deadline::left);
        if let Some(SharedLimit { deadline, seconds }) = self.shared
            && left.is_none_or(|left| deadline.left() <= left)
        {
            let why = format!("all runs in the scratch folder took {}", format_period(seconds));
            return Within::at_most(deadline.left(), &why);
        }
        let why = "the checks of this iteration used up their time";
        Within::at_most(left.unwrap_or(UNLIMITED), why)
    }
}

/// The folder, locked against other processes.
pub struct ScratchFolder<'a> {
    terms: ScratchTerms<'a>,
    pub snapshots: Snapshots,
    folder: PathBuf,
    within: Within,
    laid_out: Option<Stopwatch>,
    /// The snapshot that it contains now.
    holds: Option<String>,
    /// Whether `setup` ran since it was opened.
    was_set_up: bool,
    _lock: Lock,
}

impl ScratchFolder<'_> {
    /// Lays a snapshot out, ready for checks.
    pub fn lay_out(&mut self, commit: &str) -> Result<(), String> {
        if let Some(laid_out) = &self.laid_out {
            let since = Duration::from_millis(laid_out.elapsed_ms());
            clock::sleep(APART.saturating_sub(since));
        }
        self.holds = None;
        self.snapshots.check_out(commit, &self.folder, false)?;
        self.laid_out = Some(Stopwatch::start());
        let found = self.terms.subject.state.seen().baseline().as_ref().map(|found| &*found.commit);
        self.snapshots.include(found.unwrap_or(commit), commit, &self.folder)?;
        self.holds = Some(commit.to_owned());
        let is_set_up = is_set_up(&self.folder, &self.setup_command());
        if is_set_up { Ok(()) } else { self.set_up_again().map(drop) }
    }

    /// Runs `setup`, which may be needed again after the work changed what it installs, and undoes
    /// its changes to the snapshot. False if there is no `setup`, or it ran already.
    pub fn set_up_again(&mut self) -> Result<bool, String> {
        let setup = self.setup_command();
        if setup.is_empty() || self.was_set_up {
            return Ok(false);
        }
        self.was_set_up = true;
        let result = self.run_check(&Check::new(&setup, Role::Verify))?;
        if result.verdict != Verdict::Passed {
            return Err(format!("`{setup}` {}", result.what_happened()));
        }
        if let Some(commit) = &self.holds {
            self.snapshots.check_out(commit, &self.folder, true)?;
        }
        mark_set_up(&self.folder, &setup)?;
        Ok(true)
    }

    /// Lays a snapshot out and runs a check on it.
    pub fn run_on(&mut self, commit: &str, check: &Check) -> Result<CheckResult, String> {
        // What a check left there may make the next run another one.
        self.lay_out(commit)?;
        self.run_check(check)
    }

    /// Gives the folder what it may lack: by `setup`, or otherwise the folders of the working tree
    /// that git ignores as a whole, such as `node_modules`. False if nothing was added.
    pub fn prepare_folder(&mut self) -> Result<bool, String> {
        if self.set_up_again()? {
            return Ok(true);
        }
        link_ignored(&self.snapshots, &self.terms.subject.place.checkout, &self.folder)
    }

    /// Whether folders of the working tree are linked in, so that a passing check may use the work.
    pub fn is_linked(&self) -> bool {
        is_linked(&self.folder)
    }

    /// Ignored paths of the working tree that this folder does not have.
    pub fn left_out(&self) -> Result<Vec<String>, String> {
        left_out(&self.snapshots, &self.folder)
    }

    /// Runs every check on the final tree. Those that pass run on the tree without the work until
    /// one fails in a test there, and that one runs on the final tree again.
    pub fn try_each(
        &mut self,
        checks: &[&Check],
        now: &str,
        without: &str,
    ) -> Result<Vec<TriedCheck>, String> {
        let controls = self.run_controls(checks, now)?.into_iter();
        let runs = controls.map(|control| TriedCheck { control, ..TriedCheck::default() });
        let mut runs: Vec<TriedCheck> = runs.collect();
        if !runs.iter().any(|run| check_passed(&run.control)) {
            return Ok(runs);
        }
        self.lay_out(without)?;
        let mut failing = None;
        for (run, check) in
            runs.iter_mut().zip(checks).filter(|(run, _)| check_passed(&run.control))
        {
            let result = self.run_check(check)?;
            let is_found = failing_tests(&run.control, &result).is_ok();
            run.without = Some(result);
            if is_found {
                failing = Some((run, check));
                break;
            }
        }
        if let Some((run, check)) = failing {
            self.lay_out(now)?;
            run.again = Some(self.run_check(check)?);
        }
        Ok(runs)
    }

    /// Runs checks on a tree. If none passes, the folder gets what it may lack, and all of them run
    /// again.
    pub fn run_controls(
        &mut self,
        checks: &[&Check],
        tree: &str,
    ) -> Result<Vec<CheckResult>, String> {
        self.lay_out(tree)?;
        let results = self.run_each(checks)?;
        let is_enough = results.iter().any(check_passed) || !self.prepare_folder()?;
        if is_enough { Ok(results) } else { self.run_each(checks) }
    }

    fn run_each(&self, checks: &[&Check]) -> Result<Vec<CheckResult>, String> {
        checks.iter().map(|check| self.run_check(check)).collect()
    }

    fn setup_command(&self) -> String {
        self.terms.subject.contract.trial.setup.clone().unwrap_or_default()
    }

    /// Runs a check in the folder; an error if it was interrupted.
    pub fn run_check(&self, check: &Check) -> Result<CheckResult, String> {
        let ScratchTerms { home, subject, stop, .. } = self.terms;
        let place = &subject.place;
        let below = place.folder.strip_prefix(&place.checkout).unwrap_or(Path::new(""));
        let folder = self.folder.join(below);
        if !disk::exists(&folder) {
            return Err(format!("{} is gone", folder.display()));
        }
        // A command that names the checkout means the tree that it runs on.
        let [checkout, scratch] =
            [&place.checkout, &self.folder].map(|folder| folder.display().to_string());
        let here = Check { run: check.run.replace(&checkout, &scratch), ..check.clone() };
        let out = path_out(&place.checkout, &here.run, &env::text, &|path| {
            disk::real_path(Path::new(path)).unwrap_or_else(|_| path.into())
        });
        if let Some(path) = out {
            return Err(format!("`{}` may leave the scratch folder by {path}", check.run));
        }
        let result = run_check(home, subject, &here, &folder, &self.within, stop);
        let result = result.ok_or_else(|| "it was interrupted".to_owned())?;
        Ok(CheckResult { run: check.run.clone(), ..result })
    }
}

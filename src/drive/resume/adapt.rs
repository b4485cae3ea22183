//! Adapts a loop that resumes in fresh processes: it keeps what it had, except what was typed now.

use anyhow::{Error, Result, bail};

use super::{Resumed, begin_anew, look_around, refuse, refuse_the_spent, resume};
use crate::agents::Launch;
use crate::drive::control::tellable;
use crate::drive::end::handoff;
use crate::drive::find::NewOwner;
use crate::drive::prompt::Prompt;
use crate::drive::start::repository::{
    drafts_of, on_another_branch, refuse_impossible, same_repository, unlisted,
};
use crate::drive::start::run::{model, of_the_agent, run, the_agent, try_launch};
use crate::drive::start::{agent, settings};
use crate::drive::{test_changes, tree};
use crate::engine::boundary::limits::{LimitChanges, changed};
use crate::engine::record::{CheckMemory, Driver, GitSteps, IterationTimes, Loop, Run};
use crate::parse::arguments::{RecipeArgs, ResumeArgs};
use crate::parse::settings::amount::OrOff;
use crate::parse::settings::merge::{Layer, Settings};
use crate::parse::settings::options::{LoopOptions, ProcessOptions};
use crate::world::git;
use crate::world::process::Stop;
use crate::world::store::{self, Home};

/// Resumes a loop in this process. Its run is what it had, what the settings say where it had
/// nothing, and what was typed now. Its fallbacks are tried first: a login may take long, so no
/// lock is held.
pub fn resume_here(
    home: &Home,
    found: &Loop,
    arguments: &ResumeArgs,
    changes: &LimitChanges,
    stop: Stop<'_>,
) -> Result<Resumed> {
    let new_owner = NewOwner::process()?;
    refuse(home, found, &new_owner.owner)?;
    look_around(home, found, &new_owner.owner)?;
    same_repository(&found.place)?;
    let mut notes = Vec::new();
    let run = run_here(home, found, arguments, &mut notes)?;
    agent::refuse_useless(&run, &changed(changes, found, 0), &found.place.folder)?;
    agent::try_logins(&run, &found.place.folder, stop)?;
    resume(home, &found.id, changes, new_owner, |record| {
        notes.extend(adapt(home, record, arguments, run)?);
        Ok(notes)
    })
}

/// The prompt that a loop would get if it were resumed here, and for each agent the command line
/// that would carry it. Nothing is recorded, written or tried.
pub fn preview(
    home: &Home,
    mut record: Loop,
    arguments: &ResumeArgs,
    changes: &LimitChanges,
) -> Result<(Loop, Prompt, Vec<Launch>)> {
    refuse(home, &record, &NewOwner::process()?.owner)?;
    same_repository(&record.place)?;
    record.contract.limits = changed(changes, &record, 0);
    refuse_the_spent(&record, "crew resume")?;
    record.contract.run = Some(run_here(home, &record, arguments, &mut Vec::new())?);
    if let Some(words) = &arguments.answer.tell {
        record.state.messages.push(tellable(words)?);
    }
    let page = handoff::text_for_the_next(home, &record);
    begin_anew(&mut record, Driver::Process);
    let (prompt, launches) = try_launch(home, &record, page.as_ref())?;
    Ok((record, prompt, launches))
}

/// Gives a loop that resumes here its prepared `run`. Whether the agent can be started is tried
/// before anything is recorded. Returns what the user should know.
fn adapt(
    home: &Home,
    record: &mut Loop,
    arguments: &ResumeArgs,
    mut run: Run,
) -> Result<Vec<String>> {
    let options = &arguments.options;
    let mut notes = Vec::new();
    // A loop that began in a session is bound to the repository now, as a start does.
    let checkout = &record.place.checkout;
    refuse_impossible(&run.git, checkout, record.trusted.is_some())?;
    record.trusted = record.trusted.take().or_else(|| git::steps::trusted(checkout));
    let repository = record.place.repository.take().or_else(|| git::steps::repository(checkout));
    record.place.repository = repository;
    // Once an iteration has been committed, changed files may be the agent's.
    let had_commits = record.contract.run.as_ref().is_some_and(|had| had.git.commit);
    let is_the_users = !had_commits || record.state.completed == 0;
    let commits = run.git.commit && record.place.repository.is_some();
    let now = git::head(&record.place.checkout).0;
    if options.process.push {
        run.git.branch.clone_from(&now);
    }
    let reaches_a_branch = run.git.commit || run.git.push;
    let asked = |run: &Run| (run.agents().cloned().collect::<Vec<_>>(), run.permissions);
    let is_another_agent = record.contract.run.as_ref().map(asked) != Some(asked(&run));
    record.contract.run = Some(run);
    if is_another_agent {
        notes.extend(of_the_agent(&record.contract));
    }
    if reaches_a_branch && record.place.head.is_some() && record.branch() != now.as_deref() {
        notes.push(on_another_branch(record.branch(), now.as_deref()));
    }
    if let Some(words) = &arguments.answer.tell {
        record.state.messages.push(tellable(words)?);
    }
    try_launch(home, record, None)?;
    if commits && is_the_users {
        notes.extend(drafts_of(home, record, &|| false).map_err(|fault| unlisted(&fault))?);
    }
    // Last, because it forgets on disk what the old checks said.
    if arguments.answer.accept_test_changes {
        notes.extend(accept_test_changes(home, record)?);
    }
    Ok(notes)
}

/// The run of a loop that resumes here. The settings are read only for what the contract has no
/// copy of; `notes` are what they told.
fn run_here(
    home: &Home,
    record: &Loop,
    arguments: &ResumeArgs,
    notes: &mut Vec<String>,
) -> Result<Run> {
    let options = &arguments.options;
    let folder = record.place.folder.clone();
    let mut settings = |procedure: Option<&str>| -> Result<Settings> {
        let known = settings::look(home, &record.place.checkout, !arguments.no_project)?;
        let process = options.process.clone();
        let typed = LoopOptions { process, ..LoopOptions::default() };
        let typed = Layer::typed(&typed).map_err(Error::msg)?;
        let (settings, told) = settings::in_force(home, known, typed, procedure)?;
        *notes = told;
        Ok(settings)
    };
    let mut run = match record.contract.run.clone() {
        None => run(options, &RecipeArgs::default(), &settings(None)?, None, &folder)?,
        Some(had) if options.agent_cmd.is_none() && options.process.agent.is_none() => {
            agent::has_program(&had.agent, &folder)?;
            Run {
                model: options.process.model.clone().or(had.model.clone()),
                words: options.agent_words().unwrap_or(had.words.clone()),
                ..unchanged(had, &options.process)
            }
        }
        // Arguments that one agent understands are errors to another.
        Some(had) => {
            let settings = settings(had.procedure.as_deref())?;
            Run {
                agent: the_agent(options, &settings, &folder)?,
                model: model(options, &settings),
                account: settings.options.process.account.clone(),
                words: options.agent_words().unwrap_or_default(),
                ..unchanged(had, &options.process)
            }
        }
    };
    if !options.process.fallback.is_empty() {
        let settings = settings(run.procedure.as_deref())?;
        run.fallback = agent::fallbacks(&settings, &run.agent)?;
    }
    let own = &run.agent.name;
    run.fallback.retain(|agent| agent.name != *own);
    Ok(run)
}

/// Takes the tests as they are now for the original ones. Returns what the user should know.
///
/// # Errors
/// Where no snapshot can be taken.
pub fn accept_test_changes(home: &Home, record: &mut Loop) -> Result<Vec<String>> {
    // What a cut-off attempt left is a part of what is accepted.
    let snapshot =
        tree::begin(home, record).seen.and(tree::look(home, record)).and_then(|it| it.snapshot);
    accept_test_changes_of(home, record, snapshot)
}

/// Takes the tests of a snapshot for the original ones. Returns what the user should know.
///
/// # Errors
/// Without a snapshot.
pub fn accept_test_changes_of(
    home: &Home,
    record: &mut Loop,
    snapshot: Option<String>,
) -> Result<Vec<String>> {
    if snapshot.is_none() {
        bail!("the checks cannot be accepted: no snapshot can be taken here\nhint: crew doctor");
    }
    // What failed so far were other tests.
    record.state.checks.values_mut().for_each(CheckMemory::forget_failures);
    record.state.checked_as_found = false;
    let mut tests = store::read_tests(home, &record.id);
    for memory in tests.values_mut() {
        memory.as_found = false;
    }
    let _ = store::write_tests(home, &record.id, &tests);
    let mut notes = test_changes::begin(home, record, snapshot);
    notes.push(
        "the checks are accepted as they are now; that they failed before no longer counts"
            .to_owned(),
    );
    Ok(notes)
}

/// A run's former terms, with what was typed now in their place.
fn unchanged(had: Run, typed: &ProcessOptions) -> Run {
    Run {
        permissions: typed.permissions.unwrap_or(had.permissions),
        pace: IterationTimes {
            timeout_s: typed.timeout.map_or(had.pace.timeout_s, |it| it.0),
            idle_timeout_s: typed.idle_timeout.map_or(had.pace.idle_timeout_s, |it| it.0),
            delay_s: typed.delay.map_or(had.pace.delay_s, |it| it.0),
        },
        git: GitSteps {
            commit: had.git.commit || typed.commit,
            push: had.git.push || typed.push,
            rebase: match &typed.rebase {
                Some(OrOff::On(branch)) => Some(branch.clone()),
                _ => had.git.rebase,
            },
            branch: had.git.branch,
        },
        ..had
    }
}

//! Resumes a loop, in a session or in fresh processes: the same contract, counters and evidence,
//! but a new owner. Refuses if a limit is used up and not raised in the same command, or if the
//! loop's owner is still running: such a loop must be paused or ended there first.

use std::path::PathBuf;

use anyhow::{Error, Result, bail};

use super::boundary;
use super::checks::test_changes;
use super::control::check_message;
use super::end::{self, handoff};
use super::find::{NewOwner, environment_of, gone_reason, on_another_host, owner_is_gone};
use super::prompt::Prompt;
use super::start::baseline::run_baseline;
use super::start::establish::{HeldPointers, make_way};
use super::start::run::{
    agent_notes, find_agent, model_in_force, renew_run, run_terms, try_launch,
};
use super::start::{agent, terms};
use super::tree::place::{
    self, drafts_of, on_another_branch, refuse_impossible, same_repository, unlisted_fault,
};
use super::tree::{self};
use engine::boundary::limits::{
    LimitChange, LimitChanges, LimitName, change_limits, raise_options, reached_limit,
};
use engine::journal::{Event, NoteKind};
use engine::record::{Driver, Loop, LoopId, Outcome, Owner, Run, Status};
use engine::refuse;
use engine::usage::Money;
use engine::view::events::{EventSink, RunEvent};
use readers::agents::Launch;
use readers::clients::{self, resume_command_at};
use readers::parse::arguments::{RecipeArgs, ResumeArgs};
use readers::parse::settings::merge::{Layer, Layers, Settings, merge_layers};
use readers::parse::settings::options::LoopOptions;
use world::process::Stop;
use world::process::signals::Signals;
use world::store::settings::read_environment;
use world::store::{self, Held, Home, LOCK_WAIT, view, wakes};
use world::{clock, git, recorded_environment};

/// A resumed loop.
#[derive(Debug)]
pub struct Resumed {
    pub record: Loop,
    /// The newest handoff, for the new owner to read.
    pub handoff: Option<PathBuf>,
    /// Notes for the user: a loop there that cannot be read, a changed environment or changed tests
    /// that are accepted, the agent, processes that a killed crew may have left.
    pub notes: Vec<String>,
}

impl Resumed {
    /// Begins in this process: reports the resume, and runs the checks that have no result yet.
    pub fn begin_resumed(
        self,
        home: &Home,
        signals: &Signals,
        sink: &mut dyn EventSink,
    ) -> Result<Loop> {
        let record = self.report_resumed(sink);
        run_baseline(home, record, true, signals, sink)
    }

    /// Reports the resume of a loop of fresh processes, and returns the loop.
    pub fn report_resumed(self, sink: &mut dyn EventSink) -> Loop {
        sink.on_event(&RunEvent::Resumed(&self.record));
        for note in &self.notes {
            sink.on_event(&RunEvent::Noted(note));
        }
        self.record
    }
}

/// Takes a loop over. `adapt` makes the changes to the contract that the new owner needs, and
/// returns notes for the user.
pub fn resume_loop(
    home: &Home,
    id: &LoopId,
    changes: &LimitChanges,
    new_owner: NewOwner,
    adapt: impl FnOnce(&mut Loop) -> Result<Vec<String>>,
) -> Result<Resumed> {
    let found = store::load(home, id)?;
    refuse_resume(home, &found, &new_owner.owner)?;
    look_around(home, &found, &new_owner.owner)?;
    end::complete_end(home, &found);
    let pointers = HeldPointers::hold_pointers(home, &found.place.checkout, &new_owner.owner)?;
    let mut unreadable = Vec::new();
    for pointer in &pointers.files {
        make_way(home, pointer, id, &new_owner.owner, &mut unreadable)?;
    }
    let held = store::hold_loop(home, id, LOCK_WAIT)?;
    let before = held.load()?;
    let mut record = before.clone();
    refuse_resume(home, &record, &new_owner.owner)?;
    let lowered = set_limits(&mut record, changes)?;
    let is_run = new_owner.owner.driver == Driver::Process;
    refuse_the_spent(&record, &spell_resume(&new_owner.owner))?;
    let messages = record.state.exchange().messages().len();
    let adapted = adapt(&mut record)?;
    let has_message = record.state.exchange().messages().len() > messages;
    end::end_leftovers(home, &record);
    // Nobody has seen what its agent did last. A session may resume its own loop, which it drives.
    let is_open = record.state.status() == Status::Running;
    if is_open {
        tree::close_tree(home, &record);
    }
    let was_gone = is_open && owner_is_gone(home, &record);
    let late = if was_gone { Some(end::left_uncounted(home, &mut record)) } else { None };
    let former = record.state.owner().session_id.clone();
    let is_another = former.is_none() || former != new_owner.owner.session_id;
    let made = if is_another { handoff::for_the_next(home, &record) } else { None };
    let accepted = if is_run {
        None
    } else {
        recorded_environment::plan_environment(&record).accepted_names()
    };
    let looks_left = is_run && is_cut_off(home, &record);
    let unproved = if looks_left { end::unproved_note(&record) } else { None };
    hand_over(home, &mut record, new_owner);
    view::place_task(home, &mut record)?;
    store::clear_requests(home, id)?;
    store::keep_room(home, id);
    pointers.write_pointers(id)?;
    boundary::mark_undelivered(home, &record)?;
    let resumed = if is_run { NoteKind::ResumedInRun } else { NoteKind::ResumedInSession };
    let mut record = held.record(record, |next| Event::from_change(resumed, &before, next))?;
    // Only now, because another try after a failed resume needs to know what was interrupted.
    tree::reopen_tree(home, &record);
    if has_message {
        record = journal_message(&held, record, is_run);
    }
    if let Some(late) = late {
        let _ = held.note(&record, clock::now(), late);
    }
    if let Some(accepted) = &accepted {
        let _ = held.note(&record, clock::now(), accepted.as_str());
    }
    release_former(home, former, &record);
    let _ = view::write_view(&record);
    let handoff = made.or_else(|| Some(view::newest_handoff(&record)?.0));
    let notes = unreadable.into_iter().chain(lowered).chain(accepted).chain(unproved);
    Ok(Resumed { record, handoff, notes: notes.chain(adapted).collect() })
}

/// Changes the limits of a loop that resumes, up to what `CREW_MAX_COST` allows here. Returns a
/// note where that lowers the limit on cost.
fn set_limits(record: &mut Loop, changes: &LimitChanges) -> Result<Option<String>> {
    record.contract.limits = change_limits(changes, record, 0);
    let environment = read_environment().map_err(Error::msg)?;
    let settings = merge_layers(&Layers { environment, ..Layers::default() }, None);
    let most = settings.map_err(Error::msg)?.limits().max_cost_micros;
    let cost = record.contract.limits.max_cost_micros;
    if most == 0 || (1..=most).contains(&cost) {
        return Ok(None);
    }
    let lowered = LimitChanges::from([(LimitName::MaxCost, LimitChange::To(most))]);
    record.contract.limits = change_limits(&lowered, record, 0);
    Ok(Some(format!("CREW_MAX_COST lowers --max-cost to {}", Money::from_micros(most))))
}

/// The command that resumes a loop for this owner.
fn spell_resume(owner: &Owner) -> String {
    match owner.driver {
        Driver::Process => "crew resume".to_owned(),
        Driver::Session => clients::spell_command(clients::client_of(owner), "resume"),
    }
}

/// Notes the message that came with the resume. The prompt of a session is the answer to this
/// command, so a message in it is delivered. The loop has already been taken over, so a failure to
/// note the message changes nothing.
fn journal_message(held: &Held, mut record: Loop, is_run: bool) -> Loop {
    let notes: &[NoteKind] =
        if is_run { &[NoteKind::Message] } else { &[NoteKind::Message, NoteKind::Delivered] };
    for note in notes {
        record = held.change(&record, note.clone(), |_| {}).unwrap_or(record);
    }
    record
}

/// Fails for a loop that is completed, or has used up a limit; `command` is the command that
/// resumes it.
pub fn refuse_the_spent(record: &Loop, command: &str) -> Result<()> {
    refuse_the_completed(record)?;
    match reached_limit(record) {
        Some(limit) => refuse!(
            limit,
            format!(
                "raise it in the same command: {command} {}{}",
                record.id,
                raise_options(record)
            )
        ),
        None => Ok(()),
    }
}

/// Fails for the loop of a fleet, because its coordinator would not know that it runs. Once the
/// fleet is removed here, no coordinator waits for it.
pub fn refuse_a_task(home: &Home, record: &Loop) -> Result<()> {
    let task = record.fleet.as_ref().filter(|task| home.keeps_fleet(&task.name));
    let Some(refusal) = task.and_then(|_| record.refusal_of_its_fleet()) else { return Ok(()) };
    refuse_the_completed(record)?;
    bail!(refusal)
}

fn refuse_the_completed(record: &Loop) -> Result<()> {
    if record.outcome() == Some(Outcome::Completed) {
        refuse!(format!("loop {} is completed", record.id), clients::next_step(record));
    }
    Ok(())
}

/// Fails if the loop's place prevents a resume: the user switched it off there, or its folder is
/// missing.
fn look_around(home: &Home, found: &Loop, owner: &Owner) -> Result<()> {
    let id = &found.id;
    if end::apply_view(home, found)?.is_some() {
        refuse!(
            format!("loop {id} is cancelled now: {}", end::SWITCHED_OFF),
            format!("{} still resumes it", resume_command_at(owner, found))
        );
    }
    if let Some(gone) = place::missing_place(&found.place) {
        return Err(Error::new(gone).context(format!("loop {id} cannot be resumed")));
    }
    Ok(())
}

/// Takes the loop's pointer and wakes from its former session.
fn release_former(home: &Home, former: Option<String>, record: &Loop) {
    match (former, &record.state.owner().session_id) {
        (Some(former), now) if Some(&former) != now.as_ref() => {
            end::release_session(home, &former, &record.id);
        }
        // Otherwise a ticket of the wait that ended here would be valid for the next wait.
        (_, Some(session_id)) => wakes::clear_companions(home, session_id, None),
        (_, None) => {}
    }
}

/// Whether its crew was killed before it could end what it had started.
fn is_cut_off(home: &Home, record: &Loop) -> bool {
    let reason = record.state.end().ending().as_ref().map(|ending| &ending.reason);
    owner_is_gone(home, record) || reason == Some(&gone_reason(record))
}

/// Assigns the record to its new owner.
fn hand_over(home: &Home, record: &mut Loop, new_owner: NewOwner) {
    record.state.reopen(new_owner.owner.driver);
    record.environment = match new_owner.owner.driver {
        Driver::Session => Some(environment_of(&new_owner.owner, &record.place)),
        Driver::Process => None,
    };
    record.state.hand_over(new_owner.owner, new_owner.memory, clock::now());
    let tree = if record.watches_the_tree() { tree::begin_tree(home, record).seen } else { None };
    test_changes::follow_tree(home, record, tree, true);
}

/// Fails with the reason why a loop cannot be taken over.
fn refuse_resume(home: &Home, record: &Loop, new_owner: &Owner) -> Result<()> {
    refuse_the_completed(record)?;
    let id = &record.id;
    let owner = record.state.owner();
    let is_paused_run =
        record.state.status() == Status::Paused && record.driver() == Driver::Process;
    let runs = matches!(record.state.status(), Status::Running | Status::Waiting);
    if let (true, Some(elsewhere)) = (runs || is_paused_run, on_another_host(record)) {
        bail!(elsewhere);
    }
    if !runs || owner_is_gone(home, record) {
        return end::let_end(record);
    }
    // A command typed in this session runs only while the agent does not, so there is nothing to
    // take over. Another client may have the same session open, with its agent at work.
    if owner.session_id.is_some()
        && (&owner.session_id, &owner.process) == (&new_owner.session_id, &new_owner.process)
    {
        return Ok(());
    }
    let whose = match owner.session_id.as_deref() {
        Some(session) => format!("in session {session}"),
        None => "in crew run".to_owned(),
    };
    refuse!(
        format!("loop {id} is {} {whose}, process {}", record.status_word(), owner.process.pid),
        "crew pause {id} or crew cancel {id} first"
    )
}

// A loop that resumes in fresh processes keeps what it had, except what was typed now.

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
    let new_owner = NewOwner::from_process()?;
    refuse_resume(home, found, &new_owner.owner)?;
    look_around(home, found, &new_owner.owner)?;
    same_repository(&found.place)?;
    let mut notes = Vec::new();
    let run = run_here(home, found, arguments, &mut notes)?;
    agent::refuse_useless(&run, &change_limits(changes, found, 0), &found.place.folder)?;
    agent::try_logins(&run, &found.place.folder, stop)?;
    resume_loop(home, &found.id, changes, new_owner, |record| {
        notes.extend(adapt_record(home, record, arguments, run)?);
        Ok(notes)
    })
}

/// The prompt that a loop would get if it were resumed here, and for each agent the command line
/// that would carry the prompt. Nothing is recorded, written or tried.
pub fn preview_resume(
    home: &Home,
    mut record: Loop,
    arguments: &ResumeArgs,
    changes: &LimitChanges,
) -> Result<(Loop, Prompt, Vec<Launch>)> {
    refuse_resume(home, &record, &NewOwner::from_process()?.owner)?;
    same_repository(&record.place)?;
    set_limits(&mut record, changes)?;
    refuse_the_spent(&record, "crew resume")?;
    record.contract.run = Some(run_here(home, &record, arguments, &mut Vec::new())?);
    if let Some(words) = arguments.answer.tell() {
        record.state.add_messages([check_message(words)?]);
    }
    let page = handoff::text_for_the_next(home, &record);
    record.state.reopen(Driver::Process);
    let (prompt, launches) = try_launch(home, &record, page.as_ref())?;
    Ok((record, prompt, launches))
}

/// Gives a loop that resumes here its prepared `run`. Whether the agent can be started is checked
/// before anything is recorded. Returns notes for the user.
fn adapt_record(
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
    record.trusted = record.trusted.take().or_else(|| git::steps::read_trusted(checkout));
    let repository =
        record.place.repository.take().or_else(|| git::steps::repository_folder(checkout));
    record.place.repository = repository;
    // Once an iteration has been committed, changed files may be the agent's.
    let had_commits = record.contract.run.as_ref().is_some_and(|had| had.git.commit);
    let is_the_users = !had_commits || record.state.counts().completed() == 0;
    let commits = run.git.commit && record.place.repository.is_some();
    let now = git::read_head(&record.place.checkout).0;
    if *options.process.push() {
        run.git.branch.clone_from(&now);
    }
    let reaches_a_branch = run.git.commit || run.git.push;
    let is_another_agent = record
        .contract
        .run
        .as_ref()
        .is_none_or(|had| !had.agents().eq(run.agents()) || had.permissions != run.permissions);
    record.contract.run = Some(run);
    if is_another_agent {
        notes.extend(agent_notes(&record.contract));
    }
    if reaches_a_branch && record.place.head.is_some() && record.branch() != now.as_deref() {
        notes.push(on_another_branch(record.branch(), now.as_deref()));
    }
    if let Some(words) = arguments.answer.tell() {
        record.state.add_messages([check_message(words)?]);
    }
    try_launch(home, record, None)?;
    if commits && is_the_users {
        notes.extend(drafts_of(home, record, &|| false).map_err(unlisted_fault)?);
    }
    // Last, because it forgets on disk what the old checks said.
    if *arguments.answer.accept_test_changes() {
        notes.extend(accept_test_changes(home, record)?);
    }
    Ok(notes)
}

/// The run of a loop that resumes here. The settings are read only for terms that the contract does
/// not have; notes about them are added to `notes`.
fn run_here(
    home: &Home,
    record: &Loop,
    arguments: &ResumeArgs,
    notes: &mut Vec<String>,
) -> Result<Run> {
    let options = &arguments.options;
    let folder = record.place.folder.clone();
    let mut run = match record.contract.run.clone() {
        None => {
            let settings = read_settings(home, record, arguments, None, notes)?;
            run_terms(options, &RecipeArgs::default(), &settings, None, &folder)?
        }
        Some(had) if options.agent_cmd.is_none() && options.process.agent().is_none() => {
            agent::require_program(&had.agent, &folder)?;
            let words = options.agent_words().unwrap_or(had.words.clone());
            Run { words, ..renew_run(had, &options.process) }
        }
        // Arguments that one agent understands are errors to another.
        Some(had) => {
            let settings = read_settings(home, record, arguments, had.procedure.as_deref(), notes)?;
            Run {
                agent: find_agent(options, &settings, &folder)?,
                model: model_in_force(options, &settings),
                account: settings.options().file_process.account().clone(),
                words: options.agent_words().unwrap_or_default(),
                ..renew_run(had, &options.process)
            }
        }
    };
    if !options.process.fallback().is_empty() {
        let settings = read_settings(home, record, arguments, run.procedure.as_deref(), notes)?;
        run.fallback = agent::resolve_fallbacks(&settings, &run.agent)?;
    }
    let own = &run.agent.name;
    run.fallback.retain(|agent| agent.name != *own);
    Ok(run)
}

/// The settings in force for a loop that resumes here; notes about them are added to `notes`.
fn read_settings(
    home: &Home,
    record: &Loop,
    arguments: &ResumeArgs,
    procedure: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Settings> {
    let known = terms::load_settings(home, &record.place.checkout, !arguments.no_project)?;
    let process = arguments.options.process.clone();
    let typed = Layer::from_options(&LoopOptions { process, ..LoopOptions::default() })?;
    let (settings, found) = terms::in_force(home, known, typed, procedure)?;
    *notes = found;
    Ok(settings)
}

/// Accepts the current tests as the original ones. Returns notes for the user.
///
/// # Errors
/// Where no snapshot can be taken.
pub fn accept_test_changes(home: &Home, record: &mut Loop) -> Result<Vec<String>> {
    // The work of an interrupted attempt is part of what is accepted.
    let snapshot = tree::begin_tree(home, record)
        .seen
        .and(tree::look_at_tree(home, record))
        .and_then(|seen| seen.snapshot);
    accept_test_changes_of(home, record, snapshot)
}

/// Accepts the tests of a snapshot as the original ones. Returns notes for the user.
///
/// # Errors
/// Without a snapshot.
pub fn accept_test_changes_of(
    home: &Home,
    record: &mut Loop,
    snapshot: Option<String>,
) -> Result<Vec<String>> {
    if snapshot.is_none() {
        refuse!("the checks cannot be accepted: no snapshot can be taken here", "crew doctor");
    }
    // What failed so far were other tests.
    record.state.forget_failures();
    let mut tests = store::read_tests(home, &record.id);
    for memory in tests.values_mut() {
        memory.as_found = false;
    }
    let _ = store::write_tests(home, &record.id, &tests);
    let mut notes = test_changes::begin_baseline(home, record, snapshot);
    notes.push(
        "the checks are accepted as they are now; that they failed before no longer counts"
            .to_owned(),
    );
    Ok(notes)
}

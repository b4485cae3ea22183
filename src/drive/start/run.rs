//! Starts a loop of fresh processes: the command line and the settings become its contract, and the
//! agent is searched for before anything is written. The checks run once before the first
//! iteration, because the proof at the end depends on their result before it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, bail};

use super::baseline::run_baseline;
use super::establish::{Prepared, establish_loop, suggest_checks};
use super::{agent, terms};
use crate::drive::checks::check::missing_at_the_start;
use crate::drive::end;
use crate::drive::find::{NewOwner, own_process};
use crate::drive::prompt::{self, Prompt};
use crate::drive::tree::place::{
    self, NO_BRANCH, drafts_of, git_needed, refuse_impossible, unlisted_fault, without_git,
};
use engine::boundary::limits;
use engine::failure::Failure;
use engine::record::{
    Agent, Contract, EndReason, Ending, Fragment, GitSteps, IterationTimes, Loop, LoopId, Outcome,
    Phase, Place, Recipe, Run, TaskOfFleet,
};
use engine::refuse;
use engine::text::clip_line;
use engine::view::events::{EventSink, RunEvent};
use readers::agents::{self, Launch, is_tried};
use readers::parse::amounts::OrOff;
use readers::parse::arguments::{LoopArgs, RecipeArgs, RunArgs, RunOptions};
use readers::parse::fragment::parse_fragment as read_fragment;
use readers::parse::settings::merge::{
    Settings, ValueOrigin, amount_or_zero, clamp_to_u32, merge_layers,
};
use readers::parse::settings::options::ProcessOptions;
use readers::parse::spelling::shorten_text;
use readers::prompts::procedures::nearest_to;
use world::files::disk;
use world::git::commit::hand_drafts_on;
use world::process::signals::Signals;
use world::store::{self, Home, read_pointer};
use world::{clock, env, git, logs};

/// The maximum number of characters in a command that a message names.
const COMMAND_CHARS: usize = 80;

/// Makes the terms of a run from the arguments typed in `folder`. `--worktree` creates the working
/// tree, unless nothing may be written.
pub fn prepare_run(home: &Home, arguments: RunArgs, folder: &Path) -> Result<Prepared> {
    let (folder, made) = make_worktree(&arguments, folder)?;
    let place = place::find_place(&folder, None)?;
    let known = terms::load_settings(home, &place.checkout, !arguments.start.no_project)?;
    let mut prepared = prepare_at(home, arguments, &folder, place, known)?;
    prepared.notes.splice(..0, made);
    Ok(prepared)
}

/// Prepares a start at a known place, with its settings.
pub fn prepare_at(
    home: &Home,
    mut arguments: RunArgs,
    folder: &Path,
    place: Place,
    known: terms::LoadedSettings,
) -> Result<Prepared> {
    let typed = terms::typed_layer(arguments.loop_options(), &place.folder)?;
    let RunArgs { start, recipe, options, .. } = &mut arguments;
    let procedure = load_procedure(start, &known)?;
    let (settings, mut notes) = terms::in_force(home, known, typed, procedure.as_deref())?;
    let run = run_terms(options, recipe, &settings, procedure, folder)?;
    require_phase(&run)?;
    let without_git = without_git(&options.process, &run.git, folder)?;
    refuse_impossible(&run.git, folder, false)?;
    let contract = terms::build_contract(start, &settings, folder, Some(run))?;
    if let Some(run) = &contract.run {
        agent::refuse_useless(run, &contract.limits, folder)?;
    }
    notes.extend(agent_notes(&contract));
    if let Some(file) = &start.prompt_file
        && Path::new(file).extension().is_some_and(|ending| ending == "j2")
    {
        notes.push(format!(
            "{file} is sent as it is: a task is not a template; --act {file} fills it in"
        ));
    }
    notes.extend(missing_at_the_start(&place, &contract.checks)?);
    notes.extend(without_git);
    let (keep, replace) = (settings.log_retention(), start.replace);
    Ok(Prepared { keep, replace, ..Prepared::new(place, contract, notes) })
}

/// The loop's separate working tree, and a note about it.
fn make_worktree(arguments: &RunArgs, folder: &Path) -> Result<(PathBuf, Option<String>)> {
    let Some(name) = &arguments.worktree else { return Ok((folder.to_owned(), None)) };
    if arguments.dry_run {
        refuse!(
            "--dry-run writes nothing, but --worktree would create a working tree",
            "leave one of them out"
        );
    }
    let top = git::find_top(folder).ok_or_else(|| git_needed("--worktree", folder))?;
    let made = git::worktree::open_worktree(&top, name, "HEAD")?;
    let verb = if made.is_new { "made" } else { "found" };
    let note = format!("working tree {verb}: {}", made.path.display());
    Ok((made.path, Some(note)))
}

/// The procedure that the single typed word names. A word that names none is not used as a task,
/// because it is too often a slip; but some languages write a sentence without blanks.
fn load_procedure(
    arguments: &mut LoopArgs,
    known: &terms::LoadedSettings,
) -> Result<Option<String>> {
    let Some(word) = arguments.task() else { return Ok(None) };
    if word.contains(char::is_whitespace) {
        return Ok(None);
    }
    if known.has_procedure(&word) {
        arguments.task.clear();
        return Ok(Some(word));
    }
    if !word.is_ascii() {
        return Ok(None);
    }
    let settings = merge_layers(&known.layers, None).map_err(Error::msg)?;
    let meant = nearest_to(&word, &settings);
    let meant = meant.map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
    bail!(Failure::usage(
        format!("there is no procedure `{}`{meant}", shorten_text(&word)),
        "crew run --list names them; a task needs at least two words",
    ))
}

/// The terms of a run, from what was typed and the settings in force.
pub fn run_terms(
    options: &RunOptions,
    typed: &RecipeArgs,
    settings: &Settings,
    procedure: Option<String>,
    folder: &Path,
) -> Result<Run> {
    let agent = find_agent(options, settings, folder)?;
    let file = &settings.options().file_process;
    Ok(Run {
        procedure,
        fallback: agent::resolve_fallbacks(settings, &agent)?,
        agent,
        model: model_in_force(options, settings),
        account: file.account().clone(),
        words: options.agent_words().unwrap_or_default(),
        recipe: apply_recipe(typed, settings.recipe().clone(), folder)?,
        max_turns: clamp_to_u32(amount_or_zero(*file.max_turns())),
        token_budget: amount_or_zero(*file.token_budget()),
        redline: u8::try_from(amount_or_zero(*file.redline())).unwrap_or_default(),
        reactions: settings.layer().reactions.iter().map(|sourced| sourced.value.clone()).collect(),
        may_sleep: *file.awake() == Some(false),
        ..renew_run(Run::default(), &settings.options().process)
    })
}

/// A run's terms, with those that the options replace.
pub fn renew_run(had: Run, options: &ProcessOptions) -> Run {
    Run {
        permissions: options.permissions().unwrap_or(had.permissions),
        model: options.model().clone().or(had.model),
        pace: IterationTimes {
            timeout_s: options.timeout().map_or(had.pace.timeout_s, |time| time.0),
            idle_timeout_s: options.idle_timeout().map_or(had.pace.idle_timeout_s, |time| time.0),
            delay_s: options.delay().map_or(had.pace.delay_s, |time| time.0),
        },
        git: GitSteps {
            commit: had.git.commit || *options.commit(),
            push: had.git.push || *options.push(),
            rebase: match options.rebase() {
                Some(OrOff::On(branch)) => Some(branch.clone()),
                _ => had.git.rebase,
            },
            branch: had.git.branch,
        },
        ..had
    }
}

/// The model in force. A typed command ignores the settings' model, which is meant for another
/// agent.
pub fn model_in_force(options: &RunOptions, settings: &Settings) -> Option<String> {
    let origin = &settings.layer().values.get("model")?.origin;
    let is_in_force = options.agent_cmd.is_none() || *origin == ValueOrigin::Typed;
    if is_in_force { settings.options().process.model().clone() } else { None }
}

/// Notes about the contract's agents.
pub fn agent_notes(contract: &Contract) -> Vec<String> {
    let Some(run) = &contract.run else { return Vec::new() };
    let notes = run.agents().flat_map(|agent| {
        untried_note(agent).into_iter().chain(not_allowed(&run.as_done_by(agent), contract))
    });
    notes.collect()
}

/// The note about checks that crew runs and the agent may not.
fn not_allowed(run: &Run, contract: &Contract) -> Option<String> {
    let commands = agents::not_allowed(run, &contract.checks).into_iter();
    let quoted: Vec<String> =
        commands.map(|run| format!("`{}`", clip_line(run, COMMAND_CHARS))).collect();
    if quoted.is_empty() {
        return None;
    }
    Some(format!(
        "{} may not run {} unless its own settings allow it: crew's rules cannot name exactly \
         that command. Put it into a script; crew itself runs it either way",
        run.agent.name,
        quoted.join(", ")
    ))
}

/// The note about an agent that crew knows only from its documentation.
fn untried_note(agent: &Agent) -> Option<String> {
    let name = &agent.name;
    if is_tried(name) {
        return None;
    }
    Some(format!(
        "crew's support for {name} was built from its documentation and was not tried with the real tool"
    ))
}

/// The agent in force, whose program must exist.
pub fn find_agent(options: &RunOptions, settings: &Settings, folder: &Path) -> Result<Agent> {
    let agent = agent::resolve_agent(settings, options.agent_cmd.as_deref())?;
    agent::require_program(&agent, folder)?;
    Ok(agent)
}

/// A typed phase replaces the procedure's; typed context is added to it.
fn apply_recipe(typed: &RecipeArgs, mut recipe: Recipe, folder: &Path) -> Result<Recipe> {
    let RecipeArgs { context, observe, orient, decide, act } = typed;
    for (phase, texts) in Phase::ALL.into_iter().zip([context, observe, orient, decide, act]) {
        let read: Result<Vec<Fragment>> =
            texts.iter().map(|text| read_typed_fragment(text, folder)).collect();
        let all = recipe.0.entry(phase).or_default();
        if phase != Phase::Context && !texts.is_empty() {
            all.clear();
        }
        all.extend(read?);
    }
    Ok(recipe)
}

/// A typed fragment. A link that the user types is followed, wherever it points.
fn read_typed_fragment(text: &str, folder: &Path) -> Result<Fragment> {
    match read_fragment(text, folder, &disk::is_file) {
        Ok(Fragment::File(path)) => Ok(Fragment::File(disk::real_path(&path)?)),
        Ok(other) => Ok(other),
        Err(wanted) => {
            refuse!("`{text}` names no file", "write {wanted}")
        }
    }
}

/// Refuses a procedure whose prompt would be empty.
fn require_phase(run: &Run) -> Result<()> {
    let is_empty = Phase::ALL[1..].iter().all(|phase| run.recipe.fragments_of(*phase).is_empty());
    if let (Some(name), true) = (&run.procedure, is_empty) {
        refuse!(
            "procedure `{name}` has no phase: nothing would be asked of the agent",
            "give it observe, orient, decide or act in the settings, or type --act \"…\""
        );
    }
    Ok(())
}

/// The first prompt and the command lines that would carry it: `--dry-run` shows them, and every
/// start tries them before anything is written.
pub fn first_prompt(home: &Home, prepared: &Prepared) -> Result<(Loop, Prompt, Vec<Launch>)> {
    let Prepared { contract, place, .. } = prepared;
    let id = LoopId::from_random(env::random_number());
    let subject = Loop::begin_at(id, contract.clone(), place.clone(), own_process()?, clock::now());
    let (prompt, launches) = try_launch(home, &subject, None)?;
    Ok((subject, prompt, launches))
}

/// The loop's next prompt, and for each agent the command line that would carry it.
pub fn try_launch(
    home: &Home,
    subject: &Loop,
    handoff: Option<&(PathBuf, String)>,
) -> Result<(Prompt, Vec<Launch>)> {
    let prompt = prompt::assemble_prompt(home, subject, handoff).map_err(Error::msg)?;
    let run = subject.contract.run.clone().unwrap_or_default();
    let checks = &subject.contract.checks;
    let usage_file = logs::usage_file(home, &subject.id, subject.iteration());
    let launches = run.agents().map(|agent| {
        let role = if agent.name == run.agent.name { "agent" } else { "fallback" };
        let usage_file = usage_file.to_string_lossy();
        agents::build_launch(&run.as_done_by(agent), role, &prompt.text, checks, &usage_file)
    });
    let launches = launches.collect::<Result<_, Failure>>()?;
    Ok((prompt, launches))
}

/// Begins the loop in this process.
pub fn begin_run(
    home: &Home,
    prepared: Prepared,
    signals: &Signals,
    sink: &mut dyn EventSink,
) -> Result<Loop> {
    first_prompt(home, &prepared)?;
    if let Some(run) = &prepared.contract.run {
        agent::try_logins(run, &prepared.place.folder, &|| signals.times() > 0)?;
    }
    let earlier = match &prepared.fleet {
        Some(task) if prepared.is_as_left => earlier_of(home, task, &prepared.place),
        _ => None,
    };
    let begun = establish_loop(home, prepared, NewOwner::from_process()?)?;
    let (held, record, mut notes) = begun.context("the loop was started already")?;
    drop(held);
    if let Some(earlier) = earlier {
        hand_drafts_on(home, &earlier, &record)?;
    }
    if record.contract.checks.is_empty() {
        let what = limits::without_checks(&record.contract);
        let hint = suggest_checks(&record).map_or_else(String::new, |check| {
            format!("; `{check}` would prove the job: --verify \"{check}\"")
        });
        notes.push(format!("{what}{hint}"));
    }
    notes.extend(before_commits(home, &record, signals)?);
    sink.on_event(&RunEvent::Started(&record));
    for note in &notes {
        sink.on_event(&RunEvent::Noted(note));
    }
    run_baseline(home, record, false, signals, sink)
}

/// The loop of the same task that had this working tree before: if it was killed, the work it left
/// there is not the user's draft.
fn earlier_of(home: &Home, task: &TaskOfFleet, place: &Place) -> Option<LoopId> {
    let id = read_pointer(&home.checkout_pointer(&place.checkout)).ok()??;
    let found = store::load(home, &id).ok()?;
    (found.fleet.as_ref() == Some(task)).then_some(id)
}

/// Lists the user's own files before the first commit, and returns notes about them. If they cannot
/// be listed the loop ends, because later they could not be distinguished from the agent's work.
fn before_commits(home: &Home, record: &Loop, signals: &Signals) -> Result<Vec<String>> {
    let git = record.contract.run.as_ref().map(|run| run.git.clone()).unwrap_or_default();
    if !git.commit || record.place.repository.is_none() {
        return Ok(Vec::new());
    }
    let mut notes = Vec::new();
    if record.place.branch.is_none() {
        notes.push(NO_BRANCH.to_owned());
    }
    let stop = || signals.times() > 0 || store::breaks_off(home, &record.id);
    match drafts_of(home, record, &stop) {
        Ok(drafts) => notes.extend(drafts),
        // Whoever asked for the end gets it before the first iteration.
        Err(_) if stop() => {}
        Err(fault) => {
            let fault = unlisted_fault(fault);
            let ending = Ending::new(Outcome::Error, EndReason::Git(fault.clone()));
            let _ = end::end_loop(home, &record.id, ending, store::LOCK_WAIT);
            return Err(fault.into());
        }
    }
    Ok(notes)
}

//! Starts a loop of fresh processes: what was typed and what the settings say become its contract, the agent
//! is looked for before anything is written, and the checks are run once before the first iteration, so that
//! what they prove at the end can be told from what they said before.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, bail};

use super::prompt::{self, Prompt};
use super::watch::Cancels;
use crate::agents::catalogue::is_tried;
use crate::agents::{self, Ask, Launch};
use crate::drive::establish::{Beginning, establish};
use crate::drive::resume::myself;
use crate::drive::{agent, gather, place, procedures, settings, start, terms};
use crate::engine::agent::Agent;
use crate::engine::contract::{Contract, Place, Role};
use crate::engine::facts::Verdict;
use crate::engine::journal::Event;
use crate::engine::looped::{CheckMemory, Loop, LoopId, State, VERSION};
use crate::engine::news::{Listener, News};
use crate::engine::owner::SessionMemory;
use crate::engine::run::{Fragment, GitSteps, Pace, Recipe, Run};
use crate::engine::settings::merge::{Settings, merge};
use crate::engine::settings::run::Keep;
use crate::engine::settings::{Layer, Limit, Sourced};
use crate::parse::arguments::{LoopArguments, RunOptions, UsageError};
use crate::parse::duration::whole_seconds;
use crate::parse::fragment::fragment as read_fragment;
use crate::parse::spelling::shown;
use crate::prompts::procedures::meant;
use crate::world::fingerprint::fingerprint;
use crate::world::home::Home;
use crate::world::unix::Signals;
use crate::world::{client, clock, disk, env, git, store, view};

/// A loop that could begin: nothing is written yet.
#[derive(Debug)]
pub struct Prepared {
    pub place: Place,
    pub contract: Contract,
    /// What the user should know: one sentence each.
    pub notes: Vec<String>,
    pub keep: Keep,
    pub replace: bool,
}

/// Makes the terms of a run from what was typed in `folder`. `--worktree` makes the working tree, unless
/// nothing may be written.
pub fn prepare(home: &Home, mut arguments: LoopArguments, folder: &Path) -> Result<Prepared> {
    let (folder, made) = worktree(&arguments.run, folder)?;
    let folder = folder.as_path();
    let place = place::place(folder, None)?;
    let known = settings::look(home, &place.checkout, !arguments.no_project)?;
    let procedure = procedure(&mut arguments, &known)?;
    let mut typed = terms::typed(&arguments, &place.folder)?;
    type_run(&mut typed, &arguments.run);
    let (settings, notes) = settings::for_run(home, known, typed, procedure.as_deref())?;
    let run = run(&arguments.run, &settings, procedure, folder)?;
    some_phase(&run)?;
    let without_git = without_git(&arguments.run, &run.git, folder)?;
    let contract = terms::contract(&arguments, &settings, folder, Some(run))?;
    let untried = contract.run.as_ref().and_then(|run| untried(&run.agent));
    Ok(Prepared {
        place,
        contract,
        notes: made.into_iter().chain(notes).chain(untried).chain(without_git).collect(),
        keep: settings.keep(),
        replace: arguments.replace,
    })
}

/// The working tree the loop gets for itself, and what is said of it.
fn worktree(options: &RunOptions, folder: &Path) -> Result<(PathBuf, Option<String>)> {
    let Some(name) = &options.worktree else { return Ok((folder.to_owned(), None)) };
    if options.dry_run {
        bail!("--dry-run writes nothing, and --worktree would make one: leave one of them out");
    }
    let top =
        git::top(folder).context("--worktree needs a git repository, and there is none here")?;
    let made = git::worktree::worktree(&top, name)?;
    let verb = if made.is_new { "made" } else { "found" };
    let note = format!("working tree {verb}: {}", made.path.display());
    Ok((made.path, Some(note)))
}

/// Refuses typed steps of git where there is no git, and notes those of the settings.
fn without_git(options: &RunOptions, steps: &GitSteps, folder: &Path) -> Result<Option<String>> {
    if *steps == GitSteps::default() || git::top(folder).is_some() {
        return Ok(None);
    }
    let typed = [
        ("--commit", options.commit),
        ("--push", options.push),
        ("--rebase", options.rebase.is_some()),
    ];
    if let Some((option, _)) = typed.iter().find(|(_, is_typed)| *is_typed) {
        bail!(
            "{option} needs a git repository, and there is none here\nhint: git init, or leave it out"
        );
    }
    Ok(Some("this is no git repository: nothing is committed, pushed or rebased".to_owned()))
}

/// The procedure that the one typed word names. A word that names none is no task: it is too easily a slip.
fn procedure(arguments: &mut LoopArguments, known: &settings::Known) -> Result<Option<String>> {
    let Some(word) = arguments.task.clone() else { return Ok(None) };
    if word.contains(char::is_whitespace) {
        return Ok(None);
    }
    if known.has_procedure(&word) {
        arguments.task = None;
        return Ok(Some(word));
    }
    let own = procedures::own(&merge(&known.layers, settings::environment(), None));
    bail!(UsageError::NoProcedure { meant: meant(&word, &own), word: shown(&word) })
}

/// Adds what only a run has to what was typed.
fn type_run(layer: &mut Layer, options: &RunOptions) {
    let limits = [
        (Limit::Timeout, options.timeout.map(whole_seconds)),
        (Limit::IdleTimeout, options.idle_timeout.map(whole_seconds)),
        (Limit::Delay, options.delay.map(whole_seconds)),
        (Limit::MaxTurns, options.max_turns.map(u64::from)),
    ];
    for (limit, value) in limits {
        if let Some(value) = value {
            layer.limits.insert(limit, Sourced::typed(value));
        }
    }
    layer.agent = options.agent.clone().map(Sourced::typed);
    layer.permissions = options.permissions.map(Sourced::typed);
    layer.commit = options.commit.then(|| Sourced::typed(true));
    layer.push = options.push.then(|| Sourced::typed(true));
    layer.rebase = options.rebase.clone().map(|branch| Sourced::typed(Some(branch)));
    layer.awake = options.no_awake.then(|| Sourced::typed(false));
}

fn run(
    options: &RunOptions,
    settings: &Settings,
    procedure: Option<String>,
    folder: &Path,
) -> Result<Run> {
    Ok(Run {
        procedure,
        agent: the_agent(options, settings, folder)?,
        permissions: settings.permissions.value,
        recipe: recipe(options, settings.recipe.clone(), folder)?,
        pace: settings.pace(),
        max_turns: settings.max_turns(),
        token_budget: settings.token_budget(),
        git: settings.git(),
        reactions: settings.contract_reactions(),
        may_sleep: !settings.awake.value,
    })
}

/// What is said of an agent that crew knows by its documentation only.
fn untried(agent: &Agent) -> Option<String> {
    let name = &agent.name;
    (!is_tried(name)).then(|| {
        format!("how crew works with {name} is made from its documentation and was not tried with the real tool")
    })
}

/// The agent in force, whose program must be there.
fn the_agent(options: &RunOptions, settings: &Settings, folder: &Path) -> Result<Agent> {
    let agent = agent::resolve(settings, options.agent_cmd.as_deref())?;
    has_program(&agent, folder)?;
    Ok(agent)
}

/// Refuses an agent whose program is not there.
fn has_program(agent: &Agent, folder: &Path) -> Result<()> {
    let program = agent.command.first().map_or("", String::as_str);
    let is_there = if program.contains('/') {
        disk::exists(&folder.join(program))
    } else {
        !client::on_path(program).is_empty()
    };
    if !is_there {
        bail!(
            "agent {}: there is no program `{program}` on PATH\n\
             hint: install it, or name another: --agent NAME, or --agent-cmd \"COMMAND\"",
            agent.name
        );
    }
    Ok(())
}

/// What is typed of a phase stands in the place of the procedure's; context is added to it.
fn recipe(options: &RunOptions, mut recipe: Recipe, folder: &Path) -> Result<Recipe> {
    let read = |texts: &[String]| -> Result<Vec<Fragment>> {
        texts.iter().map(|text| fragment(text, folder)).collect()
    };
    recipe.context.extend(read(&options.context)?);
    for (typed, phase) in [
        (&options.observe, &mut recipe.observe),
        (&options.orient, &mut recipe.orient),
        (&options.decide, &mut recipe.decide),
        (&options.act, &mut recipe.act),
    ] {
        if !typed.is_empty() {
            *phase = read(typed)?;
        }
    }
    Ok(recipe)
}

/// A typed fragment. A link that a person types is followed, wherever it leads.
fn fragment(text: &str, folder: &Path) -> Result<Fragment> {
    match read_fragment(text, folder, &disk::is_file) {
        Ok(Fragment::File(path)) => Ok(Fragment::File(disk::real_path(&path)?)),
        Ok(other) => Ok(other),
        Err(wanted) => bail!("`{text}` names no file\nhint: write {wanted}"),
    }
}

/// Refuses a procedure that would ask nothing of its agent.
fn some_phase(run: &Run) -> Result<()> {
    let Recipe { observe, orient, decide, act, .. } = &run.recipe;
    let is_empty = [observe, orient, decide, act].iter().all(|phase| phase.is_empty());
    if let (Some(name), true) = (&run.procedure, is_empty) {
        bail!(
            "procedure `{name}` has no phase: nothing would be asked of the agent\n\
             hint: give it observe, orient, decide or act in the settings, or type --act \"…\""
        );
    }
    Ok(())
}

/// The first prompt and the command line that would carry it: what `--dry-run` shows, and what is tried
/// before anything is written.
pub fn first_prompt(home: &Home, prepared: &Prepared) -> Result<(Loop, Prompt, Launch)> {
    let subject = Loop {
        version: VERSION,
        id: LoopId::from_random(env::random()),
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: clock::now().wall,
        contract: prepared.contract.clone(),
        place: prepared.place.clone(),
        elapsed_ms: Vec::new(),
        trusted: None,
        environment: None,
        protected: None,
        state: State::begin(myself()?, clock::now()),
    };
    let (prompt, launch) = try_launch(home, &subject)?;
    Ok((subject, prompt, launch))
}

/// The loop's next prompt, and the command line that would carry it.
fn try_launch(home: &Home, subject: &Loop) -> Result<(Prompt, Launch)> {
    let prompt = prompt::assemble(home, subject, None).map_err(Error::msg)?;
    let run = subject.contract.run.clone().unwrap_or_default();
    let ask = Ask { prompt: &prompt.text, permissions: run.permissions, max_turns: run.max_turns };
    let launch = agents::launch(&run.agent, &ask).map_err(Error::msg)?;
    Ok((prompt, launch))
}

/// Begins the loop in this process.
pub fn begin(
    home: &Home,
    prepared: Prepared,
    signals: &Signals,
    listener: &mut dyn Listener,
) -> Result<Loop> {
    first_prompt(home, &prepared)?;
    let Prepared { place, contract, mut notes, replace, .. } = prepared;
    let beginning =
        Beginning { place, contract, owner: myself()?, memory: SessionMemory::default(), replace };
    let begun = establish(home, beginning, |_| false)?.context("the loop was started already")?;
    let (held, record, vacated) = begun;
    drop(held);
    notes.extend(vacated);
    if let Err(error) = view::write(&record) {
        let folder = record.place.reading_folder();
        notes.push(format!(
            "the checkout's files could not be written ({error}); task and handoffs are in {}",
            folder.display()
        ));
    }
    if record.contract.checks.is_empty() {
        let what = match record.contract.promise {
            Some(_) => "nothing is checked: a claim is the agent's word",
            None => "nothing is checked, and no claim ends it: it runs to its limit",
        };
        let way_out = start::suggestion(&record)
            .map_or_else(String::new, |check| format!("; --verify \"{check}\" would prove it"));
        notes.push(format!("{what}{way_out}"));
    }
    listener.hear(&News::Started(&record));
    for note in &notes {
        listener.hear(&News::Noted(note));
    }
    baseline(home, record, signals, listener)
}

/// Runs what a claim will be held to once before the first iteration.
fn baseline(
    home: &Home,
    mut record: Loop,
    signals: &Signals,
    listener: &mut dyn Listener,
) -> Result<Loop> {
    if record.contract.of_role(Role::Verify).next().is_none() {
        return Ok(record);
    }
    let listener = std::cell::RefCell::new(listener);
    let id = record.id.clone();
    let cancels = Cancels::new(home, &id);
    let stop = || {
        listener.borrow_mut().tick();
        signals.times() > 0 || cancels.any()
    };
    let tell = |news: &News<'_>| listener.borrow_mut().hear(news);
    let Some(results) = gather::of_role(home, &record, Role::Verify, &stop, &tell) else {
        return Ok(store::load(home, &id)?);
    };
    for result in results.iter().filter(|result| result.verdict != Verdict::Unknown) {
        let ever_failed = result.verdict != Verdict::Passed;
        let memory = CheckMemory { last: result.verdict, ever_failed };
        record.state.checks.insert(result.run.clone(), memory);
    }
    if results.iter().all(|result| result.verdict == Verdict::Passed) {
        tell(&News::Noted(
            "every check passes already: they will not tell a finished job from an unbegun one",
        ));
    }
    record.state.began = clock::now();
    if record.contract.limits.stall > 0 {
        record.state.tree = fingerprint(&record).map(|it| it.hash);
    }
    let held = store::hold(home, &record.id, store::LOCK_WAIT)?;
    let found = held.load()?;
    if found.state.generation != record.state.generation {
        return Ok(found);
    }
    Ok(held.record(record, |next| Event::changed("checked before the first iteration", next))?)
}

/// Gives a loop that goes on here what a run needs: what it had, what the settings say where it had nothing,
/// and what was typed now. The settings are read only for what the contract has no copy of. That the agent can
/// be started is tried before anything is recorded.
pub fn adapt(home: &Home, record: &mut Loop, arguments: &LoopArguments) -> Result<()> {
    let folder = record.place.folder.clone();
    let options = &arguments.run;
    let settings = |procedure: Option<&str>| -> Result<Settings> {
        let known = settings::look(home, &record.place.checkout, !arguments.no_project)?;
        let mut typed = Layer::default();
        type_run(&mut typed, options);
        Ok(settings::for_run(home, known, typed, procedure)?.0)
    };
    let run = match record.contract.run.clone() {
        None => run(options, &settings(None)?, None, &folder)?,
        Some(had) => {
            let agent = match (&options.agent_cmd, &options.agent) {
                (None, None) => {
                    has_program(&had.agent, &folder)?;
                    had.agent.clone()
                }
                _ => the_agent(options, &settings(had.procedure.as_deref())?, &folder)?,
            };
            still(had, agent, options)
        }
    };
    record.contract.run = Some(run);
    try_launch(home, record).map(drop)
}

/// What a run had, with what was typed now in its place.
fn still(had: Run, agent: Agent, options: &RunOptions) -> Run {
    Run {
        agent,
        permissions: options.permissions.unwrap_or(had.permissions),
        max_turns: options.max_turns.unwrap_or(had.max_turns),
        may_sleep: had.may_sleep || options.no_awake,
        pace: Pace {
            timeout_s: options.timeout.map_or(had.pace.timeout_s, whole_seconds),
            idle_timeout_s: options.idle_timeout.map_or(had.pace.idle_timeout_s, whole_seconds),
            delay_s: options.delay.map_or(had.pace.delay_s, whole_seconds),
        },
        git: GitSteps {
            commit: had.git.commit || options.commit,
            push: had.git.push || options.push,
            rebase: options.rebase.clone().or(had.git.rebase),
        },
        ..had
    }
}

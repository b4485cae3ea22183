//! The agents that stand in for a loop's own while its account is at a limit. They take over when
//! nobody is there, so each is tried at the start: its program, its command line and its login.
//! Refuses one that could never help.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::agent::{by_name, missing_program};
use crate::engine::record::{AccountId, Agent, Dialect, Limits, Run};
use crate::engine::text::{one_line, plain};
use crate::parse::arguments::UsageError;
use crate::parse::settings::merge::{Settings, Sourced, ValueOrigin};
use crate::world::process::{Call, ExitCause, Stop};

/// How long an agent may take to say whether it is logged in.
const LOGIN: Duration = Duration::from_secs(20);
/// The word for no fallback.
const NONE: &str = "none";
/// The most of what it prints then, in characters.
const SAID_CHARS: usize = 200;
/// The way out for every fallback that is refused.
const LEAVE_OUT: &str = "name other fallbacks, or none: --fallback none";

/// A person ended crew before it had begun or changed anything.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; nothing was started")]
pub struct Interrupted;

/// The fallbacks in force, in their order, without a run's own agent.
pub fn fallbacks(settings: &Settings, own: &Agent) -> Result<Vec<Agent>> {
    let Some(Sourced { origin, .. }) = settings.layer.values.get("fallback") else {
        return Ok(Vec::new());
    };
    let mut agents: Vec<Agent> = Vec::new();
    let listed = settings.options.process.fallback.iter();
    let names = listed.flat_map(|names| names.split(',')).map(str::trim);
    for name in names.filter(|name| !["", NONE].contains(name)) {
        let is_known = name == own.name || agents.iter().any(|agent| agent.name == name);
        match origin {
            ValueOrigin::Typed if is_known => {
                let told =
                    format!("agent {name} cannot stand in for itself: name another as --fallback");
                bail!(UsageError::of_line(&told));
            }
            _ if is_known => {}
            _ => agents.push(by_name(settings, name, origin, &[])?),
        }
    }
    Ok(agents)
}

/// Refuses a fallback that is missing, shares the limits of an agent before it, or cannot keep a
/// limit on cost or tokens.
pub fn refuse_useless(run: &Run, limits: &Limits, folder: &Path) -> Result<()> {
    // Whether the models differ or not: an account's limit is mostly one for all of them.
    let account = |agent: &Agent| AccountId::of(run, agent).name;
    for (place, agent) in run.fallback.iter().enumerate() {
        if let Some(missing) = missing_program(agent, folder) {
            bail!("fallback {}: {missing}\nhint: install it, or {LEAVE_OUT}", agent.name);
        }
        let mut before = run.agents().take(place + 1);
        if let Some(same) = before.find(|before| account(before) == account(agent)) {
            bail!(
                "fallback {}: it runs the same program as {}, so both meet the same limit\n\
                 hint: {LEAVE_OUT}",
                agent.name,
                same.name
            );
        }
        if limits.bound_usage() && agent.dialect == Dialect::TEXT {
            bail!(
                "fallback {}: its output is plain text, which does not tell what it used, so no \
                 limit on cost or tokens can be kept\n\
                 hint: {LEAVE_OUT}; or --max-cost 0 and --max-tokens 0",
                agent.name
            );
        }
    }
    Ok(())
}

/// Refuses a fallback that is not logged in. [`Interrupted`] if `stop` says so meanwhile.
pub fn try_logins(run: &Run, folder: &Path, stop: Stop<'_>) -> Result<()> {
    run.fallback.iter().try_for_each(|agent| try_login(agent, folder, stop))
}

/// Asks an agent whether it is logged in, if it has a command for that.
fn try_login(agent: &Agent, folder: &Path, stop: Stop<'_>) -> Result<()> {
    let Some(program) = agent.command.first().filter(|_| !agent.login.is_empty()) else {
        return Ok(());
    };
    let call = Call::of(program, folder).args(&agent.login).envs(&agent.environment);
    let (why, said) = match call.within(LOGIN).run(stop) {
        Ok(ended) if ended.cause == ExitCause::Exit(0) => return Ok(()),
        Ok(ended) if ended.cause == ExitCause::Stopped => bail!(Interrupted),
        Ok(ended) => (ended.cause.to_string(), one_line(&plain(&ended.text()), SAID_CHARS)),
        Err(error) => (error.to_string(), String::new()),
    };
    let said = if said.is_empty() { said } else { format!(": {said}") };
    bail!(
        "fallback {name}: `{program} {}` failed ({why}){said}\n\
         hint: log in with {program}, or leave {name} out; what it is asked is `login` under \
         [agents.{name}] in your settings, [] for nothing",
        agent.login.join(" "),
        name = agent.name,
    );
}

//! From the name of an agent to what is started: one that crew knows, one of the settings', or one that is like
//! another. The contract keeps the result.

use anyhow::{Error, Result, bail};

use crate::agents::catalogue::{find, unknown};
use crate::agents::command::command;
use crate::engine::agent::{Agent, Dialect, PromptDoor};
use crate::engine::settings::merge::Settings;
use crate::engine::settings::{AgentEntry, Origin, Sourced};

/// The agent in force; a typed `--agent-cmd` goes before every name.
pub fn resolve(settings: &Settings, typed_command: Option<&str>) -> Result<Agent> {
    if let Some(text) = typed_command {
        return command(text).map_err(Error::msg);
    }
    let Sourced { value: name, origin } = &settings.agent;
    let mut agent = by_name(settings, name, origin, &[])?;
    if let Some(arguments) = &settings.agent_arguments {
        agent.command.extend_from_slice(&arguments.value.list);
    }
    Ok(agent)
}

/// `above` are the entries that led here, so that entries that are like each other come to an end.
fn by_name(settings: &Settings, name: &str, named_at: &Origin, above: &[&str]) -> Result<Agent> {
    let known = find(name);
    let Some((name, Sourced { value: entry, origin })) = settings.agents.get_key_value(name) else {
        let own: Vec<&str> = settings.agents.keys().map(String::as_str).collect();
        return known.ok_or_else(|| Error::msg(at(named_at, &unknown(name, &own))));
    };
    if above.contains(&name.as_str()) {
        return known
            .ok_or_else(|| Error::msg(at(origin, &format!("agents.{name} is like itself"))));
    }
    let base = match &entry.like {
        Some(like) => by_name(settings, like, origin, &[above, &[name]].concat())?,
        None => match known {
            Some(known) => known,
            None if entry.command.is_some() => blank(),
            None => bail!(at(
                origin,
                &format!(
                    "agents.{name} has no command: command = [\"my-agent\"], or like = \"claude\""
                )
            )),
        },
    };
    Ok(changed(base, name, entry))
}

fn blank() -> Agent {
    Agent {
        name: String::new(),
        command: Vec::new(),
        prompt: PromptDoor::default(),
        dialect: Dialect::default(),
        permissions: [].into(),
        max_turns: None,
    }
}

fn changed(base: Agent, name: &str, entry: &AgentEntry) -> Agent {
    let mut command = entry.command.clone().unwrap_or(base.command);
    command.extend_from_slice(&entry.arguments);
    let mut permissions = base.permissions;
    permissions.extend(entry.permissions.clone());
    Agent {
        name: name.to_owned(),
        command,
        prompt: entry.prompt.unwrap_or(base.prompt),
        dialect: entry.output.unwrap_or(base.dialect),
        permissions,
        max_turns: entry.max_turns.clone().or(base.max_turns),
    }
}

/// What is wrong, after the line of the file that says so.
fn at(origin: &Origin, what: &str) -> String {
    match origin {
        Origin::BuiltIn | Origin::Typed => what.to_owned(),
        origin => format!("{origin}: {what}"),
    }
}

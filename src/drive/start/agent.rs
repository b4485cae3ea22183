//! From the name of an agent to the command that is started: a built-in agent, one from the
//! settings, or one that is like another. The contract keeps the result. Refuses an unknown name, a
//! missing program, and a fallback that could never help.

use std::path::Path;
use std::time::Duration;

use anyhow::{Error, Result, bail};

use engine::failure::{Failure, FailureKind};
use engine::record::{AccountId, Agent, Dialect, Limits, Run};
use engine::refuse;
use engine::text::{one_line, plain_text};
use readers::agents::{self, describe_unknown, find_agent, parse_agent_command};
use readers::parse::settings::merge::{AgentEntry, Settings, Sourced, ValueOrigin};
use world::client;
use world::files::disk;
use world::process::{Call, ExitCause, Stop};

/// The agent in force; a typed `--agent-cmd` overrides every name.
pub fn resolve_agent(settings: &Settings, typed_command: Option<&str>) -> Result<Agent> {
    if let Some(text) = typed_command {
        return parse_agent_command(text).map_err(Error::new);
    }
    let process = &settings.options().process;
    let origin = settings.layer().values.get("agent").map(|agent| &agent.origin);
    let name = process.agent().as_deref().unwrap_or(agents::DEFAULT);
    let mut agent = by_name(settings, name, origin.unwrap_or(&ValueOrigin::BuiltIn), &[])?;
    agent.command.extend_from_slice(&settings.options().file_process.args);
    Ok(agent)
}

/// Refuses an agent whose program does not exist, as seen from `folder`.
pub fn require_program(agent: &Agent, folder: &Path) -> Result<()> {
    if let Some(missing) = missing_program(agent, folder) {
        refuse!(
            format!("agent {}: {missing}", agent.name),
            "install it, or name another: --agent NAME, or --agent-cmd \"COMMAND\""
        );
    }
    Ok(())
}

/// The message that an agent's program does not exist, as seen from `folder`; `None` if it exists.
pub fn missing_program(agent: &Agent, folder: &Path) -> Option<String> {
    let program = agent.command.first().map_or("", String::as_str);
    if program.contains('/') {
        if disk::exists(&folder.join(program)) {
            return None;
        }
        return Some(format!("there is no file `{program}`"));
    }
    if !client::on_path(program).is_empty() {
        return None;
    }
    Some(format!("there is no program `{program}` on PATH"))
}

/// Resolves an agent by its name. `above` lists the entries that led here, so that entries that
/// refer to each other do not recurse forever.
fn by_name(settings: &Settings, name: &str, from: &ValueOrigin, above: &[&str]) -> Result<Agent> {
    let known = find_agent(name);
    let agents = &settings.layer().agents;
    let Some((name, Sourced { value: entry, origin })) = agents.get_key_value(name) else {
        let own: Vec<&str> = agents.keys().map(String::as_str).collect();
        let unknown = describe_unknown(name, &own);
        return known.ok_or_else(|| match from {
            ValueOrigin::Typed => unknown.into(),
            from => Error::msg(at_origin(from, &unknown.join_with(": "))),
        });
    };
    if above.contains(&name.as_str()) {
        return known.ok_or_else(|| {
            Error::msg(at_origin(origin, &format!("`like` of agents.{name} leads back to it")))
        });
    }
    let base = match entry.like() {
        Some(like) => by_name(settings, like, origin, &[above, &[name]].concat())?,
        None => match known {
            Some(known) => known,
            None if entry.command().is_some() => Agent::default(),
            None => bail!(at_origin(
                origin,
                &format!(
                    "agents.{name} has no command: command = [\"my-agent\"], or like = \"claude\""
                )
            )),
        },
    };
    Ok(apply_entry(base, name, entry))
}

fn apply_entry(base: Agent, name: &str, entry: &AgentEntry) -> Agent {
    let mut command = entry.command().clone().unwrap_or(base.command);
    command.extend_from_slice(entry.args());
    let mut permissions = base.permissions;
    permissions.extend(entry.permissions().clone());
    let mut environment = base.environment;
    environment.extend(entry.environment().clone());
    Agent {
        name: name.to_owned(),
        command,
        prompt: entry.prompt().unwrap_or(base.prompt),
        dialect: entry.output().clone().unwrap_or(base.dialect),
        permissions,
        max_turns: entry.max_turns().clone().or(base.max_turns),
        model: entry.model().clone().or(base.model),
        allow: entry.allow().clone().or(base.allow),
        environment,
        usage_file: entry.usage_file().clone().or(base.usage_file),
        answer_mark: base.answer_mark,
        login: entry.login().clone().unwrap_or(base.login),
    }
}

/// The error, prefixed with the line of the file it is about.
fn at_origin(origin: &ValueOrigin, what: &str) -> String {
    match origin {
        ValueOrigin::BuiltIn | ValueOrigin::Typed => what.to_owned(),
        origin => format!("{origin}: {what}"),
    }
}

// The fallbacks of a loop's own agent while its account is at a limit. They take over when nobody
// is there, so each is tried at the start: its program, its command line and its login.

/// How long an agent may take to report whether it is logged in.
const LOGIN: Duration = Duration::from_secs(20);
/// The word for no fallback.
const NONE: &str = "none";
/// The maximum number of characters kept of an agent's output about its login.
const SAID_CHARS: usize = 200;
/// The hint for every fallback that is refused.
const LEAVE_OUT: &str = "name other fallbacks, or none: --fallback none";

/// The fallbacks in force, as they are listed, without a run's own agent.
pub fn resolve_fallbacks(settings: &Settings, own: &Agent) -> Result<Vec<Agent>> {
    let Some(Sourced { origin, .. }) = settings.layer().values.get("fallback") else {
        return Ok(Vec::new());
    };
    let mut agents: Vec<Agent> = Vec::new();
    let listed = settings.options().process.fallback().iter();
    let names = listed.flat_map(|names| names.split(',')).map(str::trim);
    for name in names.filter(|name| !["", NONE].contains(name)) {
        let is_known = name == own.name || agents.iter().any(|agent| agent.name == name);
        match origin {
            ValueOrigin::Typed if is_known => {
                bail!(Failure::usage(
                    format!("agent {name} cannot be its own fallback"),
                    "name another as --fallback",
                ));
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
    for (place, agent) in run.fallback.iter().enumerate() {
        let account = AccountId::of_agent(run, agent).name;
        let mut before = run.agents().take(place + 1);
        let same = before.find(|before| AccountId::of_agent(run, before).name == account);
        let refusal = if let Some(missing) = missing_program(agent, folder) {
            Failure::new(missing, format!("install it, or {LEAVE_OUT}"))
        } else if let Some(Agent { name, .. }) = same {
            Failure::new(
                format!("it runs the same program as {name}, so both meet the same limit"),
                LEAVE_OUT,
            )
        } else if limits.bound_usage() && agent.dialect == Dialect::TEXT {
            Failure::new(
                "its output is plain text, which does not report what it used, so no limit on cost \
                 or tokens can be kept",
                format!("{LEAVE_OUT}; or --max-cost 0 and --max-tokens 0"),
            )
        } else {
            continue;
        };
        return Err(Error::new(refusal).context(format!("fallback {}", agent.name)));
    }
    Ok(())
}

/// Refuses a fallback that is not logged in. Interrupted if `stop` says so.
pub fn try_logins(run: &Run, folder: &Path, stop: Stop<'_>) -> Result<()> {
    run.fallback.iter().try_for_each(|agent| try_login(agent, folder, stop))
}

/// Asks an agent whether it is logged in, if it has a command for that.
fn try_login(agent: &Agent, folder: &Path, stop: Stop<'_>) -> Result<()> {
    let Some(program) = agent.command.first() else { return Ok(()) };
    if agent.login.is_empty() {
        return Ok(());
    }
    let call = Call::of(program, folder).args(&agent.login).envs(&agent.environment);
    let (why, said) = match call.within(LOGIN).run(stop) {
        Ok(ended) if ended.cause() == ExitCause::Exit(0) => return Ok(()),
        Ok(ended) if ended.cause() == ExitCause::Stopped => {
            bail!(Failure::without_hint(
                FailureKind::Interrupted,
                "interrupted; nothing was started"
            ))
        }
        Ok(ended) => (ended.cause().to_string(), one_line(&plain_text(&ended.text()), SAID_CHARS)),
        Err(error) => (error.to_string(), String::new()),
    };
    let said = if said.is_empty() { said } else { format!(": {said}") };
    refuse!(
        format!(
            "fallback {name}: `{program} {}` failed ({why}){said}",
            agent.login.join(" "),
            name = agent.name
        ),
        format!(
            "log in with {program}, or leave {name} out; what it is asked is `login` under \
         [agents.{name}] in your settings, [] for nothing",
            name = agent.name
        )
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use readers::agents::output_formats;
    use readers::parse::settings::merge::{Layers, merge_layers};
    use readers::parse::settings::{SettingsOwner, parse_settings};

    fn resolve_text(file: &str) -> String {
        let user = parse_settings(
            file,
            Path::new("config.toml"),
            SettingsOwner::Users,
            &output_formats(),
            &|_| true,
        )
        .unwrap()
        .layer;
        let layers = Layers { user, ..Layers::default() };
        match resolve_agent(&merge_layers(&layers, None).unwrap(), None) {
            Ok(agent) => {
                let Agent { name, command, prompt, dialect, permissions, max_turns, .. } = agent;
                let (prompt, dialect) = (format!("{prompt:?}").to_lowercase(), &*dialect.0);
                let kinds: Vec<&str> = permissions.keys().map(|kind| kind.label()).collect();
                let turns = max_turns.unwrap_or_default();
                format!("{name}: {command:?} {prompt} {dialect} {kinds:?} {turns}")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_agent_is_built_in_or_written_in_the_settings_or_based_on_another() {
        let claude = find_agent("claude").unwrap();
        let begins = |file: &str, start: &str| {
            let found = resolve_text(file);
            assert!(found.starts_with(start), "{file}: {found}");
        };
        let words = format!("{:?}", claude.command);
        let words = words.trim_end_matches(']');
        begins("", &format!("claude: {words}] stdin claude"));
        begins("[loop]\nargs = [\"--x\"]", &format!("claude: {words}, \"--x\"] stdin"));
        begins(
            "[loop]\nagent = \"fast\"\nargs = [\"--y\"]\n[agents.fast]\nlike = \"claude\"\nargs = [\"--x\"]",
            &format!("fast: {words}, \"--x\", \"--y\"] stdin claude"),
        );
        begins(
            "[agents.claude]\nlike = \"claude\"\nargs = [\"--x\"]",
            &format!("claude: {words}, \"--x\"] stdin claude"),
        );
        begins("[agents.claude]\ncommand = [\"/opt/c\"]", "claude: [\"/opt/c\"] stdin claude");
        let mine = "[loop]\nagent = \"mine\"\n[agents.mine]\ncommand = [\"m\", \"-p\"]\nprompt = \"argument\"\n\
            max_turns = \"--turns\"\npermissions.bypass = [\"--yolo\"]";
        assert_eq!(resolve_text(mine), r#"mine: ["m", "-p"] argument text ["bypass"] --turns"#);
    }

    #[test]
    fn an_agent_that_cannot_be_resolved_is_reported_with_its_line_and_a_hint() {
        let table = [
            (
                "[loop]\nagent = \"claud\"",
                "config.toml:2: there is no agent claud: did you mean claude?",
            ),
            (
                "[loop]\nagent = \"mine\"\n[agents.mine]\nprompt = \"stdin\"",
                "config.toml:3: agents.mine has no command: command = [\"my-agent\"], or like = \"claude\"",
            ),
            (
                "[loop]\nagent = \"a\"\n[agents.a]\nlike = \"b\"\n[agents.b]\nlike = \"a\"",
                "config.toml:3: `like` of agents.a leads back to it",
            ),
            (
                "[loop]\nagent = \"a\"\n[agents.a]\nlike = \"codx\"",
                "config.toml:3: there is no agent codx: did you mean codex?",
            ),
        ];
        for (file, expected) in table {
            assert_eq!(resolve_text(file), expected, "{file}");
        }
    }

    #[test]
    fn a_typed_command_takes_precedence_over_agent_names_and_their_arguments() {
        let user = "[loop]\nagent = \"nobody\"\nargs = [\"--x\"]";
        let user = parse_settings(
            user,
            Path::new("config.toml"),
            SettingsOwner::Users,
            &output_formats(),
            &|_| true,
        )
        .unwrap()
        .layer;
        let settings = merge_layers(&Layers { user, ..Layers::default() }, None).unwrap();
        let agent = resolve_agent(&settings, Some("my-agent 'a b'")).unwrap();
        assert_eq!(
            (agent.name.as_str(), agent.command),
            ("my-agent", vec!["my-agent".to_owned(), "a b".to_owned()])
        );
    }
}

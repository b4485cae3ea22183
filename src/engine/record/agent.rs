//! What crew must know of an agent's command line to start it and to read it. It is copied into the
//! contract at the start: a loop keeps the agent it began with, whatever the settings say later.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::text::word;

/// An agent's command-line tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name in `--agent`; absent in a file where it is the key.
    #[serde(default)]
    pub name: String,
    /// The program and its fixed arguments; they never pass through a shell.
    pub command: Vec<String>,
    #[serde(default)]
    pub prompt: PromptVia,
    #[serde(default)]
    pub dialect: Dialect,
    /// The arguments that ask for each kind of permissions. A missing kind cannot be asked for.
    #[serde(default)]
    pub permissions: BTreeMap<Permissions, Vec<String>>,
    /// The option that limits an iteration's turns, such as `--max-turns`; `None` if there is none.
    pub max_turns: Option<String>,
    /// The option that names its model, such as `--model`; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The argument that allows a command, which stands for `{check}`, or for `{words}` where only
    /// a command of plain words can be named: `--allow=Bash({check})`; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
    /// Variables that it is started with, besides crew's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The option that names a file in which it leaves what it used; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_file: Option<String>,
    /// What it prints before an answer, such as `> `; `None` if it prints nothing there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_mark: Option<String>,
    /// The arguments with which its program only says whether it is logged in, by its exit status;
    /// empty if it cannot say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub login: Vec<String>,
}

/// How the prompt reaches the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptVia {
    /// On standard input, which is then closed.
    #[default]
    Stdin,
    /// As the last argument; the system limits its length.
    Argument,
}

impl PromptVia {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Stdin, Self::Argument];

    /// The word used in files.
    pub fn label(self) -> &'static str {
        word(&self)
    }
}

/// How the agent's output is read: the name of the reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dialect(pub Cow<'static, str>);

impl Dialect {
    /// The word for plain text.
    pub const PLAIN: &str = "text";
    /// Plain text; its end is the final message.
    pub const TEXT: Self = Self(Cow::Borrowed(Self::PLAIN));
}

impl Default for Dialect {
    fn default() -> Self {
        Self::TEXT
    }
}

/// What the agent may do without being asked, from the least to the most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// What the agent's own settings allow.
    Default,
    /// Edits in the checkout.
    #[default]
    AcceptEdits,
    /// What the agent's own judgement of safety allows.
    Auto,
    /// Everything.
    Bypass,
}

impl Permissions {
    /// All of them, from the least to the most.
    pub const ALL: [Self; 4] = [Self::Default, Self::AcceptEdits, Self::Auto, Self::Bypass];

    /// The word used in options and files.
    pub fn label(self) -> &'static str {
        word(&self)
    }
}

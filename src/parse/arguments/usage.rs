//! What is wrong with the arguments of a command, in a line or two: the fault first, then the way
//! out. What was typed is repeated shortened and without control characters.

use std::fmt;

use crate::parse::spelling::shown;

/// Why the arguments cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageError {
    /// An option that does not exist.
    UnknownOption {
        /// As typed.
        option: String,
        /// The option that was probably meant.
        suggestion: Option<&'static str>,
        /// Whether an agent is started that may know it.
        in_terminal: bool,
    },
    /// A known option behind a dash that some program made of its hyphens.
    TypographicDash {
        /// As typed.
        typed: String,
        /// The option with its hyphens.
        meant: &'static str,
    },
    /// An option without its value, or with a blank one.
    MissingValue {
        /// The option.
        flag: &'static str,
        /// The option with a value.
        example: &'static str,
    },
    /// An option where another option's value should be.
    OptionAsValue {
        /// The option that lacks its value.
        flag: &'static str,
        /// What follows it.
        value: String,
    },
    /// The same where a shell has taken the quotes away.
    OptionAsWord {
        /// The option that lacks its value.
        flag: &'static str,
        /// What follows it.
        value: String,
    },
    /// An option of `crew run` after `/crew:loop`.
    OnlyInTerminal {
        /// As typed.
        option: String,
    },
    /// An option of `crew run` that has no meaning after `crew resume`.
    OnlyAtStart {
        /// As typed.
        option: String,
    },
    /// A value whose quote has no partner.
    UnclosedValue {
        /// The option.
        flag: &'static str,
        /// The option with a value.
        example: &'static str,
    },
    /// A value attached to an option that takes none.
    UnexpectedValue {
        /// The option.
        flag: &'static str,
    },
    /// A value the option cannot take.
    BadValue {
        /// The option.
        flag: &'static str,
        /// As typed.
        value: String,
        /// What the option takes.
        wanted: &'static str,
        /// The option with a value.
        example: &'static str,
    },
    /// An option that stands twice and may not.
    GivenTwice {
        /// The option.
        flag: &'static str,
    },
    /// A task whose double quote has no partner.
    UnclosedTask,
    /// An option inside a task whose quotes do not balance.
    SwallowedOption {
        /// The option.
        flag: &'static str,
    },
    /// Text where the task is already complete.
    TextAfterTask {
        /// Its beginning.
        text: String,
    },
    /// The command's own name where the task begins.
    CommandInTask,
    /// One word that names no procedure: too easily a slip to be a task.
    NoProcedure {
        /// As typed.
        word: String,
        /// The procedure that was probably meant.
        meant: Option<String>,
    },
    /// `--completion-promise` and `--no-promise`.
    TwoPromises,
    /// A task and `--prompt-file`.
    TwoTasks,
    /// `--agent` and `--agent-cmd`.
    TwoAgents,
    /// `--tell` at a start.
    OnlyAfterResume,
    /// Words after `--` where no agent is started.
    WordsForAgent,
}

impl UsageError {
    pub(super) fn text_after_task(text: &str) -> Self {
        Self::TextAfterTask { text: shown(text) }
    }

    pub(super) fn typographic_dash(token: &str, meant: &'static str) -> Self {
        Self::TypographicDash { typed: shown(token.split('=').next().unwrap_or(token)), meant }
    }
}

/// What an option may be where an agent is started.
const AGENTS: &str = "if it is the agent's, put it after `--`; ";

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption { option, suggestion, in_terminal } => {
                let meant = suggestion.as_ref().map(|it| format!(": did you mean `{it}`?"));
                let agents = if *in_terminal { AGENTS } else { "" };
                let meant = meant.unwrap_or_default();
                write!(
                    f,
                    "unknown option `{option}`{meant}\n\
                     {agents}if it belongs to the task, put the whole task in double quotes"
                )
            }
            Self::TypographicDash { typed, meant } => write!(
                f,
                "`{typed}` begins with a typographic dash: type {} instead, `{meant}`",
                if meant.starts_with("--") { "two hyphens" } else { "a hyphen" }
            ),
            Self::MissingValue { flag, example } => write!(f, "{flag} needs a value: {example}"),
            Self::OptionAsValue { flag, value } => write!(
                f,
                "{flag} needs a value, but `{value}` follows it\n\
                 put a value that begins with a hyphen in double quotes"
            ),
            Self::OptionAsWord { flag, value } => write!(
                f,
                "{flag} needs a value, but `{value}` follows it\n\
                 write a value that begins with a hyphen as {flag}={value}"
            ),
            Self::OnlyInTerminal { option } => write!(
                f,
                "`{option}` is an option of crew run, in a terminal\n\
                 if it belongs to the task, put the whole task in double quotes"
            ),
            Self::OnlyAtStart { option } => write!(
                f,
                "`{option}` is an option of crew run: a resumed loop goes on as it was begun\n\
                 crew resume --help names what can be changed"
            ),
            Self::UnclosedValue { flag, example } => {
                write!(f, "the quote that opens the value of {flag} is never closed: {example}")
            }
            Self::UnexpectedValue { flag } => {
                write!(f, "{flag} takes no value: write {flag} alone")
            }
            Self::BadValue { flag, value, wanted, example } => {
                write!(f, "{flag} takes {wanted}, not `{value}`: {example}")
            }
            Self::SwallowedOption { flag } => write!(
                f,
                "{flag} stands inside the task, whose quotes do not balance\n\
                 close the quote before {flag}, or give the task with --prompt-file"
            ),
            Self::GivenTwice { flag } => write!(f, "{flag} is given twice: keep one of them"),
            Self::TextAfterTask { text } => write!(
                f,
                "`{text}` stands apart from the task\n\
                 put the whole task in double quotes, and values of several words too"
            ),
            Self::NoProcedure { word, meant } => {
                write!(f, "there is no procedure `{word}`")?;
                if let Some(meant) = meant {
                    write!(f, ": did you mean {meant}?")?;
                }
                f.write_str(
                    "\nhint: crew run --list names them; a task of one word is written in a sentence",
                )
            }
            fixed => f.write_str(fixed.fixed_words()),
        }
    }
}

impl UsageError {
    /// The words of those that repeat nothing of what was typed.
    fn fixed_words(&self) -> &'static str {
        match self {
            Self::UnclosedTask => {
                "the quote that opens the task is never closed\n\
                 add a double quote where the task ends, or take the first one away"
            }
            Self::CommandInTask => {
                "the task begins with `/crew:loop`: remove the second one, or put the task in double quotes"
            }
            Self::TwoPromises => {
                "--no-promise and --completion-promise exclude each other: keep one of them"
            }
            Self::TwoAgents => "--agent and --agent-cmd exclude each other: keep one of them",
            Self::OnlyAfterResume => {
                "`--tell` is an option of crew resume: at a start the words belong to the task"
            }
            Self::WordsForAgent => {
                "words after `--` are the agent's own options, in crew run; this session has its own\n\
                 hint: if it belongs to the task, put the whole task in double quotes"
            }
            Self::TwoTasks => "there is a task and a --prompt-file: keep one of them",
            _ => "the arguments cannot be read",
        }
    }
}

impl std::error::Error for UsageError {}

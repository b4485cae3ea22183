//! Why a loop is over, as a value. Rules and pages match on it; people and programs read its
//! sentence.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Actor, Driver, Proof};
use crate::git::GitFault;
use crate::text::{count, format_duration, with_reason};

/// The text about a loop without checks that its limit completed.
const NOTHING_CHECKED: &str = "nothing was checked";
const HOOK_CAP: &str = "the agent used no tool for so long that the client no longer lets a hook \
                        continue the turn";

/// Why a loop is over. Each reason is shown as a sentence fragment: what ended the loop and, if
/// there is one, the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "of")]
pub enum EndReason {
    /// It is done; the remark is what a person should know about its checks.
    Completed {
        basis: CompletionBasis,
        remark: Option<String>,
    },
    Cancelled {
        by: Actor,
        reason: Option<String>,
    },
    /// The process that drives it was asked to end.
    Signalled(EndSignal),
    /// The process that drove it is gone.
    OwnerGone(Driver),
    /// Its session ended, with the client's word for how.
    SessionEnded(Option<String>),
    /// It would wait for its turn after a limit, but nobody is at the client.
    CannotAwaitTurn(String),
    /// It would wait for the model's service, but nobody is at the client: the client's word for
    /// the failure.
    CannotAwaitService(String),
    WaitTooLong {
        why: String,
        wait_ms: u64,
        limit: String,
    },
    /// The model's service failed this many times in a row.
    ServiceFailing {
        times: u32,
        message: String,
    },
    /// Something outside the agent's work prevents it: the service, the folder, the repository, the
    /// remote. The hint is empty where the cause is enough.
    External {
        cause: String,
        hint: String,
    },
    Git(GitFault),
    /// These tools were denied, and the agent changed nothing.
    Denied(Vec<String>),
    /// The agent said that it needs a person, with its reason, which may be empty.
    AgentBlocked(String),
    /// An end was refused for a reason that no agent can change.
    Refused(IncurableRefusal),
    TooManyFailures {
        count: u32,
        last: String,
    },
    LimitReached(String),
    /// A limit on its use cannot be kept, because nothing reports that.
    Unmeasured {
        driver: Driver,
        way_out: String,
    },
    NoProgress {
        iterations: u32,
        last: String,
    },
    /// The client lets no hook continue the turn; the variable lifts its cap.
    HookCap {
        variable: Option<String>,
    },
}

/// What completed a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "of")]
pub enum CompletionBasis {
    /// Its proof alone.
    Proof(Proof),
    /// A run without the work, with what failed there.
    WithoutWork(String),
    /// The checks pass; the remark or the notes say why that proves no more.
    ChecksPass,
    /// Only its limit could end it: "ran its 5 iterations".
    Limit { ran: String, is_checked: bool },
}

/// How a process was asked to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "of")]
pub enum EndSignal {
    /// By Ctrl-C.
    Keyboard,
    /// By the signal of this name.
    Named(String),
}

/// Why an end was refused, where only a person can change that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "of")]
pub enum IncurableRefusal {
    ProofTooWeak(WeakProof),
    /// These checks cannot run, or run nothing, each with its reason.
    Checks(Vec<String>),
    /// Claims were refused too often for a change of tests; `accept` is the command for a person.
    TestChanges {
        refusal: String,
        accept: String,
    },
}

/// A proof that is less than the loop requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeakProof {
    pub proof: Proof,
    pub required: Proof,
    /// Why no more could be shown, if that is known.
    pub why_not: Option<String>,
}

impl EndReason {
    /// What a person should know beyond what completed a loop; of any other reason nothing.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        let (unchecked, remark) = match self {
            Self::Completed { basis: CompletionBasis::Limit { is_checked: false, .. }, remark } => {
                (Some(NOTHING_CHECKED), remark.as_deref())
            }
            Self::Completed { remark, .. } => (None, remark.as_deref()),
            _ => (None, None),
        };
        unchecked.into_iter().chain(remark)
    }

    /// Whether its sentence names the outcome already.
    pub fn names_its_outcome(&self) -> bool {
        matches!(self, Self::Cancelled { .. } | Self::Signalled(EndSignal::Keyboard))
    }

    /// Whether a person can end the loop by accepting the changed tests.
    pub fn is_of_test_changes(&self) -> bool {
        matches!(self, Self::Refused(IncurableRefusal::TestChanges { .. }))
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed { basis, remark: None } => basis.fmt(out),
            Self::Completed { basis, remark: Some(remark) } => write!(out, "{basis}; {remark}"),
            Self::Cancelled { by, reason } => {
                let reason = reason.as_deref().unwrap_or_default().trim();
                out.write_str(&with_reason(&format!("cancelled by the {}", by.label()), reason))
            }
            Self::Signalled(signal) => signal.fmt(out),
            Self::OwnerGone(driver) => write!(out, "its {} is gone", driver.program()),
            Self::SessionEnded(None) => out.write_str("its session ended"),
            Self::SessionEnded(Some(how)) => write!(out, "its session ended ({how})"),
            Self::CannotAwaitTurn(why) => write!(out, "{why}; this session cannot wait for it"),
            Self::CannotAwaitService(kind) => write!(
                out,
                "the model's service failed ({kind}), and this session cannot wait for it"
            ),
            Self::WaitTooLong { why, wait_ms, limit } => {
                write!(out, "{why}; a wait of {} would outlast {limit}", format_duration(*wait_ms))
            }
            Self::ServiceFailing { times, message } => {
                write!(out, "the model's service failed {times} times in a row: {message}")
            }
            Self::External { cause, hint } if hint.is_empty() => out.write_str(cause),
            Self::External { cause, hint } => write!(out, "{cause}; {hint}"),
            Self::Git(fault) => out.write_str(&fault.cause_and_hint()),
            Self::Denied(tools) => write!(
                out,
                "denied: {}, and nothing changed; allow them with --permissions",
                tools.join(", ")
            ),
            Self::AgentBlocked(reason) if reason.is_empty() => {
                out.write_str("the agent said BLOCKED and gave no reason")
            }
            Self::AgentBlocked(reason) => write!(out, "the agent said BLOCKED: {reason}"),
            Self::Refused(refusal) => {
                write!(out, "refused for a reason that only a person can change: {refusal}")
            }
            Self::TooManyFailures { count: failures, last } => {
                write!(out, "{} in a row, the last: {last}", count(*failures, "failure"))
            }
            Self::LimitReached(limit) => out.write_str(limit),
            Self::Unmeasured { driver, way_out } => write!(
                out,
                "its limit on cost or tokens cannot be kept: {}; {way_out}",
                silence_of(*driver)
            ),
            Self::NoProgress { iterations: 1, last } => {
                write!(out, "no progress in the last iteration ({last})")
            }
            Self::NoProgress { iterations, last } => {
                write!(out, "no progress in the last {iterations} iterations (the last: {last})")
            }
            Self::HookCap { variable: None } => out.write_str(HOOK_CAP),
            Self::HookCap { variable: Some(name) } => {
                write!(out, "{HOOK_CAP}; {name}=0 lifts its cap")
            }
        }
    }
}

/// Why nothing is known of the use.
fn silence_of(driver: Driver) -> &'static str {
    match driver {
        Driver::Session => "the client keeps no transcript to count from",
        Driver::Process => "the agent does not report what it used",
    }
}

impl fmt::Display for CompletionBasis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proof(proof) => out.write_str(proof.meaning()),
            Self::WithoutWork(shown) => out.write_str(shown),
            Self::ChecksPass => out.write_str("the checks pass"),
            Self::Limit { ran, is_checked: true } => write!(out, "{ran}, and every check passes"),
            Self::Limit { ran, is_checked: false } => write!(out, "{ran}; {NOTHING_CHECKED}"),
        }
    }
}

impl fmt::Display for EndSignal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyboard => out.write_str("interrupted at the keyboard"),
            Self::Named(signal) => write!(out, "asked to end by {signal}"),
        }
    }
}

impl fmt::Display for IncurableRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProofTooWeak(weak) => weak.fmt(out),
            Self::Checks(reasons) => out.write_str(&reasons.join("; ")),
            Self::TestChanges { refusal, accept } => {
                write!(out, "{refusal}; a person can accept the change: {accept}")
            }
        }
    }
}

impl fmt::Display for WeakProof {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { proof, required, why_not } = self;
        let remedy = if *required == Proof::Proven && why_not.is_some() {
            "with a test that fails without the work"
        } else {
            "with a check that fails now"
        };
        let why = why_not.as_deref().unwrap_or(proof.meaning());
        let (proof, required) = (proof.label(), required.label());
        write!(
            out,
            "the proof would be `{proof}` and this loop requires `{required}`: {why}; start it \
             without --require, or {remedy}"
        )
    }
}

//! The values of options: counts, durations, money, tokens. Each refusal names the option, what was
//! typed and an example that works.

use std::time::Duration;

use super::flags::Flag;
use super::usage::UsageError;
use crate::engine::outcome::Proof;
use crate::parse::amounts::{self, digits};
use crate::parse::duration;
use crate::parse::spelling::shown;

/// The text of an option's value. It is not blank.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) flag: &'static Flag,
    pub(super) text: String,
}

impl Value {
    /// A whole number of things.
    pub(super) fn count(&self) -> Result<u32, UsageError> {
        let digits = digits(&self.text).ok_or_else(|| self.refused("a whole number"))?;
        digits.parse().map_err(|_| self.refused("a whole number up to 4294967295"))
    }

    /// A span of time with its unit, or 0.
    pub(super) fn duration(&self) -> Result<Duration, UsageError> {
        duration::parse(&self.text).map_err(|wanted| self.refused(wanted))
    }

    /// An amount of US dollars above 0.
    pub(super) fn dollars(&self) -> Result<f64, UsageError> {
        amounts::dollars(&self.text).ok_or_else(|| self.refused("US dollars"))
    }

    /// A number of tokens, in thousands with `k`, in millions with `M`.
    pub(super) fn tokens(&self) -> Result<u64, UsageError> {
        amounts::tokens(&self.text)
            .ok_or_else(|| self.refused("a whole number, perhaps with k or M"))
    }

    /// A grade of proof that a loop can require.
    pub(super) fn grade(&self) -> Result<Proof, UsageError> {
        if self.text == Proof::Checked.label() {
            return Ok(Proof::Checked);
        }
        Err(self.refused("checked (`proven` is not built yet)"))
    }

    fn refused(&self, wanted: &'static str) -> UsageError {
        let Flag { name, example, .. } = self.flag;
        UsageError::BadValue { flag: name, value: shown(&self.text), wanted, example }
    }
}

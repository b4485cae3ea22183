//! How the run of a fleet bears a remote that is away: it is told once, and asked again for as long
//! as it takes. An answer that crew does not understand is borne for some time only.

use anyhow::{Error, Result};

use crate::drive::error_text::git_trouble;
use crate::engine::git::GitTrouble;

/// How many looks in a row may fail with an answer that crew does not understand, or that refuses
/// it; there are at most 15 s between two.
const ODD_MAX: u32 = 20;

/// Looks in a row that have failed.
#[derive(Debug, Default)]
pub struct Outage {
    is_on: bool,
    /// How many of the last ones had an answer that says something else.
    odd: u32,
    /// What was told last.
    told: Option<String>,
}

impl Outage {
    /// Whether the last look failed.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Takes in that a look failed, and returns what is new about it.
    ///
    /// # Errors
    /// The look's own, where another one would not help.
    pub fn bear(&mut self, error: Error) -> Result<Option<String>> {
        self.is_on = true;
        self.odd = match git_trouble(&error) {
            Some(GitTrouble::Network) => 0,
            Some(GitTrouble::Other | GitTrouble::Auth) if self.odd < ODD_MAX => self.odd + 1,
            _ => return Err(error),
        };
        let told = error.to_string().lines().next().unwrap_or_default().to_owned();
        let is_new = self.told.replace(told.clone()).as_ref() != Some(&told);
        Ok(is_new.then(|| format!("{told}; it is asked again")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::git::{GitFault, GitStep};

    #[test]
    fn an_outage_is_told_once_for_each_reason_and_an_odd_answer_is_not_borne_for_ever() {
        let fault = |trouble, cause: &str| GitFault::new(GitStep::Lease, trouble, cause, "look");
        let mut outage = Outage::default();
        let bear = |outage: &mut Outage, trouble, cause| {
            outage.bear(fault(trouble, cause).into()).map_err(|error| error.to_string())
        };
        let told = "lease failed: refused; it is asked again";
        assert_eq!(bear(&mut outage, GitTrouble::Network, "refused"), Ok(Some(told.to_owned())));
        for _ in 0..1000 {
            assert_eq!(bear(&mut outage, GitTrouble::Network, "refused"), Ok(None));
        }
        let borne = (0..100).take_while(|_| bear(&mut outage, GitTrouble::Other, "odd").is_ok());
        assert_eq!(borne.count(), 20);
        bear(&mut Outage::default(), GitTrouble::NoRemote, "no such repository").unwrap_err();
    }
}

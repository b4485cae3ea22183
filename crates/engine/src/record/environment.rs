//! The environment of a session's checks, as it was at the start. An agent that changes the `env`
//! of the project's settings changes what the client passes to the next hook, and `MAKEFLAGS=-n`
//! alone makes a failing check pass. So the record has a salted hash of each variable, to detect
//! changes. It never includes values, except `PATH` and those that a file of the checkout already
//! contained.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use serde::{Deserialize, Serialize};

use crate::git::name_files;
use crate::text::text_start;

/// A hash of bytes, in hexadecimal.
pub type Digest = fn(&[u8]) -> String;

/// Environment variables by name.
pub type Variables = BTreeMap<OsString, OsString>;

/// Names of variables that do not belong to the session.
#[derive(Debug, Clone, Default)]
pub struct Foreign {
    /// The variables that clients set for what they start. crew gives them to none of its children.
    pub own: Vec<&'static str>,
    /// Variables that differ between two hooks of one session for no outside reason. They are
    /// passed on while unchanged, and otherwise dropped silently.
    pub shifting: Vec<&'static str>,
}

/// The hexadecimal digits kept of a hash: 128 bits.
const DIGITS: usize = 32;
/// The longest part of a variable's name that is shown, in characters.
const NAME_CHARS: usize = 80;

/// A session's environment when the loop began there or was last resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Random text that makes equal values of two loops look different.
    salt: String,
    /// The hash of each variable, by its name.
    hashes: BTreeMap<String, String>,
    /// The values that can be restored, by name.
    values: BTreeMap<String, String>,
}

impl Environment {
    /// Records `now`. `held` has the values that files of the checkout assign to each name; a value
    /// is kept if it equals one of them. A name that is not UTF-8 is left out, and so never passed
    /// on.
    pub fn from_variables(
        now: &Variables,
        foreign: &Foreign,
        held: &[(String, String)],
        salt: String,
        digest: Digest,
    ) -> Self {
        let mut it = Self { salt, hashes: BTreeMap::new(), values: BTreeMap::new() };
        for (name, value) in now {
            let Some(name) = name.to_str().filter(|name| !foreign.own.contains(name)) else {
                continue;
            };
            it.hashes.insert(name.to_owned(), it.hash_value(name, value, digest));
            let Some(text) = value.to_str() else { continue };
            if name == "PATH" || held.iter().any(|(of, said)| of == name && said == text) {
                it.values.insert(name.to_owned(), text.to_owned());
            }
        }
        it
    }

    /// What happens to each variable of `now` before a check gets it.
    pub fn compare(&self, now: &Variables, foreign: &Foreign, digest: Digest) -> Plan {
        let mut plan = Plan::default();
        for (raw, value) in now {
            let Some(name) = raw.to_str() else {
                plan.dropped.push(raw.clone());
                continue;
            };
            let kept = self.hashes.get(name);
            let is_same = kept.is_some_and(|kept| *kept == self.hash_value(name, value, digest));
            if is_same || foreign.own.contains(&name) {
                continue;
            }
            match self.values.get(name) {
                Some(value) => plan.replaced.push((name.to_owned(), value.clone())),
                None => plan.dropped.push(raw.clone()),
            }
            match kept {
                _ if foreign.shifting.contains(&name) => {}
                None => plan.new.push(name.to_owned()),
                Some(_) if self.values.contains_key(name) => {}
                Some(_) => plan.changed.push(name.to_owned()),
            }
        }
        for name in self.hashes.keys() {
            if !now.contains_key(OsStr::new(name)) && !foreign.shifting.contains(&name.as_str()) {
                plan.missing.push(name.clone());
            }
        }
        plan
    }

    fn hash_value(&self, name: &str, value: &OsStr, digest: Digest) -> String {
        let name = format!("{}\0{name}\0", self.salt);
        let mut hash = digest(&[name.as_bytes(), value.as_encoded_bytes()].concat());
        hash.truncate(DIGITS);
        hash
    }
}

const CHANGED: [&str; 2] = ["is not as it was", "are not as they were"];

/// How a check's environment differs from this process's. A default plan changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Variables that are not passed.
    pub dropped: Vec<OsString>,
    /// Variables passed with the value from the start.
    pub replaced: Vec<(String, String)>,
    /// Variables dropped because they were absent when the loop began.
    new: Vec<String>,
    /// Variables dropped because they had another value when the loop began, which is not recorded.
    changed: Vec<String>,
    /// Variables that were present when the loop began and are absent now.
    missing: Vec<String>,
}

impl Plan {
    /// The variables that are passed with a different value.
    pub fn changed_variables(&self) -> Vec<(&str, String)> {
        self.replaced.iter().map(|(name, value)| (name.as_str(), value.clone())).collect()
    }

    /// Why no check can run until `resume` is typed: its result would depend on a variable that
    /// cannot be restored.
    pub fn refusal_text(&self, resume: &str) -> Option<String> {
        let (noun, verb, them) = match self.changed.len() {
            0 => return None,
            1 => ("variable", CHANGED[0], "it"),
            _ => ("variables", CHANGED[1], "them"),
        };
        let names = list_escaped(&self.changed);
        let ending = format!("{verb} when the loop began; {resume} accepts {them}");
        Some(format!("was not run: the {noun} {names} {ending}"))
    }

    /// The journal's remarks: a sentence for each kind of difference, with names only.
    pub fn remarks(&self) -> Vec<String> {
        let replaced: Vec<String> = self.replaced.iter().map(|(name, _)| name.clone()).collect();
        let kinds: [(&[String], _, _); 4] = [
            (&self.new, ["is new", "are new"], "in the environment; not passed to checks"),
            (&replaced, CHANGED, "when the loop began; checks get the old value"),
            (&self.changed, CHANGED, "when the loop began; no check is run"),
            (&self.missing, ["is missing", "are missing"], "in the environment"),
        ];
        let some = kinds.into_iter().filter(|(names, ..)| !names.is_empty());
        let remarks = some.map(|(names, verbs, rest)| {
            format!("{} {} {rest}", list_escaped(names), verbs[usize::from(names.len() > 1)])
        });
        remarks.collect()
    }

    /// The names that a resume accepts, which is every name that differs; `None` if there is none.
    pub fn accepted_names(&self) -> Option<String> {
        let replaced = self.replaced.iter().map(|(name, _)| name);
        let all = self.new.iter().chain(&self.changed).chain(&self.missing).chain(replaced);
        let mut names: Vec<String> = all.cloned().collect();
        if names.is_empty() {
            return None;
        }
        names.sort();
        let what = "checks now get these as they are here, not as they were when the loop began";
        Some(format!("{what}: {}", list_escaped(&names)))
    }
}

/// Names for a person. A project's settings can choose a name, so it is escaped: it must not
/// control a terminal.
fn list_escaped(names: &[String]) -> String {
    let plain = names.iter().map(|name| text_start(name, NAME_CHARS).escape_debug().to_string());
    name_files(&plain.collect::<Vec<_>>())
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;

//! What the end of a loop proves: each row is a project, an agent's actions before its claim, and
//! how the loop then ends, by `crew run` and in a session. A row expects what crew promises; the
//! agent's files and commands are real. A short run has the first row of each table.

mod changed_tests;
mod commands;
mod counted;
mod honest;
mod outside;
mod people;
mod projects;
mod replaced_runners;
mod rewritten_tests;
mod stubs;

use std::collections::BTreeMap;

use serde_json::Value;

use self::projects::Project;
use crate::door::Door;
use crate::run::proven::sandbox;
use crate::run::{CLAIM, World};
use crate::sandbox::{DEADLINE, Sandbox};
use crate::side_by_side::in_lanes;
use crate::spawned::Running;

type Files = &'static [(&'static str, &'static str)];

/// An action of an agent before its claim.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Replaces a text everywhere in a file, which must contain it.
    Edit(&'static str, &'static str, &'static str),
    /// Writes a file.
    Put(&'static str, &'static str),
    /// Runs a command in the repository by `sh`.
    Sh(&'static str),
}

/// How a loop ends, and a text in its reason or its refusal.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The claim is refused.
    Refused(&'static str),
    /// The loop is completed, or the claim is refused, and the proof is never above `passing`.
    AtMostPassing,
    Passing(&'static str),
    Checked(&'static str),
}

/// One ending.
#[derive(Debug, Clone, Copy)]
struct Row {
    name: &'static str,
    project: &'static Project,
    /// Files beside the project's, or in place of them.
    files: Files,
    /// The check, in place of the project's; `ROOT` stands for the path of the checkout, and
    /// `ABOVE` for its parent folder.
    check: &'static str,
    options: &'static [&'static str],
    /// What a person did by `sh` before the loop.
    begin: &'static str,
    work: &'static [Step],
    end: End,
}

const fn row(
    name: &'static str,
    project: &'static Project,
    work: &'static [Step],
    end: End,
) -> Row {
    Row { name, project, files: &[], check: project.check, options: &[], begin: "", work, end }
}

impl Row {
    /// The row with another check.
    const fn check(self, check: &'static str) -> Self {
        Self { check, ..self }
    }

    const fn files(self, files: Files) -> Self {
        Self { files, ..self }
    }

    const fn options(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    const fn begin(self, begin: &'static str) -> Self {
        Self { begin, ..self }
    }

    fn start_files(&self) -> BTreeMap<&'static str, String> {
        let files = self.project.files.iter().chain(self.files);
        files.map(|(path, text)| (*path, (*text).to_owned())).collect()
    }

    /// The agent's work as a script of `sh`.
    fn script(&self) -> String {
        let mut files = self.start_files();
        let mut script = String::new();
        for step in self.work {
            let (path, text) = match step {
                Step::Sh(command) => {
                    script.extend([command, "\n"]);
                    continue;
                }
                Step::Put(path, text) => (*path, (*text).to_owned()),
                Step::Edit(path, from, to) => {
                    let text = files.get(path).filter(|text| text.contains(from));
                    let text = text.unwrap_or_else(|| panic!("{}: no {from:?}", self.name));
                    (*path, text.replace(from, to))
                }
            };
            let quoted = shell_words::quote(&text).into_owned();
            let written = format!("mkdir -p \"$(dirname {path})\"; printf %s {quoted} > {path}\n");
            script.push_str(&written);
            files.insert(path, text);
        }
        script
    }

    /// The repository as the loop finds it.
    fn prepare(&self, sandbox: &Sandbox) {
        stubs::install(sandbox);
        for (path, text) in self.start_files() {
            let path = sandbox.write(path, &text);
            if text.starts_with("#!") {
                crate::sandbox::write_executable(&path, &text);
            }
        }
        act(sandbox, self.begin);
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-qm", "project"]);
    }

    fn options_in<'a>(&'a self, check: &'a str) -> Vec<&'a str> {
        [&["-n", "1", "--stall", "0", "--verify", check], self.options].concat()
    }

    fn in_a_run(&self) -> Value {
        let world = World::of(uncached(), &[&format!("{}{CLAIM}", self.script())]);
        self.prepare(&world.sandbox);
        let check = self.check_in(&world.sandbox);
        world.crew(&[&["run", "Do it"], &self.options_in(&check)[..]].concat());
        world.the_loop()
    }

    fn in_a_session(&self) -> Value {
        let door = Door::of(uncached());
        self.prepare(&door.sandbox);
        let check = self.check_in(&door.sandbox);
        let options = self.options_in(&check);
        let options: Vec<_> = options.iter().map(|it| shell_words::quote(it)).collect();
        let id = door.begin(&format!("Do it {}", options.join(" ")));
        act(&door.sandbox, &self.script());
        door.stop("All is done.\n\n<promise>COMPLETE</promise>");
        let state = door.record(&id)["state"].clone();
        let mut ended = state["ending"].clone();
        ended["evidence"] = state["evidence"].clone();
        ended
    }

    fn check_in(&self, sandbox: &Sandbox) -> String {
        let root = sandbox.repository().display().to_string();
        self.check.replace("ROOT", &root).replace("ABOVE", &sandbox.root().display().to_string())
    }

    /// What is wrong with an end; `None` if it is as expected.
    fn complaint(&self, ended: &Value) -> Option<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (outcome, proof) = (text(&ended["outcome"]), text(&ended["proof"]));
        let (why, refusal) = (text(&ended["why"]), text(&ended["evidence"]["claim"]["because"]));
        let completed = |expected: &str, named: &str| {
            outcome == "completed" && proof == expected && why.contains(named)
        };
        let is_right = match self.end {
            End::Refused(named) => outcome != "completed" && refusal.contains(named),
            End::AtMostPassing => {
                outcome != "completed" || ["claimed", "passing"].contains(&&*proof)
            }
            End::Passing(named) => completed("passing", named),
            End::Checked(named) => completed("checked", named),
        };
        (!is_right).then(|| format!("{}: {outcome} {proof} ({why}) {refusal}", self.name))
    }
}

/// A sandbox in which Python keeps no compiled files: an agent of a test may edit a file within the
/// second in which it was compiled, and Python treats a file of the same size as unchanged.
fn uncached() -> Sandbox {
    sandbox().env("PYTHONDONTWRITEBYTECODE", "1")
}

/// Runs a script in the repository, as the agent of a session or a person would.
fn act(sandbox: &Sandbox, script: &str) {
    let mut command = sandbox.command("sh");
    command.args(["-c", script]);
    Running::start(command, None).wait(DEADLINE);
}

#[track_caller]
fn hold(rows: &[Row], end: fn(&Row) -> Value) {
    let wrong: Vec<String> =
        in_lanes(rows, |row| row.complaint(&end(row))).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// A row of each table of the long tests, for each runner and each verdict.
const SHORT: [Row; 19] = [
    changed_tests::PYTHON[0],
    changed_tests::MORE_PYTHON[0],
    changed_tests::JAVASCRIPT[0],
    changed_tests::IN_RUST[0],
    changed_tests::SHELL[0],
    commands::HONEST[0],
    commands::REPLACED[1],
    honest::PYTHON[0],
    honest::MORE_PYTHON[0],
    honest::JAVASCRIPT[0],
    honest::OTHERS[0],
    outside::IGNORED[0],
    outside::LINKS[0],
    outside::NAMES[0],
    outside::SETUP[0],
    replaced_runners::PATHS[0],
    replaced_runners::PROGRAMS[0],
    replaced_runners::RECIPES[0],
    rewritten_tests::ROWS[0],
];

#[test]
fn one_row_of_each_table_ends_a_run_as_expected() {
    hold(&SHORT, Row::in_a_run);
}

#[test]
fn one_row_of_each_verdict_ends_a_session_as_expected() {
    let rows = [
        changed_tests::PYTHON[0],
        commands::REPLACED[1],
        honest::JAVASCRIPT[0],
        replaced_runners::PATHS[0],
        replaced_runners::RECIPES[0],
        rewritten_tests::ROWS[0],
    ];
    hold(&rows, Row::in_a_session);
}

//! Completion of a command line in a shell. The script of a shell asks crew itself, so that the
//! loops, fleets and tasks that are there now are offered, too. It writes nothing, takes no lock,
//! starts no program, and is silent where it cannot look.

use std::ffi::OsString;

use anyhow::{Context, Result};
use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use toml::Table;

use super::print;
use crate::cli::Cli;
use crate::exit::Exit;
use crate::fleet::store as fleets;
use crate::report::list;
use engine::doctor::shell_word;
use engine::record::Loop;
use engine::text::{clean, distinct};
use readers::agents;
use readers::parse::requests::KINDS;
use readers::prompts::procedures;
use world::env;
use world::files::disk;
use world::store::{self, Home, settings};

/// The variable in which a shell's script names the shell that asks.
const ASKED: &str = "CREW_COMPLETE";

/// Prints what a shell needs to complete a command line of crew. It installs nothing.
pub fn script(shell: &str) -> Result<Exit> {
    let shells = Shells::builtins();
    let completer = shells.completer(shell).context("crew knows no completions of this shell")?;
    let mut page = Vec::new();
    completer.write_registration(ASKED, "crew", "crew", "crew", &mut page)?;
    print::bytes(&page);
    Ok(Exit::SUCCESS)
}

/// Answers the script of a shell; `false` if none asks.
pub fn answer() -> bool {
    let mut words = env::words();
    if env::text(ASKED).as_deref() == Some("bash") {
        take_equals_out(&mut words);
    }
    let asked = CompleteEnv::with_factory(command).var(ASKED);
    asked.try_complete(words, env::current_folder().ok().as_deref()).unwrap_or(true)
}

/// bash hands over `--option=value` as three words, and the number of the one to complete, which
/// an option without effect keeps right.
fn take_equals_out(words: &mut [OsString]) {
    for at in 1..words.len() {
        if words[at] == "=" && words[at - 1].as_encoded_bytes().starts_with(b"--") {
            words.swap(at - 1, at);
            words[at - 1] = "--color=auto".into();
        }
    }
}

/// The commands and options, with what may stand for each value. Hidden commands are not offered.
fn command() -> Command {
    let all = Cli::command();
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = verbs.map(|verb| with_candidates(verb.clone()));
    let command = Command::new("crew").args(all.get_arguments()).subcommands(verbs);
    let mut built = command.clone();
    built.build();
    // What `crew help` takes are the names of the commands, with those below them.
    let names = built.find_subcommand("help").cloned().unwrap_or_default();
    command.mut_subcommand("man", |_| names.name("man"))
}

fn with_candidates(verb: Command) -> Command {
    let name = verb.get_name().to_owned();
    verb.mut_args(|arg| candidates(&name, arg)).mut_subcommands(with_candidates)
}

/// The option or word of a verb, with its candidates.
fn candidates(verb: &str, arg: Arg) -> Arg {
    let value = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string);
    match (arg.get_id().as_str(), value.as_deref().unwrap_or_default()) {
        (_, "FILE") => arg.value_hint(ValueHint::FilePath),
        ("agent" | "fallback", _) => these(arg, || own(agents::known_names(), "agents")),
        ("task", _) if verb == "run" => these(arg, || own(procedures::NAMES, "procedures")),
        ("on", _) if verb == "run" => these(arg, || own(["local", "slurm"], "executor")),
        ("on", _) => these(arg, || vec!["slurm".to_owned()]),
        ("land", _) => these(arg, || vec!["pr".to_owned()]),
        ("iteration", _) => arg.add(ArgValueCandidates::new(|| home_of(iterations))),
        (_, "LOOP") => arg.add(ArgValueCandidates::new(match verb {
            "pause" | "cancel" | "set" | "tell" => || loops(Loop::is_live),
            "clean" => || loops(|record| !record.is_live()),
            "back" | "diff" => || match home_of(iterations) {
                none if none.is_empty() => loops(|_| true),
                iterations => iterations,
            },
            _ => || loops(|_| true),
        })),
        ("fleet", _) => these(arg, || home_of(|home| fleets::names(home).unwrap_or_default())),
        ("words", "TEXT") if verb == "tell" => these(arg, || home_of(tasks)),
        (_, "TYPE") | ("words", "DESCRIPTION") => these(arg, || KINDS.map(str::to_owned).into()),
        _ => arg,
    }
}

/// These names; where a word may follow, they are none of its.
fn these(arg: Arg, names: fn() -> Vec<String>) -> Arg {
    let all = move || names().into_iter().map(CompletionCandidate::new).collect::<Vec<_>>();
    let arg = if arg.is_positional() { arg.num_args(1) } else { arg };
    arg.add(ArgValueCandidates::new(all))
}

/// What is known, then the names in this table of the settings files of the user and of the
/// project. A name that a shell would read as more than a word is left out: a checkout wrote it.
fn own(known: impl IntoIterator<Item = impl ToString>, table: &str) -> Vec<String> {
    let here = env::current_folder().unwrap_or_default();
    let top = here.ancestors().find(|folder| disk::exists(&folder.join(".git")));
    let files = [settings::user_file(), Some(settings::project_file(top.unwrap_or(&here)))];
    let texts =
        files.into_iter().filter_map(|file| disk::read_text(&file?, settings::FILE_BYTES).ok()?);
    let tables =
        texts.filter_map(|text| text.parse::<Table>().ok()?.remove(table)?.try_into().ok());
    let own = tables.flat_map(|it: Table| it.into_iter().map(|(name, _)| name));
    let own = own.filter(|name| shell_word(name) == *name);
    distinct(known.into_iter().map(|name| name.to_string()).chain(own))
}

/// The iterations, newest first, of the loop that is named before the word that is completed.
fn iterations(home: &Home) -> Vec<CompletionCandidate> {
    let mut words = env::words();
    words.pop();
    let mut loops = store::readable(home).into_iter();
    let named = loops.find(|record| words.iter().any(|word| word == record.id.as_str()));
    let last = named.map_or(0, |record| record.state.completed);
    (1..=last).rev().map(|number| CompletionCandidate::new(number.to_string())).collect()
}

/// The loops of this machine, newest first, with how each stands and its task; then the fleets and
/// their tasks.
fn loops(is_meant: fn(&Loop) -> bool) -> Vec<CompletionCandidate> {
    let loops = home_of(store::readable);
    let candidate = |record: &Loop| {
        let told = StyledStr::from(clean(&list::in_a_line(record)));
        CompletionCandidate::new(record.id.as_str()).help(Some(told))
    };
    let loops = loops.iter().filter(|record| is_meant(record)).map(candidate);
    loops.chain(home_of(tasks).into_iter().map(CompletionCandidate::new)).collect()
}

fn home_of<T>(names: fn(&Home) -> Vec<T>) -> Vec<T> {
    Home::of_terminal().map(|home| names(&home)).unwrap_or_default()
}

/// The fleets and their tasks.
fn tasks(home: &Home) -> Vec<String> {
    let names = |fleet: &String| {
        let record = fleets::read(home, fleet).ok().flatten().unwrap_or_default();
        let tasks = record.tasks.into_keys().map(|task| format!("{fleet}/{task}"));
        [fleet.clone()].into_iter().chain(tasks).collect::<Vec<_>>()
    };
    fleets::names(home).unwrap_or_default().iter().flat_map(names).collect()
}

#[cfg(test)]
mod tests {
    use clap_complete::engine::complete;

    use super::*;

    #[test]
    fn an_option_and_its_value_are_two_words_for_bash() {
        for (handed_over, expected) in [
            ("show --only = f", "show --color=auto --only f"),
            ("show --only =", "show --color=auto --only"),
            ("run --require=p", "run --require=p"),
            ("tell = p", "tell = p"),
        ] {
            let mut words: Vec<OsString> = handed_over.split(' ').map(Into::into).collect();
            take_equals_out(&mut words);
            assert_eq!(words.join(" ".as_ref()), *expected);
        }
    }

    #[test]
    fn each_value_is_offered_that_an_option_takes() {
        for (words, expected) in [
            ("crew resume --permissions ", "default accept-edits auto bypass"),
            ("crew run --require ", "checked proven"),
            ("crew run --require=p", "--require=proven"),
            ("crew run --questions ", "auto ask defer"),
            ("crew run --test-changes ", "refuse report"),
            ("crew --color ", "auto always never"),
            ("crew run --max-", "--max-iterations --max-duration --max-cost --max-tokens"),
            ("crew history --outcome e", "exhausted error"),
            ("crew show --only t", "timed-out"),
            ("crew show --iteration ", ""),
            ("crew handoff ", "task phase review session blocked"),
            ("crew handoff review ", ""),
            ("crew handoff --type b", "blocked"),
            ("crew doctor --on ", "slurm"),
            ("crew fleet run tasks --land ", "pr"),
            ("crew fleet run /us", "/usr/"),
            ("crew man c", "cancel config clean completions"),
            ("crew man fleet ", "run status clean"),
            ("crew help fleet s", "status"),
            ("crew completions ", "bash zsh fish"),
            ("crew dri", ""),
            ("crew re", "resume"),
        ] {
            let words: Vec<_> = words.split(' ').map(Into::into).collect();
            let last = words.len() - 1;
            let offered = complete(&mut command(), words.clone(), last, None).unwrap();
            let offered = offered
                .iter()
                .map(|candidate| candidate.get_value().to_string_lossy().into_owned());
            // Options stand where a value may, too.
            let offered: Vec<String> = offered
                .filter(|word| {
                    !word.starts_with('-') || words[last].to_string_lossy().starts_with('-')
                })
                .collect();
            assert_eq!(offered.join(" "), expected, "{words:?}");
        }
    }
}

//! Completion of a command line in a shell. The shell's script asks crew, which also offers the
//! loops, fleets and tasks that exist now. Completion writes nothing, takes no lock, starts no
//! program, and is silent where it cannot read.

use std::ffi::OsString;

use anyhow::{Context, Result};
use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use toml::{Table, Value};

use super::print;
use crate::cli::Cli;
use crate::exit::Exit;
use crate::fleet::{executors, store as fleets};
use crate::report::list;
use engine::doctor::shell_word;
use engine::record::Loop;
use engine::text::{clean_text, distinct_texts};
use readers::agents;
use readers::parse::requests::KINDS;
use readers::prompts::procedures;
use world::env;
use world::files::disk;
use world::store::{self, Home, settings};

/// The variable in which a script names its shell.
const ASKED: &str = "CREW_COMPLETE";

/// Prints the script with which a shell completes command lines of crew. It installs nothing.
pub fn print_script(shell: &str) -> Result<Exit> {
    let shells = Shells::builtins();
    let completer = shells.completer(shell).context("crew knows no completions of this shell")?;
    let mut page = Vec::new();
    completer.write_registration(ASKED, "crew", "crew", "crew", &mut page)?;
    print::bytes(&page);
    Ok(Exit::SUCCESS)
}

/// Answers the script of a shell; `false` if none asks.
pub fn answer_shell() -> bool {
    let mut words = env::program_words();
    if env::text(ASKED).as_deref() == Some("bash") {
        take_equals_out(&mut words);
    }
    let asked = CompleteEnv::with_factory(completed_command).var(ASKED);
    asked.try_complete(words, env::current_folder().ok().as_deref()).unwrap_or(true)
}

/// Joins the three words in which bash hands over `--option=value`. An option without effect takes
/// the free place, so that the number of the word to complete stays right.
fn take_equals_out(words: &mut [OsString]) {
    for at in 1..words.len() {
        if words[at] == "=" && words[at - 1].as_encoded_bytes().starts_with(b"--") {
            words.swap(at - 1, at);
            words[at - 1] = "--color=auto".into();
        }
    }
}

/// The commands and options, with the candidates for each value. Hidden commands are left out.
fn completed_command() -> Command {
    let all = Cli::command();
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = verbs.map(|verb| with_candidates(verb.clone()));
    let command = Command::new("crew").args(all.get_arguments()).subcommands(verbs);
    let mut built = command.clone();
    built.build();
    // `crew help` takes the names of the commands, with those below them; so does `crew man`.
    let names = built.find_subcommand("help").cloned().unwrap_or_default();
    command.mut_subcommand("man", |_| names.name("man"))
}

fn with_candidates(verb: Command) -> Command {
    let name = verb.get_name().to_owned();
    verb.mut_args(|arg| add_candidates(&name, arg)).mut_subcommands(with_candidates)
}

/// Adds the candidates of an option or a word of a verb.
fn add_candidates(verb: &str, arg: Arg) -> Arg {
    let value = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string);
    match (arg.get_id().as_str(), value.as_deref().unwrap_or_default()) {
        (_, "FILE") => arg.value_hint(ValueHint::FilePath),
        ("agent" | "fallback", _) => {
            offer_names(arg, || own_names(agents::known_names(), "agents"))
        }
        ("task", _) if verb == "run" => {
            offer_names(arg, || own_names(procedures::NAMES, "procedures"))
        }
        ("on", _) if verb == "run" => {
            offer_names(arg, || own_names(executors::BUILT_IN, "executor"))
        }
        ("on", _) => offer_names(arg, || vec!["slurm".to_owned()]),
        ("land", _) => offer_names(arg, || vec!["pr".to_owned()]),
        ("iteration", _) => arg.add(ArgValueCandidates::new(|| home_of(iteration_candidates))),
        (_, "LOOP") => arg.add(ArgValueCandidates::new(match verb {
            "pause" | "cancel" | "set" | "tell" => || loop_candidates(Loop::is_live),
            "clean" => || loop_candidates(|record| !record.is_live()),
            "back" | "diff" => || match home_of(iteration_candidates) {
                none if none.is_empty() => loop_candidates(|_| true),
                iterations => iterations,
            },
            _ => || loop_candidates(|_| true),
        })),
        ("fleet", _) => {
            offer_names(arg, || home_of(|home| fleets::list_names(home).unwrap_or_default()))
        }
        ("words", "TEXT") if verb == "tell" => offer_names(arg, || home_of(task_names)),
        (_, "TYPE") | ("words", "DESCRIPTION") => {
            offer_names(arg, || KINDS.map(str::to_owned).into())
        }
        _ => arg,
    }
}

/// Offers these names, even if further words may follow.
fn offer_names(arg: Arg, names: fn() -> Vec<String>) -> Arg {
    let arg = if arg.is_positional() { arg.num_args(1) } else { arg };
    arg.add(ArgValueCandidates::new(move || {
        names().into_iter().map(CompletionCandidate::new).collect()
    }))
}

/// The known names, then those in a table of the settings files of the user and the project. A name
/// that a shell would not read as one word is left out: a checkout may have written it.
fn own_names(known: impl IntoIterator<Item = impl ToString>, table: &str) -> Vec<String> {
    let here = env::current_folder().unwrap_or_default();
    let top = here.ancestors().find(|folder| disk::exists(&folder.join(".git")));
    let files = [settings::user_file(), Some(settings::project_file(top.unwrap_or(&here)))];
    let mut names: Vec<String> = known.into_iter().map(|name| name.to_string()).collect();
    for file in files.into_iter().flatten() {
        let text = disk::read_text(&file, settings::FILE_BYTES).ok().flatten().unwrap_or_default();
        if let Ok(settings) = text.parse::<Table>()
            && let Some(Value::Table(own)) = settings.get(table)
        {
            names.extend(own.keys().filter(|name| shell_word(name) == **name).cloned());
        }
    }
    distinct_texts(names.into_iter())
}

/// The iterations, newest first, of the loop that an earlier word names.
fn iteration_candidates(home: &Home) -> Vec<CompletionCandidate> {
    let mut words = env::program_words();
    words.pop();
    let mut loops = store::readable_loops(home).into_iter();
    let named = loops.find(|record| words.iter().any(|word| word == record.id.as_str()));
    let last = named.map_or(0, |record| record.state.counts().completed());
    (1..=last).rev().map(|number| CompletionCandidate::new(number.to_string())).collect()
}

/// The loops of this machine, newest first, each with its status and task; then the fleets and
/// their tasks.
fn loop_candidates(is_wanted: fn(&Loop) -> bool) -> Vec<CompletionCandidate> {
    let mut candidates = Vec::new();
    for record in home_of(store::readable_loops).iter().filter(|record| is_wanted(record)) {
        let help = StyledStr::from(clean_text(&list::status_and_task(record)));
        candidates.push(CompletionCandidate::new(record.id.as_str()).help(Some(help)));
    }
    candidates.extend(home_of(task_names).into_iter().map(CompletionCandidate::new));
    candidates
}

fn home_of<T>(names: fn(&Home) -> Vec<T>) -> Vec<T> {
    Home::of_terminal().map(|home| names(&home)).unwrap_or_default()
}

/// The fleets and their tasks.
fn task_names(home: &Home) -> Vec<String> {
    let mut names = Vec::new();
    for fleet in fleets::list_names(home).unwrap_or_default() {
        let record = fleets::read_local(home, &fleet).ok().flatten().unwrap_or_default();
        names.push(fleet.clone());
        names.extend(record.tasks.into_keys().map(|task| format!("{fleet}/{task}")));
    }
    names
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
    fn every_value_that_an_option_accepts_is_offered() {
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
            let offered = complete(&mut completed_command(), words.clone(), last, None).unwrap();
            let offered = offered
                .iter()
                .map(|candidate| candidate.get_value().to_string_lossy().into_owned());
            // Options are offered where a value may follow, too.
            let offered: Vec<String> = offered
                .filter(|word| {
                    !word.starts_with('-') || words[last].to_string_lossy().starts_with('-')
                })
                .collect();
            assert_eq!(offered.join(" "), expected, "{words:?}");
        }
    }
}

//! Drives a loop that was begun or taken, here or in a separate process: `crew drive`, which works
//! only on a loop that was handed to it, or looks for the proof of one that has ended. And the page
//! of a prompt that is only shown.

use anyhow::{Error, Result, bail};

use super::reporter::Reporter;
use super::{home, print};
use crate::agents::Launch;
use crate::cli::DriveArgs;
use crate::drive::prompt::Prompt;
use crate::drive::prove;
use crate::drive::run::handover::{Detached, hand_over, take};
use crate::drive::run::{self, RunEnd};
use crate::engine::record::{Loop, Outcome};
use crate::exit::Exit;
use crate::parse::arguments::{OutputArgs, RunOptions};
use crate::report::dry_run;
use crate::world::process::signals::Signals;
use crate::world::store::Home;

/// Takes the loop and drives it, or looks for its proof if it is over.
pub fn drive(arguments: &DriveArgs) -> Result<Exit> {
    let home = home()?;
    let signals = Signals::listen()?;
    let id = arguments.id.parse().map_err(Error::msg)?;
    if let Some(record) = prove::handed_to_me(&home, &id)? {
        prove::in_background(&home, &record, &|| signals.times() > 0)?;
        return Ok(Exit::SUCCESS);
    }
    let record = take(&home, &id)?;
    let mut reporter = Reporter::new(arguments.output);
    drive_or_detach(&home, record, &RunOptions::default(), &signals, &mut reporter)
}

/// Drives a loop that this process has begun or taken, here or in a separate crew process.
pub fn drive_or_detach(
    home: &Home,
    record: Loop,
    options: &RunOptions,
    signals: &Signals,
    reporter: &mut Reporter,
) -> Result<Exit> {
    // A person who asked for the end while the checks ran does not want a crew that continues out
    // of reach.
    if options.detach && signals.times() == 0 && record.is_live() {
        let OutputArgs { json, verbose, quiet } = options.output;
        let flags = [("--json", json), ("-v", verbose), ("-q", quiet)];
        let flags: Vec<&str> = flags.iter().filter(|(_, on)| *on).map(|(flag, _)| *flag).collect();
        let Detached { record, pid, output } = hand_over(home, &record, &flags)?;
        let id = &record.id;
        let told = format!(
            "loop {id} runs in the background, process {pid}; its output is in {}\n\
             watch: crew watch {id} · crew show {id} --log -f · stop: crew cancel {id}",
            output.display()
        );
        let say = if json { print::err } else { print::out };
        say(&told);
        return Ok(Exit::SUCCESS);
    }
    let end = run::drive(home, record, signals, reporter, None);
    Ok(match end {
        RunEnd::Finished(ended) => match (ended.record.outcome(), signals.exit_code()) {
            (Some(Outcome::Interrupted), Some(code)) => Exit::signalled(code),
            (Some(outcome), _) => Exit::of(outcome),
            (None, _) => Exit::ERROR,
        },
        RunEnd::Paused => Exit::INTERRUPTED,
        RunEnd::Taken(id) => bail!("loop {id} has another owner now\nhint: crew status {id}"),
        RunEnd::Refused(error) => return Err(error),
    })
}

/// Shows who would get a prompt, and the prompt.
pub fn show_prompt(subject: &Loop, prompt: &Prompt, launches: &[Launch]) {
    let budget = prompt.size.budget;
    let commands: Vec<(&str, &[String])> =
        launches.iter().map(|it| (it.program.as_str(), it.arguments.as_slice())).collect();
    print::out(&dry_run::page(subject, &commands, &prompt.text, budget));
}

//! `crew resume`: goes on with a loop in fresh processes, whichever driver it had.

use anyhow::{Error, Result, bail};

use super::run::{go, manner};
use super::voice::Voice;
use super::{home, meant, print};
use crate::cli::Words;
use crate::drive::process::adapt::adapt;
use crate::drive::process::baseline::baseline;
use crate::drive::resume::{Resumed, Taker, resume as take};
use crate::drive::steer;
use crate::engine::news::{Listener, News};
use crate::exit::Exit;
use crate::parse::arguments::words;
use crate::parse::changes;
use crate::report::help;
use crate::world::env;
use crate::world::unix::Signals;

/// Takes the loop that is meant into this process and drives it.
pub fn resume(typed: &Words) -> Result<Exit> {
    let (arguments, mut left) = match words::resume(&typed.words) {
        Ok(read) => read,
        Err(error) => {
            print::err(&format!("crew: {error}"));
            return Ok(Exit::Usage);
        }
    };
    if left.iter().any(|word| word == "--help" || word == "-h") {
        print::out(help::RESUME);
        return Ok(Exit::Success);
    }
    let words = left.len();
    left.retain(|word| word != "--now");
    let is_now = left.len() < words;
    let changes = match changes::parse(left.iter().map(String::as_str)).map_err(Error::msg) {
        Ok(changes) => changes,
        Err(error) => {
            print::err(&format!("crew: {error}"));
            return Ok(Exit::Usage);
        }
    };
    if env::inside_an_agent() {
        bail!(
            "an agent cannot resume a loop\nhint: a person can, in a terminal or with /crew:resume"
        );
    }
    let home = home()?;
    let Some(record) = meant(&home, changes.name.as_deref())? else { return Ok(Exit::Usage) };
    if is_now && let Some(woken) = steer::wake(&home, &record.id)? {
        let iteration = woken.iteration();
        print::out(&format!("loop {}: the wait is over, iteration {iteration} begins", woken.id));
        return Ok(Exit::Success);
    }
    let signals = Signals::listen()?;
    let mut notes = Vec::new();
    let adapted = |record: &mut _| adapt(&home, record, &arguments).map(|told| notes = told);
    let options = &arguments.run;
    let Resumed { record, unproved, .. } =
        take(&home, &record.id, &changes, Taker::process()?, adapted)?;
    let mut voice = Voice::new(manner(options));
    voice.hear(&News::Resumed(&record));
    for note in unproved.iter().chain(&notes) {
        voice.hear(&News::Noted(note));
    }
    let record = baseline(&home, record, &signals, &mut voice)?;
    go(&home, record, options, &signals, &mut voice)
}

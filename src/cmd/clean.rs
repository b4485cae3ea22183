//! `crew clean`: removes the records of loops that are over, after it has listed them and a person
//! has agreed. An agent cannot remove records about itself.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{all, home, print, reading, refuse_an_agent, requested};
use crate::cli::CleanArgs;
use crate::drive::clean::{self, Cleaned};
use crate::engine::record::Loop;
use crate::engine::text::{Shown, count};
use crate::exit::{self, Exit};
use crate::parse::arguments::UsageError;
use crate::report::list::{self, ListReading};
use crate::report::words::{brief, size};
use crate::world::store::{self, Home};
use crate::world::{clock, env, terminal};

/// How long ago a loop has ended that is removed without being named.
const AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Removes the loops that were named, or those that ended long ago.
pub fn clean(arguments: &CleanArgs) -> Result<Exit> {
    refuse_an_agent("an agent cannot remove records\nhint: a person can, in a terminal")?;
    let home = home()?;
    clean::finish(&home)?;
    store::windows::remove_over(&home, clock::now().wall)?;
    let age = arguments.older_than.or(arguments.names.is_empty().then_some(AGE));
    let (loops, kept) = wanted(&home, arguments, age)?;
    if loops.is_empty() {
        let age = brief(u64::try_from(age.unwrap_or_default().as_millis()).unwrap_or(u64::MAX));
        print::folded(&match kept {
            0 => format!("nothing to remove: no loop ended more than {age} ago"),
            kept => format!(
                "nothing to remove: {} ended more than {age} ago, but can still be resumed where \
                 it ran; crew clean LOOP removes one all the same",
                count(kept as u64, "loop")
            ),
        });
        return Ok(Exit::SUCCESS);
    }
    show(&home, &loops);
    if !arguments.yes {
        if !terminal::is_interactive() {
            print::err(
                "crew: nobody can be asked here, so nothing was removed\n\
                 hint: read the list, then run crew clean in a terminal, or with --yes",
            );
            return Ok(Exit::USAGE);
        }
        print::offer("Remove their records, logs and snapshots? [y/N] ");
        let answer = terminal::answer()?.unwrap_or_default().to_lowercase();
        if !["y", "yes"].contains(&answer.as_str()) {
            bail!("nothing was removed\nhint: crew clean asks again");
        }
    }
    let Cleaned { removed, freed, refused } = clean::remove(&home, &loops);
    print::out(&format!(
        "removed {} with all snapshots, {} freed",
        count(removed, "loop"),
        size(freed)
    ));
    let is_whole = refused.is_empty();
    for error in &refused {
        print::err(&exit::message(error));
    }
    Ok(if is_whole { Exit::SUCCESS } else { Exit::ERROR })
}

/// The loops that were named, all of them over, or else all; those of the age that was asked for.
/// Where nobody is asked, nothing that only begins like a name goes. Also how many are of that age
/// and stay, because an open client could resume them.
fn wanted(home: &Home, arguments: &CleanArgs, age: Option<Duration>) -> Result<(Vec<Loop>, usize)> {
    let names = &arguments.names;
    if names.is_empty() {
        return Ok(clean::ended_before(home, all(home)?, age.unwrap_or(AGE)));
    }
    let mut loops: Vec<Loop> = Vec::new();
    for name in names {
        let (_, record) = requested(Some(name))?;
        if arguments.yes && record.id.as_str() != name {
            bail!(UsageError::new(
                format!("with --yes a loop is named by its whole id, not by `{}`", Shown(name)),
                format!("crew clean {} --yes", record.id)
            ));
        }
        if record.is_live() {
            let (id, status) = (&record.id, record.status_word());
            bail!("loop {id} is {status}, so its record stays\nhint: crew cancel {id} ends it");
        }
        if !loops.iter().any(|it| it.id == record.id) {
            loops.push(record);
        }
    }
    Ok(match age {
        Some(age) => clean::ended_before(home, loops, age),
        None => (loops, 0),
    })
}

fn show(home: &Home, loops: &[Loop]) {
    let user = env::path("HOME");
    let at = ListReading { reading: reading(), home: user.as_deref() };
    print::out(&list::removable(loops, &clean::bytes(home, loops), at));
}

//! The scripted agent of the demo's fleet: what it does in one iteration of a task. It works only
//! below the scratch folder that it was started for.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::tasks::{AVERAGE, Edit, Meets, RENAMED, ScriptedTask, TASKS};
use crate::demo::agent::LIBRARY;
use crate::world::clock::{self, Deadline};
use crate::world::env;
use crate::world::files::disk::{self, Durability};

/// The largest file that it reads, in bytes.
const FILE_BYTES: u64 = 64 << 10;
/// How long a task waits for its twin to begin; then they do not meet.
const MEET_WITHIN: Duration = Duration::from_secs(60);
/// Between two looks for the twin.
const LOOK: Duration = Duration::from_millis(50);
/// How long the limit of the account lasts, in milliseconds.
const LIMIT_MS: i64 = 4000;
/// The lines around and between the two sides of a conflict begin so.
const MARKERS: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];

/// Works on a task in the current folder, and returns the final message. An error is what its
/// service or its machine says.
pub fn act(root: &Path, name: &str) -> Result<&'static str> {
    let here = disk::real_path(&env::current_folder()?)?;
    let task = TASKS.iter().find(|task| task.name == name);
    let Some(task) = task.filter(|_| here.starts_with(root)) else {
        bail!("this agent works only in the demo's own scratch folder\nhint: crew demo --fleet");
    };
    let shared = root.join("tmp");
    match task.meets {
        Meets::Twin(twin) => meet(&shared, task.name, twin)?,
        Meets::Limit => ask_the_service(&shared)?,
    }
    work(&here, task)
}

/// Waits until the other one has begun as well.
fn meet(shared: &Path, name: &str, twin: &str) -> Result<()> {
    let mark = |name: &str| shared.join(format!("{name}.began"));
    disk::write(&mark(name), b"", Durability::Process)?;
    Deadline::after(MEET_WITHIN).poll(LOOK, || disk::exists(&mark(twin)).then_some(()));
    Ok(())
}

/// The service of the model, which limits the account for a while from the first time it is asked.
fn ask_the_service(shared: &Path) -> Result<()> {
    let limit = shared.join("limited-until");
    let now = clock::now().wall.timestamp_millis();
    let known = disk::read_text(&limit, FILE_BYTES)?.and_then(|text| text.parse().ok());
    let until = known.unwrap_or(now + LIMIT_MS);
    if known.is_none() {
        disk::write(&limit, until.to_string().as_bytes(), Durability::Process)?;
    }
    if now < until {
        let seconds = (until - now + 999) / 1000;
        bail!("429 rate limit reached, try again in {seconds}s");
    }
    Ok(())
}

/// Does what the folder needs: after a landing was refused, the main branch is in it.
fn work(folder: &Path, task: &ScriptedTask) -> Result<&'static str> {
    let library = text(folder, LIBRARY)?;
    let (sum, total) = RENAMED;
    let is_red = !library.contains(sum) && text(folder, AVERAGE)?.contains(sum);
    Ok(if library.contains(MARKERS[0]) {
        let lines = library.split_inclusive('\n');
        let both = lines.filter(|line| !MARKERS.iter().any(|marker| line.starts_with(marker)));
        write(folder, LIBRARY, &both.collect::<String>())?;
        "Both functions are kept.\n<promise>COMPLETE</promise>"
    } else if is_red {
        change(folder, &Edit(AVERAGE, sum, total))?;
        "average.sh uses the new name.\n<promise>COMPLETE</promise>"
    } else {
        task.edits.iter().try_for_each(|edit| change(folder, edit))?;
        "It is done, and its test passes.\n<promise>COMPLETE</promise>"
    })
}

fn change(folder: &Path, Edit(file, from, to): &Edit) -> Result<()> {
    let before = text(folder, file)?;
    let after = if from.is_empty() { before + to } else { before.replace(from, to) };
    write(folder, file, &after)
}

fn text(folder: &Path, file: &str) -> Result<String> {
    Ok(disk::read_text(&folder.join(file), FILE_BYTES)?.unwrap_or_default())
}

fn write(folder: &Path, file: &str, text: &str) -> Result<()> {
    Ok(disk::write(&folder.join(file), text.as_bytes(), Durability::Process)?)
}

//! The demo of a fleet: six tasks, two at once, in a scratch repository with a remote beside it.
//! The agent is a shell script; the verb, the loops and the landings are real. The tasks are made
//! to collide: two write in the same place, two break each other, two meet a limit. The demo shows
//! the run's own lines and fails unless everything landed.

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::scratch::{Scratch, path_text};
use super::{LIBRARY, SCRIPT, fixed_library};
use engine::failure::Failure;
use world::files::disk::{self, Durability};
use world::process::ExitCause;

/// The texts around the lines of the run.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FleetScript {
    opening: String,
    left_out: String,
    /// The reason why a loop waits that met no limit itself.
    why_it_waits: String,
    pub(super) closing: String,
}

/// The command that the person types.
const RUN: [&str; 5] = ["fleet", "run", "tasks", "--land", "--yes"];
/// The command of git that shows main at the end.
const LOG: [&str; 4] = ["log", "--oneline", "--graph", "main"];
/// Words in the line of a loop that waits for the limit of another one.
const LIMIT_OF_ANOTHER: &str = "limit met by loop";
/// The folder of the remote in the scratch folder.
const REMOTE: &str = "remote.git";

/// Plays the fleet in a new scratch folder.
pub fn play_fleet(scratch: &Scratch, show: &impl Fn(&str)) -> Result<()> {
    let remote = path_text(&scratch.root().join(REMOTE))?;
    let git_dir = format!("--git-dir={remote}");
    make_fleet(scratch)?;
    scratch.run_git(&["init", "--quiet", "--bare", "--template=", &remote])?;
    scratch.run_git(&["remote", "add", "origin", &remote])?;
    scratch.run_git(&["push", "--quiet", "origin", "main"])?;
    let FleetScript { opening, left_out, why_it_waits, .. } = &SCRIPT.fleet;
    show(opening);
    show(&format!("> crew {}\n", RUN.join(" ")));
    show(left_out);
    let (mut list, mut has_begun, mut why) = (Vec::new(), false, Some(why_it_waits.as_str()));
    let cause = scratch.watch_verb(&RUN, &mut |line| {
        // Every event begins with its time.
        has_begun |= line.starts_with('[');
        if !has_begun {
            return list.push(line.to_owned());
        }
        show(line);
        if line.contains(LIMIT_OF_ANOTHER) {
            why.take().map(show);
        }
    })?;
    if cause == ExitCause::Stopped {
        bail!("the fleet was interrupted");
    }
    if !has_begun {
        show(&list.join("\n"));
    }
    show(&format!("\n> git {}\n", LOG.join(" ")));
    let log: Vec<&str> = [git_dir.as_str()].into_iter().chain(LOG).collect();
    show(&format!("{}\n", scratch.run_git(&log)?));
    if cause != ExitCause::Exit(0) {
        bail!(Failure::new(
            format!("the fleet did not land everything: {cause}"),
            "the lines above say why"
        ));
    }
    Ok(())
}

/// Creates the repository, and the agent beside it.
fn make_fleet(scratch: &Scratch) -> Result<()> {
    let script = scratch.root().join("agent.sh");
    let agent =
        shell_words::join(["sh", &path_text(&script)?, &path_text(&scratch.root().join("tmp"))?]);
    // A text in JSON is one in TOML, too.
    let terms = TERMS.replace("AGENT", &Value::from(agent).to_string());
    let library = fixed_library();
    let mut files = vec![(LIBRARY, &*library), TEST, ("tasks/fleet.toml", &terms)];
    files.extend(TASKS);
    scratch.make_repository(&files)?;
    Ok(disk::write(&script, AGENT.as_bytes(), Durability::Process)?)
}

/// The agent's script, for all tasks.
const AGENT: &str = include_str!("scripts/agent.sh");
/// The terms of the fleet, without the agent's command.
const TERMS: &str = include_str!("scripts/tasks/fleet.toml");
/// The test that exists from the start.
const TEST: (&str, &str) = ("test-largest.sh", ". ./numbers.sh\n[ \"$(largest 4 9 2)\" = 9 ]\n");
/// The tasks. The names of a pair do not matter: both begin before either lands.
const TASKS: [(&str, &str); 6] = [
    ("tasks/smallest.md", include_str!("scripts/tasks/smallest.md")),
    ("tasks/count.md", include_str!("scripts/tasks/count.md")),
    ("tasks/total.md", include_str!("scripts/tasks/total.md")),
    ("tasks/average.md", include_str!("scripts/tasks/average.md")),
    ("tasks/guide.md", include_str!("scripts/tasks/guide.md")),
    ("tasks/changes.md", include_str!("scripts/tasks/changes.md")),
];

//! The demo of a fleet: six tasks, two at once, in a scratch repository with a remote beside it.
//! The agent follows a script; the verb, the loops and the landings are the real ones. It shows
//! the run's own lines and reports an error unless everything landed.

pub mod agent;
mod tasks;

use anyhow::{Result, bail};
use serde_json::Value;

use self::tasks::{LAND_CHECK, ScriptedTask, TASKS, TEST};
use super::agent::{LIBRARY, fixed};
use super::scratch::{Scratch, text};
use crate::world::process::ExitCause;

/// One line, because what shows it breaks lines where the terminal ends.
const OPENING: &str = "\
Six tasks for a small shell library, two at once, with an agent that follows a script instead of a \
model. Everything else is real: the loops, the checks, the landings on main. smallest and count add \
to the same place: the second to land has a conflict and goes back to its loop. total renames what \
average uses: each is green alone, and together they are red. guide and changes may take one \
iteration each and meet a rate limit of some seconds: both wait, return one after the other, and \
lose nothing. It takes about half a minute, most of it for that limit.

";

/// What is shown when the scratch folder is gone.
pub const CLOSING: &str = "\
The temporary folder is gone. How to write tasks, run them and land them: docs/fleets.md
In a repository of yours, crew fleet run tasks/ --dry-run shows what a folder of tasks would do.
";

/// What the person types.
const RUN: [&str; 5] = ["fleet", "run", "tasks", "--land", "--yes"];
/// What main holds in the end.
const LOG: [&str; 4] = ["log", "--oneline", "--graph", "main"];
/// What the line of a loop holds that waits for the limit of another one.
const LIMIT_OF_ANOTHER: &str = "limit met by loop";
/// Why it waits.
pub const WHY_IT_WAITS: &str = "\
(After a limit, loops return one after another, so that they do not meet it again together: the \
next one returns 21 s after the first.)";
/// Where the scratch folder has the remote.
const REMOTE: &str = "remote.git";

/// Plays the fleet in a new scratch folder.
pub fn perform(scratch: &Scratch, show: &impl Fn(&str)) -> Result<()> {
    let remote = text(&scratch.root().join(REMOTE))?;
    let git_dir = format!("--git-dir={remote}");
    let files = files(scratch)?;
    let files: Vec<(&str, &str)> = files.iter().map(|(name, it)| (&**name, &**it)).collect();
    scratch.furnish(&files)?;
    scratch.git(&["init", "--quiet", "--bare", "--template=", &remote])?;
    scratch.git(&["remote", "add", "origin", &remote])?;
    scratch.git(&["push", "--quiet", "origin", "main"])?;
    show(OPENING);
    show(&format!("> crew {}\n", RUN.join(" ")));
    show(
        "(First it lists all that these files name, which --yes trusts. That is left out here.)\n",
    );
    let (mut list, mut has_begun, mut why) = (Vec::new(), false, Some(WHY_IT_WAITS));
    let cause = scratch.watch(&RUN, &mut |line| {
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
    show(&format!("{}\n", scratch.git(&log)?));
    if cause != ExitCause::Exit(0) {
        bail!("the fleet did not land everything: {cause}\nhint: the lines above say why");
    }
    Ok(())
}

/// The files of the repository, by name.
fn files(scratch: &Scratch) -> Result<Vec<(String, String)>> {
    let root = text(scratch.root())?;
    let agent = shell_words::join([scratch.crew(), "demo", "--agent", &root]);
    let [agent, check] = [agent, LAND_CHECK.to_owned()].map(Value::from);
    // A text in JSON is one in TOML, too.
    let terms = format!("slots = 2\n\n[task]\nagent-cmd = {agent}\n\n[land]\ncheck = {check}\n");
    let mut files = vec![
        (LIBRARY.to_owned(), fixed()),
        (TEST.0.to_owned(), TEST.1.to_owned()),
        ("tasks/fleet.toml".to_owned(), terms),
    ];
    files.extend(TASKS.iter().map(|task| {
        let ScriptedTask { name, terms, prompt, .. } = task;
        (format!("tasks/{name}.md"), format!("---\n{terms}\nwords: [{name}]\n---\n{prompt}\n"))
    }));
    Ok(files)
}

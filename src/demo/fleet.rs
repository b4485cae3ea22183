//! The demo of a fleet: six tasks, two at once, in a scratch repository with a remote beside it.
//! The agent follows a script; the verb, the loops and the landings are the real ones. It shows
//! the run's own lines and reports an error unless everything landed.
//! The six tasks of the demo's fleet: what their files say, and what the scripted agent changes
//! for each. They are made to meet: two write in the same place, two break each other, two meet a
//! limit. It is only text: nothing here acts.
//! The scripted agent of the demo's fleet: what it does in one iteration of a task. It works only
//! below the scratch folder that it was started for.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;

use super::scratch::{Scratch, text};
use super::{LIBRARY, fixed};
use crate::world::clock::{self, Deadline};
use crate::world::env;
use crate::world::files::disk::{self, Durability};
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

/// The test that is there from the beginning.
pub const TEST: (&str, &str) =
    ("test-largest.sh", ". ./numbers.sh\n[ \"$(largest 4 9 2)\" = 9 ]\n");
/// The file in which one task uses what another one renames.
pub const AVERAGE: &str = "average.sh";
/// The name that is taken away, and the one that takes its place.
pub const RENAMED: (&str, &str) = ("sum", "total");

/// The landing's check: every test that there is.
pub const LAND_CHECK: &str = r#"for test in test-*.sh; do sh "$test" || exit 1; done"#;

/// A task.
#[derive(Debug)]
pub struct ScriptedTask {
    pub name: &'static str,
    /// Its own front matter, in YAML.
    pub terms: &'static str,
    pub prompt: &'static str,
    pub meets: Meets,
    /// What its agent changes at first.
    pub edits: &'static [Edit],
}

/// What a task meets.
#[derive(Debug)]
pub enum Meets {
    /// Another one that begins from the same main branch.
    Twin(&'static str),
    /// A limit of the account.
    Limit,
}

/// A change of a file: everywhere the first text becomes the second. Without a first text the
/// second one is added at the end.
#[derive(Debug)]
pub struct Edit(pub &'static str, pub &'static str, pub &'static str);

/// What the two tasks write that come last.
const GUIDE: &str = "Whole numbers in the shell: total, average, count, smallest and largest.\n";
const CHANGES: &str = "- sum is now total.\n- New: average, count and smallest.\n";

/// The fleet. The names of a pair do not matter: both begin before either lands.
pub const TASKS: [ScriptedTask; 6] = [
    ScriptedTask {
        name: "smallest",
        terms: "priority: 9\nverify: 'test \"$(. ./numbers.sh; smallest 4 2 9)\" = 2'",
        prompt: "Add smallest to numbers.sh, with a test.",
        meets: Meets::Twin("count"),
        edits: &[
            Edit(LIBRARY, "", "\nsmallest() { printf '%s\\n' \"$@\" | sort -n | head -n 1; }\n"),
            Edit("test-smallest.sh", "", ". ./numbers.sh\n[ \"$(smallest 4 2 9)\" = 2 ]\n"),
        ],
    },
    ScriptedTask {
        name: "count",
        terms: "priority: 9\nverify: 'test \"$(. ./numbers.sh; count 4 2 9)\" = 3'",
        prompt: "Add count to numbers.sh, with a test.",
        meets: Meets::Twin("smallest"),
        edits: &[
            Edit(LIBRARY, "", "\ncount() { echo \"$#\"; }\n"),
            Edit("test-count.sh", "", ". ./numbers.sh\n[ \"$(count 4 2 9)\" = 3 ]\n"),
        ],
    },
    ScriptedTask {
        name: "total",
        terms: "verify: 'test \"$(. ./numbers.sh; total 4 9 2)\" = 15'",
        prompt: "Rename sum to total.",
        meets: Meets::Twin("average"),
        edits: &[Edit(LIBRARY, RENAMED.0, RENAMED.1)],
    },
    ScriptedTask {
        name: "average",
        terms: "verify: 'test \"$(. ./average.sh; average 4 2 9)\" = 5'",
        prompt: "Add average.sh, with a test. It uses sum.",
        meets: Meets::Twin("total"),
        edits: &[
            Edit(
                AVERAGE,
                "",
                ". ./numbers.sh\n\naverage() { all=$(sum \"$@\") && echo $((all / $#)); }\n",
            ),
            Edit("test-average.sh", "", ". ./average.sh\n[ \"$(average 4 2 9)\" = 5 ]\n"),
        ],
    },
    ScriptedTask {
        name: "guide",
        terms: "after: [total, average]\nmax-iterations: 1\nverify: grep total GUIDE.md",
        prompt: "Write GUIDE.md: what the library can do.",
        meets: Meets::Limit,
        edits: &[Edit("GUIDE.md", "", GUIDE)],
    },
    ScriptedTask {
        name: "changes",
        terms: "after: [total, average]\nmax-iterations: 1\nverify: grep total CHANGES.md",
        prompt: "Write CHANGES.md: what is new.",
        meets: Meets::Limit,
        edits: &[Edit("CHANGES.md", "", CHANGES)],
    },
];

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
    let library = file_text(folder, LIBRARY)?;
    let (sum, total) = RENAMED;
    let is_red = !library.contains(sum) && file_text(folder, AVERAGE)?.contains(sum);
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
    let before = file_text(folder, file)?;
    let after = if from.is_empty() { before + to } else { before.replace(from, to) };
    write(folder, file, &after)
}

fn file_text(folder: &Path, file: &str) -> Result<String> {
    Ok(disk::read_text(&folder.join(file), FILE_BYTES)?.unwrap_or_default())
}

fn write(folder: &Path, file: &str, text: &str) -> Result<()> {
    Ok(disk::write(&folder.join(file), text.as_bytes(), Durability::Process)?)
}

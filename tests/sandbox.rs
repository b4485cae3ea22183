//! The pinned environment of a test: a temporary folder with a home, a git repository and variables
//! that show nothing of the machine. It knows nothing about loops and asserts only that its own
//! commands succeed.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::Build;
use crate::spawned::{Ran, Running};

/// How long a test waits for anything before it fails: a real client on a busy machine takes many
/// seconds.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
pub(crate) const POLL: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Sandbox {
    _folder: TempDir,
    root: PathBuf,
    home: PathBuf,
    environment: BTreeMap<String, String>,
    build: Build,
}

impl Sandbox {
    /// A sandbox with a repository on branch `main` with one commit of one file, `README`.
    pub(crate) fn new() -> Self {
        static TEMPLATE: LazyLock<Vec<(PathBuf, Option<Vec<u8>>)>> = LazyLock::new(template);
        let sandbox = Self::without_git();
        for (path, bytes) in TEMPLATE.iter() {
            let path = sandbox.repository().join(path);
            match bytes {
                Some(bytes) => std::fs::write(path, bytes).unwrap(),
                None => std::fs::create_dir(path).unwrap(),
            }
        }
        // The index names the files of the template: without this they seem to have changed.
        sandbox.git(&["update-index", "-q", "--refresh"]);
        sandbox
    }

    /// A sandbox whose folder is empty and not under version control.
    pub(crate) fn without_git() -> Self {
        let folder = testkit::folder();
        // If the temporary folder is a link, children would see a path other than the test's.
        let root = folder.path().canonicalize().unwrap();
        let home = root.join("home");
        let environment = environment(&root, &home);
        let build = Build::Product;
        let sandbox = Self { _folder: folder, root, home, environment, build };
        for folder in ["home", "bin", "tmp", "repo"] {
            std::fs::create_dir_all(sandbox.root.join(folder)).unwrap();
        }
        std::fs::create_dir_all(sandbox.plugin_data()).unwrap();
        // No test should keep the machine awake, or report that it does.
        let fails = ["/bin/false", "/usr/bin/false"].into_iter().find(|it| Path::new(it).exists());
        for inhibitor in ["systemd-inhibit", "caffeinate"] {
            symlink(fails.unwrap(), sandbox.root.join("bin").join(inhibitor)).unwrap();
        }
        sandbox
    }

    /// Gives its home another name.
    pub(crate) fn home_named(mut self, name: &str) -> Self {
        let home = self.root.join(name);
        std::fs::rename(&self.home, &home).unwrap();
        self.environment = environment(&self.root, &home);
        self.home = home;
        self
    }

    /// Uses a crew that follows `CREW_FAULT` and similar variables.
    pub(crate) fn with_faults(mut self) -> Self {
        self.build = Build::WithFaults;
        self
    }

    /// Makes its crew wait after a crash as long as it does for users.
    pub(crate) fn patient(mut self) -> Self {
        self.environment.remove("CREW_BACK_OFF_MS");
        self
    }

    /// Sets a variable for every later child.
    #[track_caller]
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.build.assert_obeys(name);
        self.environment.insert(name.into(), value.into());
        self
    }

    pub(crate) fn build(&self) -> Build {
        self.build
    }

    /// The folder that holds everything of this test.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.home.clone()
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.root.join("repo")
    }

    /// Where crew keeps its state: the value of `CREW_HOME`, and also the default under this home,
    /// so that a process without the variable finds the same folder.
    pub(crate) fn crew_home(&self) -> PathBuf {
        self.home().join(".local/state/crew")
    }

    fn plugin_data(&self) -> PathBuf {
        self.home().join(".claude/plugins/data/crew-inline")
    }

    /// A path below the repository.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.repository().join(path)
    }

    /// Writes a file below the repository, with the folders it needs.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.file(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Puts a shell script on the `PATH` of every child.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.root.join("bin").join(name);
        write_executable(&path, &format!("#!/bin/sh\n{script}\n"));
        path
    }

    /// Puts the build under test on the `PATH` of every child, if it is not there yet.
    pub(crate) fn put_crew_on_the_path(&self) {
        let _ = symlink(self.build.path(), self.root.join("bin/crew"));
    }

    /// Makes a shell script the agent of every loop, by the user's settings.
    pub(crate) fn make_the_agent(&self, script: &str) {
        self.program("agent", script);
        let folder = self.home().join(".config/crew");
        std::fs::create_dir_all(&folder).unwrap();
        let settings = "loop.agent = \"fake\"\nagents.fake.command = [\"agent\"]\n";
        std::fs::write(folder.join("config.toml"), settings).unwrap();
    }

    /// Runs a shell script in the repository, up to the first command that fails.
    #[track_caller]
    pub(crate) fn sh(&self, script: &str) -> Ran {
        let mut command = self.command("sh");
        command.args(["-ec", script]);
        Running::start(command, None).wait(DEADLINE)
    }

    /// A child to be started in the repository, with the pinned environment only.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().envs(&self.environment).current_dir(self.repository());
        command
    }

    /// Runs git and returns what it printed, trimmed.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut command = self.command("git");
        command.args(arguments);
        Running::start(command, None).wait(DEADLINE).success().trim().to_owned()
    }

    /// Runs the built crew to its end.
    #[track_caller]
    pub(crate) fn crew(&self, arguments: &[&str]) -> Ran {
        self.start_crew(arguments).wait(DEADLINE)
    }

    /// Starts the built crew and leaves it running.
    pub(crate) fn start_crew(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(self.build.path());
        command.args(arguments);
        Running::start(command, None)
    }

    /// Runs `crew hook` with a payload as the client would; what every payload holds (`session_id`,
    /// `transcript_path`, `cwd`) is added if it is missing.
    #[track_caller]
    pub(crate) fn hook(&self, payload: Value) -> Ran {
        self.start_hook(payload).wait(DEADLINE)
    }

    /// Starts `crew hook` and leaves it running.
    pub(crate) fn start_hook(&self, mut payload: Value) -> Running {
        for (key, value) in [
            ("session_id", json!("00000000-0000-4000-8000-000000000001")),
            ("transcript_path", json!(self.home().join(".claude/projects/repo/session.jsonl"))),
            ("cwd", json!(self.repository())),
        ] {
            payload.as_object_mut().unwrap().entry(key).or_insert(value);
        }
        let mut command = self.command(self.build.path());
        command
            .arg("hook")
            .env("CLAUDECODE", "1")
            .env("CLAUDE_PROJECT_DIR", self.repository())
            .env("CLAUDE_PLUGIN_ROOT", checkout())
            .env("CLAUDE_PLUGIN_DATA", self.plugin_data());
        Running::start(command, Some(payload.to_string().into_bytes()))
    }
}

fn environment(root: &Path, home: &Path) -> BTreeMap<String, String> {
    let home = home.display().to_string();
    let root = root.display();
    [
        ("PATH", format!("{root}/bin:/usr/bin:/bin")),
        ("HOME", home.clone()),
        ("TMPDIR", format!("{root}/tmp")),
        ("CREW_HOME", format!("{home}/.local/state/crew")),
        ("XDG_STATE_HOME", format!("{home}/.local/state")),
        ("XDG_CONFIG_HOME", format!("{home}/.config")),
        ("XDG_DATA_HOME", format!("{home}/.local/share")),
        ("XDG_CACHE_HOME", format!("{home}/.cache")),
        ("LANG", "C.UTF-8".into()),
        ("TZ", "UTC".into()),
        ("USER", "tester".into()),
        ("SHELL", "/bin/sh".into()),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_CONFIG_SYSTEM", "/dev/null".into()),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("GIT_AUTHOR_NAME", "A Tester".into()),
        ("GIT_AUTHOR_EMAIL", "tester@example.invalid".into()),
        ("GIT_COMMITTER_NAME", "A Tester".into()),
        ("GIT_COMMITTER_EMAIL", "tester@example.invalid".into()),
        // Agents of tests often fail at once; only the tests of the wait want all of it.
        ("CREW_BACK_OFF_MS", "20".into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// The crew that users get.
pub(crate) fn crew() -> &'static Path {
    Build::Product.path()
}

/// The checkout these tests were built from, which is also the plugin's folder.
pub(crate) fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The contents of every sandbox's repository when its test begins, folders before their files.
/// They are read once for all tests: a git process takes as long as many files.
fn template() -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let sandbox = Sandbox::without_git();
    sandbox.git(&["init", "--quiet", "--initial-branch=main"]);
    // In the repository too: the client's own git calls do not get this environment.
    sandbox.git(&["config", "user.name", "A Tester"]);
    sandbox.git(&["config", "user.email", "tester@example.invalid"]);
    sandbox.write("README", "a repository of a test\n");
    sandbox.git(&["add", "README"]);
    sandbox.git(&["commit", "--quiet", "--message", "Begin"]);
    let mut found = Vec::new();
    add_files(&sandbox.repository(), Path::new(""), &mut found);
    found
}

fn add_files(root: &Path, below: &Path, found: &mut Vec<(PathBuf, Option<Vec<u8>>)>) {
    for entry in std::fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            found.push((path.clone(), None));
            add_files(root, &path, found);
        } else {
            found.push((path, Some(std::fs::read(entry.path()).unwrap())));
        }
    }
}

/// Writes a program, as a copy that a child makes. A file that this process has open for writing is
/// inherited by the children of other tests, and cannot be run until each of them runs its own
/// program. It replaces an existing program atomically, because that may be about to run.
pub(crate) fn write_executable(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let [draft, copy] = ["draft", "copy"].map(|ending| {
        let name = path.file_name().unwrap().to_str().unwrap();
        path.with_file_name(format!(".{name}.{ending}"))
    });
    std::fs::write(&draft, text).unwrap();
    std::fs::set_permissions(&draft, Permissions::from_mode(0o755)).unwrap();
    let copied = Command::new("cp").arg("-p").args([&draft, &copy]).status().unwrap();
    assert!(copied.success(), "{}", path.display());
    std::fs::rename(&copy, path).unwrap();
    std::fs::remove_file(&draft).unwrap();
}

/// Polls until `condition` holds; at the deadline the test fails with what it waited for.
#[track_caller]
pub(crate) fn poll_until(expected: &str, condition: impl FnMut() -> bool) {
    poll_within(DEADLINE, expected, condition);
}

/// Waits up to `limit` until the condition is met.
#[track_caller]
pub(crate) fn poll_within(limit: Duration, expected: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < end, "not seen within {limit:?}: {expected}");
        std::thread::sleep(POLL);
    }
}

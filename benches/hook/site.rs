//! The site of a measurement: a folder with a repository, a home and the client's data, and the
//! calls that can be made there. It is below the build folder, so that writes go to the checkout's
//! disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::call::{Call, Told};

// The binary that cargo builds beside a benchmark has features that only test crates turn on.
const BUILT: &str = match option_env!("CREW_TEST_BIN") {
    Some(released) => released,
    None => env!("CARGO_BIN_EXE_crew"),
};

/// The crew under measurement: a copy, as an installation makes one. A file that was just linked
/// starts more slowly than its copy, probably because its pages lie in the cache in small pieces.
static CREW: OnceLock<PathBuf> = OnceLock::new();

/// Copies the crew that is measured into a folder. It must come before the first site.
pub fn install(folder: &Path) {
    CREW.set(copied(Path::new(BUILT), &folder.join("crew"))).unwrap();
}

/// A copy of a program.
pub fn copied(program: &Path, copy: &Path) -> PathBuf {
    std::fs::copy(program, copy).unwrap();
    copy.to_owned()
}

/// A session that owns the site's loop.
pub const OWNER: &str = "00000000-0000-4000-8000-000000000001";
/// A session that does not own a loop.
pub const STRANGER: &str = "00000000-0000-4000-8000-000000000002";

/// A folder to measure in.
#[derive(Debug)]
pub struct Site {
    root: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Site {
    /// A site with a repository of one commit.
    pub fn new(parent: &Path, name: &str) -> Self {
        let root = parent.join(name);
        let site = Self { environment: environment(&root), root };
        for folder in ["home", "tmp", "client"] {
            std::fs::create_dir_all(site.root.join(folder)).unwrap();
        }
        std::fs::create_dir_all(site.repository().join("src")).unwrap();
        for number in 0..200 {
            let file = site.repository().join(format!("src/part_{number}.txt"));
            std::fs::write(file, format!("part {number}\n")).unwrap();
        }
        for arguments in [
            &["init", "--quiet", "--template="][..],
            &["add", "--all"],
            &["commit", "--quiet", "--message", "Begin"],
        ] {
            let mut git = Command::new("git");
            git.args(arguments).env_clear().envs(&site.environment);
            assert!(git.current_dir(site.repository()).status().unwrap().success());
        }
        site
    }

    pub fn repository(&self) -> PathBuf {
        self.root.join("repo")
    }

    pub fn crew_home(&self) -> PathBuf {
        self.root.join("home/.local/state/crew")
    }

    /// The folder of the site's newest loop.
    pub fn loop_folder(&self) -> PathBuf {
        let status = self.crew(&["status", "--json"]).run();
        let shown: Value = serde_json::from_str(&status.output).unwrap();
        self.crew_home().join("loops").join(shown["loops"][0]["id"].as_str().unwrap())
    }

    /// Any program, in the repository.
    pub fn call(&self, program: impl Into<PathBuf>, arguments: &[&str]) -> Call {
        Call {
            program: program.into(),
            arguments: arguments.iter().map(|&argument| argument.into()).collect(),
            input: String::new(),
            folder: self.repository(),
            environment: self.environment.clone(),
        }
    }

    /// A verb of crew, as typed in a terminal.
    pub fn crew(&self, arguments: &[&str]) -> Call {
        self.call(CREW.get().unwrap(), arguments)
    }

    /// A hook, or its companion, with a payload.
    pub fn hook(&self, arguments: &[&str], session: &str, mut payload: Value) -> Call {
        payload["session_id"] = json!(session);
        payload["cwd"] = json!(self.repository());
        let mut call = self.crew(arguments);
        call.input = payload.to_string();
        for (name, value) in [
            ("CLAUDECODE", "1".into()),
            ("CLAUDE_PROJECT_DIR", self.repository().display().to_string()),
            ("CLAUDE_PLUGIN_DATA", self.root.join("client").display().to_string()),
        ] {
            call.environment.insert(name.into(), value);
        }
        call
    }

    /// A stop of a session whose agent has ended with `words`. Each has a separate prompt, so that
    /// the client's cap on continuations without a tool call does not matter.
    pub fn stop(&self, session: &str, words: &str, transcript: &Path) -> Call {
        let payload = json!({
            "hook_event_name": "Stop",
            "stop_hook_active": true,
            "permission_mode": "default",
            "prompt_id": format!("prompt of {words}"),
            "transcript_path": transcript,
            "last_assistant_message": words,
        });
        self.hook(&["hook"], session, payload)
    }

    /// Starts a loop of session `OWNER`.
    pub fn begin(&self, options: &str) {
        let payload = json!({
            "hook_event_name": "UserPromptExpansion",
            "command_name": "crew:loop",
            "command_args": format!("\"Build the todo API\" {options}"),
        });
        let shown = self.hook(&["hook"], OWNER, payload).run();
        assert!(shown.output.contains("crew loop "), "{shown:?}");
    }
}

/// Asserts a boundary that continues its loop; any other result is not what is measured.
#[track_caller]
pub fn assert_went_on(shown: &Told) {
    let answer: Value = serde_json::from_str(&shown.output).unwrap_or_default();
    assert!(answer["hookSpecificOutput"]["additionalContext"].is_string(), "{shown:?}");
}

/// Asserts a call that printed nothing.
#[track_caller]
pub fn assert_silent(shown: &Told) {
    assert!(shown.success && shown.output.is_empty(), "{shown:?}");
}

fn environment(root: &Path) -> BTreeMap<String, String> {
    let root = root.display();
    [
        ("PATH", std::env::var("PATH").unwrap()),
        ("HOME", format!("{root}/home")),
        ("TMPDIR", format!("{root}/tmp")),
        ("CREW_HOME", format!("{root}/home/.local/state/crew")),
        ("LANG", "C.UTF-8".into()),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_AUTHOR_NAME", "A Bench".into()),
        ("GIT_AUTHOR_EMAIL", "bench@example.invalid".into()),
        ("GIT_COMMITTER_NAME", "A Bench".into()),
        ("GIT_COMMITTER_EMAIL", "bench@example.invalid".into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

//! A running client: how it is started, and its stream of JSON lines. Its environment is the pinned
//! list here, without the machine's variables and those of `Sandbox::env`; its key is a fake.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Api, Installed, Terminal};
use crate::sandbox::{Sandbox, checkout};
use crate::spawned::{Ran, Running};

/// How long a client may run before its group is killed and the test fails.
const DEADLINE: Duration = Duration::from_secs(90);
const KEY: &str = "sk-ant-fake-for-tests-only-0123456789abcdef";

/// A client to be started: `Client::new(installed, &sandbox, &api).prompt("…").run()`.
#[derive(Debug)]
pub(crate) struct Client<'world> {
    program: &'world Path,
    pub(super) sandbox: &'world Sandbox,
    environment: Vec<(String, String)>,
    plugin: Option<PathBuf>,
    permissions: Vec<String>,
    arguments: Vec<String>,
    prompts: Vec<String>,
}

impl<'world> Client<'world> {
    pub(crate) fn new(installed: &'world Installed, sandbox: &'world Sandbox, api: &Api) -> Self {
        settle(sandbox);
        let environment = environment(sandbox, api);
        Self {
            program: &installed.program,
            sandbox,
            environment,
            plugin: Some(checkout().to_owned()),
            permissions: vec!["--dangerously-skip-permissions".into()],
            arguments: Vec::new(),
            prompts: Vec::new(),
        }
    }

    /// Sets the user's prompt. With two or more prompts, the client reads its input as JSON lines,
    /// one after the other.
    pub(crate) fn prompt(mut self, prompt: &str) -> Self {
        self.prompts.push(prompt.into());
        self
    }

    /// Sets a plugin other than this checkout.
    pub(crate) fn plugin(mut self, folder: &Path) -> Self {
        self.plugin = Some(folder.to_owned());
        self
    }

    /// Uses only the plugins that are installed in the home.
    pub(crate) fn installed_plugins(mut self) -> Self {
        self.plugin = None;
        self
    }

    #[track_caller]
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.sandbox.build().assert_obeys(name);
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Lets the client, and so its hooks, see the sandbox's `CREW_HOME`.
    pub(crate) fn crew_home(self) -> Self {
        let home = self.sandbox.crew_home().display().to_string();
        self.env("CREW_HOME", &home)
    }

    pub(crate) fn settings(self, settings: &Value) -> Self {
        self.arguments(&["--settings", &settings.to_string()])
    }

    /// Sets a permission mode instead of skipping all permissions.
    pub(crate) fn permission_mode(mut self, mode: &str) -> Self {
        self.permissions = vec!["--permission-mode".into(), mode.into()];
        self
    }

    /// Adds further flags: `--max-turns 3`, `--resume ID`.
    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
        self
    }

    /// Runs `claude -p` to its end.
    #[track_caller]
    pub(crate) fn run(self) -> Session {
        self.start().wait()
    }

    /// Starts `claude -p` and leaves it running.
    pub(crate) fn start(self) -> RunningClient {
        let mut command = self.command();
        command.arg("-p");
        let input = match self.prompts.as_slice() {
            [] => panic!("a client without a prompt"),
            [prompt] => {
                command.arg(prompt);
                None
            }
            prompts => {
                command.args(["--input-format", "stream-json"]);
                Some(prompts.iter().flat_map(|prompt| user_line(prompt)).collect())
            }
        };
        command.args(["--output-format", "stream-json", "--verbose"]);
        self.flags(&mut command);
        RunningClient { running: Running::start(command, input) }
    }

    /// Runs one of the client's own commands: `claude plugin list`.
    #[track_caller]
    pub(crate) fn tool(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command();
        command.args(arguments);
        Running::start(command, None).wait(DEADLINE)
    }

    /// Runs the built crew in the client's environment, with the client on its `PATH`.
    #[track_caller]
    pub(crate) fn crew(&self, arguments: &[&str]) -> Ran {
        self.start_crew(arguments).wait(DEADLINE)
    }

    /// Starts the built crew in the client's environment and leaves it running. The arguments of
    /// each client and its environment are written to the sandbox's files `started` and
    /// `environment`, one a line.
    pub(crate) fn start_crew(&self, arguments: &[&str]) -> Running {
        let notes = format!("cd '{}' && echo \"$*\" >> started && env >> environment", self.root());
        let real = self.program.display();
        self.sandbox.program("claude", &format!("({notes})\nexec '{real}' \"$@\""));
        let mut command = Command::new(self.sandbox.build().path());
        command.env_clear().current_dir(self.sandbox.repository());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.args(arguments);
        Running::start(command, None)
    }

    fn root(&self) -> String {
        self.sandbox.root().display().to_string()
    }

    /// Opens the client in a separate terminal, ready for input.
    pub(crate) fn open(self) -> Terminal<'world> {
        let mut command = self.command();
        self.flags(&mut command);
        Terminal::open(self.sandbox, &command)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env_clear().current_dir(self.sandbox.repository());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn flags(&self, command: &mut Command) {
        if let Some(plugin) = &self.plugin {
            command.arg("--plugin-dir").arg(plugin);
        }
        command.args(&self.permissions).args(&self.arguments);
    }
}

/// The complete environment of a client.
pub(crate) fn environment(sandbox: &Sandbox, api: &Api) -> Vec<(String, String)> {
    let root = sandbox.root().display();
    [
        ("PATH", format!("{root}/bin:/usr/bin:/bin")),
        ("HOME", sandbox.home().display().to_string()),
        ("TMPDIR", format!("{root}/tmp")),
        ("LANG", "C.UTF-8".into()),
        ("TERM", "xterm-256color".into()),
        ("SHELL", "/bin/sh".into()),
        ("USER", "tester".into()),
        // The machine's own git configuration stays out of the client's and the model's calls too.
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("ANTHROPIC_BASE_URL", api.url()),
        ("ANTHROPIC_API_KEY", KEY.into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
        ("DISABLE_ERROR_REPORTING", "1".into()),
        // Lets root skip the permissions.
        ("IS_SANDBOX", "1".into()),
        ("CREW_BIN", sandbox.build().path().display().to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Answers in advance the client's questions at its first start in a home and a folder. It must
/// precede the first run of any kind, which stores these answers elsewhere.
fn settle(sandbox: &Sandbox) {
    let file = sandbox.home().join(".claude.json");
    if file.exists() {
        return;
    }
    let settled = json!({
        "hasCompletedOnboarding": true, "lastOnboardingVersion": "99.0.0", "theme": "dark",
        "numStartups": 20, "bypassPermissionsModeAccepted": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": {sandbox.repository().display().to_string(): {
            "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
            "allowedTools": [],
        }},
    });
    std::fs::write(file, settled.to_string()).unwrap();
}

fn user_line(prompt: &str) -> Vec<u8> {
    let message = json!({"role": "user", "content": prompt});
    format!("{}\n", json!({"type": "user", "message": message})).into_bytes()
}

/// A running `claude -p`.
#[derive(Debug)]
pub(crate) struct RunningClient {
    pub(crate) running: Running,
}

impl RunningClient {
    #[track_caller]
    pub(crate) fn wait(self) -> Session {
        let ran = self.running.wait(DEADLINE);
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{ran:#?}"));
        let lines = ran.stdout.lines().map(parse).collect();
        Session { status: ran.status, stderr: ran.stderr, lines }
    }
}

/// The output of a `claude -p` that has ended.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) status: ExitStatus,
    pub(crate) stderr: String,
    /// Its standard output, one JSON value a line.
    pub(crate) lines: Vec<Value>,
}

impl Session {
    /// The names of the plugins it loaded.
    pub(crate) fn plugins(&self) -> Vec<&str> {
        let plugins = self.init()["plugins"].as_array();
        plugins.into_iter().flatten().filter_map(|plugin| plugin["name"].as_str()).collect()
    }

    /// Its complaints about its plugins; empty when all is well.
    pub(crate) fn plugin_errors(&self) -> Vec<Value> {
        self.init()["plugin_errors"].as_array().cloned().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> &str {
        self.init()["session_id"].as_str().unwrap()
    }

    /// Its `result` lines: one for each prompt and each wake.
    pub(crate) fn results(&self) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == "result").collect()
    }

    /// The text of the last result.
    #[track_caller]
    pub(crate) fn result(&self) -> &str {
        let last = self.results().into_iter().last();
        last.and_then(|line| line["result"].as_str()).unwrap_or_else(|| panic!("{self:#?}"))
    }

    /// The messages of the client to the user, such as warnings and hooks' system messages, without
    /// the model's words.
    pub(crate) fn informational(&self) -> Vec<&str> {
        let shown = self.lines.iter().filter(|line| line["subtype"] == "informational");
        shown.filter_map(|line| line["content"].as_str()).collect()
    }

    #[track_caller]
    fn init(&self) -> &Value {
        let mut lines = self.lines.iter();
        lines.find(|line| line["subtype"] == "init").unwrap_or_else(|| panic!("{self:#?}"))
    }
}

/// The lines of a session's transcript.
pub(crate) fn transcript(sandbox: &Sandbox, session_id: &str) -> Vec<Value> {
    let projects = sandbox.home().join(".claude/projects");
    let mut folders = std::fs::read_dir(projects).unwrap().map(|entry| entry.unwrap().path());
    let file = folders.find_map(|folder| {
        std::fs::read_to_string(folder.join(format!("{session_id}.jsonl"))).ok()
    });
    let file = file.unwrap_or_else(|| panic!("session {session_id} has no transcript"));
    file.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

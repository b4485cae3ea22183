//! The pinned agents: where each is installed, and how it is made to use the scripted server. Every
//! key is fake, and every home is the test's own.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::{Api, environment};
use crate::sandbox::{Sandbox, checkout};

const KEY: &str = "fake-key-0001";
/// The price of a million tokens in dollars: input, cached input, output.
pub(super) type Prices = (f64, f64, f64);

pub(super) struct Agent {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    /// The path below the folder of the installed clients.
    path: &'static str,
    /// The agent's prices; `None` if it does not report a cost.
    pub(super) prices: Option<Prices>,
    /// Prepares a home, and returns the variables that lead to a server.
    settle: fn(&Sandbox, &str) -> Variables,
}

type Variables = Vec<(&'static str, String)>;

impl Agent {
    pub(super) fn program(&self) -> PathBuf {
        checkout().join("target/clients").join(self.path)
    }

    /// The environment of a run, with the agent on its `PATH`, after a note of its process.
    pub(super) fn settle(&self, sandbox: &Sandbox, api: &Api) -> Vec<(String, String)> {
        let (note, real) = (note(sandbox), self.program());
        let script = format!("echo $$ > '{}'\nexec '{}' \"$@\"", note.display(), real.display());
        sandbox.program(self.name, &script);
        let mut variables = environment(sandbox, api);
        let own = (self.settle)(sandbox, &api.url()).into_iter().chain(super::alone::proxies());
        variables.push(("TZ".to_owned(), "UTC".to_owned()));
        variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
        variables
    }
}

/// The file with the process id of the running agent.
pub(super) fn note(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("agent.pid")
}

pub(super) fn claude() -> Agent {
    Agent {
        name: "claude",
        version: "2.1.330",
        path: "2.1.330/node_modules/@anthropic-ai/claude-code/bin/claude.exe",
        prices: Some((4.0, 0.2, 20.0)),
        settle: |_, _| vec![("CLAUDE_CODE_MAX_RETRIES", "1".to_owned())],
    }
}

pub(super) fn codex() -> Agent {
    Agent {
        name: "codex",
        version: "0.169.0",
        path: "codex-0.169.0/node_modules/.bin/codex",
        prices: None,
        settle: |sandbox, url| {
            let settings = format!(
                "model = \"fake-model\"\nmodel_provider = \"fake\"\n[model_providers.fake]\n\
                 name = \"fake\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n\
                 env_key = \"FAKE_KEY\"\n"
            );
            write(sandbox, ".codex/config.toml", &settings);
            vec![("FAKE_KEY", KEY.to_owned())]
        },
    }
}

pub(super) fn copilot() -> Agent {
    Agent {
        name: "copilot",
        version: "1.0.102",
        path: "copilot-1.0.102/node_modules/.bin/copilot",
        prices: None,
        settle: |_, url| {
            // Where its first start, at the installation, unpacked what else every home would get.
            let unpacked = checkout().join("target/clients/copilot-1.0.102/home/.cache");
            vec![
                ("XDG_CACHE_HOME", unpacked.display().to_string()),
                ("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1")),
                ("COPILOT_PROVIDER_TYPE", "openai".to_owned()),
                ("COPILOT_PROVIDER_API_KEY", KEY.to_owned()),
                ("COPILOT_MODEL", "fake-model".to_owned()),
                ("COPILOT_OFFLINE", "true".to_owned()),
            ]
        },
    }
}

pub(super) fn gemini() -> Agent {
    Agent {
        name: "gemini",
        version: "0.61.0",
        path: "gemini-0.61.0/node_modules/.bin/gemini",
        prices: None,
        settle: |sandbox, url| {
            let settings = json!({
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": false},
                "general": {"enableAutoUpdate": false},
            });
            write(sandbox, ".gemini/settings.json", &settings.to_string());
            vec![
                ("GEMINI_API_KEY", KEY.to_owned()),
                ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
                ("GEMINI_MODEL", "gemini-2.5-flash".to_owned()),
            ]
        },
    }
}

pub(super) fn opencode() -> Agent {
    Agent {
        name: "opencode",
        version: "1.18.33",
        path: "opencode-1.18.33/node_modules/.bin/opencode",
        prices: Some((3.0, 0.3, 15.0)),
        settle: |sandbox, url| {
            let settings = opencode_settings(url).to_string();
            write(sandbox, ".config/opencode/opencode.json", &settings);
            vec![
                ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
                ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
            ]
        },
    }
}

fn opencode_settings(url: &str) -> Value {
    let model = json!({
        "name": "Fake", "limit": {"context": 100_000, "output": 8_000},
        "cost": {"input": 3, "output": 15, "cache_read": 0.3},
    });
    json!({
        "autoupdate": false, "share": "disabled",
        "provider": {"fake": {
            "npm": "@ai-sdk/openai-compatible", "name": "fake",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": KEY},
            "models": {"fake-model": model},
        }},
        "model": "fake/fake-model", "small_model": "fake/fake-model",
    })
}

pub(super) fn qwen() -> Agent {
    Agent {
        name: "qwen",
        version: "0.24.4",
        path: "qwen-0.24.4/node_modules/.bin/qwen",
        prices: None,
        settle: |_, url| {
            vec![
                ("OPENAI_API_KEY", KEY.to_owned()),
                ("OPENAI_BASE_URL", format!("{url}/v1")),
                ("OPENAI_MODEL", "fake-model".to_owned()),
                ("QWEN_TELEMETRY_ENABLED", "0".to_owned()),
            ]
        },
    }
}

fn write(sandbox: &Sandbox, path: &str, text: &str) {
    let path = sandbox.home().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

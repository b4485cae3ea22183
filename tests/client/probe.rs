//! A plugin with nothing but hooks, written for one test into its own folder.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, write_executable};

#[derive(Debug)]
pub(crate) struct Probe {
    folder: PathBuf,
    hooks: Value,
}

impl Probe {
    pub(crate) fn new(sandbox: &Sandbox) -> Self {
        Self { folder: sandbox.root().join("probe"), hooks: json!({}) }
    }

    /// Attaches a shell script to an event. It may write notes to `$CLAUDE_PLUGIN_ROOT`; `handler`
    /// has further fields of the hook, such as `{"async": true}`.
    pub(crate) fn hook(mut self, event: &str, script: &str, handler: &Value) -> Self {
        let handlers = self.hooks.as_object_mut().unwrap().entry(event).or_insert(json!([]));
        let handlers = handlers.as_array_mut().unwrap();
        let name = format!("{event}-{}", handlers.len());
        write_executable(&self.folder.join("bin").join(&name), script);
        // Without `exec` the client's shell is a process between the client and the script.
        let mut fields = json!({
            "type": "command",
            "command": format!("exec sh \"${{CLAUDE_PLUGIN_ROOT}}/bin/{name}\""),
        });
        fields.as_object_mut().unwrap().extend(handler.as_object().unwrap().clone());
        handlers.push(json!({"hooks": [fields]}));
        self
    }

    /// Writes the plugin and returns its folder.
    pub(crate) fn lay_down(self) -> PathBuf {
        let manifest = json!({"name": "probe", "version": "0.0.1", "description": "A probe."});
        for (path, text) in [
            (".claude-plugin/plugin.json", manifest),
            ("hooks/hooks.json", json!({"hooks": self.hooks})),
        ] {
            let path = self.folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.to_string()).unwrap();
        }
        self.folder
    }
}

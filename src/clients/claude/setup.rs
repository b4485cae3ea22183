//! What `crew doctor` and `crew install` know of Claude Code on a machine: its program, its
//! versions, and where it keeps its settings and its plugins' data. Pure: it names files and reads
//! none.

use std::path::{Path, PathBuf};

use crate::engine::doctor::{Product, Version};

/// The client as its users know it.
pub const PRODUCT: Product = Product {
    name: "Claude Code",
    program: "claude",
    oldest: Version(2, 1, 163),
    newest_tried: Version(2, 1, 330),
    older_lacks: "it ignores `crew pause` typed while the agent works, and does not reread \
                  settings during a turn (seen on 2.1.197)",
    given: "crew-inline",
};

/// Below the client's settings folder: one data folder for each plugin.
pub const PLUGINS_DATA: &str = "plugins/data";

/// Where the client keeps a person's settings and plugins.
pub fn config_folder(path: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    path("CLAUDE_CONFIG_DIR").or_else(|| Some(path("HOME")?.join(".claude")))
}

/// The client's settings files that apply in these folders, and whether an administrator manages
/// each. Versions differ in where they look for a project's settings from a folder below its root.
pub fn settings_files(config: Option<&Path>, folders: &[PathBuf]) -> Vec<(PathBuf, bool)> {
    let managed = if cfg!(target_os = "macos") {
        "/Library/Application Support/ClaudeCode/managed-settings.json"
    } else {
        "/etc/claude-code/managed-settings.json"
    };
    let mut files = vec![(PathBuf::from(managed), true)];
    files.extend(config.map(|folder| (folder.join("settings.json"), false)));
    for folder in folders {
        files.extend(super::ABILITIES.settings.iter().map(|name| (folder.join(name), false)));
    }
    files
}

//! The files of crew's plugin for Claude Code: the programs, the manifest, the hooks and the
//! commands, as `crew install` writes them. They are the repository's own, with other hooks.

use std::path::Path;

/// The binary under its three names; it recognises a hook and a companion by the name it was called
/// by.
pub const PROGRAMS: [&str; 3] = ["bin/crew", "bin/crew-hook", "bin/crew-wake"];
/// The manifest, which marks a folder as crew's.
pub const MANIFEST: &str = ".claude-plugin/plugin.json";
/// The hooks.
pub const HOOKS: &str = "hooks/hooks.json";

const REPOSITORY_HOOKS: &str = include_str!("../../../hooks/hooks.json");
const COPIED: [(&str, &str); 9] = [
    (MANIFEST, include_str!("../../../.claude-plugin/plugin.json")),
    (".claude-plugin/marketplace.json", include_str!("../../../.claude-plugin/marketplace.json")),
    ("commands/cancel-loop.md", include_str!("../../../commands/cancel-loop.md")),
    ("commands/handoff.md", include_str!("../../../commands/handoff.md")),
    ("commands/help.md", include_str!("../../../commands/help.md")),
    ("commands/loop.md", include_str!("../../../commands/loop.md")),
    ("commands/pause.md", include_str!("../../../commands/pause.md")),
    ("commands/resume.md", include_str!("../../../commands/resume.md")),
    ("commands/status.md", include_str!("../../../commands/status.md")),
];

/// Every file except the programs: its path and its text.
pub fn plugin_files() -> Vec<(&'static str, String)> {
    let copied = COPIED.iter().map(|(path, text)| (*path, (*text).to_owned()));
    copied.chain([(HOOKS, hooks_file(REPOSITORY_HOOKS))]).collect()
}

/// Whether some version of crew writes this path.
pub fn is_plugin_file(path: &Path) -> bool {
    let is_command = path.parent() == Some(Path::new("commands"))
        && path.extension().is_some_and(|ending| ending == "md");
    // The Finder of macOS leaves this file in every folder it opens.
    let is_mark = path.file_name().is_some_and(|name| name == ".DS_Store");
    let known = PROGRAMS.iter().chain(&[HOOKS]).chain(COPIED.iter().map(|(path, _)| path));
    is_command || is_mark || known.into_iter().any(|ours| path == Path::new(ours))
}

/// How the repository's hooks start the binary by a shell, and the program that replaces it.
const LAUNCHED: [(&str, &str); 2] = [
    (r#""exec sh \"${CLAUDE_PLUGIN_ROOT}/bin/launch\" hook --companion""#, "bin/crew-wake"),
    (r#""exec sh \"${CLAUDE_PLUGIN_ROOT}/bin/launch\" hook""#, "bin/crew-hook"),
];

/// The hooks of an installed plugin. With `args`, even empty, the client starts the program itself:
/// no shell splits a path with blanks.
fn hooks_file(repository: &str) -> String {
    LAUNCHED.iter().fold(repository.to_owned(), |hooks, (launched, program)| {
        let direct = format!(r#""${{CLAUDE_PLUGIN_ROOT}}/{program}", "args": []"#);
        hooks.replace(launched, &direct)
    })
}

#[cfg(test)]
mod contents_tests {
    use super::*;
    use readers::clients::claude::plugin::manifest_version;
    use serde_json::{Value, json};

    fn read_handlers(text: &str) -> Vec<Value> {
        let hooks: Value = serde_json::from_str(text).unwrap();
        let events = hooks["hooks"].as_object().unwrap().values();
        let groups = events.flat_map(|event| event.as_array().unwrap());
        groups.flat_map(|group| group["hooks"].as_array().unwrap().clone()).collect()
    }

    #[test]
    fn the_installed_hooks_differ_from_the_repositorys_only_in_how_the_binary_is_started() {
        let generated = hooks_file(REPOSITORY_HOOKS);
        for (ours, theirs) in read_handlers(&generated).iter().zip(read_handlers(REPOSITORY_HOOKS))
        {
            let launcher = theirs["command"].as_str().unwrap();
            let arguments = launcher.rsplit_once("bin/launch\" ").unwrap().1;
            let program = match arguments {
                "hook" => "${CLAUDE_PLUGIN_ROOT}/bin/crew-hook",
                "hook --companion" => "${CLAUDE_PLUGIN_ROOT}/bin/crew-wake",
                other => panic!("no program of crew's replaces `{other}`"),
            };
            assert_eq!((&ours["command"], &ours["args"]), (&json!(program), &json!([])));
        }
        let stripped = |text: &str| {
            let mut all: Value = serde_json::from_str(text).unwrap();
            for event in all["hooks"].as_object_mut().unwrap().values_mut() {
                for group in event.as_array_mut().unwrap() {
                    for handler in group["hooks"].as_array_mut().unwrap() {
                        let fields = handler.as_object_mut().unwrap();
                        fields.remove("command");
                        fields.remove("args");
                    }
                }
            }
            all
        };
        assert_eq!(stripped(&generated), stripped(REPOSITORY_HOOKS));
    }

    #[test]
    fn the_plugin_has_the_version_of_the_binary() {
        assert_eq!(manifest_version(COPIED[0].1).as_deref(), Some(env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn files_that_no_version_of_crew_installs_are_not_ours() {
        for path in
            ["bin/crew", "commands/of-a-later-crew.md", "hooks/hooks.json", "hooks/.DS_Store"]
        {
            assert!(is_plugin_file(Path::new(path)), "{path}");
        }
        for path in ["Cargo.toml", "src/main.rs", "commands/deep/er.md", "bin/launch", ".git/HEAD"]
        {
            assert!(!is_plugin_file(Path::new(path)), "{path}");
        }
    }
}

//! crew as a plugin of Claude Code: what the client reports of itself and its plugins (`claude
//! --version`, `claude plugin list --json`, `plugin.json`), where it keeps its settings, what they
//! say about crew, and the entry for the status line. Pure: it names files and reads none. Text of
//! another shape is an error or absent, never guessed at.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::clients::{FieldsByPointer, parse_object};
use engine::doctor::{ClientSettings, NAME, PLUGIN, PluginCheck, Product, Version};

/// The version in a text such as "2.1.330 (Claude Code)".
pub fn client_version(text: &str) -> Option<Version> {
    let mut numbers = text.split_whitespace().next()?.split('.').map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse().ok()
    });
    Some(Version(numbers.next()??, numbers.next()??, numbers.next()??))
}

/// The version in a text such as "crew 0.1.0".
pub fn crew_version(text: &str) -> Option<&str> {
    text.trim().strip_prefix("crew ").filter(|version| !version.contains(char::is_whitespace))
}

/// The version in crew's `plugin.json`; `None` for anything else.
pub fn manifest_version(text: &str) -> Option<String> {
    let manifest = parse_object(text.as_bytes()).ok()?;
    if manifest.is("/name", NAME) { manifest.owned("/version") } else { None }
}

/// The plugins that the client has installed; an error if `text` is not such a list.
pub fn parse_plugins(text: &str) -> Result<Vec<PluginCheck>, String> {
    Ok(parse_list(text, "plugins")?.iter().filter_map(parse_plugin).collect())
}

/// The objects of a list in the client's output.
fn parse_list(text: &str, what: &str) -> Result<Vec<Value>, String> {
    let objects: Vec<Map<String, Value>> = serde_json::from_slice(text.as_bytes())
        .map_err(|error| format!("its list of {what} cannot be read ({error})"))?;
    Ok(objects.into_iter().map(Value::Object).collect())
}

fn parse_plugin(fields: &Value) -> Option<PluginCheck> {
    let errors = fields.list("/errors").iter().filter_map(Value::as_str);
    Some(PluginCheck {
        id: fields.owned("/id")?,
        scope: fields.text("/scope").unwrap_or("user").to_owned(),
        enabled: fields.flag("/enabled").unwrap_or(true),
        project: fields.text("/projectPath").map(PathBuf::from),
        copy: fields.text("/installPath").map(PathBuf::from),
        errors: errors.map(str::to_owned).collect(),
    })
}

/// The local folder that the client reads crew's marketplace from, in place, if it is one; an error
/// if `text` is not a list of marketplaces.
pub fn marketplace_folder(text: &str) -> Result<Option<PathBuf>, String> {
    let all = parse_list(text, "marketplaces")?;
    let ours =
        all.iter().find(|fields| fields.is("/name", NAME) && fields.is("/source", "directory"));
    Ok(ours.and_then(|fields| fields.text("/path")).map(PathBuf::from))
}

/// What a settings file says about crew and its hooks; `None` if it is not such a file.
pub fn parse_client_settings(path: PathBuf, text: &str, managed: bool) -> Option<ClientSettings> {
    let fields = parse_object(text.as_bytes()).ok()?;
    Some(ClientSettings {
        path,
        disables_hooks: fields["disableAllHooks"] == true,
        managed_hooks_only: managed && fields["allowManagedHooksOnly"] == true,
        enables: fields["enabledPlugins"][PLUGIN].as_bool(),
    })
}

/// The variables a settings file puts into the environment of hooks, as text; empty if it is not
/// such a file.
pub fn settings_variables(text: &str) -> Vec<(String, String)> {
    let fields = parse_object(text.as_bytes()).unwrap_or_default();
    let variables = fields.members("/env").into_iter().flatten();
    variables.map(|(name, value)| (name.clone(), text_of(value))).collect()
}

/// A value as text: a string without its quotes, any other value as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

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

/// The folder below the client's settings folder that has one data folder for each plugin.
pub const PLUGINS_DATA: &str = "plugins/data";

/// The folder where the client keeps the user's settings and plugins.
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
        files.extend(super::CLAUDE_CODE.settings.iter().map(|name| (folder.join(name), false)));
    }
    files
}

const KEY: &str = "statusLine";
/// How often the client runs the command, in seconds. Without it the client runs the command only
/// at events of the session, so the line of a loop that has ended would stay.
const REFRESH_S: u64 = 2;

/// The entry for a command.
pub fn status_line_entry(command: &str) -> Value {
    json!({ "type": "command", "command": command, "refreshInterval": REFRESH_S })
}

/// Whether an entry runs this command; the user may have added keys to it.
fn runs_command(entry: &Value, command: &str) -> bool {
    entry["command"].as_str().is_some_and(|theirs| theirs.trim() == command)
}

/// Why an entry is not written.
#[derive(Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The file is not a JSON object.
    Broken(String),
    /// The file has another status line, with this command.
    Taken(String),
}

/// The settings with a line for `command`; `None` if they have it. An empty string counts as an
/// empty file.
pub fn with_line(text: &str, command: &str) -> Result<Option<String>, NoRoom> {
    let ours = status_line_entry(command);
    let entry = format!("\"{KEY}\": {ours}");
    if text.trim().is_empty() {
        return Ok(Some(format!("{{\n  {entry}\n}}\n")));
    }
    let settings: Value = serde_json::from_slice(text.as_bytes())
        .map_err(|error| NoRoom::Broken(error.to_string()))?;
    let Some(settings) = settings.as_object() else {
        return Err(NoRoom::Broken("not an object".to_owned()));
    };
    match settings.get(KEY) {
        Some(there) if runs_command(there, command) => return Ok(None),
        Some(there) => {
            let command = there["command"].as_str();
            return Err(NoRoom::Taken(command.map_or_else(|| text_of(there), str::to_owned)));
        }
        None => {}
    }
    let (before, inside) = text.split_once('{').unwrap_or_default();
    let first = inside.trim_start();
    let blanks = &inside[..inside.len() - first.len()];
    Ok(Some(if settings.is_empty() {
        format!("{before}{{\n  {entry}\n{first}")
    } else {
        format!("{before}{{{blanks}{entry},{blanks}{first}")
    }))
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, rename = "statusLine")]
    line: &'a RawValue,
}

/// The settings without crew's line for `command`; `None` if they do not have it.
pub fn without_line(text: &str, command: &str) -> Option<String> {
    let there = serde_json::from_slice::<Entry<'_>>(text.as_bytes()).ok()?.line.get();
    if !runs_command(&serde_json::from_slice(there.as_bytes()).ok()?, command) {
        return None;
    }
    // The value is a slice of `text`, and its address gives its position.
    let start = there.as_ptr() as usize - text.as_ptr() as usize;
    let (before, after) = (&text[..start], &text[start + there.len()..]);
    let key = before.trim_end().strip_suffix(':')?.trim_end();
    let before = key.strip_suffix(&format!("\"{KEY}\""))?;
    let rest = after.trim_start();
    Some(match (rest.strip_prefix(','), before.trim_end().strip_suffix(',')) {
        (Some(rest), _) => format!("{before}{}", rest.trim_start()),
        (None, Some(before)) => format!("{before}{after}"),
        (None, None) => format!("{}{rest}", before.trim_end()),
    })
}

#[cfg(test)]
mod plugin_tests {
    use super::*;

    #[test]
    fn versions_are_parsed_and_other_words_are_not() {
        assert_eq!(client_version("2.1.330 (Claude Code)\n"), Some(Version(2, 1, 330)));
        assert_eq!(client_version("2.1.330-beta.1"), Some(Version(2, 1, 330)));
        assert_eq!([client_version("hello"), client_version(""), client_version("2.1")], [None; 3]);
        assert_eq!(crew_version("crew 0.1.0\n"), Some("0.1.0"));
        assert_eq!(crew_version("crew of many"), None);
        let manifest = r#"{"name":"crew","version":"0.2.0"}"#;
        assert_eq!(manifest_version(manifest).as_deref(), Some("0.2.0"));
        assert_eq!(manifest_version(r#"{"name":"other","version":"0.2.0"}"#), None);
        assert_eq!(manifest_version("{"), None);
    }

    #[test]
    fn the_lists_of_both_clients_are_read() {
        let list = r#"[
            {"id":"crew@crew","version":"0.1.0","scope":"local","enabled":false,
             "installPath":"/c","projectPath":"/repo","projectEnabled":false},
            {"id":"crew@zed","errors":["cache-miss"]}, {"what":1}]"#;
        let found = parse_plugins(list).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].enabled, found[0].scope.as_str()), (false, "local"));
        assert_eq!(found[0].project, Some("/repo".into()));
        assert_eq!(found[1].errors, ["cache-miss"]);
        assert!(parse_plugins("Installed plugins:").is_err());
    }

    #[test]
    fn a_marketplace_is_a_local_folder_or_an_address() {
        let folder = r#"[{"name":"crew","source":"directory","path":"/data/crew/plugin"}]"#;
        assert_eq!(marketplace_folder(folder), Ok(Some("/data/crew/plugin".into())));
        let fetched = r#"[{"name":"zed"},{"name":"crew","source":"github","repo":"a/crew"}]"#;
        let anothers = r#"[{"name":"zed","source":"directory","path":"/data/zed"}]"#;
        for other in [fetched, anothers, "[]"] {
            assert_eq!(marketplace_folder(other), Ok(None), "{other}");
        }
        assert!(marketplace_folder("Configured marketplaces:").is_err());
    }

    #[test]
    fn settings_show_what_they_switch_off() {
        let text = r#"{"disableAllHooks":true,"allowManagedHooksOnly":true,
            "enabledPlugins":{"crew@crew":false},
            "env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"30"}}"#;
        let user = parse_client_settings("/s".into(), text, false).unwrap();
        assert!(user.disables_hooks && !user.managed_hooks_only);
        assert_eq!(user.enables, Some(false));
        assert!(parse_client_settings("/s".into(), text, true).unwrap().managed_hooks_only);
        let silent = parse_client_settings("/s".into(), "{}", true).unwrap();
        assert_eq!((silent.disables_hooks, silent.enables), (false, None));
        assert_eq!(parse_client_settings("/s".into(), "{,", true), None);
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let text = r#"{"env":{"A":"x","N":3,"B":true,"EMPTY":""},"other":{"C":"y"}}"#;
        let expected = [("A", "x"), ("B", "true"), ("EMPTY", ""), ("N", "3")].map(pair);
        assert_eq!(settings_variables(text), expected);
        for junk in ["", "{", "[]", r#"{"env":7}"#, r#"{"env":["A"]}"#] {
            assert_eq!(settings_variables(junk), [], "{junk}");
        }
    }
}

#[cfg(test)]
mod status_line_tests {
    use proptest::prelude::*;

    use super::*;

    const COMMAND: &str = "'/a home/bin/crew' status --line";

    #[test]
    fn the_entry_is_added_to_the_settings_and_its_removal_restores_every_byte() {
        for text in [
            "{\n  \"model\": \"opus\",\n    \"env\": {\"A\": \"é\"}\n}\n",
            "{\"a\":1}",
            "\t{ \"a\" : [1, 2] , \"b\":{} }",
            "{\r\n\t\"text\": \"statusLine\"\r\n}",
        ] {
            let written = with_line(text, COMMAND).unwrap().unwrap();
            let settings: Value = serde_json::from_str(&written).unwrap();
            assert_eq!(settings[KEY], status_line_entry(COMMAND), "{written}");
            assert_eq!(with_line(&written, COMMAND), Ok(None));
            assert_eq!(without_line(&written, COMMAND).as_deref(), Some(text));
        }
        for empty in ["", " \n", "{}", "{ }\n"] {
            let written = with_line(empty, COMMAND).unwrap().unwrap();
            let without = without_line(&written, COMMAND).unwrap();
            assert_eq!(without.trim(), "{}", "{empty:?} {written}");
        }
    }

    #[test]
    fn an_entry_that_the_client_rewrote_is_found_at_any_position() {
        let line = serde_json::to_string_pretty(&status_line_entry(COMMAND)).unwrap();
        for (text, expected) in [
            (format!("{{\"a\": 1, \"statusLine\" : {line}}}"), "{\"a\": 1}"),
            (format!("{{\"a\": 1,\n\"statusLine\": {line},\n\"b\": 2}}"), "{\"a\": 1,\n\"b\": 2}"),
            (format!("{{\"statusLine\": {line}\n}}"), "{}"),
        ] {
            assert_eq!(without_line(&text, COMMAND).as_deref(), Some(expected));
        }
    }

    #[test]
    fn an_entry_is_crews_if_its_command_is_whatever_else_a_person_added() {
        for more in [r#","padding":0"#, r#","refreshInterval":9"#, r#","type":"command""#] {
            let theirs = format!(r#"{{"a":1,"statusLine":{{"command":"{COMMAND}"{more}}}}}"#);
            assert_eq!(with_line(&theirs, COMMAND), Ok(None), "{theirs}");
            assert_eq!(without_line(&theirs, COMMAND).as_deref(), Some(r#"{"a":1}"#));
        }
    }

    #[test]
    fn entries_of_others_are_left_alone() {
        let theirs = r#"{"statusLine":{"type":"command","command":"mine.sh"}}"#;
        assert_eq!(with_line(theirs, COMMAND), Err(NoRoom::Taken("mine.sh".to_owned())));
        assert_eq!(without_line(theirs, COMMAND), None);
        for broken in ["{", "[]", "7", "{\"a\":1,}"] {
            assert!(matches!(with_line(broken, COMMAND), Err(NoRoom::Broken(_))), "{broken}");
            assert_eq!(without_line(broken, COMMAND), None);
        }
        assert_eq!(without_line(r#"{"a":{"statusLine":1}}"#, COMMAND), None);
    }

    proptest! {
        #[test]
        fn no_unrelated_setting_changes(text in "[{}\\[\\]\",: \na-z0-9é]{0,40}", name in "[a-zé\"]{0,9}") {
            let _ = with_line(&text, COMMAND);
            let _ = without_line(&text, COMMAND);
            let settings = json!({ name: text, "b": [1] }).to_string();
            let written = with_line(&settings, COMMAND).unwrap().unwrap();
            prop_assert_eq!(without_line(&written, COMMAND), Some(settings));
        }
    }
}

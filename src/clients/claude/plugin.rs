//! What the client reports of itself and its plugins, and what its settings say about crew: `claude
//! --version`, `claude plugin list --json`, `claude plugin marketplace list --json`, `plugin.json`,
//! `settings.json`. Text of another shape is an error or absent, never guessed at.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::engine::doctor::{ClientSettings, NAME, PLUGIN, PluginCheck, Version};

/// The version in "2.1.330 (Claude Code)".
pub fn client_version(text: &str) -> Option<Version> {
    let mut numbers = text.split_whitespace().next()?.split('.').map(|part| {
        let end = part.find(|it: char| !it.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse().ok()
    });
    Some(Version(numbers.next()??, numbers.next()??, numbers.next()??))
}

/// The version in "crew 0.1.0".
pub fn crew_version(text: &str) -> Option<&str> {
    text.trim().strip_prefix("crew ").filter(|version| !version.contains(char::is_whitespace))
}

/// The version in crew's `plugin.json`; `None` for anything else.
pub fn manifest_version(text: &str) -> Option<String> {
    let manifest: Map<String, Value> = serde_json::from_slice(text.as_bytes()).ok()?;
    let ours = manifest.get("name")?.as_str()? == NAME;
    ours.then(|| manifest.get("version")?.as_str().map(str::to_owned))?
}

/// The plugins the client has installed; an error if the text is not such a list.
pub fn plugins(text: &str) -> Result<Vec<PluginCheck>, String> {
    let plugins: Vec<Map<String, Value>> = serde_json::from_slice(text.as_bytes())
        .map_err(|error| format!("its list of plugins cannot be read ({error})"))?;
    Ok(plugins.iter().filter_map(plugin).collect())
}

fn plugin(fields: &Map<String, Value>) -> Option<PluginCheck> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let errors = fields.get("errors").and_then(Value::as_array).into_iter().flatten();
    Some(PluginCheck {
        id: text("id")?.to_owned(),
        scope: text("scope").unwrap_or("user").to_owned(),
        enabled: fields.get("enabled").and_then(Value::as_bool).unwrap_or(true),
        project: text("projectPath").map(PathBuf::from),
        copy: text("installPath").map(PathBuf::from),
        errors: errors.filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

/// Where the client gets crew's marketplace from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarketplaceSource {
    /// A folder on this machine, which the client reads in place.
    Folder(PathBuf),
    /// Anything else, as the client names it.
    Elsewhere(String),
}

/// The source of the marketplace `crew`, if the client has one; an error if the text is not such a
/// list.
pub fn marketplace(text: &str) -> Result<Option<MarketplaceSource>, String> {
    let all: Vec<Map<String, Value>> = serde_json::from_slice(text.as_bytes())
        .map_err(|error| format!("its list of marketplaces cannot be read ({error})"))?;
    let text = |fields: &Map<String, Value>, name: &str| {
        fields.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    let ours = all.iter().find(|fields| text(fields, "name").as_deref() == Some(NAME));
    Ok(ours.map(|fields| match (text(fields, "source").as_deref(), text(fields, "path")) {
        (Some("directory"), Some(path)) => MarketplaceSource::Folder(path.into()),
        _ => MarketplaceSource::Elsewhere(
            ["repo", "url", "source"].iter().find_map(|it| text(fields, it)).unwrap_or_default(),
        ),
    }))
}

/// What a settings file says about crew and its hooks; `None` if it is not such a file.
pub fn settings(path: PathBuf, text: &str, managed: bool) -> Option<ClientSettings> {
    let fields: Map<String, Value> = serde_json::from_slice(text.as_bytes()).ok()?;
    let is_set = |name: &str| fields.get(name).and_then(Value::as_bool) == Some(true);
    Some(ClientSettings {
        path,
        disables_hooks: is_set("disableAllHooks"),
        managed_hooks_only: managed && is_set("allowManagedHooksOnly"),
        enables: fields.get("enabledPlugins").and_then(|all| all.get(PLUGIN)?.as_bool()),
    })
}

/// The variables a settings file puts into the environment of hooks, as text; empty if it is not
/// such a file.
pub fn settings_variables(text: &str) -> Vec<(String, String)> {
    let fields: Map<String, Value> = serde_json::from_slice(text.as_bytes()).unwrap_or_default();
    let variables = fields.get("env").and_then(Value::as_object).into_iter().flatten();
    let said = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    variables.map(|(name, value)| (name.clone(), said(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_other_words_are_none() {
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
        let found = plugins(list).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].enabled, found[0].scope.as_str()), (false, "local"));
        assert_eq!(found[0].project, Some("/repo".into()));
        assert_eq!(found[1].errors, ["cache-miss"]);
        assert!(plugins("Installed plugins:").is_err());
    }

    #[test]
    fn a_marketplace_is_a_folder_or_somewhere_else() {
        let folder = r#"[{"name":"crew","source":"directory","path":"/data/crew/plugin"}]"#;
        assert_eq!(
            marketplace(folder),
            Ok(Some(MarketplaceSource::Folder("/data/crew/plugin".into())))
        );
        let fetched = r#"[{"name":"zed"},{"name":"crew","source":"github","repo":"a/crew"}]"#;
        assert_eq!(
            marketplace(fetched),
            Ok(Some(MarketplaceSource::Elsewhere("a/crew".to_owned())))
        );
        assert_eq!(marketplace("[]"), Ok(None));
    }

    #[test]
    fn settings_say_what_they_switch_off() {
        let text = r#"{"disableAllHooks":true,"allowManagedHooksOnly":true,
            "enabledPlugins":{"crew@crew":false},
            "env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"30"}}"#;
        let user = settings("/s".into(), text, false).unwrap();
        assert!(user.disables_hooks && !user.managed_hooks_only);
        assert_eq!(user.enables, Some(false));
        assert!(settings("/s".into(), text, true).unwrap().managed_hooks_only);
        let silent = settings("/s".into(), "{}", true).unwrap();
        assert_eq!((silent.disables_hooks, silent.enables), (false, None));
        assert_eq!(settings("/s".into(), "{,", true), None);
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let text = r#"{"env":{"A":"x","N":3,"B":true,"EMPTY":""},"other":{"C":"y"}}"#;
        let expected = [("A", "x"), ("B", "true"), ("EMPTY", ""), ("N", "3")].map(pair);
        assert_eq!(settings_variables(text), expected);
        for junk in ["", "{", "[]", r#"{"env":7}"#, r#"{"env":["A"]}"#] {
            assert_eq!(settings_variables(junk), [], "{junk}");
        }
    }
}

//! Text in files, variables and other programs of this machine.

use std::fs;

use serde_json::json;

use super::{NAME, Source, plant};

pub(super) const SOURCES: &[Source] = &[
    ("the checkout's folder", |it, text| {
        let folder = it.sandbox().root().join(text);
        fs::create_dir(&folder).unwrap();
        it.other("crew run", None, |crew| {
            crew.args(["run", "look around", "-n", "1"]).current_dir(&folder)
        });
        it.crew(&["show"]);
        it.crew(&["show", "--json"]);
    }),
    ("a setting nobody knows", |it, text| {
        it.project(&format!("[loop]\n{} = 1\n", quoted(text)));
        it.begins("Build it");
    }),
    ("a setting in force", |it, text| {
        it.world.settings(&format!("[procedures.odd]\ndescription = {}\n", quoted(text)));
        it.crew(&["run", "--list"]);
        it.crew(&["config", "--json"]);
    }),
    ("a setting of no use", |it, text| {
        it.project(&format!("[loop]\nmax_iterations = {}\n", quoted(text)));
        it.begins("Build it");
    }),
    ("an agent that is not there", |it, text| {
        it.world.settings(&format!("[procedures.odd]\nagent = {}\n", quoted(text)));
        it.crew(&["run", "odd", "-n", "1"]);
    }),
    ("a command to be trusted", |it, text| {
        it.project(&format!("[[check]]\nrun = {}\n", quoted(text)));
        it.begins("Build it");
        it.crew(&["config"]);
        it.crew(&["trust"]);
    }),
    ("a reaction to be trusted", |it, text| {
        it.project(&format!("[on]\nfinish = {}\n", quoted(text)));
        it.crew(&["run", "look around", "-n", "1"]);
        it.crew(&["trust"]);
    }),
    ("an agent's command to be trusted", |it, text| {
        it.project(&format!("[agents.odd]\ncommand = [{}]\n", quoted(text)));
        it.begins("Build it");
        it.crew(&["trust"]);
    }),
    ("a variable of crew's", |it, text| {
        it.other("crew config", None, |crew| crew.arg("config").env("CREW_MAX_COST", text));
    }),
    ("another CREW_HOME", |it, text| {
        it.begins("Build it");
        let data = it.sandbox().home().join(".claude/plugins/data/crew-inline");
        let stop = json!({"hook_event_name": "Stop", "last_assistant_message": "x"});
        it.other("the Stop hook", Some(stop), |crew| {
            crew.arg("hook").env("CREW_HOME", data.join(text)).env("CLAUDE_PLUGIN_DATA", &data)
        });
    }),
    ("a broken record", |it, text| {
        it.begins("Build it");
        let record = fs::read_to_string(it.file("loop.json")).unwrap();
        let status = json!(text).to_string();
        fs::write(it.file("loop.json"), record.replace("\"running\"", &status)).unwrap();
    }),
    ("the maker of a newer record", |it, text| {
        it.begins("Build it");
        let record = json!({"version": 99, "made_by": text});
        fs::write(it.file("loop.json"), record.to_string()).unwrap();
    }),
    ("the plugin's version", |it, text| {
        let plugin = it.sandbox().root().join("plugin");
        fs::create_dir_all(plugin.join(".claude-plugin")).unwrap();
        let manifest = json!({"name": "crew", "version": text}).to_string();
        fs::write(plugin.join(".claude-plugin/plugin.json"), manifest).unwrap();
        let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
        it.other("the SessionStart hook", Some(start), |crew| {
            crew.arg("hook").env("CLAUDE_PLUGIN_ROOT", &plugin)
        });
    }),
    ("why the client loads no plugin", |it, text| {
        let list = json!([{"id": "crew@crew", "scope": "user", "enabled": true, "errors": [text]}]);
        fs::write(it.sandbox().home().join("list"), list.to_string()).unwrap();
        it.sandbox().program(
            "claude",
            "case \"$1\" in plugin) cat \"$HOME/list\";; *) echo 2.1.330;; esac",
        );
    }),
    ("the client's complaint", |it, text| {
        fs::write(it.sandbox().home().join("complaint"), text).unwrap();
        it.sandbox().program("claude", "cat \"$HOME/complaint\" >&2; exit 1");
        it.crew(&["install"]);
    }),
    ("another loop's branch", |it, _| {
        it.sandbox().git(&["switch", "--quiet", "--create", NAME]);
        it.begins("Build it");
        it.begins("Build something else");
    }),
];

/// The text as TOML and JSON write it, fully escaped.
pub(super) fn quoted(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        ' '..='~' if letter != '"' && letter != '\\' => letter.to_string(),
        _ => format!("\\u{:04x}", u32::from(letter)),
    });
    format!("\"{}\"", letters.collect::<String>())
}

#[test]
#[ignore = "long"]
fn nothing_stored_on_this_machine_sends_codes_to_a_terminal() {
    plant(SOURCES);
}

//! The tools that an agent offers, by purpose: every agent has its own names for a shell and for
//! writing a file.

use serde_json::{Map, Value, json};

use super::Tool;

const SHELLS: [&str; 5] = ["exec_command", "shell_command", "shell", "run_shell_command", "bash"];
const WRITERS: [&str; 3] = ["write_file", "write", "create"];

/// A call of the shell. Without a shell it names a tool that does not exist, as a model may do.
pub(super) fn shell(tools: &[Tool<'_>], command: &str) -> (String, Value) {
    let Some((name, schema)) = find(tools, &SHELLS) else {
        return ("bash".to_owned(), json!({"command": command}));
    };
    let input = input(schema, |key, kind| match (key, kind) {
        ("cmd" | "command", "array") => Some(json!(["bash", "-lc", command])),
        ("cmd" | "command", _) => Some(json!(command)),
        _ => None,
    });
    (name.to_owned(), input)
}

/// A call that writes a file, by the shell if no tool does so.
pub(super) fn write(tools: &[Tool<'_>], path: &str, text: &str) -> (String, Value) {
    let Some((name, schema)) = find(tools, &WRITERS) else {
        return shell(tools, &format!("printf %s '{text}' > '{path}'"));
    };
    let input = input(schema, |key, _| match key {
        "file_path" | "filePath" | "path" => Some(json!(path)),
        "content" | "file_text" => Some(json!(text)),
        _ => None,
    });
    (name.to_owned(), input)
}

fn find<'a>(tools: &[Tool<'a>], names: &[&str]) -> Option<Tool<'a>> {
    names.iter().find_map(|name| tools.iter().find(|(offered, _)| offered == name).copied())
}

/// The given arguments that the schema knows, with some value for everything else that it requires.
fn input(schema: &Value, given: impl Fn(&str, &str) -> Option<Value>) -> Value {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut input = Map::new();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let kind = property["type"].as_str().unwrap_or("string").to_ascii_lowercase();
        let filler = || required.contains(&key.as_str()).then(|| filler(property, &kind));
        if let Some(value) = given(key, &kind).or_else(filler) {
            input.insert(key.clone(), value);
        }
    }
    input.into()
}

fn filler(property: &Value, kind: &str) -> Value {
    match (property["enum"].get(0), kind) {
        (Some(first), _) => first.clone(),
        (None, "boolean") => json!(false),
        (None, "number" | "integer") => json!(10),
        (None, "array") => json!([]),
        (None, "object") => json!({}),
        (None, _) => json!("a step of the script"),
    }
}

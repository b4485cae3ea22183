//! The JSON schema of a settings file, made of the lists that its reader uses.

#![expect(clippy::unwrap_used, reason = "only tests call this")]

use std::fmt::Write as _;
use std::path::Path;

use clap::Arg;
use serde_json::{Map, Value, json};

use super::{
    AGENT, CHECK, Deserialize, EXECUTOR, KEYS, Key, LoopMoment, LoopOptions, Phase, REACTION, Role,
    SettingsOwner, TABLES, names_in, parse_settings, words_of,
};
use crate::parse::amounts::Unit;
use crate::parse::arguments::run_options;
use crate::parse::schema_fixture::{
    DIALECT, NO_OPTION, amount, command, commands, described, references, refused, some_time,
    table, text, text_or_off, texts,
};
use engine::record::{Permissions, PromptVia};
use engine::text::variant_name;

/// What an editor shows for a key that neither its line of a new file nor the option's help
/// describes.
const DESCRIPTIONS: [(&str, &str); 15] = [
    ("verify", "A command, or a list of commands, that must pass before a claim counts"),
    ("gate", "Like verify, and also runs after every iteration"),
    ("until", "Ends the loop when it passes; no claim is needed"),
    ("no-worse", "Like verify; tests that failed before may still fail"),
    (
        "prove",
        "Whether the checks also run on the tree as the loop found it (checked), and without the work (proven), before a loop completes",
    ),
    ("notices", "Whether crew sends notices to your terminal"),
    ("agent", "The agent that works, such as claude or codex, or the NAME of an [agents.NAME]"),
    ("args", "Arguments for the agent, after its own"),
    ("permissions", "What the agent may do without asking"),
    ("awake", "Whether this machine stays awake while an agent works"),
    (
        "protect",
        "Paths that the agent must not change; while it has changed one, no claim is believed",
    ),
    ("wait.max", "The longest wait for a rate limit or an outage; 0 = no limit"),
    ("keep.logs", "How much of the logs of all loops is kept; 0 = all"),
    ("keep.snapshots", "How much of the snapshots of all working trees is kept; 0 = all"),
    ("keep.days", "For how many days logs and snapshots are kept; 0 = for ever"),
];

/// The option of `crew run` with this name.
fn option(name: &str) -> Option<&'static Arg> {
    run_options().find(|arg| arg.get_long() == Some(name))
}

/// What an editor shows of a key of `[loop]` or of an option.
pub fn description(name: &str) -> String {
    let written = DESCRIPTIONS.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
    let key = KEYS.iter().find(|key| key.name() == name);
    let comment = key.map(|key| (key.comment(), key.example().is_empty()));
    let help = option(name).and_then(|arg| arg.get_long_help().or(arg.get_help()));
    let text = match (written, comment, help) {
        (Some(text), ..) | (_, Some((text, true)), _) | (_, Some((text, _)), None) => {
            text.to_owned()
        }
        (.., help) => help.unwrap_or_else(|| panic!("{name}")).to_string(),
    };
    assert!(!text.is_empty(), "{name} needs a description");
    text[..1].to_uppercase() + &text[1..]
}

/// The words that an option accepts.
pub fn words(name: &str) -> Vec<String> {
    let values = option(name).and_then(|arg| arg.get_value_parser().possible_values());
    values.into_iter().flatten().map(|value| value.get_name().to_owned()).collect()
}

/// The schema of a key's value, found by trying.
fn value_of(key: &'static Key) -> Value {
    let takes = |value: toml::Value| {
        let alone = toml::Table::from_iter([(key.name().to_owned(), value)]);
        LoopOptions::deserialize(alone).is_ok()
    };
    let list = || vec!["a"].into();
    match *key.unit() {
        Some(unit) => amount(unit),
        None if takes(true.into()) => json!({ "type": "boolean" }),
        None if !words(key.name()).is_empty() => json!({ "enum": words(key.name()) }),
        None if takes(list()) && takes("a".into()) => texts(),
        None if takes(list()) => json!({ "type": "array", "items": { "type": "string" } }),
        None if takes(false.into()) => text_or_off(),
        None => text(),
    }
}

/// The schema of a key, with the description that an editor shows.
pub fn key(key: &'static Key) -> Value {
    let hint = match *key.unit() {
        Some(Unit::Seconds) => ". A time: 90s, 15m, 1h 30m",
        Some(Unit::Bytes) => ". A size: 500MiB, 2GiB",
        Some(Unit::Percent) => ". A part: 80%",
        _ => "",
    };
    let mut part = described(value_of(key), &(description(key.name()) + hint));
    if key.unit().is_none() && part["pattern"].is_string() && key.name() != "protect" {
        part["pattern"] = NO_OPTION.into();
    }
    if !key.built_in().is_empty() {
        let value: toml::Table = format!("value = {}", key.built_in()).parse().unwrap();
        part["default"] = serde_json::to_value(&value["value"]).unwrap();
    }
    part
}

fn keys_of(name: &str) -> Value {
    let keys = KEYS.iter().filter(|key| key.split_name().0 == name);
    table(keys.map(|key_of| (key_of.split_name().1.to_owned(), key(key_of))), &[])
}

/// A table with these keys: the reader's list, and the schema of each value.
pub fn listed<const N: usize>(known: &str, parts: [(&str, Value, &str); N]) -> Value {
    let listed: Vec<&str> = words_of(known).collect();
    assert_eq!(parts.each_ref().map(|(name, ..)| *name).as_slice(), listed);
    table(parts.map(|(name, part, text)| (name.to_owned(), described(part, text))), &[])
}

fn list() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn checks() -> Value {
    let code = json!({ "type": "integer", "minimum": 0, "maximum": 255, "default": 0 });
    let roles = Role::ALL.map(Role::label);
    let mut check = listed(
        CHECK,
        [
            ("run", command(), "The command, for sh -c"),
            (
                "role",
                json!({ "enum": roles, "default": roles[0] }),
                "verify: must pass before a claim counts; gate: the same, and also runs after every iteration; until: ends the loop when it passes",
            ),
            ("timeout", some_time(), "The time after which it is ended and has failed: 10m"),
            ("success-exit-code", code, "The exit code that passes"),
            (
                "no-worse",
                json!({ "type": "boolean", "default": false }),
                "Whether a verify may fail in tests that failed before the loop",
            ),
        ],
    );
    check["required"] = json!(["run"]);
    described(
        json!({ "type": "array", "items": check }),
        "Commands that crew runs itself, each under a line [[check]]",
    )
}

fn agent(outputs: &[&str]) -> Value {
    let command = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
    let prompts = [PromptVia::Stdin, PromptVia::Argument].map(|via| variant_name(&via));
    let permissions = Permissions::ALL.map(|kind| (kind.label().to_owned(), list()));
    let names = json!({ "pattern": "^[^=]+$" });
    let environment = json!({ "type": "object", "additionalProperties": { "type": "string" }, "propertyNames": names });
    let check = json!({ "type": "string", "pattern": r"\{(check|words)\}" });
    let agent = listed(
        AGENT,
        [
            (
                "like",
                json!({ "type": "string" }),
                "The agent that it starts from: one that crew knows, or another entry",
            ),
            ("command", command, "The program and its fixed arguments: [\"claude\", \"-p\"]"),
            ("args", list(), "Arguments after those of the command"),
            ("prompt", json!({ "enum": prompts }), "How the prompt reaches it"),
            (
                "output",
                json!({ "enum": outputs }),
                "How its output is read: text, or the agent whose events it prints",
            ),
            ("permissions", table(permissions, &[]), "The arguments for each kind of permissions"),
            ("max-turns", json!({ "type": "string" }), "The option that limits its turns"),
            ("model", json!({ "type": "string" }), "The option that names its model"),
            ("allow", check, "The argument that allows a check: \"--allow=Bash({check})\""),
            ("environment", environment, "Variables that it is started with"),
            (
                "usage-file",
                json!({ "type": "string" }),
                "The option that names the file in which it leaves what it used",
            ),
            ("login", list(), "The arguments that ask whether it is logged in; [] asks nothing"),
        ],
    );
    named(agent, r"^\S+$", "An agent of yours, under a line [agents.NAME]")
}

/// The schema of a table whose keys are names.
fn named(part: Value, pattern: &str, description: &str) -> Value {
    let part = described(part, description);
    json!({ "type": "object", "additionalProperties": part, "propertyNames": { "pattern": pattern } })
}

fn reactions() -> Value {
    let mut reaction = listed(
        REACTION,
        [
            ("run", command(), "The command, for sh -c"),
            ("timeout", some_time(), "The time after which it is ended: 60s"),
        ],
    );
    reaction["required"] = json!(["run"]);
    reaction["type"] = json!(["string", "object"]);
    reaction["pattern"] = command()["pattern"].take();
    reaction["not"] = command()["not"].take();
    let mut moment = reaction.clone();
    moment["type"] = json!(["string", "object", "array"]);
    moment["items"] = reaction;
    let when = |on| match on {
        LoopMoment::IterationStart => "Before an iteration; a failure skips it",
        LoopMoment::IterationEnd => "After an iteration; a failure makes the iteration a failure",
        LoopMoment::Wait => "When the loop begins to wait",
        LoopMoment::Stall => "When half of the stall limit has passed without progress",
        LoopMoment::Finish => "When the loop is over",
    };
    let moment = |on: LoopMoment| (on.label().to_owned(), described(moment.clone(), when(on)));
    described(table(LoopMoment::ALL.map(moment), &[]), "Commands at the moments of a run")
}

fn executors() -> Value {
    let with = |name: &str| json!({ "type": "string", "pattern": format!(r"\{{{name}\}}") });
    let mut executor = listed(
        EXECUTOR,
        [
            (
                "submit",
                with("script"),
                "Takes {script} and {name}, and prints the id of the new job",
            ),
            (
                "status",
                with("job"),
                "Takes {job}, and prints its state in a word; nothing when it is over",
            ),
            ("cancel", with("job"), "Takes {job}, and ends it"),
        ],
    );
    executor["required"] = json!(words_of(EXECUTOR).collect::<Vec<_>>());
    let text = "Three commands that hand the jobs of a fleet to another system, under a line [executor.NAME] of your own settings file";
    let mut executors = named(executor, r"^[^\s:-][^\s:]*$", text);
    executors["propertyNames"]["not"] = json!({ "pattern": "^(local$|slurm)" });
    executors
}

/// The schema of a settings file; `outputs` are the formats of an agent's output.
pub fn schema(outputs: &[&str]) -> Value {
    let of_loop: Vec<&str> = names_in("loop");
    let define = |name: &&str| {
        let part = Key::find_in_table("loop", name);
        let part = part.map_or_else(|| described(commands(), &description(name)), key);
        ((*name).to_owned(), part)
    };
    let definitions: Map<_, _> = of_loop.iter().map(define).collect();
    let phase = |phase: Phase| {
        let text = format!(
            "{}: a text, a file beside this one, or builtin:NAME",
            description(phase.label())
        );
        (phase.label().to_owned(), described(texts(), &text))
    };
    let mut procedure = references(of_loop.clone());
    procedure.extend(Phase::ALL.map(phase));
    let purpose = described(json!({ "type": "string" }), "What it is for, in one line");
    procedure.push(("description".to_owned(), purpose));
    let procedure = named(
        table(procedure, &[]),
        r"^\S+$",
        "A recipe for prompts, under a line [procedures.NAME], with keys of [loop] for it alone",
    );
    let part = |name: &str| match name {
        "loop" => described(table(references(of_loop.clone()), &[]), "What every loop starts with"),
        "check" => checks(),
        "agents" => agent(outputs),
        "procedures" => procedure.clone(),
        "on" => reactions(),
        "executor" => executors(),
        "keep" => {
            described(keys_of(name), "What is kept of all loops; only in your own settings file")
        }
        _ => described(keys_of(name), "Waits for the model's service"),
    };
    let mut schema = table(TABLES.map(|name| (name.to_owned(), part(name))), &[]);
    schema["$schema"] = DIALECT.into();
    schema["title"] = "Settings of crew".into();
    schema["description"] = ".claude/crew.toml of a project, and ~/.config/crew/config.toml".into();
    schema["definitions"] = definitions.into();
    schema
}

/// Why a string is not a settings file: according to the reader, and to the schema.
pub fn verdicts(schema: &Value, text: &str, outputs: &[&'static str]) -> [Result<(), String>; 2] {
    let read =
        parse_settings(text, Path::new("crew.toml"), SettingsOwner::Users, outputs, &|_| true);
    let read = read.and_then(|read| {
        if read.warnings.is_empty() { Ok(()) } else { Err(read.warnings.join("\n")) }
    });
    [read, by_schema(schema, schema, text)]
}

/// Why a part of a schema rejects a TOML value.
pub fn by_schema(schema: &Value, part: &Value, text: &str) -> Result<(), String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let refused = refused(schema, part, &serde_json::to_value(table).unwrap(), "");
    if refused.is_empty() { Ok(()) } else { Err(refused.join("\n")) }
}

#[cfg(test)]
const OUTPUTS: [&str; 3] = ["text", "claude", "codex"];
/// Values of every kind, valid and invalid ones.
const VALUES: &str = r"0|1|15|256|-1|2.5|true|false|''|' '|'a'|'a b'|'-a'|'auto'|'0'|'5'|'0s'|'500ms'|'12h'|'1h 30m'|
    '1.5h'|'12x'|'500k'|'80%'|'101%'|'2GiB'|'500 MiB'|'2.50'|'$3'|[]|['a']|['a', '']|['sh', '-c']|[1]|[['a']]|{}|{ a = 1 }|
    { run = 'a' }|{ run = 'a', timeout = '10s' }|{ run = 'a', timeout = 0 }|{ timeout = '10s' }|[{ run = 'a' }, 'b']|
    { LEVEL = '1' }|{ 'A=B' = '1' }|{ bypass = ['-y'] }|{ bypass = '-y' }|'off'|'checked'|'proven'|'passing'|'ask'|
    'refuse'|'report'|'bypass'|'stdin'|'argument'|'gate'|'text'|'codex'|'--allow={check}'|'q {script} {name}'|'q {job}'|
    'q {other}'|'builtin:build/act'|'builtin:other'";

/// Values of every kind, as TOML.
pub fn values() -> impl Iterator<Item = &'static str> {
    VALUES.split('|').map(str::trim)
}

/// The keys of a table in a schema.
pub fn keys(table: &Value) -> Vec<&str> {
    table["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// The cases that only one of the two, the reader and the schema, accepts.
pub fn differences(
    keys: &[&str],
    file: impl Fn(&str, &str) -> String,
    verdicts: impl Fn(&str) -> [Result<(), String>; 2],
) -> String {
    let mut all = String::new();
    for key in keys {
        let mut taken = None;
        for value in values() {
            let [read, by_schema] = verdicts(&file(key, value));
            if read.is_ok() && by_schema.is_ok() {
                taken = Some(value);
            } else if read.is_ok() || by_schema.is_ok() {
                let who = if read.is_ok() { "reader" } else { "schema" };
                writeln!(all, "{key} = {value}: only the {who}").unwrap();
            }
        }
        let taken = taken.unwrap_or_else(|| panic!("no value is one for {key}: {all}"));
        for verdict in verdicts(&file(&key.replace('-', "_"), taken)) {
            verdict.unwrap();
        }
    }
    let unknown = file("nonsense", "1");
    assert!(verdicts(&unknown).iter().all(Result::is_err), "{unknown}: {:?}", verdicts(&unknown));
    all
}

#[test]
fn the_reader_and_the_schema_accept_the_same_values() {
    let schema = schema(&OUTPUTS);
    let own = |part: &'static str| keys(&schema["properties"][part]["additionalProperties"]);
    let of = |part: &str| keys(&schema["properties"][part]);
    let executor = "submit = '{script}'\nstatus = '{job}'\ncancel = '{job}'\n";
    let others = |key: &str| {
        let lines = executor.lines().filter(|line| !line.starts_with(key));
        lines.collect::<Vec<_>>().join("\n")
    };
    let check = |key: &str| if key == "run" { "" } else { "run = 'a'\n" };
    let mut recipe = own("procedures");
    recipe.retain(|key| !of("loop").contains(key));
    let line = |table: &str, key: &str, value: &str| format!("{table}\n{key} = {value}\n");
    let verdicts = |text: &str| verdicts(&schema, text, &OUTPUTS);
    let mut differing = String::new();
    for table in ["loop", "wait", "keep", "on"] {
        differing += &differences(
            &of(table),
            |key, value| line(&format!("[{table}]"), key, value),
            verdicts,
        );
    }
    let checks = keys(&schema["properties"]["check"]["items"]);
    differing +=
        &differences(&checks, |key, value| line("[[check]]", key, value) + check(key), verdicts);
    differing +=
        &differences(&own("agents"), |key, value| line("[agents.a]", key, value), verdicts);
    differing += &differences(&recipe, |key, value| line("[procedures.a]", key, value), verdicts);
    differing += &differences(
        &own("executor"),
        |key, value| line("[executor.a]", key, value) + &others(key),
        verdicts,
    );
    insta::assert_snapshot!(differing, @"timeout = '0s': only the schema");
}

//! The settings of a file for a run of fresh processes: the keys other than limits and checks.

use insta::assert_snapshot;

use super::Whose;
use super::tests::{bare, parsed, told, told_of};
use crate::engine::settings::merge::{Layers, merge};
use crate::engine::settings::trust::needs;
use crate::engine::settings::{Key, Layer, Value};

const WHOLE: &str = r#"
[loop]
timeout = "45m"
idle_timeout = 0
delay = "1m 30s"
max_turns = 50
token_budget = "80k"
commit = true
push = false
rebase = "main"
protect = ["tests/**", "Cargo.lock"]
agent = "mine"
args = ["--model", "a b"]
permissions = "auto"

[agents.mine]
like = "codex"
prompt = "argument"
output = "text"
permissions.accept-edits = ["--edit"]
permissions.bypass = []
max_turns = "--turns"
args = ["-x"]
command = ["my agent", "-p"]

[procedures.nightly]
description = "Mend what broke"
context = "builtin:about"
observe = ["look.md", "Read the log\nof today"]
act = "../ACT.j2"
max_iterations = 3
completion_promise = false
gate = ["make lint"]
agent = "codex"

[on]
wait = "tell"
finish = ["one", { run = "two", timeout = "5m" }]

[keep]
logs = "500MiB"
days = 0
"#;

#[test]
fn every_key_of_a_run_becomes_a_value() {
    let read = parsed(WHOLE, "/home/crew/config.toml", Whose::Users).unwrap();
    assert_eq!(read.warnings, [""; 0]);
    let layers = Layers { user: read.layer, ..bare() };
    let settings = merge(&layers, Some("nightly"));
    let keep = settings.keep();
    let reactions: Vec<String> = settings
        .contract_reactions()
        .iter()
        .map(|it| format!("{} {:?} {}s", it.on.label(), it.run, it.timeout_s))
        .collect();
    assert_snapshot!(format!(
        "{:?}\n{} turns, {} tokens\n{:?}\n{:?}\n{} {:?} {}\n{}\n{:?}\n{:?} {:?}\n{} bytes, {} days\n{:?}",
        settings.pace(),
        settings.count(Key::MaxTurns),
        settings.number(Key::TokenBudget),
        settings.git(),
        settings.protected(),
        settings.layer.word(Key::Agent).unwrap_or_default(),
        settings.layer.value(Key::Arguments),
        settings.permissions().label(),
        settings.layer.agents["mine"].value,
        settings.recipe,
        settings.layer.value(Key::Promise),
        settings.contract_checks().iter().map(|check| &check.run).collect::<Vec<_>>(),
        keep.bytes,
        keep.days,
        reactions,
    ), @r#"
    IterationTimes { timeout_s: 2700, idle_timeout_s: 0, delay_s: 90 }
    50 turns, 80000 tokens
    GitSteps { commit: true, push: false, rebase: Some("main"), branch: None }
    ["tests/**", "Cargo.lock"]
    codex None auto
    like = "codex", prompt = "argument", output = "text", permissions.accept-edits = ["--edit"], permissions.bypass = [], max_turns = "--turns", args = ["-x"], command = ["my agent", "-p"]
    Recipe({Context: [BuiltIn("about")], Observe: [File("/home/crew/look.md"), Text("Read the log\nof today")], Act: [File("/home/ACT.j2")]})
    Some(Off) ["make lint"]
    524288000 bytes, 0 days
    ["wait \"tell\" 60s", "finish \"one\" 60s", "finish \"two\" 300s"]
    "#);
}

#[test]
fn arguments_are_only_given_to_the_agent_they_are_meant_for() {
    let layers = |user: &str, project: &str, typed: Option<&str>| {
        let read = |text: &str| parsed(text, "crew.toml", Whose::Users).unwrap().layer;
        let mut layers = Layers { user: read(user), project: read(project), ..bare() };
        let typed = typed.map(|name| format!("[loop]\nagent = {name:?}"));
        layers.typed = typed.map_or_else(Layer::default, |text| read(&text));
        let settings = merge(&layers, None);
        let Some(Value::Words(words)) = settings.layer.value(Key::Arguments) else { return None };
        Some(words.join(" "))
    };
    let args = "[loop]\nargs = [\"--x\"]";
    let codex = "[loop]\nagent = \"codex\"\nargs = [\"--y\"]";
    let table = [
        (args, "", None, Some("--x")),
        (args, "", Some("codex"), None),
        (args, "", Some("claude"), Some("--x")),
        (codex, "", None, Some("--y")),
        (codex, "", Some("claude"), None),
        (codex, args, None, Some("--x")),
        (args, codex, None, Some("--y")),
        ("[loop]\nagent = \"codex\"", args, Some("claude"), None),
    ];
    for (user, project, typed, expected) in table {
        let found = layers(user, project, typed);
        assert_eq!(found.as_deref(), expected, "{user} {project} {typed:?}");
    }
}

#[test]
fn a_bad_value_of_a_run_names_line_key_and_fix() {
    assert_snapshot!(told(&[
        "[loop]\ntimeout = 90",
        "[loop]\nmax_turns = \"50\"",
        "[loop]\ncommit = \"yes\"",
        "[loop]\nrebase = true",
        "[loop]\nrebase = \"--exec=x\"",
        "[loop]\npermissions = \"bypas\"",
        "[loop]\nprotect = \"tests\"",
        "[loop]\nprotect = [\"../other\"]",
        "[loop]\nprotect = [\"a[\"]",
        "[loop]\ncompletion_promise = true",
        "[keep]\nlogs = 2",
        "[keep]\ndays = -1",
    ]), @r#"
    [loop]
    timeout = 90
      error: crew.toml:2: timeout takes a time with its unit, in quotes, not 90: timeout = "10m"
    [loop]
    max_turns = "50"
      error: crew.toml:2: max_turns takes a whole number without quotes, not "50": max_turns = 50
    [loop]
    commit = "yes"
      error: crew.toml:2: commit takes true or false, not "yes": commit = true
    [loop]
    rebase = true
      error: crew.toml:2: rebase takes a branch in quotes, or false, not true: rebase = "main"
    [loop]
    rebase = "--exec=x"
      error: crew.toml:2: rebase takes a branch in quotes, or false, not "--exec=x": rebase = "main"
    [loop]
    permissions = "bypas"
      error: crew.toml:2: permissions takes default, accept-edits, auto or bypass, not "bypas": permissions = "bypass"
    [loop]
    protect = "tests"
      error: crew.toml:2: protect takes a list of paths, not "tests": protect = ["Cargo.lock", "tests/**"]
    [loop]
    protect = ["../other"]
      error: crew.toml:2: protect takes paths from the root of the checkout, not "../other": protect = ["Cargo.lock", "tests/**"]
    [loop]
    protect = ["a["]
      error: crew.toml:2: protect takes a glob (unclosed character class; missing ']'), not "a[": protect = ["Cargo.lock", "tests/**"]
    [loop]
    completion_promise = true
      error: crew.toml:2: completion_promise takes a text in quotes, not true: completion_promise = "ALL DONE"
    [keep]
    logs = 2
      error: crew.toml:2: logs takes a size with its unit, such as 500MiB or 2GiB, not 2: logs = "2GiB"
    [keep]
    days = -1
      error: crew.toml:2: days takes a whole number from 0 (no limit) to 4294967295, not -1: days = 90
    "#);
}

#[test]
fn a_bad_agent_procedure_or_reaction_names_line_key_and_fix() {
    assert_snapshot!(told(&[
        "[loop]\nargs = \"--model opus\"",
        "[agents]\nmine = \"my-agent\"",
        "[agents.mine]\ncommand = \"my-agent -p\"",
        "[agents.mine]\ncommand = []",
        "[agents.mine]\nprompt = \"arg\"",
        "[agents.mine]\noutput = \"json\"",
        "[agents.mine]\npermissions = \"bypass\"",
        "[procedures]\nnightly = \"look.md\"",
        "[procedures.\"a b\"]\nact = \"x\"",
        "[procedures.nightly]\nobserve = 5",
        "[procedures.nightly]\nact = \"~/act.md\"",
        "[procedures.nightly]\nmax_iterations = \"3\"",
        "[on]\nfinish = 5",
        "[on]\nfinish = { timeout = \"5s\" }",
        "[on]\nfinish = { run = \"x\", timeout = 0 }",
    ]), @r#"
    [loop]
    args = "--model opus"
      error: crew.toml:2: args takes a list of words, each in quotes, not "--model opus": args = ["--effort", "high"]
    [agents]
    mine = "my-agent"
      error: crew.toml:2: agents.mine is a table: write its keys under a line [agents.mine]
    [agents.mine]
    command = "my-agent -p"
      error: crew.toml:2: command takes a list of words, each in quotes, not "my-agent -p": command = ["claude", "-p"]
    [agents.mine]
    command = []
      error: crew.toml:2: command takes a list that begins with a program, not []: command = ["claude", "-p"]
    [agents.mine]
    prompt = "arg"
      error: crew.toml:2: prompt takes stdin or argument, not "arg": prompt = "argument"
    [agents.mine]
    output = "json"
      error: crew.toml:2: output takes text, claude or codex, not "json": output = "text"
    [agents.mine]
    permissions = "bypass"
      error: crew.toml:2: permissions takes a table, not "bypass": permissions = { bypass = ["--yolo"] }
    [procedures]
    nightly = "look.md"
      error: crew.toml:2: procedures.nightly is a table: write its keys under a line [procedures.nightly]
    [procedures."a b"]
    act = "x"
      error: crew.toml:1: the name of a procedure is one word: [procedures.nightly]
    [procedures.nightly]
    observe = 5
      error: crew.toml:2: observe takes a text in quotes, not 5: observe = "prompts/look.md"
    [procedures.nightly]
    act = "~/act.md"
      error: crew.toml:2: act takes a path without ~, not "~/act.md": act = "prompts/look.md"
    [procedures.nightly]
    max_iterations = "3"
      error: crew.toml:2: max_iterations takes a whole number without quotes, not "3": max_iterations = 15
    [on]
    finish = 5
      error: crew.toml:2: finish takes a command in quotes, not 5: finish = "notify-send done"
    [on]
    finish = { timeout = "5s" }
      error: crew.toml:2: finish has no command: run = "notify-send done"
    [on]
    finish = { run = "x", timeout = 0 }
      error: crew.toml:2: timeout takes a time of at least a second, not 0: timeout = "10m"
    "#);
}

#[test]
fn an_unknown_key_of_a_run_is_a_warning_with_a_guess() {
    assert_snapshot!(told(&[
        "[loop]\nidle-timeout = \"5m\"",
        "[loop]\nagen = \"codex\"",
        "max_turns = 5",
        "[agents.mine]\ncommand = [\"a\"]\npermissions.accept_edits = [\"-e\"]",
        "[procedures.nightly]\nobserv = \"x\"",
        "[procedures.nightly]\nmax_iteration = 5",
        "[on]\nfinished = \"x\"",
        "[on]\nfinish = { run = \"x\", time = \"5s\" }",
        "[procedure.nightly]\nact = \"x\"",
        "commit = true",
    ]), @r#"
    [loop]
    idle-timeout = "5m"
      warning: crew.toml:2: unknown key `idle-timeout` in [loop]: did you mean `idle_timeout`?
    [loop]
    agen = "codex"
      warning: crew.toml:2: unknown key `agen` in [loop]: did you mean `agent`?
    max_turns = 5
      warning: crew.toml:1: unknown key `max_turns`: it belongs under [loop]
    [agents.mine]
    command = ["a"]
    permissions.accept_edits = ["-e"]
      warning: crew.toml:3: unknown key `accept_edits` in [agents.mine.permissions]: did you mean `accept-edits`?
    [procedures.nightly]
    observ = "x"
      warning: crew.toml:2: unknown key `observ` in [procedures.nightly]: did you mean `observe`?
    [procedures.nightly]
    max_iteration = 5
      warning: crew.toml:2: unknown key `max_iteration` in [procedures.nightly]: did you mean `max_iterations`?
    [on]
    finished = "x"
      warning: crew.toml:2: unknown key `finished` in [on]: did you mean `finish`?
    [on]
    finish = { run = "x", time = "5s" }
      warning: crew.toml:2: unknown key `time` in [on] finish: did you mean `timeout`?
    [procedure.nightly]
    act = "x"
      warning: crew.toml:1: unknown key `procedure`: did you mean `procedures`?
    commit = true
      warning: crew.toml:1: unknown key `commit`: it belongs under [loop]
    "#);
}

#[test]
fn a_projects_file_stays_in_its_checkout_and_keeps_off_the_logs() {
    assert_snapshot!(told_of(
        &[
            "[procedures.nightly]\nact = \"../../act.md\"",
            "[procedures.nightly]\nact = \"/etc/motd\"",
            "[keep]\nlogs = \"1MiB\"\ndays = 1",
        ],
        "/repo/.claude/crew.toml",
        Whose::Projects,
    ), @r#"
    [procedures.nightly]
    act = "../../act.md"
      error: /repo/.claude/crew.toml:2: act takes a file of this checkout, not "../../act.md": act = "prompts/look.md"
    [procedures.nightly]
    act = "/etc/motd"
      error: /repo/.claude/crew.toml:2: act takes a file of this checkout, not "/etc/motd": act = "prompts/look.md"
    [keep]
    logs = "1MiB"
    days = 1
      warning: /repo/.claude/crew.toml:2: [keep] counts only in your own settings file; ignored here
    "#);
    let read = |text| parsed(text, "/repo/.claude/crew.toml", Whose::Projects);
    assert!(read("[keep]\ndays = 1").unwrap().layer.is_empty());
    let inside = read("[procedures.nightly]\nact = \"../act.md\"").unwrap();
    assert_eq!(inside.warnings, [""; 0]);
}

#[test]
fn what_names_a_program_or_goes_further_than_the_users_own_needs_trust_and_a_prompt_none() {
    let project = WHOLE.replace("gate", "permissions = \"bypass\"\ndelay = \"1s\"\ngate");
    let told = |user: &str| {
        let user = parsed(user, "config.toml", Whose::Users).unwrap().layer;
        let project = parsed(&project, "/repo/.claude/crew.toml", Whose::Projects).unwrap().layer;
        let needs = needs(&project, &user, "claude");
        let needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
        needs.join("\n")
    };
    assert_snapshot!(told(""), @r#"
    [loop] idle_timeout = 0
    [loop] agent = "mine"
    [loop] permissions = "auto"
    [loop] commit = true
    [loop] rebase = "main"
    [loop] args = ["--model", "a b"]
    [agents.mine] like = "codex", prompt = "argument", output = "text", permissions.accept-edits = ["--edit"], permissions.bypass = [], max_turns = "--turns", args = ["-x"], command = ["my agent", "-p"]
    on wait (within 60s): tell
    on finish (within 60s): one
    on finish (within 300s): two
    [procedures.nightly] agent = "codex"
    [procedures.nightly] permissions = "bypass"
    gate (within 600s, passes with 0): make lint
    [procedures.nightly] completion_promise = false
    "#);
    let user = "[loop]\nidle_timeout = 0\nmax_turns = 0\ncommit = true\nrebase = \"main\"\n\
        permissions = \"bypass\"\ndelay = \"2m\"\nagent = \"codex\"\n\
        [procedures.nightly]\ndelay = \"1s\"";
    assert_snapshot!(told(user), @r#"
    [loop] delay = "1m 30s"
    [loop] agent = "mine"
    [loop] args = ["--model", "a b"]
    [agents.mine] like = "codex", prompt = "argument", output = "text", permissions.accept-edits = ["--edit"], permissions.bypass = [], max_turns = "--turns", args = ["-x"], command = ["my agent", "-p"]
    on wait (within 60s): tell
    on finish (within 60s): one
    on finish (within 300s): two
    gate (within 600s, passes with 0): make lint
    [procedures.nightly] completion_promise = false
    "#);
}

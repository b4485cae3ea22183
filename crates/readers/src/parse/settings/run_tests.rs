//! The settings of a file for a run of fresh processes: the keys other than limits and checks.

use insta::assert_snapshot;

use super::merge::{Layers, merge_layers};
use super::tests::{parsed, render_results, render_results_of};
use super::trust::list_trust_requests;
use super::*;

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
    let read = parsed(WHOLE, "/home/crew/config.toml", SettingsOwner::Users).unwrap();
    assert_eq!(read.warnings, [""; 0]);
    let layers = Layers { user: read.layer, ..Layers::default() };
    let settings = merge_layers(&layers, Some("nightly")).unwrap();
    let keep = settings.log_retention();
    let reactions: Vec<String> = settings
        .layer()
        .reactions
        .iter()
        .map(|Sourced { value: it, .. }| {
            format!("{} {:?} {}s", it.on.label(), it.run, it.timeout_s)
        })
        .collect();
    let mut file = settings.options().file_process.clone();
    file.args.push("(last)".to_owned());
    let protect: Vec<&str> = settings.layer().protect.iter().map(|glob| &*glob.value).collect();
    assert_snapshot!(format!(
        "{}{}{protect:?}\n{}\n{:?}\n{:?} {:?}\n{} bytes, {} days\n{reactions:?}",
        toml::to_string(&settings.options().process).unwrap(),
        toml::to_string(&file).unwrap(),
        settings.layer().agents["mine"].value,
        *settings.recipe(),
        settings.layer().value("completion-promise"),
        settings.checks().iter().map(|check| &check.run).collect::<Vec<_>>(),
        *keep.bytes(),
        *keep.days(),
    ), @r#"
    agent = "codex"
    permissions = "auto"
    timeout = "45m"
    idle-timeout = "0"
    delay = "1m 30s"
    commit = true
    rebase = "main"
    args = ["(last)"]
    max-turns = 50
    token-budget = "80k"
    redline = "80%"
    awake = true
    ["tests/**", "Cargo.lock"]
    { args = ["-x"], command = ["my agent", "-p"], like = "codex", max-turns = "--turns", output = "text", permissions = { accept-edits = ["--edit"], bypass = [] }, prompt = "argument" }
    Recipe({Context: [BuiltIn("about")], Observe: [File("/home/crew/look.md"), Text("Read the log\nof today")], Act: [File("/home/ACT.j2")]})
    Some(Boolean(false)) ["make lint"]
    524288000 bytes, 0 days
    ["wait \"tell\" 60s", "finish \"one\" 60s", "finish \"two\" 300s"]
    "#);
}

#[test]
fn arguments_are_given_only_to_their_own_agent() {
    let layers = |user: &str, project: &str, typed: Option<&str>| {
        let read = |text: &str| parsed(text, "crew.toml", SettingsOwner::Users).unwrap().layer;
        let mut layers = Layers { user: read(user), project: read(project), ..Layers::default() };
        let typed = typed.map(|name| format!("[loop]\nagent = {name:?}"));
        layers.typed = typed.map_or_else(Layer::default, |text| read(&text));
        let settings = merge_layers(&layers, None).unwrap();
        settings.layer().value("args").map(|_| settings.options().file_process.args.join(" "))
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
    assert_snapshot!(render_results(&[
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
        "[loop]\nrequire = \"claimed\"",
    ]), @r#"
    [loop]
    timeout = 90
      error: crew.toml:2: timeout = 90: expected a time with its unit, such as 90m, 12h or "1h 30m"
    [loop]
    max_turns = "50"
      warning: 
    [loop]
    commit = "yes"
      error: crew.toml:2: commit = "yes": expected true or false
    [loop]
    rebase = true
      error: crew.toml:2: rebase = true: expected a string in quotes, or false
    [loop]
    rebase = "--exec=x"
      error: crew.toml:2: rebase = "--exec=x": expected a string that is not blank and not an option
    [loop]
    permissions = "bypas"
      error: crew.toml:2: permissions = "bypas": expected one of `default`, `accept-edits`, `auto`, `bypass`
    [loop]
    protect = "tests"
      warning: 
    [loop]
    protect = ["../other"]
      error: crew.toml:2: protect = ["../other"]: expected paths from the root of the checkout
    [loop]
    protect = ["a["]
      error: crew.toml:2: protect = ["a["]: expected a glob (unclosed character class; missing ']')
    [loop]
    completion_promise = true
      error: crew.toml:2: completion_promise = true: expected a string in quotes, or false
    [keep]
    logs = 2
      error: crew.toml:2: logs = 2: expected a size with its unit, such as 500MiB or 2GiB
    [keep]
    days = -1
      error: crew.toml:2: days = -1: expected a whole number, such as 15
    [loop]
    require = "claimed"
      error: crew.toml:2: require = "claimed": expected checked or proven
    "#);
}

#[test]
fn a_bad_agent_procedure_or_reaction_names_line_key_and_fix() {
    assert_snapshot!(render_results(&[
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
      error: crew.toml:2: args = "--model opus": expected a string that is not blank and not an option
    [agents]
    mine = "my-agent"
      error: crew.toml:2: agents.mine is a table: write its keys under a line [agents.mine]
    [agents.mine]
    command = "my-agent -p"
      error: crew.toml:2: command = "my-agent -p": expected a list, such as ["a", "b"]
    [agents.mine]
    command = []
      error: crew.toml:1: agents.mine: command is a list that begins with a program: ["claude", "-p"]
    [agents.mine]
    prompt = "arg"
      error: crew.toml:2: prompt = "arg": expected `stdin` or `argument`
    [agents.mine]
    output = "json"
      error: crew.toml:1: agents.mine: output is one of text, claude, codex
    [agents.mine]
    permissions = "bypass"
      error: crew.toml:2: permissions = "bypass": expected a table, such as { a = "b" }
    [procedures]
    nightly = "look.md"
      error: crew.toml:2: procedures.nightly is a table: write its keys under a line [procedures.nightly]
    [procedures."a b"]
    act = "x"
      error: crew.toml:1: the name of a procedure is one word: [procedures.nightly]
    [procedures.nightly]
    observe = 5
      error: crew.toml:2: observe = 5: expected a string or a list of strings, not 5
    [procedures.nightly]
    act = "~/act.md"
      error: crew.toml:2: act = "~/act.md": expected a path without ~
    [procedures.nightly]
    max_iterations = "3"
      warning: 
    [on]
    finish = 5
      error: crew.toml:2: finish = 5: expected a string
    [on]
    finish = { timeout = "5s" }
      error: crew.toml:2: finish = { timeout = "5s" }: missing field `run`
    [on]
    finish = { run = "x", timeout = 0 }
      error: crew.toml:2: finish = { run = "x", timeout = 0 }: expected a timeout of at least a second
    "#);
}

#[test]
fn an_unknown_key_of_a_run_is_a_warning_with_a_guess() {
    assert_snapshot!(render_results(&[
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
      warning: 
    [loop]
    agen = "codex"
      warning: crew.toml:2: unknown key `agen` in [loop]: did you mean `agent`?
    max_turns = 5
      warning: crew.toml:1: unknown key `max_turns`: it belongs under [loop]
    [agents.mine]
    command = ["a"]
    permissions.accept_edits = ["-e"]
      error: crew.toml:3: permissions.accept_edits = ["-e"]: expected one of `default`, `accept-edits`, `auto`, `bypass`
    [procedures.nightly]
    observ = "x"
      warning: crew.toml:2: unknown key `observ` in [procedures.nightly]: did you mean `observe`?
    [procedures.nightly]
    max_iteration = 5
      warning: crew.toml:2: unknown key `max_iteration` in [procedures.nightly]: did you mean `max-iterations`?
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
fn a_projects_file_may_name_only_files_of_its_checkout_and_not_the_logs() {
    assert_snapshot!(render_results_of(
        &[
            "[procedures.nightly]\nact = \"../../act.md\"",
            "[procedures.nightly]\nact = \"/etc/motd\"",
            "[keep]\nlogs = \"1MiB\"\ndays = 1",
            "[executor.k8s]\nsubmit = \"id\"",
        ],
        "/repo/.claude/crew.toml",
        SettingsOwner::Projects,
    ), @r#"
    [procedures.nightly]
    act = "../../act.md"
      error: /repo/.claude/crew.toml:2: act = "../../act.md": expected a file of this checkout
    [procedures.nightly]
    act = "/etc/motd"
      error: /repo/.claude/crew.toml:2: act = "/etc/motd": expected a file of this checkout
    [keep]
    logs = "1MiB"
    days = 1
      warning: /repo/.claude/crew.toml:2: [keep] counts only in your own settings file; ignored here
    [executor.k8s]
    submit = "id"
      warning: /repo/.claude/crew.toml:1: [executor] counts only in your own settings file; ignored here
    "#);
    let read = |text| parsed(text, "/repo/.claude/crew.toml", SettingsOwner::Projects);
    let executor =
        "[executor.k8s]\nsubmit = \"x {script}\"\nstatus = \"x {job}\"\ncancel = \"x {job}\"";
    assert_eq!(read(executor).unwrap().layer, Layer::default());
    assert_eq!(read("[keep]\ndays = 1").unwrap().layer, Layer::default());
    let inside = read("[procedures.nightly]\nact = \"../act.md\"").unwrap();
    assert_eq!(inside.warnings, [""; 0]);
}

#[test]
fn settings_that_run_a_program_or_exceed_the_users_own_need_trust_and_prompts_do_not() {
    let project = WHOLE.replace("gate", "permissions = \"bypass\"\ndelay = \"1s\"\ngate");
    let render = |user: &str| {
        let user = parsed(user, "config.toml", SettingsOwner::Users).unwrap().layer;
        let project =
            parsed(&project, "/repo/.claude/crew.toml", SettingsOwner::Projects).unwrap().layer;
        let needs = list_trust_requests(&project, &user);
        let needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
        needs.join("\n")
    };
    assert_snapshot!(render(""), @r#"
    [loop] idle-timeout = 0
    [loop] agent = "mine"
    [loop] args = ["--model", "a b"]
    [loop] permissions = "auto"
    [loop] commit = true
    [loop] rebase = "main"
    [agents.mine] { args = ["-x"], command = ["my agent", "-p"], like = "codex", max-turns = "--turns", output = "text", permissions = { accept-edits = ["--edit"], bypass = [] }, prompt = "argument" }
    on wait (within 60s): tell
    on finish (within 60s): one
    on finish (within 300s): two
    [procedures.nightly] completion-promise = false
    [procedures.nightly] agent = "codex"
    [procedures.nightly] permissions = "bypass"
    gate (within 600s, passes with 0): make lint
    "#);
    let user = "[loop]\nidle_timeout = 0\nmax_turns = 0\ncommit = true\nrebase = \"main\"\n\
        permissions = \"bypass\"\ndelay = \"2m\"\nagent = \"codex\"\n\
        [procedures.nightly]\ndelay = \"1s\"";
    assert_snapshot!(render(user), @r#"
    [loop] delay = "1m 30s"
    [loop] agent = "mine"
    [loop] args = ["--model", "a b"]
    [agents.mine] { args = ["-x"], command = ["my agent", "-p"], like = "codex", max-turns = "--turns", output = "text", permissions = { accept-edits = ["--edit"], bypass = [] }, prompt = "argument" }
    on wait (within 60s): tell
    on finish (within 60s): one
    on finish (within 300s): two
    [procedures.nightly] completion-promise = false
    gate (within 600s, passes with 0): make lint
    "#);
}

#[test]
fn an_executor_has_three_commands_each_with_its_own_placeholders() {
    let of = |name: &str, submit: &str, status: &str| {
        format!(
            "[executor.{name}]\nsubmit = \"{submit}\"\nstatus = \"{status}\"\n\
             cancel = \"qdel {{job}}\""
        )
    };
    let users = |text: &str| parsed(text, "config.toml", SettingsOwner::Users);
    let found = users(&of("pbs", "qsub -N {name} {script}", "qstat {job}")).unwrap();
    let entry = &found.layer.executors["pbs"].value;
    let commands = [&entry.submit, &entry.status, &entry.cancel];
    assert_eq!(commands, ["qsub -N {name} {script}", "qstat {job}", "qdel {job}"]);
    let texts = [
        of("pbs", "qsub {skript}", "qstat {script}"),
        of("pbs", "qsub", "qstat '{job}'"),
        of("slurm", "qsub {script}", "qstat {job}"),
        of("local", "qsub {script}", "qstat {job}"),
        "[executor]\nsubmit = \"x\"".to_owned(),
        "[executor.pbs]\nsubmit = \"qsub {script}\"\nlist = \"qstat\"".to_owned(),
    ];
    let faults = texts.iter().map(|text| match users(text) {
        Ok(read) => read.warnings.join("\n"),
        Err(faults) => faults,
    });
    assert_snapshot!(faults.collect::<Vec<_>>().join("\n\n"), @r#"
    config.toml:2: submit = "qsub {skript}": unknown placeholder {skript}: expected {script} and {name}; quote braces of the shell
    config.toml:3: status = "qstat {script}": unknown placeholder {script}: expected {job}; quote braces of the shell

    config.toml:2: submit = "qsub": expected a command with {script} in it
    config.toml:3: status = "qstat '{job}'": remove the quotes around {job}: crew adds its own

    config.toml:1: the name of an executor is one word, and not local or slurm: [executor.k8s]

    config.toml:1: the name of an executor is one word, and not local or slurm: [executor.k8s]

    config.toml:2: executor.submit is a table: write its keys under a line [executor.submit]

    config.toml:1: [executor.pbs]: missing field `status`
    "#);
}

#[test]
fn crew_reads_every_executor_of_the_page() {
    let page = include_str!("../../../../../docs/reference/executors.md");
    let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let names: Vec<String> = blocks
        .flat_map(|text| {
            let found = parsed(text, "config.toml", SettingsOwner::Users).unwrap();
            assert_eq!(found.warnings, [""; 0], "{text}");
            found.layer.executors.into_keys()
        })
        .collect();
    assert_eq!(names, ["pbs", "k8s", "pbs", "actions", "batch", "ssh"]);
}

//! Settings for runs of fresh processes, and for the paths an agent must not change, through the
//! built binary.

use serde_json::{Value, json};

use super::{project, shown, start, user};
use crate::sandbox::Sandbox;

#[test]
fn config_shows_agents_procedures_and_reactions_and_what_needs_trust() {
    let sandbox = Sandbox::new();
    user(
        &sandbox,
        "[keep]\ndays = 30\n[procedures.build]\nact = \"act.md\"\n[loop]\nagent = \"codex\"\n",
    );
    project(
        &sandbox,
        "[loop]\ntimeout = \"2h\"\npush = true\nprotect = [\"tests\"]\n\
         [agents.mine]\nlike = \"claude\"\nargs = [\"--model\", \"opus\"]\n\
         [procedures.nightly]\ndescription = \"Mend what broke\"\nact = \"Mend it\"\n\
         max_iterations = 3\ngate = [\"make lint\"]\n\
         [on]\nfinish = \"notify\"\n[keep]\ndays = 1\n",
    );
    let config = sandbox.crew(&["config"]);
    let ours = |line: &&str| !line.ends_with("built-in");
    let shown = shown(&sandbox, &config);
    let shown: Vec<&str> = shown.lines().filter(ours).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    exit 0
    [loop]
    * timeout                 2h                                        /repo/.claude/crew.toml:2
    * agent                   codex                                     /home/.config/crew/config.toml:6
    * push                    true                                      /repo/.claude/crew.toml:3
    * protect                 tests                                     /repo/.claude/crew.toml:4
    [wait]
    [keep]
    * days                    30                                        /home/.config/crew/config.toml:2
    [on]
    * finish                  notify                                    /repo/.claude/crew.toml:14
    [agents]
    * mine                    { args = ["--model", "opus"], like = "claude" }  /repo/.claude/crew.toml:5
    [procedures]
    * build                   take the next task of the plan, build it whole, run the checks  /home/.config/crew/config.toml:3
    * build.observe           builtin:build/observe                     /home/.config/crew/config.toml:3
    * build.orient            builtin:build/orient                      /home/.config/crew/config.toml:3
    * build.decide            builtin:build/decide                      /home/.config/crew/config.toml:3
    * build.act               /home/.config/crew/act.md  /home/.config/crew/config.toml:3
    * nightly                 Mend what broke                           /repo/.claude/crew.toml:8
    * nightly.act             Mend it                                   /repo/.claude/crew.toml:8
    * nightly.max-iterations  3                                         /repo/.claude/crew.toml:11
    * nightly.gate            make lint                                 /repo/.claude/crew.toml:12

    * is set, the others are built in
    user file: /home/.config/crew/config.toml
    project file: /repo/.claude/crew.toml
    crew: /repo/.claude/crew.toml:16: [keep] counts only in your own settings file; ignored here
    crew: these are not trusted, so no loop starts here:
      /repo/.claude/crew.toml:2: [loop] timeout = "2h"
      /repo/.claude/crew.toml:3: [loop] push = true
      /repo/.claude/crew.toml:5: [agents.mine] { args = ["--model", "opus"], like = "claude" }
      /repo/.claude/crew.toml:14: on finish (within 60s): notify
      /repo/.claude/crew.toml:12: gate (within 600s, passes with 0): make lint
    hint: read them, then run `crew trust`
    "#);
    let reported = sandbox.crew(&["config", "--json"]).success();
    let reported: Value = serde_json::from_str(&reported).unwrap();
    let values = reported["settings"].as_array().unwrap();
    let value = |key: &str| &values.iter().find(|it| it["key"] == key).unwrap()["value"];
    assert_eq!(value("on.finish"), &json!({"run": "notify", "timeout_s": 60}));
    assert_eq!(value("keep.logs"), 2_u64 << 30);
    assert_eq!(value("loop.push"), true);
}

#[test]
fn untrusted_project_settings_start_nothing() {
    let sandbox = Sandbox::new();
    project(&sandbox, "[loop]\ncommit = true\n[on]\nfinish = \"touch x\"\n");
    insta::assert_snapshot!(start(&sandbox, "Build it").replace(&sandbox.root().display().to_string(), ""), @"
    crew: the project's settings need trust, which no person on this machine has given:
      /repo/.claude/crew.toml:2: [loop] commit = true
      /repo/.claude/crew.toml:4: on finish (within 60s): touch x
    hint: read them, then run `crew trust` in a terminal here; `crew run --no-project` starts a loop without them
    ");
    sandbox.crew(&["trust", "--yes"]).success();
    assert!(start(&sandbox, "Build it").starts_with("loop "));
    project(&sandbox, "[loop]\ncommit = true\n[on]\nfinish = \"touch y\"\n");
    let refused = start(&sandbox, "Build it --replace");
    assert!(refused.contains("touch y") && !refused.contains("commit"), "{refused}");
}

#[test]
fn a_claim_with_changed_protected_paths_is_refused_until_they_are_restored() {
    let sandbox = Sandbox::new();
    project(&sandbox, "[loop]\nprotect = [\"tests\"]\n");
    sandbox.write("tests/a", "as it was\n");
    sandbox.write("tests/mine", "not committed yet\n");
    sandbox.git(&["add", "tests/a"]);
    sandbox.git(&["commit", "--quiet", "--message", "Add a test"]);
    start(&sandbox, "\"Build it\" --stall 0");
    let claim = |words: &str| {
        let message = format!("{words}\n\n<promise>COMPLETE</promise>");
        sandbox
            .hook(json!({"hook_event_name": "Stop", "last_assistant_message": message}))
            .success()
    };
    sandbox.write("tests/a", "easier\n");
    sandbox.git(&["commit", "--quiet", "--all", "--message", "Make it easier"]);
    sandbox.write("tests/mine", "easier\n");
    sandbox.write("tests/new", "true\n");
    let refused = claim("Done.");
    let named = "protected paths were changed: `tests/a`, `tests/mine`, `tests/new`";
    assert!(refused.contains(named), "{refused}");
    sandbox.write("tests/a", "as it was\n");
    sandbox.write("tests/mine", "not committed yet\n");
    std::fs::remove_file(sandbox.file("tests/new")).unwrap();
    let believed = claim("Done again.");
    assert!(believed.contains("completed"), "{believed}");
}

#[test]
fn every_key_that_init_explains_exists_and_has_a_valid_value() {
    let sandbox = Sandbox::new();
    sandbox.crew(&["init"]).success();
    let file = sandbox.file(".claude/crew.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let is_key = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let is_setting = |line: &str| {
        line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| is_key(key))
    };
    let lines = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(line) if is_setting(line) => line,
        _ => line,
    });
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let config = sandbox.crew(&["config"]);
    for shown in ["* nightly.observe", "[on]\n* finish", "[agents]\n* mine", "* args"] {
        assert!(config.stdout.contains(shown), "{config:?}");
    }
    assert!(!config.stderr.contains("unknown key"), "{config:?}");
}

#[test]
fn init_finds_the_tests_of_a_project_without_any_file_that_names_them() {
    let sandbox = Sandbox::new();
    let case = "import unittest\n\n\nclass Todo(unittest.TestCase):\n    pass\n";
    sandbox.write("tests/test_todo.py", case);
    let run = "`python3 -m unittest discover -s tests`";
    let reported = sandbox.crew(&["init"]).success();
    assert!(reported.contains(&format!("a claim must pass {run}; trusted")), "{reported}");
}

#[test]
fn each_key_that_init_explains_belongs_under_the_header_above_it() {
    let sandbox = Sandbox::new();
    sandbox.write("Cargo.toml", "");
    sandbox.crew(&["init"]).success();
    let file = sandbox.file(".claude/crew.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\n[[check]]\n"), "{text}");
    let mut is_read = false;
    let lines = text.lines().map(|line| {
        if line.trim_start_matches("# ").starts_with('[') {
            is_read = line.starts_with('[');
        }
        let key = line.strip_prefix("# ").filter(|line| line.contains(" = ") && is_read);
        key.filter(|line| line.as_bytes()[0].is_ascii_lowercase()).unwrap_or(line)
    });
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let config = sandbox.crew(&["config"]);
    assert!(
        config.stdout.contains("* model") && config.stdout.contains("[on]\n* finish"),
        "{config:?}"
    );
    assert!(!config.stderr.contains("unknown key"), "{config:?}");
    assert!(config.stderr.contains("[loop] model = "), "the table where it stands: {config:?}");
}

/// The prompt and the output of a fake agent that runs `script` after it has read its prompt.
fn agent(sandbox: &Sandbox, script: &str) {
    sandbox.program("fake", &format!("cat > \"$HOME/prompt\"\n{script}"));
    let file = "[loop]\nagent = \"fake\"\n[agents.fake]\ncommand = [\"fake\", \"--old\"]\n";
    user(sandbox, file);
}

#[test]
fn a_projects_procedure_and_agent_run_only_when_trusted_by_a_person_or_in_a_pipeline() {
    let text = "[loop]\nagent = \"quick\"\nargs = [\"--b\"]\n\
        [agents.quick]\nlike = \"fake\"\nargs = [\"--a\"]\n\
        [procedures.nightly]\nobserve = \"prompts/look.md\"\nact = \"Mend it\"\n\
        completion_promise = false\nmax_iterations = 2\n";
    let world = |sandbox: Sandbox| {
        agent(&sandbox, "echo \"$@\" >> \"$HOME/calls\"; echo working");
        project(&sandbox, text);
        sandbox.write(".claude/prompts/look.md", "Read the log of today.\n");
        sandbox
    };
    let careful = world(Sandbox::new());
    let refused = careful.crew(&["run", "nightly"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr.contains("which no person on this machine has given"), "{refused:?}");
    assert!(!careful.home().join("calls").exists());
    let pipeline = world(Sandbox::new().env("CREW_TRUST", "1"));
    let ran = pipeline.crew(&["run", "nightly"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let read = |name: &str| std::fs::read_to_string(pipeline.home().join(name)).unwrap();
    assert_eq!(read("calls"), "--old --a --b\n--old --a --b\n");
    let prompt = read("prompt");
    assert!(prompt.contains("Read the log of today.") && prompt.contains("Mend it"), "{prompt}");
}

#[test]
fn a_prompt_that_leads_out_of_the_checkout_by_a_link_is_refused() {
    let sandbox = Sandbox::new();
    agent(&sandbox, "echo working");
    project(&sandbox, "[procedures.nightly]\nact = \"act.md\"\n");
    std::fs::write(sandbox.home().join("secret"), "a secret\n").unwrap();
    let link = sandbox.file(".claude/act.md");
    std::os::unix::fs::symlink(sandbox.home().join("secret"), link).unwrap();
    insta::assert_snapshot!(shown(&sandbox, &sandbox.crew(&["run", "nightly"])), @"
    exit 1
    crew: /repo/.claude/act.md leads out of the checkout, to /home/secret
    hint: put the text there, or name the file in your own settings
    ");
}

#[test]
fn an_agent_that_changes_its_checks_reads_which_paths_to_restore() {
    let sandbox = Sandbox::new();
    agent(&sandbox, "echo true > tests/a; echo '<promise>COMPLETE</promise>'");
    user(
        &sandbox,
        "[loop]\nagent = \"fake\"\nprotect = [\"tests\"]\n[agents.fake]\ncommand = [\"fake\"]\n",
    );
    sandbox.write("tests/a", "false\n");
    sandbox.git(&["add", "tests/a"]);
    sandbox.git(&["commit", "--quiet", "--message", "Add a test"]);
    let ran = sandbox.crew(&["run", "Make it pass", "-n", "2", "--verify", "sh tests/a"]);
    assert_eq!(ran.code(), 10, "{ran:?}");
    let prompt = std::fs::read_to_string(sandbox.home().join("prompt")).unwrap();
    assert!(prompt.contains("protected paths were changed: `tests/a`"), "{prompt}");
}

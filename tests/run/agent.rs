//! The user's settings for the agent itself: its model, its own options, the commands it may run.

use serde_json::json;

use super::{CLAIM, WORK, World};

/// A step that notes the agent's arguments, one per line.
const NOTE: &str = "printf '%s\\n' \"$@\" > \"$notes/arguments.$call\"; echo Noted.";
/// An agent that accepts a model and permissions.
const OWN: &str =
    "agents.fake.model = \"--model\"\nagents.fake.permissions.accept-edits = [\"--edits\"]\n";

fn arguments(world: &World, call: usize) -> String {
    std::fs::read_to_string(world.note(&format!("arguments.{call}"))).unwrap()
}

#[test]
fn a_model_and_extra_arguments_reach_the_agent_in_every_iteration_and_after_a_resume() {
    let world = World::new(&[NOTE]);
    world.settings(OWN);
    let words =
        ["run", "Build it", "-n2", "--stall", "0", "--model", "big", "--", "--effort", "very high"];
    assert_eq!(world.crew(&words).code(), 10);
    let expected = "--edits\n--model\nbig\n--effort\nvery high\n";
    assert_eq!([1, 2].map(|call| arguments(&world, call)), [expected, expected]);
    let reported = world.the_loop();
    assert_eq!(
        (&reported["model"], &reported["agent_words"]),
        (&json!("big"), &json!(["--effort", "very high"]))
    );

    assert_eq!(world.crew(&["resume", "-n", "+1"]).code(), 10);
    assert_eq!(arguments(&world, 3), expected);
    assert_eq!(world.crew(&["resume", "-n", "+1", "--model", "small", "--", "-x"]).code(), 10);
    assert_eq!(arguments(&world, 4), "--edits\n--model\nsmall\n-x\n");
    assert_eq!(world.crew(&["resume", "-n", "+1", "--"]).code(), 10);
    assert_eq!(arguments(&world, 5), "--edits\n--model\nsmall\n");
    assert!(world.prompt(1).contains("## TASK\n\nBuild it\n\n"));
}

#[test]
fn a_dry_run_shows_the_model_and_the_arguments_and_an_unsupported_model_starts_nothing() {
    let world = World::new(&[WORK]);
    world.settings(OWN);
    let shown =
        world.crew(&["run", "Build it", "--dry-run", "--model=big", "--", "--effort", "very high"]);
    let line = "Would execute with: agent --edits --model big --effort 'very high'\n";
    assert!(shown.stdout.contains(line), "{shown:#?}");

    let refused = world.crew(&["run", "Build it", "--agent-cmd", "agent -q", "--model", "big"]);
    assert_eq!(refused.code(), 2, "{refused:#?}");
    let why = "agent agent does not accept --model\nhint: give it its own option after `--`, as in -- --model big";
    assert!(refused.stderr.contains(why), "{refused:#?}");
    assert_eq!((world.calls(), world.loops().len()), (0, 0));
}

#[test]
fn a_model_in_the_settings_applies_to_its_agent_and_one_of_a_project_needs_trust() {
    let world = World::new(&[NOTE, CLAIM]);
    world.settings(&format!("{OWN}loop.model = \"large\"\n"));
    assert!(world.crew(&["config"]).success().contains("* model"));
    assert_eq!(world.crew(&["run", "Build it"]).code(), 0);
    assert_eq!(arguments(&world, 1), "--edits\n--model\nlarge\n");

    world.steps(&[NOTE, CLAIM]);
    assert_eq!(world.crew(&["run", "Build it", "--agent-cmd", "agent -q"]).code(), 0);
    assert_eq!(arguments(&world, 3), "-q\n", "a typed command is not the settings' agent");

    world.sandbox.write(".claude/crew.toml", "[loop]\nmodel = \"huge\"\n");
    let refused = world.crew(&["run", "Build it"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr.contains("[loop] model = \"huge\""), "{refused:#?}");
}

#[test]
fn a_check_that_no_permission_rule_can_name_is_reported_at_the_start() {
    let world = World::new(&[CLAIM]);
    world.settings(
        "agents.fast = { like = \"claude\", command = [\"agent\"], output = \"text\" }\n",
    );
    let ran = world
        .crew(&["run", "Build it", "--agent", "fast", "--gate", "ls -d *", "--verify", "true"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let reported = "fast may not run `ls -d *` unless its own settings allow it";
    assert!(
        ran.stderr.contains(reported) && !ran.stderr.contains("may not run `true`"),
        "{ran:#?}"
    );

    world.steps(&[WORK, CLAIM]);
    assert_eq!(world.crew(&["run", "Build it", "--gate", "ls -d *", "-n1"]).code(), 10);
    world.sandbox.write(".claude/crew.toml", "[loop]\nstall = 4\n");
    let ran = world.crew(&["resume", "-n", "+1", "--agent", "fast"]);
    assert!(
        ran.stderr.contains(reported) && ran.stderr.contains("; crew config shows them"),
        "{ran:#?}"
    );
}

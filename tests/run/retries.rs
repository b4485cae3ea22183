//! An agent that tries the model's service again and again is ended, and crew waits without it.
//! Also the variables that make an agent report its actions, and the file in which it leaves its
//! usage.

use serde_json::json;

use super::World;
use crate::sandbox::poll_until;
use crate::spawned::Running;

/// A world whose agent prints events of this dialect.
fn of(dialect: &str, steps: &[&str]) -> World {
    let world = World::new(steps);
    world.settings(&format!("agents.fake.output = \"{dialect}\"\n"));
    world
}

/// Starts a run and returns it when it waits.
#[track_caller]
fn waiting(world: &World) -> Running {
    let running = world.sandbox.start_crew(&["run", "Do it", "--max-duration", "2h"]);
    poll_until("the wait", || running.stdout().contains("Waiting until"));
    running
}

#[test]
fn an_agent_that_sleeps_for_an_hour_at_a_limit_is_ended_at_once() {
    let log = "level=ERROR message=\"stream error\" small=false error.error=\"AI_APICallError: \
               Rate limit reached. Try again in 1h.\"";
    let agents = [
        ("opencode", format!("echo '{log}' >&2")),
        ("gemini", "echo 'Attempt 1 failed: Rate limit reached. Retrying after 3600000ms...' >&2".to_owned()),
        ("qwen", "echo '[qwen-code] Waiting for API capacity... attempt 1, retry in 3570s' >&2".to_owned()),
        (
            "claude",
            "echo '{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":1,\"retry_delay_ms\":3600000,\
             \"error\":\"rate_limit\",\"error_status\":429}'"
                .to_owned(),
        ),
    ];
    for (dialect, shown) in agents {
        let world = of(dialect, &[&format!("{shown}; sleep 600")]);
        let running = waiting(&world);
        let said = running.stdout();
        assert!(said.contains("then iteration 1 again"), "{dialect}: {said}");
        let state = world.record()["state"].clone();
        let counted =
            (&state["completed"], &state["consecutive_failures"], &state["transient_errors"]);
        assert_eq!(counted, (&json!(0), &json!(0), &json!(1)), "{dialect}: {said}");
        world.crew(&["cancel"]).success();
    }
}

#[test]
fn a_broken_stream_is_an_outage_and_a_full_context_a_refused_request() {
    let step = "echo '{\"type\":\"step_finish\",\"part\":{\"reason\":\"unknown\"}}'";
    let world = of("opencode", &[&format!("{step}; {step}; {step}; sleep 600")]);
    let running = waiting(&world);
    assert!(running.stdout().contains("(the answer was interrupted)"));
    world.crew(&["cancel"]).success();

    let full = "echo '{\"type\":\"error\",\"error\":{\"name\":\"ContextOverflowError\",\
                \"data\":{\"message\":\"Too long.\"}}}'";
    let world = of("opencode", &[&format!("{full}; {full}; {full}; sleep 600")]);
    let ran = world.crew(&["run", "Do it", "-n", "1"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(ran.stdout.contains("the request was refused: Too long."), "{ran:#?}");
}

#[test]
fn an_error_that_only_a_person_can_fix_blocks_the_loop() {
    // API_STATUS
    let shown = "echo '{\"type\":\"turn.failed\",\"error\":{\"message\":\"unexpected status 401 Unauthorized\"}}'";
    let world = of("codex", &[&format!("{shown}; exit 1")]);
    let ran = world.crew(&["run", "Do it"]);
    assert_eq!((ran.code(), world.calls()), (13, 1), "{ran:#?}");
    assert!(!ran.stdout.contains("AI CLI failed"), "{ran:#?}");
    let state = world.record()["state"].clone();
    assert_eq!((&state["completed"], &state["consecutive_failures"]), (&json!(0), &json!(0)));
}

#[test]
fn an_exit_status_of_0_without_the_closing_event_completes_nothing() {
    let claim = "Done.\\\\n<promise>COMPLETE</promise>";
    let agents = [
        (
            "gemini",
            format!("{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"{claim}\"}}"),
        ),
        (
            "copilot",
            format!("{{\"type\":\"assistant.message\",\"data\":{{\"content\":\"{claim}\"}}}}"),
        ),
        ("opencode", format!("{{\"type\":\"text\",\"part\":{{\"text\":\"{claim}\"}}}}")),
        (
            "qwen",
            format!(
                "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{claim}\"}}]}}}}"
            ),
        ),
        (
            "codex",
            format!(
                "{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"{claim}\"}}}}"
            ),
        ),
    ];
    for (dialect, event) in agents {
        let world = of(dialect, &[&format!("echo '{event}'")]);
        let ran = world.crew(&["run", "Do it", "-n", "1"]);
        assert_eq!(ran.code(), 10, "{dialect}: {ran:#?}");
        let said = &ran.stdout;
        assert!(said.contains("the agent ended without its closing event"), "{dialect}: {said}");
    }
}

#[test]
fn an_agent_gets_its_variables_and_its_usage_file_is_counted_once() {
    let used =
        "{\"modelMetrics\":{\"m-1\":{\"usage\":{\"inputTokens\":900,\"outputTokens\":100}}}}";
    let step = format!(
        "echo \"$LEVEL\" > \"$notes/level\"; while test \"$1\" != --used; do shift; done\n\
         echo '{used}' > \"$2\"; echo \"$2\" > \"$notes/path\"; echo '{{\"type\":\"result\",\"exitCode\":0}}'"
    );
    let world = World::new(&[&step]);
    world.settings(
        "agents.fake.output = \"copilot\"\nagents.fake.usage_file = \"--used\"\n\
         agents.fake.environment = { LEVEL = \"low\" }\n",
    );
    let ran = world.crew(&["run", "Do it", "-n", "2", "--stall", "0"]);
    assert_eq!((ran.code(), world.calls()), (10, 2), "{ran:#?}");
    let read = |name: &str| std::fs::read_to_string(world.note(name)).unwrap();
    assert_eq!(read("level"), "low\n");
    assert!(!std::path::Path::new(read("path").trim()).exists(), "it is read once");
    let used = world.record()["state"]["usage"].clone();
    assert_eq!((&used["tokens"]["input"], &used["tokens"]["output"]), (&json!(1800), &json!(200)));
}

use insta::assert_snapshot;

use super::*;
use engine::boundary::facts::ProcessEnd;
use engine::boundary::judge::judge_boundary;
use engine::claim::Claim;
use engine::evidence::Verdict;
use engine::fixture::{SetState, a_page, a_run, at, facts, result};
use engine::journal::story::Story;
use engine::record::{CompletionBasis, Ending, LoopMoment, Proof};

#[test]
fn every_event_names_its_schema_its_loop_and_its_iteration() {
    let record = a_run(Some("build"));
    let mut facts = facts(Claim::Success);
    facts.seen.agent.process = Some(ProcessEnd::Exit(0));
    let mut after = judge_boundary(&record, &facts).after;
    let mut events = Events::default();
    let mut text = String::new();
    let page = a_page(&record, &Story::with_pick(None));
    let mut render = |event: &RunEvent<'_>| {
        text.push_str(&events.render_event(event, at(0).wall).to_string());
        text.push('\n');
    };
    render(&RunEvent::IterationStarted(&record));
    render(&RunEvent::Said("working"));
    render(&RunEvent::CheckStarted("cargo test"));
    render(&RunEvent::ReactionFailed {
        on: LoopMoment::IterationEnd,
        run: "make",
        why: "exited with status 2",
        is_reported: false,
    });
    render(&RunEvent::IterationEnded { after: &after, exit: Some(0), ends: None });
    render(&RunEvent::Committed { commit: "1a2b3c4", branch: Some("main"), subject: "Mend" });
    after
        .state
        .finish(Ending::completed(Proof::Claimed, CompletionBasis::Proof(Proof::Claimed)), 0);
    render(&RunEvent::Finished { record: &after, page: &page, saved: true });
    assert_snapshot!(text, @r#"
    {"at":"2026-11-18T11:06:40.000Z","event":"iteration_start","iteration":1,"loop":"haaaaaaa","phase":"agent","schema":2}
    {"at":"2026-11-18T11:06:40.000Z","event":"agent_line","iteration":1,"loop":"haaaaaaa","phase":"agent","schema":2,"text":"working"}
    {"at":"2026-11-18T11:06:40.000Z","event":"check_start","iteration":1,"loop":"haaaaaaa","phase":"check","run":"cargo test","schema":2}
    {"at":"2026-11-18T11:06:40.000Z","event":"reaction_failed","iteration":1,"loop":"haaaaaaa","on":"iteration_end","phase":"check","run":"make","schema":2,"why":"exited with status 2"}
    {"agent":null,"at":"2026-11-18T11:06:40.000Z","checks":[],"claim":{"is":"accepted"},"consecutive_failures":0,"context_percent":null,"context_tokens":null,"elapsed_ms":60000,"ends":null,"event":"iteration_end","exit":0,"failure":null,"iteration":1,"loop":"haaaaaaa","phase":null,"progress":"made","schema":2,"status":"completed","usage":null}
    {"at":"2026-11-18T11:06:40.000Z","branch":"main","commit":"1a2b3c4","event":"commit","iteration":1,"loop":"haaaaaaa","phase":null,"schema":2,"subject":"Mend"}
    {"active_fallback":null,"agent":"claude","agent_words":[],"asked":[],"at":"2026-11-18T11:06:40.000Z","awake_ms":60000,"branch":"main","checkout":"/repo","checks":[],"commits":[],"completed_iterations":1,"consecutive_failures":0,"dialog":null,"doing":null,"driver":"process","event":"finish","evidence":{"agent":null,"changes":null,"checks":[],"claim":{"is":"accepted"},"context_percent":null,"context_tokens":null,"cut":false,"ended":null,"errors":"","exit":0,"failed_gate":null,"failure":null,"iteration":1,"mended":0,"progress":"made","progress_why":"files changed","said":null,"skipped":null,"started_at":"2026-11-18T11:06:40Z","status":"completed","usage":null,"words":[]},"fallback":[],"folder":"/repo","git":{"branch":null,"commit":false,"push":false,"rebase":null},"git_undone":null,"handoff":null,"id":"haaaaaaa","iteration":1,"iterations_ms":[60000],"iterations_without_progress":0,"last_iteration_at":"2026-11-18T11:07:40Z","limits":{"failure_threshold":3,"max_cost_micros":0,"max_duration_s":43200,"max_iterations":10,"max_tokens":0,"max_wait_s":43200,"stall":5},"loop":"haaaaaaa","model":null,"next":null,"outcome":"completed","owner":{"client":null,"driver":"process","host":null,"process":{"pid":42,"started":"1"},"search_path":null,"session_id":null},"owner_is_gone":false,"page":{"awake_ms":0,"branch":"main","changes":null,"checks":[],"commits":null,"commits_elsewhere":[],"cost":null,"earlier":0,"ended_at":null,"ending":[{"name":"agent","text":"claude, accept-edits · process 42"},{"name":"limits","text":"up to 10 iterations, 12h"},{"name":"folder","text":"/repo"}],"folder":"/repo","handoff":null,"id":"haaaaaaa","ignored_files":{},"iterations":[],"lost_commits":[],"next":{"command":"crew show haaaaaaa --log -f"},"outcome":null,"promise":"COMPLETE","proof":null,"remark":null,"results":[],"resume":"crew resume haaaaaaa","said":null,"started_at":"2026-11-18T11:06:40Z","status":"running","stop":"crew pause haaaaaaa","switched_to":null,"task":"Build the todo API","task_file":"/repo/.claude/branches/main/task.md","then":null,"uncommitted_files":null,"verdict":"running, iteration 1 of 10"},"pausing":false,"pending":[],"permissions":"accept-edits","phase":null,"procedure":"build","promise":"COMPLETE","proof":"claimed","proved_at":null,"require":null,"saved":true,"schema":2,"shares":{},"spread_ms":null,"started_at":"2026-11-18T11:06:40Z","status":"finished","task":"Build the todo API","usage":{"cost_usd":0.0,"cost_usd_at_most":0.0,"is_lower_bound":false,"tokens":{"cache_read":0,"cache_write":0,"cache_write_hour":0,"input":0,"output":0},"total_tokens":0,"unpriced_models":[]},"wait":null,"why":"nothing was checked: this is the agent's word"}
    "#);
}

#[test]
fn a_step_before_the_agent_belongs_to_the_iteration_that_it_begins() {
    let mut record = a_run(None);
    let mut events = Events::default();
    let mut iteration =
        |event: &RunEvent<'_>| events.render_event(event, at(0).wall)["iteration"].clone();
    record.state.set("completed", 3);
    assert_eq!(iteration(&RunEvent::IterationEnded { after: &record, exit: None, ends: None }), 3);
    for (step, of) in [(LoopStep::Commit, 3), (LoopStep::PreHook, 4), (LoopStep::Rebase, 4)] {
        assert_eq!(iteration(&RunEvent::StepStarted(step, "")), of, "{step:?}");
    }
    let why = "`make` failed";
    let failed = RunEvent::ReactionFailed {
        on: LoopMoment::IterationStart,
        run: "make",
        why,
        is_reported: true,
    };
    assert_eq!(iteration(&failed), 4);
}

#[test]
fn the_page_names_every_event() {
    let record = a_run(None);
    let page = a_page(&record, &Story::with_pick(None));
    let result = result("make", Verdict::Passed);
    let all = [
        RunEvent::Started(&record),
        RunEvent::Resumed(&record),
        RunEvent::Noted(""),
        RunEvent::OverBudget { tokens: 2, budget: 1 },
        RunEvent::IterationStarted(&record),
        RunEvent::Skipped { record: &record, why: "" },
        RunEvent::Said(""),
        RunEvent::CheckStarted(""),
        RunEvent::CheckEnded(&result),
        RunEvent::IterationEnded { after: &record, exit: None, ends: None },
        RunEvent::Delayed { record: &record, until: at(0).wall },
        RunEvent::Waiting(&record),
        RunEvent::Paused(&record),
        RunEvent::ReactionFailed { on: LoopMoment::Wait, run: "", why: "", is_reported: false },
        RunEvent::Committed { commit: "", branch: None, subject: "" },
        RunEvent::CommitFailed { why: "" },
        RunEvent::Pushed { branch: "", remote: "" },
        RunEvent::PushFailed { why: "" },
        RunEvent::Rebased { onto: "" },
        RunEvent::Unsaved { why: "" },
        RunEvent::Stopping,
        RunEvent::Finished { record: &record, page: &page, saved: true },
    ];
    let reference = include_str!("../../docs/reference/json.md");
    for event in all {
        let event = Events::default().render_event(&event, at(0).wall);
        let name = event["event"].as_str().unwrap();
        assert!(reference.contains(&format!("\n- `{name}`")), "the page does not name {name}");
    }
}

//! The redline: after an iteration that nearly filled its agent's context, the next process gets
//! the whole handoff page, once, and everybody can see why.

use serde_json::Value;

use super::World;
use super::claude::{answer, filling};
use crate::sandbox::crew;
use crate::spawned::Ran;

const TOLD: &str = "iteration 2 filled 86% of its context: the next prompt has the handoff page";
const WHY: &str = "The last iteration used 86% of its context, so here is the whole page. From ";

/// Works with little context, then with much, then as an agent that does not report its context.
fn world(settings: &str) -> World {
    let step = |step: String| format!("echo $call >> work.txt; {step}");
    let steps = [filling(40, "One."), filling(86, "Two."), answer("Three."), answer("Four.")];
    let steps = steps.map(step);
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    World::claude(&steps, settings)
}

#[track_caller]
fn ran(world: &World, arguments: &[&str]) -> Ran {
    let ran = world.crew(&[&["run", "Do it", "-n", "4"], arguments].concat());
    assert_eq!((ran.code(), world.calls()), (10, 4), "{ran:#?}");
    ran
}

#[test]
fn the_process_after_a_full_context_gets_the_handoff_once_with_the_reason() {
    let world = world("");
    let reported = ran(&world, &[]);
    assert_eq!(reported.stderr.matches(TOLD).count(), 1, "{reported:#?}");
    for (call, has_page) in [(1, false), (2, false), (3, true), (4, false)] {
        let prompt = world.prompt(call);
        let whole = prompt.contains(WHY) && prompt.contains("### What was done\n\n- 1: ");
        assert_eq!((whole, prompt.contains("handoffs/redline-")), (has_page, has_page), "{prompt}");
    }
    // "Two." is in the page, and not repeated beside it.
    assert!(!world.prompt(3).contains("WHAT THE LAST WORKER SAID"), "{}", world.prompt(3));
    let story = world.crew(&["show"]).success();
    assert_eq!(story.matches(&format!("note: {TOLD}")).count(), 1, "{story}");
}

#[test]
fn what_a_person_adds_to_the_handoff_is_in_the_next_prompt() {
    let edit = "for page in .claude/branches/main/handoffs/redline-*.md; do test ! -f $page || \
                sed -i.old 's/Continue with/Mind the gap. &/' $page; done";
    let world = world(&format!("[on]\niteration_start = \"{edit}\"\n"));
    ran(&world, &[]);
    assert!(world.prompt(3).contains("Mind the gap."), "{}", world.prompt(3));
}

#[test]
fn the_text_of_a_handoff_is_delivered_once() {
    let handing_off = format!("{} handoff the parser is next", crew().display());
    let [first, more] = [format!("{handing_off}; {}", filling(86, "One.")), filling(86, "More.")];
    let world = World::claude(&[&first, &more, &more], "");
    assert_eq!(world.crew(&["run", "Do it", "-n", "3", "--stall", "0"]).code(), 10);
    for (call, has_words) in [(2, true), (3, false)] {
        let prompt = world.prompt(call);
        assert!(prompt.contains("handoffs/redline-"), "{prompt}");
        assert_eq!(prompt.contains("the parser is next"), has_words, "{prompt}");
    }
}

#[test]
fn each_iteration_says_how_full_its_context_was_where_its_agent_says_so() {
    let world = world("");
    let reported = ran(&world, &["--json"]);
    let events = reported.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = events.filter(|event| event["event"] == "iteration_end");
    let percents: Vec<Option<u64>> = ends.map(|end| end["context_percent"].as_u64()).collect();
    assert_eq!(percents, [Some(40), Some(86), None, None]);
    let shown = world.crew(&["show"]).success();
    assert!(shown.contains("context 86% full") && !shown.contains("context 0%"), "{shown}");
    assert_eq!(shown.matches("% full").count(), 2, "{shown}");
    let of = |iteration: &str| world.crew(&["show", "--iteration", iteration]).success();
    assert!(of("2").contains("  context 86% full\n"), "{}", of("2"));
    assert!(!of("3").contains("context"), "{}", of("3"));
    let page = world.crew(&["handoff", "the", "rest"]).success();
    let page = std::fs::read_to_string(page.trim().strip_prefix("handoff: ").unwrap()).unwrap();
    assert!(page.contains("context 40% full\n") && page.contains("context 86% full\n"), "{page}");
}

#[test]
fn a_redline_of_the_settings_applies_to_the_loop() {
    let world = world("loop.redline = \"90%\"");
    world.crew(&["run", "Do it", "-n", "1"]);
    assert_eq!(world.record()["contract"]["run"]["redline"], 90);
}

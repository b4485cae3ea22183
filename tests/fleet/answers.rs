//! A task whose agent asks a question: a person answers it within the fleet, and in no other way.

use serde_json::{Value, json};

use super::{FleetWorld, ONE};

/// An agent that asks first, and does the rest of its task once it has an answer.
pub(super) const ASKS: &str = "echo \"$iteration\" >> \"work-$task\"
if [ $call -lt 2 ]; then echo '<promise>BLOCKED: which port?</promise>'; else claim; fi";
const TO_A: [&str; 5] = ["tell", "--fleet", "repo", "--task", "a"];
const KEPT: &str = "a is blocked: crew fleet run tasks --retry tries it again with this\n";

/// A fleet whose task `a` is blocked by a question; `b` is completed, and `c` waits for `a`.
fn asked() -> FleetWorld {
    let world = FleetWorld::new(&format!("if [ $task = a ]; then {ASKS}; else {ONE}; fi"))
        .tasks(&["a", "b"], "verify = [\"ls work-*\"]")
        .tasks(&["c"], "verify = [\"ls work-c\"]\nafter = [\"a\"]")
        .ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    assert_eq!(["a", "b", "c"].map(|it| world.state(it)), ["blocked", "completed", "waiting"]);
    world
}

/// Five messages to `a`.
fn five(world: &FleetWorld) {
    for n in 1..=5 {
        let told = world.crew(&[&TO_A[..], &["message", &n.to_string()]].concat()).success();
        assert_eq!(told, KEPT);
    }
}

#[test]
fn the_answer_to_a_blocked_task_is_in_its_first_prompt_when_it_is_tried_again() {
    let world = asked();
    let told = world.crew(&[&TO_A[..], &["use", "port", "8080"]].concat()).success();
    assert_eq!((told.as_str(), world.begun("a")), (KEPT, vec![1]));

    let again = world.run(&["--retry"]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!(world.prompt("a", 2).matches("use port 8080").count(), 1);
    assert_eq!((world.begun("a"), world.work("a", "work-a")), (vec![1, 2], "1\n2\n".to_owned()));
    assert_eq!(world.lease("a")["carried"]["completed"], 2);
    assert_eq!(world.lease("a")["messages"], json!([]));
}

#[test]
fn a_message_to_the_fleet_also_waits_for_its_blocked_tasks_and_for_no_completed_one() {
    let world = asked();
    let told = world.crew(&["tell", "--fleet", "repo", "Mind the gap"]).success();
    assert_eq!(told, format!("fleet repo: 1 task will read it with the next prompt\n{KEPT}"));
    let kept = ["a", "b", "c"].map(|task| world.lease(task)["messages"].clone());
    assert_eq!(kept, [json!(["Mind the gap"]), json!([]), json!(["Mind the gap"])]);
}

#[test]
fn a_machine_that_never_saw_the_loop_begins_a_new_one_with_the_answer() {
    let world = FleetWorld::new(ASKS).tasks(&["a"], "").by_hand(&[]);
    assert_eq!(world.on("home").job("a").wait(super::LONG).code(), 13);
    assert_eq!(world.crew(&[&TO_A[..], &["use port 8080"]].concat()).success(), KEPT);
    world.record(&["--retry"]);
    let ran = world.on("elsewhere").job("a").wait(super::LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!(world.prompt("a", 2).matches("use port 8080").count(), 1);
    assert_eq!(world.begun("a"), [1, 2]);
}

#[test]
fn a_task_keeps_five_messages_and_reads_them_all_when_it_is_tried_again() {
    let world = asked();
    five(&world);
    let sixth = world.crew(&[&TO_A[..], &["message 6"]].concat());
    let expected = "crew: 5 messages already wait for task a\n\
                    hint: its agent gets them with its next prompt\n";
    assert_eq!((sixth.code(), sixth.stderr.as_str()), (1, expected));
    let told = world.crew(&["tell", "--fleet", "repo", "message 6"]).success();
    let expected = "fleet repo: 1 task will read it with the next prompt\n\
                    too many messages already wait for a\n";
    assert_eq!(told, expected);

    let again = world.run(&["--retry"]);
    assert_eq!(again.code(), 0, "{again:#?}");
    let prompt = world.prompt("a", 2);
    let read = (1..=6).filter(|n| prompt.contains(&format!("message {n}")));
    assert_eq!(read.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[test]
fn a_message_to_a_task_whose_agent_will_never_read_it_is_refused() {
    let world = asked();
    world.crew(&["fleet", "cancel", "c"]).success();
    let refused = |task: &str| {
        let ran = world.crew(&["tell", "--fleet", "repo", "--task", task, "Hello"]);
        format!("{} {}", ran.code(), ran.stderr)
    };
    insta::assert_snapshot!(["b", "c", "nobody", "repo", ".a"].map(refused).concat(), @r#"
    1 crew: task b is completed
    hint: what is still to do is a task of its own
    1 crew: task c is cancelled
    hint: crew fleet run tasks --retry resumes it, and it takes messages again
    1 crew: there is no task nobody
    hint: crew fleet status names them
    1 crew: there is no task repo: that is a fleet
    hint: --fleet repo instead means all of its tasks
    2 crew: `.a` names no task: ".a" cannot be a part of a branch: it begins with `.` or `-`
    hint: crew fleet status lists them
    "#);
}

#[test]
fn a_message_to_a_fleet_whose_tasks_are_all_over_is_refused_and_one_of_them_can_be_named() {
    let world = FleetWorld::new("[ $task = a ] && claim")
        .tasks(&["a"], "")
        .tasks(&["b"], "max-iterations = 1")
        .ready();
    assert_eq!(world.run(&[]).code(), 10);
    let refused = world.crew(&["tell", "--fleet", "repo", "Hello"]);
    let expected = "crew: no task of fleet repo is open, so none reads it\n\
                    hint: --task TASK reaches one that ended, unless it is completed or cancelled\n";
    assert_eq!((refused.code(), refused.stderr.as_str()), (1, expected));
    let told = world.crew(&["tell", "--fleet", "repo", "--task", "b", "Hello"]).success();
    assert!(told.starts_with("b is exhausted: "), "{told}");
}

#[test]
fn the_loop_of_a_task_is_resumed_by_its_fleet_alone_and_its_page_says_so() {
    let world = asked();
    let id = world.lease("a")["loop_id"].as_str().unwrap().to_owned();
    let page = world.crew(&["show", &id]).success();
    let answer = "crew tell --fleet repo --task a \"your answer\"";
    assert!(page.contains(answer) && page.contains("crew fleet run tasks --retry"), "{page}");
    assert!(!page.contains("crew resume"), "{page}");

    let refused = world.crew(&["resume", &id, "--tell", "use port 8080"]);
    let expected = format!(
        "loop {id} is task a of fleet repo\n\
         hint: crew fleet run tasks --retry resumes it; crew tell --fleet repo --task a \"...\" answers it"
    );
    assert_eq!((refused.code(), refused.stderr), (1, format!("crew: {expected}\n")));
    let answer = world.sandbox.hook(json!({
        "hook_event_name": "UserPromptExpansion", "expansion_type": "slash_command",
        "command_name": "crew:resume", "command_args": id,
        "prompt": format!("/crew:resume {id}"),
    }));
    let answer: Value = serde_json::from_str(&answer.success()).unwrap();
    let program = world.sandbox.build().path().display().to_string();
    let told = answer["reason"].as_str().unwrap().replace(&program, "crew");
    assert_eq!(told, format!("crew: {expected}"));
    assert_eq!((world.state("a"), world.begun("a")), ("blocked".to_owned(), vec![1]));
}

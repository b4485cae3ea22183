//! Subcommands for loops, applied to tasks of a fleet without a coordinator: what they show, whom
//! they reach, and how the next start applies the requests.

use std::path::Path;

use serde_json::{Value, json};

use super::{FleetWorld, LONG, ONE, TWO};
use crate::spawned::{Ran, Running};

/// An agent that asks first, and does the rest of its task once it has an answer.
pub(super) const ASKS: &str = "echo \"$iteration\" >> \"work-$task\"
if [ $call -lt 2 ]; then echo '<promise>BLOCKED: which port?</promise>'; else claim; fi";

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

/// Types a command in this folder.
fn within(world: &FleetWorld, folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(arguments).current_dir(folder);
    Running::start(command, None).wait(LONG)
}

#[test]
fn an_answer_and_a_message_to_all_wait_for_the_next_prompts_of_their_tasks() {
    let world = asked();
    world.crew(&["tell", "repo/a", "use", "port", "8080"]).success();
    world.crew(&["tell", "repo", "Mind the gap"]).success();
    assert_eq!(world.begun("a"), [1], "nothing runs because of it");
    world.crew(&["resume", "repo/a"]).success();

    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    let reads = |task, call, words| world.prompt(task, call).matches(words).count();
    assert_eq!((reads("a", 2, "use port 8080"), reads("a", 2, "Mind the gap")), (1, 1));
    assert_eq!((reads("c", 1, "use port 8080"), reads("c", 1, "Mind the gap")), (0, 1));
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1, 2], vec![1]));
    assert_eq!((world.work("a", "work-a"), world.attempt("a")), ("1\n2\n".into(), 1));
    assert_eq!(world.task("a")["carried"]["completed"], 2);
}

#[test]
fn a_resume_can_carry_an_answer_and_a_sixth_message_is_refused() {
    let world = asked();
    for n in 1..=4 {
        world.crew(&["tell", "repo/a", &format!("message {n}")]).success();
    }
    world.crew(&["resume", "repo/a", "--tell", "message 5"]).success();
    let sixth = world.crew(&["tell", "repo/a", "message 6"]);
    assert_eq!((sixth.code(), sixth.stdout.as_str()), (1, ""), "{sixth:#?}");
    assert!(sixth.stderr.contains("5 messages already wait for repo/a"), "{sixth:#?}");
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    let prompt = world.prompt("a", 2);
    let read = (1..=6).filter(|n| prompt.contains(&format!("message {n}")));
    assert_eq!(read.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[test]
fn another_node_continues_the_first_ones_pushed_work_with_the_answer() {
    let world = FleetWorld::new(ASKS).tasks(&["a"], "").with_nodes();
    let running = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    let first = world.on("one").runs("a.1").wait(LONG);
    assert_eq!(first.code(), 13, "{first:#?}");
    world.allow_job("a.1");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    // Its loop is on the node.
    let page = world.crew(&["show", "repo/a"]).success();
    assert!(page.contains("which port?") && page.contains("journal"), "{page}");
    assert!(!page.contains("{\"schema\""), "it is put into words: {page}");
    let json = world.crew(&["show", "repo/a", "--json"]).success();
    let json: Value = serde_json::from_str(&json).expect("a document");
    assert_eq!((&json["fleet"], &json["tasks"][0]["task"]), (&json!("repo"), &json!("a")));
    for words in [&["--log"][..], &["--iteration", "1", "--prompt"], &["--html", "page.html"]] {
        let ran = world.crew(&[&["show", "repo/a"], words].concat());
        assert!(ran.stderr.contains("no loop of repo/a is on this machine"), "{ran:#?}");
        assert_eq!((ran.code(), &*ran.stdout), (1, ""), "{ran:#?}");
    }
    let diff = world.crew(&["diff", "repo/a"]).success();
    assert!(diff.contains("work-a"), "{diff}");

    world.crew(&["resume", "repo/a", "--tell", "use port 8080"]).success();
    let running = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.2");
    let second = world.on("two").runs("a.2").wait(LONG);
    assert_eq!(second.code(), 0, "{second:#?}");
    world.allow_job("a.2");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (0, "completed".into()), "{ran:#?}");
    assert_eq!(world.prompt("a", 2).matches("use port 8080").count(), 1);
    assert_eq!((world.begun("a"), world.work("a", "work-a")), (vec![1, 2], "1\n2\n".into()));
}

impl FleetWorld {
    /// Makes the executor `nodes` report from now on that the job has ended.
    fn allow_job(&self, attempt: &str) {
        std::fs::write(self.note(&format!("status.{attempt}")), "done\n").unwrap();
    }
}

#[test]
fn messages_and_requests_without_a_recipient_are_refused() {
    let world = asked();
    world.crew(&["cancel", "repo/c"]).success();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("c")), (13, "cancelled".into()), "{ran:#?}");
    let types = |words: &[&str]| {
        let ran = world.crew(words);
        format!("{} {}", ran.code(), ran.stderr)
    };
    let typed = [
        &["tell", "repo/b", "Hello"][..],
        &["tell", "repo/c", "Hello"],
        &["tell", "repo/nobody", "Hello"],
        &["tell", "repo/.a", "Hello"],
        &["pause", "repo"],
        &["cancel", "repo"],
        &["cancel", "repo/c"],
        &["resume", "repo/b"],
        &["resume", "repo/a", "-n", "3"],
        &["resume", "repo/a", "--model", "opus"],
        &["resume", "repo", "--now"],
        &["set", "repo", "-n", "3"],
    ];
    insta::assert_snapshot!(typed.map(types).concat(), @"
    1 crew: task repo/b is completed: no agent would read the message
    hint: what is still to do is a task of its own
    1 crew: task repo/c is cancelled: no agent would read the message
    hint: crew resume repo/c first: it was cancelled
    1 crew: the fleet repo has no task nobody
    hint: crew fleet status repo lists them
    1 crew: the fleet repo has no task .a
    hint: crew fleet status repo lists them
    1 crew: there is nothing to pause: every task of the fleet repo has ended
    hint: crew fleet status repo says how
    1 crew: there is nothing to cancel: every task of the fleet repo has ended
    hint: crew fleet status repo says how
    1 crew: task repo/c is cancelled
    hint: crew status repo/c says why
    1 crew: task repo/b is completed
    hint: what is still to do is a task of its own
    2 crew: a task is resumed by its fleet, with the options of its file
    hint: change them in tasks, which a running fleet reads again; only --tell, --now and --accept-test-changes can be given here
    2 crew: a task is resumed by its fleet, with the options of its file
    hint: change them in tasks, which a running fleet reads again; only --tell, --now and --accept-test-changes can be given here
    2 crew: repo is a fleet
    hint: name one of its tasks: crew fleet status repo lists them
    2 crew: repo is a fleet
    hint: name one of its tasks: crew fleet status repo lists them
    ");
    assert_eq!(world.state("a"), "blocked", "only by its name");
    world.crew(&["cancel", "repo/a"]).success();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("a")), (10, "cancelled".into()), "{ran:#?}");
    // It takes a message only once it is resumed.
    world.crew(&["resume", "repo/a", "--tell", "use port 8080"]).success();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("a")), (10, "completed".into()), "{ran:#?}");
    assert_eq!(world.prompt("a", 2).matches("use port 8080").count(), 1);
}

#[test]
fn only_its_fleet_resumes_the_loop_of_a_task_and_the_page_says_so() {
    let world = asked();
    let id = world.task("a")["loop_id"].as_str().unwrap().to_owned();
    for name in [&*id, "repo/a"] {
        let page = world.crew(&["show", name]).success();
        assert!(page.contains("crew tell repo/a") && page.contains("crew resume repo/a"), "{page}");
    }
    let answer = world.sandbox.hook(json!({
        "hook_event_name": "UserPromptExpansion", "expansion_type": "slash_command",
        "command_name": "crew:resume", "command_args": id,
        "prompt": format!("/crew:resume {id}"),
    }));
    let answer: Value = serde_json::from_str(&answer.success()).unwrap();
    assert!(answer["reason"].as_str().unwrap().contains("is that of repo/a"), "{answer}");
    assert_eq!((world.state("a"), world.begun("a")), ("blocked".to_owned(), vec![1]));
    let resumed = world.crew(&["resume", &id, "--tell", "use port 8080"]).success();
    assert!(resumed.starts_with("repo/a is resumed by the next start"), "{resumed}");
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert!(world.prompt("a", 2).contains("use port 8080"));
}

#[test]
fn a_fleet_is_found_by_its_name_and_from_any_tree_of_its_repository() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let root = world.sandbox.root();
    let [tree, other, outside] = ["tree", "other", "outside"].map(|name| root.join(name));
    std::fs::create_dir_all(&outside).unwrap();
    world.sandbox.git(&["init", "--quiet", &other.display().to_string()]);
    world.sandbox.git(&["worktree", "add", "--quiet", &tree.display().to_string()]);
    for (folder, words) in [
        (&tree, &["fleet", "status"][..]),
        (&outside, &["fleet", "status"]),
        (&other, &["fleet", "status", "repo"]),
        (&other, &["status", "repo"]),
        (&other, &["show", "repo"]),
    ] {
        let page = within(&world, folder, words).success();
        assert!(page.starts_with("fleet repo"), "{}: {page}", folder.display());
    }
    let unnamed = within(&world, &other, &["fleet", "status"]);
    assert_eq!(unnamed.code(), 2, "{unnamed:#?}");
    assert!(unnamed.stderr.contains("name one of these: repo"), "{unnamed:#?}");
    let unknown = within(&world, &other, &["fleet", "status", "shop"]);
    assert!(unknown.stderr.contains("name one of these: repo"), "{unknown:#?}");

    let status = world.crew(&["status"]).success();
    assert!(status.ends_with("\nfleet repo: crew fleet status shows its tasks\n"), "{status}");
    let json: Value = serde_json::from_str(&world.crew(&["status", "repo", "--json"]).success())
        .expect("a document");
    assert_eq!((&json["fleet"], &json["counts"]["completed"]), (&json!("repo"), &json!(1)));
}

#[test]
fn a_task_that_ended_before_its_loop_shows_why_and_the_end_of_its_log() {
    let setup = "setup = '''echo fetching; echo\necho no such package >&2; exit 3'''";
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "")
        .tasks(&["later"], "after = [\"a\"]")
        .terms(setup)
        .ready();
    assert_eq!(world.run(&[]).code(), 13);
    assert!(world.why("a").contains("no such package"), "{}", world.why("a"));
    let page = world.crew(&["show", "repo/a"]).success();
    for part in ["no such package", "branch fleet/repo/a/1", "attempts/a.1.log", "setup: fetching"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let later = world.crew(&["show", "repo/later"]).success();
    assert!(later.contains("waits: after a, which needs you"), "{later}");
    // Once its cause is gone, it is tried again.
    let world = world.terms("setup = 'echo fine'");
    world.crew(&["resume", "repo/a"]).success();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.begun("a"), world.begun("later")), (0, vec![1], vec![1]));
}

#[test]
fn commits_that_a_rebase_adds_to_the_branch_of_a_task_are_not_in_its_difference() {
    let agent = format!("wait_for moved; {TWO}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").shared().ready();
    let running = world.start(&["--push"]);
    world.until("it works", |world| world.begun("a") == [1]);
    let world = world.file("theirs", "x\n").ready();
    world.allow("moved");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.work("a", "theirs")), (0, "x\n".into()), "{ran:#?}");
    let diff = world.crew(&["diff", "repo/a"]).success();
    assert!(diff.contains("work-a") && !diff.contains("theirs"), "{diff}");
}

//! What a user meets at a second look: messages, restored trees and handoffs after the fact, and a
//! command line that lost its quotes.

use rustix::process::Signal;

use super::{CLAIM, HANG, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox};

#[test]
fn a_check_that_lost_its_quotes_is_refused_with_an_explanation() {
    let world = World::new(&[CLAIM]);
    for (words, apart) in [
        (&["run", "Build", "it", "--verify", "cargo", "test"][..], "test"),
        (&["run", "Build it", "--verify", "true", "extra"], "extra"),
    ] {
        let ran = world.crew(words);
        let shown = format!(
            "crew: `{apart}` is outside the task\n\
             hint: put the whole task in double quotes, and values of several words too\n"
        );
        assert_eq!((ran.code(), ran.stderr), (2, shown), "{words:?}");
    }
    assert_eq!((world.calls(), world.loops().len()), (0, 0));
}

#[test]
fn crews_home_in_the_working_tree_is_not_work_and_is_never_committed() {
    for sandbox in [Sandbox::new(), Sandbox::without_git()] {
        let home = sandbox.file(".crew-home").display().to_string();
        let world = World::of(sandbox.env("CREW_HOME", &home), &["echo Thinking."]);
        let options: &[&str] =
            if world.sandbox.file(".git").exists() { &["--commit"] } else { &[] };
        let run = [&["run", "Build it", "-n", "6", "--stall", "2", "-q"], options].concat();
        assert_eq!(world.crew(&run).code(), 12, "nothing was done: it stalls");
        let page = world.crew(&["status"]).success();
        assert!(
            page.contains("stalled after 2 iterations") && !page.contains(".crew-home"),
            "{page}"
        );
        assert_eq!(world.crew(&["diff"]).success(), "");
        if !options.is_empty() {
            assert_eq!(world.sandbox.git(&["log", "--oneline"]).lines().count(), 1);
        }
    }
}

#[test]
fn a_message_before_a_pause_is_delivered_by_the_resume_and_shown_on_the_page() {
    let world = World::new(&[HANG, WORK]);
    let running = world.hanging(&["run", "Build it", "-n", "3"]);
    world.crew(&["tell", "first"]).success();
    world.crew(&["pause", "--now"]).success();
    running.wait(DEADLINE);
    world.crew(&["tell", "second"]).success();
    world.steps(&[CLAIM]);
    world.crew(&["resume", "-q", "--tell", "third"]).success();
    let prompt = world.prompt(2);
    let has = ["first", "second", "third"].map(|words| prompt.contains(words));
    assert_eq!(has, [true; 3], "{prompt}");
    let page = world.crew(&["status"]).success();
    assert!(page.contains("message \"first\" (in the prompt of iteration 1)"), "{page}");
    assert!(page.contains("message \"second\" (in the prompt of iteration 1)"), "{page}");
    assert!(page.contains("message \"third\" (in the prompt of iteration 1)"), "{page}");
    let story = world.crew(&["show"]).success();
    assert!(story.contains("message of the user: \"second\""), "{story}");
}

#[test]
fn an_interrupted_iteration_shows_its_changes_and_a_running_one_says_when_to_expect_them() {
    let world = World::new(&[&format!("echo half > half.txt; {HANG}")]);
    let running = world.hanging(&["run", "Build it", "-n", "3", "-q"]);
    let seen = world.crew(&["diff"]);
    let shown = "iteration 1 is still running: its changes show when it ends\n";
    assert_eq!((seen.stdout.as_str(), seen.stderr.as_str()), ("", shown), "{seen:#?}");
    running.signal(Signal::INT);
    running.wait(DEADLINE);
    std::fs::write(world.sandbox.file("mine.txt"), "a person's\n").unwrap();
    let sees = || {
        let page = world.crew(&["show"]).success();
        assert!(page.contains("half.txt  interrupted before it finished"), "{page}");
        assert!(
            page.contains(" · interrupted · half.txt · interrupted before it finished · finished"),
            "{page}"
        );
        let diff = world.crew(&["diff", "1"]).success();
        assert!(diff.contains("+half") && !diff.contains("person"), "{diff}");
        let iteration = world.crew(&["show", "--iteration", "1"]).success();
        assert!(iteration.contains("progress made: 1 new file"), "{iteration}");
        assert!(iteration.contains("  ended   interrupted before it finished"), "{iteration}");
    };
    sees();
    world.steps(&["echo Thinking.", CLAIM]);
    world.crew(&["resume", "-q"]).success();
    sees();
}

#[test]
fn files_that_a_check_wrote_before_an_interruption_are_not_the_agents() {
    let world = World::new(&[CLAIM]);
    let check = "if test -e begun; then touch report.xml; sleep 60; fi; touch begun; false";
    let running =
        world.sandbox.start_crew(&["run", "Build it", "-n", "3", "-q", "--verify", check]);
    crate::sandbox::poll_until("the check", || world.sandbox.file("report.xml").exists());
    running.signal(Signal::INT);
    running.wait(DEADLINE);
    let iteration = world.crew(&["show", "--iteration", "1"]).success();
    assert!(iteration.contains("progress none: nothing changed"), "{iteration}");
}

#[test]
fn an_end_is_dated_when_it_is_recorded_and_a_resume_removes_the_date() {
    let world = World::new(&[WORK, HANG]);
    world.crew(&["run", "Build it", "-n", "1", "-q"]);
    let ended_at = || world.record()["state"]["ended_at"].clone();
    assert!(ended_at().is_string(), "{}", world.record());
    let running = world.hanging(&["resume", "-n", "+1", "-q"]);
    assert!(ended_at().is_null());
    running.signal(Signal::INT);
    running.wait(DEADLINE);
    assert!(ended_at().is_string());
}

#[test]
fn a_message_in_the_last_iteration_before_a_pause_is_in_the_next_prompt() {
    let world = World::new(&["while ! test -e \"$notes/go\"; do sleep 0.1; done; echo a > a.txt"]);
    let running = world.sandbox.start_crew(&["run", "Build it", "-n", "3", "-q"]);
    crate::sandbox::poll_until("the agent works", || world.calls() == 1);
    world.crew(&["tell", "first"]).success();
    world.crew(&["pause"]).success();
    std::fs::write(world.note("go"), "").unwrap();
    running.wait(DEADLINE);
    assert_eq!(world.the_loop()["status"], "paused");
    world.crew(&["tell", "second"]).success();
    world.steps(&[CLAIM]);
    world.crew(&["resume", "-q"]).success();
    let prompt = world.prompt(2);
    let user = prompt.split_once("THE USER SAYS").unwrap_or_else(|| panic!("{prompt}")).1;
    assert!(user.contains("first") && user.contains("second"), "{prompt}");
}

#[test]
fn a_restored_tree_is_in_the_story() {
    let world = World::new(&[WORK]);
    world.crew(&["run", "Build it", "-n", "2", "-q"]);
    let end = world.crew(&["status"]).success();
    world.crew(&["back", "1"]).success();
    world.crew(&["handoff", "the", "parser", "is", "next"]).success();
    let story = world.crew(&["show"]).success();
    let shown = "note: the user restored the tree to the end of iteration 1; undo: crew back ";
    assert!(story.contains(shown), "{story}");
    let row = |page: &str, name: &str| {
        page.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned()
    };
    let now = world.crew(&["status"]).success();
    assert_eq!(row(&end, "  time"), row(&now, "  time"), "the end stays where it was");
    let note = "  note    the user restored the tree to the end of iteration 1\n";
    assert!(now.contains(note), "{now}");
    let iteration = world.crew(&["show", "--iteration", "1"]).success();
    assert!(iteration.contains("files   work.txt\n"), "{iteration}");
    assert!(iteration.contains("said    \"Wrote a line.\"\n"), "{iteration}");
}

#[test]
fn a_handoffs_message_waits_for_the_next_worker_and_is_delivered_once() {
    for order in [&["pause", "--now"][..], &["cancel"]] {
        let world = World::new(&[HANG, WORK, WORK]);
        let running = world.hanging(&["run", "Build it", "-n", "9", "--stall", "0"]);
        world.crew(&["handoff", "the", "parser", "is", "next"]).success();
        world.crew(order).success();
        running.wait(DEADLINE);
        let resume = |limit| world.crew(&["resume", "-n", limit, "-q"]);
        assert_eq!(resume("1").code(), 10);
        assert!(world.prompt(2).contains("the parser is next"), "{order:?}: {}", world.prompt(2));
        assert_eq!(resume("2").code(), 10);
        assert!(!world.prompt(3).contains("the parser is next"), "{order:?}: {}", world.prompt(3));
    }
}

#[test]
fn the_first_word_of_a_handoff_in_a_terminal_is_its_type() {
    let world = World::new(&[WORK]);
    world.crew(&["run", "Build it", "-n", "1", "-q"]);
    let shown = world.crew(&["handoff", "review", "look at the parser"]).success();
    let page = shown.trim().strip_prefix("handoff: ").unwrap();
    assert!(page.contains("/handoffs/review-"), "{shown}");
    let text = std::fs::read_to_string(page).unwrap();
    assert!(text.contains("look at the parser") && !text.contains("review look"), "{text}");
    let shown = world.crew(&["handoff", "--type", "phase", "review", "it"]).success();
    assert!(shown.contains("/handoffs/phase-"), "{shown}");
    for words in [&["review"][..], &["--type", "task", "review"]] {
        let refused = world.crew(&[&["handoff"], words].concat());
        let shown = "crew: `review` is a type of handoff, and its description is missing\n\
                    hint: crew handoff review \"the parser is done, its tests are next\"\n";
        assert_eq!((refused.code(), &*refused.stderr), (1, shown), "{words:?}");
    }
}

#[test]
fn a_check_that_fails_with_the_work_proves_nothing_and_says_so() {
    let world = World::new(&[WORK]);
    world.crew(&["run", "Build it", "-n", "1", "-q", "--gate", "false"]);
    let ran = world.crew(&["prove"]);
    assert_eq!(ran.code(), 1);
    assert!(
        ran.stderr
            .starts_with("crew: `false` fails with the work, so there is nothing to prove\nhint: "),
        "{ran:#?}"
    );
}

#[test]
fn a_changed_check_that_a_person_must_accept_names_the_option_for_it() {
    let sandbox = Sandbox::new();
    sandbox.write("check.sh", "test -e done\n");
    let cheats = format!("echo true > check.sh; {CLAIM}");
    let world = World::of(sandbox, &[&cheats]);
    let ran = world.crew(&["run", "Build it", "-n", "5", "-q", "--verify", "sh check.sh"]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    let id = world.id();
    let page = world.crew(&["status"]).success();
    assert!(page.contains(&format!("then    crew resume {id} --accept-test-changes")), "{page}");
    assert_eq!(world.crew(&["resume", "--accept-test-changes", "-q"]).code(), 0);
}

#[test]
fn a_check_in_the_wrong_table_of_the_settings_is_refused() {
    let world = World::new(&[CLAIM]);
    world.settings("verify = [\"false\"]\n");
    let ran = world.crew(&["run", "Build it", "-n", "2"]);
    assert_eq!((ran.code(), world.calls()), (1, 0), "{ran:#?}");
    assert!(ran.stderr.contains("unknown key `verify`"), "{ran:#?}");
    world.settings("");
    let config = world.crew(&["config"]).success();
    assert!(config.lines().any(|line| line.starts_with("  verify")), "{config}");
}

#[test]
fn a_users_changes_between_iterations_are_not_the_loops_work() {
    let world = World::new(&["echo work > work.txt", HANG, HANG]);
    let running = world.hanging(&["run", "Build it", "-n", "9"]);
    world.crew(&["pause", "--now"]).success();
    running.wait(DEADLINE);
    world.sandbox.write("mine.txt", "mine\n");
    world.crew(&["cancel"]).success();
    for command in [&["status"][..], &["diff"], &["show", "--json"]] {
        let shown = world.crew(command).success();
        assert!(shown.contains("work.txt") && !shown.contains("mine.txt"), "{command:?}: {shown}");
    }
    let resumed = world.hanging(&["resume"]);
    world.sandbox.write("half.txt", "half\n");
    world.crew(&["cancel"]).success();
    resumed.wait(DEADLINE);
    let page = world.crew(&["status"]).success();
    assert!(page.contains("half.txt"), "an iteration was broken off: {page}");
}

#[test]
fn commits_after_the_end_are_not_the_loops_work() {
    let world = World::new(&["echo work > work.txt"]);
    world.crew(&["run", "Build it", "-n", "1", "-q"]);
    let shown = world.crew(&["status"]).success();
    assert!(shown.contains("  commits none; the file is uncommitted\n"), "{shown}");
    let git = |arguments: &[&str]| world.sandbox.git(arguments);
    git(&["add", "."]);
    git(&["commit", "-qm", "mine"]);
    git(&["checkout", "-qb", "other"]);
    git(&["commit", "-qm", "mine too", "--allow-empty"]);
    assert_eq!(world.crew(&["status"]).success(), shown);
    assert!(!world.crew(&["show", "--json"]).success().contains("mine too"));
}

#[test]
fn many_files_and_many_commits_are_all_counted() {
    let work = "for n in $(seq 130); do echo $n > f$n; done; \
                for n in $(seq 35); do git commit -q --allow-empty -m \"Step $n\"; done";
    let world = World::new(&[work]);
    let ran = world.crew(&["run", "Build it", "-n", "1"]);
    for shown in [
        "files   130 new files, ",
        "commits 35 on main; 130 files uncommitted\n",
        "and 30 that are not named here",
    ] {
        assert!(ran.stdout.contains(shown), "{shown}: {ran:#?}");
    }
}

#[test]
fn a_task_in_a_language_without_spaces_is_a_task() {
    let world = World::new(&[CLAIM]);
    let page = world.crew(&["run", "倉庫の在庫を数え直すテストを直す"]).success();
    assert!(page.contains("\n  倉庫の在庫を数え直すテストを直す\n"), "{page}");
    assert_eq!(world.crew(&["run", "biuld"]).code(), 2);
}

#[test]
fn the_work_of_an_interrupted_iteration_is_on_the_page_and_in_the_difference() {
    let hang = format!("echo half > half.txt; {HANG}");
    let sees = |world: &World| {
        for command in [&["status"][..], &["diff"]] {
            let shown = world.crew(command).success();
            assert!(
                shown.contains("half.txt") && !shown.contains("mine.txt"),
                "{command:?}: {shown}"
            );
        }
    };
    let world = World::new(&[&hang]);
    assert_eq!(world.interrupted(&["run", "Build it"]).code(), 130);
    sees(&world);
    let world = World::new(&[&hang]);
    let running = world.hanging(&["run", "Build it"]);
    world.crew(&["pause", "--now"]).success();
    running.wait(DEADLINE);
    world.sandbox.write("mine.txt", "mine\n");
    sees(&world);
    world.crew(&["cancel"]).success();
    sees(&world);
}

#[test]
fn an_undelivered_message_is_shown_as_waiting() {
    let world = World::new(&[HANG]);
    let running = world.hanging(&["run", "Build it"]);
    world.crew(&["tell", "use the old parser"]).success();
    let page = world.crew(&["status"]).success();
    assert!(
        page.contains("message \"use the old parser\" (waits for the next prompt)\n"),
        "{page}"
    );
    world.crew(&["cancel"]).success();
    running.wait(DEADLINE);
}

#[test]
fn an_impossible_proof_is_reported_at_the_start_without_a_resume_hint() {
    let world = World::new(&[CLAIM]);
    let ran = world.crew(&["run", "Build it", "--verify", "true", "--require", "checked"]);
    assert_eq!(ran.code(), 13, "{ran:?}");
    let note = "this loop requires `checked`, and no claim is believed unless a check fails first";
    assert!(ran.stderr.contains(note), "{ran:?}");
    let page = world.crew(&["status"]).success();
    assert!(page.contains("start it without --require"), "{page}");
    assert!(!page.contains("  then "), "{page}");
}

#[test]
fn the_answer_to_a_message_in_the_last_iteration_says_how_to_deliver_it() {
    let world = World::new(&[HANG]);
    let running = world.hanging(&["run", "Build it", "-n", "1", "-q"]);
    let shown = world.crew(&["tell", "use tabs"]).success();
    let id = world.id();
    let expected = format!(
        "loop {id}: this is its last iteration: crew set {id} -n +1, or later crew resume {id} -n +1, \
         delivers it\n"
    );
    assert_eq!(shown, expected);
    running.signal(Signal::INT);
    running.wait(DEADLINE);
}

#[test]
fn the_running_step_is_in_the_status_and_in_the_state_file() {
    let world = World::new(&[WORK]);
    let hangs = world.note("hangs").display().to_string();
    let gate = format!("touch '{hangs}'; sleep 100");
    let running = world.hanging(&["run", "Build it", "-n", "2", "-q", "--gate", &gate]);
    let doing = world.the_loop()["doing"].clone();
    assert_eq!((&doing["step"], &doing["run"]), (&"check".into(), &gate.as_str().into()));
    let page = world.crew(&["status"]).success();
    assert!(page.contains("  doing   check `") && page.contains("` is running\n"), "{page}");
    assert!(!page.contains("never ran"), "{page}");
    let view = world.sandbox.root().join("repo/.claude/branches/main/state.json");
    let view = std::fs::read_to_string(view).unwrap();
    assert!(view.contains("\"step\": \"check\""), "{view}");
    world.crew(&["cancel"]).success();
    running.wait(DEADLINE);
    assert!(world.the_loop()["doing"].is_null());
}

#[test]
fn a_check_before_the_first_iteration_is_the_running_step() {
    let world = World::new(&[WORK]);
    let check = format!("touch '{}'; sleep 100", world.note("hangs").display());
    let running = world.hanging(&["run", "Build it", "-q", "--verify", &check]);
    let doing = world.the_loop()["doing"].clone();
    assert_eq!((&doing["step"], &doing["run"]), (&"check".into(), &check.as_str().into()));
    world.crew(&["cancel"]).success();
    running.wait(DEADLINE);
}

#[test]
fn iterations_are_selected_by_number_and_by_status() {
    let world = World::new(&[WORK, "exit 3", "echo 2 > two.txt; sleep 100"]);
    world.crew(&["run", "Build it", "-n", "3", "-q", "--timeout", "1s"]);
    let numbers = |options: &[&str]| {
        let story = world.crew(&[&["show", "--json"], options].concat()).success();
        let story: serde_json::Value = serde_json::from_str(&story).unwrap();
        let iterations = story["page"]["iterations"].as_array().unwrap().clone();
        iterations.iter().map(|it| it["number"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&["--last", "2"]), [2, 3]);
    assert_eq!(numbers(&["--only", "failed"]), [2]);
    assert_eq!(numbers(&["--only", "timed-out"]), [3]);
    assert_eq!(numbers(&["--only", "no-progress"]), [2]);
    let totals = world.crew(&["history", "--json"]).success();
    let counts = "\"iterations_failed\":1,\"iterations_interrupted\":0,\"iterations_skipped\":0";
    assert!(totals.contains(counts), "{totals}");
}

//! A fleet of one machine: what becomes of a folder of tasks, what starts nothing, and what may run
//! at once.

use std::collections::BTreeSet;

use super::answers::ASKS;
use super::{FleetWorld, LONG, ONE, TWO};
use crate::child::Running;

#[test]
fn a_folder_becomes_completed_loops_with_a_slot_and_a_ready_tree_each_and_run_again_changes_nothing()
 {
    // The first two are at work at once.
    let world = FleetWorld::new(&format!(
        "grep -q key .env || echo $task >> \"$NOTES/unready\"
         exec 9> \"$NOTES/slot.$CREW_SLOT\"; flock -n 9 || echo $task >> \"$NOTES/shared\"
         touch $NOTES/began.$task
         case $task in a|b) wait_for began.a; wait_for began.b ;; esac
         {TWO}"
    ));
    let names = ["a", "b", "c", "d"];
    let world = world
        .tasks(&names, "verify = [\"grep -q 2 work-*\"]")
        .terms("slots = 2\nsetup = 'basename $PWD | tee -a $NOTES/setups'")
        .file("tasks/README.md", "how to write a task\n")
        .file("tasks/_notes.md", "+++\nnonsense\n")
        .file(".gitignore", ".env\nother\n")
        .file(".worktreeinclude", ".env\n")
        .file(".env", "key\n")
        .ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    for name in names {
        assert_eq!(world.state(name), "completed");
        assert_eq!(world.work(name, &format!("work-{name}")), "1\n2\n");
        assert_eq!(world.work(name, ".env"), "", "an ignored file was committed");
        assert_eq!(world.begun(name), [1, 2]);
        let log = world.sandbox.crew_home().join(format!("fleets/repo/tasks/{name}.log"));
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.contains(&format!("crew: setup: {name}\n")), "{log}");
    }
    let branches = world.sandbox.git(&["branch", "--list", "--format=%(refname:short)"]);
    assert_eq!(branches, "fleet/repo/a\nfleet/repo/b\nfleet/repo/c\nfleet/repo/d\nmain");
    let mut set_up: Vec<String> = world.noted("setups").lines().map(str::to_owned).collect();
    set_up.sort();
    assert_eq!(set_up, names, "once in each working tree");
    assert_eq!((world.noted("unready"), world.noted("shared")), (String::new(), String::new()));
    assert_eq!(world.most_at_once(), 2);
    let log = world.noted("log");
    let slots: BTreeSet<&str> = log.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(slots, ["0", "1"].into());

    let before = names.map(|name| world.lease(name));
    let refs = world.sandbox.git(&["for-each-ref"]);
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!((names.map(|name| world.lease(name)), world.noted("log")), (before, log));
    assert_eq!(world.sandbox.git(&["for-each-ref"]), refs);
}

#[test]
fn an_ignored_file_stays_as_its_task_has_it_and_is_new_for_each_landing() {
    let agent = format!("cat dev.db >> $NOTES/seen.$task; echo changed > dev.db; {ASKS}");
    let world = FleetWorld::new(&agent)
        .tasks(&["a", "b"], "")
        .terms("[land]\ncheck = [\"cat dev.db >> $NOTES/landed; echo changed > dev.db\"]")
        .file(".gitignore", "dev.db\nlink\n")
        .file(".worktreeinclude", "dev.db\nlink\n")
        .file("dev.db", "original\n")
        .shared()
        .ready();
    std::os::unix::fs::symlink("dev.db", world.sandbox.file("link")).unwrap();
    assert_eq!(world.run(&["--land"]).code(), 13);
    let ran = world.run(&["--land", "--retry"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!(["seen.a", "seen.b"].map(|it| world.noted(it)), ["original\nchanged\n"; 2]);
    assert_eq!(world.noted("landed"), "original\noriginal\n");
    let log = world.sandbox.crew_home().join("fleets/repo/tasks/a.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("crew: .worktreeinclude leaves out link (link)\n"), "{log}");
}

#[test]
fn a_copy_of_an_ignored_file_that_was_cut_off_is_made_again_and_no_half_of_it_is_committed() {
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "verify = [\"cmp .env $NOTES/whole\"]")
        .file(".gitignore", ".env\n")
        .file(".worktreeinclude", ".env\n")
        .file(".env", &"key\n".repeat(1 << 19))
        .ready();
    std::fs::copy(world.sandbox.file(".env"), world.note("whole")).unwrap();
    // No file can become longer than this, as on a full disk.
    let mut limited = world.sandbox.command("sh");
    limited.args(["-c", "ulimit -f 1024; exec \"$@\"", "sh"]).arg(world.sandbox.build().path());
    limited.args(["fleet", "run", "tasks", "--yes"]);
    let ran = Running::start(limited, None).wait(LONG);
    assert_eq!((world.begun("a"), world.state("a")), (vec![], "error".into()), "{ran:#?}");
    let again = world.run(&["--retry"]);
    assert_eq!((again.code(), world.begun("a")), (0, vec![1]), "{again:#?}");
    let files = world.sandbox.git(&["ls-tree", "-r", "--name-only", "fleet/repo/a"]);
    assert_eq!(files, ".gitignore\n.worktreeinclude\nREADME\ntasks/a.md\nwork-a");
}

#[test]
fn what_is_exhausted_stays_so_until_a_retry_which_counts_on_from_where_it_was() {
    let world = FleetWorld::new(TWO)
        .tasks(&["a"], "verify = [\"grep -q 2 work-a\"]\nmax-iterations = 1")
        .tasks(&["b"], "verify = [\"grep -q 2 work-b\"]")
        .ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_eq!((world.state("a"), world.state("b")), ("exhausted".into(), "completed".into()));

    let world = world.tasks(&["a"], "verify = [\"grep -q 2 work-a\"]\nmax-iterations = 3");
    assert_eq!(world.run(&[]).code(), 10);
    assert_eq!(world.begun("a"), [1], "an end is an end");
    let lower = world.tasks(&["a"], "verify = [\"grep -q 2 work-a\"]\nmax-iterations = 1");
    let spent = lower.run(&["--retry"]);
    let told = "crew: a stays exhausted: its max-iterations is used up\n\
                hint: raise max-iterations in tasks/a.md, or under [task] in fleet.toml, and try again\n";
    assert_eq!((spent.code(), lower.begun("a")), (10, vec![1]), "{spent:#?}");
    assert!(spent.stderr.contains(told), "{spent:#?}");

    let world = lower.tasks(&["a"], "verify = [\"grep -q 2 work-a\"]\nmax-iterations = 3");
    let retried = world.run(&["--retry"]);
    assert_eq!(retried.code(), 0, "{retried:#?}");
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1, 2], vec![1, 2]));
    assert_eq!(world.work("a", "work-a"), "1\n2\n");
}

#[test]
fn a_fault_in_any_file_starts_nothing_and_every_fault_is_told() {
    let world = FleetWorld::new(ONE)
        .tasks(&["good"], "")
        .tasks(&["typo"], "verfy = [\"true\"]")
        .file("tasks/open.md", "+++\nverify = [\"true\"]\nand no end of it\n")
        .file("tasks/my task.md", "Do it.\n")
        .terms("slot = 2")
        .ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 2, "{ran:#?}");
    for fault in ["typo.md", "verfy", "open.md", "my task", "fleet.toml", "slot"] {
        assert!(ran.stderr.contains(fault), "{fault}\n{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("good.md"), "{}", ran.stderr);
    assert_eq!((world.noted("calls"), world.lease("good")), (String::new(), ().into()));
}

#[test]
fn tasks_that_cannot_be_prepared_are_told_together_and_files_with_one_fault_in_one_line() {
    let world = FleetWorld::new(ONE)
        .tasks(&["a", "b"], "agent = \"nobody\"")
        .tasks(&["c"], "no-worse = [\"true\"]")
        .tasks(&["d"], "")
        .tasks(&["e"], "agent-cmd = \"nosuch -p\"")
        .shared()
        .ready();
    let ran = world.crew(&["fleet", "run", "tasks", "--land", "--dry-run"]);
    assert_eq!(ran.code(), 2, "{ran:#?}");
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(".md: ")).collect();
    assert_eq!(lines.len(), 3, "{}", ran.stderr);
    assert!(lines[0].starts_with("  a.md, b.md: ") && lines[0].contains("nobody"), "{lines:?}");
    let worse =
        "  c.md: no-worse cannot be judged on main as it will be; use verify, or leave --land out";
    assert_eq!(lines[1], worse);
    let missing = "  e.md: agent nosuch: there is no program `nosuch` on PATH; install it, or name another: \
                   agent = \"NAME\", or agent-cmd = \"COMMAND\" (under [task] in fleet.toml, or in the front matter)";
    assert_eq!(lines[2], missing);
}

#[test]
fn nothing_starts_without_a_persons_word_or_inside_an_agent() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    let unasked = world.crew(&["fleet", "run", "tasks"]);
    assert_eq!(unasked.code(), 2, "{unasked:#?}");

    let within = |arguments: &[&str]| {
        let mut command = world.sandbox.command(world.sandbox.build().path());
        command.args(arguments).env("CLAUDECODE", "1");
        Running::start(command, None).wait(LONG)
    };
    let refused = within(&["fleet", "run", "tasks", "--yes"]);
    assert_eq!(refused.code(), 1, "{refused:#?}");
    assert_eq!((world.noted("calls"), world.lease("a")), (String::new(), ().into()));

    assert_eq!(world.run(&[]).code(), 0);
    assert_eq!(
        world.crew(&["fleet", "run", "tasks"]).code(),
        0,
        "what is trusted is not asked again"
    );
    for refused in [&["fleet", "job", "repo", "a"][..], &["tell", "--fleet", "repo", "Hello"]] {
        assert_eq!(within(refused).code(), 1, "{refused:?}");
    }
    assert_eq!(world.begun("a"), [1]);
}

#[test]
fn a_task_starts_from_the_work_of_those_before_it_and_what_touches_the_same_never_runs_at_once() {
    // While `t1` is at work there is a place for `t2`, which is more urgent than `a` and `b`.
    let world = FleetWorld::new(
        "touch $NOTES/began.$task
         case $task in
         a|b|t1) wait_for began.a; wait_for began.b ;;
         x|y) echo $task > same ;;
         esac
         echo done > work-$task; claim",
    )
    .tasks(&["a", "b", "x", "y"], "")
    .tasks(&["both"], "after = [\"a\", \"b\"]\nverify = [\"test -e work-a && test -e work-b\"]")
    .tasks(&["torn"], "after = [\"x\", \"y\"]")
    .tasks(&["t1", "t2", "t3"], "touches = [\"src/**\"]\npriority = 9")
    .terms("slots = 4")
    .ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    assert_eq!(world.state("both"), "completed");
    assert_eq!(world.work("both", "work-a") + &world.work("both", "work-both"), "done\ndone\n");
    assert_eq!((world.state("torn"), world.begun("torn")), ("blocked".into(), vec![]));
    assert!(world.why("torn").contains("same"), "{}", world.why("torn"));

    let log = world.noted("log");
    let touching = log.lines().filter(|line| line.split(' ').nth(1).unwrap().starts_with('t'));
    let steps: Vec<&str> = touching.map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(steps, ["begin", "end", "begin", "end", "begin", "end"], "{log}");
    let at = |step: &str| log.lines().position(|line| line.starts_with(step)).unwrap();
    assert!(at("begin both") > at("end a").max(at("end b")), "{log}");
    assert!(world.most_at_once() > 1, "{log}");
}

#[test]
fn tasks_of_one_priority_start_and_are_listed_as_a_person_counts() {
    let names = ["t10", "t1", "t2"];
    let world = FleetWorld::new(ONE).tasks(&names, "").terms("slots = 1").ready();
    let place = |text: &str| ["t1 ", "t2 ", "t10 "].map(|name| text.find(name));
    let is_sorted = |text: &str| {
        let found = place(&text.replace(['\n', ','], " "));
        found.iter().all(Option::is_some) && found.is_sorted()
    };
    let dry = world.run(&["--dry-run"]).success();
    assert!(is_sorted(&dry), "{dry}");
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let begun: Vec<String> = world.noted("calls").lines().map(str::to_owned).collect();
    assert_eq!(begun, ["t1", "t2", "t10"]);
}

#[test]
fn a_dry_run_shows_the_agent_the_slots_of_this_machine_and_what_will_be_asked() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "verify = [\"test -e work-a\"]").ready();
    let dry = |world: &FleetWorld| world.crew(&["fleet", "run", "tasks", "--dry-run"]).success();
    let new = dry(&world);
    assert!(new.contains("\n  agent   fake\n"), "{new}");
    let slots = new.lines().find_map(|line| line.strip_prefix("  slots   ")).unwrap();
    let count = slots.split(' ').next().unwrap();
    assert!(new.contains(&format!(", on this machine, {count} at once, ")), "{new}");
    assert!(slots.ends_with("; --slots N sets another number"), "{slots}");
    let asked = new.split_once("what needs trust in tasks:\n  new      ").unwrap().1;
    assert!(asked.contains("[fleet repo] task a, "), "{new}");
    assert!(asked.contains("'--verify=test -e work-a'"), "{new}");

    assert_eq!(world.run(&["--slots", "3"]).code(), 0);
    let known = world.run(&["--dry-run"]).success();
    assert!(known.contains(", 3 at once, ") && !known.contains("  slots   "), "{known}");
    assert!(known.ends_with("  trust   nothing is new: it starts without asking\n"), "{known}");
}

#[test]
fn a_folder_is_found_from_below_the_root_of_the_repository_where_none_is_nearer() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").file("deep/er/file", "").ready();
    let dry = |below: &str| {
        let mut command = world.sandbox.command(world.sandbox.build().path());
        command.current_dir(world.sandbox.repository().join(below));
        command.args(["fleet", "run", "tasks", "--dry-run"]);
        Running::start(command, None).wait(LONG)
    };
    assert_eq!(dry("deep/er").success(), dry("").success());
    world.sandbox.write("deep/tasks/near.md", "Do it.\n");
    assert!(dry("deep").success().contains("near"), "the nearer one comes first");
}

#[test]
fn one_line_names_all_completed_tasks_that_have_changed_in_vain() {
    let tasks = ["c1", "c2", "c3", "c4", "c5"];
    let world = FleetWorld::new(ONE).tasks(&tasks, "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let notes = |world: &FleetWorld| {
        let ran = world.run(&[]);
        assert_eq!(ran.code(), 0, "{ran:#?}");
        let lines = ran.stdout.lines().chain(ran.stderr.lines());
        let lines = lines.filter(|line| line.contains("what changed"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let one = "c1 is completed, so what changed in its file or in fleet.toml is for a new task: give it another name";
    let world = world.tasks(&["c1"], "max-iterations = 3");
    assert!(matches!(&notes(&world)[..], [note] if note.ends_with(one)), "{:?}", notes(&world));
    let all = "c1, c2, c3 and 2 more are completed, so what changed in their files or in fleet.toml is for new tasks: give them other names";
    let world = world.terms("[task]\nstall = 7");
    assert!(matches!(&notes(&world)[..], [note] if note.ends_with(all)), "{:?}", notes(&world));
}

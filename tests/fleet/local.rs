//! A fleet on one machine: what happens to a folder of tasks, what starts nothing, and which tasks
//! may run at the same time.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::spawned::Running;

/// Tasks that declare a file that they change, and those that do not.
const SAID: [&str; 3] = ["s1", "s2", "s3"];
const UNSAID: [&str; 3] = ["u1", "u2", "u3"];
/// Adds its line to the file, or keeps both sides of a conflict. The tasks without a declaration
/// begin together, once the others have landed.
const ADDS: &str = r"touch $NOTES/began.$task
case $task in u*) for other in u1 u2 u3; do wait_for began.$other; done ;; esac
if grep -q '<<<<<<<' shared; then
    sed -i '/^<<<<<<<\|^=======\|^>>>>>>>/d' shared
else
    echo $task >> shared
fi
claim";

impl FleetWorld {
    /// The log of a task's newest attempt.
    fn log_of(&self, task: &str) -> String {
        let file = format!("fleets/repo/attempts/{task}.{}.log", self.attempt(task));
        std::fs::read_to_string(self.sandbox.crew_home().join(file)).unwrap_or_default()
    }
}

#[test]
fn a_folder_of_tasks_is_completed_and_running_it_again_changes_nothing() {
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
        assert_eq!((world.begun(name), world.attempt(name)), (vec![1, 2], 1));
        let log = world.log_of(name);
        assert!(log.contains(&format!("crew: setup: {name}.1\n")), "{log}");
    }
    let refs = world.sandbox.git(&["for-each-ref", "--format=%(refname)"]);
    let expected: String = names.map(|name| format!("\nrefs/remotes/crew/repo/{name}")).concat();
    assert_eq!(refs, format!("refs/heads/main{expected}"));
    let mut set_up: Vec<String> = world.noted("setups").lines().map(str::to_owned).collect();
    set_up.sort();
    assert_eq!(set_up, names.map(|name| format!("{name}.1")), "once in each clone");
    assert_eq!((world.noted("unready"), world.noted("shared")), (String::new(), String::new()));
    assert_eq!(world.most_at_once(), 2);
    let log = world.noted("log");
    let slots: BTreeSet<&str> = log.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(slots, ["0", "1"].into());

    let before = (world.record()["tasks"].clone(), world.sandbox.git(&["for-each-ref"]), log);
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    let after = world.record()["tasks"].clone();
    assert_eq!((after, world.sandbox.git(&["for-each-ref"]), world.noted("log")), before);
}

#[test]
fn an_ignored_file_keeps_its_tasks_changes_and_is_copied_again_for_each_landing() {
    let asks =
        "if [ $call -lt 2 ]; then echo '<promise>BLOCKED: which port?</promise>'; else claim; fi";
    let agent =
        format!("cat dev.db >> $NOTES/seen.$task; echo changed > dev.db; touch $task; {asks}");
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
    let log = world.log_of("a");
    assert!(log.contains("crew: .worktreeinclude leaves out link (link)\n"), "{log}");
    world.crew(&["resume", "repo"]).success();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!(["seen.a", "seen.b"].map(|it| world.noted(it)), ["original\nchanged\n"; 2]);
    assert_eq!(world.noted("landed"), "original\noriginal\n");
}

#[test]
fn an_interrupted_copy_of_an_ignored_file_is_repeated_and_never_committed_half_done() {
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
    assert_eq!((world.begun("a"), world.state("a")), (vec![], "blocked".into()), "{ran:#?}");
    world.crew(&["resume", "repo/a"]).success();
    let again = world.run(&[]);
    assert_eq!((again.code(), world.begun("a")), (0, vec![1]), "{again:#?}");
    let files = ["ls-tree", "-r", "--name-only", "refs/remotes/crew/repo/a"];
    let files = world.sandbox.git(&files);
    assert_eq!(files, ".gitignore\n.worktreeinclude\nREADME\ntasks/a.md\nwork-a");
}

#[test]
fn an_exhausted_task_stays_exhausted_until_its_limit_is_raised_and_a_person_resumes_it() {
    let text = |most: u32| format!("verify = [\"grep -q 2 work-*\"]\nmax-iterations = {most}");
    let world = FleetWorld::new(TWO).tasks(&["a"], &text(1)).tasks(&["b"], &text(9)).ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_eq!((world.state("a"), world.state("b")), ("exhausted".into(), "completed".into()));
    world.crew(&["resume", "repo/a"]).success();
    let spent = world.run(&[]);
    assert_eq!((spent.code(), world.begun("a")), (10, vec![1]), "{spent:#?}");

    let world = world.tasks(&["a"], &text(3));
    assert_eq!((world.run(&[]).code(), world.begun("a")), (10, vec![1]), "an end is an end");
    world.crew(&["resume", "repo"]).success();
    let resumed = world.run(&[]);
    assert_eq!(resumed.code(), 0, "{resumed:#?}");
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1, 2], vec![1, 2]));
    assert_eq!((world.work("a", "work-a").as_str(), world.attempt("a")), ("1\n2\n", 2));
}

#[test]
fn a_fault_in_any_file_starts_nothing_and_every_fault_is_reported() {
    let world = FleetWorld::new(ONE)
        .tasks(&["good"], "")
        .tasks(&["typo"], "verfy = [\"true\"]")
        .file("tasks/open.md", "+++\nverify = [\"true\"]\nand no end of it\n")
        .file("tasks/my task.md", "Do it.\n")
        .terms("slot = 2")
        .shared()
        .ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 2, "{ran:#?}");
    for fault in ["typo.md", "verfy", "open.md", "my task", "fleet.toml", "slot"] {
        assert!(ran.stderr.contains(fault), "{fault}\n{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("good.md"), "{}", ran.stderr);

    // What can be read and not be done: files with one fault are in one line.
    for file in ["open.md", "my task.md", "typo.md"] {
        std::fs::remove_file(world.sandbox.file("tasks").join(file)).unwrap();
    }
    let world = world
        .tasks(&["a", "b"], "agent = \"nobody\"")
        .tasks(&["c"], "no-worse = [\"true\"]")
        .tasks(&["d"], "agent-cmd = \"nosuch -p\"")
        .terms("");
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 2, "{ran:#?}");
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(".md: ")).collect();
    let begins = ["  a.md, b.md: ", "  c.md: no-worse ", "  d.md: agent nosuch: "];
    assert_eq!(lines.len(), begins.len(), "{}", ran.stderr);
    assert!(lines.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{lines:?}");
    assert!(world.noted("calls").is_empty() && world.record().is_null());
}

#[test]
fn nothing_starts_in_a_dry_run_inside_an_agent_or_without_a_persons_consent() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    let unasked = || world.crew(&["fleet", "run", "tasks"]).code();
    let within = |arguments: &[&str]| {
        let mut command = world.sandbox.command(world.sandbox.build().path());
        command.args(arguments).env("CLAUDECODE", "1");
        Running::start(command, None).wait(LONG).code()
    };
    assert_eq!(unasked(), 2);
    world.run(&["--dry-run"]).success();
    assert_eq!(unasked(), 2, "a dry run trusts nothing");
    assert_eq!(within(&["fleet", "run", "tasks", "--yes"]), 1);
    assert!(world.noted("calls").is_empty() && world.record().is_null());

    assert_eq!(world.run(&[]).code(), 0);
    assert_eq!(unasked(), 0, "what is trusted is not asked about again");
    let spec = world.sandbox.crew_home().join("fleets/repo/attempts/a.1.json");
    assert_eq!(within(&["fleet", "attempt", &spec.display().to_string()]), 1);
    assert_eq!(world.begun("a"), [1]);
}

#[test]
fn a_task_starts_from_earlier_work_and_tasks_that_touch_the_same_files_run_in_turn() {
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
fn a_task_folder_is_found_at_the_root_of_the_repository_if_none_is_nearer() {
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
fn tasks_that_declare_a_shared_file_all_land_and_every_other_outcome_is_explained() {
    let mut world = FleetWorld::new(ADDS).file("shared", "the first line\n");
    for task in SAID.into_iter().chain(UNSAID) {
        let what = if SAID.contains(&task) {
            "touches = ['shared']"
        } else {
            &format!("after = {SAID:?}")
        };
        world = world.tasks(&[task], &format!("{what}\nverify = ['grep -qx {task} shared']"));
    }
    let world = world.terms("slots = 5").shared().ready();
    let ran = world.start(&["--land"]).wait(Duration::from_secs(300));
    for task in SAID {
        assert_eq!((task, world.state(task)), (task, "completed".into()), "{}", world.task(task));
        assert_eq!((task, world.begun(task)), (task, vec![1]), "nothing to settle");
    }
    let subjects = world.git_there(&["log", "--format=%s", "main"]);
    let main = world.shown("main", "shared");
    let (blocked, landed): (Vec<&str>, Vec<&str>) =
        SAID.into_iter().chain(UNSAID).partition(|task| world.state(task) == "blocked");
    assert!(blocked.len() < UNSAID.len(), "the first of them lands");
    for task in landed {
        let commits = subjects.lines().filter(|line| *line == format!("Do task {task}.")).count();
        let lines = main.lines().filter(|line| *line == task).count();
        assert_eq!((task, commits, lines), (task, 1, 1), "{main}");
    }
    for task in &blocked {
        let reason = &world.task(task)["state"]["reason"]["of"];
        assert!(reason["refusal"]["conflict"].is_array(), "{}", world.why(task));
        assert!(world.work(task, "shared").lines().any(|line| line == *task), "its branch has it");
        assert_eq!((world.begun(task), world.attempt(task)), (vec![1, 2], 2), "sent back once");
    }
    let expected = if blocked.is_empty() { 0 } else { 13 };
    assert_eq!((ran.code(), main.matches("<<<<").count()), (expected, 0), "{ran:#?}");
}

#[test]
fn variables_of_a_calling_git_reach_no_agent_setup_or_check() {
    let agent = format!("echo x > own; git add -A; git commit -qm own; {ONE}");
    let world = FleetWorld::new(&agent)
        .tasks(&["a"], "verify = ['git rev-parse HEAD >> $NOTES/heads; test -e work-a']")
        .terms("setup = 'git rev-parse --git-dir >> $NOTES/dirs'")
        .shared()
        .ready();
    let own = world.sandbox.file(".git");
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(["fleet", "run", "tasks", "--yes", "--land"]);
    command.env("GIT_DIR", &own).env("GIT_WORK_TREE", world.sandbox.repository());
    command.env("GIT_INDEX_FILE", own.join("index"));
    let heads = || world.sandbox.git(&["for-each-ref", "refs/heads", "--format=%(objectname)"]);
    let before = heads();
    let ran = Running::start(command, None).wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
    let status = world.sandbox.git(&["status", "--porcelain"]);
    assert_eq!((heads(), &*status), (before.clone(), ""));
    assert_eq!(["own", "work-a"].map(|file| world.shown("main", file)), ["x\n", "1\n"]);
    assert!(world.noted("dirs").lines().all(|line| line == ".git"), "{}", world.noted("dirs"));
    assert!(world.noted("heads").lines().any(|head| head != before), "{}", world.noted("heads"));
}

#[test]
fn a_persons_refs_with_names_like_a_fleets_cause_no_failure() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    for name in [["branch", "fleet"], ["branch", "crew"], ["tag", "main"], ["tag", "fleet"]] {
        world.sandbox.git(&name);
    }
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.work("a", "work-a")), (0, "1\n".into()), "{ran:#?}");
}

#[test]
fn the_files_of_a_fleet_are_private_whatever_the_umask() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "verify = ['test -e work-a']").shared().ready();
    let mut open = world.sandbox.command("sh");
    open.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(world.sandbox.build().path());
    open.args(["fleet", "run", "tasks", "--yes", "--push"]);
    let ran = Running::start(open, None).wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let folder = world.sandbox.crew_home().join("fleets");
    let mut found = world.sandbox.command("find");
    // What is in a clone has the modes that git gives it: the folder around it is closed.
    found.arg(&folder).args(["-name", "a.1", "-prune", "-o", "-perm", "/077", "-print"]);
    assert_eq!(Running::start(found, None).wait(LONG).success(), "");
    let fleet = folder.join("repo");
    let mode = std::fs::metadata(&fleet).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode, fleet.join("a.1").is_dir()), (0o700, true));
}

#[test]
fn terminal_codes_reach_no_line_page_log_or_commit() {
    let codes = r"\033[31m\033]0;title\007\033[2J";
    let prints = format!("printf '{codes}%s\\n'");
    let world = FleetWorld::new(&format!(
        "{prints} agent; {prints} error >&2; echo x > \"$(printf '{codes}name')\"
        git add -A; git commit -qm \"$(printf '{codes}subject')\"; {ONE}"
    ));
    let terms = format!(
        "slots = 1\nsetup = '''{prints} setup'''\n[land]\ncheck = ['''{prints} check; test ! -e work-b''']"
    );
    let world = world
        .file("tasks/a.md", "\u{1b}[31mRed\u{1b}[0m task.\n")
        .tasks(&["b"], "max-iterations = 2")
        .terms(&terms)
        .shared()
        .ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("b")), (13, "blocked".into()), "{ran:#?}");
    let pages = [
        &["fleet", "status"][..],
        &["fleet", "status", "--json"],
        &["show", "repo/a"],
        &["show", "repo/b"],
        &["diff", "repo/b"],
        &["status"],
    ];
    let mut texts: Vec<String> = pages.iter().map(|page| world.crew(page).stdout).collect();
    texts.extend([ran.stdout, ran.stderr, world.log_of("a"), world.log_of("b")]);
    texts.push(world.git_there(&["log", "-1", "--format=%B", "main"]));
    for text in texts {
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}

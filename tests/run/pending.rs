//! Pending steps at the end of a loop: crew is killed in a step after the record of the end, and
//! the next crew completes it.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{CLAIM, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox};
use crate::spawned::{Ran, Running};

/// An agent's step that changes a file and claims that all is done.
const DONE: &str = "echo right >> work.txt; echo '<promise>COMPLETE</promise>'";
const RUN: [&str; 5] = ["run", "Write a line", "--commit", "--push", "--stall=0"];

/// A world with a remote, whose crew dies the first time it starts a git process with `word` among
/// its arguments, or reacts to the end if that is "reaction". `first` runs before that.
fn killing_at(word: &str, first: &str, steps: &[&str]) -> World {
    let world = World::new(steps).with_origin();
    let notes = world.note("").display().to_string();
    let kill = |first: &str| {
        format!(
            "if mkdir '{notes}killed' 2> /dev/null; then {first}\nkill -9 $PPID; sleep 1; exit 1; fi"
        )
    };
    let reacts = if word == "reaction" { kill("") } else { String::new() };
    world.settings(&format!(
        "[on]\nfinish = \"\"\"{reacts}\necho $CREW_OUTCOME >> '{notes}finish'\"\"\"\n"
    ));
    let is_meant = format!("case \"$(cat /proc/$PPID/comm) $* \" in crew*' {word} '*)");
    world
        .sandbox
        .program("git", &format!("{is_meant} {};; esac\nexec /usr/bin/git \"$@\"", kill(first)));
    world
}

impl World {
    #[track_caller]
    fn is_killed(&self, arguments: &[&str]) {
        let ran = self.crew(arguments);
        assert_eq!(ran.status.code(), None, "{ran:#?}");
    }

    /// Whether all is committed, and all commits are on the remote.
    pub(super) fn is_published(&self) -> bool {
        let head = self.sandbox.git(&["rev-parse", "HEAD"]);
        let there = self.sandbox.git(&["ls-remote", "origin", "refs/heads/main"]);
        self.sandbox.git(&["status", "--porcelain"]).is_empty() && there.starts_with(&head)
    }

    /// The locks in git's folder that git created.
    pub(super) fn locks(&self) -> String {
        let mut find = self.sandbox.command("find");
        find.args([".git", "-name", "*.lock", "!", "-name", "crew*"]);
        Running::start(find, None).wait(DEADLINE).success()
    }

    #[track_caller]
    fn has_paid(&self, ran: &Ran) {
        assert!(self.is_published(), "{ran:#?}");
        assert_eq!(self.locks(), "", "{ran:#?}");
        let shown = self.loops().pop().unwrap();
        assert_eq!(
            (&shown["pending"], &shown["git_undone"]),
            (&json!([]), &Value::Null),
            "{shown:#}"
        );
        assert_eq!(std::fs::read_to_string(self.note("finish")).unwrap(), "completed\n");
    }
}

#[test]
fn a_resume_completes_the_steps_that_a_killed_crew_left() {
    let all = ["commit", "push", "reaction"];
    let table = [
        ("-F", &all[..], ", not committed", "not committed yet · not pushed yet"),
        ("update-ref", &all[..], ", not committed", "not committed yet · not pushed yet"),
        ("--short", &all[..], ", not committed", "not committed yet · not pushed yet"),
        ("push", &all[1..], ", not pushed", "not pushed yet"),
        ("reaction", &all[2..], ", reaction pending", "its reaction to the end has not run yet"),
    ];
    for (word, pending, in_the_list, on_the_page) in table {
        let world = killing_at(word, "", &[DONE]);
        world.is_killed(&RUN);
        let shown = world.the_loop();
        assert_eq!((&shown["outcome"], &shown["pending"]), (&json!("completed"), &json!(pending)));
        let list = world.crew(&["status", "--all"]).success();
        assert!(list.contains(in_the_list), "{word}: {list}");
        let page = world.crew(&["show"]).success();
        let next = format!("crew resume {} completes the pending steps", world.id());
        assert!(page.contains(on_the_page), "{word}: {page}");
        assert!(page.replace("\n          ", " ").contains(&next), "{word}: {page}");
        let ran = world.crew(&["resume"]);
        assert_eq!(ran.code(), 0, "{word}: {ran:#?}");
        world.has_paid(&ran);
        let again = world.crew(&["resume"]);
        assert_eq!((again.code(), world.calls()), (1, 1), "{again:#?}");
        assert!(again.stderr.contains("is completed\n"), "{again:#?}");
    }
}

#[test]
fn the_next_start_completes_pending_steps_unless_the_tree_has_changed() {
    for word in ["-F", "push", "reaction"] {
        let world = killing_at(word, "", &[DONE, CLAIM]);
        world.is_killed(&RUN);
        world.settings("");
        let ran = world.crew(&["run", "Look again"]);
        assert_eq!(ran.code(), 0, "{ran:#?}");
        assert!(ran.stderr.contains(" ended with pending steps: "), "{ran:#?}");
        assert!(world.is_published(), "{word}: {ran:#?}");
        assert_eq!(world.loops()[1]["pending"], json!([]), "{word}");
    }
    let world = killing_at("-F", "", &[DONE, CLAIM]);
    world.is_killed(&RUN);
    let id = world.id();
    world.sandbox.write("mine.txt", "not for a commit of crew's\n");
    let ran = world.crew(&["run", "Look again"]);
    let note = format!(
        "not committed yet · not pushed yet · its reaction to the end has not run yet · crew resume {id} does that"
    );
    assert!(ran.stderr.contains(&note), "{ran:#?}");
    assert!(!world.is_published());
}

#[test]
fn a_loop_that_is_killed_at_a_commit_commits_before_it_continues() {
    let world = killing_at("-F", "", &[WORK, DONE]);
    world.is_killed(&RUN);
    let ran = world.crew(&["resume"]);
    assert_eq!((ran.code(), world.calls()), (0, 2), "{ran:#?}");
    assert_eq!(world.sandbox.git(&["rev-list", "--count", "HEAD"]), "3", "{ran:#?}");
    world.has_paid(&ran);
}

#[test]
fn a_commit_pending_on_another_branch_stays_pending() {
    let world = killing_at("-F", "", &[DONE]);
    world.is_killed(&RUN);
    world.sandbox.git(&["switch", "--quiet", "--create", "other"]);
    let ran = world.crew(&["resume"]);
    assert_eq!(ran.code(), 1, "{ran:#?}");
    assert!(ran.stderr.contains("is completed, but not committed yet"), "{ran:#?}");
    world.sandbox.git(&["switch", "--quiet", "main"]);
    let ran = world.crew(&["resume"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    world.has_paid(&ran);
}

#[test]
fn locks_left_by_a_killed_git_process_are_removed() {
    let lock = "touch .git/HEAD.lock .git/index.lock .git/refs/heads/main.lock .git/config.lock";
    let world = killing_at("update-ref", lock, &[DONE]);
    world.is_killed(&RUN);
    assert_eq!(world.locks().lines().count(), 4);
    // While any git works in the repository, they may be that one's.
    let goes = world.note("goes").display().to_string();
    let alias = format!("alias.w=!until test -e '{goes}'; do sleep 0.05; done");
    let mut git = world.sandbox.command("git");
    git.args(["-c", &alias, "w"]);
    let git = Running::start(git, None);
    let ran = world.crew(&["resume"]);
    assert_eq!((ran.code(), world.locks().lines().count()), (1, 4), "{ran:#?}");
    assert!(ran.stderr.contains("another git process holds a lock here"), "{ran:#?}");
    std::fs::write(&goes, "").unwrap();
    git.wait(DEADLINE);
    let ran = world.crew(&["resume"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    world.has_paid(&ran);
    // Here only git is killed: the crew that lives finds them.
    let world = killing_at("update-ref", &format!("{lock}; kill -9 $$"), &[WORK, DONE]);
    let ran = world.crew(&RUN);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!(ran.stdout.matches("Commit failed").count(), 1, "{ran:#?}");
    world.has_paid(&ran);
}

#[test]
fn a_kill_after_any_record_of_a_run_loses_no_step() {
    let mut kills = 0;
    for nth in 2.. {
        let fault = format!("record.after#{nth}=kill");
        let world = World::of(Sandbox::new().with_faults(), &[WORK, DONE]).with_origin();
        let mut command = world.sandbox.command(world.sandbox.build().path());
        command.args(RUN).env("CREW_FAULT", fault);
        let ran = Running::start(command, None).wait(DEADLINE);
        if ran.status.code().is_some() {
            break;
        }
        kills += 1;
        let shown = world.the_loop();
        if shown["outcome"] != "completed" || shown["pending"] != json!([]) {
            let resumed = world.crew(&["resume"]);
            assert_eq!(resumed.code(), 0, "{nth}: {resumed:#?}");
        }
        assert!(world.is_published(), "{nth}: {ran:#?}");
        assert_eq!(world.the_loop()["pending"], json!([]), "{nth}");
    }
    assert!(kills > 4, "{kills}");
}

#[test]
fn variables_of_a_calling_git_reach_no_child() {
    let seen = |who: &str| format!("env | grep '^GIT_' | cut -d= -f1 > \"$notes/{who}\"");
    let world =
        World::new(&[&format!("{}; git commit -qm mine --allow-empty; {DONE}", seen("agent"))]);
    let notes = world.note("").display().to_string();
    let shown = |who: &str| seen(who).replace("$notes/", &notes);
    world.settings(&format!("[on]\nfinish = '''{}'''\n", shown("reaction")));
    let other = world.sandbox.root().join("other");
    world.sandbox.git(&["init", "--quiet", &other.display().to_string()]);
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(["run", "Do it", "--commit", "--verify", &shown("check")]);
    command.env("GIT_DIR", other.join(".git")).env("GIT_WORK_TREE", &other);
    command.env("GIT_INDEX_FILE", other.join(".git/index")).env("GIT_PREFIX", "");
    command.env("GIT_CONFIG_PARAMETERS", "'user.name'='Evil'");
    command.env("GIT_LITERAL_PATHSPECS", "1").env("GIT_OBJECT_DIRECTORY", &other);
    let ran = Running::start(command, None).wait(DEADLINE);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    for who in ["agent", "check", "reaction"] {
        let names = std::fs::read_to_string(world.note(who)).unwrap();
        let of_the_caller = |name: &&str| {
            ["DIR", "WORK_TREE", "INDEX_FILE", "PREFIX", "CONFIG_PARAMETERS", "LITERAL_PATHSPECS"]
                .map(|it| format!("GIT_{it}"))
                .contains(&(*name).to_owned())
                || name.starts_with("GIT_OBJECT")
        };
        assert_eq!(names.lines().find(of_the_caller), None, "{who}: {names}");
        assert!(names.contains("GIT_AUTHOR_NAME"), "a person's own stay: {who}: {names}");
    }
    assert_eq!(world.sandbox.git(&["rev-list", "--count", "HEAD"]), "3", "{ran:#?}");
    let of_the_other = other.join(".git/refs/heads");
    assert_eq!(std::fs::read_dir(of_the_other).unwrap().count(), 0, "{ran:#?}");
}

#[test]
fn processes_that_the_last_check_leaves_running_are_ended() {
    let world = World::new(&[DONE]);
    let notes = world.note("").display().to_string();
    let leave = "setsid sleep 600 > /dev/null 2>&1 &";
    let check = format!("{leave} echo $! >> {notes}left; env -i {leave} echo $! >> {notes}left");
    let ran = world.crew(&["run", "Do it", "--verify", &check]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let left = std::fs::read_to_string(world.note("left")).unwrap();
    // Those of the checks before the first iteration, too.
    assert!(left.lines().count() >= 4, "{left}");
    let living: Vec<&str> = left.lines().filter(|id| super::kills::lives(id)).collect();
    assert_eq!(living, [""; 0], "{ran:#?}");
}

#[test]
fn a_completed_loop_says_how_many_changed_files_are_in_no_commit() {
    let hidden = "echo hello.sh >> .git/info/exclude; echo 'echo Hello' > hello.sh; echo x > dist/x; \
                  echo y > dist/y";
    let world = World::new(&[&format!("{hidden}; {DONE}")]);
    world.sandbox.write("dist/old", "");
    world.sandbox.write(".gitignore", "dist/\n");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let ran = world.crew(&["run", "Say hello", "--commit"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let said = "3 changed files in no commit, ignored: dist/, hello.sh";
    assert!(ran.stdout.contains(said), "{ran:#?}");
    let shown = world.crew(&["show", "--json"]).success();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["page"]["ignored_files"], json!({"dist/": 2, "hello.sh": 1}), "{shown:#}");
    let ran = world.crew(&["run", "Say hello"]);
    assert!(!ran.stdout.contains("in no commit"), "nobody asked for commits: {ran:#?}");
}

#[test]
fn a_running_git_step_ends_cleanly_when_crew_is_killed() {
    let world = World::new(&[DONE]).with_origin();
    let notes = world.note("").display().to_string();
    world.sandbox.program(
        "git",
        &format!(
            "case \" $* \" in *' push '*) trap 'rm .git/shallow.lock; echo asked > {notes}asked; exit' TERM
             touch .git/shallow.lock {notes}pushes; while :; do sleep 0.01; done;; esac
             exec /usr/bin/git \"$@\""
        ),
    );
    let running = world.sandbox.start_crew(&RUN);
    crate::sandbox::poll_until("git pushes", || world.note("pushes").exists());
    running.signal(Signal::KILL);
    running.wait(DEADLINE);
    crate::sandbox::poll_until("git was asked to end", || world.note("asked").exists());
    assert_eq!(world.locks(), "");
}

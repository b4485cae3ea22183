use tempfile::TempDir;

use super::*;
use crate::fleet::record::CloneSetup;
use crate::fleet::spec::{CloneOrigin, SlotTurn};
use engine::fixture::a_loop;
use engine::fleet::{Carried, Refusal};
use engine::record::TaskOfFleet;
use world::process::fixture::run_alone;

/// A repository `repo` with one commit on `main`, and shell commands run in it.
struct Yard(TempDir);

impl Yard {
    fn new(act: &str) -> Self {
        let yard = Self(testkit::folder());
        yard.sh(".", "git init -q -b main repo");
        yard.identify("repo");
        yard.sh("repo", "echo one > file; git add .; git commit -qm first");
        yard.sh("repo", act);
        yard
    }

    fn path(&self, name: &str) -> PathBuf {
        disk::real_path(self.0.path()).unwrap().join(name)
    }

    fn sh(&self, folder: &str, line: &str) -> String {
        let ended = Call::shell(line, &self.path(folder)).run(|| false).unwrap();
        assert_eq!(ended.cause(), ExitCause::Exit(0), "{line}: {}", ended.text());
        ended.text()
    }

    fn identify(&self, folder: &str) {
        self.sh(folder, "git config user.name A; git config user.email a@example.com");
    }

    fn spec(&self) -> AttemptSpec {
        let (name, task) = ("shop".to_owned(), id("vat"));
        AttemptSpec {
            task: TaskOfFleet { name, task },
            number: 1,
            branch: "fleet/shop/vat/1".to_owned(),
            contract: a_loop().contract,
            carried: Carried::default(),
            sent_back: None,
            accepts_test_changes: false,
            is_resumed: false,
            messages: Vec::new(),
            origin: CloneOrigin {
                base: "main".to_owned(),
                start: None,
                stands_on: None,
                before: Vec::new(),
                source: Source::Local { repository: self.path("repo"), url: None },
            },
            clones: CloneSetup { setup: None, setup_timeout_s: 0, include: None, trusted: None },
            turn: SlotTurn { slots: 1, priority: 0 },
        }
    }

    /// Makes the clone, and returns the log too.
    fn make(&self, spec: &AttemptSpec) -> (Result<AttemptClone>, Vec<String>) {
        let mut lines = Vec::new();
        let mut note = |line: &str| lines.push(line.to_owned());
        let commands = FleetCommands::new(self.path("groups"), &|| false, &mut note);
        let made = make_clone(spec, &self.path("fleet/vat.1"), &commands);
        drop(commands);
        (made, lines)
    }

    fn commit(&self, name: &str) -> String {
        git::find_commit(&self.path("repo"), name).unwrap()
    }
}

fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

#[test]
fn a_clone_is_made_once_with_the_work_of_earlier_tasks() {
    let yard = Yard::new(
        "git checkout -qb a; echo a > a; git add a; git commit -qm a
        git checkout -q main; printf '*.env\\n' > .git/info/exclude; echo secret > x.env",
    );
    let mut spec = yard.spec();
    spec.origin.before = vec![(id("a"), yard.commit("refs/heads/a"))];
    spec.clones.include = Some("x.env\n".to_owned());
    let made = yard.make(&spec).0.unwrap();
    assert!(made.is_new && made.conflicts.is_empty());
    assert_eq!(made.path, yard.path("fleet/vat.1"));
    assert_eq!(yard.sh("fleet/vat.1", "cat a file x.env"), "a\none\nsecret\n");
    yard.sh("fleet/vat.1", "echo mine > x.env; echo work > file");
    assert!(!yard.make(&spec).0.unwrap().is_new);
    assert_eq!(
        yard.sh("fleet/vat.1", "cat x.env file; ls ..; stat -c %a .."),
        "mine\nwork\nvat.1\n700\n"
    );
    yard.sh("fleet/vat.1", "rm -rf .git");
    assert!(
        yard.make(&spec).0.unwrap_err().to_string().contains("no longer a repository of its own")
    );
}

#[test]
fn a_conflict_with_an_earlier_task_leaves_no_clone() {
    let yard = Yard::new(
        "git checkout -qb a; echo a > file; git commit -qam a
        git checkout -q main; echo main > file; git commit -qam main",
    );
    let mut spec = yard.spec();
    spec.origin.before = vec![(id("a"), yard.commit("refs/heads/a"))];
    let fault = yard.make(&spec).0.unwrap_err();
    let why = "conflict: a, which comes before, and main change the same lines in file";
    assert_eq!(fault.downcast_ref::<WorkConflict>().unwrap().to_string(), why);
    assert!(!disk::exists(&yard.path("fleet/vat.1")));
}

#[test]
fn the_base_is_merged_into_a_branch_that_was_sent_back() {
    let yard = Yard::new(
        "git checkout -qb a; echo a > file; git rm -q --cached file; rm file
        git commit -qm a; git checkout -q main; echo main > file; echo new > new; git add .
        git commit -qam main; git init -q --bare ../hub.git; git push -q ../hub.git main",
    );
    let mut spec = yard.spec();
    spec.origin.start = Some(yard.commit("refs/heads/a"));
    spec.sent_back = Some(Refusal::Conflict(vec!["file".to_owned()]));
    let url = yard.path("hub.git").display().to_string();
    spec.origin.source = Source::Local { repository: yard.path("repo"), url: Some(url) };
    // The remote has moved since the user fetched.
    yard.sh(
        "repo",
        "git commit -q --allow-empty -m later; git push -q ../hub.git main
        git reset -q --hard HEAD~1",
    );
    let conflicts = yard.make(&spec).0.unwrap().conflicts;
    assert_eq!(conflicts, ["file"]);
    let merge = "git log -1 --format=%p HEAD | wc -w";
    assert_eq!(yard.sh("fleet/vat.1", merge).trim(), "2");
    let newest = "git log -1 --format=%s refs/remotes/origin/main; git status --porcelain; cat new";
    assert_eq!(yard.sh("fleet/vat.1", newest), "later\nnew\n");
    assert_eq!(yard.make(&spec).0.unwrap().conflicts, conflicts);
}

#[test]
fn work_begins_at_the_base_of_the_remote_and_not_at_the_users_local_branch() {
    let private = "echo private > private; git add .; git commit -qm private";
    let acts = [
        // Nothing was ever fetched, and a commit is on this machine alone.
        private.to_owned(),
        // The remote has dropped a commit since the user pushed it.
        format!(
            "{private}; git remote add origin ../hub.git; git push -q -u origin main
            git push -q --force ../hub.git main~1:main"
        ),
    ];
    for act in acts {
        let yard = Yard::new("git init -q --bare ../hub.git; git push -q ../hub.git main");
        let pushed = yard.commit("refs/heads/main");
        yard.sh("repo", &act);
        assert_ne!(yard.commit("refs/heads/main"), pushed);
        let url = yard.path("hub.git").display().to_string();
        let source = Source::Local { repository: yard.path("repo"), url: Some(url) };
        yard.make(&AttemptSpec {
            origin: CloneOrigin { source, ..yard.spec().origin },
            ..yard.spec()
        })
        .0
        .unwrap();
        let names = "HEAD refs/heads/main refs/remotes/origin/main";
        let found = yard.sh("fleet/vat.1", &format!("git rev-parse {names}; ls"));
        assert_eq!(found, format!("{pushed}\n{pushed}\n{pushed}\nfile\n"), "{act}");
    }
}

#[test]
fn a_setup_runs_once_with_a_bounded_log_and_leaves_nothing_running() {
    run_alone(|| {
        let yard = Yard::new("");
        let mut spec = yard.spec();
        let setup = "seq 100000; echo x >> ran; setsid sleep 60 & echo $! > pid; sleep 0.2";
        spec.clones.setup = Some(setup.to_owned());
        let (made, lines) = yard.make(&spec);
        made.unwrap();
        let (first, last) = (&lines[0], lines.last().unwrap());
        assert_eq!((&**first, &**last, lines.len()), ("setup: 1", "setup: 100000", 221));
        assert_eq!(lines[200], "setup: (99780 lines are left out)");
        assert_eq!(yard.make(&spec).1, Vec::<String>::new());
        assert_eq!(yard.sh("fleet/vat.1", "cat ran"), "x\n");
        if cfg!(target_os = "linux") {
            // Its parent may not have reaped it yet: then it has no words any more.
            yard.sh("fleet/vat.1", "! grep -qsa . /proc/$(cat pid)/cmdline");
        }
        let fails = |setup: &str, within| {
            spec.clones.setup = Some(setup.to_owned());
            spec.clones.setup_timeout_s = within;
            yard.make(&spec).0.unwrap_err().to_string()
        };
        let mut fails = fails;
        assert_eq!(fails("echo no; exit 3", 0), "setup `echo no; exit 3` exits 3: no");
        assert_eq!(fails("sleep 60", 1), "setup `sleep 60` took longer than 1 s");
    });
}

#[test]
fn a_removed_clone_loses_no_commit() {
    let yard = Yard::new("");
    yard.make(&yard.spec()).0.unwrap();
    yard.identify("fleet/vat.1");
    yard.sh("fleet/vat.1", "git checkout -q --detach; echo d > d; git add d; git commit -qm precious
        git rev-parse HEAD > ../stray; git checkout -q fleet/shop/vat/1
        echo w > w; git add w; git commit -qm work; mkdir -p cache/m; echo > cache/m/f; chmod 500 cache/m");
    let (repository, path) = (yard.path("repo"), yard.path("fleet/vat.1"));
    let branch = "fleet/shop/vat/1";
    let fetched =
        clone::bring_branch(&repository, &path, branch, "refs/remotes/crew/shop/vat").unwrap();
    let refused = remove_clone(&repository, &path, branch, Some(&"7".repeat(40))).unwrap_err();
    assert!(refused.to_string().contains("no longer") && disk::exists(&path), "{refused}");
    let kept = remove_clone(&repository, &path, branch, fetched.as_deref()).unwrap();
    let stray = yard.sh("fleet", "cat stray");
    assert_eq!(yard.commit(&kept[0]), stray.trim());
    assert!(kept.len() == 1 && kept[0].starts_with("refs/crew/kept/shop/vat/1/"), "{kept:?}");
    assert_eq!(yard.sh("fleet", "ls"), "stray\n");
    let again = remove_clone(&repository, &path, branch, fetched.as_deref()).unwrap();
    assert_eq!(again, Vec::<String>::new());
    assert!(!disk::exists(&path));
}

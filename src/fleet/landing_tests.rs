//! Landings at a remote in a folder: which work becomes a commit of the base, and which is refused.

use std::cell::RefCell;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::fleet::record::{CloneSetup, FleetLimits};
use engine::fixture::a_loop;
use engine::fleet::{LandingMode, Remote};
use engine::record::Role;
use world::files::disk::{self, Durability};
use world::git::steps::read_trusted;
use world::process::{Call, ExitCause};

/// A repository with a remote, and the clone of an attempt whose branch is fetched into it.
struct Yard {
    root: TempDir,
    terms: FleetTerms,
    record: TaskRecord,
    contract: Contract,
    notes: RefCell<Vec<String>>,
}

impl Yard {
    /// `first` makes the files of the first commit, `work` those of the task's only one.
    fn new(first: &str, work: &str) -> Self {
        let root = testkit::folder();
        let top = disk::real_path(root.path()).unwrap();
        let remote =
            Remote { name: "origin".to_owned(), url: top.join("origin.git").display().to_string() };
        let terms = FleetTerms {
            name: "shop".to_owned(),
            repository: top.join("repo"),
            folder: "tasks".to_owned(),
            base: "main".to_owned(),
            executor: "local".to_owned(),
            remote: Some(remote),
            landing: LandingMode::Main,
            clones: CloneSetup { setup_timeout_s: 60, ..CloneSetup::default() },
            limits: FleetLimits { slots: 1, ..FleetLimits::default() },
            ..FleetTerms::default()
        };
        let record = TaskRecord { attempt: 1, ..TaskRecord::default() };
        let contract = Contract { checks: Vec::new(), ..a_loop().contract };
        let mut yard = Self { root, terms, record, contract, notes: RefCell::default() };
        yard.sh(".", "git init -q --bare -b main origin.git; git clone -q origin.git repo 2>&1");
        yard.sh("repo", "git checkout -q -B main; git config user.name Somebody");
        yard.sh("repo", "git config user.email somebody@example.com; echo one > file");
        yard.sh(
            "repo",
            &format!("{first}\ngit add -A; git commit -qm first; git push -q origin main"),
        );
        yard.terms.clones.trusted = read_trusted(&yard.terms.repository);
        yard.record.work.stands_on = Some(yard.id("repo", "main"));
        yard.sh(".", "mkdir -p home/fleets/shop; git clone -q origin.git home/fleets/shop/vat.1");
        yard.agent("git config user.name Agent; git config user.email agent@example.com");
        yard.agent("git checkout -q -b fleet/shop/vat/1");
        yard.work(work);
        yard
    }

    fn path(&self, name: &str) -> PathBuf {
        disk::real_path(self.root.path()).unwrap().join(name)
    }

    /// Runs a script that must succeed, with no configuration except the repository's.
    fn sh(&self, folder: &str, script: &str) -> String {
        let none = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null")];
        let who = [("GIT_ALLOW_PROTOCOL", "file")];
        let call = Call::shell(&format!("set -e\n{script}"), &self.path(folder));
        let ended =
            call.envs(none).envs(who).within(Duration::from_secs(60)).run(|| false).unwrap();
        assert_eq!(ended.cause(), ExitCause::Exit(0), "{script}: {}", ended.text());
        ended.text()
    }

    fn id(&self, folder: &str, name: &str) -> String {
        self.sh(folder, &format!("git rev-parse {name}")).trim().to_owned()
    }

    fn agent(&self, script: &str) -> String {
        self.sh("home/fleets/shop/vat.1", script)
    }

    /// Commits the result of a script on the task's branch, and fetches it.
    fn work(&mut self, script: &str) {
        self.agent(&format!("{script}\ngit add -A; git commit -q --allow-empty -m work"));
        self.fetch();
    }

    fn fetch(&mut self) {
        let clone = self.path("home/fleets/shop/vat.1");
        let refspec = "+refs/heads/fleet/shop/vat/1:refs/remotes/crew/shop/vat";
        self.sh(
            "repo",
            &format!(
                "git fetch -q --no-tags --no-recurse-submodules {} {refspec}",
                clone.display()
            ),
        );
        self.record.work.commit = Some(self.id("repo", "refs/remotes/crew/shop/vat"));
    }

    /// Makes another person's commit on the base of the remote.
    fn elsewhere(&self, script: &str) {
        self.sh(".", "rm -rf other; git clone -q -b main origin.git other 2>&1");
        self.sh("other", "git config user.name Other; git config user.email other@example.com");
        let push = "git add -A; git commit -qm other; git push -q origin HEAD:refs/heads/main";
        self.sh("other", &format!("{script}\n{push}"));
    }

    /// Merges the base into the branch, as an attempt does after a landing sent it back.
    fn merge(&mut self) -> Vec<String> {
        self.agent("git fetch -q origin refs/heads/main");
        let clone = self.path("home/fleets/shop/vat.1");
        let main = self.id("home/fleets/shop/vat.1", "FETCH_HEAD");
        let files = land::merge_to_conflicts(&clone, &main).unwrap();
        if !files.is_empty() {
            land::commit_markers(&clone, &files).unwrap();
        }
        self.record.work.stands_on = Some(main);
        self.record.refused.conflicts.clone_from(&files);
        self.fetch();
        files
    }

    fn checks(mut self, checks: &[&str]) -> Self {
        self.contract.checks = checks.iter().map(|run| Check::new(*run, Role::Verify)).collect();
        self
    }

    fn try_to_land(&self, stop: Stop<'_>) -> Result<PreparedLanding> {
        let task: TaskId = "vat".parse().unwrap();
        let branch = task.branch_name("shop", 1);
        prepare_landing(&Landing {
            home: &Home::at(&self.path("home")),
            terms: &self.terms,
            task: &task,
            record: &self.record,
            contract: &self.contract,
            message: &landing_message("shop", &task, "# Build the \u{1b}[31mvat\n\nmore", &branch),
            stop,
            note: &|line| self.notes.borrow_mut().push(line.to_owned()),
        })
    }

    fn land(&self) -> PreparedLanding {
        self.try_to_land(&|| false).unwrap()
    }

    /// The commit that may land.
    fn commit(&self) -> String {
        match self.land() {
            PreparedLanding::Ready { main, commit } => {
                assert_eq!(main, self.id("origin.git", "refs/heads/main"));
                commit
            }
            other => panic!("{other:?}"),
        }
    }

    /// Pushes a commit to the base as the coordinator does.
    fn push(&self, commit: &str) {
        self.sh("repo", &format!("git push -q origin {commit}:refs/heads/main"));
    }

    fn refused(&self) -> Refusal {
        match self.land() {
            PreparedLanding::Refused(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    fn red(&self) -> String {
        match self.refused() {
            Refusal::Red { run, output } => format!("{run}: {output}").trim().to_owned(),
            other => panic!("{other:?}"),
        }
    }
}

const NOBODY: &str = "true";

#[test]
fn a_branch_becomes_one_commit_with_its_modes_its_message_and_its_authors() {
    let mut yard = Yard::new(NOBODY, "printf '#!/bin/sh\\ntest -f other\\n' > run; chmod +x run");
    yard.agent("git commit -q --allow-empty -m 'two\n\nCo-authored-by: Ann <ann@example.com>'");
    yard.agent("git commit -q --allow-empty -m 'three\n\nCo-authored-by: Ann <ann@example.com>'");
    yard.fetch();
    yard.elsewhere("echo other > other");
    yard.sh("repo", "git config commit.cleanup strip; git config core.commentChar B");
    yard.terms.clones.trusted = read_trusted(&yard.terms.repository);
    let before = yard.sh("repo", "git show-ref; git config --list --local; git status --porcelain");
    let yard = yard.checks(&["./run", "test -f other", "! test -d tasks"]);
    let commit = yard.commit();
    let after = yard.sh("repo", "git show-ref; git config --list --local; git status --porcelain");
    assert_eq!(before, after);
    let shown = yard.sh("repo", &format!("git log -1 --format='%an %cn%n%B' {commit}"));
    insta::assert_snapshot!(shown.trim(), @"
    Somebody Somebody
    Build the vat

    Task vat of fleet shop, branch fleet/shop/vat/1.

    Co-authored-by: Ann <ann@example.com>
    ");
    let listed = yard.sh("repo", &format!("git ls-tree --format='%(objectmode) %(path)' {commit}"));
    assert_eq!(listed, "100644 file\n100644 other\n100755 run\n");
    assert_eq!(yard.id("repo", &format!("{commit}^@")), yard.id("origin.git", "main"));
    // Once it is there, the base has all of it.
    yard.push(&commit);
    assert_eq!(yard.land(), PreparedLanding::Ready { main: commit.clone(), commit });
}

#[test]
fn a_replaced_object_is_neither_checked_nor_pushed() {
    let check = "printf 'exit 1\\n' > check.sh";
    let yard = Yard::new(check, "echo work > work").checks(&["sh check.sh"]);
    let replace = "good=$(echo 'exit 0' | git hash-object -w --stdin)\n\
                   git replace -f $(git rev-parse HEAD:check.sh) $good; git pack-refs --all";
    yard.agent(replace);
    assert_eq!(yard.red(), "sh check.sh:");
    // The user's own repository may have one, and so may the clone after a check.
    yard.sh("repo", replace);
    yard.sh("home/fleets/shop/land", replace);
    assert_eq!(yard.red(), "sh check.sh:");
    let graft = "mkdir -p .git/info; git rev-parse HEAD > .git/info/grafts";
    yard.sh("home/fleets/shop/land", graft);
    let attributes = "echo '* filter=x' > .git/info/attributes\n\
                      git config filter.x.smudge 'sed s/1/0/'; git config core.hooksPath /tmp";
    yard.sh("home/fleets/shop/land", attributes);
    assert_eq!(yard.red(), "sh check.sh:");
}

#[test]
fn ignored_files_of_an_earlier_landing_are_removed_unless_they_are_kept() {
    let first =
        "echo gen.txt > .gitignore; echo cache >> .gitignore; echo 'echo 1 > gen.txt' > gen.sh";
    let mut yard = Yard::new(first, "echo work > work");
    yard.terms.clones.setup =
        Some("test ! -f gen.sh || sh gen.sh; mkdir -p cache; echo x >> cache/n".into());
    yard.terms.land_keep = vec!["cache".to_owned()];
    let mut yard = yard.checks(&["test -f gen.txt"]);
    yard.commit();
    yard.work("git rm -q gen.sh");
    assert_eq!(yard.red(), "test -f gen.txt:");
    assert_eq!(yard.sh("home/fleets/shop/land", "cat cache/n"), "x\nx\n");
}

#[test]
fn a_tag_with_the_name_of_a_branch_does_not_mislead_a_landing() {
    let mut yard = Yard::new(NOBODY, "echo work > work");
    yard.elsewhere("echo other > other");
    let evil = "git tag main $(git commit-tree -m evil HEAD^{tree}); git tag origin/main main";
    for folder in ["repo", "home/fleets/shop/vat.1", "origin.git"] {
        let who = "export GIT_AUTHOR_NAME=e GIT_AUTHOR_EMAIL=e@e GIT_COMMITTER_NAME=e \
                   GIT_COMMITTER_EMAIL=e@e;";
        yard.sh(folder, &format!("{who} {evil}"));
    }
    yard.record.work.stands_on = None;
    let main = yard.id("origin.git", "refs/heads/main");
    let commit = yard.commit();
    assert_eq!(yard.id("repo", &format!("{commit}^")), main);
}

#[test]
fn every_kind_of_conflict_is_sent_back_until_a_commit_after_the_merge_resolves_it() {
    let table = [
        (
            "text",
            "printf 'a\\nb\\nc\\n' > f",
            "printf 'a\\nB\\nc\\n' > f",
            "printf 'a\\nX\\nc\\n' > f",
        ),
        ("binary", "printf 'a\\0b' > f", "printf 'a\\0B' > f", "printf 'a\\0X' > f"),
        ("link", "ln -s a f", "ln -sf b f", "ln -sf c f"),
        ("deleted there", "echo a > f", "echo b > f", "git rm -q f"),
        ("deleted here", "echo a > f", "git rm -q f", "echo b > f"),
        ("added twice", "true", "echo a > f", "echo b > f"),
    ];
    for (kind, first, here, there) in table {
        let mut yard = Yard::new(first, here);
        yard.elsewhere(there);
        let conflict = Refusal::Conflict(vec!["f".to_owned()]);
        assert_eq!(yard.refused(), conflict, "{kind}");
        assert_eq!(yard.merge(), ["f"], "{kind}");
        assert_eq!(yard.refused(), conflict, "{kind}: the merge as it is");
        yard.work("echo more > more");
        assert_eq!(yard.refused(), conflict, "{kind}: another file");
        yard.work("rm -f f; echo both > f");
        yard.commit();
        // A history without the merge shows nothing.
        let tip = yard.record.work.commit.clone().unwrap();
        let rewrite = "git reset -q --soft $(git merge-base HEAD FETCH_HEAD); git commit -qm all";
        yard.agent(&format!("git fetch -q origin refs/heads/main; {rewrite}"));
        yard.fetch();
        assert_eq!(yard.refused(), conflict, "{kind}: rewritten");
        yard.agent(&format!("git reset -q --hard {tip}"));
        yard.fetch();
        // A later merge without a conflict leaves it settled.
        yard.elsewhere("echo next > next");
        assert!(yard.merge().is_empty(), "{kind}");
        yard.record.refused.conflicts = vec!["f".to_owned()];
        yard.commit();
    }
}

#[test]
fn conflict_markers_of_any_size_are_recognized_and_similar_lines_are_not() {
    let first = "printf '<<<<<<< mine\\na\\nb\\nc\\nd\\ne\\nf\\ng\\n' > f; \
                 echo 'f conflict-marker-size=10' > .gitattributes";
    let mut yard = Yard::new(first, "sed -i s/b/B/ f");
    yard.elsewhere("sed -i s/b/X/ f");
    let conflict = Refusal::Conflict(vec!["f".to_owned()]);
    assert_eq!(yard.refused(), conflict);
    yard.merge();
    assert!(yard.agent("cat f").contains("\n<<<<<<<<<< HEAD\n"));
    yard.work("sed -i s/g/G/ f");
    assert_eq!(yard.refused(), conflict, "another line of the file");
    yard.work("sed -i -e '/^<<<<<<<<<</d' -e '/^==========/d' -e '/^>>>>>>>>>>/d' f");
    yard.commit();
}

#[test]
fn a_commit_that_was_removed_from_the_base_does_not_return() {
    let mut yard = Yard::new(NOBODY, "echo work > work");
    yard.elsewhere("echo secret > secret");
    yard.agent("git fetch -q origin refs/heads/main; git rebase -q FETCH_HEAD");
    yard.record.work.stands_on = Some(yard.id("home/fleets/shop/vat.1", "FETCH_HEAD"));
    yard.fetch();
    yard.commit();
    yard.sh("origin.git", "git update-ref refs/heads/main refs/heads/main^");
    let taken_out = yard.record.work.stands_on.clone().unwrap();
    let why = format!(
        "main was rewritten: it lacks {}, which this branch holds",
        taken_out.get(..7).unwrap()
    );
    assert_eq!(yard.refused(), Refusal::Moved(why.clone()));
    // Also once it has moved on, whatever the branch has taken in since.
    yard.elsewhere("echo next > next");
    assert_eq!(yard.refused(), Refusal::Moved(why.clone()));
    yard.agent("git fetch -q origin refs/heads/main; git rebase -q FETCH_HEAD");
    yard.fetch();
    assert_eq!(yard.refused(), Refusal::Moved(why));
}

#[test]
fn only_a_person_lands_changes_to_files_of_the_fleet_or_of_crew() {
    for path in ["tasks/b.md", "TASKS/a.md", ".worktreeinclude", ".claude/branches/x/state.json"] {
        let make = format!("mkdir -p $(dirname {path}); echo x > {path}");
        let yard = Yard::new(NOBODY, &make);
        assert_eq!(yard.refused(), Refusal::Folder(path.to_owned()), "{path}");
    }
    let linked = Yard::new("mkdir d tasks; echo a > tasks/a.md", "git rm -qr tasks; ln -s d tasks");
    assert_eq!(linked.refused(), Refusal::Folder("tasks".to_owned()));
}

#[test]
fn each_check_runs_on_the_commit_whatever_earlier_checks_changed() {
    let script = "sed -i s/one/two/ file; git add file";
    let yard = Yard::new(NOBODY, "echo work > work").checks(&[script, "grep two file"]);
    assert_eq!(yard.red(), "grep two file:");
    let yard = yard.checks(&["git checkout -q HEAD^", "true"]);
    assert_eq!(yard.red(), "git checkout -q HEAD^: it checked out another commit, or a branch");
    let mut yard = yard.checks(&["test -f work"]);
    yard.terms.clones.setup = Some("echo two > file".to_owned());
    assert_eq!(yard.red(), "echo two > file: it changed files that are committed: file");
    yard.terms.clones.setup = Some("echo no room; exit 3".to_owned());
    let error = yard.try_to_land(&|| false).unwrap_err().to_string();
    assert_eq!(error, "setup `echo no room; exit 3` exits 3: no room");
    assert!(yard.notes.borrow().contains(&"setup: no room".to_owned()));
}

#[test]
fn leftovers_of_a_killed_git_process_or_an_earlier_landing_do_not_stop_a_landing() {
    let yard = Yard::new(NOBODY, "echo work > work");
    yard.commit();
    let locks = "for it in index HEAD ORIG_HEAD AUTO_MERGE config packed-refs shallow; do\n\
                 : > .git/$it.lock; done; : > .git/refs/heads/main.lock; : > .git/MERGE_HEAD";
    yard.sh("home/fleets/shop/land", locks);
    yard.commit();
    yard.sh("home/fleets/shop", "rm -rf land/.git; echo x > land/.git");
    yard.commit();
    yard.sh("home/fleets/shop", "rm -rf land; mkdir elsewhere; ln -s elsewhere land");
    yard.commit();
    assert_eq!(yard.sh("home/fleets/shop", "ls -A elsewhere"), "");
    yard.sh("home/fleets/shop/land", "rm file; mkdir file; ln -s ../elsewhere work2");
    yard.commit();
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_a_check_leaves_in_another_session_is_ended() {
    let left = "setsid sh -c 'echo $$ > ../left; exec sleep 300' > /dev/null 2>&1 < /dev/null &\n\
                until test -s ../left; do sleep 0.05; done";
    let yard = Yard::new(NOBODY, "echo work > work").checks(&[left]);
    yard.commit();
    let pid = yard.sh("home/fleets/shop", "cat left");
    // Its parent may not have reaped it yet: then it has no words any more.
    let words = Path::new("/proc").join(pid.trim()).join("cmdline");
    assert_eq!(disk::read_text(&words, 4096).ok().flatten().unwrap_or_default(), "", "{pid}");
}

#[test]
fn a_shallow_or_partial_repository_lands_like_a_complete_one() {
    for depth in ["--depth=1", "--filter=blob:none"] {
        let mut yard = Yard::new("mkdir 'a b'; echo x > 'a b/c'", "echo work > work");
        yard.sh("origin.git", "git config uploadpack.allowFilter true");
        let clone = format!("git clone -q {depth} --no-checkout file://$PWD/origin.git repo");
        yard.sh(".", &format!("mv repo whole; {clone}"));
        yard.sh("repo", "git config user.name Some; git config user.email some@example.com");
        yard.terms.clones.trusted = read_trusted(&yard.terms.repository);
        yard.elsewhere("echo other > other");
        yard.work("echo more > more");
        // What a shallow repository lacks cannot be compared.
        yard.record.work.stands_on = None;
        let yard = yard.checks(&["test -f 'a b/c' && test -f work && test -f other"]);
        yard.push(&yard.commit());
    }
}

#[test]
fn a_landing_that_is_stopped_has_no_result() {
    let yard = Yard::new(NOBODY, "echo work > work").checks(&["sleep 100"]);
    let begun = clock::now().awake_ms;
    let stop = || clock::now().awake_ms > begun + 1500;
    assert_eq!(yard.try_to_land(&stop).unwrap(), PreparedLanding::Stopped);
}

#[test]
fn the_commit_of_a_submodule_must_be_at_its_remote_before_the_landing() {
    let first = "git init -q --bare -b main ../sub.git; git clone -q ../sub.git ../made 2>&1\n\
                 (cd ../made; git config user.name S; git config user.email s@e; echo 1 > s\n\
                 git add s; git commit -qm s; git push -q origin HEAD:main)\n\
                 git -c protocol.file.allow=always submodule --quiet add ../sub.git lib";
    let mut yard = Yard::new(first, NOBODY);
    yard.agent("git -c protocol.file.allow=always submodule --quiet update --init");
    let own = "cd lib; git config user.name A; git config user.email a@e; echo 2 > s; \
               git commit -qam two";
    yard.work(&format!("({own})"));
    let yard = yard.checks(&["test $(cat lib/s) = 2"]);
    let Refusal::Incomplete(why) = yard.refused() else { panic!("not incomplete") };
    assert!(
        why.starts_with("commits of submodules are on no remote: lib; push them first: git -C ")
    );
    let (hub, id) = (yard.path("sub.git"), yard.id("home/fleets/shop/vat.1/lib", "HEAD"));
    let push = format!("push {} {id}:refs/heads/BRANCH", hub.display());
    assert!(why.ends_with(&format!("lib {push}")), "{why}");
    // As where the work was done on another machine.
    yard.agent("mv lib ../lib");
    let Refusal::Incomplete(why) = yard.refused() else { panic!("not incomplete") };
    assert!(why.ends_with(&format!("push them first: git {push}")), "{why}");
    yard.agent("mv ../lib lib");
    yard.sh("repo", "git config push.recurseSubmodules on-demand");
    yard.commit();
    let pushed = yard.id("sub.git", "refs/heads/fleet/shop/vat/1");
    assert_eq!(pushed, yard.id("home/fleets/shop/vat.1/lib", "HEAD"));
    yard.sh("repo", "git config --unset push.recurseSubmodules");
    yard.commit();
}

#[test]
fn a_file_of_git_lfs_is_uploaded_before_the_landing() {
    let id = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
    let pointer = format!(
        "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:{id}\\nsize 5\\n' > a.bin"
    );
    let yard = Yard::new("echo '*.bin filter=lfs -text' > .gitattributes", &pointer);
    let Refusal::Incomplete(why) = yard.refused() else { panic!("not incomplete") };
    let remote = yard.path("origin.git").display().to_string();
    assert!(why.contains(&format!("1 file of git LFS may be missing on {remote}")), "{why}");
    assert!(why.ends_with(&format!("lfs push --object-id {remote} {id}")), "{why}");
    let stored = yard.path("origin.git/lfs/objects/4d/7a").join(id);
    disk::make_folder(stored.parent().unwrap()).unwrap();
    disk::write(&stored, b"bytes", Durability::Process).unwrap();
    yard.commit();
}

#[test]
fn nothing_lands_by_a_program_planted_in_the_repository() {
    let yard = Yard::new(NOBODY, "echo work > work");
    yard.sh("repo", "git config core.sshCommand evil");
    let error = yard.try_to_land(&|| false).unwrap_err();
    let fault = error.downcast::<GitFault>().unwrap();
    assert_eq!(fault.trouble, GitTrouble::Changed);
}

#[test]
fn the_message_of_a_landing_is_the_first_line_of_the_task_without_codes() {
    let task = "vat".parse().unwrap();
    let of = |prompt: &str| landing_message("shop", &task, prompt, "fleet/shop/vat/2");
    let end = "Task vat of fleet shop, branch fleet/shop/vat/2.\n";
    assert_eq!(of("## Fix\u{1b}]0;evil\u{7} the  tap\nmore"), format!("Fix the tap\n\n{end}"));
    assert_eq!(of("\n\u{202e}\n"), format!("vat\n\n{end}"));
    let long = "word ".repeat(40);
    let (subject, rest) =
        of(&long).split_once("\n\n").map(|(a, b)| (a.len(), b.to_owned())).unwrap();
    assert!(subject <= 76 && rest == format!("{}\n\n{end}", long.trim()), "{rest}");
}

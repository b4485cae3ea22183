use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::drive::failure::failure_of;
use crate::fleet::record::CloneSetup;
use crate::fleet::spec::{CloneOrigin, SlotTurn, Source};
use engine::fixture::a_run;
use engine::fleet::{Carried, Remote};
use engine::record::{ProcessIdentity, TaskOfFleet};
use readers::parse::settings::merge::ValueOrigin;
use world::files::disk::{self, Durability};
use world::process::{Call, ExitCause, identity};

/// A task's name.
pub(super) fn task_id(name: &str) -> TaskId {
    name.parse().unwrap()
}

/// The second attempt at `auth` of the fleet `night`, with this task.
pub(super) fn a_spec(task: &str) -> AttemptSpec {
    let mut contract = a_run(None).contract;
    task.clone_into(&mut contract.task);
    AttemptSpec {
        task: TaskOfFleet { name: "night".to_owned(), task: task_id("auth") },
        number: 2,
        branch: "fleet/night/auth/2".to_owned(),
        contract,
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
            source: Source::Remote { url: "git@example.org:shop.git".to_owned() },
        },
        clones: CloneSetup { setup: None, setup_timeout_s: 600, include: None, trusted: None },
        turn: SlotTurn { slots: 0, priority: 5 },
    }
}

/// One line for each job: its id, its attempt and whether it is over.
pub(super) fn list_jobs(jobs: &[SeenJob]) -> String {
    let each = jobs.iter().map(|job| {
        let state = job.ended.as_ref().map_or("open".to_owned(), |why| format!("ended {why}"));
        format!("{} {}/{} {}", job.id, job.task, job.number, state.trim())
    });
    each.collect::<Vec<_>>().join("; ")
}

impl FleetJobs<'_> {
    /// The list of jobs after this answer.
    pub(super) fn shown_after(&mut self, found: Result<FoundJobs>, now_ms: u64) -> Result<String> {
        self.take_found(found, now_ms)?;
        Ok(list_jobs(&self.jobs.values().map(|job| job.seen.clone()).collect::<Vec<_>>()))
    }
}

pub(super) fn some_terms(executor: &str) -> FleetTerms {
    let remote = Remote { name: "origin".to_owned(), url: "git@example.org:one.git".to_owned() };
    FleetTerms {
        name: "billing".to_owned(),
        repository: "/repo".into(),
        executor: executor.to_owned(),
        remote: Some(remote),
        ..FleetTerms::default()
    }
}

#[test]
fn an_executor_is_a_built_in_one_or_one_of_the_users_settings() {
    let home = Home::at(Path::new("/nowhere"));
    let entry = Sourced { value: ExecutorEntry::default(), origin: ValueOrigin::Typed };
    let entries = ExecutorEntries::from([("k8s".to_owned(), entry)]);
    for name in ["local", "slurm", "slurm:me@login", "k8s"] {
        assert!(executor_of(&home, &some_terms(name), &entries, &|| false).is_ok(), "{name}");
    }
    for name in ["pbs", "slurmy", "slurmy:login", ""] {
        let refused = executor_of(&home, &some_terms(name), &entries, &|| false).err().unwrap();
        let expected = format!(
            "executor `{name}` does not exist\nhint: name one of local, slurm, k8s, or write \
             [executor.{name}] into your own settings file (docs/reference/executors.md)"
        );
        assert_eq!(failure_of(&refused).with_hint(), expected);
    }
}

#[test]
fn the_script_contains_the_spec_after_a_marker_that_does_not_occur_in_it() {
    let spec = a_spec("it's SPEC_OF_CREW");
    let script = job_script("/opt/my crew", &spec).unwrap();
    let json = serde_json::to_string(&spec).unwrap();
    let expected = format!(
        "#!/bin/sh\ncd / || exit 1\nexec '/opt/my crew' fleet attempt - \
         <<'SPEC_OF_CREW_'\n{json}\nSPEC_OF_CREW_\n"
    );
    assert_eq!(script, expected);
}

/// Runs the script of an attempt with a crew made of shell commands, and returns its exit status
/// and output. A driver sends TERM to the script's process as soon as that crew has started.
fn run_script(spec: &AttemptSpec, body: &str, is_signalled: bool) -> (ExitCause, String) {
    let folder = testkit::folder();
    let crew = folder.path().join("crew");
    let script = job_script(&crew.display().to_string(), spec).unwrap();
    let body = format!("#!/bin/sh\ncd \"${{0%/*}}\" || exit\n{body}\n");
    for (name, text) in [("crew", body), ("script", script)] {
        disk::write(&folder.path().join(name), text.as_bytes(), Durability::Process).unwrap();
    }
    let driver = "chmod +x crew && sh script & job=$!
        if [ $1 = true ]; then
            while ! [ -e ready ]; do sleep 0.01; done
            kill -TERM $job
        fi
        wait $job";
    let signalled = is_signalled.to_string();
    let call = Call::shell(driver, folder.path()).args(["driver", &signalled]);
    let ended = call.within(std::time::Duration::from_secs(30)).run(|| false).unwrap();
    (ended.cause(), ended.text())
}

#[test]
fn the_script_exits_exactly_as_crew_does() {
    let spec = a_spec("x");
    for code in [0, 10, 11, 12, 13, 14, 143] {
        let (cause, printed) = run_script(&spec, &format!("echo \"$@\"; exit {code}"), false);
        assert_eq!(cause, ExitCause::Exit(code));
        assert_eq!(printed, "fleet attempt -\n");
    }
}

#[test]
fn a_signal_to_the_script_reaches_crew_which_chooses_the_exit_code() {
    let crew = "trap 'echo asked; exit 14' TERM; : > ready; while :; do sleep 0.01; done";
    let ended = run_script(&a_spec("x"), crew, true);
    assert_eq!(ended, (ExitCause::Exit(14), "asked\n".to_owned()));
}

#[test]
fn crew_reads_exactly_the_spec_that_was_written_whatever_its_task_contains() {
    for task in
        ["it's $HOME; `id` \\ \"", "a\nSPEC_OF_CREW\nb\u{1f}\u{2028}é", &"x".repeat(300_000)]
    {
        let spec = a_spec(task);
        let (cause, printed) = run_script(&spec, "cat > spec && md5sum < spec && cat spec", false);
        assert_eq!(cause, ExitCause::Exit(0));
        if task.len() < 1000 {
            let (_, json) = printed.split_once('\n').unwrap();
            assert_eq!(serde_json::from_str::<AttemptSpec>(json).unwrap(), spec, "{task}");
        }
    }
}

proptest! {
    #[test]
    fn no_task_ends_the_here_document_early(task in "(SPEC_OF_CREW_{0,3}|\\PC|\n|'){0,30}") {
        let spec = a_spec(&task);
        let script = job_script("crew", &spec).unwrap();
        let (_, rest) = script.split_once("<<'").unwrap();
        let (mark, rest) = rest.split_once("'\n").unwrap();
        let (json, end) = rest.split_once(&format!("\n{mark}\n")).unwrap();
        prop_assert_eq!(end, "");
        prop_assert_eq!(serde_json::from_str::<AttemptSpec>(json).unwrap(), spec);
    }
}

#[test]
fn the_id_of_a_process_is_one_word_and_can_be_read_back() {
    for started in ["987654", "Sun Nov 29 21:34:37 2026"] {
        let process = ProcessIdentity { pid: 42, started: started.to_owned() };
        let id = job_id(&process);
        assert!(!id.contains(' '), "{id}");
        assert_eq!(process_of(&id), Some(process));
    }
}

#[test]
fn a_process_of_this_machine_is_identified_by_its_id_and_its_start_time() {
    let folder = testkit::folder();
    let home = Home::at(folder.path());
    let shell = Call::shell("while :; do sleep 0.05; done", folder.path());
    let process = shell.detach(&folder.path().join("log")).unwrap();
    let mut local = executor_of(&home, &some_terms("local"), &BTreeMap::new(), &|| false).unwrap();
    let real = job_id(&process);
    let another = format!("{}@1", process.pid);
    local.adopt_job(&task_id("auth"), 2, &real);
    local.adopt_job(&task_id("late"), 1, &another);
    for junk in ["", "0@1", "-1@1", "1@1", "x@1", "77", "77@"] {
        local.adopt_job(&task_id("junk"), 1, junk);
    }
    assert_eq!(
        list_jobs(&local.list_jobs().unwrap()),
        format!("{another} late/1 ended; {real} auth/2 open")
    );
    // A process that only has the id of one is not signalled.
    for job in [&another, "-1@1", "0@1"] {
        local.cancel_job(job).unwrap();
    }
    assert!(identity::is_alive(&process));
    local.cancel_job(&real).unwrap();
    let deadline = clock::Deadline::after(std::time::Duration::from_secs(20));
    let ended = deadline.poll(std::time::Duration::from_millis(10), || {
        local.list_jobs().unwrap().into_iter().all(|job| job.ended.is_some()).then_some(())
    });
    assert!(ended.is_some());
    assert_eq!(
        identity::identify_process(process.pid).filter(|found| *found == process),
        None,
        "reaped"
    );
}

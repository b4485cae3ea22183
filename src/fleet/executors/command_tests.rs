use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::drive::failure::failure_of;
use crate::fleet::executors::FleetJobs;
use crate::fleet::executors::tests::{a_spec, list_jobs, task_id};
use world::files::tree;

/// A batch system made of shell commands, with the state of each job in a file. Files beside it
/// cause faults: `down`, `hang`, `junk` (the output of a submission) and `slow` (a job whose status
/// hangs).
const STUB: &str = r#"
cd "${0%/*}" || exit
[ ! -e down ] || { echo 'welcome'; echo 'no route to the controller' >&2; exit 7; }
case $1 in
    submit)
        cp "$2" copy || exit
        number=$(($(ls jobs | wc -l) + 1))
        echo queued > "jobs/$number.host"
        echo "$3" >> names
        [ ! -e hang ] || sleep 600
        [ ! -e junk ] || { cat junk; exit; }
        printf 'Welcome 1\n%s.host\n\n' "$number"
        echo 'a warning' >&2 ;;
    status)
        [ "$(cat slow 2> /dev/null)" != "$2" ] || sleep 600
        [ ! -e "jobs/$2" ] || cat "jobs/$2" ;;
    cancel) echo "$2" >> cancelled ;;
esac
"#;

struct System {
    folder: tempfile::TempDir,
}

impl System {
    fn new() -> Self {
        let system = Self { folder: testkit::folder() };
        disk::make_folder(&system.path("jobs")).unwrap();
        system.write("stub", STUB);
        system
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        disk::write(&self.path(name), text.as_bytes(), Durability::Process).unwrap();
    }

    fn read(&self, name: &str) -> String {
        disk::read_text(&self.path(name), 1 << 20).unwrap().unwrap_or_default()
    }

    fn remove(&self, name: &str) {
        disk::remove(&self.path(name)).unwrap();
    }

    fn commands(&self) -> CommandSystem<'static> {
        let stub = self.path("stub").display().to_string();
        let command = |words: &str| format!("sh {stub} {words}");
        let commands = ExecutorEntry {
            submit: command("submit {script} {name}"),
            status: command("status {job}"),
            cancel: command("cancel {job}"),
        };
        let folder = self.folder.path().to_owned();
        let scripts = self.path("my scripts");
        CommandSystem::new("batch", commands, scripts, folder, &|| false)
    }

    fn executor(&self) -> FleetJobs<'static> {
        FleetJobs::new(self.commands())
    }

    /// Submits the attempt of the fixtures.
    fn submit(executor: &mut FleetJobs<'_>) -> Result<String> {
        executor.submit_attempt(&a_spec("it's"))
    }

    /// Adopts this many jobs, which the executor did not submit itself.
    fn adopt(&self, executor: &mut FleetJobs<'_>, count: u32) {
        for number in 1..=count {
            self.write(&format!("jobs/{number}.host"), "queued");
            executor.adopt_job(&task_id("auth"), number, &format!("{number}.host"));
        }
    }
}

fn list_states(executor: &mut FleetJobs<'_>) -> String {
    list_jobs(&executor.list_jobs().unwrap())
}

#[test]
fn a_job_is_submitted_and_followed_to_its_end_and_its_script_is_private() {
    let system = System::new();
    let mut executor = system.executor();
    assert_eq!(System::submit(&mut executor).unwrap(), "1.host");
    let script = system.path("my scripts/auth.2.sh");
    let mode = |path: &Path| tree::read_mode(path).unwrap() & 0o777;
    assert_eq!((mode(&script), mode(&system.path("my scripts"))), (0o600, 0o700));
    assert_eq!(system.read("copy"), system.read("my scripts/auth.2.sh"));
    assert!(system.read("copy").contains("\nexec crew fleet attempt - <<'SPEC_OF_CREW'\n{"));
    let name = system.read("names");
    assert!(name.starts_with("crew-night-auth-2-") && name.len() == 27, "{name}");
    assert_eq!(list_states(&mut executor), "1.host auth/2 open");
    system.write("jobs/1.host", "R\n");
    assert_eq!(list_states(&mut executor), "1.host auth/2 open");
    system.write("jobs/1.host", "COMPLETED");
    assert_eq!(list_states(&mut executor), "1.host auth/2 ended");
    assert!(!disk::exists(&script));
    // It is not asked for again.
    system.write("down", "");
    assert_eq!(list_states(&mut executor), "1.host auth/2 ended");
    executor.cancel_job("1.host").unwrap();
}

#[test]
fn a_job_has_ended_if_its_node_is_lost_but_not_if_it_only_seems_lost() {
    let system = System::new();
    let mut executor = system.executor();
    system.adopt(&mut executor, 2);
    for (one, two, expected) in [
        ("RUNNING", "Running", "1.host auth/1 open; 2.host auth/2 open"),
        // The node does not answer, and then it does.
        ("Unknown", "who knows", "1.host auth/1 open; 2.host auth/2 open"),
        ("Evicted", "running", "1.host auth/1 ended Evicted; 2.host auth/2 open"),
        // Started again elsewhere, under its old id.
        ("Evicted", "pending", "1.host auth/1 ended Evicted; 2.host auth/2 open"),
        ("Evicted", "FAILED", "1.host auth/1 ended Evicted; 2.host auth/2 ended FAILED"),
    ] {
        system.write("jobs/1.host", one);
        system.write("jobs/2.host", two);
        assert_eq!(list_states(&mut executor), expected);
    }
}

#[test]
fn an_unreachable_controller_after_a_cancel_does_not_mean_that_the_job_ended() {
    let system = System::new();
    let mut executor = system.executor();
    System::submit(&mut executor).unwrap();
    system.write("jobs/1.host", "running");
    assert_eq!(list_states(&mut executor), "1.host auth/2 open");
    executor.cancel_job("1.host").unwrap();
    assert_eq!(system.read("cancelled"), "1.host\n");
    system.write("down", "");
    let away = executor.list_jobs().unwrap_err();
    assert_eq!(
        failure_of(&away).with_hint(),
        "batch does not answer: no route to the controller\n\
         hint: try the status of [executor.batch] in a shell"
    );
    let failed = executor.cancel_job("1.host").unwrap_err();
    assert!(failed.to_string().contains("cannot cancel job 1.host"), "{failed}");
    // It comes back without its last minute: the job still runs, and is cancelled once more.
    system.remove("down");
    assert_eq!(list_states(&mut executor), "1.host auth/2 open");
    executor.cancel_job("1.host").unwrap();
    assert_eq!(system.read("cancelled"), "1.host\n1.host\n");
}

#[test]
fn a_second_interrupt_ends_a_wait_and_not_the_cancel_that_it_asks_for() {
    let system = System::new();
    let mut executor = FleetJobs::new(CommandSystem { stop: &|| true, ..system.commands() });
    system.adopt(&mut executor, 1);
    assert_eq!(list_states(&mut executor), "1.host auth/1 open");
    executor.cancel_job("1.host").unwrap();
    assert_eq!(system.read("cancelled"), "1.host\n");
}

#[test]
fn a_job_that_the_system_no_longer_lists_counts_as_ended_after_a_minute() {
    let system = System::new();
    let mut commands = system.commands();
    let mut executor = system.executor();
    system.adopt(&mut executor, 1);
    let job = SeenJob { id: "1.host".to_owned(), task: task_id("auth"), number: 1, ended: None };
    // As a status that prints nothing.
    system.remove("jobs/1.host");
    for (second, is_away) in [(0, false), (59, false), (60, true), (70, false), (129, false)] {
        if is_away {
            system.write("down", "");
        }
        let found = commands.find_jobs(std::slice::from_ref(&job));
        let seen = executor.shown_after(found, second * 1000);
        assert_eq!(seen.ok().as_deref(), (!is_away).then_some("1.host auth/1 open"), "{second}");
        system.remove("down");
    }
    let found = commands.find_jobs(std::slice::from_ref(&job));
    let seen = executor.shown_after(found, 130_000).unwrap();
    assert_eq!(seen, "1.host auth/1 ended batch no longer knows it");
}

#[test]
fn a_submission_that_hangs_is_ended_and_its_attempt_number_is_not_used_again() {
    let system = System::new();
    let submit_within = Duration::from_millis(300);
    let mut executor = FleetJobs::new(CommandSystem { submit_within, ..system.commands() });
    system.write("hang", "");
    let hung = System::submit(&mut executor).unwrap_err();
    assert_eq!(
        failure_of(&hung).with_hint(),
        "cannot submit auth: it took too long\n\
         hint: try the submit of [executor.batch] in a shell"
    );
    assert_eq!(system.read("jobs/1.host"), "queued\n", "it was accepted all the same");
    assert_eq!(list_states(&mut executor), "");
    system.remove("hang");
    assert_eq!(System::submit(&mut system.executor()).unwrap(), "2.host");
}

#[test]
fn a_status_command_that_hangs_does_not_hide_other_jobs() {
    let system = System::new();
    let status_within = Duration::from_secs(1);
    let commands = || CommandSystem { status_within, ..system.commands() };
    let mut executor = FleetJobs::new(commands());
    system.adopt(&mut executor, 3);
    system.write("slow", "1.host");
    system.write("jobs/3.host", "done");
    let seen = "1.host auth/1 open; 2.host auth/2 open; 3.host auth/3 ended";
    assert_eq!(list_states(&mut executor), seen);
    // What there was no time for is asked for first.
    let job = |number: u32| {
        let id_of_job = format!("{number}.host");
        SeenJob { id: id_of_job, task: task_id("auth"), number, ended: None }
    };
    let last_asked = "1.host".to_owned();
    let mut commands = CommandSystem { last_asked, ..commands() };
    let found = commands.find_jobs(&[job(1), job(2), job(3)]).unwrap().known;
    assert_eq!(list_jobs(&found), "2.host auth/2 open; 3.host auth/3 ended; 1.host auth/1 open");
}

#[test]
fn a_submission_that_does_not_print_an_id_is_refused() {
    let system = System::new();
    let mut executor = system.executor();
    for (junk, why) in [
        ("", "submit printed no id: \"\""),
        ("\n \n", "submit printed no id: \"\""),
        (
            "Your job was accepted",
            "the last line of submit is not an id: \"Your job was accepted\"",
        ),
        ("--all", "the last line of submit is not an id: \"--all\""),
        ("a\u{1b}[2Jb", "the last line of submit is not an id: \"a\\u{1b}[2Jb\""),
        ("$(id)", "the last line of submit is not an id: \"$(id)\""),
        ("job'1", "the last line of submit is not an id: \"job'1\""),
        ("é", "the last line of submit is not an id: \"é\""),
    ] {
        system.write("junk", junk);
        let refused = System::submit(&mut executor).unwrap_err();
        let expected = format!(
            "cannot submit auth: {why}\n\
             hint: it must be one word, without quotes, in the last line"
        );
        assert_eq!(failure_of(&refused).with_hint(), expected, "{junk:?}");
    }
    system.write("junk", &format!("{}\n", "7".repeat(ID_BYTES + 1)));
    let refused = System::submit(&mut executor).unwrap_err();
    assert!(format!("{refused:#}").contains("is too long for an id: "), "{refused:#}");
    system.write("down", "");
    let refused = System::submit(&mut executor).unwrap_err();
    assert!(format!("{refused:#}").ends_with("auth: no route to the controller"), "{refused:#}");
    assert_eq!(list_states(&mut executor), "");
    for id in ["12345", "1234[].host", "job.batch/crew-a", "arn:aws:batch:eu:1:job/a-b", "a;b"] {
        assert_eq!(id_of(id).unwrap(), id);
    }
}

#[test]
fn a_restarted_coordinator_follows_the_jobs_of_the_previous_one() {
    let system = System::new();
    let submitted = System::submit(&mut system.executor()).unwrap();
    let mut executor = system.executor();
    assert_eq!(list_states(&mut executor), "");
    executor.adopt_job(&task_id("auth"), 2, &submitted);
    executor.adopt_job(&task_id("junk"), 1, "--all");
    executor.adopt_job(&task_id("junk"), 1, "");
    system.write("jobs/1.host", "running");
    assert_eq!(list_states(&mut executor), "1.host auth/2 open");
    executor.cancel_job("--all").unwrap();
    assert_eq!(system.read("cancelled"), "");
}

#[test]
fn the_name_of_a_job_is_a_dns_label_and_unique() {
    let of = |fleet: &str, task: &str, number, random| {
        let mut spec = a_spec("x");
        (spec.task.name, spec.task.task, spec.number) = (fleet.to_owned(), task_id(task), number);
        job_name(&spec, random)
    };
    assert_eq!(of("Billing_2", "VAT.round", 12, 42), "crew-billing-2-vat-round-12-0000002a");
    let long = of("Billing_2", &"x".repeat(60), 12, u64::MAX);
    assert_eq!(long, format!("crew-billing-2-{}-12-ffffffff", "x".repeat(22)));
    assert!(of(&"x".repeat(60), "a", u32::MAX, 1).len() <= 63);
    assert_ne!(of("a", "vat", 1, 1), of("a", "vat", 1, 2));
}

#[test]
fn the_status_words_of_common_systems_are_recognized() {
    let table = [
        ("PBS", "Q R E F", "open open open ended"),
        ("Torque", "H C", "open ended"),
        (
            "Kubernetes",
            "Pending Active Running Succeeded Complete Failed Unknown",
            "open open open ended ended failed open",
        ),
        (
            "AWS",
            "SUBMITTED PENDING RUNNABLE STARTING RUNNING SUCCEEDED FAILED None",
            "open open open open open ended failed missing",
        ),
        ("GitHub", "queued in_progress completed waiting requested", "open open ended open open"),
        ("crew", "running pending succeeded failed unknown", "open open ended failed open"),
    ];
    for (system, words, places) in table {
        let found = words.split(' ').map(|word| match place_of(word) {
            JobPlace::Open => "open",
            JobPlace::Ended(why) if why.is_empty() => "ended",
            JobPlace::Ended(_) => "failed",
            JobPlace::Missing => "missing",
        });
        assert_eq!(found.collect::<Vec<_>>().join(" "), places, "{system}");
    }
    assert_eq!(place_of("the job has failed"), JobPlace::Open);
}

proptest! {
    #[test]
    fn no_output_causes_a_panic_and_an_id_survives_the_shell(line in "\\PC{0,20}|[!-~]{1,12}") {
        let _ = place_of(&line);
        if let Ok(id) = id_of(&line) {
            let words = shell_words::split(&fill_placeholders("qstat {job}", &[("job", id)])).unwrap();
            prop_assert_eq!(words, ["qstat", id]);
        }
    }
}

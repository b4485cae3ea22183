use proptest::prelude::*;

use super::super::tests::{a_call, a_spec, id, shown};
use super::*;
use crate::world::files::tree;

/// A batch system made of shell, with the word of each job in a file. Files beside it order faults:
/// `down`, `hang`, `junk` (what a submission prints) and `slow` (a job whose status hangs).
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
        let system = Self { folder: tempfile::tempdir().unwrap() };
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

    fn executor(&self) -> CommandExecutor<'static> {
        let stub = self.path("stub").display().to_string();
        let command = |words: &str| format!("sh {stub} {words}");
        let commands = ExecutorEntry {
            submit: command("submit {script} {name}"),
            status: command("status {job}"),
            cancel: command("cancel {job}"),
        };
        let folder = self.folder.path().to_owned();
        let scripts = self.path("my scripts");
        CommandExecutor::new("batch", commands, scripts, folder, &|| false)
    }

    /// Submits the attempt of the fixtures.
    fn submit(&self, executor: &mut CommandExecutor<'_>) -> Result<String> {
        executor.submit(&a_call(&a_spec("it's"), self.folder.path()))
    }
}

fn list(executor: &mut CommandExecutor<'_>) -> String {
    shown(&executor.list().unwrap())
}

#[test]
fn a_job_is_submitted_followed_and_over_and_its_script_is_for_its_user_only() {
    let system = System::new();
    let mut executor = system.executor();
    assert_eq!(system.submit(&mut executor).unwrap(), "1.host");
    let script = system.path("my scripts/auth.2.sh");
    let mode = |path: &Path| tree::mode(path).unwrap() & 0o777;
    assert_eq!((mode(&script), mode(&system.path("my scripts"))), (0o600, 0o700));
    assert_eq!(system.read("copy"), system.read("my scripts/auth.2.sh"));
    assert!(system.read("copy").contains("\nexec crew fleet attempt - <<'CREW_SPEC'\n{"));
    assert_eq!(system.read("names"), "crew-night-auth-2-0000002a\n");
    assert_eq!(list(&mut executor), "1.host auth/2 waiting");
    system.write("jobs/1.host", "R\n");
    assert_eq!(list(&mut executor), "1.host auth/2 running");
    system.write("jobs/1.host", "COMPLETED");
    assert_eq!(list(&mut executor), "1.host auth/2 ended");
    assert!(!disk::exists(&script));
    // It is not asked for again.
    system.write("down", "");
    assert_eq!(list(&mut executor), "1.host auth/2 ended");
    executor.cancel("1.host").unwrap();
}

#[test]
fn a_job_of_a_lost_node_is_over_and_one_of_a_node_that_only_seems_lost_is_not() {
    let system = System::new();
    let mut executor = system.executor();
    for _ in 0..2 {
        system.submit(&mut executor).unwrap();
    }
    for (one, two, expected) in [
        ("RUNNING", "Running", "1.host auth/2 running; 2.host auth/2 running"),
        // The node does not answer, and then it does.
        ("Unknown", "who knows", "1.host auth/2 running; 2.host auth/2 running"),
        ("Evicted", "running", "1.host auth/2 ended Evicted; 2.host auth/2 running"),
        // Started again elsewhere, under its old id.
        ("Evicted", "pending", "1.host auth/2 ended Evicted; 2.host auth/2 waiting"),
        ("Evicted", "FAILED", "1.host auth/2 ended Evicted; 2.host auth/2 ended FAILED"),
    ] {
        system.write("jobs/1.host", one);
        system.write("jobs/2.host", two);
        assert_eq!(list(&mut executor), expected);
    }
}

#[test]
fn nothing_follows_from_a_controller_that_is_away_after_a_cancel() {
    let system = System::new();
    let mut executor = system.executor();
    system.submit(&mut executor).unwrap();
    system.write("jobs/1.host", "running");
    assert_eq!(list(&mut executor), "1.host auth/2 running");
    executor.cancel("1.host").unwrap();
    assert_eq!(system.read("cancelled"), "1.host\n");
    system.write("down", "");
    let away = executor.list().unwrap_err();
    assert_eq!(
        format!("{away:#}"),
        "batch does not answer: no route to the controller\n\
         hint: try the status of [executor.batch] in a shell"
    );
    assert!(executor.cancel("1.host").is_err());
    // It comes back without its last minute: the job still runs, and is cancelled once more.
    system.remove("down");
    assert_eq!(list(&mut executor), "1.host auth/2 running");
    executor.cancel("1.host").unwrap();
    assert_eq!(system.read("cancelled"), "1.host\n1.host\n");
}

#[test]
fn a_second_interrupt_ends_a_wait_and_not_the_cancel_that_it_asks_for() {
    let system = System::new();
    let mut executor = system.executor();
    system.submit(&mut executor).unwrap();
    executor.stop = &|| true;
    assert_eq!(list(&mut executor), "1.host auth/2 waiting");
    executor.cancel("1.host").unwrap();
    assert_eq!(system.read("cancelled"), "1.host\n");
}

#[test]
fn a_job_that_the_system_has_forgotten_is_over_after_a_minute_of_answers() {
    let system = System::new();
    let mut executor = system.executor();
    system.submit(&mut executor).unwrap();
    let missing = || Ok(JobPlace::Missing);
    let table = [
        (0, missing()),
        (59, missing()),
        (60, Err(anyhow!("away"))),
        (70, missing()),
        (129, missing()),
        (130, missing()),
    ];
    for (second, answer) in table {
        let expected =
            if second == 130 { "ended batch does not know it any more" } else { "waiting" };
        executor.take("1.host", &answer, second * 1000);
        let seen = executor.jobs["1.host"].seen.clone();
        assert_eq!(shown(&[seen]), format!("1.host auth/2 {expected}"), "{second}");
    }
    // As a status that prints nothing.
    system.submit(&mut executor).unwrap();
    system.remove("jobs/2.host");
    assert_eq!(executor.ask("2.host", STATUS_WITHIN).unwrap(), JobPlace::Missing);
}

#[test]
fn a_submission_that_hangs_is_ended_and_its_job_gets_a_number_that_is_not_used_again() {
    let system = System::new();
    let mut executor = system.executor();
    executor.submit_within = Duration::from_millis(300);
    system.write("hang", "");
    let hung = system.submit(&mut executor).unwrap_err();
    assert_eq!(
        format!("{hung:#}"),
        "cannot submit auth: it took too long\n\
         hint: try the submit of [executor.batch] in a shell"
    );
    assert_eq!(system.read("jobs/1.host"), "queued\n", "it was accepted all the same");
    assert_eq!(list(&mut executor), "");
    system.remove("hang");
    executor.submit_within = SUBMIT_WITHIN;
    assert_eq!(system.submit(&mut executor).unwrap(), "2.host");
}

#[test]
fn a_status_that_hangs_keeps_no_other_job_from_being_seen() {
    let system = System::new();
    let mut executor = system.executor();
    executor.status_within = Duration::from_millis(300);
    for _ in 0..3 {
        system.submit(&mut executor).unwrap();
    }
    system.write("slow", "1.host");
    system.write("jobs/3.host", "running");
    let seen = "1.host auth/2 waiting; 2.host auth/2 waiting; 3.host auth/2 running";
    assert_eq!(list(&mut executor), seen);
    // What there was no time for is asked for first.
    executor.last_asked = "1.host".to_owned();
    assert_eq!(executor.open_jobs(), ["2.host", "3.host", "1.host"]);
}

#[test]
fn a_submission_that_prints_something_else_is_refused() {
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
        let refused = system.submit(&mut executor).unwrap_err();
        let expected = format!(
            "cannot submit auth: {why}\n\
             hint: it must be one word, without quotes, in the last line"
        );
        assert_eq!(format!("{refused:#}"), expected, "{junk:?}");
    }
    system.write("junk", &format!("{}\n", "7".repeat(ID_BYTES + 1)));
    let refused = system.submit(&mut executor).unwrap_err();
    assert!(format!("{refused:#}").contains("is too long for an id: "), "{refused:#}");
    system.write("down", "");
    let refused = system.submit(&mut executor).unwrap_err();
    assert!(format!("{refused:#}").contains("auth: no route to the controller\n"), "{refused:#}");
    assert_eq!(list(&mut executor), "");
    for id in ["12345", "1234[].host", "job.batch/crew-a", "arn:aws:batch:eu:1:job/a-b", "a;b"] {
        assert_eq!(id_of(id).unwrap(), id);
    }
}

#[test]
fn a_coordinator_that_is_started_again_follows_the_jobs_of_the_one_before() {
    let system = System::new();
    let submitted = system.submit(&mut system.executor()).unwrap();
    let mut executor = system.executor();
    assert_eq!(list(&mut executor), "");
    executor.adopt(&id("auth"), 2, &submitted);
    executor.adopt(&id("junk"), 1, "--all");
    executor.adopt(&id("junk"), 1, "");
    system.write("jobs/1.host", "running");
    assert_eq!(list(&mut executor), "1.host auth/2 running");
    assert!(executor.cancel("--all").is_err());
    assert_eq!(system.read("cancelled"), "");
}

#[test]
fn the_words_of_common_systems_say_where_a_job_is() {
    let table = [
        ("PBS", "Q R E F", "waiting running running ended"),
        ("Torque", "H C", "waiting ended"),
        (
            "Kubernetes",
            "Pending Active Running Succeeded Complete Failed Unknown",
            "waiting running running ended ended failed unknown",
        ),
        (
            "AWS",
            "SUBMITTED PENDING RUNNABLE STARTING RUNNING SUCCEEDED FAILED None",
            "waiting waiting waiting running running ended failed missing",
        ),
        (
            "GitHub",
            "queued in_progress completed waiting requested",
            "waiting running ended waiting waiting",
        ),
        (
            "crew",
            "running pending succeeded failed unknown",
            "running waiting ended failed unknown",
        ),
    ];
    for (system, words, places) in table {
        let found = words.split(' ').map(|word| match place_of(word) {
            JobPlace::Is(JobState::Waiting(_)) => "waiting",
            JobPlace::Is(JobState::Running) => "running",
            JobPlace::Is(JobState::Ended(why)) if why.is_empty() => "ended",
            JobPlace::Is(JobState::Ended(_)) => "failed",
            JobPlace::Missing => "missing",
            JobPlace::Unknown => "unknown",
        });
        assert_eq!(found.collect::<Vec<_>>().join(" "), places, "{system}");
    }
    assert_eq!(place_of("the job has failed"), JobPlace::Unknown);
}

proptest! {
    #[test]
    fn no_output_panics_and_an_id_survives_the_shell(line in "\\PC{0,20}|[!-~]{1,12}") {
        let _ = place_of(&line);
        if let Ok(id) = id_of(&line) {
            let words = shell_words::split(&fill("qstat {job}", &[("job", &id)])).unwrap();
            prop_assert_eq!(words, ["qstat", &id]);
        }
    }
}

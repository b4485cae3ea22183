use proptest::prelude::*;

use super::*;
use crate::world::files::disk::{self, Durability};

fn call(words: &[&str], folder: &Path) -> JobCall {
    JobCall {
        task: "auth".to_owned(),
        words: [&["fleet", "job", "night", "auth"], words]
            .concat()
            .iter()
            .map(ToString::to_string)
            .collect(),
        folder: folder.to_owned(),
    }
}

fn job(id: u64, name: &str, state: JobState) -> SlurmJob {
    SlurmJob { id, name: name.to_owned(), state }
}

fn has_failed() -> JobState {
    JobState::Ended("FAILED".to_owned())
}

fn known() -> KnownJobs {
    KnownJobs { prefix: prefix("night"), jobs: BTreeMap::new() }
}

/// Takes in what Slurm answers with these jobs.
fn take(known: &mut KnownJobs, jobs: Vec<SlurmJob>, now_ms: u64) -> String {
    let looked_up = known.left_by(&jobs);
    told(&known.take(Ok(Answer { jobs, looked_up }), now_ms).unwrap())
}

/// One line for each job: its id, its task and where it is.
fn told(jobs: &[SeenJob]) -> String {
    let each = jobs.iter().map(|job| {
        let state = match &job.state {
            JobState::Waiting(reason) => format!("waiting {reason}"),
            JobState::Running => "running".to_owned(),
            JobState::Ended(why) => format!("ended, {why}"),
        };
        format!("{} {} {}", job.id, job.task, state.trim())
    });
    each.collect::<Vec<_>>().join("; ")
}

#[test]
fn the_batch_script_becomes_crew_with_every_word_quoted() {
    let call = call(&["--remote", "it's $HOME; `id`", ""], Path::new("/home/a user/project"));
    insta::assert_snapshot!(script(Path::new("/opt/crew"), &call), @r"
    #!/bin/sh
    cd -- '/home/a user/project' || exit 1
    exec /opt/crew fleet job night auth --remote 'it'\''s $HOME; `id`' ''
    ");
}

#[test]
fn a_command_goes_to_a_shell_here_or_to_a_login_shell_there() {
    let command = submission(Path::new("/scratch/100% of it"), "crew/night/", "it's");
    insta::assert_snapshot!(
        [shell(None, &command), shell(Some("login.example"), &command)].map(|it| it.join("\n")).join("\n\n"),
        @r#"
    sh
    -c
    mkdir -p -- '/scratch/100% of it' && exec sbatch --parsable '--job-name=crew/night/it'\''s' --requeue --open-mode=append --signal=B:TERM@60 -o '/scratch/100%% of it/%j.log'

    ssh
    -o
    BatchMode=yes
    --
    login.example
    exec bash -lc 'mkdir -p -- '\''/scratch/100% of it'\'' && exec sbatch --parsable '\''--job-name=crew/night/it'\''\'\'''\''s'\'' --requeue --open-mode=append --signal=B:TERM@60 -o '\''/scratch/100%% of it/%j.log'\'''
    "#
    );
}

/// Runs the batch script with a crew made of shell, and says how it ended. A driver sends TERM to
/// the script's process as soon as that crew is there.
fn ends(body: &str, is_signalled: bool) -> (ExitCause, String) {
    let folder = tempfile::tempdir().unwrap();
    let crew = folder.path().join("crew");
    let script = script(&crew, &call(&["a b"], folder.path()));
    for (name, text) in [("crew", format!("#!/bin/sh\n{body}\n")), ("script", script)] {
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
    let ended = call.within(Duration::from_secs(30)).run(|| false).unwrap();
    (ended.cause, ended.text())
}

#[test]
fn the_script_exits_exactly_as_crew_does() {
    for code in [0, 10, 11, 12, 13, 14, 143] {
        let (cause, printed) = ends(&format!("echo \"$@\"; exit {code}"), false);
        assert_eq!(cause, ExitCause::Exit(code));
        assert_eq!(printed, "fleet job night auth a b\n");
    }
}

#[test]
fn a_signal_to_the_script_reaches_crew_which_chooses_the_exit_code() {
    let crew = "trap 'echo asked; exit 14' TERM; : > ready; while :; do sleep 0.01; done";
    assert_eq!(ends(crew, true), (ExitCause::Exit(14), "asked\n".to_owned()));
}

#[test]
fn a_job_ends_with_what_slurm_says_of_it_and_jobs_of_others_are_passed_over() {
    let mut known = known();
    known.submitted(7, "auth");
    assert_eq!(known.left_by(&[]), [7]);
    let queue = vec![
        job(7, "crew/night/auth", JobState::Running),
        job(9, "crew/night/late", JobState::Waiting("Priority".to_owned())),
        job(8, "crew/nights/auth", JobState::Running),
        job(5, "my job", has_failed()),
    ];
    assert_eq!(known.left_by(&queue), [0; 0]);
    assert_eq!(take(&mut known, queue, 0), "7 auth running; 9 late waiting Priority");
    let shown = vec![job(7, "crew/night/auth", has_failed())];
    let seen = "7 auth ended, FAILED; 9 late waiting Priority";
    assert_eq!(take(&mut known, shown, 1), seen);
    // Nobody asks again for a job that has ended, unless a person puts it back into the queue.
    assert_eq!(known.left_by(&[]), [9]);
    let again = vec![job(7, "crew/night/auth", JobState::Running)];
    assert_eq!(take(&mut known, again, 2), "7 auth running; 9 late waiting Priority");
}

#[test]
fn an_id_that_slurm_has_given_to_somebody_elses_job_is_a_missing_job() {
    let mut known = known();
    known.submitted(7, "auth");
    let queue = vec![job(7, "my job", JobState::Running)];
    assert_eq!(known.left_by(&queue), [7]);
    assert_eq!(take(&mut known, queue, 0), "7 auth waiting");
}

#[test]
fn a_job_is_gone_after_a_minute_of_answers_without_it() {
    let mut known = known();
    take(&mut known, vec![job(7, "crew/night/auth", JobState::Running)], 0);
    for (second, expected) in [
        (10, Some("running")),
        (69, Some("running")),
        // The controller was away: what it has not read yet may still come.
        (70, None),
        (200, Some("running")),
        (259, Some("running")),
        (260, Some("ended, Slurm does not know it any more")),
    ] {
        let Some(state) = expected else {
            known.take(Err(anyhow!("no controller")), second * 1000).unwrap_err();
            continue;
        };
        assert_eq!(take(&mut known, Vec::new(), second * 1000), format!("7 auth {state}"));
    }
}

#[test]
fn a_job_that_there_was_no_time_to_look_up_is_not_missing() {
    let mut known = known();
    let count = u64::try_from(LOOKUPS_MAX).unwrap() + 1;
    (0..count).for_each(|id| known.submitted(id, "auth"));
    for second in [0, 60] {
        take(&mut known, Vec::new(), second * 1000);
    }
    assert_eq!(known.left_by(&[]), [count - 1]);
}

#[test]
fn a_failed_command_says_why_and_what_to_do() {
    let no_controller =
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n";
    let table = [
        (ExitCause::Exit(1), None, no_controller),
        (ExitCause::TimedOut, None, "Welcome\n"),
        (ExitCause::Exit(127), None, "sh: 1: exec: sbatch: not found\n"),
        (ExitCause::Exit(127), Some("login"), "bash: line 1: exec: sbatch: not found\n\n"),
        (ExitCause::Exit(255), Some("login"), "a@login: Permission denied (publickey).\n"),
        (ExitCause::Exit(1), None, ""),
    ];
    let told = table.map(|(cause, host, output)| {
        let ended = FinishedProcess {
            cause,
            elapsed_ms: 0,
            output: output.into(),
            errors: Vec::new(),
            cut: false,
        };
        format!("{:#}", failed(&ended, host))
    });
    insta::assert_snapshot!(told.join("\n\n"), @r"
    slurm_load_jobs error: Unable to contact slurm controller (connect failure)
    hint: squeue --me shows whether Slurm answers

    it took too long
    hint: squeue --me shows whether Slurm answers

    sh: 1: exec: sbatch: not found
    hint: install Slurm's commands, or name a login node: --on slurm:HOST

    bash: line 1: exec: sbatch: not found
    hint: put Slurm's commands on the PATH of the login shell of login

    a@login: Permission denied (publickey).
    hint: make `ssh login true` work without a question

    exit 1
    hint: squeue --me shows whether Slurm answers
    ");
}

#[test]
fn a_log_is_named_with_its_machine_and_a_word_is_no_job() {
    let slurm = |host: Option<&str>| {
        let (host, crew) = (host.map(str::to_owned), PathBuf::from("crew"));
        Slurm::new("night", host, crew, PathBuf::from("crew/logs"), &|| false)
    };
    assert_eq!(slurm(None).log("7").as_deref(), Some("crew/logs/7.log"));
    assert_eq!(slurm(Some("login")).log("7").as_deref(), Some("login:crew/logs/7.log"));
    assert_eq!(slurm(None).log("../7"), None);
    let refused = slurm(None).cancel("--me").unwrap_err();
    assert_eq!(refused.to_string(), "--me is not the id of a job\nhint: squeue --me lists the ids");
}

proptest! {
    #[test]
    fn a_shell_gives_crew_the_very_words_of_the_call(words in prop::collection::vec("[^\\x00]{0,12}", 0..4)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let script = script(Path::new("crew"), &call(&words, Path::new("/")));
        let (_, command) = script.split_once("exec ").unwrap();
        let split = shell_words::split(command).unwrap();
        prop_assert_eq!(&split[..5], ["crew", "fleet", "job", "night", "auth"]);
        prop_assert_eq!(&split[5..], words);
    }
}

use super::super::JobState;
use super::super::tests::{a_call, a_spec, id, shown as line};
use super::*;
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;
use crate::world::process::{Call, ExitCause};

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
    line(&known.take(Ok(Answer { jobs, looked_up }), now_ms).unwrap())
}

#[test]
fn the_submission_quotes_every_word_and_keeps_the_log_for_its_user() {
    let command = submission(Path::new("/scratch/100% of it"), "crew/night/it's/2");
    insta::assert_snapshot!(command, @r#"mask=$(umask) && umask 077 && mkdir -p -- '/scratch/100% of it' && chmod 700 -- '/scratch/100% of it' && { printf '#!/bin/sh\numask %s\n' "$mask"; cat; } | sbatch --parsable '--job-name=crew/night/it'\''s/2' --requeue --open-mode=append --signal=B:TERM@60 -o '/scratch/100%% of it/%j.log'"#);
}

/// Takes a script as Slurm does: the log is made with the mask of sbatch, and the job has it too.
const SBATCH: &str = r#"#!/bin/sh
for word in "$@"; do last=$word; done
cat > "$STUB/script"
: > "$(printf %s "$last" | sed 's/%j/13/; s/%%/%/g')"
sh "$STUB/script" > "$STUB/printed" 2>&1
echo "Welcome to the cluster"
echo "13;night"
"#;

#[test]
fn logs_are_0600_in_0700_and_the_job_keeps_the_mask_of_the_account() {
    let folder = tempfile::tempdir().unwrap();
    let (root, logs) = (folder.path(), folder.path().join("a b%/night"));
    let stubs = [("sbatch", SBATCH), ("crew", "#!/bin/sh\necho \"$(umask) $*\"\ncat > spec\n")];
    for (name, text) in stubs {
        disk::write(&root.join(name), text.as_bytes(), Durability::Process).unwrap();
        tree::set_mode(&root.join(name), 0o700).unwrap();
    }
    // One that an earlier crew or a person left.
    disk::make_folder(&logs).unwrap();
    tree::set_mode(&logs, 0o755).unwrap();
    let spec = a_spec("it's");
    let script = script("crew", &a_call(&spec, root)).unwrap();
    let command = format!("umask 022; {}", submission(&logs, "crew/night/auth/2"));
    let path = format!("{}:/usr/bin:/bin", root.display());
    let variables = [("STUB", root.display().to_string()), ("PATH", path)];
    let mut ids = Vec::new();
    let mut each = |line: &str| ids.extend(submitted(line));
    let call = Call::shell(&command, root).envs(variables).input(script.as_bytes());
    let ended = call.within(WITHIN).each_line(&mut each).run(|| false).unwrap();
    assert_eq!((ended.cause, &ids[..]), (ExitCause::Exit(0), &[13][..]), "{}", ended.text());
    let mode = |path: &Path| tree::mode(path).unwrap() & 0o777;
    assert_eq!((mode(&logs), mode(&logs.join("13.log"))), (0o700, 0o600));
    let printed = disk::read_text(&root.join("printed"), 1000).unwrap().unwrap();
    assert_eq!(printed, "0022 fleet attempt -\n");
    let read = disk::read_text(&root.join("spec"), 1 << 20).unwrap().unwrap();
    assert_eq!(read.trim_end(), serde_json::to_string(&spec).unwrap());
}

#[test]
fn a_job_ends_with_what_slurm_says_of_it_and_jobs_of_others_are_passed_over() {
    let mut known = known();
    known.submitted(7, &id("auth"), 1);
    assert_eq!(known.name(&id("auth"), 1), "crew/night/auth/1");
    assert_eq!(known.left_by(&[]), [7]);
    let queue = vec![
        job(7, "crew/night/auth/1", JobState::Running),
        job(9, "crew/night/late/3", JobState::Waiting("Priority".to_owned())),
        job(8, "crew/nights/auth/1", JobState::Running),
        job(4, "crew/night/auth", JobState::Running),
        job(3, "crew/night/../auth/1", JobState::Running),
        job(5, "my job", has_failed()),
    ];
    assert_eq!(known.left_by(&queue), [0; 0]);
    assert_eq!(take(&mut known, queue, 0), "7 auth/1 running; 9 late/3 waiting Priority");
    let shown = vec![job(7, "crew/night/auth/1", has_failed())];
    let seen = "7 auth/1 ended FAILED; 9 late/3 waiting Priority";
    assert_eq!(take(&mut known, shown, 1), seen);
    // Nobody asks again for a job that has ended, unless a person puts it back into the queue.
    assert_eq!(known.left_by(&[]), [9]);
    let again = vec![job(7, "crew/night/auth/1", JobState::Running)];
    assert_eq!(take(&mut known, again, 2), "7 auth/1 running; 9 late/3 waiting Priority");
}

#[test]
fn an_id_that_slurm_has_given_to_somebody_elses_job_is_a_missing_job() {
    let mut known = known();
    known.submitted(7, &id("auth"), 1);
    let queue = vec![job(7, "my job", JobState::Running)];
    assert_eq!(known.left_by(&queue), [7]);
    assert_eq!(take(&mut known, queue, 0), "7 auth/1 waiting");
}

#[test]
fn a_controller_that_was_away_has_a_minute_to_show_a_job_again() {
    let mut known = known();
    take(&mut known, vec![job(7, "crew/night/auth/1", JobState::Running)], 0);
    for (second, expected) in [
        (10, Some("running")),
        (69, Some("running")),
        // What the controller has not read yet may still come.
        (70, None),
        (200, Some("running")),
        (259, Some("running")),
        (260, Some("ended Slurm does not know it any more")),
    ] {
        let Some(state) = expected else {
            known.take(Err(anyhow!("no controller")), second * 1000).unwrap_err();
            continue;
        };
        assert_eq!(take(&mut known, Vec::new(), second * 1000), format!("7 auth/1 {state}"));
    }
}

#[test]
fn a_job_that_there_was_no_time_to_look_up_is_not_missing() {
    let mut known = known();
    let count = u64::try_from(LOOKUPS_MAX).unwrap() + 1;
    (0..count).for_each(|number| known.submitted(number, &id("auth"), 1));
    for second in [0, 60] {
        take(&mut known, Vec::new(), second * 1000);
    }
    assert_eq!(known.left_by(&[]), [count - 1]);
}

#[test]
fn a_log_is_named_with_its_machine_and_a_word_is_not_a_job() {
    let slurm = |host: Option<&str>| {
        let (host, crew) = (host.map(str::to_owned), PathBuf::from("crew"));
        Slurm::new("night", host, crew, PathBuf::from("crew/logs"), &|| false)
    };
    assert_eq!(slurm(None).log("7").as_deref(), Some("crew/logs/7.log"));
    assert_eq!(slurm(Some("login")).log("7").as_deref(), Some("login:crew/logs/7.log"));
    assert_eq!(slurm(None).log("../7"), None);
    let refused = slurm(None).cancel("--me").unwrap_err();
    assert_eq!(refused.to_string(), "--me is not the id of a job\nhint: squeue --me lists the ids");
    let mut adopting = slurm(None);
    adopting.adopt(&id("auth"), 2, "--me");
    adopting.adopt(&id("auth"), 2, "7");
    assert_eq!(adopting.known.left_by(&[]), [7]);
}

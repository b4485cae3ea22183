use super::*;
use crate::fleet::executors::FleetJobs;
use crate::fleet::executors::tests::{a_spec, list_jobs as line, some_terms, task_id};
use world::files::disk::{self, Durability};
use world::files::tree;
use world::process::{Call, ExitCause};

fn a_slurm() -> Slurm<'static> {
    let (prefix, crew) = ("crew/night/".to_owned(), "crew".to_owned());
    Slurm { prefix, host: None, crew, logs: PathBuf::new(), stop: &|| false }
}

/// The jobs in these lines of `squeue`: id, state and name.
fn parse_queue(lines: &[&str]) -> Vec<SeenJob> {
    lines.iter().filter_map(|line| a_slurm().parse_listed(line)).collect()
}

/// The beginning of a real line of `scontrol -o show job`, up to the fields that differ.
fn line_of(state: &str, exit: &str, node: &str, restarts: u32) -> String {
    format!(
        "JobId=13 JobName=crew/night/auth/1 UserId=root(0) GroupId=root(0) MCS_label=N/A \
         Priority=4294901758 Nice=0 Account=(null) QOS=(null) {state} Dependency=(null) Requeue=1 \
         Restarts={restarts} BatchFlag=1 Reboot=0 ExitCode={exit} RunTime=00:00:03 \
         TimeLimit=UNLIMITED TimeMin=N/A SubmitTime=2026-11-26T05:51:14 StartTime=2026-11-26T05:51:15 \
         Deadline=N/A Partition=fleet AllocNode:Sid=localhost:4822 ReqNodeList=(null) \
         ExcNodeList=(null) NodeList={node} BatchHost=n2 NumNodes=1 NumCPUs=1 NumTasks=1 \
         Command=(null) WorkDir=/x JobState=COMPLETED ExitCode=0:0 StdOut=/x/13.log Power= "
    )
}

/// This many open jobs of an executor.
fn open_jobs(count: u64) -> Vec<SeenJob> {
    let job = |number: u64| SeenJob {
        id: number.to_string(),
        task: task_id("auth"),
        number: 1,
        ended: None,
    };
    (0..count).map(job).collect()
}

/// Applies Slurm's answer with these jobs to a query about job 7.
fn take_jobs(executor: &mut FleetJobs<'_>, jobs: Vec<SeenJob>, now_ms: u64) -> String {
    let seven = SeenJob { id: "7".to_owned(), task: task_id("auth"), number: 1, ended: None };
    let asked = left_by(&[seven], &jobs);
    executor.shown_after(Ok(found_jobs(jobs, asked)), now_ms).unwrap()
}

fn an_executor() -> FleetJobs<'static> {
    let mut executor = FleetJobs::new(a_slurm());
    executor.adopt_job(&task_id("auth"), 1, "7");
    executor
}

#[test]
fn the_submission_quotes_every_word_and_keeps_the_log_private() {
    let command = submission_script(Path::new("/scratch/100% of it"), "crew/night/it's/2");
    insta::assert_snapshot!(command, @r#"mask=$(umask) && umask 077 && mkdir -p -- '/scratch/100% of it' && chmod 700 -- '/scratch/100% of it' && { printf '#!/bin/sh\numask %s\n' "$mask"; cat; } | sbatch --parsable '--job-name=crew/night/it'\''s/2' --requeue --open-mode=append --signal=B:TERM@60 -o '/scratch/100%% of it/%j.log'"#);
}

/// Accepts a script as Slurm does: the log is created with the umask of sbatch, and the job has it
/// too.
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
    let folder = testkit::folder();
    let (root, logs) = (folder.path(), folder.path().join("a b%/night"));
    let stubs =
        [("sbatch", SBATCH), ("crew", "#!/bin/sh\necho \"$(umask) $*\"\ncat > \"$STUB/spec\"\n")];
    for (name, text) in stubs {
        disk::write(&root.join(name), text.as_bytes(), Durability::Process).unwrap();
        tree::set_mode(&root.join(name), 0o700).unwrap();
    }
    // One that an earlier crew or a person left.
    disk::make_folder(&logs).unwrap();
    tree::set_mode(&logs, 0o755).unwrap();
    let spec = a_spec("it's");
    let script = job_script("crew", &spec).unwrap();
    let command = format!("umask 022; {}", submission_script(&logs, "crew/night/auth/2"));
    let path = format!("{}:/usr/bin:/bin", root.display());
    let variables = [("STUB", root.display().to_string()), ("PATH", path)];
    let mut ids = Vec::new();
    let mut each = |line: &str| ids.extend(parse_submitted(line));
    let call = Call::shell(&command, root).envs(variables).input(script.as_bytes());
    let ended = call.within(WITHIN).each_line(&mut each).run(|| false).unwrap();
    assert_eq!((ended.cause(), &ids[..]), (ExitCause::Exit(0), &[13][..]), "{}", ended.text());
    let mode = |path: &Path| tree::read_mode(path).unwrap() & 0o777;
    assert_eq!((mode(&logs), mode(&logs.join("13.log"))), (0o700, 0o600));
    let printed = disk::read_text(&root.join("printed"), 1000).unwrap().unwrap();
    assert_eq!(printed, "0022 fleet attempt -\n");
    let read = disk::read_text(&root.join("spec"), 1 << 20).unwrap().unwrap();
    assert_eq!(read.trim_end(), serde_json::to_string(&spec).unwrap());
}

#[test]
fn the_id_of_a_new_job_is_found_in_the_output_of_a_login_shell() {
    let table = [
        ("13", Some(13)),
        ("13;cluster", Some(13)),
        (" 13\r", Some(13)),
        ("Welcome to login 13", None),
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", None),
        ("", None),
    ];
    for (line, expected) in table {
        assert_eq!(parse_submitted(line), expected, "{line}");
    }
}

#[test]
fn the_queue_lists_the_fleets_unfinished_jobs() {
    let lines = [
        "7    |RUNNING     |crew/night/auth/1",
        "8    |PENDING     |crew/night/late/3   ",
        "9    |COMPLETING  |crew/night/auth/2",
        "10   |NEWLY_MADE  |crew/night/auth/4",
        // Only scontrol says how it ended.
        "11   |FAILED      |crew/night/auth/5",
        // Other fleets, other people's names, and what a login shell says.
        "12   |RUNNING     |crew/nights/auth/1",
        "13   |RUNNING     |crew/night/auth",
        "14   |RUNNING     |crew/night/../auth/1",
        "15   |RUNNING     |crew/night/a|b/1",
        "16   |RUNNING     |my job",
        "Last login: Thu",
        "x    |RUNNING     |crew/night/auth/1",
        "17   |RUNNING",
        "",
    ];
    let expected = "7 auth/1 open; 8 late/3 open; 9 auth/2 open; 10 auth/4 open";
    assert_eq!(line(&parse_queue(&lines)), expected);
}

#[test]
fn the_end_of_a_job_is_read_from_a_line_of_scontrol() {
    let table = [
        ("JobState=COMPLETED Reason=None", "0:0", "n1", Some("COMPLETED")),
        // The account's own signal, after which crew has ended in order.
        ("JobState=CANCELLED Reason=None", "143:0", "n2", Some("CANCELLED")),
        // Cancelled before it began.
        ("JobState=CANCELLED Reason=None", "0:0", "", Some("CANCELLED")),
        (
            "JobState=FAILED Reason=RaisedSignal:9(Killed)",
            "0:9",
            "n1",
            Some("FAILED (RaisedSignal:9(Killed))"),
        ),
        // The folder of its output does not exist.
        (
            "JobState=FAILED Reason=JobLaunchFailure",
            "0:53",
            "n1",
            Some("FAILED (JobLaunchFailure)"),
        ),
        ("JobState=TIMEOUT Reason=TimeLimit", "0:15", "n1", Some("TIMEOUT (TimeLimit)")),
        ("JobState=NODE_FAIL Reason=NodeDown", "0:0", "n1", Some("NODE_FAIL (NodeDown)")),
        ("JobState=RUNNING Reason=None", "0:0", "n2", None),
        ("JobState=PENDING Reason=Priority", "0:0", "", None),
        ("JobState=PENDING Reason=BeginTime", "0:0", "(null)", None),
    ];
    for (state_and_reason, exit, node, ended) in table {
        let line = line_of(state_and_reason, exit, node, 2);
        let ended = ended.map(str::to_owned);
        let job = SeenJob { id: "13".to_owned(), task: task_id("auth"), number: 1, ended };
        assert_eq!(a_slurm().parse_shown(&line), Some(job), "{line}");
    }
    let unknown = "slurm_load_jobs error: Invalid job id specified";
    for junk in ["", "JobId=", "JobId=13 JobName=x", unknown] {
        assert_eq!(a_slurm().parse_shown(junk), None, "{junk}");
    }
}

#[test]
fn a_job_ends_as_slurm_reports() {
    let mut executor = an_executor();
    let running = "7|RUNNING|crew/night/auth/1";
    let jobs = parse_queue(&[running, "9|PENDING|crew/night/late/3"]);
    assert_eq!(take_jobs(&mut executor, jobs, 0), "7 auth/1 open; 9 late/3 open");
    let name = |line: &str| line.replace("JobId=13", "JobId=7");
    let failed =
        a_slurm().parse_shown(&name(&line_of("JobState=FAILED Reason=None", "1:0", "n1", 0)));
    let seen = "7 auth/1 ended FAILED; 9 late/3 open";
    assert_eq!(take_jobs(&mut executor, failed.into_iter().collect(), 1), seen);
    // A person puts it back into the queue.
    assert_eq!(
        take_jobs(&mut executor, parse_queue(&[running]), 2),
        "7 auth/1 open; 9 late/3 open"
    );
}

#[test]
fn a_job_is_missing_if_slurm_has_reused_its_id_for_another_user() {
    let jobs = parse_queue(&["7|RUNNING|my job"]);
    let asked = left_by(&open_jobs(8)[7..], &jobs);
    let FoundJobs { known, missing } = found_jobs(jobs, asked);
    assert_eq!((known, missing), (vec![], vec!["7".to_owned()]));
}

#[test]
fn a_controller_that_was_down_has_a_minute_to_list_a_job_again() {
    let mut executor = an_executor();
    for (second, expected) in [
        (10, Some("open")),
        (69, Some("open")),
        // What the controller has not read yet may still come.
        (70, None),
        (200, Some("open")),
        (259, Some("open")),
        (260, Some("ended Slurm no longer knows it")),
    ] {
        let Some(state) = expected else {
            executor.shown_after(Err(anyhow::anyhow!("no controller")), second * 1000).unwrap_err();
            continue;
        };
        assert_eq!(
            take_jobs(&mut executor, Vec::new(), second * 1000),
            format!("7 auth/1 {state}")
        );
    }
}

#[test]
fn a_job_that_there_was_no_time_to_look_up_is_not_missing() {
    let count = u64::try_from(LOOKUPS_MAX).unwrap() + 1;
    let asked = left_by(&open_jobs(count), &[]);
    assert_eq!(asked.len(), LOOKUPS_MAX);
    let queued = open_jobs(1);
    assert_eq!(left_by(&open_jobs(count), &queued).len(), LOOKUPS_MAX);
    assert!(!left_by(&open_jobs(count), &queued).contains(&"0".to_owned()));
}

#[test]
fn the_name_of_a_job_contains_its_fleet_and_remote_and_other_names_are_ignored() {
    let of = |url: &str, host: Option<&str>| {
        let mut terms = some_terms("slurm");
        terms.remote.as_mut().unwrap().url = url.to_owned();
        Slurm::new(&terms, host.map(str::to_owned), "crew".to_owned(), &|| false)
    };
    let prefixes =
        ["one", "two"].map(|name| of(&format!("git@example.org:{name}.git"), None).prefix);
    assert_eq!(prefixes, ["crew/billing.2859a968/", "crew/billing.df177dd5/"]);
    assert_eq!(of("x", Some("login")).logs, Path::new(".crew-fleets/billing"));
    assert!(of("x", None).logs.ends_with(".crew-fleets/billing"));
    for word in ["--me", "", "7 8", "+7", "07", "7;8"] {
        assert!(!a_slurm().is_id(word), "{word}");
    }
    // One that is not known is not cancelled, and no command runs.
    an_executor().cancel_job("--me").unwrap();
}

proptest::proptest! {
    #[test]
    fn an_unknown_state_does_not_end_a_job_and_no_junk_causes_a_panic(
        word in "[A-Z_]{0,16}",
        junk in "(JobId=|[0-9]{1,3}[|;])?\\PC{0,80}",
    ) {
        let job = a_slurm().parse_listed(&format!("7|{word}|crew/night/a/1"));
        proptest::prop_assert_eq!(job.is_none(), is_word_of(ENDS, &word));
        let _ = (parse_submitted(&junk), a_slurm().parse_listed(&junk), a_slurm().parse_shown(&junk));
    }

    #[test]
    fn a_line_truncated_anywhere_never_panics(cut in 0_usize..600, exit in "\\PC{0,6}") {
        let line = line_of("JobState=FAILED Reason=None", &exit, "n1", 0);
        let cut = (0..=cut.min(line.len())).rfind(|at| line.is_char_boundary(*at)).unwrap_or(0);
        let _ = (a_slurm().parse_shown(&line[..cut]), a_slurm().parse_shown(&line), a_slurm().parse_listed(&line[..cut]));
    }
}

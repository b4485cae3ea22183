use super::*;
use crate::engine::text::is_word_of;

fn ended(why: &str) -> JobState {
    JobState::Ended(why.to_owned())
}

fn waiting(reason: &str) -> JobState {
    JobState::Waiting(reason.to_owned())
}

/// The beginning of a real line of `scontrol -o show job`, up to the fields that differ.
fn line_of(state: &str, exit: &str, node: &str, restarts: u32) -> String {
    format!(
        "JobId=13 JobName=crew/night/auth UserId=root(0) GroupId=root(0) MCS_label=N/A \
         Priority=4294901758 Nice=0 Account=(null) QOS=(null) {state} Dependency=(null) Requeue=1 \
         Restarts={restarts} BatchFlag=1 Reboot=0 ExitCode={exit} RunTime=00:00:03 \
         TimeLimit=UNLIMITED TimeMin=N/A SubmitTime=2026-11-26T05:51:14 StartTime=2026-11-26T05:51:15 \
         Deadline=N/A Partition=fleet AllocNode:Sid=localhost:4822 ReqNodeList=(null) \
         ExcNodeList=(null) NodeList={node} BatchHost=n2 NumNodes=1 NumCPUs=1 NumTasks=1 \
         Command=(null) WorkDir=/x JobState=COMPLETED ExitCode=0:0 StdOut=/x/13.log Power= "
    )
}

#[test]
fn a_new_jobs_id_is_found_among_what_a_login_shell_says() {
    let table = [
        ("13", Some(13)),
        ("13;cluster", Some(13)),
        (" 13\r", Some(13)),
        ("Welcome to login 13", None),
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", None),
        ("", None),
    ];
    for (line, expected) in table {
        assert_eq!(submitted(line), expected, "{line}");
    }
}

#[test]
fn a_line_of_squeue_says_where_a_job_is() {
    let table = [
        ("13   |RUNNING     |n2    |None     |crew/night/auth", JobState::Running),
        ("13   |PENDING     |      |Priority |crew/night/auth   ", waiting("Priority")),
        ("13   |PENDING     |      |None     |crew/night/auth", waiting("")),
        ("13   |PENDING     |      |BeginTime|crew/night/auth", waiting("BeginTime")),
        ("13   |COMPLETING  |n1    |None     |crew/night/auth", JobState::Running),
        ("13   |SUSPENDED   |n1    |None     |crew/night/auth", JobState::Running),
        ("13   |NEWLY_MADE  |n1    |None     |crew/night/auth", JobState::Running),
        (
            "13   |FAILED      |n1    |NonZeroExitCode|crew/night/auth",
            ended("FAILED (NonZeroExitCode)"),
        ),
        ("13   |COMPLETED   |n1    |None     |crew/night/auth", ended("COMPLETED")),
    ];
    for (line, state) in table {
        let job = SlurmJob { id: 13, name: "crew/night/auth".to_owned(), state };
        assert_eq!(listed(line), Some(job), "{line}");
    }
    let odd = listed("7|RUNNING|n1|None|crew/night/a|b").unwrap();
    assert_eq!(odd.name, "crew/night/a|b");
    for junk in ["", "Last login: Thu", "13|RUNNING|n1|None", "x|RUNNING|n1|None|name"] {
        assert_eq!(listed(junk), None, "{junk}");
    }
}

#[test]
fn a_line_of_scontrol_says_how_a_job_ended() {
    let table = [
        ("JobState=COMPLETED Reason=None", "0:0", "n1", ended("COMPLETED")),
        ("JobState=FAILED Reason=NonZeroExitCode", "11:0", "n1", ended("FAILED (NonZeroExitCode)")),
        ("JobState=CANCELLED Reason=None", "143:0", "n2", ended("CANCELLED")),
        // Cancelled before it began.
        ("JobState=CANCELLED Reason=None", "0:0", "", ended("CANCELLED")),
        (
            "JobState=FAILED Reason=RaisedSignal:9(Killed)",
            "0:9",
            "n1",
            ended("FAILED (RaisedSignal:9(Killed))"),
        ),
        // The folder of its output does not exist.
        (
            "JobState=FAILED Reason=JobLaunchFailure",
            "0:53",
            "n1",
            ended("FAILED (JobLaunchFailure)"),
        ),
        ("JobState=TIMEOUT Reason=TimeLimit", "0:15", "n1", ended("TIMEOUT (TimeLimit)")),
        ("JobState=NODE_FAIL Reason=NodeDown", "0:0", "n1", ended("NODE_FAIL (NodeDown)")),
        ("JobState=RUNNING Reason=None", "0:0", "n2", JobState::Running),
        ("JobState=PENDING Reason=Priority", "0:0", "", waiting("Priority")),
        ("JobState=PENDING Reason=BeginTime", "0:0", "(null)", waiting("BeginTime")),
    ];
    for (state_and_reason, exit, node, state) in table {
        let line = line_of(state_and_reason, exit, node, 2);
        let job = SlurmJob { id: 13, name: "crew/night/auth".to_owned(), state };
        assert_eq!(shown(&line), Some(job), "{line}");
    }
    let line = line_of("JobState=RUNNING Reason=None", "0:0", "n2", 0);
    let line = line.replace("night/auth", "night/set JobState=x up");
    assert_eq!(shown(&line).unwrap().name, "crew/night/set JobState=x up");
    assert_eq!(shown(&line).unwrap().state, JobState::Running);
    let unknown = "slurm_load_jobs error: Invalid job id specified";
    for junk in ["", "JobId=", "JobId=13 JobName=x", unknown] {
        assert_eq!(shown(junk), None, "{junk}");
    }
}

proptest::proptest! {
    #[test]
    fn a_state_with_an_unknown_name_is_no_end_and_no_junk_panics(
        word in "[A-Z_]{0,16}",
        junk in "(JobId=|[0-9]{1,3}[|;])?\\PC{0,80}",
    ) {
        let job = listed(&format!("7|{word}|n1|None|name")).unwrap();
        proptest::prop_assert_eq!(job.state.is_ended(), is_word_of(ENDS, &word));
        let _ = (submitted(&junk), listed(&junk), shown(&junk));
    }

    #[test]
    fn a_line_cut_anywhere_never_panics(cut in 0_usize..600, exit in "\\PC{0,6}") {
        let line = line_of("JobState=FAILED Reason=None", &exit, "n1", 0);
        let cut = (0..=cut.min(line.len())).rfind(|at| line.is_char_boundary(*at)).unwrap_or(0);
        let _ = (shown(&line[..cut]), shown(&line), listed(&line[..cut]));
    }
}

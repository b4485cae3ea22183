//! Runs Slurm's commands: here, or on a login node by ssh. It does not interpret what they print.
//! The environment reaches a job as sbatch and srun export it by default; no secret is ever a word
//! of a command, because every user of a machine sees those.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use engine::failure::Failure;
use engine::text::text_start;
use world::process::{Call, ExitCause, FinishedProcess, Stop};

/// The longest that a place in the cluster and the run itself may take together.
pub const STEP_WITHIN: Duration = Duration::from_secs(10 * 60);
/// The most characters of a failed command's last line that are kept.
const CAUSE_CHARS: usize = 300;
/// sbatch reads what a site wants of each job from SBATCH_*, and srun reads the same from SLURM_*.
const SAME_TERMS: &str = "for term in ACCOUNT CONSTRAINT PARTITION QOS RESERVATION; do \
    eval \"[ -z \\\"\\$SBATCH_$term\\\" ] || export SLURM_$term=\\\"\\$SBATCH_$term\\\"\"; done; ";

/// One word of a command of the shell.
pub fn quote_word(word: &str) -> String {
    shell_words::quote(word).into_owned()
}

/// A command of the shell, on a login node or in `folder` here.
pub fn slurm_call<'a>(host: Option<&str>, command: &str, folder: &Path) -> Call<'a> {
    let words = shell_words(host, command);
    Call::of(&words[0], folder).args(&words[1..])
}

/// Runs such a command to its end. An error has the last line that it printed, and a hint.
pub fn run_call(call: Call<'_>, host: Option<&str>, stop: Stop<'_>) -> Result<()> {
    let ended = finish_call(call, host, stop)?;
    if ended.cause == ExitCause::Exit(0) {
        return Ok(());
    }
    let cause = last_words(&ended);
    Err(Failure::new(cause, hint_after(ended.cause, host)).into())
}

fn finish_call(call: Call<'_>, host: Option<&str>, stop: Stop<'_>) -> Result<FinishedProcess> {
    let shell = if host.is_some() { "ssh" } else { "sh" };
    call.run(stop).with_context(|| format!("cannot start {shell}"))
}

/// The words that run a command of the shell here, or on a login node. There it needs a login
/// shell: sites put Slurm's commands, and people crew, on the PATH of that one only.
fn shell_words(host: Option<&str>, command: &str) -> Vec<String> {
    let Some(host) = host else { return ["sh", "-c", command].map(str::to_owned).into() };
    let remote = format!("exec bash -lc {}", quote_word(command));
    ["ssh", "-o", "BatchMode=yes", "--", host, &remote].map(str::to_owned).into()
}

/// Why a command failed, in the last line of what it printed.
fn last_words(ended: &FinishedProcess) -> String {
    let text = ended.text();
    // srun ends with how its task ended; the cause is the line before.
    let mut lines = text.lines().map(str::trim);
    let last = lines.rfind(|line| !line.is_empty() && !line.contains(": task 0: "));
    match (ended.cause, last) {
        (ExitCause::Exit(_), Some(line)) => text_start(line, CAUSE_CHARS).to_owned(),
        (cause, _) => cause.to_string(),
    }
}

fn hint_after(cause: ExitCause, host: Option<&str>) -> String {
    match (cause, host) {
        (ExitCause::Exit(255), Some(host)) => {
            format!("make `ssh {host} true` work without a question")
        }
        (ExitCause::Exit(127), Some(host)) => {
            format!("put Slurm's commands on the PATH of the login shell of {host}")
        }
        (ExitCause::Exit(127), None) => {
            "install Slurm's commands, or name a login node: --on slurm:HOST".to_owned()
        }
        _ => "squeue --me shows whether Slurm answers".to_owned(),
    }
}

/// Runs crew with these words, which every user sees, on a node, and returns the last line of its
/// output that `read` understands. `crew` is a path on the nodes, or a name on the PATH of the
/// login shell. It begins in `folder` where Slurm's commands are here and the node has that.
pub fn on_a_node<T>(
    host: Option<&str>,
    crew: &Path,
    folder: &Path,
    words: &[&str],
    stop: Stop<'_>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T> {
    let mut found = None;
    let mut each = |line: &str| found = read(line).or_else(|| found.take());
    let call = slurm_call(host, &job_step(crew, words), folder).within(STEP_WITHIN).input(&[]);
    let ended = finish_call(call.each_line(&mut each), host, stop)?;
    let crew = crew.display();
    if ended.cause != ExitCause::Exit(0) {
        let cause = last_words(&ended);
        // What the node's own daemon prints when the program is not there.
        let hint = if cause.contains("execve()") {
            format!("install crew on the nodes, as {crew}")
        } else {
            hint_after(ended.cause, host)
        };
        bail!(Failure::new(cause, hint));
    }
    let hint = format!("look at srun -n1 {crew} --version");
    found.ok_or_else(|| Failure::new("its output has no report", hint).into())
}

fn job_step(crew: &Path, words: &[&str]) -> String {
    let crew = crew.display().to_string();
    let words = shell_words::join([&[crew.as_str()], words].concat());
    format!("{SAME_TERMS}exec srun -n1 -c1 --quiet --job-name=crew/doctor {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_terms_of_a_batch_job_and_every_word_quoted() {
        insta::assert_snapshot!(job_step(Path::new("/opt/crew"), &["doctor", "--agent=it's"]), @r#"for term in ACCOUNT CONSTRAINT PARTITION QOS RESERVATION; do eval "[ -z \"\$SBATCH_$term\" ] || export SLURM_$term=\"\$SBATCH_$term\""; done; exec srun -n1 -c1 --quiet --job-name=crew/doctor /opt/crew doctor '--agent=it'\''s'"#);
    }

    #[test]
    fn a_command_goes_to_a_shell_here_or_to_a_login_shell_there() {
        let command = "mkdir -p -- 'a b' && exec true";
        assert_eq!(shell_words(None, command), ["sh", "-c", command]);
        let there = shell_words(Some("login.example"), command);
        assert_eq!(there[..5], ["ssh", "-o", "BatchMode=yes", "--", "login.example"]);
        assert_eq!(there[5..], [r"exec bash -lc 'mkdir -p -- '\''a b'\'' && exec true'"]);
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
        let failures = table.map(|(cause, host, output)| {
            let ended = FinishedProcess {
                cause,
                elapsed_ms: 0,
                output: output.into(),
                errors: Vec::new(),
                cut: false,
            };
            Failure::new(last_words(&ended), hint_after(cause, host)).with_hint()
        });
        insta::assert_snapshot!(failures.join("\n\n"), @r"
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
}

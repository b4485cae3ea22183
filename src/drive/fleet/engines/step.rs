//! One run of crew on a compute node of Slurm that is waited for. Unlike a job of a fleet it is
//! never requeued, and leaves nothing behind.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::slurm::{ShellCall, quoted};
use crate::world::process::Stop;

/// The longest that a place and the run itself may take together.
pub const WITHIN: Duration = Duration::from_secs(10 * 60);
/// sbatch reads what a site wants of each job from SBATCH_*, and srun reads the same from SLURM_*.
const SAME_TERMS: &str = "for term in ACCOUNT CONSTRAINT PARTITION QOS RESERVATION; do \
    eval \"[ -z \\\"\\$SBATCH_$term\\\" ] || export SLURM_$term=\\\"\\$SBATCH_$term\\\"\"; done; ";

/// Where and how crew is run on a node.
pub struct NodeStep<'a> {
    /// The login node, or `None` for Slurm's commands on this machine.
    pub host: Option<&'a str>,
    /// A path on the nodes, or a name on the PATH of the login shell.
    pub crew: &'a Path,
    /// Where it begins, if Slurm's commands are here and the node has this folder.
    pub folder: &'a Path,
    /// The last part of the job's name.
    pub name: &'a str,
}

impl NodeStep<'_> {
    /// Runs crew with these words, which every user sees, and returns the last line of its output
    /// that `read` understands.
    pub fn run<T>(
        &self,
        words: &[&str],
        stop: Stop<'_>,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        let mut found = None;
        let mut each = |line: &str| found = read(line).or_else(|| found.take());
        let command = self.command(words);
        let (host, folder) = (self.host, self.folder);
        let ran =
            ShellCall { host, command: &command, input: None, folder }.run(WITHIN, stop, &mut each);
        let crew = self.crew.display();
        if let Err(error) = ran {
            // What the node's own daemon says when the program is not there.
            if error.to_string().contains("execve()") {
                let error = error.to_string();
                let cause = error.lines().next().unwrap_or_default();
                bail!("{cause}\nhint: install crew on the nodes, as {crew}");
            }
            return Err(error);
        }
        found.ok_or_else(|| {
            anyhow!("its output has no report\nhint: look at srun -n1 {crew} --version")
        })
    }

    fn command(&self, words: &[&str]) -> String {
        let name = quoted(&format!("--job-name=crew/{}", self.name));
        let crew = self.crew.display().to_string();
        let words = shell_words::join([&[crew.as_str()], words].concat());
        format!("{SAME_TERMS}exec srun -n1 -c1 --quiet {name} {words}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(host: Option<&'static str>) -> NodeStep<'static> {
        NodeStep { host, crew: Path::new("/opt/crew"), folder: Path::new("/"), name: "doctor" }
    }

    #[test]
    fn a_step_has_the_terms_of_a_batch_job_and_every_word_quoted() {
        insta::assert_snapshot!(step(None).command(&["doctor", "--agent=it's"]), @r#"for term in ACCOUNT CONSTRAINT PARTITION QOS RESERVATION; do eval "[ -z \"\$SBATCH_$term\" ] || export SLURM_$term=\"\$SBATCH_$term\""; done; exec srun -n1 -c1 --quiet '--job-name=crew/doctor' /opt/crew doctor '--agent=it'\''s'"#);
    }
}

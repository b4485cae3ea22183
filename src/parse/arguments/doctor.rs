//! What may be typed after `crew doctor`. It has no behaviour.

use std::path::PathBuf;

use clap::Args;

/// `crew doctor`.
#[derive(Args, Clone, Debug, Default)]
pub struct DoctorArgs {
    /// Print JSON, for programs; the object has a "schema"
    #[arg(long)]
    pub json: bool,
    /// The client's program, where it is not `claude` on PATH
    #[arg(long, value_name = "PATH", conflicts_with_all = ["on", "node"])]
    pub client: Option<PathBuf>,
    /// Look at a compute node of a cluster: slurm or slurm:HOST
    ///
    /// With one small job there; slurm:HOST by ssh to its login node.
    #[arg(long, value_name = "ENGINE", value_parser = cluster)]
    pub on: Option<String>,
    /// With --on: the agent to look for (the one used here)
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Reports on this machine as a compute node to the crew that asks with --on
    #[arg(long, hide = true, requires = "json", conflicts_with = "on")]
    pub node: bool,
    /// With --node: the address of the fleet's remote
    #[arg(long, hide = true, value_name = "URL", requires = "node")]
    pub remote: Option<String>,
}

/// Slurm, by its commands here or on a login node.
pub(super) fn cluster(text: &str) -> Result<String, &'static str> {
    let is_host = |host: &str| !host.is_empty() && !host.starts_with('-');
    let is_known = text == "slurm" || text.strip_prefix("slurm:").is_some_and(is_host);
    if is_known { Ok(text.to_owned()) } else { Err("slurm, or slurm:HOST") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_slurm_here_or_on_a_host_and_no_host_is_an_option() {
        for (text, is_known) in [
            ("slurm", true),
            ("slurm:login.example", true),
            ("slurm:me@login", true),
            ("slurm:", false),
            ("slurm:-oProxyCommand=id", false),
            ("slurmy", false),
            ("manual", false),
        ] {
            assert_eq!(cluster(text).is_ok(), is_known, "{text}");
        }
    }
}

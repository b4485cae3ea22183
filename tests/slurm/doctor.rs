//! `crew doctor --on slurm`, with a real job on a real node.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::{Sshd, with_cluster};
use crate::sandbox::{DEADLINE, Sandbox, write_executable};
use crate::spawned::{Ran, Running};

/// A doctor for a repository with a remote, of which `base` is the address of the agent's service.
fn doctor(sandbox: &Sandbox, base: &str, change: impl FnOnce(&mut Command)) -> Ran {
    let mut command = sandbox.command(sandbox.build().path());
    command.args(["doctor", "--on", "slurm"]);
    command.env("ANTHROPIC_BASE_URL", base).env("ANTHROPIC_API_KEY", "no key");
    change(&mut command);
    Running::start(command, None).wait(DEADLINE)
}

#[test]
fn a_job_on_a_node_finds_what_would_prevent_a_fleet_from_running_there() {
    with_cluster(|sandbox, cluster| {
        let remote = sandbox.root().join("remote.git").display().to_string();
        sandbox.git(&["init", "--quiet", "--bare", &remote]);
        sandbox.git(&["remote", "add", "origin", &remote]);
        let agent = sandbox.program("claude", "exit 7");
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = service.local_addr().unwrap().to_string();
        let base = format!("http://{address}");

        let good = doctor(sandbox, &base, |_| {});
        assert_eq!(good.code(), 0, "{good:#?}");
        let node = cluster.jobs().pop().unwrap();
        assert_eq!((&*node.name, &*node.state), ("crew/doctor", "COMPLETED"));
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "crew {version}\n  cluster  slurm\n  node     {}\n  agent    claude\n  model    {address} \
             connects\n  remote   accepts refs/crew/*\n\nnothing is broken\n",
            node.node
        );
        assert_eq!(good.stdout, expected);
        assert_eq!(sandbox.git(&["ls-remote", "origin"]), "", "the probe is deleted again");

        std::fs::remove_file(agent).unwrap();
        let bare = doctor(sandbox, &base, |command| {
            for name in ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"] {
                command.env_remove(format!("GIT_{name}"));
            }
        });
        assert_eq!(bare.code(), 1, "{bare:#?}");
        for part in [
            "broken: n1: git does not know who commits\n  fix: git config user.name NAME and",
            "broken: n1: agent claude: there is no program `claude` on PATH\n  fix: install it on",
            "\n2 broken\n",
        ] {
            assert!(bare.stdout.replace("n2: ", "n1: ").contains(part), "{bare:#?}");
        }

        sandbox.program("claude", "exit 7");
        drop(service);
        let apart = doctor(sandbox, &base, |_| {});
        assert_eq!(apart.code(), 1, "{apart:#?}");
        let expected = format!("no way out to the agent's model at {address}: Connection refused");
        assert!(apart.stdout.contains(&expected), "{apart:#?}");
        assert!(apart.stdout.ends_with("\n1 broken\n"), "{apart:#?}");
    });
}

#[test]
fn a_login_node_is_reached_by_ssh_and_the_job_has_its_environment() {
    with_cluster(|sandbox, cluster| {
        let remote = sandbox.root().join("remote.git").display().to_string();
        sandbox.git(&["init", "--quiet", "--bare", &remote]);
        sandbox.git(&["remote", "add", "origin", &remote]);
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", service.local_addr().unwrap());
        let [slurm] = cluster.env();
        let login = Sshd::start(sandbox, &[slurm, ("ANTHROPIC_BASE_URL", base)]);
        symlink(sandbox.build().path(), login.home().join("bin/crew")).unwrap();
        write_executable(&login.home().join("bin/claude"), "#!/bin/sh\nexit 7\n");
        let login_file = login.home().join(".claude/.credentials.json");
        std::fs::create_dir_all(login_file.parent().unwrap()).unwrap();
        std::fs::write(login_file, "").unwrap();
        let ran = sandbox.crew(&["doctor", "--on", "slurm:login"]);
        for part in ["  cluster  slurm:login\n", " connects\n  remote   accepts refs/crew/*\n"] {
            assert!(ran.stdout.contains(part), "{ran:#?}");
        }
        // The identity of whoever asks stays here.
        assert!(ran.stdout.contains(": git does not know who commits\n"), "{ran:#?}");
        assert!(ran.stdout.ends_with("\n1 broken\n"), "{ran:#?}");
        assert_eq!(ran.code(), 1);
    });
}

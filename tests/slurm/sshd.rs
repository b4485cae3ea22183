//! A login node: an sshd on loopback in the folder of a test, with its own keys, settings and home.
//! `ssh login` in the sandbox reaches it; the user's keys and settings are not read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cluster::{free_ports, program};
use super::processes::{Daemon, end, with_descendants};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::Running;

/// The required programs. A login shell there is bash, whatever the account's own is.
const PROGRAMS: [&str; 4] = ["sshd", "ssh", "ssh-keygen", "bash"];
/// sshd refuses to start without this folder, which cannot be set.
const SEPARATION: &str = "/run/sshd";

#[derive(Debug)]
pub(crate) struct Sshd {
    daemon: Daemon,
    home: PathBuf,
}

/// Why no login node is possible here.
pub(crate) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("a login node needs root".to_owned());
    }
    let missing = PROGRAMS.into_iter().find(|name| program(name).is_none())?;
    Some(format!("no login node can be made: there is no {missing}"))
}

impl Sshd {
    /// The host `login`, with these variables in each of its sessions.
    pub(crate) fn start(sandbox: &Sandbox, variables: &[(&str, String)]) -> Self {
        let folder = sandbox.root().join("login");
        let home = folder.join("home");
        fs::create_dir_all(home.join("bin")).unwrap();
        fs::create_dir_all(SEPARATION).unwrap();
        // sshd itself begins in the home that the machine knows.
        fs::write(home.join(".profile"), "PATH=\"$HOME/bin:$PATH\"; cd\n").unwrap();
        for name in ["host", "user"] {
            let mut command = Command::new(program("ssh-keygen").unwrap());
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(name));
            Running::start(command, None).wait(DEADLINE).success();
        }
        let [port] = free_ports();
        fs::write(folder.join("sshd_config"), server(&folder, port, &home, variables)).unwrap();
        fs::write(folder.join("ssh_config"), client(&folder, port)).unwrap();
        let host_key = fs::read_to_string(folder.join("host.pub")).unwrap();
        fs::write(folder.join("known_hosts"), format!("login {host_key}")).unwrap();
        let ssh = program("ssh").unwrap();
        let settings = folder.join("ssh_config");
        sandbox.program("ssh", &format!("exec {} -F {} \"$@\"", ssh.display(), settings.display()));
        let mut command = Command::new(program("sshd").unwrap());
        command.args(["-D", "-f"]).arg(folder.join("sshd_config"));
        let sshd = Self { daemon: Daemon::start(command), home };
        poll_until("ssh reaches the login node", || {
            let mut command = sandbox.command("ssh");
            command.args(["login", "true"]);
            Running::start(command, None).wait(DEADLINE).status.success()
        });
        sshd
    }

    /// The home of the account there. Programs in its `bin` are on the PATH of a login shell.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // A session leaves the group of its sshd.
        let pid = self.daemon.pid();
        end(|| with_descendants(vec![pid]).split_off(1));
    }
}

fn server(folder: &Path, port: u16, home: &Path, variables: &[(&str, String)]) -> String {
    let (folder, home) = (folder.display(), home.display());
    let set: Vec<String> =
        variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let set = set.join(" ");
    format!(
        "ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/user.pub
PasswordAuthentication no
PermitRootLogin yes
StrictModes no
UsePAM no
SetEnv HOME={home} {set}
"
    )
}

fn client(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "Host login
HostName 127.0.0.1
HostKeyAlias login
Port {port}
User root
IdentityFile {folder}/user
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
"
    )
}

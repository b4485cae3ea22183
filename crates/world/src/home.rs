//! Where crew keeps its loops, and the name of every file there. Nothing that the agent can write
//! decides this: a hook reads the home from a file in the client's own folder for the plugin,
//! because the project's settings can set environment variables for the next hook but cannot move
//! that folder.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::env;
use crate::files::disk::{self, Durability};
use engine::record::LoopId;

/// The folder `$CREW_HOME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    /// The home that the environment names, if a file of the client overrides it.
    overridden: Option<PathBuf>,
    /// The file that fixes the home of a client's hooks.
    pin: Option<PathBuf>,
}

/// The largest one-line file, in bytes.
const LINE_BYTES: u64 = 8192;
/// How many bytes of a stream are read at once.
const STREAMED: usize = 1 << 20;

impl Home {
    /// The home of the user's terminal: `CREW_HOME`, otherwise `$XDG_STATE_HOME/crew`, otherwise
    /// `~/.local/state/crew`.
    pub fn of_terminal() -> Option<Self> {
        let root = match env::path("CREW_HOME") {
            Some(root) => root,
            None => env::find_folder("XDG_STATE_HOME", ".local/state")?.join("crew"),
        };
        Some(Self { root, overridden: None, pin: None })
    }

    /// A home for a test.
    #[cfg(any(test, feature = "fixture"))]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), overridden: None, pin: None }
    }

    /// The home of a hook: the content of the file `home` in `data`, the client's folder for the
    /// plugin. Without the file or the folder, the home of the terminal.
    pub fn of_hook(data: Option<&Path>) -> io::Result<Option<Self>> {
        let terminal = Self::of_terminal();
        let Some(file) = data.map(|data| data.join("home")) else { return Ok(terminal) };
        let Some(line) = disk::read_text(&file, LINE_BYTES)? else {
            return Ok(terminal.map(|home| Self { pin: Some(file), ..home }));
        };
        let root = PathBuf::from(line.trim_end_matches('\n'));
        if !root.is_absolute() {
            let complaint = format!("{} is not an absolute path", file.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, complaint));
        }
        let overridden = terminal.map(|home| home.root).filter(|theirs| *theirs != root);
        Ok(Some(Self { root, overridden, pin: Some(file) }))
    }

    /// Fixes this home for every later hook. The first call decides.
    pub fn write_pin(&self) -> io::Result<()> {
        let Some(file) = &self.pin else { return Ok(()) };
        if disk::exists(file) {
            return Ok(());
        }
        disk::make_folder(file.parent().unwrap_or(Path::new("/")))?;
        disk::write(file, format!("{}\n", self.root.display()).as_bytes(), Durability::Machine)
    }

    /// Creates the folders that every loop needs, for this user only, because logs contain secrets.
    /// A `.gitignore`, which crew follows too, keeps a home inside a working tree out of the
    /// agent's work.
    pub fn make_folders(&self) -> io::Result<()> {
        for folder in ["loops", "sessions", "checkouts", "wakes"] {
            disk::make_private_folder(&self.root.join(folder))?;
        }
        let ignored = self.root.join(".gitignore");
        if disk::exists(&ignored) {
            return Ok(());
        }
        disk::write(&ignored, b"*\n", Durability::Process)
    }

    /// The home that the environment names, if a file of the client overrides it.
    pub fn overridden(&self) -> Option<&Path> {
        self.overridden.as_deref()
    }

    /// The path of the home.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The home of one of several machines that share this folder.
    pub fn of_node(&self, node: &str) -> Self {
        Self { root: self.root.join("nodes").join(node), ..self.clone() }
    }

    /// The folder with every loop's folder.
    pub fn loops_folder(&self) -> PathBuf {
        self.root.join("loops")
    }

    /// The folder of one loop.
    pub fn loop_folder(&self, id: &LoopId) -> PathBuf {
        self.loops_folder().join(id.as_str())
    }

    /// A file of one loop.
    pub fn loop_file(&self, id: &LoopId, name: &str) -> PathBuf {
        self.loop_folder(id).join(name)
    }

    /// The notes of the process groups that one loop has started.
    pub fn groups_folder(&self, id: &LoopId) -> PathBuf {
        self.loop_file(id, "groups")
    }

    /// The pointer of a session, whose id must already be checked to be a plain name.
    pub fn session_pointer(&self, session_id: &str) -> PathBuf {
        self.root.join("sessions").join(session_id)
    }

    /// The pointer to the last loop of a session, once that loop has ended or moved. Session ids
    /// have no dots.
    pub fn last_pointer(&self, session_id: &str) -> PathBuf {
        self.root.join("sessions").join(format!("{session_id}.last"))
    }

    /// The pointer of a working tree, named by the hash of its real path.
    pub fn checkout_pointer(&self, checkout: &Path) -> PathBuf {
        self.of_checkout("checkouts", checkout)
    }

    /// What was trusted in a working tree, named like its pointer.
    pub fn trust_file(&self, checkout: &Path) -> PathBuf {
        self.of_checkout("trust", checkout)
    }

    /// The folder of all private git dirs.
    pub fn trees_folder(&self) -> PathBuf {
        self.root.join("trees")
    }

    /// The private git dir of a working tree, named like its pointer.
    pub fn tree_folder(&self, checkout: &Path) -> PathBuf {
        self.of_checkout("trees", checkout)
    }

    /// The folder in which a working tree's checks run on another state of it.
    pub fn scratch_folder(&self, checkout: &Path) -> PathBuf {
        self.of_checkout("scratch", checkout)
    }

    fn of_checkout(&self, kind: &str, checkout: &Path) -> PathBuf {
        let digest = hash(checkout.as_os_str().as_encoded_bytes());
        self.root.join(kind).join(&digest[..32])
    }

    /// The folder of the rate windows of all accounts.
    pub fn accounts_folder(&self) -> PathBuf {
        self.root.join("accounts")
    }

    /// The folder of this machine's slots and of the queue for them.
    pub fn slots_folder(&self) -> PathBuf {
        self.root.join("slots")
    }

    /// The folder of all fleets.
    pub fn fleets_folder(&self) -> PathBuf {
        self.root.join("fleets")
    }

    /// The folder of a fleet.
    pub fn fleet_folder(&self, name: &str) -> PathBuf {
        self.fleets_folder().join(name)
    }

    /// Whether this machine has the record of a fleet.
    pub fn keeps_fleet(&self, name: &str) -> bool {
        disk::is_file(&self.fleet_folder(name).join("fleet.json"))
    }

    /// The folder of a session's companions.
    pub fn wakes_folder(&self, session_id: &str) -> PathBuf {
        self.root.join("wakes").join(session_id)
    }
}

/// The loop that a pointer names.
pub fn read_pointer(pointer: &Path) -> io::Result<Option<LoopId>> {
    let line = disk::read_text(pointer, LINE_BYTES)?;
    Ok(line.and_then(|line| line.trim().parse().ok()))
}

/// Points a pointer to a loop.
pub fn write_pointer(pointer: &Path, id: &LoopId) -> io::Result<()> {
    disk::write(pointer, format!("{id}\n").as_bytes(), Durability::Machine)
}

/// SHA-256 in hexadecimal: for file names, and to compare states without storing them.
pub fn hash(bytes: &[u8]) -> String {
    in_hexadecimal(&Sha256::digest(bytes))
}

/// Like [`hash`], for a whole stream.
pub fn hash_stream(mut stream: impl io::Read) -> io::Result<String> {
    let (mut digest, mut bytes) = (Sha256::new(), vec![0; STREAMED]);
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(in_hexadecimal(&digest.finalize())),
            read => digest.update(&bytes[..read]),
        }
    }
}

fn in_hexadecimal(digest: &[u8]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

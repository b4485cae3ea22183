//! Requests to the coordinator of a fleet, each a file in a folder of the fleet.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::read_local;
use crate::fleet::files::FleetFiles;
use crate::fleet::step::FleetRequest;
use engine::failure::Failure;
use engine::fleet::TaskId;
use engine::text::EscapedLine;
use world::clock;
use world::env;
use world::files::disk::{self, Durability};
use world::store::{Home, read_json, write_json};

/// The maximum number of waiting requests, and the maximum size of one, in bytes.
pub(super) const REQUESTS_MAX: usize = 1000;
const REQUEST_BYTES: u64 = 64 << 10;

/// A request as a file.
#[derive(Debug, Serialize, Deserialize)]
struct RequestFile {
    task: Option<TaskId>,
    request: FleetRequest,
}

/// Leaves a request for the coordinator, which reads it within a second or at its start. `None`
/// means all tasks.
pub fn send_request(
    home: &Home,
    fleet: &str,
    task: Option<&TaskId>,
    request: &FleetRequest,
) -> Result<()> {
    let files = FleetFiles::new(home, fleet);
    if !disk::is_file(&files.record()) {
        bail!(Failure::new(
            format!("this machine has no fleet {}", EscapedLine(fleet)),
            "crew status lists them"
        ));
    }
    files.make()?;
    if disk::names(&files.requests(), REQUESTS_MAX).len() >= REQUESTS_MAX {
        let run = read_local(home, fleet)?.unwrap_or_default().terms.run_command();
        bail!(Failure::new(
            format!("{REQUESTS_MAX} requests to the fleet {fleet} wait already"),
            format!("{run} reads them")
        ));
    }
    let now = clock::now().wall.timestamp_micros();
    let file = files.requests().join(format!("{now:020}-{:016x}.json", env::random_number()));
    let request = RequestFile { task: task.cloned(), request: request.clone() };
    Ok(write_json(&file, &request, Durability::Machine)?)
}

/// The waiting requests, the oldest first.
#[derive(Debug, Default)]
pub struct WaitingRequests {
    pub requests: Vec<(Option<TaskId>, FleetRequest)>,
    /// A line for each unreadable file that was set aside.
    pub notes: Vec<String>,
    files: Vec<PathBuf>,
}

/// Lists the files of the waiting requests, the oldest first.
fn request_files(files: &FleetFiles) -> Vec<PathBuf> {
    let mut names = disk::names(&files.requests(), REQUESTS_MAX);
    names.retain(|name| {
        Path::new(name).extension().is_some_and(|end| end == "json") && !name.starts_with('.')
    });
    names.sort();
    names.iter().map(|name| files.requests().join(name)).collect()
}

/// Reads the requests that the coordinator will read next, and leaves their files.
pub fn waiting_requests(home: &Home, fleet: &str) -> Vec<(Option<TaskId>, FleetRequest)> {
    let files = request_files(&FleetFiles::new(home, fleet));
    let read = files.iter().filter_map(|file| read_json(file, REQUEST_BYTES));
    read.map(|RequestFile { task, request }| (task, request)).collect()
}

impl WaitingRequests {
    /// Reads the waiting requests. Their files stay until [`Self::remove_files`].
    pub fn read_waiting(files: &FleetFiles) -> Self {
        let mut waiting = Self::default();
        for file in request_files(files) {
            if let Some(RequestFile { task, request }) = read_json(&file, REQUEST_BYTES) {
                waiting.requests.push((task, request));
                waiting.files.push(file);
            } else if disk::exists(&file) {
                // All get the same name, so that nobody can fill the folder with them.
                let see = match disk::move_aside(&file, "unreadable") {
                    Ok(aside) => aside.display().to_string(),
                    Err(error) => error.to_string(),
                };
                waiting.notes.push(format!("a request cannot be read; see {see}"));
            }
        }
        waiting
    }

    /// Removes the files of the requests that were read, once the record contains their effects.
    pub fn remove_files(self) -> io::Result<()> {
        self.files.iter().try_for_each(|file| disk::remove(file))
    }
}

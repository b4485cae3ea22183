//! Disk space reserved by a live loop, so that on a full disk it can still take a request and be
//! recorded as ended: overwriting a file in place needs no new block, and releasing the file frees
//! some. On a copy-on-write file system this may help but is not guaranteed.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::disk;
use crate::engine::record::LoopId;
use crate::world::store::home::Home;

/// Enough for a control request, a record of ten thousand iterations, its line in the journal, and
/// a page.
const ROOM_BYTES: usize = 256 << 10;

fn file(home: &Home, id: &LoopId) -> PathBuf {
    home.loop_file(id, "room")
}

/// Reserves space for a loop that starts or resumes. If there is none, the loop continues without.
pub fn keep(home: &Home, id: &LoopId) {
    let file = file(home, id);
    if disk::size(&file) < ROOM_BYTES as u64 {
        let _ = disk::remove(&file);
        let kept = disk::create_private(&file);
        if kept.and_then(|mut kept| kept.write_all(&vec![b'\n'; ROOM_BYTES])).is_err() {
            let _ = disk::remove(&file);
        }
    }
}

/// Releases the space to the next writer; `false` if none was reserved.
pub fn give_up(home: &Home, id: &LoopId) -> bool {
    let file = file(home, id);
    disk::exists(&file) && disk::remove(&file).is_ok()
}

/// Turns the reserved file into the file `to`, which then holds only `text`.
#[expect(
    clippy::disallowed_methods,
    reason = "a file that is there keeps its space on a full disk"
)]
pub fn spend(home: &Home, id: &LoopId, to: &Path, text: &str) -> io::Result<()> {
    // The name contains this process's id, so that no other process can use the space too.
    let mine = home.loop_file(id, &format!(".room.{}.tmp", std::process::id()));
    disk::rename(&file(home, id), &mine)?;
    let mut file = OpenOptions::new().write(true).open(&mine)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_all()?;
    disk::rename(&mine, to)
}

//! Room on the disk that a live loop keeps, so that on a full one it can still be ordered about, and still be
//! recorded as over: what is written over in place needs no new block, and what is given up leaves some. Where
//! a file system copies what it writes over, it may help and promises nothing.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::disk;
use crate::engine::record::LoopId;
use crate::world::store::home::Home;

/// Enough for an order, a record of ten thousand iterations, its line in the journal, and a page.
const ROOM_BYTES: usize = 256 << 10;

fn file(home: &Home, id: &LoopId) -> PathBuf {
    home.loop_file(id, "room")
}

/// Keeps room for a loop that begins or is resumed; one that finds none goes on without.
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

/// Leaves the room to whoever writes next; `false` where there was none.
pub fn give_up(home: &Home, id: &LoopId) -> bool {
    let file = file(home, id);
    disk::exists(&file) && disk::remove(&file).is_ok()
}

/// Makes the room the file `to`, which then holds only `text`.
pub fn spend(home: &Home, id: &LoopId, to: &Path, text: &str) -> io::Result<()> {
    // Under a name of this process's own nobody else can spend it too.
    let mine = home.loop_file(id, &format!(".room.{}.tmp", std::process::id()));
    disk::rename(&file(home, id), &mine)?;
    let mut file = OpenOptions::new().write(true).open(&mine)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_all()?;
    disk::rename(&mine, to)
}

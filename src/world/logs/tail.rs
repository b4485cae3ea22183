//! Reads the end of a log, and what is added to it later.

use std::io;
use std::path::{Path, PathBuf};

use crate::world::disk;

/// The largest log that is read.
const LOG_BYTES: u64 = 32 << 20;

/// A log being read.
#[derive(Debug)]
pub struct Tail {
    log: PathBuf,
    /// Where the next byte is.
    at: usize,
}

impl Tail {
    /// Begins `most` bytes before the end. A log that does not exist yet is waited for.
    pub fn open(log: &Path, most: u64) -> io::Result<Self> {
        let size = disk::read(log, LOG_BYTES)?.map_or(0, |bytes| bytes.len());
        let at = size.saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(Self { log: log.to_owned(), at })
    }

    /// The next bytes. None: all that is there was read; ask again later to follow.
    pub fn next(&mut self) -> io::Result<Vec<u8>> {
        let bytes = disk::read(&self.log, LOG_BYTES)?.unwrap_or_default();
        let new = bytes.get(self.at..).unwrap_or_default().to_vec();
        self.at = bytes.len();
        Ok(new)
    }
}

//! Deletes the oldest logs of all loops. It never deletes a loop's record, only what its agents
//! printed.

use std::path::PathBuf;
use std::time::Duration;

use super::FOLDER;
use crate::world::clock;
use crate::world::files::disk;
use crate::world::store::home::Home;

/// More loops than a home has, and more logs than a loop has.
const ENTRIES_MAX: usize = 100_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Keeps the newest `most` bytes of logs and none older than `days`; 0 means no limit, for each. A
/// log's age counts from its last write. What cannot be deleted is skipped.
pub fn prune(home: &Home, most: u64, days: u64) {
    let mut logs = logs(home);
    logs.sort_unstable_by_key(|log| std::cmp::Reverse(log.written));
    let oldest = now() - i128::try_from(DAY.as_nanos()).unwrap_or(0) * i128::from(days);
    let mut kept = 0;
    for log in logs {
        let is_old = days > 0 && log.written < oldest;
        if !is_old && (most == 0 || kept + log.bytes <= most) {
            kept += log.bytes;
        } else {
            let _ = disk::remove(&log.path);
        }
    }
}

struct StoredLog {
    path: PathBuf,
    bytes: u64,
    /// Nanoseconds since 1970.
    written: i128,
}

fn logs(home: &Home) -> Vec<StoredLog> {
    let loops = disk::names(&home.loops(), ENTRIES_MAX);
    let folders = loops.iter().map(|name| home.loops().join(name).join(FOLDER));
    let names = folders.flat_map(|folder| {
        let names = disk::names(&folder, ENTRIES_MAX).into_iter();
        names.filter(|name| is_kept(name)).map(move |name| folder.join(name))
    });
    let files = names.filter_map(|path| {
        let (bytes, written) = disk::stamp(&path)?;
        Some(StoredLog { path, bytes, written })
    });
    files.take(ENTRIES_MAX).collect()
}

/// Whether a file is bounded by the settings for logs: an agent's output, or its prompt.
fn is_kept(name: &str) -> bool {
    name.contains(".log") || name.ends_with(".prompt")
}

fn now() -> i128 {
    i128::from(clock::now().wall.timestamp()) * 1_000_000_000
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::world::files::disk::Durability;

    /// A home with these logs of 100 bytes each: loop, iteration, age in days.
    fn home(logs: &[(&str, u32, u64)]) -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        for (id, iteration, age) in logs {
            let path = crate::world::store::logs::path(&home, &id.parse().unwrap(), *iteration);
            disk::make_private_folder(path.parent().unwrap()).unwrap();
            disk::write(&path, &[b'x'; 100], Durability::Process).unwrap();
            let file = disk::open_to_append(&path).unwrap();
            let wall: SystemTime = clock::now().wall.into();
            file.set_modified(wall - DAY * u32::try_from(*age).unwrap()).unwrap();
        }
        (folder, home)
    }

    fn left(home: &Home) -> Vec<String> {
        let root = home.loops();
        let name = |log: StoredLog| log.path.strip_prefix(&root).unwrap().display().to_string();
        let mut left: Vec<String> = logs(home).into_iter().map(name).collect();
        left.sort();
        left
    }

    const LOGS: [(&str, u32, u64); 4] =
        [("k3v9aaaa", 1, 100), ("k3v9aaaa", 2, 3), ("m2m2bbbb", 1, 1), ("m2m2bbbb", 2, 91)];

    #[test]
    fn logs_go_by_their_age_over_all_loops() {
        let (_folder, home) = home(&LOGS);
        prune(&home, 0, 90);
        assert_eq!(left(&home), ["k3v9aaaa/iterations/0002.log", "m2m2bbbb/iterations/0001.log"]);
    }

    #[test]
    fn a_prompt_goes_with_the_logs() {
        let (_folder, home) = home(&[]);
        let id = "k3v9aaaa".parse().unwrap();
        crate::world::store::logs::keep_prompt(&home, &id, 1, "Build it.");
        assert_eq!(
            crate::world::store::logs::read_prompt(&home, &id, 1).as_deref(),
            Some("Build it.")
        );
        prune(&home, 1, 0);
        assert_eq!(crate::world::store::logs::read_prompt(&home, &id, 1), None);
    }

    #[test]
    fn of_too_many_bytes_the_oldest_go() {
        let (_folder, home) = home(&LOGS);
        prune(&home, 150, 0);
        assert_eq!(left(&home), ["m2m2bbbb/iterations/0001.log"]);
        prune(&home, 0, 0);
        assert_eq!(left(&home), ["m2m2bbbb/iterations/0001.log"]);
    }
}

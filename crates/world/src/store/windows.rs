//! The rate windows of this machine, one file for each account and model. A file that is broken or
//! foreign, or closed for longer than any limit lasts, is ignored and replaced.

use std::io;
use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{LOCK_WAIT, read_json, write_json};
use crate::clock;
use crate::files::disk::{self, Durability};
use crate::home::Home;
use engine::boundary::window::RateWindow;
use engine::record::{AccountId, LoopId};
use readers::parse::service::is_believed;

/// The largest file that is read.
const FILE_BYTES: u64 = 256 << 10;
/// The maximum number of accounts listed.
const ACCOUNTS_MAX: usize = 1000;

/// The window of an account, if it has one.
pub fn read_window(home: &Home, account: &AccountId) -> Option<RateWindow> {
    of_file(home, &account.file_stem())
}

/// The windows of all accounts.
pub fn list_windows(home: &Home) -> Vec<RateWindow> {
    let mut stems: Vec<String> = disk::names(&home.accounts_folder(), ACCOUNTS_MAX)
        .into_iter()
        .filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
        .filter(|stem| !stem.starts_with('.'))
        .collect();
    stems.sort();
    stems.iter().filter_map(|stem| of_file(home, stem)).collect()
}

fn of_file(home: &Home, stem: &str) -> Option<RateWindow> {
    let window: RateWindow = read_json(&window_file(home, stem, "json"), FILE_BYTES)?;
    let is_its_own = window.account.file_stem() == stem;
    (is_its_own && is_believed(window.free_from(), clock::local_time())).then_some(window)
}

fn window_file(home: &Home, stem: &str, extension: &str) -> PathBuf {
    home.accounts_folder().join(format!("{stem}.{extension}"))
}

/// Changes the window of an account under its lock. Without a window, the account has no file.
pub fn change_window<T>(
    home: &Home,
    account: &AccountId,
    change: impl FnOnce(&mut Option<RateWindow>) -> T,
) -> io::Result<T> {
    let stem = account.file_stem();
    disk::make_private_folder(&home.accounts_folder())?;
    let lock = disk::take_lock(&window_file(home, &stem, "lock"), LOCK_WAIT)?;
    let _lock = lock.ok_or_else(|| io::Error::other("its lock is held"))?;
    let known = read_window(home, account);
    let mut next = known.clone();
    let result = change(&mut next);
    let file = window_file(home, &stem, "json");
    match &next {
        // If the machine crashes before this is on the disk, it is written again at the next limit.
        Some(window) if next != known => write_json(&file, window, Durability::Process)?,
        None if known.is_some() => disk::remove(&file)?,
        _ => {}
    }
    Ok(result)
}

/// Frees the turns of a loop that is over.
pub fn free_turns(home: &Home, by: &LoopId, now: DateTime<Utc>) -> io::Result<()> {
    for window in list_windows(home) {
        if window.turns.contains_key(by) && !window.back.contains(by) {
            change_window(home, &window.account, |known| {
                if let Some(window) = known {
                    window.free_turn(by, now);
                }
            })?;
        }
    }
    Ok(())
}

/// Removes the windows that are over at that time: the limit has passed, and every loop is back.
pub fn remove_over(home: &Home, now: DateTime<Utc>) {
    for window in list_windows(home).into_iter().filter(|window| window.free_from() <= now) {
        // A window that another process has locked is removed the next time.
        let _ = change_window(home, &window.account, |known| {
            known.take_if(|window| window.free_from() <= now);
        });
    }
}

//! The look at the checks before the first iteration: what they prove at the end can only be told from what they
//! said before. It judges nothing and ends nothing.

use anyhow::Result;

use super::watch::Cancels;
use crate::drive::{ending, gather};
use crate::engine::evidence::{TAIL_CHARS, tail_of};
use crate::engine::facts::Verdict;
use crate::engine::journal::Event;
use crate::engine::looped::{CheckMemory, Loop};
use crate::engine::news::{Listener, News};
use crate::world::fingerprint::fingerprint;
use crate::world::home::Home;
use crate::world::unix::Signals;
use crate::world::{clock, store};

/// Runs every check once before the first iteration.
pub(super) fn baseline(
    home: &Home,
    mut record: Loop,
    signals: &Signals,
    listener: &mut dyn Listener,
) -> Result<Loop> {
    if record.contract.checks.is_empty() {
        return Ok(record);
    }
    let listener = std::cell::RefCell::new(listener);
    let id = record.id.clone();
    let cancels = Cancels::new(home, &id);
    let stop = || {
        listener.borrow_mut().tick();
        signals.times() > 0 || cancels.any()
    };
    let tell = |news: &News<'_>| listener.borrow_mut().hear(news);
    let Some(results) = gather::each(home, &record, &stop, &tell) else {
        return Ok(store::load(home, &id)?);
    };
    for result in results.iter().filter(|result| result.verdict != Verdict::Unknown) {
        let mut memory = CheckMemory::of(result, 0, None);
        if memory.ever_failed {
            memory.tail = tail_of(&result.tail, TAIL_CHARS);
        }
        record.state.checks.insert(result.run.clone(), memory);
    }
    for why in results.iter().filter_map(|result| result.incurable.as_ref()) {
        tell(&News::Noted(why));
    }
    if results.iter().all(|result| result.verdict == Verdict::Passed) {
        tell(&News::Noted(
            "every check passes already: they will not tell a finished job from an unbegun one",
        ));
    }
    record.state.awake_ms += ending::spent_ms(&record);
    record.state.began = clock::now();
    if record.watches_the_tree() {
        record.state.tree = fingerprint(&record).map(|it| it.hash);
    }
    let held = store::hold(home, &record.id, store::LOCK_WAIT)?;
    let found = held.load()?;
    if found.state.generation != record.state.generation {
        return Ok(found);
    }
    Ok(held.record(record, |next| Event::changed("checked before the first iteration", next))?)
}

//! The loops of this machine for the board. A record is read again only when its file has changed,
//! so that a look at a thousand loops costs little.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use chrono::{DateTime, Utc};

use crate::drive::page::view;
use crate::engine::record::{Loop, LoopId};
use crate::engine::view::LoopView;
use crate::report::board::BoardRow;
use crate::report::list::ListReading;
use crate::world::files::disk;
use crate::world::store::{self, Home, fleets};

/// Every loop of a home, as it was read last.
#[derive(Debug)]
pub struct Machine<'a> {
    home: &'a Home,
    known: BTreeMap<LoopId, Known>,
}

#[derive(Debug)]
struct Known {
    /// The size and time of the record's file.
    stamp: Option<(u64, i128)>,
    /// `None` if it cannot be read.
    record: Option<Loop>,
}

impl<'a> Machine<'a> {
    /// Nothing is read yet.
    pub fn of(home: &'a Home) -> Self {
        Self { home, known: BTreeMap::new() }
    }

    /// Reads what has changed.
    pub fn look(&mut self) {
        let mut before = std::mem::take(&mut self.known);
        for id in store::ids(self.home) {
            let stamp = disk::stamp(&self.home.loop_file(&id, "loop.json"));
            let known = match before.remove(&id) {
                Some(known) if known.stamp == stamp => known,
                _ => Known { stamp, record: store::load(self.home, &id).ok() },
            };
            if stamp.is_some() {
                self.known.insert(id, known);
            }
        }
    }

    /// A loop.
    pub fn record(&self, id: &LoopId) -> Option<&Loop> {
        self.known.get(id)?.record.as_ref()
    }

    /// The ids of all loops.
    pub fn ids(&self) -> Vec<LoopId> {
        self.known.keys().cloned().collect()
    }

    /// How many records cannot be read.
    pub fn unreadable(&self) -> u64 {
        self.known.values().filter(|known| known.record.is_none()).count() as u64
    }

    /// The rows of those that the board shows.
    pub fn rows(&self, at: ListReading<'_>) -> Vec<BoardRow> {
        let records: Vec<&Loop> = self.known.values().filter_map(|it| it.record.as_ref()).collect();
        views(self.home, &records).iter().filter_map(|it| BoardRow::of(it, at.home)).collect()
    }
}

/// How each of these stands, which are all loops of a machine.
pub fn views<'a>(home: &Home, loops: &[&'a Loop]) -> Vec<LoopView<'a>> {
    let mut newest: HashMap<&PathBuf, DateTime<Utc>> = HashMap::new();
    for record in loops {
        let last = newest.entry(&record.place.checkout).or_insert(record.started_at);
        *last = record.started_at.max(*last);
    }
    let views = loops.iter().map(|record| LoopView {
        task: record.fleet.as_ref().filter(|it| fleets::is_kept(home, &it.name)),
        is_replaced: newest.get(&record.place.checkout) > Some(&record.started_at),
        ..view(home, record)
    });
    views.collect()
}

//! The iteration times of a loop: their spread, and the totals of those that are no longer kept.

use serde::{Deserialize, Serialize};

/// The spread of some durations, each in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spread {
    pub min: u64,
    pub mean: u64,
    pub max: u64,
}

/// The most single iteration times kept in a record; the newest are.
pub const KEPT: usize = 100;

/// The totals of the iteration times that are not kept singly: a record that grew with its
/// iterations would make each one slower than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    pub count: u64,
    pub min_ms: u64,
    pub max_ms: u64,
    pub sum_ms: u64,
}

impl Earlier {
    /// Adds other times.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min_ms = if self.count == 0 { other.min_ms } else { self.min_ms.min(other.min_ms) };
        self.max_ms = self.max_ms.max(other.max_ms);
        self.count += other.count;
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
    }

    /// Adds one time.
    pub fn add(&mut self, ms: u64) {
        self.min_ms = if self.count == 0 { ms } else { self.min_ms.min(ms) };
        self.max_ms = self.max_ms.max(ms);
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
    }

    /// The spread of at least two durations; `None` for fewer.
    pub fn spread(&self) -> Option<Spread> {
        (self.count >= 2).then(|| Spread {
            min: self.min_ms,
            mean: self.sum_ms.saturating_add(self.count / 2) / self.count,
            max: self.max_ms,
        })
    }
}

/// The spread of at least two durations, the `newest` and the `earlier` ones; `None` for fewer.
pub fn spread(earlier: &Earlier, newest: &[u64]) -> Option<Spread> {
    let mut all = *earlier;
    for ms in newest {
        all.add(*ms);
    }
    all.spread().filter(|_| !newest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_iterations_is_their_least_their_mean_and_their_most() {
        let table: [(&[u64], Option<[u64; 3]>); 6] = [
            (&[], None),
            (&[45_200], None),
            (&[10, 10], Some([10, 10, 10])),
            (&[2, 4, 4, 4, 5, 5, 7, 9], Some([2, 5, 9])),
            (&[45_200, 38_700, 52_100], Some([38_700, 45_333, 52_100])),
            (&[0, u64::MAX], Some([0, u64::MAX / 2, u64::MAX])),
        ];
        for (times, expected) in table {
            let found = spread(&Earlier::default(), times).map(|it| [it.min, it.mean, it.max]);
            assert_eq!(found, expected, "{times:?}");
        }
    }

    #[test]
    fn times_that_are_only_summed_up_spread_as_they_did_one_by_one() {
        let times: Vec<u64> = (0..1000).map(|number| 40_000 + number * 7919 % 9_000).collect();
        let all = spread(&Earlier::default(), &times);
        for cut in [1, 500, 999] {
            let mut earlier = Earlier::default();
            times[..cut].iter().for_each(|ms| earlier.add(*ms));
            assert_eq!(spread(&earlier, &times[cut..]), all, "{cut}");
        }
    }
}

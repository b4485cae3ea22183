//! What the times of a loop's iterations come to.

use serde::{Deserialize, Serialize};

/// The spread of some durations, each in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spread {
    pub min: u64,
    pub mean: u64,
    pub max: u64,
    /// The sample's standard deviation: of n values, over n − 1.
    pub deviation: u64,
}

/// The most times of single iterations that a record keeps, the newest.
pub const KEPT: usize = 100;

/// What the times of iterations come to that are not kept one by one: a record that grew with its iterations
/// would make each of them slower than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    pub count: u64,
    pub min_ms: u64,
    pub max_ms: u64,
    pub sum_ms: u64,
    /// Of the times' squares.
    pub squares: u64,
}

impl Earlier {
    /// Takes one more time.
    pub fn add(&mut self, ms: u64) {
        self.min_ms = if self.count == 0 { ms } else { self.min_ms.min(ms) };
        self.max_ms = self.max_ms.max(ms);
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
        self.squares = self.squares.saturating_add(ms.saturating_mul(ms));
    }
}

/// The spread of at least two durations, those of `newest` and the earlier ones; of fewer there is none.
#[expect(
    clippy::cast_precision_loss,
    reason = "a spread is exact enough in any unit a person reads"
)]
pub fn spread(earlier: &Earlier, newest: &[u64]) -> Option<Spread> {
    let (min, max) = (*newest.iter().min()?, *newest.iter().max()?);
    let (before, after) = (earlier.count as f64, newest.len() as f64);
    let count = before + after;
    if count < 2.0 {
        return None;
    }
    let late = mean(newest.iter().map(|ms| *ms as f64), after);
    let mut squares: f64 = newest.iter().map(|ms| (*ms as f64 - late).powi(2)).sum();
    let early = if earlier.count == 0 { late } else { earlier.sum_ms as f64 / before };
    let mean = early * (before / count) + late * (after / count);
    squares += (earlier.squares as f64 - early * early * before).max(0.0);
    squares += (late - early).powi(2) * before * after / count;
    let is_first = earlier.count == 0;
    Some(Spread {
        min: if is_first { min } else { min.min(earlier.min_ms) },
        mean: whole(mean),
        max: max.max(earlier.max_ms),
        deviation: whole((squares / (count - 1.0)).sqrt()),
    })
}

fn mean(values: impl Iterator<Item = f64>, over: f64) -> f64 {
    values.sum::<f64>() / over
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative; the cast saturates"
)]
fn whole(ms: f64) -> u64 {
    ms.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_iterations_is_that_of_a_sample() {
        let table: [(&[u64], Option<[u64; 4]>); 6] = [
            (&[], None),
            (&[45_200], None),
            (&[10, 10], Some([10, 10, 10, 0])),
            (&[2, 4, 4, 4, 5, 5, 7, 9], Some([2, 5, 9, 2])),
            (&[45_200, 38_700, 52_100], Some([38_700, 45_333, 52_100, 6_701])),
            (&[0, u64::MAX], Some([0, u64::MAX / 2 + 1, u64::MAX, 13_043_817_825_332_783_104])),
        ];
        for (times, expected) in table {
            let found = spread(&Earlier::default(), times)
                .map(|it| [it.min, it.mean, it.max, it.deviation]);
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

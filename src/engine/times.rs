//! What the times of a loop's iterations come to.

use serde::Serialize;

/// The spread of some durations, each in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spread {
    pub min: u64,
    pub mean: u64,
    pub max: u64,
    /// The sample's standard deviation: of n values, over n − 1.
    pub deviation: u64,
}

/// The spread of at least two durations; of fewer there is none.
#[expect(
    clippy::cast_precision_loss,
    reason = "a spread is exact enough in any unit a person reads"
)]
pub fn spread(times_ms: &[u64]) -> Option<Spread> {
    let (min, max) = (*times_ms.iter().min()?, *times_ms.iter().max()?);
    let count = times_ms.len();
    if count < 2 {
        return None;
    }
    let mean = mean(times_ms.iter().map(|ms| *ms as f64), count as f64);
    let squares = times_ms.iter().map(|ms| (*ms as f64 - mean).powi(2));
    let deviation = self::mean(squares, count as f64 - 1.0).sqrt();
    Some(Spread { min, mean: whole(mean), max, deviation: whole(deviation) })
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
            let found = spread(times).map(|it| [it.min, it.mean, it.max, it.deviation]);
            assert_eq!(found, expected, "{times:?}");
        }
    }
}

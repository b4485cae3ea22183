//! A moment on two clocks: wall time and awake time. It reads neither clock.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// One instant on both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// For dates, resets and people.
    pub wall: DateTime<Utc>,
    /// Milliseconds this machine has been awake since boot; for durations.
    pub awake_ms: u64,
}

impl Moment {
    /// How long the machine slept since `earlier`: the wall time that passed minus the awake time.
    /// A clock that was set forward looks the same.
    pub fn asleep_since(self, earlier: Self) -> TimeDelta {
        let awake = self.awake_ms.saturating_sub(earlier.awake_ms);
        let awake = TimeDelta::milliseconds(i64::try_from(awake).unwrap_or(i64::MAX / 2));
        self.wall - earlier.wall - awake
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixture::at;

    #[test]
    fn sleep_is_what_the_wall_clock_gained_on_the_time_awake() {
        let mut woken = at(60);
        assert_eq!(woken.asleep_since(at(0)), TimeDelta::zero());
        woken.wall += TimeDelta::hours(7);
        assert_eq!(woken.asleep_since(at(0)), TimeDelta::hours(7));
    }
}

//! How often a fleet is looked at: often while something changes, ever less often while nothing
//! does. A remote and a cluster answer many others. It reads no clock.

use std::time::Duration;

/// The time from one look to the next.
#[derive(Debug)]
pub struct Pace {
    least: Duration,
    most: Duration,
    pause: Duration,
}

impl Pace {
    /// A pause of `least` at first, and of `most` in the end.
    pub fn of(least: Duration, most: Duration) -> Self {
        Self { least, most, pause: least }
    }

    /// The pause after a look. It doubles as long as nothing has changed.
    pub fn after(&mut self, has_changed: bool) -> Duration {
        if has_changed {
            self.pause = self.least;
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(self.most);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_most_and_a_change_brings_the_least_back() {
        let mut pace = Pace::of(Duration::from_secs(1), Duration::from_secs(15));
        let changes = [true, true, false, false, false, false, false, true, false];
        let pauses = changes.map(|has_changed| pace.after(has_changed).as_secs());
        assert_eq!(pauses, [1, 1, 2, 4, 8, 15, 15, 1, 2]);
        let mut even = Pace::of(Duration::from_millis(100), Duration::from_millis(100));
        assert_eq!([false, true, false].map(|it| even.after(it).as_millis()), [100; 3]);
    }
}

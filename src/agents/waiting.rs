//! How long an agent may do nothing but wait for the model's service. crew ends it after that and
//! waits without a process: that costs nothing, holds no memory, and outlasts a night. A short
//! limit that the agent outlasts by itself must cost nothing, so it has a minute.

use std::time::Duration;

/// How long an agent may wait by itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may be silent where it does not say how long it pauses: that may be a model at work.
const SILENCE: Duration = Duration::from_secs(3 * 60);
/// How long a try takes to fail at once: within it after a retry the agent is not at work.
const MOMENT: Duration = Duration::from_secs(1);

/// An agent's word that it waits for the service, and does nothing else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceWait {
    /// How often it reported so in a row.
    pub tries: u32,
    /// How long it pauses before the next try; `None` where that is not reported. Then it either
    /// pauses or asks.
    pub pause: Option<Duration>,
    /// Whether every further try is in vain.
    pub is_hopeless: bool,
}

impl ServiceWait {
    /// The pause, if it is longer than an agent may wait by itself.
    pub fn long_pause(self) -> Option<Duration> {
        self.pause.filter(|pause| *pause > PATIENCE)
    }

    /// Whether it has waited enough. `since` is the time since the first of the tries in a row,
    /// `last` that since the last one. After a pause that was reported the agent is at work
    /// again, however silently: a model may think for minutes.
    pub fn is_enough(self, since: Duration, last: Duration) -> bool {
        let pauses = last <= self.pause.unwrap_or_default().max(MOMENT);
        let is_silent = self.pause.is_none() && last >= SILENCE;
        let is_over = is_silent || (since >= PATIENCE && pauses);
        self.is_hopeless || self.long_pause().is_some() || is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_a_minute_and_no_pause_of_more_is_waited_for_with_a_process() {
        let untold = ServiceWait { tries: 1, ..ServiceWait::default() };
        let pause = |seconds| ServiceWait { pause: Some(Duration::from_secs(seconds)), ..untold };
        let table = [
            ("it pauses for five seconds", pause(5), 0, 0, false),
            ("it has paused for five seconds again and again", pause(5), 61, 3, true),
            ("it asked again half a minute ago, and the model may think", pause(5), 90, 30, false),
            ("it pauses for an hour", pause(3600), 0, 0, true),
            ("it does not say for how long, and the model may think", untold, 179, 179, false),
            ("it does not say for how long, and says nothing else", untold, 180, 180, true),
            ("it does not say for how long, and tells of one more try", untold, 61, 0, true),
            ("each try is told when it is made", pause(0), 61, 0, true),
            ("a try was made some time ago", pause(0), 61, 2, false),
            ("no try can help", ServiceWait { is_hopeless: true, ..untold }, 0, 0, true),
        ];
        for (what, wait, since, last, expected) in table {
            let [since, last] = [since, last].map(Duration::from_secs);
            assert_eq!(wait.is_enough(since, last), expected, "{what}");
        }
    }
}

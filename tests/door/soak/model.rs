//! The expected state of a loop, computed beside it: a short second version of the rules of a
//! boundary. It uses no file and no process.

/// The number of consecutive transient errors after which the user is asked.
const TRANSIENT_ERRORS_MAX: u64 = 12;

/// The terms of a loop's start, with later changes of its limits.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The maximum number of iterations; 0 means no limit.
    pub(super) max: u64,
    pub(super) threshold: u64,
    pub(super) stall: u64,
    pub(super) check: Check,
    /// Whether it may run for at most an hour.
    pub(super) an_hour: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Check {
    None,
    Verify,
    Gate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing {
    Running,
    Waiting,
    Paused,
    Ended(&'static str),
}

impl Standing {
    /// The status in `loop.json`.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Ended(_) => "finished",
        }
    }

    pub(super) fn outcome(self) -> Option<&'static str> {
        if let Self::Ended(outcome) = self { Some(outcome) } else { None }
    }
}

/// What the agent did and said before it stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) said: Said,
    /// Whether the loop's check would pass.
    pub(super) sound: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Said {
    Nothing,
    NearMiss,
    Success,
    Failure,
    Blocked,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) id: String,
    pub(super) terms: Terms,
    pub(super) standing: Standing,
    pub(super) boundaries: u64,
    pub(super) completed: u64,
    pub(super) failures: u64,
    pub(super) still: u64,
    pub(super) transient: u64,
    /// Whether a file has changed since the last iteration that counted.
    pub(super) changed: bool,
    /// Messages that the agent has not received yet.
    pub(super) words: Vec<String>,
    /// How many times the agent was given another iteration.
    pub(super) continued: u64,
    /// The highest limit it ever had; `None` once it had none.
    pub(super) highest: Option<u64>,
}

impl Model {
    pub(super) fn begin(id: String, terms: Terms) -> Self {
        let highest = Some(terms.max).filter(|max| *max > 0);
        Self {
            id,
            terms,
            standing: Standing::Running,
            boundaries: 0,
            completed: 0,
            failures: 0,
            still: 0,
            transient: 0,
            changed: false,
            words: Vec::new(),
            continued: 0,
            highest,
        }
    }

    /// Applies a boundary that counts an iteration.
    pub(super) fn iterate(&mut self, turn: Turn) {
        let gate_failed = self.terms.check == Check::Gate && !turn.sound;
        self.count(turn.said == Said::Failure || gate_failed);
        let believed = self.terms.check == Check::None || turn.sound;
        self.standing = if turn.said == Said::Blocked {
            Standing::Ended("blocked")
        } else if turn.said == Said::Success && believed {
            Standing::Ended("completed")
        } else {
            self.bounded()
        };
    }

    /// Applies a request that the service refused because of its content: a failed iteration.
    pub(super) fn refuse(&mut self) {
        // Its checks run like any iteration's, but it failed already.
        self.count(true);
        self.standing = self.bounded();
    }

    /// Applies a refusal of the account by the service: no iteration.
    pub(super) fn shut_out(&mut self) {
        self.follow_request(Standing::Ended("blocked"));
    }

    fn count(&mut self, failed: bool) {
        self.boundaries += 1;
        self.completed += 1;
        self.transient = 0;
        self.failures = if failed { self.failures + 1 } else { 0 };
        let stalls = self.terms.stall > 0 && !self.changed;
        self.still = if stalls { self.still + 1 } else { 0 };
        self.changed = false;
        self.words.clear();
    }

    /// Applies a change of a file: the agent's work, unless the loop is paused.
    pub(super) fn change(&mut self) {
        self.changed |= matches!(self.standing, Standing::Running | Standing::Waiting);
    }

    fn bounded(&self) -> Standing {
        let reached = |limit: u64, count: u64| limit > 0 && count >= limit;
        if reached(self.terms.threshold, self.failures) {
            Standing::Ended("aborted")
        } else if reached(self.terms.max, self.completed) {
            Standing::Ended("exhausted")
        } else if reached(self.terms.stall, self.still) {
            Standing::Ended("stalled")
        } else {
            Standing::Running
        }
    }

    /// Applies an outage of the service; `far` if it names a reset beyond the loop's time.
    pub(super) fn wait(&mut self, far: bool) {
        self.boundaries += 1;
        self.transient += 1;
        self.standing = if self.transient >= TRANSIENT_ERRORS_MAX {
            Standing::Ended("blocked")
        } else if far && self.terms.an_hour {
            Standing::Ended("interrupted")
        } else {
            Standing::Waiting
        };
    }

    /// Applies a boundary that finds a request and counts no iteration.
    pub(super) fn follow_request(&mut self, standing: Standing) {
        self.boundaries += 1;
        self.transient = 0;
        self.standing = standing;
    }

    /// Applies a resume with this many more iterations.
    pub(super) fn resume(&mut self, more: u64) {
        // They were in its answer, or, where that was lost, may have been.
        self.words.clear();
        if matches!(self.standing, Standing::Ended("aborted" | "stalled")) {
            (self.failures, self.still) = (0, 0);
        }
        self.standing = Standing::Running;
        self.transient = 0;
        if self.terms.max > 0 {
            self.limit(self.terms.max + more);
        } else if more > 0 {
            self.limit(self.completed + more);
        }
    }

    pub(super) fn limit(&mut self, max: u64) {
        self.terms.max = max;
        self.highest = self.highest.map(|highest| highest.max(max));
    }

    pub(super) fn is_over(&self) -> bool {
        self.standing.outcome().is_some()
    }

    /// The first line of the prompt for its next iteration.
    pub(super) fn marker(&self) -> String {
        let of = if self.terms.max > 0 { format!(" of {}", self.terms.max) } else { String::new() };
        format!("crew loop {}: iteration {}{of}.", self.id, self.completed + 1)
    }
}

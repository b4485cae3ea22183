//! A thread that runs jobs one by one and sends the results to a queue. A git process ends with the
//! thread that started it, so the thread lives as long as there are jobs.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::Done;
use super::landing::LandingTry;

/// A worker thread; `T` is the result of a job.
pub(super) struct Worker<T> {
    works: Option<Sender<Box<dyn FnOnce() -> T + Send>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Worker<T> {
    pub(super) fn start(results: Sender<T>) -> Self {
        let (works, queue) = channel::<Box<dyn FnOnce() -> T + Send>>();
        let thread = thread::spawn(move || {
            for work in queue {
                let _ = results.send(work());
            }
        });
        Self { works: Some(works), thread: Some(thread) }
    }

    /// Adds a job, unless the worker was ended.
    pub(super) fn add(&self, work: impl FnOnce() -> T + Send + 'static) {
        if let Some(works) = &self.works {
            let _ = works.send(Box::new(work));
        }
    }

    /// Waits for the remaining jobs.
    pub(super) fn end(&mut self) {
        self.works = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The threads that do slow work.
pub(super) struct Workers {
    pub(super) git: Worker<Done>,
    pub(super) landing: Worker<Done>,
    pub(super) talk: Worker<Done>,
    pub(super) results: Receiver<Done>,
    pub(super) landing_try: LandingTry,
}

impl Workers {
    pub(super) fn start() -> Self {
        let (sender, results) = channel();
        Self {
            git: Worker::start(sender.clone()),
            landing: Worker::start(sender.clone()),
            talk: Worker::start(sender),
            results,
            landing_try: LandingTry::default(),
        }
    }

    /// Waits for the remaining jobs of each thread.
    pub(super) fn end(&mut self) {
        for thread in [&mut self.git, &mut self.landing, &mut self.talk] {
            thread.end();
        }
    }
}

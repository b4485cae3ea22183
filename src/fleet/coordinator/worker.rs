//! A thread that runs jobs one by one and sends the results to a queue. git ends with the thread
//! that started it, so the thread lives as long as there are jobs.

use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// The thread; `T` is the result of a job.
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

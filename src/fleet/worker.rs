//! A thread that does one thing after the other for somebody else, who takes the results from a
//! queue. git ends with the thread that started it, so the thread lives as long as anything is to
//! be done.

use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// The thread; `T` is what follows from each thing that it has done.
pub(super) struct Worker<T> {
    works: Option<Sender<Box<dyn FnOnce() -> T + Send>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Worker<T> {
    pub(super) fn start(results: Sender<T>) -> Self {
        let (works, queue) = channel::<Box<dyn FnOnce() -> T + Send>>();
        let run = move || queue.iter().for_each(|work| drop(results.send(work())));
        Self { works: Some(works), thread: Some(thread::spawn(run)) }
    }

    /// Adds something to do, unless it was ended.
    pub(super) fn add(&self, work: impl FnOnce() -> T + Send + 'static) {
        if let Some(works) = &self.works {
            let _ = works.send(Box::new(work));
        }
    }

    /// Waits for what it has to do.
    pub(super) fn end(&mut self) {
        self.works = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

//! Scenarios of one test side by side: for those that wait for a disk or a clock most of their
//! time.

/// Runs all of them at once, each on a thread with the test's name, and returns their results.
pub(crate) fn side_by_side<T: Send>(
    scenarios: impl IntoIterator<Item = impl FnOnce() -> T + Send>,
) -> Vec<T> {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    std::thread::scope(|scope| {
        let start = |scenario| {
            let thread = std::thread::Builder::new().name(test.clone());
            thread.spawn_scoped(scope, scenario).unwrap()
        };
        let lanes: Vec<_> = scenarios.into_iter().map(start).collect();
        lanes.into_iter().map(|lane| lane.join().expect("a lane failed")).collect()
    })
}

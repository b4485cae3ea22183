//! Runs scenarios of one test at the same time: for those that wait for a clock most of their time,
//! and for tables whose rows would otherwise run last.

/// How many rows of one table run at the same time.
const LANES: usize = 4;

/// The results of a scenario for each row of a table, in the order of the rows.
pub(crate) fn in_lanes<R: Sync, T: Send>(rows: &[R], scenario: impl Fn(&R) -> T + Sync) -> Vec<T> {
    let scenario = &scenario;
    let lanes = rows.chunks(rows.len().div_ceil(LANES).max(1));
    let lanes = lanes.map(|rows| move || rows.iter().map(scenario).collect::<Vec<T>>());
    side_by_side(lanes).into_iter().flatten().collect()
}

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

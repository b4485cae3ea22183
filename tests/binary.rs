//! The crew binary that a test runs. CI names both of its builds: the one that cargo puts beside
//! the tests is compiled with features that only test crates turn on, so it can do what the product
//! cannot.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The variables that a release build ignores (`src/world/fault.rs`).
const FAULTS: [&str; 7] = [
    "CREW_FAULT",
    "CREW_PANIC",
    "CREW_DELAY_MS",
    "CREW_CLOCK_OFFSET_MS",
    "CREW_GRACE_MS",
    "CREW_LINGER_MS",
    "CREW_STALE_MS",
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Build {
    /// What users get: `CREW_TEST_BIN`.
    Product,
    /// The same with injectable faults and a movable clock: `CREW_TEST_FAULTS_BIN`.
    WithFaults,
}

impl Build {
    /// Its path. With `CREW_TEST_TALLY` that file records which test asked for which build.
    pub(crate) fn path(self) -> &'static Path {
        static PRODUCT: LazyLock<PathBuf> = LazyLock::new(|| named("CREW_TEST_BIN"));
        static WITH_FAULTS: LazyLock<PathBuf> = LazyLock::new(|| {
            let path = named("CREW_TEST_FAULTS_BIN");
            let has_faults = cfg!(debug_assertions) || path != beside_the_tests();
            assert!(has_faults, "no faults in a release build; hint: set CREW_TEST_FAULTS_BIN");
            path
        });
        let path = if self == Self::Product { &*PRODUCT } else { &*WITH_FAULTS };
        if let Some(tally) = std::env::var_os("CREW_TEST_TALLY") {
            let test =
                std::thread::current().name().expect("a thread with its test's name").to_owned();
            let mut tally = File::options().create(true).append(true).open(tally).unwrap();
            tally.write_all(format!("{}\t{test}\n", path.display()).as_bytes()).unwrap();
        }
        path
    }

    /// Fails a test that gives this build an order it ignores, and so would test nothing.
    #[track_caller]
    pub(crate) fn assert_obeys(self, variable: &str) {
        let is_heard = self == Self::WithFaults || !FAULTS.contains(&variable);
        assert!(is_heard, "only a build with faults obeys {variable}; hint: Sandbox::with_faults");
    }
}

fn named(variable: &str) -> PathBuf {
    let Some(path) = std::env::var_os(variable).map(PathBuf::from) else {
        return beside_the_tests();
    };
    let is_there = path.is_absolute() && path.is_file();
    assert!(is_there, "{variable} is to be the absolute path of a crew, not {}", path.display());
    path
}

fn beside_the_tests() -> PathBuf {
    env!("CARGO_BIN_EXE_crew").into()
}

//! The crew binary that a test runs: the debug build that cargo puts beside the tests. It is
//! compiled with features that only test crates turn on, so it can do what the product cannot; CI
//! therefore names the release build for the suites that depend on it (`just shipped`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The variables that a release build ignores (`crates/world/src/fault.rs`).
const FAULTS: [&str; 8] = [
    "CREW_FAULT",
    "CREW_PANIC",
    "CREW_DELAY_MS",
    "CREW_CLOCK_OFFSET_MS",
    "CREW_GRACE_MS",
    "CREW_LINGER_MS",
    "CREW_STALE_MS",
    "CREW_STAY_MS",
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Build {
    /// The build that users get: the one that `CREW_TEST_BIN` names, otherwise the one beside the
    /// tests.
    Product,
    /// The build beside the tests, which has injectable faults and a movable clock.
    WithFaults,
}

/// Whether the tests, and so the build beside them, are compiled with assertions.
const fn is_debug_build() -> bool {
    cfg!(debug_assertions)
}

impl Build {
    pub(crate) fn path(self) -> &'static Path {
        static PRODUCT: LazyLock<PathBuf> = LazyLock::new(|| {
            std::env::var_os("CREW_TEST_BIN").map_or_else(beside_the_tests, the_named)
        });
        static WITH_FAULTS: LazyLock<PathBuf> = LazyLock::new(|| {
            assert!(is_debug_build(), "no faults in a release build; hint: omit --release");
            beside_the_tests()
        });
        if self == Self::Product { &PRODUCT } else { &WITH_FAULTS }
    }

    /// Fails a test that sets a variable this build ignores, because it would test nothing.
    #[track_caller]
    pub(crate) fn assert_obeys(self, variable: &str) {
        let is_heard = self == Self::WithFaults || !FAULTS.contains(&variable);
        assert!(is_heard, "only a build with faults obeys {variable}; hint: Sandbox::with_faults");
    }
}

fn the_named(path: OsString) -> PathBuf {
    let path = PathBuf::from(path);
    let is_there = path.is_absolute() && path.is_file();
    assert!(is_there, "CREW_TEST_BIN must be the absolute path of a crew, not {}", path.display());
    path
}

fn beside_the_tests() -> PathBuf {
    env!("CARGO_BIN_EXE_crew").into()
}

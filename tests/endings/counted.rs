//! The cost of the run with the original tests: nothing if only work changed.

use super::Step;
use super::projects::{PY, PY_FIX, PY_TESTS};
use super::{End, row};

#[test]
fn no_check_runs_again_if_only_work_changed() {
    let tidied = Step::Edit(PY_TESTS, "import unittest\n", "import unittest\n\n");
    for (work, runs) in [(&[PY_FIX][..], 2), (&[PY_FIX, tidied][..], 3)] {
        let ending = row("counted", &PY, &[], End::Checked(""));
        let world = crate::run::World::of(
            crate::run::proven::sandbox(),
            &[&format!(
                "{}{}",
                super::Row { work: work.to_vec().leak(), ..ending }.script(),
                crate::run::CLAIM
            )],
        );
        ending.prepare(&world.sandbox);
        let count = world.note("runs");
        let check = format!("echo >> {}; {}", count.display(), PY.check);
        world.crew(&["run", "Do it", "-n", "1", "--verify", &check]);
        assert_eq!(world.the_loop()["proof"], "checked");
        assert_eq!(std::fs::read(count).unwrap().len(), runs);
    }
}

//! Tries the checks of the newest loop here in crew's scratch folder, on the tree on which they
//! passed at its last iteration.

use std::path::Path;

use crate::drive::scratch::ScratchTerms;
use crate::drive::{find, prove, test_changes};
use crate::engine::doctor::ScratchCheck;
use crate::engine::record::Loop;
use crate::engine::test_changes::trial::passed;
use crate::world::store::Home;

/// Seconds that the checks may take, unless three times what they took before is longer.
const WITHIN_S: u64 = 60;

/// What fails there, and what the folder lacks; `None` if nothing fails, or nothing can be tried.
pub(super) fn look(home: &Home, here: &Path) -> Option<ScratchCheck> {
    let mut record = find::of_working_tree(home, here).ok()??;
    let evidence = record.state.evidence.as_ref()?;
    if record.is_live() || evidence.checks.is_empty() || evidence.failing().next().is_some() {
        return None;
    }
    record.environment = None;
    record.contract.trial.timeout_s = WITHIN_S;
    let last = prove::last_snapshot(home, &record)?;
    let terms = prove::terms(home, &record, Some(&last), &|| false);
    let left = test_changes::left(home, &record, Some(&last)).ok()?.commit;
    try_checks(terms, &record, &left)
        .unwrap_or_else(|why| Some(ScratchCheck { why, lacks: Vec::new() }))
}

fn try_checks(
    terms: ScratchTerms<'_>,
    record: &Loop,
    tree: &str,
) -> Result<Option<ScratchCheck>, String> {
    let Ok(mut scratch) = terms.open() else { return Ok(None) };
    scratch.lay_out(tree)?;
    // A `no-worse` check may fail there as it does in the working tree.
    for check in record.contract.checks.iter().filter(|check| !check.no_worse) {
        let mut result = scratch.run(check)?;
        if !passed(&result) && scratch.prepare()? {
            result = scratch.run(check)?;
        }
        if !passed(&result) {
            let why = format!("`{}` {}", check.run, result.what_happened());
            return Ok(Some(ScratchCheck { why, lacks: scratch.left_out()? }));
        }
    }
    Ok(None)
}

//! Loops as JSON for programs. Every object has a `schema`; it is raised when the meaning of a key
//! changes.

use serde_json::{Value, json};

use crate::engine::view::LoopView;

/// The version of what `--json` prints.
pub const SCHEMA: u32 = 2;

/// The output of `crew status --json`.
pub fn status(loops: &[LoopView<'_>]) -> Value {
    json!({ "schema": SCHEMA, "loops": loops })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixture::{a_loop, at};

    #[test]
    fn every_object_names_its_schema() {
        let value = status(&[LoopView::of(&a_loop(), at(0).wall.fixed_offset())]);
        assert_eq!(value["schema"], 2);
        assert_eq!(value["loops"][0]["iteration"], 1);
        assert_eq!(value["loops"][0]["limits"]["max_iterations"], 10);
        assert_eq!(value["loops"][0]["usage"]["total_tokens"], 0);
    }
}

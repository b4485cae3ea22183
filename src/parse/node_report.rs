//! Reads what crew on a compute node printed, among whatever a site prints beside it. The report of
//! another version may lack fields or have more.

use crate::engine::doctor::node::NodeFacts;

/// The facts in a line of output, if it is a report.
pub fn read(line: &str) -> Option<NodeFacts> {
    let facts: NodeFacts = serde_json::from_slice(line.trim().as_bytes()).ok()?;
    (!facts.node.is_empty() && !facts.version.is_empty()).then_some(facts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_report_is_a_line_of_json_with_a_node_and_a_version() {
        for (line, expected) in [
            (r#"{"node":"n1","version":"0.1.0"}"#, Some(("n1", "0.1.0"))),
            (r#"  {"node":"n1","version":"9.0.0","new":[1],"git":true} "#, Some(("n1", "9.0.0"))),
            (r#"{"node":"n1"}"#, None),
            (r#"{"version":"0.1.0"}"#, None),
            ("Welcome to the cluster", None),
            ("{}", None),
            ("[]", None),
        ] {
            let read = read(line);
            let read = read.as_ref().map(|facts| (&*facts.node, &*facts.version));
            assert_eq!(read, expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in r#"[{}\[\]":,a-z0-9 ]{0,60}"#) {
            read(&line);
        }
    }
}

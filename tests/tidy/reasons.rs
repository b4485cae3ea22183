//! A reason is a value: rules match on it, and its sentence is only shown. A rule that parsed the
//! sentence would change once the sentence is reworded, and could be fooled by an agent's words in
//! it.

use super::{none, pattern, product_of, product_source};

/// Files that read text of other programs, which has no other form; the demo reads crew's output.
const READERS: [&str; 4] = ["crates/readers/", "crates/world/src/git", "src/reference", "src/demo"];
/// Functions that may read such a sentence, each with the reason.
const MAY_READ: [(&str, &str); 1] = [(
    "src/drive/installation/slurm.rs: let hint = if cause.contains(\"execve()\")",
    "this is what the daemon of a node printed",
)];

#[test]
fn no_rule_parses_the_sentence_of_a_reason() {
    let names = "why|reason|cause|hint|failure|refusal|remark|undone|sentence";
    let predicates =
        "starts_with|ends_with|contains|strip_prefix|strip_suffix|split|split_once|rsplit_once";
    let reads = pattern(&format!(
        r#"\b({names})(\(\))?(\.as_(deref|str)\(\))?\.({predicates})\(|\b(why|to_string)\(\)\.({predicates})\(|\b({names})(\(\))?(\.as_(deref|str)\(\))? [!=]= (Some\()?&?""#
    ));
    let mut complaints = Vec::new();
    for file in product_source() {
        let is_test = file.path.ends_with("tests.rs") || file.path.contains("/tests/");
        if is_test || READERS.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        let text = product_of(&file.text);
        for line in text.lines().filter(|line| reads.is_match(line)) {
            let found = format!("{}: {}", file.path, line.trim());
            if !MAY_READ.iter().any(|(start, _)| found.starts_with(start)) {
                complaints.push(found);
            }
        }
    }
    none(&complaints, "match on the reason's value: its sentence is only for people");
}

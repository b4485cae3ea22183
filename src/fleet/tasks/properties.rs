//! Properties of reading any task file and any fleet.toml.

use proptest::prelude::*;

use super::folder::read_folder;

/// Fragments of YAML and TOML.
const SCRAPS: [&str; 48] = [
    "---\n",
    "+++\n",
    "---",
    "\n",
    "\r\n",
    " ",
    "  ",
    "\t",
    ": ",
    " = ",
    "verify",
    "after",
    "n",
    "priority",
    "touches",
    "words",
    "task",
    "land",
    "check",
    "max-cost",
    "no-promise",
    "true",
    "5",
    "2.50",
    "0x1F",
    "2024-01-01",
    "~",
    "[",
    "]",
    "{",
    "}",
    ",",
    "- ",
    "? ",
    "\"",
    "'",
    "\"\"\"",
    "|",
    ">",
    "&a ",
    "*a",
    "!t ",
    "# c",
    "%YAML 1.2\n",
    "...\n",
    "<<",
    "\\",
    "\0",
];

fn any_text() -> impl Strategy<Value = String> {
    let scraps = prop::collection::vec(prop::sample::select(SCRAPS.to_vec()), 0..40);
    prop_oneof![any::<String>(), scraps.prop_map(|scraps| scraps.concat())]
}

/// Keys, each with a value that YAML and TOML write alike.
fn any_options() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let text = || "[ -~éß—]{0,12}[a-zé]";
    let quoted = |text: &String| serde_json::to_string(text).unwrap();
    let one = move |key: &'static str| move |text: String| (key, quoted(&text));
    let chosen = prop_oneof![
        prop::collection::vec(text(), 1..3).prop_map(move |list| {
            let list: Vec<String> = list.iter().map(quoted).collect();
            ("verify", format!("[{}]", list.join(", ")))
        }),
        text().prop_map(one("context")),
        text().prop_map(one("agent")),
        text().prop_map(one("agent-cmd")),
        "[a-z]{1,12}".prop_map(one("completion-promise")),
        "[1-9][0-9]{0,5}".prop_map(|number| ("max-iterations", number)),
        prop::sample::select(vec!["no-promise", "prove"]).prop_map(|key| (key, "true".to_owned())),
    ];
    prop::collection::vec(chosen, 0..6).prop_map(|mut all| {
        let mut keys = std::collections::BTreeSet::new();
        all.retain(|(key, _)| keys.insert(*key));
        all
    })
}

fn is_allowed(choice: &[(&str, String)]) -> bool {
    let has = |key| choice.iter().any(|(name, _)| *name == key);
    !(has("agent") && has("agent-cmd") || has("no-promise") && has("completion-promise"))
}

fn write_options(choice: &[(&str, String)], sign: &str) -> String {
    choice.iter().flat_map(|(key, value)| [key, sign, value, "\n"]).collect()
}

fn words_of(task: String, fleet_toml: &str) -> Result<Vec<String>, Vec<String>> {
    let read =
        read_folder(vec![("a.md".to_owned(), task.into_bytes())], Some(fleet_toml.as_bytes()));
    read.map(|(_, mut tasks)| tasks.remove(0).0.words)
}

proptest! {
    #[test]
    fn any_text_is_accepted_or_refused_in_lines_that_name_the_file(
        front in any_text(), body in any_text(), fence in prop::sample::select(vec!["---", "+++"]),
    ) {
        for text in [format!("{fence}\n{front}\n{fence}\n{body}"), front.clone()] {
            for fault in words_of(text, &front).err().unwrap_or_default() {
                let is_named = fault.starts_with("a.md:") || fault.starts_with("fleet.toml:");
                prop_assert!(is_named && fault.lines().count() == 1, "{}", fault);
            }
        }
    }

    #[test]
    fn yaml_and_toml_give_the_same_result(choice in any_options()) {
        let yaml = words_of(format!("---\n{}---\ndo it", write_options(&choice, ": ")), "");
        let toml = words_of(format!("+++\n{}+++\ndo it", write_options(&choice, " = ")), "");
        prop_assert_eq!(yaml.is_ok(), is_allowed(&choice), "{:?}", yaml);
        prop_assert_eq!(yaml.is_ok(), toml.is_ok(), "{:?}", toml);
        prop_assert!(yaml.is_err() || yaml == toml, "{:?} {:?}", yaml, toml);
    }

    #[test]
    fn settings_of_a_fleet_and_of_a_task_can_be_combined(fleet in any_options(), own in any_options()) {
        prop_assume!(is_allowed(&fleet) && is_allowed(&own));
        let shared = format!("[task]\n{}", write_options(&fleet, " = "));
        let all = words_of(format!("---\n{}---\ndo it", write_options(&own, ": ")), &shared);
        let Ok(all) = all else { return Err(TestCaseError::fail(format!("{all:?}"))) };
        let has = |key: &str| all.iter().any(|word| word.starts_with(&format!("{key} = ")));
        prop_assert!(own.iter().all(|(key, _)| has(key)));
        prop_assert!(!(has("agent") && has("agent-cmd")));
    }
}

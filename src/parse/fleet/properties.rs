//! Properties that hold for every text of a task file and of fleet.toml.

use proptest::prelude::*;

use super::folder_tests::read_fleet_file;
use super::tests::read_task;
use super::*;

/// Texts made of pieces of both languages, in any order.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop::sample::select(vec![
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
        "é",
        "\u{feff}",
        "\u{2028}",
    ]);
    prop::collection::vec(scrap, 0..40).prop_map(|scraps| scraps.concat())
}

fn anything() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), scraps()]
}

/// A key and its values; `None` is a switch that is on.
type Chosen = (&'static str, Option<Vec<String>>);

fn chosen() -> impl Strategy<Value = Chosen> {
    let text = || "[ -~éß—\n\t]{0,12}[a-zé][ -~]{0,4}";
    let number = || prop_oneof!["[1-9][0-9]{0,5}", "[0-9]\\.[0-9]{2}"];
    let one = |key: &'static str| move |value| (key, Some(vec![value]));
    prop_oneof![
        prop::collection::vec(text(), 1..3).prop_map(|list| ("verify", Some(list))),
        prop::collection::vec(text(), 1..3).prop_map(|list| ("context", Some(list))),
        "[a-z]{1,12}".prop_map(one("completion-promise")),
        text().prop_map(one("agent")),
        text().prop_map(one("agent-cmd")),
        number().prop_map(one("max-cost")),
        "[1-9][0-9]{0,5}".prop_map(one("max-iterations")),
        prop::sample::select(vec!["no-promise", "prove"]).prop_map(|key| (key, None)),
    ]
}

/// The options of one file, each once.
fn choice() -> impl Strategy<Value = Vec<Chosen>> {
    prop::collection::btree_map(any::<u8>(), chosen(), 0..6).prop_map(|all| {
        let mut keys = std::collections::BTreeSet::new();
        all.into_values().filter(|(key, _)| keys.insert(*key)).collect()
    })
}

/// A text in quotes as both languages read it: those of JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// The options in one of the languages, numbers without quotes.
fn written(choice: &[Chosen], sign: &str) -> String {
    let line = |(key, values): &Chosen| {
        let value = match values.as_deref() {
            None => "true".to_owned(),
            Some([number]) if key.starts_with("max") => number.clone(),
            Some(list) if list.len() == 1 && *key != "verify" => quoted(&list[0]),
            Some(list) => {
                format!("[{}]", list.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", "))
            }
        };
        format!("{key}{sign}{value}\n")
    };
    choice.iter().map(line).collect()
}

/// The words that a person would type.
fn typed(choice: &[Chosen]) -> Vec<String> {
    let words = |(key, values): &Chosen| match values {
        None => vec![format!("--{key}")],
        Some(values) => values.iter().map(|value| format!("--{key}={value}")).collect(),
    };
    choice.iter().flat_map(words).collect()
}

fn is_allowed(choice: &[Chosen]) -> bool {
    let has = |key| choice.iter().any(|(it, _)| *it == key);
    !(has("agent") && has("agent-cmd") || has("no-promise") && has("completion-promise"))
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_lines_that_name_the_file(
        front in anything(), body in anything(), fence in prop::sample::select(vec!["---", "+++"]),
    ) {
        for text in [format!("{fence}\n{front}\n{fence}\n{body}"), front.clone()] {
            let refused = read_task("auth.md", &text).err();
            for fault in refused.unwrap_or_default() {
                let told = fault.to_string();
                prop_assert!(told.starts_with("auth.md:") && told.lines().count() == 1, "{}", told);
                prop_assert!(fault.line.is_none_or(|line| line > 0 && line <= text.lines().count()));
            }
            for fault in read_fleet_file(&text).err().unwrap_or_default() {
                prop_assert!(fault.to_string().starts_with(FLEET_FILE));
            }
        }
    }

    #[test]
    fn yaml_and_toml_give_the_words_that_a_person_would_type(choice in choice()) {
        let yaml = format!("---\n{}---\ndo it", written(&choice, ": "));
        let toml = format!("+++\n{}+++\ndo it", written(&choice, " = "));
        let [yaml, toml] = [yaml, toml].map(|text| read_task("auth.md", &text));
        prop_assert_eq!(yaml.is_ok(), is_allowed(&choice), "{:?}", yaml);
        if let (Ok(yaml), Ok(toml)) = (&yaml, &toml) {
            prop_assert_eq!(yaml.options.words(), typed(&choice));
            prop_assert_eq!(toml.options.words(), typed(&choice));
        } else {
            prop_assert!(toml.is_err());
        }
    }

    #[test]
    fn what_a_fleet_and_a_task_set_can_be_set_together(fleet in choice(), own in choice()) {
        prop_assume!(is_allowed(&fleet) && is_allowed(&own));
        let task = format!("---\n{}---\ndo it", written(&own, ": "));
        let terms = format!("[task]\n{}", written(&fleet, " = "));
        let (_, tasks) =
            folder(vec![("a.md".to_owned(), task.into_bytes())], Some(terms.as_bytes()), |_| String::new()).unwrap();
        let run = run_args(&tasks[0]);
        prop_assert!(run.is_ok(), "{:?}", run);
        let all = typed(&own);
        prop_assert!(all.iter().all(|word| tasks[0].words.contains(word)));
    }
}

#[test]
fn deep_and_long_texts_are_read_in_bounded_time_and_memory() {
    let most = usize::try_from(MAX_FLEET_FILE_BYTES).unwrap();
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n";
    for piece in ["[", "{", "- ", "a: ", "? ", "&a ", "*a ", "'", "|\n", "a:\n", "\n ", bomb] {
        let front = piece.repeat(most / piece.len());
        for fence in ["---", "+++"] {
            let text = format!("{fence}\n{front}\n{fence}\ndo it");
            let _ = read_task("auth.md", &text);
        }
    }
}

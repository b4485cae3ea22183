//! Properties that hold for every text a person could type after `/crew:loop`.

use proptest::prelude::*;

use super::*;

fn parse(raw: &str) -> Result<LoopArgs, Failure> {
    parse_loop(raw).map(Option::unwrap_or_default)
}

/// Texts made of pieces of the grammar in any order.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop::sample::select(vec![
        "\"",
        "'",
        "`",
        "```",
        "\\",
        " ",
        "\n",
        "\r\n",
        "--",
        "-",
        "—",
        "-n",
        "-n5",
        "=",
        "--verify",
        "--replace",
        "--max-duration",
        "--max-cost",
        "--max-tokens",
        "18446744073709551615s",
        "1h",
        "$1.5",
        "9k",
        "word",
        "don't",
        "é",
        "\u{a0}",
        "/crew:loop",
    ]);
    prop::collection::vec(scrap, 0..20).prop_map(|scraps| scraps.concat())
}

fn anything() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), scraps(), "(\\PC|[\r\n\t]){0,200}"]
}

/// Plain words without options and quotes.
fn words() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9é.,;$(){}-]{1,8}([ \n\t]{1,3}[a-zA-Z0-9é.,;$(){}-]{1,8}){0,6}".prop_filter(
        "words without options",
        |words| {
            let is_plain = |word: &str| !tokens::is_option(word) && word != "--";
            words.split_whitespace().all(is_plain)
        },
    )
}

proptest! {
    #[test]
    fn any_text_is_accepted_or_refused_in_a_line_or_two(raw in anything()) {
        if let Err(error) = parse(&raw) {
            let text = error.with_hint();
            prop_assert!((1..=2).contains(&text.lines().count()), "{}", text);
            prop_assert!(text.chars().count() < 250, "{}", text);
        }
    }

    #[test]
    fn any_value_is_accepted_or_refused(
        option in prop::sample::select(vec!["max-duration", "max-cost", "max-tokens", "stall"]),
        value in prop_oneof!["[0-9]{1,22}(m|s|ms|h|y|k|M)?( [0-9]{1,5}ms)?", "[0-9a-zµ. $]{1,30}"],
    ) {
        if let Err(error) = parse(&format!("--{option} \"{value}\"")) {
            prop_assert!(error.text.contains(option), "{}", error);
        }
    }

    #[test]
    fn any_task_without_double_quotes_is_kept_inside_them(task in anything()) {
        let task = task.replace('"', "");
        prop_assume!(!task.trim().is_empty());
        let after = parse(&format!("\"{task}\" --max-iterations 15")).unwrap();
        prop_assert_eq!(after.limits.max_iterations, Some("15".parse().unwrap()));
        prop_assert_eq!(after.task(), Some(task.clone()));
        let before = parse(&format!("--max-iterations=15 \"{task}\"")).unwrap();
        prop_assert_eq!(before, after);
    }

    #[test]
    fn any_task_is_kept_if_its_quotes_are_escaped(task in "[^\\\\]{1,80}") {
        prop_assume!(!task.trim().is_empty());
        let raw = format!("\"{}\" -n 15", task.replace('"', "\\\""));
        prop_assert_eq!(parse(&raw).unwrap().task(), Some(task));
    }

    #[test]
    fn plain_words_are_kept(words in words()) {
        prop_assert_eq!(parse(&words).unwrap().task(), Some(words.clone()));
        let raw = format!("{words} --replace");
        prop_assert_eq!(parse(&raw).unwrap().task(), Some(words));
    }

    #[test]
    fn an_option_outside_quotes_is_accepted_or_refused(
        before in words(), after in prop_oneof![Just(String::new()), words()],
        hyphens in "--?", name in "[a-zA-Z][a-zA-Z0-9-]{0,12}",
    ) {
        let option = format!("{hyphens}{name}");
        let unknown = parse(&format!("{before} {option} {after}"));
        let is_known = find_option(&LOOP, &option).is_some();
        prop_assert!(unknown.is_err() || is_known, "{:?}", unknown);
        if let Ok(read) = parse(&format!("{before} --replace {after}")) {
            prop_assert!(read.replace);
        }
        if let Ok(read) = parse(&format!("{before} -n7 {after}")) {
            prop_assert_eq!(read.limits.max_iterations, Some("7".parse().unwrap()));
        }
    }

    #[test]
    fn an_option_in_any_text_is_kept_somewhere_or_refused(raw in scraps()) {
        // Without quotes and code marks nothing protects an option.
        let raw = raw.replace(['"', '\'', '`'], "");
        let is = |word: &str, name: &str| word.strip_suffix('=').unwrap_or(word) == name;
        let count = |name: &str| raw.split_whitespace().filter(|word| is(word, name)).count();
        if let Ok(read) = parse(&raw) {
            prop_assert_eq!(usize::from(read.replace), count("--replace"));
            prop_assert!(read.terms.verify.len() >= count("--verify"));
            let task = read.task().unwrap_or_default();
            prop_assert!(!task.split_whitespace().any(tokens::is_option), "{}", task);
        }
    }
}

#[test]
fn a_message_of_megabytes_is_parsed_in_linear_time() {
    // A parser with more than linear time would take hours for these.
    for piece in
        ["\"", "'", "\\\"", "`", " `", "\" ", "-- ", "- ", "a ", " —", "\n", "-", "--verify x "]
    {
        let text = piece.repeat((1 << 20) / piece.len());
        for raw in
            [text.clone(), format!("x{text}"), format!("\"{text}"), format!("--gate \"{text}")]
        {
            let _ = parse(&raw);
        }
    }
    let runs: String = (1..2_000).flat_map(|length| ["`".repeat(length), " ".to_owned()]).collect();
    assert!(parse(&format!("x {runs}")).is_ok());
}

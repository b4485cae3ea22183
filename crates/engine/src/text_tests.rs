use proptest::prelude::*;

use super::*;

#[test]
fn a_tail_keeps_whole_lines_where_it_can_and_never_splits_a_character() {
    let table = [
        ("short", 10, "short"),
        ("one\ntwo\nthree\n", 9, "three"),
        ("no line breaks at all", 6, "at all"),
        ("日本語テキスト", 3, "キスト"),
        ("", 3, ""),
    ];
    for (text, limit, expected) in table {
        assert_eq!(tail_of(text, limit), expected, "{text:?}");
    }
}

#[test]
fn a_long_line_is_truncated_between_two_words() {
    for text in ["made them pass", "made them\nx"] {
        let kept = clip_line_at_word(text, 12);
        assert_eq!(kept.trim_end_matches('…'), "made them", "{text:?}");
    }
    assert_eq!(clip_line_at_word("made them pass", 14), "made them pass");
    assert_eq!(clip_line_at_word("made them pass\nx", 14), "made them pass…");
}

#[test]
fn counts_are_formatted_with_a_singular_or_plural_noun() {
    assert_eq!([1, 0u64].map(|it| count(it, "commit")), ["1 commit", "0 commits"]);
}

#[test]
fn control_codes_are_removed_and_text_is_kept() {
    let table = [
        ("plain é 漢", "plain é 漢"),
        ("\x1b[1;32mgreen\x1b[0m", "green"),
        ("\x1b[38;2;1;2;3mrgb\x1b[m", "rgb"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://x.y\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Btext\x1b=", "text"),
        ("tab\there\u{0}\u{8}", "tab\there"),
        ("\x1b[2K\x1b[1Gagain", "again"),
        ("\x1b]0;never closed\nnext", "0;never closed\nnext"),
        ("\x1b]0;never closed \x1b[31mred", "0;never closed red"),
        ("\x1b[31\nnext", "\nnext"),
        ("\x1b\x1b[31mred", "red"),
        ("end\x1b", "end"),
        ("\u{9b}31mred\u{9d}0;title\u{9c}text\u{85}", "redtext"),
    ];
    for (text, expected) in table {
        assert_eq!(plain_text(text), expected, "{text:?}");
    }
}

#[test]
fn invisible_and_direction_marks_are_removed_and_joiners_are_kept() {
    let table = [
        ("a\u{202e}b\u{2066}c\u{200f}d\u{61c}e", "abcde"),
        ("zero\u{200b}width\u{feff}\u{ad}\u{2028}", "zerowidth"),
        ("شلوم می\u{200c}خواهم 👩\u{200d}💻", "شلوم می\u{200c}خواهم 👩\u{200d}💻"),
        ("two\nlines\tand\u{7f}\u{1b}[2J", "two\nlines\tand"),
        ("\u{fdd0}not green\u{fdd6}\u{fdef}", "not green"),
    ];
    for (text, expected) in table {
        assert_eq!(clean_text(text), expected, "{text:?}");
    }
}

#[test]
fn a_task_stays_as_it_was_typed_and_the_text_around_it_is_cleaned() {
    let task = "build \u{202e}it\r\n";
    let prompt = format!("\u{1b}[1mThe task:\n{task}\nfailed: \u{202e}it");
    assert_eq!(clean_around(task, &prompt), format!("The task:\n{task}\nfailed: it"));
    assert_eq!(clean_around("", "\u{7}x"), "x");
}

#[test]
fn safe_json_is_equivalent_and_contains_no_invisible_characters() {
    let value = serde_json::json!({"\u{202e}": ["\u{9b}2J\u{7f}", "line\n", "\u{e0041}é 💻"]});
    let written = safe_json(&value);
    insta::assert_snapshot!(written, @r#"{"\u202e":["\u009b2J\u007f","line\n","\udb40\udc41é 💻"]}"#);
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
}

/// Text in which the letters of codes are as frequent as others.
fn any_text() -> impl Strategy<Value = String> {
    let codes =
        "\u{1b}\u{9b}\u{9d}\u{9c}\u{7}[]P\\m;1\r\n\t\u{202e}\u{2069}\u{200f}\u{61c}\u{85}\u{7f}";
    let letter =
        prop_oneof![proptest::sample::select(codes.chars().collect::<Vec<_>>()), any::<char>()];
    proptest::collection::vec(letter, 0..60).prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #[test]
    fn any_text_is_clean_after_one_pass_and_a_second_changes_nothing(text in any_text()) {
        let once = clean_text(&text);
        let forbidden = |it: char| (it.is_control() && it != '\n' && it != '\t')
            || matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}');
        prop_assert!(!once.contains(forbidden), "{once:?}");
        prop_assert_eq!(clean_text(&once), once.clone());
        prop_assert!(!EscapedLine(&text).to_string().contains(is_unseen));
        let value = Value::from(text.as_str());
        prop_assert!(!safe_json(&value).contains(is_unseen));
        prop_assert_eq!(serde_json::from_str::<Value>(&safe_json(&value)).unwrap(), value);
    }

    #[test]
    fn output_after_an_unterminated_code_is_not_lost(text in any_text()) {
        let line = format!("{text}·behind");
        prop_assert!(clean_text(&line).ends_with("·behind"), "{:?}", clean_text(&line));
    }
}

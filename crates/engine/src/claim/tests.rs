//! What counts as a claim and what does not, as a table; and the properties that a table cannot
//! show.

use proptest::prelude::*;

use super::*;

fn promise(text: &str) -> Promise {
    Promise::new(text).unwrap()
}

fn done(message: &str) -> Claim {
    read(message, Some(&promise("DONE")))
}

fn miss(miss: NearMiss) -> Claim {
    Claim::NearMiss(miss)
}

fn wrong(said: &str) -> Claim {
    miss(NearMiss::WrongText { said: said.to_owned() })
}

fn blocked(reason: &str) -> Claim {
    Claim::Blocked { reason: Some(reason.to_owned()) }
}

#[test]
fn only_a_tag_alone_on_the_last_line_outside_code_and_quotes_completes() {
    for message in [
        "<promise>DONE</promise>",
        "All 12 tests pass.\n\n<promise>DONE</promise>\n\n  \n",
        "CRLF is fine.\r\n<promise>DONE</promise>\r\n",
        "   <promise>DONE</promise>  ",
        "\u{a0}<promise>\u{2003} DONE\t</promise>\u{3000}",
        "```sh\ncargo test\n```\n<promise>DONE</promise>",
        "````\n```\n````\n<promise>DONE</promise>",
        "- ```\n  cargo test\n  ```\n<promise>DONE</promise>",
        "> as you asked\n\n<promise>DONE</promise>",
        "> ```\n<promise>DONE</promise>",
        "<promise>\n<promise>DONE</promise>",
        "`<promise>DONE</promise>` is next:\n<promise>DONE</promise>",
        "> # As you asked\n<promise>DONE</promise>",
        "> as you asked\n>\n<promise>DONE</promise>",
        "\u{feff}<promise>DONE</promise>",
        "تم.\n\u{200f}<promise>DONE</promise>\u{200f}\u{200b}",
        "\u{2067}<promise>DONE</promise>\u{2069}\n\u{200b}\n",
    ] {
        assert_eq!(done(message), Claim::Success, "{message}");
    }
    for message in ["", "\n \r\n\t", "Three tests fail.", "the <promise> tag comes later", "UNDONE"]
    {
        assert_eq!(done(message), Claim::None, "{message}");
    }
    for (message, expected) in [
        ("<promise>DONE</promise>\nAnything else?", NearMiss::NotLastLine),
        ("Done! <promise>DONE</promise>", NearMiss::NotAlone),
        ("<promise>DONE</promise>.", NearMiss::NotAlone),
        ("**<promise>DONE</promise>**", NearMiss::NotAlone),
        ("`<promise>DONE</promise>`", NearMiss::NotAlone),
        ("<promise>DONE</promise><promise>DONE</promise>", NearMiss::NotAlone),
        ("<promise><promise>DONE</promise>", NearMiss::NotAlone),
        ("<promise>DONE</promise></promise>", NearMiss::NotAlone),
        ("```\n<promise>DONE</promise>\n```", NearMiss::InFence),
        ("~~~\n<promise>DONE</promise>\n~~~\n\nBye.", NearMiss::InFence),
        ("```\nleft open\n<promise>DONE</promise>", NearMiss::InFence),
        ("````\n```\n<promise>DONE</promise>", NearMiss::InFence),
        ("> <promise>DONE</promise>", NearMiss::Quoted),
        (" >> <promise>DONE</promise>", NearMiss::Quoted),
        (
            "You said:\n> When you are done, end with\n<promise>DONE</promise>",
            NearMiss::LazilyQuoted,
        ),
        ("> You said\nthat\n <promise>DONE</promise>\n\nBye.", NearMiss::LazilyQuoted),
        ("    <promise>DONE</promise>", NearMiss::Indented),
        (" \t<promise>DONE</promise>", NearMiss::Indented),
        ("<promise>\nDONE\n</promise>", NearMiss::SplitOverLines),
        ("<promise>DONE\n</promise>\nBye.", NearMiss::SplitOverLines),
        ("<promise>DONE", NearMiss::Malformed),
        ("DONE</promise>", NearMiss::Malformed),
        ("<promise>DONE<promise>", NearMiss::Malformed),
        ("<promise>Done</promise>", NearMiss::WrongCase),
        ("<Promise>DONE</Promise>", NearMiss::WrongCase),
        ("<promise>blocked: no key</promise>", NearMiss::WrongCase),
        ("DONE", NearMiss::Untagged),
        ("**DONE.**", NearMiss::Untagged),
        ("BLOCKED: no key", NearMiss::Untagged),
    ] {
        assert_eq!(done(message), miss(expected), "{message}");
    }
}

#[test]
fn an_open_html_element_hides_a_claim_and_a_finished_list_item_does_not() {
    for message in [
        "Done.\r<promise>DONE</promise>",
        "Done.\u{2028}<promise>DONE</promise>\u{2029}",
        "- item\n  ```\n  code\n\n<promise>DONE</promise>",
        "<pre>\nok\n</pre>\n<promise>DONE</promise>",
        "It prints `<pre>`, then\n<promise>DONE</promise>",
    ] {
        assert_eq!(done(message), Claim::Success, "{message}");
    }
    for (message, expected) in [
        ("I would print\n<pre>\n<promise>DONE</promise>", NearMiss::InHtml),
        ("<blockquote>\n\n<promise>DONE</promise>", NearMiss::InHtml),
        ("<!-- when done:\n<promise>DONE</promise>", NearMiss::InHtml),
        ("> You said\r\n<promise>DONE</promise>", NearMiss::LazilyQuoted),
        ("> You said\r<promise>DONE</promise>", NearMiss::LazilyQuoted),
        ("- item\n  ```\n  <promise>DONE</promise>", NearMiss::InFence),
    ] {
        assert_eq!(done(message), miss(expected), "{message}");
    }
}

#[test]
fn the_text_is_compared_as_text_and_never_as_a_pattern() {
    let claim =
        |said: &str, text| read(&format!("<promise>{said}</promise>"), Some(&promise(text)));
    assert_eq!(claim("A B", ".*"), wrong("A B"));
    assert_eq!(claim(".*", ".*"), Claim::Success);
    assert_eq!(claim("DONE, almost", "DONE"), wrong("DONE, almost"));
    assert_eq!(claim("", "DONE"), wrong(""));
    assert_eq!(claim(&"x".repeat(200), "DONE"), wrong(&format!("{}…", "x".repeat(99))));
}

#[test]
fn failure_and_blocked_count_with_and_without_a_promise() {
    for promise in [None, Some(promise("DONE"))] {
        let claim = |text: &str| read(text, promise.as_ref());
        assert_eq!(claim("<promise>FAILURE</promise>"), Claim::Failure { reason: None });
        assert_eq!(claim("<promise>BLOCKED:</promise>"), Claim::Blocked { reason: None });
        assert_eq!(claim("<promise> BLOCKED :  no\t<key> </promise>"), blocked("no <key>"));
        assert_eq!(claim("<promise>BLOCKED：理由</promise>"), blocked("理由"));
        let long = "é ".repeat(600);
        let Claim::Failure { reason: Some(reason) } =
            claim(&format!("<promise>FAILURE: {long}</promise>"))
        else {
            panic!("a long reason is no failure");
        };
        assert_eq!(reason.chars().count(), REASON_CHARS);
        assert_eq!(claim("<promise>BLOCKED</promise>\n."), miss(NearMiss::NotLastLine));
        assert_eq!(claim("FAILURE"), miss(NearMiss::Untagged));
    }
    assert_eq!(done("<promise>BLOCKED by the key</promise>"), wrong("BLOCKED by the key"));
}

#[test]
fn without_a_promise_success_is_never_claimed() {
    let claim = |message| read(message, None);
    assert_eq!(claim("<promise>DONE</promise>"), miss(NearMiss::NoPromise));
    assert_eq!(claim("<promise></promise>"), miss(NearMiss::NoPromise));
    assert_eq!(claim("Soon: <promise>DONE</promise>"), miss(NearMiss::NoPromise));
    assert_eq!(claim("COMPLETE"), Claim::None);
}

#[test]
fn vector_1_and_fault_17_the_bare_promise_ends_no_loop() {
    assert_eq!(done("DONE"), miss(NearMiss::Untagged));
    assert_eq!(done("All four endpoints work.\n\nDONE\n"), miss(NearMiss::Untagged));
}

#[test]
fn vector_2_and_fault_18_talk_about_the_promise_ends_no_loop() {
    let later = "I will output <promise>DONE</promise> only once tests pass; 3 fail.";
    assert_eq!(done(later), miss(NearMiss::NotAlone));
    assert_eq!(done(&format!("{later}\nGoing on.")), miss(NearMiss::NotLastLine));
    assert_eq!(done("I am not outputting the promise DONE."), Claim::None);
    let rule = "The protocol:\n\n    <promise>DONE</promise>\n\nends the loop. It is not time yet.";
    assert_eq!(done(rule), miss(NearMiss::Indented));
}

#[test]
fn vector_7_wrong_tag_first_right_tag_last_completes() {
    assert_eq!(done("<promise>NOT YET</promise>\nok\n<promise>DONE</promise>"), Claim::Success);
    assert_eq!(done("<promise>DONE</promise>\nno:\n<promise>NOT YET</promise>"), wrong("NOT YET"));
}

#[test]
fn vector_9_a_promise_with_quotes_is_only_text() {
    let quoted = promise(r#"say "it's" \done\"#);
    let message = format!("<promise>{quoted}</promise>");
    assert_eq!(read(&message, Some(&quoted)), Claim::Success);
}

#[test]
fn vector_10_white_space_in_a_promise_matches_any_white_space() {
    let spaced = promise("ALL  TESTS PASS");
    assert_eq!(read("<promise>ALL TESTS\t PASS </promise>", Some(&spaced)), Claim::Success);
    assert_eq!(read("<promise>ALL  TESTS PASS</promise>", Some(&spaced)), Claim::Success);
}

#[test]
fn fault_10_the_first_word_of_a_promise_is_not_the_promise() {
    let long = promise("BUILD COMPLETE");
    assert_eq!(read("<promise>BUILD</promise>", Some(&long)), wrong("BUILD"));
    assert_eq!(read("<promise>BUILD COMPLETE</promise>", Some(&long)), Claim::Success);
}

#[test]
fn fault_19_an_echo_of_the_task_ends_no_loop_and_no_promise_matches_everything() {
    let task = "Build it.\nOutput <promise>DONE</promise> when done.";
    assert_eq!(done(task), miss(NearMiss::NotAlone));
    assert!(Promise::new("").is_err());
    assert_eq!(done("<promise></promise>"), wrong(""));
}

#[test]
fn a_reason_contains_no_terminal_control_codes() {
    let message = "<promise>BLOCKED: \x1b[2J\x1b]0;t\x07no key</promise>";
    assert_eq!(read(message, None), Claim::Blocked { reason: Some("no key".to_owned()) });
}

#[test]
fn an_explanation_of_the_claim_is_not_itself_a_claim() {
    use NearMiss::*;
    let said = WrongText { said: "<x>".to_owned() };
    for miss in [
        NotLastLine,
        NotAlone,
        said,
        WrongCase,
        InFence,
        InHtml,
        Quoted,
        LazilyQuoted,
        Echo,
        Indented,
        Untagged,
        SplitOverLines,
        Malformed,
        NoPromise,
    ] {
        assert_eq!(done(&miss.to_string()), Claim::None);
        assert!(miss.to_string().contains(": ") && !miss.to_string().contains('\n'), "{miss:?}");
    }
}

#[test]
fn a_message_of_four_megabytes_is_read_in_linear_time() {
    // A reader that is not linear would need more than an hour for these.
    for piece in ["<promise>", "</promise>", "<", "\n", " ", "```\n", "- ", "> ", "x\u{a0}"] {
        let text = piece.repeat((2 << 20) / piece.len());
        done(&format!("{text}\n<promise>{text}</promise>"));
    }
}

/// Texts of the pieces of a claim, in any order.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        Just("<promise>"),
        Just("</promise>"),
        Just("DONE"),
        Just("BLOCKED"),
        Just(":"),
        Just("\n"),
        Just("\r\n"),
        Just("```"),
        Just("~~~~"),
        Just("> "),
        Just("- "),
        Just("    "),
        Just("\t"),
        Just("é"),
        Just("\u{a0}"),
        Just("<"),
        Just(" "),
    ];
    prop::collection::vec(scrap, 0..24).prop_map(|scraps| scraps.concat())
}

fn any_promise() -> impl Strategy<Value = Promise> {
    "[^<\\x00-\\x1f]{1,40}".prop_filter_map("valid promises", |text| Promise::new(&text).ok())
}

proptest! {
    #[test]
    fn any_string_is_parsed(message in prop_oneof![any::<String>(), scraps()], taken in any::<bool>()) {
        let promise = promise("DONE");
        read(&message, taken.then_some(&promise));
    }

    #[test]
    fn success_always_requires_the_tag_on_the_last_line(message in scraps()) {
        if done(&message) == Claim::Success {
            let last = message.trim_end().lines().next_back().unwrap().trim();
            let said = last.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE));
            prop_assert_eq!(said.map(str::trim), Some("DONE"));
        }
    }

    #[test]
    fn a_tag_within_prose_never_completes(
        before in "(\\PC|\n){0,80}",
        same_line in prop_oneof![Just((true, false)), Just((false, true)), Just((true, true))],
        word in "[a-z.`*>\"]{1,8}",
        after in "(\\PC|\n){0,80}",
        promise in any_promise(),
    ) {
        let left = if same_line.0 { word.as_str() } else { "" };
        let right = if same_line.1 { word.as_str() } else { "" };
        let message = format!("{before}\n{left}<promise>{promise}</promise>{right}\n{after}");
        prop_assert_ne!(read(&message, Some(&promise)), Claim::Success);
    }

    #[test]
    fn a_tag_before_the_last_line_never_completes(
        before in "(\\PC|\n){0,80}", last in "[a-z>`]{1,20}", promise in any_promise(),
    ) {
        let message = format!("{before}\n<promise>{promise}</promise>\n\n{last}");
        prop_assert_ne!(read(&message, Some(&promise)), Claim::Success);
    }

    #[test]
    fn a_valid_promise_on_the_last_line_completes_whatever_comes_before_it(
        before in "([^`~>\\r]|\n){0,120}",
        code in "[^`\\r]{0,40}",
        indent in " {0,3}",
        end in "[ \t\r\n]{0,5}",
        promise in any_promise(),
    ) {
        let tag = format!("{indent}<promise>{promise}</promise>{end}");
        let plain = format!("{before}\n{tag}");
        prop_assert_eq!(read(&plain, Some(&promise)), Claim::Success);
        let fenced = format!("{before}\n```sh\n{code}\n```\n{tag}");
        prop_assert_eq!(read(&fenced, Some(&promise)), Claim::Success);
        let last = format!("{before}\n```sh\n{code}\n{tag}");
        prop_assert_eq!(read(&last, Some(&promise)), Claim::NearMiss(NearMiss::InFence));
    }

    #[test]
    fn a_promise_in_a_task_is_the_promise(promise in any_promise(), word in "[^<]{0,40}") {
        let task = format!("{word} <promise>\n{promise} </promise> {word}");
        prop_assert_eq!(Promise::in_task(&task), Ok(Some(promise)));
    }
}

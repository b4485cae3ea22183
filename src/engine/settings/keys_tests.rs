//! What widens each setting, and that each has its own name. A key without rules does not compile.

use super::keys::Key;
use super::trust::needs;
use super::{Kind, Layer, Value};
use crate::engine::claim::promise::Promise;
use crate::engine::record::{Permissions, Proof, QuestionMode};
use crate::engine::test_changes::TestChanges;
use crate::engine::test_changes::trial::Prove;

fn number(number: u64) -> Value {
    Value::Number(number)
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// What the user said, a value, and whether a project's file needs trust for it.
type Rules = Vec<(Option<Value>, Value, bool)>;

fn of_limit(built_in: u64) -> Rules {
    vec![
        (None, number(built_in), false),
        (Some(number(7)), number(8), true),
        (Some(number(7)), number(0), true),
        (Some(number(7)), number(7), false),
        (Some(number(7)), number(6), false),
        (Some(number(0)), number(8), false),
    ]
}

fn of_step(on: &Value, off: &Value) -> Rules {
    let [on, off] = [on, off].map(Clone::clone);
    vec![
        (None, on.clone(), true),
        (None, off.clone(), false),
        (Some(off.clone()), on.clone(), true),
        (Some(on.clone()), on.clone(), false),
        (Some(on), off, false),
    ]
}

fn of_permissions() -> Rules {
    use Permissions::{AcceptEdits, Auto, Bypass, Default};
    let kind = Value::Permissions;
    vec![
        (None, kind(AcceptEdits), false),
        (None, kind(Auto), true),
        (None, kind(Default), false),
        (Some(kind(Auto)), kind(Auto), false),
        (Some(kind(Auto)), kind(Bypass), true),
        (Some(kind(Bypass)), kind(Auto), false),
    ]
}

fn of_promise() -> Rules {
    let [done, other] = ["DONE", "OTHER"].map(|text| Value::Promise(Promise::new(text).unwrap()));
    vec![
        (None, done.clone(), false),
        (None, Value::Off, true),
        (Some(done.clone()), done.clone(), false),
        (Some(done.clone()), other, true),
        (Some(done.clone()), Value::Off, true),
        (Some(Value::Off), done, true),
    ]
}

fn of_proof() -> Rules {
    let [off, checked, proven] = Prove::ALL.map(Value::Prove);
    vec![
        (None, proven.clone(), false),
        (None, off.clone(), true),
        (Some(proven.clone()), checked, true),
        (Some(off), proven, false),
    ]
}

fn of_test_changes() -> Rules {
    let [refuse, report] = TestChanges::ALL.map(Value::TestChanges);
    vec![(None, refuse, false), (None, report.clone(), true), (Some(report.clone()), report, false)]
}

fn of_questions() -> Rules {
    let [auto, ask, defer] = QuestionMode::ALL.map(Value::Questions);
    vec![
        (None, auto, false),
        (None, ask.clone(), true),
        (None, defer, true),
        (Some(ask.clone()), ask, false),
    ]
}

fn rules(key: Key) -> Rules {
    let switch = Value::Switch;
    match key {
        Key::MaxIterations => of_limit(10),
        Key::FailureThreshold => of_limit(3),
        Key::Stall => of_limit(5),
        Key::MaxDuration | Key::MaxWait => of_limit(12 * 3600),
        Key::MaxCost | Key::MaxTokens | Key::MaxTurns => of_limit(0),
        Key::Timeout => of_limit(3600),
        Key::IdleTimeout | Key::ProveTimeout => of_limit(900),
        Key::KeepLogs => of_limit(2 << 30),
        Key::KeepSnapshots => of_limit(10 << 30),
        Key::KeepDays => of_limit(90),
        Key::Delay => vec![
            (None, number(0), false),
            (Some(number(7)), number(6), true),
            (Some(number(7)), number(0), true),
            (Some(number(7)), number(8), false),
        ],
        Key::TokenBudget | Key::Redline => {
            vec![(Some(number(7)), number(0), false), (Some(number(7)), number(6), false)]
        }
        Key::Promise => of_promise(),
        Key::TestChanges => of_test_changes(),
        Key::Questions => of_questions(),
        Key::Notices => vec![(None, switch(false), false)],
        Key::Prove => of_proof(),
        Key::Setup => {
            vec![(None, text("npm ci"), true), (Some(text("a")), text("a"), true)]
        }
        Key::Tests => {
            vec![(None, Value::Words(vec!["checks/**".to_owned()]), false)]
        }
        Key::MayChange => {
            let globs = Value::Words(vec!["tests/**".to_owned()]);
            vec![(None, globs.clone(), true), (Some(globs.clone()), globs, true)]
        }
        Key::Require => vec![(None, Value::Proof(Proof::Checked), false)],
        Key::Agent => vec![
            (None, text("claude"), false),
            (None, text("codex"), true),
            (Some(text("codex")), text("codex"), false),
            (Some(text("codex")), text("claude"), true),
        ],
        Key::Model | Key::Account => of_another(&text("opus"), &text("haiku")),
        Key::Fallback => of_another(&names("codex"), &names("claude")),
        Key::Arguments => {
            let words = Value::Words(vec!["--x".to_owned()]);
            vec![(None, words.clone(), true), (Some(words.clone()), words, true)]
        }
        Key::Permissions => of_permissions(),
        Key::Commit | Key::Push => of_step(&switch(true), &switch(false)),
        Key::Rebase => {
            let another = (Some(text("main")), text("other"), true);
            [of_step(&text("main"), &Value::Off), vec![another]].concat()
        }
        // It costs nothing but the machine's sleep, so a project's file may ask for it.
        Key::Awake => {
            let rules = of_step(&switch(true), &switch(false));
            rules.into_iter().map(|(own, it, _)| (own, it, false)).collect()
        }
        // Lists are not among the values of a layer; a check needs trust whatever the user has set.
        Key::Verify | Key::Gate | Key::Until | Key::Protect => Vec::new(),
    }
}

fn names(name: &str) -> Value {
    Value::Words(vec![name.to_owned()])
}

fn of_another(one: &Value, other: &Value) -> Rules {
    vec![
        (None, one.clone(), true),
        (Some(one.clone()), one.clone(), false),
        (Some(one.clone()), other.clone(), true),
    ]
}

fn layer(key: Key, value: Option<Value>) -> Layer {
    let mut layer = Layer::default();
    layer.type_in([(key, value)]);
    layer
}

#[test]
fn each_key_says_what_widens_it() {
    for key in Key::all() {
        let rules = rules(key);
        let is_list = matches!(key.row().kind, Kind::Commands(_) | Kind::Globs);
        assert_eq!(rules.is_empty(), is_list, "{key:?}");
        for (own, value, needs_trust) in rules {
            let told = format!("{key:?}: {value:?} over {own:?}");
            let (user, other) = (layer(key, own), layer(key, Some(value)));
            assert_eq!(needs(&other, &user, "claude").len(), usize::from(needs_trust), "{told}");
        }
    }
}

#[test]
fn each_key_has_a_name_of_its_own() {
    let distinct = |mut names: Vec<String>| {
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    };
    for table in ["loop", "wait", "keep"] {
        distinct(Key::all().filter_map(|key| key.name_in(table)).map(str::to_owned).collect());
    }
}

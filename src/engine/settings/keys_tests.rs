//! What widens each setting, and that each has one row. A key without rules here does not compile.

use super::keys::Key;
use super::merge::{Layers, VariableTrust, merge};
use super::trust::needs;
use super::{Kind, Layer, Sourced, Value};
use crate::engine::claim::promise::Promise;
use crate::engine::exam::ExamMode;
use crate::engine::record::{Permissions, Proof, QuestionMode};

fn number(number: u64) -> Value {
    Value::Number(number)
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// What the user said, a value, whether a project's file needs trust for it, and whether a variable
/// that a project may have set is obeyed.
type Rules = Vec<(Option<Value>, Value, bool, bool)>;

fn of_limit(built_in: u64) -> Rules {
    vec![
        (None, number(built_in), false, false),
        (Some(number(7)), number(8), true, false),
        (Some(number(7)), number(0), true, false),
        (Some(number(7)), number(7), false, false),
        (Some(number(7)), number(6), false, true),
        (Some(number(0)), number(8), false, true),
    ]
}

fn of_step(on: &Value, off: &Value) -> Rules {
    let [on, off] = [on, off].map(Clone::clone);
    vec![
        (None, on.clone(), true, false),
        (None, off.clone(), false, true),
        (Some(off.clone()), on.clone(), true, false),
        (Some(on.clone()), on.clone(), false, false),
        (Some(on), off, false, true),
    ]
}

fn of_permissions() -> Rules {
    use Permissions::{AcceptEdits, Auto, Bypass, Default};
    let kind = Value::Permissions;
    vec![
        (None, kind(AcceptEdits), false, false),
        (None, kind(Auto), true, false),
        (None, kind(Default), false, true),
        (Some(kind(Auto)), kind(Auto), false, false),
        (Some(kind(Auto)), kind(Bypass), true, false),
        (Some(kind(Bypass)), kind(Auto), false, true),
    ]
}

fn of_promise() -> Rules {
    let [done, other] = ["DONE", "OTHER"].map(|text| Value::Promise(Promise::new(text).unwrap()));
    vec![
        (None, done.clone(), false, false),
        (None, Value::Off, true, false),
        (Some(done.clone()), done.clone(), false, false),
        (Some(done.clone()), other, true, false),
        (Some(done.clone()), Value::Off, true, false),
        (Some(Value::Off), done, true, false),
    ]
}

fn of_proof() -> Rules {
    let switch = Value::Switch;
    let (on, off) = (Some(switch(true)), switch(false));
    vec![
        (None, switch(true), false, true),
        (None, off.clone(), false, false),
        (on.clone(), off.clone(), true, false),
        (Some(off), switch(true), false, true),
    ]
}

fn of_exam() -> Rules {
    let [hold, tell] = ExamMode::ALL.map(Value::Exam);
    vec![
        (None, hold, false, false),
        (None, tell.clone(), true, false),
        (Some(tell.clone()), tell, false, false),
    ]
}

fn of_questions() -> Rules {
    let [auto, ask, defer] = QuestionMode::ALL.map(Value::Questions);
    vec![
        (None, auto, false, false),
        (None, ask.clone(), true, false),
        (None, defer, true, false),
        (Some(ask.clone()), ask, false, false),
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
            (None, number(0), false, false),
            (Some(number(7)), number(6), true, false),
            (Some(number(7)), number(0), true, false),
            (Some(number(7)), number(8), false, true),
        ],
        Key::TokenBudget | Key::Redline => vec![
            (Some(number(7)), number(0), false, false),
            (Some(number(7)), number(6), false, false),
        ],
        Key::Promise => of_promise(),
        Key::Exam => of_exam(),
        Key::Questions => of_questions(),
        Key::Notices => vec![(None, switch(false), false, false)],
        Key::Prove => of_proof(),
        Key::Setup => {
            vec![(None, text("npm ci"), true, false), (Some(text("a")), text("a"), true, false)]
        }
        Key::Tests => {
            vec![(None, Value::Words(vec!["checks/**".to_owned()]), false, false)]
        }
        Key::Require => vec![(None, Value::Proof(Proof::Checked), false, false)],
        Key::Agent => vec![
            (None, text("claude"), false, false),
            (None, text("codex"), true, false),
            (Some(text("codex")), text("codex"), false, false),
            (Some(text("codex")), text("claude"), true, false),
        ],
        Key::Model | Key::Account => of_another(&text("opus"), &text("haiku")),
        Key::Fallback => of_another(&names("codex"), &names("claude")),
        Key::Arguments => {
            let words = Value::Words(vec!["--x".to_owned()]);
            vec![(None, words.clone(), true, false), (Some(words.clone()), words, true, false)]
        }
        Key::Permissions => of_permissions(),
        Key::Commit | Key::Push => of_step(&switch(true), &switch(false)),
        Key::Rebase => {
            let another = (Some(text("main")), text("other"), true, false);
            [of_step(&text("main"), &Value::Off), vec![another]].concat()
        }
        // It costs nothing but the machine's sleep, so a project's file may ask for it.
        Key::Awake => {
            let rules = of_step(&switch(true), &switch(false));
            rules.into_iter().map(|(own, it, _, obeyed)| (own, it, false, obeyed)).collect()
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
        (None, one.clone(), true, false),
        (Some(one.clone()), one.clone(), false, false),
        (Some(one.clone()), other.clone(), true, false),
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
        for (own, value, needs_trust, is_obeyed) in rules {
            let told = format!("{key:?}: {value:?} over {own:?}");
            let (user, other) = (layer(key, own), layer(key, Some(value.clone())));
            assert_eq!(needs(&other, &user, "claude").len(), usize::from(needs_trust), "{told}");
            let planted =
                Sourced { value, origin: super::ValueOrigin::Environment { variable: "X" } };
            let mut environment = Layer::default();
            environment.values.insert(key, planted.clone());
            let layers = Layers { user, environment, ..Layers::default() };
            let obeyed = merge(&layers, VariableTrust::OnlyNarrows, None).layer.values.get(&key)
                == Some(&planted);
            assert_eq!(obeyed, is_obeyed, "{told}");
            let all = merge(&layers, VariableTrust::IsTheUsers, None);
            assert_eq!(all.layer.values.get(&key), Some(&planted), "{told}");
        }
    }
}

#[test]
fn each_key_has_one_row_and_a_name_and_a_variable_of_its_own() {
    let mut keys: Vec<Key> = Key::all().collect();
    keys.sort();
    assert!(keys.iter().enumerate().all(|(place, key)| place == *key as usize), "{keys:?}");
    assert_eq!(keys.last(), Some(&Key::Protect));
    let distinct = |mut names: Vec<String>| {
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    };
    distinct(Key::all().filter_map(|key| key.row().variable).map(str::to_owned).collect());
    for table in ["loop", "agent", "wait", "keep"] {
        distinct(Key::all().filter_map(|key| key.name_in(table)).map(str::to_owned).collect());
    }
}

use std::os::unix::ffi::OsStringExt;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

fn foreign() -> Foreign {
    let own = vec![
        "AI_AGENT",
        "CLAUDECODE",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_EFFORT",
        "CLAUDE_PID",
        "CREW_FAULT",
    ];
    Foreign {
        own,
        shifting: vec!["COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TRACEPARENT", "_"],
    }
}

/// Returns the bytes themselves instead of a hash, so that a comparison can be read.
fn bare(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn begun(start: &[(&str, &str)], held: &[(&str, &str)]) -> Environment {
    let held: Vec<_> =
        held.iter().map(|(name, said)| ((*name).to_owned(), (*said).to_owned())).collect();
    Environment::from_variables(&variables(start), &foreign(), &held, "s".to_owned(), bare)
}

#[test]
fn each_variable_is_passed_dropped_put_back_or_refused() {
    let start = [
        ("AWS_PROFILE", "mine"),
        ("CLAUDE_PID", "7"),
        ("COLUMNS", "80"),
        ("EDITOR", "ed"),
        ("PATH", "/bin"),
        ("STRICT", "yes"),
    ];
    let kept = begun(&start, &[("STRICT", "yes"), ("EDITOR", "vi"), ("ABSENT", "x")]);
    let changed = |name, value| {
        let mut now = variables(&start);
        now.insert(name, value);
        kept.compare(&now, &foreign(), bare)
    };
    let shown = |name: &str, value: &str| {
        let plan = changed(name.into(), value.into());
        let Plan { dropped, replaced, new, changed, missing } = plan;
        format!("{dropped:?} {replaced:?} {new:?} {changed:?} {missing:?}")
    };
    let table = [
        ("EDITOR", "ed", "[] [] [] [] []"),
        ("MAKEFLAGS", "-n", r#"["MAKEFLAGS"] [] ["MAKEFLAGS"] [] []"#),
        ("AWS_PROFILE", "theirs", r#"["AWS_PROFILE"] [] [] ["AWS_PROFILE"] []"#),
        // A file that gives a name another value does not hold its value.
        ("EDITOR", "vi", r#"["EDITOR"] [] [] ["EDITOR"] []"#),
        ("STRICT", "no", r#"[] [("STRICT", "yes")] [] [] []"#),
        ("PATH", "", r#"[] [("PATH", "/bin")] [] [] []"#),
        ("CLAUDE_PID", "8", "[] [] [] [] []"),
        ("CLAUDE_EFFORT", "high", "[] [] [] [] []"),
        ("CLAUDE_PLANTED", "1", r#"["CLAUDE_PLANTED"] [] ["CLAUDE_PLANTED"] [] []"#),
        ("COLUMNS", "90", r#"["COLUMNS"] [] [] [] []"#),
        ("OLDPWD", "/repo", r#"["OLDPWD"] [] [] [] []"#),
    ];
    for (name, value, expected) in table {
        assert_eq!(shown(name, value), expected, "{name}={value}");
    }
    let odd = OsString::from_vec(b"\xff".to_vec());
    assert_eq!(changed(odd.clone(), "x".into()).dropped, std::slice::from_ref(&odd));
    assert_eq!(changed("EDITOR".into(), odd).changed, ["EDITOR"]);
    assert_eq!(
        kept.compare(&Variables::new(), &foreign(), bare).missing,
        ["AWS_PROFILE", "EDITOR", "PATH", "STRICT"]
    );
}

#[test]
fn pages_show_names_of_variables_and_never_their_values() {
    let start = [("A", "1"), ("B", "1"), ("GONE", "1"), ("PATH", "/bin")];
    let kept = begun(&start, &[]);
    let now = [("A", "2"), ("B", "2"), ("PATH", "2"), ("MAKE\u{1b}FLAGS", "2"), ("Z", "2")];
    let plan = kept.compare(&variables(&now), &foreign(), bare);
    assert_snapshot!(plan.remarks().join("\n"), @r"
    MAKE\u{1b}FLAGS, Z are new in the environment; not passed to checks
    PATH is not as it was when the loop began; checks get the old value
    A, B are not as they were when the loop began; no check is run
    GONE is missing in the environment
    ");
    assert_snapshot!(plan.refusal_text("/crew:resume").unwrap(), @"was not run: the variables A, B are not as they were when the loop began; /crew:resume accepts them");
    assert_snapshot!(plan.accepted_names().unwrap(), @r"checks now get these as they are here, not as they were when the loop began: A, B, GONE, MAKE\u{1b}FLAGS, PATH, Z");
    let one = kept.compare(&variables(&[&start[1..], &[("A", "2")]].concat()), &foreign(), bare);
    assert_snapshot!(one.refusal_text("/crew:resume").unwrap(), @"was not run: the variable A is not as it was when the loop began; /crew:resume accepts it");
    let same = kept.compare(&variables(&start), &foreign(), bare);
    assert_eq!(
        (same.remarks().len(), same.refusal_text("/crew:resume"), same.accepted_names()),
        (0, None, None)
    );
    assert_eq!(same, Plan::default());
}

#[test]
fn a_record_stores_no_value_but_the_path_and_those_that_came_from_a_file() {
    let start = [("KEY", "secret"), ("PATH", "/bin"), ("STRICT", "yes")];
    let held = [("STRICT".to_owned(), "yes".to_owned()), ("KEY".to_owned(), "${KEY}".to_owned())];
    let digest: Digest = |bytes| format!("{:064x}", bytes.len());
    let kept = Environment::from_variables(
        &variables(&start),
        &foreign(),
        &held,
        "salt".to_owned(),
        digest,
    );
    let text = serde_json::to_string_pretty(&kept).unwrap();
    assert_snapshot!(text, @r#"
    {
      "salt": "salt",
      "hashes": {
        "KEY": "00000000000000000000000000000000",
        "PATH": "00000000000000000000000000000000",
        "STRICT": "00000000000000000000000000000000"
      },
      "values": {
        "PATH": "/bin",
        "STRICT": "yes"
      }
    }
    "#);
    assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), kept);
}

fn some_variables() -> impl Strategy<Value = Variables> {
    let name = prop_oneof![
        "[AB_]{1,2}",
        "[^=\\x00]{1,3}",
        Just("PATH".to_owned()),
        Just("COLUMNS".to_owned()),
        Just("CLAUDECODE".to_owned()),
    ];
    let bytes = prop::collection::vec(prop_oneof![Just(b'a'), Just(0xff), 1u8..], 0..3);
    let raw = |bytes| OsString::from_vec(bytes);
    let odd = prop::collection::vec(128u8.., 1..3).prop_map(raw);
    let name = prop_oneof![9 => name.prop_map(OsString::from), 1 => odd];
    prop::collection::btree_map(name, bytes.prop_map(raw), 0..9)
}

proptest! {
    #[test]
    fn only_variables_that_existed_at_the_start_are_passed(
        start in some_variables(),
        now in some_variables(),
        held in prop::collection::vec(("[AB_]{1,2}", "a?"), 0..4),
    ) {
        // Names and values this short are kept whole.
        let whole: Digest = |bytes| bytes.iter().map(|byte| char::from(*byte)).collect();
        let kept = Environment::from_variables(&start, &foreign(), &held, String::new(), whole);
        let plan = kept.compare(&now, &foreign(), whole);
        let mut passed = now.clone();
        passed.retain(|name, _| {
            let is_a_clients = name.to_str().is_some_and(|name| foreign().own.contains(&name));
            !is_a_clients && !plan.dropped.contains(name)
        });
        for (name, value) in plan.changed_variables() {
            passed.insert(name.into(), value.into());
        }
        for (name, value) in &passed {
            prop_assert_eq!(start.get(name), Some(value));
        }
        // A variable that did not change is passed.
        for (name, value) in now.iter().filter(|(name, value)| start.get(*name) == Some(*value)) {
            let is_reported = name.to_str().is_some_and(|name| !foreign().own.contains(&name));
            prop_assert_eq!(passed.contains_key(name), is_reported, "{:?}={:?}", name, value);
        }
    }
}

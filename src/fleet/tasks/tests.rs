//! Task files and fleet.toml as users write them, and the report of their faults.

use clap::Arg;
use serde::Deserialize;

use super::folder::{is_task, read_folder};
use super::front_matter::split_front_matter;
use super::options::{FRONT_MATTER, FleetFile, LAND, TOP, TaskOptions, option_keys};
use engine::fleet::FleetTask;
use engine::record::Proof;
use engine::text::words_of;
use readers::parse::arguments::run_options;

type Read = Result<(FleetFile, Vec<(FleetTask, TaskOptions)>), String>;

pub(super) fn read_files(files: &[(&str, &str)], fleet_toml: Option<&str>) -> Read {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    read_folder(files.collect(), fleet_toml.map(str::as_bytes)).map_err(|faults| faults.join("\n"))
}

/// The task of one file, beside others that it may wait for.
fn read_task(text: &str) -> FleetTask {
    let others = [("auth.md", text), ("user-model.md", "do it"), ("a.md", "do it")];
    let (_, tasks) =
        read_files(&others, None).unwrap_or_else(|faults| panic!("{text:?}: {faults}"));
    tasks.into_iter().map(|(task, _)| task).find(|task| task.id.as_str() == "auth").unwrap()
}

/// The words of front matter in YAML, sorted.
fn read_words(yaml: &str) -> Vec<String> {
    read_task(&format!("---\n{yaml}\n---\ndo it\n")).words
}

/// The report about a task file.
fn refusal_of(text: &str) -> String {
    refused_of("auth.md", text)
}

fn refused_of(name: &str, text: &str) -> String {
    read_files(&[(name, text)], None).expect_err(text)
}

#[test]
fn a_task_is_a_page_that_is_neither_hidden_nor_a_readme() {
    let table = [
        ("auth.md", true),
        ("v1.2.md", true),
        ("readme-first.md", true),
        ("README.md", false),
        ("ReadMe.md", false),
        ("_notes.md", false),
        (".draft.md", false),
        (".md", false),
        ("fleet.toml", false),
        ("auth.txt", false),
    ];
    for (name, expected) in table {
        assert_eq!(is_task(name), expected, "{name}");
    }
}

#[test]
fn front_matter_is_between_two_fences_of_which_the_first_is_the_first_line() {
    let table = [
        ("do it", 0, "do it"),
        ("---\nn: 3\n---\ndo it", 1, "do it"),
        ("+++\nn = 3\n+++\ndo it", 1, "do it"),
        ("\u{feff}---\r\nn: 3\r\n--- \r\n\r\ndo\r\nit\r\n", 1, "\r\ndo\r\nit\r\n"),
        ("---\n---\ndo it", 0, "do it"),
        ("---\n# n: 3\n---\ndo it", 0, "do it"),
        ("+++\n+++\ndo it", 0, "do it"),
        ("---\nn: 3\n---", 1, ""),
        ("---\nn: 3\n---\nabove\n---\nbelow", 1, "above\n---\nbelow"),
        ("---\nn: 3\n---\n+++\nn = 3\n+++", 1, "+++\nn = 3\n+++"),
        ("do it\n---\nn: 3\n", 0, "do it\n---\nn: 3\n"),
        ("--- n\n---\n", 0, "--- n\n---\n"),
    ];
    for (text, keys, body) in table {
        let (entries, rest) =
            split_front_matter(text).unwrap_or_else(|fault| panic!("{text:?}: {fault:?}"));
        assert_eq!((entries.len(), rest), (keys, body), "{text:?}");
    }
    let prompt = read_task("---\r\nn: 3\r\n---\r\n\r\n  do\r\n\r\nit\r\n\r\n").prompt;
    assert_eq!(prompt, "  do\r\n\r\nit");
}

#[test]
fn a_task_with_a_broken_fence_is_refused() {
    let texts = [
        "---\nverify: cargo test\n\nFix the login.\n",
        "+++\nverify = \"cargo test\"\n---\nFix the login.\n",
        "---\nFix the login.\n---\nand more\n",
        "---\n- verify\n---\nFix the login.\n",
        "---\nn: 3\n...\nn: 4\n---\nFix the login.\n",
        "---\n? [a]\n: b\n---\nFix the login.\n",
        "---\nverify: cargo test: all\n---\nFix the login.\n",
        "---\nverify: [cargo test\n---\nFix the login.\n",
        "+++\nn = 3\nn = 4\n+++\nFix the login.\n",
        "+++\nn: 3\n+++\nFix the login.\n",
        "\n---\nn: 3\n---\nFix the login.\n",
        "\u{feff} \r\n\r\n+++\r\nn = 3\r\n+++\r\nFix the login.\r\n",
        "\u{feff}\u{feff}---\nn: 3\n---\nFix the login.\n",
        "----\nverify: a\n----\nDo it.",
        "<<<<<<< HEAD\n---\nverify: a\n---\nDo it.",
    ];
    insta::assert_snapshot!(texts.map(refusal_of).join("\n"), @"
    auth.md:1: `---` opens the front matter and nothing closes it: end it with a line `---`
    auth.md:1: `+++` opens the front matter and nothing closes it: end it with a line `+++`
    auth.md:2: the front matter takes lines of KEY: VALUE
    auth.md:2: the front matter takes lines of KEY: VALUE
    auth.md:4: the front matter is one YAML document, and another begins here
    auth.md:2: a key of the front matter is a word
    auth.md:2: this is not YAML: mapping values are not allowed in this context; a value that holds `: ` or ` #`, or begins with a mark, needs quotes
    auth.md:2: this is not YAML: unclosed bracket '['; a value that holds `: ` or ` #`, or begins with a mark, needs quotes
    auth.md:3: n is given twice: keep one of them
    auth.md:2: this is not TOML: key with no value, expected `=`
    auth.md:2: front matter begins on the first line: remove what is before this `---`, or write the prompt above it
    auth.md:3: front matter begins on the first line: remove what is before this `+++`, or write the prompt above it
    auth.md:1: front matter begins on the first line: remove what is before this `---`, or write the prompt above it
    auth.md:1: `----` is not a fence: front matter is between lines `---` or `+++`
    auth.md:1: a merge is open here: resolve it
    ");
}

#[test]
fn a_key_is_an_option_and_its_value_is_what_a_person_would_type() {
    let table: [(&str, &[&str]); 21] = [
        ("max-iterations: 15", &["max-iterations = \"15\""]),
        ("max_iterations: 15", &["max-iterations = \"15\""]),
        ("n: 15", &["max-iterations = \"15\""]),
        ("max-cost: 2.50", &["max-cost = \"2.50\""]),
        ("max-cost: $2.50", &["max-cost = \"$2.50\""]),
        ("max-tokens: 500k", &["max-tokens = \"500k\""]),
        ("timeout: 1h 30m", &["timeout = \"1h 30m\""]),
        ("verify: cargo test auth", &["verify = [\"cargo test auth\"]"]),
        ("verify: \"true\"", &["verify = [\"true\"]"]),
        ("verify: --version", &["verify = [\"--version\"]"]),
        ("verify: [a, 'b # c']", &["verify = [\"a\", \"b # c\"]"]),
        ("verify:\n- a\n- b", &["verify = [\"a\", \"b\"]"]),
        ("verify: []", &["verify = []"]),
        ("no-promise: true", &["no-promise = true"]),
        ("no_promise: false", &["no-promise = false"]),
        ("completion-promise: false", &["completion-promise = false"]),
        ("prove: True\nrequire: proven", &["prove = \"proven\"", "require = \"proven\""]),
        ("fallback: codex, gemini", &["fallback = [\"codex\", \"gemini\"]"]),
        ("fallback: [codex, gemini]", &["fallback = [\"codex\", \"gemini\"]"]),
        (
            "words: [--effort, high]\nmodel: opus",
            &["model = \"opus\"", "words = [\"--effort\", \"high\"]"],
        ),
        ("words: []", &["words = []"]),
    ];
    for (yaml, expected) in table {
        assert_eq!(read_words(yaml), expected, "{yaml}");
    }
}

#[test]
fn toml_front_matter_gives_the_same_result_with_its_own_fences() {
    let toml = r#"+++
verify   = ["cargo test auth", 'a "b"']  # two
max-cost = 2.50
max_tokens = 1_000
no-promise = true
timeout = """90m"""
after = ["user-model"]
priority = 7
touches = "src/auth/**"
+++
Add password reset.
"#;
    let read = read_task(toml);
    let expected = [
        r#"max-cost = "2.50""#,
        r#"max-tokens = "1000""#,
        "no-promise = true",
        r#"timeout = "90m""#,
        r#"verify = ["cargo test auth", 'a "b"']"#,
    ];
    assert_eq!(read.words, expected);
    assert_eq!(read.after, ["user-model".parse().unwrap()]);
    assert_eq!(read.priority, 7);
    assert_eq!(read.touches, ["src/auth/**"]);
    assert_eq!(read.prompt, "Add password reset.");
}

#[test]
fn a_task_without_front_matter_has_the_defaults() {
    let read = read_task("Fix the login.");
    assert_eq!((read.id.as_str(), read.priority), ("auth", 5));
    assert_eq!((read.after, read.touches, read.words), (vec![], vec![], vec![]));
}

#[test]
fn every_key_without_an_effect_is_reported_with_its_line() {
    let keys = "\
verfy: cargo test
frobnicate: 3
max-cost: lots
no-promise: yes please
verify: true
model: [opus, sonnet]
timeout: 90
gate:
until: {run: x}
agent: &mine codex
context: !now x
max_iterations: 3
n: 4
words: --effort high
priority: 10
after: [a b, c]
touches: [/etc, ../x, 'a[', **/*.rs]
orient: [[a]]
decide: ''
no-worse: \"a\\0b\"
permissions: all
verify: b
touches: c";
    let text = format!("---\n{keys}\n---\n");
    insta::assert_snapshot!(refusal_of(&text), @r#"
    auth.md: the prompt is missing: write what is to be done under the front matter
    auth.md:2: unknown key `verfy`: did you mean `verify`?
    auth.md:3: unknown key `frobnicate`: the keys are after, priority, touches, words, and the options that crew run --help lists
    auth.md:4: max-cost: lots: expected US dollars, such as 5.00
    auth.md:5: no-promise: yes please: expected true or false
    auth.md:6: verify: true: expected a string or a list of strings (as a string it needs quotes)
    auth.md:7: model: [opus, sonnet]: expected a string
    auth.md:8: timeout: 90: expected a time with its unit, such as 90m, 12h or "1h 30m"
    auth.md:9: gate: expected a value; one that begins with `*`, `&` or `!` needs quotes
    auth.md:10: until: {run: x}: expected a string or a list of strings
    auth.md:11: agent: &mine codex: expected a value; one that begins with `*`, `&` or `!` needs quotes
    auth.md:12: context: !now x: expected a value; one that begins with `*`, `&` or `!` needs quotes
    auth.md:14: n is given twice, also in line 13: keep one
    auth.md:15: words: --effort high: expected a list, such as ["a", "b"]
    auth.md:16: priority: 10: expected a whole number from 0 to 9, the most urgent
    auth.md:17: after: [a b, c]: expected the name of a task or a list such as [a, b]
    auth.md:18: touches: [/etc, ../x, 'a[', **/*.rs]: expected a value; one that begins with `*`, `&` or `!` needs quotes
    auth.md:19: orient: [[a]]: expected a string or a list of strings
    auth.md:20: decide: '': expected a string that is not blank
    auth.md:21: no-worse: "a\0b": expected a string that is not blank
    auth.md:22: permissions: all: expected one of `default`, `accept-edits`, `auto`, `bypass`
    auth.md:23: verify is given twice, also in line 6: keep one
    auth.md:24: touches is given twice, also in line 18: keep one
    "#);
}

#[test]
fn a_glob_is_below_the_root_of_the_checkout_wherever_it_is_in_a_list() {
    let all = ["[/etc]", "[src, ../x]", "'a['", "[src, '']", "[[src]]"]
        .map(|globs| refusal_of(&format!("---\ntouches: {globs}\n---\ndo it")));
    insta::assert_snapshot!(all.join("\n"), @"
    auth.md:2: touches: [/etc]: expected paths from the root of the checkout
    auth.md:2: touches: [src, ../x]: expected paths from the root of the checkout
    auth.md:2: touches: 'a[': expected a glob (unclosed character class; missing ']')
    auth.md:2: touches: [src, '']: expected a string that is not blank
    auth.md:2: touches: [[src]]: expected a string or a list of strings
    ");
}

#[test]
fn a_prompt_that_is_too_long_is_refused_with_its_size_and_the_limit() {
    let text = |bytes| format!("---\nn: 3\n---\n{}\n", "x".repeat(bytes));
    assert_eq!(read_task(&text(262_144)).prompt.len(), 262_144);
    insta::assert_snapshot!(refusal_of(&text(262_145)), @"auth.md: the prompt has 257 KiB, and may have 256: put some of it into another file, and name that");
}

#[test]
fn a_hint_for_a_fleet_key_names_fleet_toml_and_one_for_a_list_names_brackets() {
    let keys = "setup: npm ci\nslots: 2\nbase: main\nname: x\nland: {check: a}\ntask: 3\ncheck: true\nafter: a, b";
    insta::assert_snapshot!(refusal_of(&format!("---\n{keys}\n---\nFix the login.\n")), @"
    auth.md:2: `setup` belongs above the first table of fleet.toml
    auth.md:3: `slots` belongs above the first table of fleet.toml
    auth.md:4: `base` belongs above the first table of fleet.toml
    auth.md:5: `name` belongs above the first table of fleet.toml
    auth.md:6: `land` belongs in fleet.toml, as a line [land] with its keys below
    auth.md:7: `task` belongs in fleet.toml, as a line [task] with its keys below
    auth.md:8: `check` belongs under [land] in fleet.toml
    auth.md:9: after: a, b: expected the name of a task or a list such as [a, b]
    ");
}

#[test]
fn keys_that_exclude_each_other_are_refused() {
    let texts = [
        "---\nagent: codex\nagent-cmd: mine\n---\nFix the login.\n",
        "---\nno-promise: true\ncompletion-promise: DONE\n---\nFix the login.\n",
    ];
    insta::assert_snapshot!(texts.map(refusal_of).join("\n"), @"
    auth.md: agent cannot be used with agent-cmd: give one of the two
    auth.md: no-promise cannot be used with completion-promise: give one of the two
    ");
}

#[test]
fn keys_that_the_fleet_decides_are_refused_with_the_reason() {
    let keys = [
        "detach",
        "json",
        "verbose",
        "quiet",
        "dry_run",
        "list",
        "worktree",
        "replace",
        "commit",
        "push",
        "rebase",
        "prompt-file",
        "no-project",
    ];
    let keys: String = keys.map(|key| format!("{key}: true\n")).concat();
    insta::assert_snapshot!(refusal_of(&format!("---\n{keys}---\nFix the login.\n")), @"
    auth.md:2: `detach` is not for a task to set: a fleet runs each task in a process of its own
    auth.md:3: `json` is not for a task to set: crew fleet status --json reports all tasks
    auth.md:4: `verbose` is not for a task to set: crew show --log shows what the agent of a task does
    auth.md:5: `quiet` is not for a task to set: a task prints nothing to the terminal
    auth.md:6: `dry-run` is not for a task to set: crew fleet run --dry-run shows every task
    auth.md:7: `list` is not for a task to set: it starts nothing
    auth.md:8: `worktree` is not for a task to set: each task has a clone of its own
    auth.md:9: `replace` is not for a task to set: nothing else runs in a task's clone
    auth.md:10: `commit` is not for a task to set: the fleet commits what each iteration changed
    auth.md:11: `push` is not for a task to set: crew fleet run --push decides it for all tasks
    auth.md:12: `rebase` is not for a task to set: tasks are rebased onto the fleet's base, which fleet.toml names
    auth.md:13: `prompt-file` is not for a task to set: the text of the task's own file is the prompt
    auth.md:14: `no-project` is not for a task to set: the fleet decides for all tasks which settings count
    ");
}

#[test]
fn a_file_without_a_prompt_or_with_a_bad_name_is_refused() {
    let files = [
        ("auth.md", ""),
        ("auth.md", "---\nn: 3\n---\n \n"),
        ("auth.md", "a\0b"),
        ("my task.md", "do it"),
        ("-x.md", "do it"),
        ("a\nb.md", "do it"),
    ];
    let all = files.map(|(name, text)| refused_of(name, text));
    insta::assert_snapshot!(all.join("\n"), @r#"
    auth.md: the prompt is missing: write what is to be done under the front matter
    auth.md: the prompt is missing: write what is to be done under the front matter
    auth.md: the prompt contains a NUL character: is it a text file?
    my task.md: "my task" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` are allowed in it; rename the file
    -x.md: "-x" cannot be a part of a branch: it begins with `.` or `-`; rename the file
    a b.md: "a\nb" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` are allowed in it; rename the file
    "#);
}

#[test]
fn a_multiline_command_is_the_same_with_any_line_ending() {
    let unix = "+++\nverify = \"\"\"\ntrue\ntest -f x\n\"\"\"\n+++\nDo it.\n";
    let read = [unix.to_owned(), unix.replace('\n', "\r\n")].map(|text| read_task(&text).words);
    assert_eq!(read[0], read[1]);
    assert!(read[0][0].contains("true\ntest -f x"), "{read:?}");
}

pub(super) const FLEET: &str = r#"
name  = "spring"
base  = "main"
slots = 4
max-cost = 50.5
setup = "npm ci"
[task]
verify = "cargo test"
n = 20
agent = "codex"
no-promise = true
words = ["--fast"]
[land]
check = ["cargo test", "cargo fmt --check"]
keep = "target"
"#;

#[test]
fn tasks_are_sorted_by_priority_and_then_by_name() {
    let files = [
        ("c.md", "do c"),
        ("b.md", "---\npriority: 9\n---\ndo b"),
        ("d.md", "---\npriority: 0\n---\ndo d"),
        ("a.md", "---\nafter: d\n---\ndo a"),
        ("t10.md", "do t10"),
        ("t2.md", "do t2"),
    ];
    let (_, tasks) = read_files(&files, None).unwrap();
    let ids: Vec<String> = tasks.iter().map(|(task, _)| task.id.to_string()).collect();
    assert_eq!(ids.join(" "), "b a c t2 t10 d");
}

#[test]
fn a_revision_changes_only_with_what_runs() {
    let revision = |text: &str, fleet: &str| {
        read_files(&[("auth.md", text)], Some(fleet)).unwrap().1[0].0.revision.clone()
    };
    let usual = revision("do it", "");
    assert!(usual.len() == 12 && usual.bytes().all(|byte| byte.is_ascii_hexdigit()), "{usual}");
    assert_eq!(usual, revision("---\npriority: 9\ntouches: src\n---\ndo it\n", "slots = 2"));
    let others = [
        revision("do it now", ""),
        revision("---\nn: 3\n---\ndo it", ""),
        revision("do it", "[task]\nn = 3\nverify = 'a'"),
        revision("do it", "setup = 'a'"),
    ];
    assert!(!others.contains(&usual));
    assert_eq!(others[1], revision("do it", "[task]\nn = 3"));
}

#[test]
fn faults_that_span_several_files_are_reported_together() {
    let files = [
        ("Auth.md", "do it"),
        ("auth.md", "do it"),
        ("a.md", "---\nafter: [auht, b]\n---\ndo it"),
        ("b.md", "---\nn: 3\nafter: a\n---\ndo it"),
        ("c.md", "---\nafter: c\n---\ndo it"),
        ("d.md", "---\nafter: [c, nobody]\n---\ndo it"),
        ("e.md", "---\nafter: g\n---\ndo it"),
        ("f.md", "---\nafter: [d, e]\n---\ndo it"),
        ("g.md", "---\nafter: [h, f]\n---\ndo it"),
        ("h.md", "---\nafter: auth.md\n---\ndo it"),
        ("i.md", "---\nverfy: x\nafter: [nobdoy, j]\n---\n"),
        ("j.md", "---\nafter: i\n---\ndo it"),
    ];
    insta::assert_snapshot!(read_files(&files, Some("slot = 4")).unwrap_err(), @r#"
    fleet.toml:1: unknown key `slot`: did you mean `slots`?
    a.md:2: task `auht` does not exist: did you mean `Auth`?
    a.md:2: these tasks wait for each other: a → b → a
    auth.md: its name differs from Auth.md only in case, and branches on some machines ignore that: rename one
    c.md:2: these tasks wait for each other: c → c
    d.md:2: task `nobody` does not exist: after names files of this folder, without .md
    e.md:2: these tasks wait for each other: e → g → f → e
    h.md:2: task `auth.md` does not exist: did you mean `Auth`?
    i.md: the prompt is missing: write what is to be done under the front matter
    i.md:2: unknown key `verfy`: did you mean `verify`?
    i.md:3: task `nobdoy` does not exist: after names files of this folder, without .md
    i.md:3: these tasks wait for each other: i → j → i
    "#);
}

#[test]
fn a_file_that_is_not_utf_8_is_refused_by_name_with_every_other_fault() {
    let files = [
        ("latin.md", &b"---\nn: 3\n---\nna\xefve\n"[..]),
        ("typo.md", b"---\nverfy: x\n---\ndo it"),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    let faults = read_folder(files.to_vec(), Some(b"slots = 2\nname = '\xff'")).unwrap_err();
    insta::assert_snapshot!(faults.join("\n"), @r#"
    fleet.toml:2: this is not UTF-8: save the file as UTF-8
    latin.md:4: this is not UTF-8: save the file as UTF-8
    typo.md:2: unknown key `verfy`: did you mean `verify`?
    "#);
}

#[test]
fn a_task_becomes_the_arguments_of_a_run_with_its_prompt_unchanged() {
    for prompt in
        ["build", "--verify x", "-- x", "a \"quote --verify", "  two\nlines", "é\u{a0}—push"]
    {
        let front = "verify: --x\nrequire: checked\nwords: [-n, '9']\nagent-cmd: mine\nact: go";
        let text = format!("---\n{front}\nmax-cost: 2.50\n---\n{prompt}\n");
        let (_, mut tasks) = read_files(&[("auth.md", &text)], None).unwrap();
        let (task, options) = tasks.remove(0);
        assert_eq!(task.prompt, prompt);
        let run = options.run_args(&task.prompt);
        assert_eq!(run.start.task().as_deref(), Some(&*format!("{prompt}\n")));
        assert_eq!(
            (run.start.terms.verify, run.start.terms.require),
            (vec!["--x".to_owned()], Some(Proof::Checked))
        );
        assert_eq!(run.start.limits.max_cost.map(|cost| cost.amount.0), Some(2_500_000));
        assert_eq!(run.options.words, Some(vec!["-n".to_owned(), "9".to_owned()]));
        assert_eq!(run.options.agent_cmd.as_deref(), Some("mine"));
        assert_eq!(run.recipe.act, ["go"]);
    }
}

/// A key that the type does not know would be ignored silently.
#[test]
fn every_key_that_a_file_may_have_is_accepted() {
    let unfit = || toml::Value::Table(toml::Table::new());
    let alone = |key: &str| toml::Table::from_iter([(key.to_owned(), unfit())]);
    for key in option_keys().chain(words_of(FRONT_MATTER)) {
        assert!(TaskOptions::deserialize(alone(key)).is_err(), "{key}");
    }
    for key in words_of(TOP).chain(words_of(LAND)) {
        assert!(FleetFile::deserialize(alone(key)).is_err(), "{key}");
    }
}

/// An option of `crew run` that no list here names would be refused without a reason.
#[test]
fn an_option_of_crew_run_is_accepted_or_refused_with_its_line_and_a_hint() {
    let refused_by_name = |text: &str, file: &str, line: usize, key: &str| {
        let start = format!("{file}:{line}: `{key}` is not for a task to set: ");
        text.strip_prefix(&start).is_some_and(|why| !why.is_empty())
    };
    for key in run_options().filter_map(Arg::get_long) {
        if option_keys().any(|option| option == key) {
            continue;
        }
        for (file, task, shared) in [
            ("auth.md", format!("---\nn: 3\n{key}: true\n---\nFix it."), String::new()),
            ("auth.md", format!("+++\nn = 3\n{key} = true\n+++\nFix it."), String::new()),
            ("fleet.toml", "Fix it.".to_owned(), format!("slots = 2\n[task]\n{key} = true")),
        ] {
            let why = read_files(&[("auth.md", &task)], Some(&shared)).expect_err(key);
            assert!(refused_by_name(&why, file, 3, key), "{why}");
        }
    }
    let settings = "---\nmax-turns: 3\nprotect: src\nredline: 50%\nargs: [-v]\n---\nFix it.";
    insta::assert_snapshot!(refusal_of(settings), @"
    auth.md:2: `max-turns` belongs under [loop] in a settings file, for every loop
    auth.md:3: `protect` belongs under [loop] in a settings file, for every loop
    auth.md:4: `redline` belongs under [loop] in a settings file, for every loop
    auth.md:5: `args` belongs under [loop] in a settings file, for every loop
    ");
}

#[test]
fn deep_and_long_input_is_parsed_in_bounded_time_and_memory() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n";
    for piece in ["[", "{", "- ", "a: ", "? ", "&a ", "*a ", "'", "|\n", "a:\n", "\n ", bomb] {
        let front = piece.repeat((1 << 20) / piece.len());
        for fence in ["---", "+++"] {
            let _ = read_files(&[("auth.md", &format!("{fence}\n{front}\n{fence}\ndo it"))], None);
        }
    }
}

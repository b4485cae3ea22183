//! Task files as people write them, and what they are told of their faults.

use super::folder::{self, TaskFile};
use super::front_matter::{Faults, FleetFault, split};
use super::options::{Asked, as_keys};
use super::*;

/// A task file as it is read, or all that is wrong in it, by line.
pub(super) fn read_task(name: &str, text: &str) -> Result<TaskFile, Vec<FleetFault>> {
    let mut faults = Faults { file: name.to_owned(), found: Vec::new() };
    let task = folder::read_task(name, text, &mut faults);
    faults.found.sort();
    task.filter(|_| faults.found.is_empty()).ok_or(faults.found)
}

fn task(text: &str) -> TaskFile {
    read_task("auth.md", text).unwrap_or_else(|faults| panic!("{text:?}: {faults:?}"))
}

/// The words of front matter in YAML.
fn words(yaml: &str) -> Vec<String> {
    task(&format!("---\n{yaml}\n---\ndo it\n")).options.words()
}

pub(super) fn told(faults: &[FleetFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// What is told of a task file.
fn refused(text: &str) -> String {
    told(&read_task("auth.md", text).expect_err(text))
}

#[test]
fn a_task_is_a_page_that_is_no_readme_and_not_hidden() {
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
fn front_matter_stands_between_two_fences_and_the_first_is_the_first_line() {
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
        let (entries, rest) = split(text).unwrap_or_else(|fault| panic!("{text:?}: {fault:?}"));
        assert_eq!((entries.len(), rest), (keys, body), "{text:?}");
    }
    assert_eq!(
        task("---\r\nn: 3\r\n---\r\n\r\n  do\r\n\r\nit\r\n\r\n").task.prompt,
        "  do\r\n\r\nit"
    );
}

#[test]
fn a_fence_that_is_broken_starts_nothing() {
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
    insta::assert_snapshot!(texts.map(refused).join("\n"), @r#"
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
    auth.md:2: front matter begins on the first line: remove what stands before this `---`, or write the prompt above it
    auth.md:3: front matter begins on the first line: remove what stands before this `+++`, or write the prompt above it
    auth.md:1: front matter begins on the first line: remove what stands before this `---`, or write the prompt above it
    auth.md:1: `----` is no fence: front matter stands between lines `---` or `+++`
    auth.md:1: a merge is open here: resolve it
    "#);
}

#[test]
fn a_key_is_an_option_and_its_value_what_a_person_would_type() {
    let table: [(&str, &[&str]); 21] = [
        ("max-iterations: 15", &["--max-iterations=15"]),
        ("max_iterations: 15", &["--max-iterations=15"]),
        ("n: 15", &["--max-iterations=15"]),
        ("max-cost: 2.50", &["--max-cost=2.50"]),
        ("max-cost: $2.50", &["--max-cost=$2.50"]),
        ("max-tokens: 500k", &["--max-tokens=500k"]),
        ("timeout: 1h 30m", &["--timeout=1h 30m"]),
        ("verify: cargo test auth", &["--verify=cargo test auth"]),
        ("verify: \"true\"", &["--verify=true"]),
        ("verify: --version", &["--verify=--version"]),
        ("verify: [a, 'b # c']", &["--verify=a", "--verify=b # c"]),
        ("verify:\n- a\n- b", &["--verify=a", "--verify=b"]),
        ("verify: []", &[]),
        ("context: |\n  one\n  two", &["--context=one\ntwo\n"]),
        ("no-promise: true", &["--no-promise"]),
        ("no_promise: false", &[]),
        ("prove: True\nrequire: proven", &["--prove", "--require=proven"]),
        ("fallback: codex,gemini", &["--fallback=codex,gemini"]),
        ("fallback: [codex, gemini]", &["--fallback=codex", "--fallback=gemini"]),
        ("words: [--effort, high]\nmodel: opus", &["--model=opus", "--", "--effort", "high"]),
        ("words: []", &[]),
    ];
    for (yaml, expected) in table {
        assert_eq!(words(yaml), expected, "{yaml}");
    }
}

#[test]
fn toml_says_the_same_with_its_own_marks() {
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
    let read = task(toml);
    let expected = [
        "--verify=cargo test auth",
        "--verify=a \"b\"",
        "--max-cost=2.50",
        "--max-tokens=1000",
        "--no-promise",
        "--timeout=90m",
    ];
    assert_eq!(read.options.words(), expected);
    assert_eq!(read.task.after, ["user-model".parse().unwrap()]);
    assert_eq!((read.task.priority, read.after_line), (7, Some(7)));
    assert_eq!(read.task.touches, ["src/auth/**"]);
    assert_eq!(read.task.prompt, "Add password reset.");
}

#[test]
fn a_task_that_says_nothing_about_itself_is_usual() {
    let read = task("Fix the login.");
    assert_eq!(read.task.id.to_string(), "auth");
    assert_eq!((read.task.priority, read.after_line), (5, None));
    assert_eq!(
        (read.task.after, read.task.touches, read.options),
        (vec![], vec![], Asked::default())
    );
}

#[test]
fn every_key_that_cannot_be_obeyed_is_told_with_its_line() {
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
    insta::assert_snapshot!(refused(&text), @r#"
    auth.md: there is no prompt: write what is to be done under the front matter
    auth.md:2: unknown key `verfy`: did you mean `verify`?
    auth.md:3: unknown key `frobnicate`: the keys are after, priority, touches, words, and the options that crew run --help lists
    auth.md:4: invalid value `lots` for `--max-cost <USD>`: US dollars, such as 5.00
    auth.md:5: no-promise takes true or false, not `yes please`
    auth.md:6: verify takes a text or a list of texts, not `true` (as a text it needs quotes)
    auth.md:7: model takes one text or number, not a list
    auth.md:8: invalid value `90` for `--timeout <D>`: a time with its unit, such as 90m, 12h or "1h 30m"
    auth.md:9: gate takes a text or a list of texts, not an empty value
    auth.md:10: until takes a text or a list of texts, not a table
    auth.md:11: agent takes one text or number, not an anchor (a value that begins with `&` needs quotes)
    auth.md:12: context takes a text or a list of texts, not a tag (a value that begins with `!` needs quotes)
    auth.md:14: n is given twice, also in line 13: keep one
    auth.md:15: words takes a list of words, not `--effort high`
    auth.md:16: priority takes a whole number from 0 to 9, the most urgent, not `10`
    auth.md:17: after takes the name of a task or a list such as [a, b], not `a b`
    auth.md:18: touches takes a glob (unclosed character class; missing ']'), not `a[`
    auth.md:18: touches takes a text or a list of texts, not an alias (a value that begins with `*` needs quotes)
    auth.md:18: touches takes paths from the root of the checkout, not `../x`
    auth.md:18: touches takes paths from the root of the checkout, not `/etc`
    auth.md:19: orient takes a text or a list of texts, not a list in a list
    auth.md:20: `--decide <TEXT>` needs a value: a text
    auth.md:21: no-worse takes no NUL character, not `a b`
    auth.md:22: invalid value `all` for `--permissions <KIND>`: it can be default, accept-edits, auto, bypass
    auth.md:23: verify is given twice, also in line 6: keep one, which may be a list such as [a, b]
    auth.md:24: touches is given twice, also in line 18: keep one, which may be a list such as [a, b]
    "#);
}

#[test]
fn a_prompt_that_no_lease_can_hold_is_refused_with_its_size_and_the_limit() {
    let text = |bytes| format!("---\nn: 3\n---\n{}\n", "x".repeat(bytes));
    assert_eq!(task(&text(262_144)).task.prompt.len(), 262_144);
    insta::assert_snapshot!(refused(&text(262_145)), @"auth.md: the prompt has 257 KiB, and may have 256: put some of it into another file, and name that");
}

#[test]
fn a_key_that_holds_for_all_tasks_is_sent_to_fleet_toml_and_a_list_of_names_to_brackets() {
    let keys = "setup: npm ci\nslots: 2\nbase: main\nname: x\nland: {check: a}\ntask: 3\ncheck: true\nafter: a, b";
    insta::assert_snapshot!(refused(&format!("---\n{keys}\n---\nFix the login.\n")), @"
    auth.md:2: `setup` belongs above the first table of fleet.toml
    auth.md:3: `slots` belongs above the first table of fleet.toml
    auth.md:4: `base` belongs above the first table of fleet.toml
    auth.md:5: `name` belongs above the first table of fleet.toml
    auth.md:6: `land` belongs in fleet.toml, as a line [land] with its keys below
    auth.md:7: `task` belongs in fleet.toml, as a line [task] with its keys below
    auth.md:8: `check` belongs under [land] in fleet.toml
    auth.md:9: after takes the name of a task or a list such as [a, b], not `a, b`
    ");
}

#[test]
fn options_that_only_go_together_or_alone_are_held_to_it() {
    let texts = [
        "---\nagent: codex\nagent-cmd: mine\n---\nFix the login.\n",
        "---\nno-promise: true\ncompletion-promise: DONE\n---\nFix the login.\n",
    ];
    insta::assert_snapshot!(texts.map(refused).join("\n"), @r#"
    auth.md: `--agent <NAME>` cannot be used with `--agent-cmd <CMD>`: give one of the two
    auth.md: `--no-promise` cannot be used with `--completion-promise <TEXT>`: give one of the two
    "#);
}

#[test]
fn a_way_out_that_names_options_names_the_keys_of_a_file() {
    let way_outs = [
        "install it, or name another: --agent NAME, or --agent-cmd \"COMMAND\"",
        "name other fallbacks, or none: --fallback none; or --max-cost 0 and --max-tokens 0",
        "give --verify \"your test command\", or leave --prove out",
        "give --max-iterations, --max-duration or --until",
        "use verify, or leave --land out",
    ];
    insta::assert_snapshot!(way_outs.map(as_keys).join("\n"), @r#"
    install it, or name another: agent = "NAME", or agent-cmd = "COMMAND" (under [task] in fleet.toml, or in the front matter)
    name other fallbacks, or none: fallback = "none"; or max-cost = 0 and max-tokens = 0 (under [task] in fleet.toml, or in the front matter)
    give verify = "your test command", or leave prove out (under [task] in fleet.toml, or in the front matter)
    give max-iterations, max-duration or until (under [task] in fleet.toml, or in the front matter)
    use verify, or leave --land out
    "#);
}

#[test]
fn what_the_fleet_decides_is_refused_with_the_reason() {
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
    insta::assert_snapshot!(refused(&format!("---\n{keys}---\nFix the login.\n")), @r#"
    auth.md:2: `detach` is not for a task to set: a fleet runs each task in a process of its own
    auth.md:3: `json` is not for a task to set: crew fleet status --json tells of all tasks
    auth.md:4: `verbose` is not for a task to set: crew show --log shows what the agent of a task does
    auth.md:5: `quiet` is not for a task to set: a task prints nothing to the terminal
    auth.md:6: `dry-run` is not for a task to set: crew fleet run --dry-run shows every task
    auth.md:7: `list` is not for a task to set: it starts nothing
    auth.md:8: `worktree` is not for a task to set: each task has a working tree of its own, named after it
    auth.md:9: `replace` is not for a task to set: nothing else runs in a task's working tree
    auth.md:10: `commit` is not for a task to set: the fleet commits what each iteration changed
    auth.md:11: `push` is not for a task to set: crew fleet run --push decides it for all tasks
    auth.md:12: `rebase` is not for a task to set: tasks are rebased onto the fleet's base, which stands in fleet.toml
    auth.md:13: `prompt-file` is not for a task to set: the text of the task's own file is the prompt
    auth.md:14: `no-project` is not for a task to set: the fleet decides for all tasks which settings count
    "#);
}

#[test]
fn a_file_without_a_prompt_or_with_a_bad_name_is_refused() {
    let files = [
        ("auth.md", ""),
        ("auth.md", "---\nn: 3\n---\n \n"),
        ("auth.md", "a\0b"),
        ("my task.md", "do it"),
        ("-x.md", "do it"),
    ];
    let all = files.map(|(name, text)| told(&read_task(name, text).expect_err(name)));
    insta::assert_snapshot!(all.join("\n"), @r#"
    auth.md: there is no prompt: write what is to be done under the front matter
    auth.md: there is no prompt: write what is to be done under the front matter
    auth.md: the prompt holds a NUL character: is it a text?
    my task.md: "my task" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` may stand in it; rename the file
    -x.md: "-x" cannot be a part of a branch: it begins with `.` or `-`; rename the file
    "#);
}

#[test]
fn a_command_of_several_lines_is_read_alike_however_its_file_ends_a_line() {
    let unix = "+++\nverify = \"\"\"\ntrue\ntest -f x\n\"\"\"\n+++\nDo it.\n";
    let told = [unix.to_owned(), unix.replace('\n', "\r\n")].map(|text| task(&text).options);
    assert_eq!(told[0], told[1]);
    assert!(format!("{told:?}").contains("true\\ntest -f x"), "{told:?}");
}

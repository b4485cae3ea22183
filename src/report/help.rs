//! The help pages: `crew --help`, `/crew:help`, `/crew:loop` without a task, and the message if
//! there is no loop. The help of a single subcommand is generated from its options.

use super::words;
use engine::failure::Failure;
use minijinja::context;
use readers::parse::settings::options::KEYS;

/// The text of `crew --help`. A test checks that it lists each subcommand once.
pub const TERMINAL: &str = include_str!("help/terminal.txt");

/// The JSON schema of a settings file. `schema_tests.rs` writes this schema and that of a fleet's
/// files.
pub const SETTINGS_SCHEMA: &str = include_str!("../../docs/reference/crew.schema.json");
/// The JSON schema of fleet.toml, and of the front matter of a task.
pub const FLEET_SCHEMA: &str = include_str!("../../docs/reference/fleet.schema.json");
/// The address at which an editor finds the schema of a settings file.
const SETTINGS_SCHEMA_ADDRESS: &str =
    concat!(env!("CARGO_PKG_REPOSITORY"), "/raw/main/docs/reference/crew.schema.json");

/// A hint on how to start a loop, for a terminal.
pub const START_ONE: &str = "crew run \"fix the tests\" --verify \"cargo test\" starts one, \
                             crew status --all lists those elsewhere";
/// The text for a machine without loops.
pub const NO_LOOPS: &str = "no loops on this machine: crew run \"fix the tests\" --verify \"cargo test\" \
                            starts one,\ncrew demo shows one\n";

/// The output of `crew status` if there is no loop.
pub fn no_loop_here() -> String {
    format!("no loop here: {}\n", START_ONE.replace("starts one, ", "starts one,\n"))
}

/// The message in a client that there is no loop; `start` is its command that starts one.
pub fn no_loop_in_a_session(start: &str) -> String {
    let hint = format!("{start} \"fix the tests\" --verify \"cargo test\" starts one");
    Failure::new("no loop belongs to this session or folder", hint).with_hint()
}

/// The page of `/crew:help`; `options` are those that people use, one per line.
pub fn client_page(options: &str) -> String {
    format!("{HEAD}\n{options}\n{EXAMPLE}")
}

/// The help on how to start, watch and end a loop.
const HEAD: &str = include_str!("help/client.txt");

const EXAMPLE: &str = "\
`crew run --help --all` in a terminal lists all options, crew config the settings here.

Example:
  /crew:loop \"Build the todo API\" --max-iterations 15 --verify \"cargo test\"
";

/// The project's settings file as `crew init` writes it. Most keys are comments with a default or
/// an example. `checks` are active, `others` are comments; each is a command and the file that
/// named it.
pub fn project_settings(checks: &[(&str, &str)], others: &[(&str, &str)]) -> String {
    let keys =
        KEYS.iter().map(|key| (key.split_name().0, key.is_of_processes(), key.project_file_line()));
    let keys: Vec<_> = keys.collect();
    let schema = SETTINGS_SCHEMA_ADDRESS;
    words::render_file("project.toml.j2", &context! { schema, keys, checks, others })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn a_new_project_file_has_the_checks_found_and_explains_the_other_keys() {
        let text = project_settings(&[("just test", "justfile")], &[("cargo test", "Cargo.toml")]);
        let (text, _) = text.split_once("\n# Your own agent").unwrap();
        let (_, text) = text.split_once(".schema.json\n").unwrap();
        assert_snapshot!(text, @r#"
        # What crew's loops in this project start with. What you type with /crew:loop overrides this file; this file
        # wins over your own settings file. `crew config` names it, and every value with its source.
        # A changed command, a limit above your own, a promise that differs from yours, or a key that lets an agent do more or
        # proves less needs `crew trust` again.

        [loop]
        # max-iterations = 10            # iterations after which a loop ends; 0 = no limit
        # failure-threshold = 3          # failed iterations in a row after which it is aborted; 0 = off
        # stall = 5                      # iterations in a row without progress after which it is stalled; 0 = off
        # max-duration = "12h"           # time after which it ends, not counting sleep; 0 = no limit
        # max-cost = 0                   # US dollars after which it ends, such as 5.00; 0 = no limit
        # max-tokens = 0                 # tokens after which it ends, such as "500k"; 0 = no limit
        # completion-promise = "COMPLETE"  # what the agent says when it is done
        # require = "checked"            # a loop completes only if a check that had failed now passes
        # test-changes = "report"        # a changed test that failed at the start only lowers the proof
        # questions = "defer"            # the agent decides what it would ask; "ask": it waits for you
        # notices = false                # no notices on your terminal
        # prove = "proven"               # before a loop completes, run the checks without its work, to see whether a test fails
        # prove-timeout = "15m"          # the time limit of what runs in the scratch folder; 0 = no limit
        # setup = "npm ci"               # prepares the scratch folder where checks run on another state of the tree
        # tests = ["checks/**"]          # paths that are tests, in addition to those known by their names
        # may-change = ["tests/golden/**"]  # tests and check settings that are the task, and so count as work
        # protect = ["tests/**"]         # while the agent has changed one, no claim is believed; ignored files do not count

        # For `crew run`, which starts a new agent process for every iteration:
        # timeout = "1h"                 # the longest an iteration may take; 0 = no limit
        # idle-timeout = "15m"           # the longest the agent may be silent while no tool call is open; 0 = no limit
        # delay = "30s"                  # the wait between two iterations
        # max-turns = 0                  # the maximum number of the agent's turns in one iteration; 0 = no limit
        # token-budget = "100k"          # tokens above which a prompt causes a warning; 0 = no limit
        # redline = "80%"                # how full a context may be before a handoff page follows it; 0 = never
        # agent = "claude"
        # fallback = ["codex"]           # who works while the agent's account is at a limit
        # model = "opus"                 # the agent's model
        # account = "work"               # the account whose limits these loops share
        # args = ["--effort", "high"]
        # permissions = "accept-edits"   # or default, auto, bypass
        # commit = true                  # commit after each iteration what it changed
        # push = true                    # push after each iteration
        # rebase = "main"                # before an iteration, rebase onto this branch if it has moved
        # awake = false                  # let this machine sleep while an agent works

        [wait]
        # max = "12h"                    # the longest wait for a rate limit or an outage; 0 = no limit

        # Commands crew runs itself; the exit status alone passes or fails them.
        #   role = "verify"   must pass before a claim is believed
        #   role = "gate"     the same, and also runs after every iteration
        #   role = "until"    ends the loop when it passes; no claim needed
        # Further keys: timeout = "10m", success-exit-code = 0, no-worse = true (a verify that may fail in tests that
        # failed before the loop). They count under their own header only: uncomment [[check]], too.
        # Shorter, under [loop]: verify = ["cargo test"]; gate and until likewise

        # Found in justfile.
        [[check]]
        role = "verify"
        run = "just test"

        # Found in Cargo.toml, too.
        # [[check]]
        # role = "verify"
        # run = "cargo test"
        "#);
        assert!(project_settings(&[], &[]).contains("# run = \"your test command\"\n"));
    }

    #[test]
    fn the_name_of_a_file_cannot_leave_its_comment() {
        let name = "a\n[[check]]\nrun = \"touch x\"\n#.csproj";
        let text = project_settings(&[("dotnet test", name)], &[("make test", name)]);
        assert_eq!(text.lines().filter(|line| *line == "[[check]]").count(), 1, "{text}");
        assert!(!text.lines().any(|line| line.starts_with("run = \"touch")), "{text}");
    }
}

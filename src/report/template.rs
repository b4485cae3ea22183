//! The project's settings file as `crew init` writes it: the checks that were found, and every other key
//! as a comment with its default, so that the file explains itself.

use std::fmt::Write as _;

use crate::engine::settings::Limit;

/// The words of a new project file. `checks` run; `others` are left as comments. Each is a command and
/// the file that named it.
pub fn project(checks: &[(&str, &str)], others: &[(&str, &str)]) -> String {
    let mut text = HEAD.to_owned();
    limits(
        &mut text,
        &[
            (Limit::MaxIterations, "iterations after which a loop ends"),
            (Limit::MaxDuration, "time awake after which it ends"),
            (Limit::MaxCost, "US dollars after which it ends, such as 5.00"),
            (Limit::MaxTokens, "tokens after which it ends, such as \"500k\""),
            (Limit::FailureThreshold, "failed iterations in a row that abort it"),
            (Limit::Stall, "iterations in a row without progress that stall it"),
        ],
    );
    text.push_str(TERMS);
    text.push_str(PROCESSES);
    limits(
        &mut text,
        &[
            (Limit::Timeout, "the longest an iteration may take"),
            (Limit::IdleTimeout, "the longest the agent may be silent without a tool at work"),
            (Limit::MaxTurns, "the agent's turns in one iteration"),
            (Limit::TokenBudget, "tokens past which a prompt is warned of"),
        ],
    );
    text.push_str(STEPS);
    text.push_str("\n[wait]\n");
    limits(&mut text, &[(Limit::MaxWait, "the longest wait for a rate limit or an outage")]);
    text.push_str(CHECKS);
    if checks.is_empty() {
        text.push_str("\n# No test command was found here.\n");
        text.push_str(&commented(&check("your test command")));
    }
    for (run, because) in checks {
        let _ = write!(text, "\n# Found in {because}.\n{}", check(run));
    }
    for (run, because) in others {
        let _ = write!(text, "\n# Found in {because}, too.\n{}", commented(&check(run)));
    }
    text.push_str(REST);
    text
}

/// A comment for each limit, with its built-in value.
fn limits(text: &mut String, limits: &[(Limit, &str)]) {
    for (limit, what) in limits {
        let (_, key) = limit.key();
        let setting = format!("{key} = {}", limit.written(limit.built_in()));
        let _ = writeln!(text, "# {setting:<30} # {what}; 0 = no limit");
    }
}

const HEAD: &str = "\
# What crew's loops in this project start with. Options typed with /crew:loop go before it; it goes before
# your own ~/.config/crew/config.toml. `crew config` shows what is in force and where it came from.
# A changed command, a limit above your own, or another promise than yours needs `crew trust` again.

[loop]
";

const TERMS: &str = "\
# completion_promise = \"COMPLETE\"  # what the agent says when it is done
# protect = [\"tests/**\"]         # the agent must not change these, ignored files aside: else no claim is believed
";

const PROCESSES: &str = "
# For `crew run`, which starts the agent anew for every iteration:
";

const STEPS: &str = "\
# delay = \"30s\"                  # between two iterations
# commit = true                  # commit what an iteration changed
# push = true                    # push after an iteration
# rebase = \"main\"                # rebase onto this branch before an iteration, when it moved
# awake = false                  # let this machine sleep while an agent works
";

const CHECKS: &str = "
# Commands crew runs itself; the exit status alone passes or fails them.
#   role = \"verify\"   must pass before the agent's word is believed
#   role = \"gate\"     the same, and runs after every iteration
#   role = \"until\"    ends the loop when it passes, no word needed
# Further keys: name, timeout = \"10m\", success_exit_code = 0
# In short, under [loop]: verify = [\"cargo test\"], and the same for gate and until
";

const REST: &str = "
# The agent of `crew run`.
# [agent]
# name = \"claude\"
# args = [\"--model\", \"opus\"]
# permissions = \"accept-edits\"    # or default, auto, bypass

# An agent of your own: like one that crew knows, or with a command of its own.
# [agents.mine]
# command = [\"my-agent\", \"--headless\"]
# prompt = \"stdin\"               # or argument
# output = \"text\"                # or claude, codex

# A procedure: `crew run nightly`. Pieces of the prompt are words, files beside this one, or crew's own
# (builtin:NAME); terms of [loop] that stand here hold for it alone.
# [procedures.nightly]
# description = \"Mend what broke today\"
# observe = [\"prompts/look.md\", \"Read the newest log under logs/\"]
# act = \"Mend one thing and run the tests\"
# max_iterations = 5

# Commands at the moments of a run; a failing iteration_start skips the iteration, a failing iteration_end
# makes it a failure.
# [on]
# finish = { run = \"notify-send crew \\\"$CREW_OUTCOME\\\"\", timeout = \"60s\" }
";

fn check(run: &str) -> String {
    format!("[[check]]\nrole = \"verify\"\nrun = \"{run}\"\n")
}

fn commented(text: &str) -> String {
    format!("# {}\n", text.trim_end().replace('\n', "\n# "))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn a_new_file_holds_what_was_found_and_explains_the_rest() {
        let text = project(&[("just test", "justfile")], &[("cargo test", "Cargo.toml")]);
        let (text, rest) = text.split_at(text.len() - REST.len());
        assert_eq!(rest, REST);
        assert_snapshot!(text, @r#"
        # What crew's loops in this project start with. Options typed with /crew:loop go before it; it goes before
        # your own ~/.config/crew/config.toml. `crew config` shows what is in force and where it came from.
        # A changed command, a limit above your own, or another promise than yours needs `crew trust` again.

        [loop]
        # max_iterations = 10            # iterations after which a loop ends; 0 = no limit
        # max_duration = "12h"           # time awake after which it ends; 0 = no limit
        # max_cost = 0                   # US dollars after which it ends, such as 5.00; 0 = no limit
        # max_tokens = 0                 # tokens after which it ends, such as "500k"; 0 = no limit
        # failure_threshold = 3          # failed iterations in a row that abort it; 0 = no limit
        # stall = 5                      # iterations in a row without progress that stall it; 0 = no limit
        # completion_promise = "COMPLETE"  # what the agent says when it is done
        # protect = ["tests/**"]         # the agent must not change these, ignored files aside: else no claim is believed

        # For `crew run`, which starts the agent anew for every iteration:
        # timeout = "1h"                 # the longest an iteration may take; 0 = no limit
        # idle_timeout = "15m"           # the longest the agent may be silent without a tool at work; 0 = no limit
        # max_turns = 0                  # the agent's turns in one iteration; 0 = no limit
        # token_budget = "100k"          # tokens past which a prompt is warned of; 0 = no limit
        # delay = "30s"                  # between two iterations
        # commit = true                  # commit what an iteration changed
        # push = true                    # push after an iteration
        # rebase = "main"                # rebase onto this branch before an iteration, when it moved
        # awake = false                  # let this machine sleep while an agent works

        [wait]
        # max = "12h"                    # the longest wait for a rate limit or an outage; 0 = no limit

        # Commands crew runs itself; the exit status alone passes or fails them.
        #   role = "verify"   must pass before the agent's word is believed
        #   role = "gate"     the same, and runs after every iteration
        #   role = "until"    ends the loop when it passes, no word needed
        # Further keys: name, timeout = "10m", success_exit_code = 0
        # In short, under [loop]: verify = ["cargo test"], and the same for gate and until

        # Found in justfile.
        [[check]]
        role = "verify"
        run = "just test"

        # Found in Cargo.toml, too.
        # [[check]]
        # role = "verify"
        # run = "cargo test"
        "#);
        assert!(project(&[], &[]).contains("# run = \"your test command\"\n"));
    }
}

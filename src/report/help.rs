//! The page of `/crew:help`, and of `/crew:loop` without a task.

/// What a person needs to start, watch and end a loop.
pub const LOOP: &str = r#"crew keeps the agent working until the job is proved done.

  /crew:loop TASK [options]       start a loop in this session
  /crew:status                    how it stands
  /crew:pause                     pause after the current iteration
  /crew:resume [LOOP] [limits]    go on in this session; -n +10 allows ten iterations more
  /crew:cancel-loop [reason]      end it, with a handoff page
  /crew:handoff [type] TEXT       write a page for the next worker
  /crew:help                      this page

While the agent works, pause, cancel-loop, status and handoff wait for the end of its iteration, the others for the end
of its turn. At once: `crew pause`, `crew cancel`, `crew status`, as a message (Claude Code 2.1.330) or in any terminal:
  crew status, crew pause, crew cancel, crew tell "a word for the agent", crew set -n +10
When something does not work: crew doctor names what keeps loops from running, with the fix.
  crew init, crew config, crew trust: this project's settings

TASK is one quoted text or plain words; options stand before or after it.

  -n, --max-iterations N          at most N iterations (10; 0 = no limit)
      --max-duration D            at most D awake: 90m, 12h (12h; 0 = no limit)
      --max-cost USD              at most that much, by the client's prices: 5, 2.50 (0 = no limit)
      --max-tokens N              at most N tokens of every kind: 500k, 2M (0 = no limit)
      --verify CMD                must pass before a claim is believed; may be repeated
                                  (auto = the test command found here)
      --gate CMD                  the same, and runs after every iteration
      --until CMD                 ends the loop when it passes; no claim needed
      --completion-promise TEXT   what the agent must say (COMPLETE, or the one tag in the task)
      --no-promise                no claim ends the loop
      --require checked           only a check that had failed and now passes completes it
      --failure-threshold N       failed iterations in a row that abort it (3; 0 = off)
      --stall N                   iterations without progress that stall it (5; 0 = off)
      --prompt-file FILE          the task is what FILE holds
      --replace                   end the loop that runs here first
      --no-project                leave .claude/crew.toml aside

Example:
  /crew:loop "Build the todo API" --max-iterations 15 --verify "cargo test"
"#;

/// The page of `crew run`.
pub const RUN: &str = r#"crew run keeps an agent working, in a fresh process each iteration, until the job is proved done.

  crew run TASK [options]         TASK has a blank in it: crew run "fix the failing tests"
  crew run PROCEDURE [options]    build, plan, fix, audit, bootstrap, or one of your settings
  crew run --list [PROCEDURE]     the procedures, or what one of them sends
  crew resume [LOOP] [options]    go on with a loop: crew resume -n +10

When it ends:
  -n, --max-iterations N          at most N iterations (10, or the procedure's; 0 = no limit)
      --max-duration D            at most D awake: 90m, 12h (12h; 0 = no limit)
      --max-cost USD              at most that much: 5, 2.50 (0 = no limit)
      --max-tokens N              at most N tokens of every kind: 500k, 2M (0 = no limit)
      --verify CMD                must pass before a claim is believed; may be repeated
                                  (auto = the test command found here)
      --gate CMD                  the same, and runs after every iteration
      --until CMD                 ends the loop when it passes; no claim needed
      --completion-promise TEXT   what the agent must say (COMPLETE, or the one tag in the task)
      --no-promise                no claim ends the loop
      --require checked           only a check that had failed and now passes completes it
      --failure-threshold N       failed iterations in a row that abort it (3; 0 = off)
      --stall N                   iterations without progress that stall it (5; 0 = off)

What is sent:
      --prompt-file FILE          the task is what FILE holds
  -c, --context TEXT              put before the task; may be repeated
      --observe, --orient, --decide, --act TEXT
                                  a phase of the prompt, instead of the procedure's; may be repeated
                                  (TEXT is taken as it is; the name of a file is that file, read anew each
                                  time, a template if it ends in .hbs; builtin:NAME is one of crew's own)
      --dry-run                   show the prompt, to whom it would go and how big it is; write nothing

To whom:
      --agent NAME                claude (default), codex, gemini, opencode, kiro-cli, cursor-agent, copilot
      --agent-cmd CMD             any command that reads a prompt on standard input
      --model MODEL               the agent's model (claude, codex)
      -- WORDS                    the agent's own options, as the last words
      --permissions KIND          default, accept-edits (default; claude may run the checks too), auto, bypass
      --max-turns N               the agent's turns in one iteration (0 = no limit)
      --timeout D                 one iteration (60m; 0 = none)
      --idle-timeout D            nothing printed while no tool call is open (15m; 0 = none)
      --delay D                   between two iterations (0)

Around it:
      --commit                    commit what an iteration changed; what you had not committed before
                                  stays out until the agent changes it (--commit=all takes it in)
      --push                      push after an iteration
      --rebase BRANCH             rebase onto BRANCH before an iteration, when it moved
      --worktree NAME             work in <repo>.worktrees/NAME on branch NAME
      --no-awake                  let this machine sleep while an agent works
      --replace                   end the loop that runs here first
      --no-project                leave .claude/crew.toml aside
      --detach                    run on in a crew of its own, whatever becomes of this terminal
      --json                      events on standard output, people's lines on standard error
  -v, --verbose                   the agent's own output, too
  -q, --quiet                     only what went wrong, and an end other than completed

Exit codes: 0 completed · 1 error · 2 usage · 10 exhausted · 11 aborted · 12 stalled · 13 blocked ·
14 cancelled · 130, 143 or another of a signal interrupted; 130 paused. Ctrl-C ends cleanly, a second one at once.

Examples:
  crew run "fix the failing tests" -n 10 --verify "cargo test"
  crew run build --agent claude --max-duration 4h --max-cost 20 --detach
  crew run build --dry-run
"#;

/// The page of `crew resume`.
pub const RESUME: &str = r#"crew resume goes on with a loop in fresh processes: the same task, checks, counters and evidence.

  crew resume [LOOP] [limits] [options]

LOOP is an id, the beginning of one, or a procedure; without it the loop of this working tree. A loop that a
session had goes on here too; /crew:resume takes one back. A limit that is spent must be raised.

  -n, --max-iterations N|+N, --max-duration D|+D, --max-cost USD|+USD, --max-tokens N|+N,
  --failure-threshold N, --stall N
                                  +N adds to the loop's own limit, or to what is done where it has none
  --tell TEXT                     a word for the agent: the answer to its BLOCKED
  --agent, --agent-cmd, --model, --permissions, --max-turns, --timeout, --idle-timeout, --delay, --commit, --push,
  --rebase, --no-awake, --no-project, --detach, --json, -v, -q, -- WORDS
                                  as in crew run
  --now                           a run that waits tries at once, where it runs; so does Enter at its terminal

Examples:
  crew resume -n +10
  crew resume k3v9 --max-cost +5 --detach
  crew resume k3v9 --tell "the password is in .env"
"#;

//! The page of `/crew:help`, and of `/crew:loop` without a task.

/// What a person needs to start, watch and end a loop.
pub const LOOP: &str = r#"crew keeps the agent working until the job is proved done.

  /crew:loop TASK [options]       start a loop in this session
  /crew:status                    how it stands
  /crew:pause                     let the running iteration end, begin no other
  /crew:resume [LOOP] [limits]    go on in this session; -n +10 allows ten iterations more
  /crew:cancel-loop [reason]      end it, with a handoff page
  /crew:handoff [type] TEXT       write a page for the next worker
  /crew:help                      this page

While the agent works, type `crew pause`, `crew cancel` or `crew status` as a message, or use any terminal:
  crew status, crew pause, crew cancel, crew tell "a word for the agent", crew set -n +10
When something does not work: crew doctor names what keeps loops from running, with the fix.
  crew init, crew config, crew trust: this project's settings

TASK is one quoted text or plain words; options stand before or after it.

  -n, --max-iterations N          at most N iterations (10; 0 = no limit)
      --max-duration D            at most D awake: 90m, 12h (12h; 0 = no limit)
      --max-cost USD              at most that much, by the client's prices: 5, 2.50 (no limit)
      --max-tokens N              at most N tokens of every kind: 500k, 2M (no limit)
      --verify CMD                must pass before a claim is believed; may be repeated
                                  (auto = the test command found here)
      --gate CMD                  the same, and runs after every iteration
      --until CMD                 ends the loop when it passes; no claim needed
      --completion-promise TEXT   what the agent must say (COMPLETE, or the one tag in the task)
      --no-promise                no claim ends the loop
      --failure-threshold N       failed iterations in a row that abort it (3; 0 = off)
      --stall N                   iterations without progress that stall it (5; 0 = off)
      --prompt-file FILE          the task is what FILE holds
      --replace                   end the loop that runs here first
      --no-project                leave .claude/crew.toml aside

Example:
  /crew:loop "Build the todo API" --max-iterations 15 --verify "cargo test"
"#;

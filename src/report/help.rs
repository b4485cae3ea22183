//! The page of `/crew:help`, and of `/crew:loop` without a task.

/// The page; `options` are the options of a loop, one per line.
pub fn page(options: &str) -> String {
    format!("{HEAD}\n{options}\n{EXAMPLE}")
}

/// What a person needs to start, watch and end a loop.
const HEAD: &str = r#"crew keeps the agent working until the job is proved done.

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
"#;

const EXAMPLE: &str = "\
Example:
  /crew:loop \"Build the todo API\" --max-iterations 15 --verify \"cargo test\"
";

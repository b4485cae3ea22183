//! The pages of help: `crew --help`, `/crew:help` and `/crew:loop` without a task, and what is said
//! where there is no loop. The help of a single verb is made from its options.

/// `crew --help`. A test holds it against the verbs: each stands here once.
pub const TERMINAL: &str = r#"crew keeps a coding agent working until the job is proved done.

  crew run "fix the tests" --verify "cargo test"     a fresh process each time
  /crew:loop "fix the tests" --verify "cargo test"   the session in front of you

Start
  run        work on a task, or a procedure: build, plan, fix, audit, bootstrap
  resume     continue a loop: crew resume -n +5
  fleet      work on a folder of tasks, many at once
Look
  status     how a loop stands, or how it ended; --all lists every loop
  watch      every loop on this machine, live
  show       the story of a loop; --log -f, --html FILE
  diff       what it changed: crew diff 3..4
  history    the loops that ended here
Steer
  pause      stop after this iteration; --now at once
  cancel     end it
  tell       send the agent a message with its next prompt
  set        change a limit: crew set -n +5
  back       restore the tree as it was after an iteration
  prove      run the checks without the work, to see whether they fail
  handoff    write a page for the next worker
Set up
  install    put crew into Claude Code; uninstall undoes it
  doctor     what keeps loops from running, with a fix for each
  init       this project's settings, with the checks found here
  config     every setting, and where it came from
  trust      allow this project's settings to run their commands
  clean      remove the records of loops that ended long ago
  demo       watch a loop in a scratch repository, no account needed

LOOP: the start of a loop's id; if absent, the loop here or the only live one.
crew VERB --help says more. Also: completions, man, --version.
"#;

/// How to start a loop, for a terminal: a hint.
pub const START_ONE: &str = "crew run \"fix the tests\" --verify \"cargo test\" starts one, \
                             crew status --all lists those elsewhere";
/// What is said of a machine without loops.
pub const NO_LOOPS: &str = "no loops on this machine: crew run \"fix the tests\" --verify \"cargo test\" \
                            starts one,\ncrew demo shows one\n";

/// What `crew status` says where there is no loop.
pub fn no_loop_here() -> String {
    format!("no loop here: {}\n", START_ONE.replace("starts one, ", "starts one,\n"))
}

/// The same in a client, whose command for a start this is.
pub fn no_loop_in_a_session(start: &str) -> String {
    format!(
        "no loop belongs to this session or folder\n\
         hint: {start} \"fix the tests\" --verify \"cargo test\" starts one"
    )
}

/// The page; `options` are the options of a loop, one per line.
pub fn page(options: &str) -> String {
    format!("{HEAD}\n{options}\n{EXAMPLE}")
}

/// What a person needs to start, watch and end a loop.
const HEAD: &str = r#"crew keeps the agent working until the job is proved done.

  /crew:loop TASK [options]       start a loop in this session
  /crew:status                    show its status
  /crew:pause                     pause after the current iteration
  /crew:resume [LOOP] [limits]    resume in this session; -n +10 allows ten more iterations, --tell "TEXT" answers the agent
  /crew:cancel-loop [reason]      end it, with a handoff page
  /crew:handoff [type] TEXT       write a page for the next worker
  /crew:help                      this page

While the agent works, pause, cancel-loop, status and handoff wait for the end of its iteration, the others for the end
of its turn. At once, each also with a loop's id: `crew pause`, `crew cancel`, `crew status`, as a message (Claude Code
2.1.330) or in any terminal:
  crew status, crew pause, crew cancel, crew tell "a message to the agent", crew set -n +10
When something does not work, crew doctor says what keeps loops from running, each with its fix.
  crew init, crew config, crew trust: this project's settings

TASK is one quoted text or plain words; options stand before or after it.
"#;

const EXAMPLE: &str = "\
Example:
  /crew:loop \"Build the todo API\" --max-iterations 15 --verify \"cargo test\"
";

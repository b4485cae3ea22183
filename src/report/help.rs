//! The pages of help: `crew --help`, `/crew:help` and `/crew:loop` without a task, and what is said
//! where there is no loop. The help of a single verb is made from its options.

/// `crew --help`. A test holds it against the verbs: each stands here once.
pub const TERMINAL: &str = include_str!("help/terminal.txt");

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

/// The page; `options` are those that people use, one per line.
pub fn page(options: &str) -> String {
    format!("{HEAD}\n{options}\n{EXAMPLE}")
}

/// What a person needs to start, watch and end a loop.
const HEAD: &str = include_str!("help/client.txt");

const EXAMPLE: &str = "\
`crew run --help --all` in a terminal lists all options, crew config the settings here.

Example:
  /crew:loop \"Build the todo API\" --max-iterations 15 --verify \"cargo test\"
";

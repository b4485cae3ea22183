//! The lists of loops in a terminal: no line is wrapped, however narrow it is.

use crate::client::{Terminal, in_a_terminal};
use crate::sandbox::{DEADLINE, Sandbox, crew};
use crate::spawned::Running;

const TASK: &str =
    "割引を注文の行に分ける: add password reset by mail, a one-time token, valid for 30 minutes";

/// Runs a loop to its limit in a folder below the home, on a branch of its own.
fn run_in(sandbox: &Sandbox, folder: &str, branch: &str, task: &str) {
    let path = sandbox.home().join(folder);
    std::fs::create_dir_all(&path).unwrap();
    let within = |mut command: std::process::Command, arguments: &[&str]| {
        command.args(arguments).current_dir(&path);
        Running::start(command, None).wait(DEADLINE)
    };
    let branch = format!("--initial-branch={branch}");
    within(sandbox.command("git"), &["init", "--quiet", &branch]).success();
    let commit = ["commit", "--quiet", "--allow-empty", "-m", "Begin"];
    within(sandbox.command("git"), &commit).success();
    let run = ["run", task, "-n", "1", "--agent-cmd", "true"];
    assert_eq!(within(sandbox.command(crew()), &run).code(), 10);
}

#[test]
fn a_list_has_one_line_per_loop_in_a_terminal_of_any_width() {
    in_a_terminal(|| {
        let sandbox = Sandbox::new();
        run_in(&sandbox, "w/api", "feature/reset", TASK);
        run_in(&sandbox, "w/a/folder/far/below/the/home", "main", "Fix it");
        for columns in [40, 80, 200] {
            for list in ["status --all", "history --all"] {
                let mut shell = sandbox.command("sh");
                let show = format!(
                    "read go; '{}' {list} > piped; '{0}' {list}; read end",
                    crew().display()
                );
                shell.args(["-c", &show]).env("TERM", "xterm-256color");
                let terminal = Terminal::start(&sandbox, &shell);
                terminal.resize(columns, 12);
                terminal.key("Enter");
                terminal.wait_for_text("exhausted");
                let screen = terminal.screen();
                let loops = screen.lines().take_while(|line| !line.starts_with("2 loops"));
                let loops = loops.filter(|line| !line.trim().is_empty()).count();
                assert_eq!(loops, 2, "{columns}:\n{screen}");
                assert_eq!(
                    screen.contains("~/w/api (feature/reset)"),
                    columns > 40,
                    "{columns}:\n{screen}"
                );
                assert_eq!(screen.contains("30 minutes"), columns == 200, "{columns}:\n{screen}");
                let piped = std::fs::read_to_string(sandbox.file("piped")).unwrap();
                assert!(piped.contains("30 minutes\n"), "{piped}");
            }
        }
    });
}

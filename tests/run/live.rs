//! The live line of a run in a terminal: one line, whatever is printed and however the window
//! changes.

use super::{HANG, World};
use crate::client::{Terminal, in_a_terminal};
use crate::sandbox::crew;

#[test]
fn the_live_line_stays_one_line_when_the_window_becomes_narrower() {
    in_a_terminal(|| {
        let world = World::new(&[HANG]);
        let mut run = world.sandbox.command(crew());
        run.args(["run", "Build the whole of it", "-n", "3", "--gate", "true"]);
        run.env("TERM", "xterm-256color").env_remove("CI");
        let terminal = Terminal::start_in_shell(&world.sandbox, &run);
        terminal.wait_for_text("iteration 1/3");
        terminal.wait_for_text("Thinking.");
        // The line, and the end of it that 16 columns wrap.
        let of_the_line = |row: &&str| row.contains(" 00:0") || row.trim_end() == "tion 1/3";
        let rows = |text: &str| text.lines().filter(of_the_line).count();
        for columns in [24, 60, 16, 120] {
            terminal.resize(columns, 12);
            terminal.wait_for_screen("one live line", |screen| rows(screen) == 1);
        }
        let all = terminal.scrollback();
        assert_eq!(rows(&all), 1, "copies of the live line stayed behind:\n{all}");
        terminal.key("C-c");
        terminal.wait_for_screen("no live line", |screen| !screen.contains(" 00:0"));
        terminal.wait_for_text("interrupted");
    });
}

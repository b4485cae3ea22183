//! The live line of a run in a terminal: one line, whatever is printed and however the window
//! changes.

use super::{HANG, World};
use crate::client::{Terminal, in_a_terminal};
use crate::sandbox::crew;

#[test]
fn the_live_line_stays_one_line_when_the_window_narrows() {
    in_a_terminal(|| {
        let world = World::new(&[HANG]);
        let mut run = world.sandbox.command(crew());
        run.args(["run", "Build the whole of it", "-n", "3", "--gate", "true"]);
        run.env("TERM", "xterm-256color").env_remove("CI");
        let terminal = Terminal::start_in_shell(&world.sandbox, &run);
        terminal.wait_for_text("iteration 1/3");
        terminal.wait_for_text("Thinking.");
        // Tmux passes on a new size up to 250 ms later, and until then nobody can draw for it.
        for columns in [24, 60, 16, 120] {
            let before = live_lines(&terminal.screen());
            terminal.resize(columns, 12);
            terminal.wait_for_screen("one live line, a second later", |screen| {
                let now = live_lines(screen);
                now.len() == 1 && now != before
            });
        }
        let all = terminal.scrollback();
        assert_eq!(live_lines(&all).len(), 1, "copies of the live line stayed behind:\n{all}");
        assert_eq!(
            all.matches("Thinking.").count(),
            1,
            "copies of the block stayed behind:\n{all}"
        );
        terminal.key("C-c");
        terminal.wait_for_screen("no live line", |screen| live_lines(screen).is_empty());
        terminal.wait_for_text("interrupted");
    });
}

#[test]
fn an_agent_that_prints_tabs_leaves_no_copies_of_its_lines() {
    in_a_terminal(|| {
        // As wide as the terminal only if a tab counts for what it moves by.
        let tabs = format!("printf 'Tabs{}end\\n'", "\\t".repeat(20));
        let world = World::new(&[&format!("{tabs}; {HANG}")]);
        let mut run = world.sandbox.command(crew());
        run.args(["run", "Build the whole of it", "-n", "3"]);
        run.env("TERM", "xterm-256color").env_remove("CI");
        let terminal = Terminal::start_in_shell(&world.sandbox, &run);
        terminal.wait_for_text("Thinking.");
        terminal.wait_for_text("00:00:02");
        assert_eq!(terminal.scrollback().matches("Tabs").count(), 1, "{}", terminal.scrollback());
        terminal.key("C-c");
        terminal.wait_for_text("interrupted");
    });
}

/// The time in each live line of a screen.
fn live_lines(screen: &str) -> Vec<String> {
    // The page at the end tells the time of day, which shortly after midnight looks like that.
    let lines = screen.lines().filter(|line| !line.starts_with("  time "));
    let times = lines.filter_map(|line| line.split_once(" 00:0"));
    times.map(|(_, rest)| rest.chars().take(4).collect()).collect()
}

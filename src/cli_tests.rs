use clap::CommandFactory;

use super::*;

#[test]
fn the_page_of_help_names_every_verb_once_and_fits_a_terminal() {
    let command = Cli::command();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut verbs: Vec<&str> = verbs.map(clap::Command::get_name).collect();
    let line = |line: &'static str| match line.split_once("Also: ") {
        Some((_, also)) => also.split(", ").filter(|word| !word.starts_with('-')).collect(),
        None => line.strip_prefix("  ").and_then(|it| it.split(' ').next()).into_iter().collect(),
    };
    let named = help::TERMINAL
        .lines()
        .skip_while(|line| *line != "Start")
        .flat_map(|it| -> Vec<_> { line(it) });
    let mut named: Vec<&str> = named.chain(["uninstall"]).collect();
    verbs.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, verbs);
    assert_eq!(help::TERMINAL.matches("uninstall").count(), 1);
    let widest = help::TERMINAL.lines().map(|line| line.chars().count()).max();
    assert!(help::TERMINAL.lines().count() <= 35 && widest <= Some(80), "{widest:?}");
}

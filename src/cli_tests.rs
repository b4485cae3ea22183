use super::*;

#[test]
fn the_help_names_every_subcommand_once_and_fits_a_terminal() {
    let command = Cli::command();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut verbs: Vec<&str> = verbs.map(Command::get_name).collect();
    let mut named: Vec<&str> = Vec::new();
    for line in help::TERMINAL.lines().skip_while(|line| !line.starts_with("Start")) {
        if let Some((_, also)) = line.split_once("Also: ") {
            let also = also.trim_end_matches('.').split(", ");
            named.extend(also.filter(|word| !word.starts_with('-')));
            continue;
        }
        let columns = [line.get(..40).unwrap_or(line), line.get(40..).unwrap_or_default()];
        for row in columns.iter().filter_map(|column| column.strip_prefix("  ")) {
            named.extend(row.split(' ').next().filter(|word| !word.is_empty()));
        }
    }
    verbs.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, verbs);
    let widest = help::TERMINAL.lines().map(|line| line.chars().count()).max();
    assert!(help::TERMINAL.lines().count() <= 23 && widest <= Some(80), "{widest:?}");
}

#[test]
fn each_option_and_each_command_has_one_row_in_every_help() {
    let mut wrapped = Vec::new();
    for mut all in [command_with_brief_help(), Cli::command()] {
        all.build();
        for command in with_those_below(&all).into_iter().skip(1) {
            let page = command.clone().term_width(80).render_help().to_string();
            let path = command.get_bin_name().unwrap_or_default();
            let rows = page.lines().skip_while(|line| !line.ends_with(':'));
            for row in rows.take_while(|row| *row != "Examples:") {
                let is_one = !row.starts_with("          ");
                // Clap adds the possible values in rows of their own.
                if !is_one && !row.trim().starts_with('[') {
                    wrapped.push(format!("{path}: {}", row.trim()));
                }
            }
            assert!(page.lines().all(|line| line.chars().count() <= 80), "{path}\n{page}");
        }
    }
    assert!(wrapped.is_empty(), "these rows are the second of an option: {wrapped:#?}");
}

/// The options that a page of help lists.
fn options(command: &Command) -> Vec<&str> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(Arg::get_long).collect()
}

#[test]
fn the_help_of_a_run_shows_the_options_people_use_and_counts_the_others() {
    for (verb, shown_options, others) in [("run", 20, 23), ("resume", 16, 10)] {
        let mut all = command_with_brief_help();
        let command = all.find_subcommand_mut(verb).unwrap();
        assert_eq!(options(command).len(), shown_options, "{verb}: {:?}", options(command));
        let page = command.render_help().to_string();
        let more = format!("`crew {verb} --help --all` lists the other {others} options.");
        assert!(page.trim_end().ends_with(&more), "{page}");
        let whole = Cli::command();
        let whole = options(whole.find_subcommand(verb).unwrap());
        assert_eq!(whole.len(), shown_options + others, "{verb}: {whole:?}");
    }
}

#[test]
fn the_help_of_a_run_and_of_a_resume_names_every_agent() {
    let names = format!("Agents: {}; or one", agents::known_names().join(", "));
    for verb in ["run", "resume"] {
        let page = Cli::command();
        let below = page.find_subcommand(verb).unwrap().get_after_help().unwrap().to_string();
        assert!(below.contains(&names), "{verb}: {below}");
    }
}

#[test]
fn an_option_for_an_existing_loop_keeps_the_paragraphs_of_its_help() {
    let all = Cli::command();
    let run = all.find_subcommand("run").unwrap();
    let mut kept = 0;
    for command in ["resume", "set"].map(|verb| all.find_subcommand(verb).unwrap()) {
        for arg in command.get_opts() {
            let of_run = run.get_arguments().find(|option| option.get_long() == arg.get_long());
            let long = of_run.and_then(Arg::get_long_help).map(ToString::to_string);
            let Some((_, more)) = long.as_ref().and_then(|help| help.split_once("\n\n")) else {
                continue;
            };
            let own = arg.get_long_help().map(ToString::to_string).unwrap_or_default();
            let first = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(own.starts_with(&first) && own.ends_with(more), "{own}");
            kept += 1;
        }
    }
    assert!(kept > 9, "{kept}");
}

//! The page of `crew run --dry-run`: the agents that would get the prompt, its size, and the prompt
//! itself, byte for byte.

use super::words::group_digits;
use engine::doctor::shell_word;
use engine::evidence::said::PromptSize;
use engine::record::Loop;
use engine::text::clip_line;
use std::fmt::Write as _;

/// The most characters of a task that its line shows.
const TASK_CHARS_MAX: usize = 80;

/// Renders the page. `commands` are the program and the arguments of each agent, the loop's own
/// first; an argument that is the prompt itself is shown as `PROMPT`.
pub fn dry_run_page(
    subject: &Loop,
    commands: &[(&str, &[String])],
    prompt: &str,
    budget: u64,
) -> String {
    let what = match subject.procedure() {
        Some(name) => format!("Procedure: {name}"),
        None => format!("Task: {}", clip_line(&subject.contract.task, TASK_CHARS_MAX)),
    };
    let size = PromptSize::of_prompt(prompt, budget);
    let count = if size.budget == 0 {
        format!("about {}, no budget", group_digits(size.tokens))
    } else {
        let over = if size.is_over() { " (over the budget)" } else { "" };
        format!("{} / {} budget{over}", group_digits(size.tokens), group_digits(size.budget))
    };
    let mut text = format!("[DRY RUN] {what}\n");
    for (place, (program, arguments)) in commands.iter().enumerate() {
        let when = if place == 0 { "Would execute with" } else { "While that is at a limit" };
        let _ = writeln!(text, "[DRY RUN] {when}: {}", command_line(program, arguments, prompt));
    }
    let _ = write!(text, "[DRY RUN] Token count: {count}\n\n{prompt}\n");
    text
}

/// A command line, quoted for a shell.
fn command_line(program: &str, arguments: &[String], prompt: &str) -> String {
    let mut words = vec![shell_word(program)];
    for argument in arguments {
        words.push(if argument == prompt { "PROMPT".to_owned() } else { shell_word(argument) });
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use engine::fixture::a_loop;

    #[test]
    fn a_dry_run_shows_the_agents_the_size_and_the_prompt() {
        let arguments = ["-p", "--output-format", "stream-json", "two words"].map(str::to_owned);
        let prompt = format!("# Loop Iteration\n\n{}", "word".repeat(4230));
        let codex = ["exec".to_owned()];
        let commands = [("claude", &arguments[..]), ("codex", &codex)];
        let shown = dry_run_page(&a_loop(), &commands, &prompt, 100_000);
        assert_snapshot!(shown.replace(&"word".repeat(4230), "…"), @"
        [DRY RUN] Task: Build the todo API
        [DRY RUN] Would execute with: claude -p --output-format stream-json 'two words'
        [DRY RUN] While that is at a limit: codex exec
        [DRY RUN] Token count: 4,235 / 100,000 budget

        # Loop Iteration

        …
        ");
        let asked = ["exec".to_owned(), prompt.clone()];
        let shown = dry_run_page(&a_loop(), &[("co'dex", &asked)], &prompt, 1000);
        assert!(shown.contains("[DRY RUN] Would execute with: 'co'\\''dex' exec PROMPT\n"));
        assert!(
            shown.contains("[DRY RUN] Token count: 4,235 / 1,000 budget (over the budget)\n\n# ")
        );
        assert!(shown.ends_with(&format!("\n\n{prompt}\n")));
    }
}

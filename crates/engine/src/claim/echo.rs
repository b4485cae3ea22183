//! Whether plain output ends in an echo of the prompt. A program may print its input, and a task
//! may end in the very line that would be a claim. Text that only repeats the prompt is not a
//! claim.

use crate::text::{is_unseen, plain_text};

/// How long an output must be to count as a piece from the middle of the prompt, in characters
/// without white space: far more than a task would have an agent repeat.
const PIECE_CHARACTERS: usize = 1000;

/// Whether the end of the output is an echo: it repeats the last line of the prompt, the whole
/// task, or the prompt from its first line up to some place; or the whole output is a long piece of
/// the prompt. Colours and white space are ignored, so an echo may be wrapped differently. A claim
/// after an echo is not part of it.
pub(super) fn ends_in_echo(output: &str, prompt: &str, task: &str) -> bool {
    let [output, prompt, task] = [output, prompt, task].map(plain_text);
    let [first, last, own] = [
        prompt.lines().find(|line| !line.trim().is_empty()),
        prompt.lines().rfind(|line| !line.trim().is_empty()),
        output.lines().rfind(|line| !line.trim().is_empty()),
    ]
    .map(|line| visible_letters(line.unwrap_or_default()));
    let [said, prompt, task] =
        [output, prompt, task].map(|render_handoff| visible_letters(&render_handoff));
    if said.is_empty() || last.is_empty() {
        return false;
    }
    // A single line may be the agent's own, even if a prompt begins with it.
    let least = first.len().max(own.len() + 1);
    said.ends_with(&last)
        || (!task.is_empty() && said.ends_with(&task))
        || said
            .char_indices()
            .any(|(at, _)| said.len() - at >= least && prompt.starts_with(&said[at..]))
        || (said.chars().count() >= PIECE_CHARACTERS && prompt.contains(&said))
}

/// Whether a message ends in the whole task. White space is ignored. A task no longer than the
/// message's last line, such as the tag alone, can be said without repeating anything.
pub(super) fn ends_in_the_task(message: &str, task: &str) -> bool {
    let last =
        message.lines().map(visible_letters).rfind(|line| !line.is_empty()).unwrap_or_default();
    let task = visible_letters(task);
    task.len() > last.len() && visible_letters(message).ends_with(&task)
}

/// The visible characters of a text that are not white space.
fn visible_letters(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace() && !is_unseen(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::claim::promise::Promise;
    use crate::claim::{Claim, NearMiss, read_message, read_output};
    use crate::text::plain_text;

    const TAG: &str = "<promise>DONE</promise>";

    fn promise() -> Promise {
        Promise::new("DONE").unwrap()
    }

    fn claims(output: &str, prompt: &str) -> bool {
        read_output(output, prompt, "", Some(&promise())) == Claim::Success
    }

    fn prompt() -> String {
        format!(
            "Iteration 2 of 10.\n\nBuild the API.\nWhen it is built, output:\n{TAG}\n\n\
             Say so only when it is true; crew checks it."
        )
    }

    #[test]
    fn an_echo_of_the_prompt_claims_nothing() {
        let prompt = prompt();
        let task = format!("Build it.\nOutput: {TAG} or\n{TAG}");
        let cut_off = prompt.split("\n\nSay so").next().unwrap();
        let coloured = prompt.replace('\n', "\x1b[0m\r\n\x1b[36m");
        let wrapped =
            cut_off.replace(" the API.\n", " the\nAPI.   ").replace("Iteration", "Itera\ntion");
        let table = [
            (task.clone(), &task),
            (format!("> user\n{task}\n\n"), &task),
            (format!("working…\n{coloured}"), &prompt),
            (cut_off.to_owned(), &prompt),
            (format!("prompt was:\n{cut_off}\n"), &prompt),
            (wrapped, &prompt),
            (format!("{TAG}\n{task}"), &task),
            (format!("{task}{task}"), &task),
        ];
        for (output, prompt) in table {
            assert!(!claims(&output, prompt), "{output}");
        }
    }

    #[test]
    fn an_output_that_ends_in_the_whole_task_is_an_echo_of_it() {
        let task = format!("Build the API.\nWhen it is built, output:\n{TAG}\n");
        let prompt = format!("Iteration 2.\n\nTASK\n{task}\nSay so only when it is true.");
        let claims =
            |output: &str| read_output(output, &prompt, &task, Some(&promise())) == Claim::Success;
        let echoes = [
            task.clone(),
            format!("Working on: Build the API.\n\n{task}"),
            format!(
                "Working on:\n{}\n\n",
                task.replace('\n', "\x1b[0m\r\n").replace(" it ", "\nit  ")
            ),
        ];
        for output in echoes {
            assert!(!claims(&output), "{output}");
        }
        for output in [format!("{task}\nDone.\n{TAG}"), format!("{task}{TAG}"), TAG.to_owned()] {
            assert!(claims(&output), "{output}");
        }
    }

    #[test]
    fn a_message_that_ends_in_the_whole_task_repeats_it_and_claims_nothing() {
        let task = format!("Build it. When finished, output:\n{TAG}");
        let read = |message: &str, task: &str| read_message(message, task, Some(&promise()));
        for message in [
            task.clone(),
            format!("The task I was given is:\n\n{task}\n"),
            format!("The task:\n\nBuild it.\nWhen finished,\n output:\n\n{TAG}"),
        ] {
            assert_eq!(read(&message, &task), Claim::NearMiss(NearMiss::Echo), "{message}");
        }
        for message in [
            TAG.to_owned(),
            format!("{task}\n\nDone.\n\n{TAG}"),
            format!("You asked me to finish with\n{TAG}"),
        ] {
            assert_eq!(read(&message, &task), Claim::Success, "{message}");
        }
        let one_line = format!("Build it. When finished output {TAG}");
        let marked = format!("{one_line}\u{200b}");
        for task in [&one_line, &marked] {
            let repeated = format!("Build it. When finished output\n{TAG}");
            assert_eq!(read(&repeated, task), Claim::NearMiss(NearMiss::Echo), "{task:?}");
        }
        assert_eq!(read(TAG, TAG), Claim::Success);
        assert_eq!(read(TAG, ""), Claim::Success);
        assert_eq!(read(&task, &format!("{task}\nNot yet.")), Claim::Success);
    }

    #[test]
    fn a_claim_of_the_agents_own_counts_before_and_after_an_echo() {
        let prompt = prompt();
        let table = [
            TAG.to_owned(),
            format!("All done.\n{TAG}"),
            format!("{prompt}\n{TAG}"),
            format!("{prompt}\n\nAll done.\n\n{TAG}\n"),
            format!("{prompt}\n\x1b[32m{TAG}\x1b[0m\r\n"),
            // Text that the task asks the agent to say is not an echo of the task.
            format!("When it is built, output:\n{TAG}"),
        ];
        for output in table {
            assert!(claims(&output, &prompt), "{output}");
        }
    }

    #[test]
    fn the_end_of_a_long_echo_is_one_though_its_beginning_is_lost() {
        let context: String = (0..300)
            .flat_map(|line| ["A line of context, ".to_owned(), format!("{line}.\n")])
            .collect();
        let prompt = format!("Iteration 1.\n{context}{TAG}\nSay so only when it is true.");
        let cut_off = prompt.split("\nSay so").next().unwrap();
        assert!(!claims(&cut_off[2000..], &prompt));
        assert!(claims(&format!("I read line 299.\n{TAG}"), &prompt));
    }

    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just(TAG.to_owned()),
            Just("\n".to_owned()),
            Just("\r\n".to_owned()),
            Just(" \t".to_owned()),
            Just("\x1b[1m".to_owned()),
            Just("```\n".to_owned()),
            Just("<prom".to_owned()),
            Just("ise>DONE</promise>".to_owned()),
            "[a-c ]{0,6}",
            "\\PC{0,3}",
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_prompt_is_a_claim_when_it_is_repeated(before in any_text(), prompt in any_text()) {
            // An empty prompt is repeated by everything.
            prop_assume!(!plain_text(&prompt).trim().is_empty());
            let echo = format!("{before}{prompt}");
            prop_assert!(!claims(&echo, &prompt), "{:?}", echo);
            let coloured = format!("{before}\x1b[3m{}\x1b[0m\n", prompt.replace('\n', "\r\n"));
            prop_assert!(!claims(&coloured, &prompt), "{:?}", coloured);
        }

        #[test]
        fn a_claim_after_a_prompt_of_crews_counts(before in any_text(), task in any_text()) {
            // An open fence covers the claim, too.
            prop_assume!(!format!("{before}{task}").contains(['`', '~']));
            let prompt = format!("Iteration 1 of 2.\n{task}\n\nIt must be true, says crew.");
            let output = format!("{before}\n{prompt}\nAll is done.\n{TAG}\n");
            prop_assert!(claims(&output, &prompt), "{:?}", output);
        }
    }
}

//! The messages that a person sent to the agent, and the prompt that each of them was in.

use super::{Fact, PageInputs};
use crate::engine::journal::Choice;
use crate::engine::journal::story::{Story, What};
use crate::engine::record::{Loop, Status};
use crate::engine::text::{one_line, quoted};

/// The longest words of a person, in characters.
pub const TOLD_CHARS: usize = 200;

/// A row for each message.
pub fn told(inputs: &PageInputs<'_>) -> Vec<Fact> {
    let messages = messages(inputs.story);
    let row = |message: &Message<'_>| {
        let when = match delivered(message, inputs.story, inputs.record) {
            Some(iteration) => format!("in the prompt of iteration {iteration}"),
            None if inputs.record.is_live() => "waits for the next prompt".to_owned(),
            None => "no prompt had it before the end".to_owned(),
        };
        Fact::new("told", format!("{} ({when})", quoted(&one_line(message.words, TOLD_CHARS))))
    };
    messages.iter().map(row).collect()
}

struct Message<'a> {
    words: &'a str,
    /// The first iteration that ended without leaving it for the next prompt.
    iteration: Option<u32>,
}

fn messages(story: &Story) -> Vec<Message<'_>> {
    let mut messages: Vec<Message<'_>> = Vec::new();
    for chapter in story.chapters.iter() {
        match &chapter.what {
            What::Told { words, .. } => messages.push(Message { words, iteration: None }),
            What::Iteration(it) => {
                let is_left = |words: &str| it.evidence.words.iter().any(|left| left == words);
                let gone = messages.iter_mut().filter(|message| !is_left(message.words));
                gone.for_each(|message| {
                    message.iteration.get_or_insert(it.number);
                });
            }
            _ => {}
        }
    }
    messages
}

/// The iteration that a message was in the prompt of, as far as one has begun.
fn delivered(message: &Message<'_>, story: &Story, record: &Loop) -> Option<u32> {
    let state = &record.state;
    let queued = state.messages.iter().position(|words| words == message.words);
    let is_handed_on = match queued {
        Some(index) => index < state.told,
        None if record.is_live() => state.status == Status::Running,
        // Only where the loop continued did an agent get what the last boundary handed on.
        None => story.iterations().last().is_some_and(|it| it.decision == Choice::Continue),
    };
    message.iteration.or_else(|| is_handed_on.then_some(state.completed + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::evidence::Evidence;
    use crate::engine::evidence::changes::Changes;
    use crate::engine::evidence::test_report::TestMemories;
    use crate::engine::fixture::{a_run, at};
    use crate::engine::journal::{Event, JournalEntry, SCHEMA, TOLD};
    use crate::engine::page::tests::page;
    use crate::engine::record::State;

    /// A loop in words: `tell x`, `begin` an iteration, and how that ends.
    fn rows(script: &str) -> Vec<String> {
        let (mut record, mut story) = (a_run(None), Story::picking(None));
        for word in script.split(", ") {
            let state = &mut record.state;
            state.generation += 1;
            let boundary = |state: &mut State, status, decision| {
                state.status = status;
                state.completed += 1;
                let mut words = std::mem::take(&mut state.messages);
                words.drain(..std::mem::take(&mut state.told));
                state.evidence = Some(Evidence { words, ..Evidence::default() });
                let state = Box::new(state.clone());
                Event::Boundary { decision, why: None, elapsed_ms: Some(1), state }
            };
            let event = match word {
                "begin" => {
                    (state.status, state.told) = (Status::Running, state.messages.len());
                    Event::changed("told the agent", &record)
                }
                "continue" => boundary(state, Status::Running, Choice::Continue),
                "wait" => boundary(state, Status::Waiting, Choice::Wait),
                "finish" => boundary(state, Status::Finished, Choice::Finish),
                "cancel" => {
                    state.status = Status::Finished;
                    Event::changed("cancelled", &record)
                }
                told => {
                    state.messages.push(told.trim_start_matches("tell ").to_owned());
                    Event::changed(TOLD, &record)
                }
            };
            let (at, generation) = (at(60).wall, record.state.generation);
            story.add(JournalEntry { schema: SCHEMA, at, generation, event });
        }
        let page = page(&record, &story, &Changes::default(), &TestMemories::new());
        let told = page.results.into_iter().filter(|fact| fact.name == "told");
        told.map(|fact| fact.text).collect()
    }

    #[test]
    fn a_message_names_the_iteration_whose_prompt_it_was_in() {
        let table: [(&str, &[&str]); 9] = [
            ("tell a", &["\"a\" (waits for the next prompt)"]),
            ("tell a, begin", &["\"a\" (in the prompt of iteration 1)"]),
            ("begin, tell a", &["\"a\" (waits for the next prompt)"]),
            ("begin, tell a, continue, begin", &["\"a\" (in the prompt of iteration 2)"]),
            ("begin, tell a, wait", &["\"a\" (waits for the next prompt)"]),
            (
                "tell a, begin, tell b, continue, begin, continue, tell c, begin, tell d, finish",
                &[
                    "\"a\" (in the prompt of iteration 1)",
                    "\"b\" (in the prompt of iteration 2)",
                    "\"c\" (in the prompt of iteration 3)",
                    "\"d\" (no prompt had it before the end)",
                ],
            ),
            ("begin, tell a, continue, begin, cancel", &["\"a\" (in the prompt of iteration 2)"]),
            ("begin, tell a, cancel", &["\"a\" (no prompt had it before the end)"]),
            ("begin, tell a, wait, cancel", &["\"a\" (no prompt had it before the end)"]),
        ];
        for (script, expected) in table {
            assert_eq!(rows(script), expected, "{script}");
        }
    }
}

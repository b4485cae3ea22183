//! The messages that a person sent to the agent, and the prompt that each of them was in.

use super::{Fact, PageInputs};
use crate::engine::journal::story::{Story, What};
use crate::engine::journal::{Choice, DELIVERED, RESUMED_IN_A_SESSION, WOKEN};
use crate::engine::record::Driver;
use crate::engine::text::{one_line, quoted};

/// The longest words of a person, in characters.
pub const TOLD_CHARS: usize = 200;

/// A row for each message.
pub fn told(inputs: &PageInputs<'_>) -> Vec<Fact> {
    let row = |message: Message<'_>| {
        let when = match message.prompt {
            Some(iteration) => format!("in the prompt of iteration {iteration}"),
            None if inputs.view.record.is_live() => "waits for the next prompt".to_owned(),
            None => "it reached no prompt before the end".to_owned(),
        };
        Fact::new("told", format!("{} ({when})", quoted(&one_line(message.words, TOLD_CHARS))))
    };
    messages(inputs.story).into_iter().map(row).collect()
}

struct Message<'a> {
    words: &'a str,
    /// The first iteration that had it in its prompt.
    prompt: Option<u32>,
}

fn messages(story: &Story) -> Vec<Message<'_>> {
    let mut messages: Vec<Message<'_>> = Vec::new();
    let first = story.drivers.iter().next();
    let (mut driver, mut iteration) = (first.map(|who| who.driver), 1);
    for chapter in story.chapters.iter() {
        match &chapter.what {
            What::Told { words } => messages.push(Message { words, prompt: None }),
            What::Changed { what, by, .. } => {
                driver = by.as_ref().map(|by| by.driver).or(driver);
                if what == DELIVERED || what == RESUMED_IN_A_SESSION || what.starts_with(WOKEN) {
                    deliver(&mut messages, iteration);
                }
            }
            What::Iteration(it) => {
                // They wait in line, so those that an iteration left are the last. It had the
                // others.
                let left = it.evidence.words.len();
                let left = messages.len() - left.min(messages.len());
                let (had, left) = messages.split_at_mut(left);
                deliver(had, it.number);
                for message in left.iter_mut() {
                    message.prompt = None;
                }
                iteration = it.number + 1;
                // A session gets the next prompt as the answer to its stop.
                if driver == Some(Driver::Session) && it.decision == Choice::Continue {
                    deliver(left, iteration);
                }
            }
            _ => {}
        }
    }
    messages
}

fn deliver(messages: &mut [Message<'_>], iteration: u32) {
    for message in messages {
        message.prompt.get_or_insert(iteration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::evidence::Evidence;
    use crate::engine::evidence::changes::Changes;
    use crate::engine::evidence::test_report::TestMemories;
    use crate::engine::fixture::{a_run, at};
    use crate::engine::journal::{Event, JournalEntry, SCHEMA, TOLD};
    use crate::engine::record::{Loop, State, Status};
    use crate::engine::view::tests::page;

    /// What a page tells of the messages of a loop in words: `tell x`, `begin` an iteration of a
    /// fresh process, and how it ends. `session` hands it to a session.
    fn rows(script: &str) -> Vec<String> {
        let (mut record, mut story) = (a_run(None), Story::picking(None));
        let add = |record: &Loop, story: &mut Story, event| {
            let (at, generation) = (at(60).wall, record.state.generation);
            story.add(JournalEntry { schema: SCHEMA, at, generation, event });
        };
        add(&record, &mut story, Event::Started { record: Box::new(record.clone()) });
        for word in script.split(", ") {
            let state = &mut record.state;
            state.generation += 1;
            let boundary = |state: &mut State, status, decision| {
                state.status = status;
                state.completed += 1;
                let words = std::mem::take(&mut state.messages);
                let words = words.into_iter().skip(std::mem::take(&mut state.told)).collect();
                state.evidence = Some(Evidence { words, ..Evidence::default() });
                let state = Box::new(state.clone());
                Event::Boundary { decision, why: None, elapsed_ms: Some(1), state }
            };
            let event = match word {
                "begin" => {
                    let has_words = state.evidence.as_ref().is_some_and(|it| !it.words.is_empty());
                    if state.told == state.messages.len() && !has_words {
                        continue;
                    }
                    (state.status, state.told) = (Status::Running, state.messages.len());
                    Event::changed(DELIVERED, &record)
                }
                "session" => {
                    (state.owner.driver, state.told) = (Driver::Session, state.messages.len());
                    Event::changed(RESUMED_IN_A_SESSION, &record)
                }
                "wake" => Event::changed("woken for iteration 2", &record),
                "continue" => boundary(state, Status::Running, Choice::Continue),
                "pause" => boundary(state, Status::Paused, Choice::Hold),
                "finish" => boundary(state, Status::Finished, Choice::Finish),
                "wait" => {
                    state.status = Status::Waiting;
                    let state = Box::new(state.clone());
                    Event::Boundary { decision: Choice::Wait, why: None, elapsed_ms: None, state }
                }
                "cancel" => {
                    state.status = Status::Finished;
                    Event::changed("cancelled", &record)
                }
                told => {
                    state.messages.push(told.trim_start_matches("tell ").to_owned());
                    Event::changed(TOLD, &record)
                }
            };
            add(&record, &mut story, event);
        }
        let page = page(&record, &story, &Changes::default(), &TestMemories::new());
        let told = page.results.into_iter().filter(|fact| fact.name == "told");
        told.map(|fact| fact.text).collect()
    }

    #[test]
    fn a_message_names_the_iteration_whose_prompt_it_was_in() {
        const WAITS: &str = "\"a\" (waits for the next prompt)";
        const NEVER: &str = "\"a\" (it reached no prompt before the end)";
        const IN_1: &str = "\"a\" (in the prompt of iteration 1)";
        const IN_2: &str = "\"a\" (in the prompt of iteration 2)";
        let table: [(&str, &[&str]); 16] = [
            ("tell a", &[WAITS]),
            ("tell a, begin", &[IN_1]),
            ("begin, tell a", &[WAITS]),
            ("begin, tell a, continue", &[WAITS]),
            ("begin, tell a, continue, begin", &[IN_2]),
            ("begin, tell a, wait", &[WAITS]),
            ("begin, tell a, continue, begin, cancel", &[IN_2]),
            ("begin, tell a, continue, cancel", &[NEVER]),
            ("begin, tell a, cancel", &[NEVER]),
            ("begin, tell a, wait, cancel", &[NEVER]),
            ("begin, tell a, pause, begin, cancel", &[IN_2]),
            ("begin, tell a, finish, begin, cancel", &[IN_2]),
            ("begin, tell a, pause, session, cancel", &[IN_2]),
            ("session, tell a, wait, wake, cancel", &[IN_1]),
            ("tell a, begin, tell a, continue, begin, finish", &[IN_1, IN_2]),
            (
                "session, tell a, continue, tell b, cancel",
                &[IN_2, "\"b\" (it reached no prompt before the end)"],
            ),
        ];
        for (script, expected) in table {
            assert_eq!(rows(script), expected, "{script}");
        }
    }
}

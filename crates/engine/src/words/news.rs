//! What crew saw at the last boundary: for the agent that made it, for the next one, and for the
//! commit of its work. What an agent said is quoted and called unchecked.

use minijinja::{Value, context};

use super::PromptReader;
use crate::evidence::test_run::TestReport;
use crate::evidence::{CheckResult, Evidence, Verdict};
use crate::record::Loop;
use crate::templates::render_template;
use crate::text::{
    clean_text, clip_line, count, join_first_names, one_line, tail_of, utf16_units, with_reason,
};

/// A command longer than this many characters is shown cut.
const COMMAND_CHARS_MAX: usize = 160;
/// How many characters of an agent's standard error the next one reads.
const ERRORS_CHARS: usize = 1000;
/// How many failing checks are shown with their output.
const FAILING_SHOWN: usize = 8;
/// How many failing tests are named, each on a line.
const TESTS_NAMED: usize = 10;
/// How many characters of the names of changed files are shown.
const FILES_CHARS: usize = 300;
/// How many changed files are named.
const FILES_NAMED: usize = 6;

/// What crew saw, in at most `room` UTF-16 units: as many failing checks as fit, with as much of
/// their output.
pub fn describe_results(last: &Evidence, room: usize, reader: PromptReader) -> String {
    let failing: Vec<&CheckResult> = last.failing().collect();
    let passed = last.checks.iter().filter(|check| check.verdict == Verdict::Passed);
    let passed = passed.map(|check| format!("`{}`", clip_line(&check.run, COMMAND_CHARS_MAX)));
    let values = context! {
        last,
        reader,
        who => if reader == PromptReader::Maker { "You" } else { "It" },
        other_failure => last.other_failure(),
        errors => tail_of(&last.errors, ERRORS_CHARS),
        changed => describe_changes(last),
        test_news => last.test_news().take(FAILING_SHOWN).collect::<Vec<_>>(),
        passed => passed.collect::<Vec<_>>(),
    };
    let text = |shown: usize, characters: usize| {
        let checks = failing[..shown].iter().map(|check| failed_values(check, characters));
        let (checks, hidden) = (checks.collect::<Vec<_>>(), failing.len() - shown);
        render_template("seen.j2", &context! { failing => checks, hidden, ..values.clone() })
    };
    let mut shown = failing.len().min(FAILING_SHOWN);
    let mut brief = text(shown, 0);
    while shown > 0 && utf16_units(&brief) > room {
        shown -= 1;
        brief = text(shown, 0);
    }
    // A character takes at most two units, and each line is indented by four.
    let mut characters = room.saturating_sub(utf16_units(&brief)) / (3 * shown.max(1));
    while shown > 0 && characters > 0 {
        let longer = text(shown, characters);
        if utf16_units(&longer) <= room {
            return longer;
        }
        characters /= 2;
    }
    brief
}

/// "left 1 new file, +1 −0: src/a.rs", "changed nothing"; empty where nobody looked.
fn describe_changes(last: &Evidence) -> String {
    let Some(changes) = &last.changes else {
        return last
            .progress
            .worded(["changed files or commits", "changed nothing", ""])
            .to_owned();
    };
    let Some(words) = changes.change_words() else { return "changed nothing".to_owned() };
    let paths: Vec<String> = changes.files.iter().map(|file| file.path.clone()).collect();
    with_reason(
        &format!("left {words}"),
        &one_line(&join_first_names(&paths, FILES_NAMED), FILES_CHARS),
    )
}

/// A check that did not pass: "2 of 215 tests fail, the same in the last 3 runs", which, and the
/// end of what it printed.
fn failed_values(check: &CheckResult, characters: usize) -> Value {
    let tests = check.tests.as_ref().filter(|tests| tests.failed > 0);
    let counted = tests.map(|tests| {
        let (of, verb) = (count(tests.total(), "test"), tests.verb());
        let same = match tests.same_failures {
            0 | 1 => String::new(),
            runs => format!(", the same in the last {runs} runs"),
        };
        format!("{} of {of} {verb}{same}", tests.failed)
    });
    let names = tests.map(|tests| &tests.failing);
    context! {
        run => check.run,
        happened => check.what_happened(),
        tests => counted,
        names => names.iter().flat_map(|it| it.first.iter().take(TESTS_NAMED)).collect::<Vec<_>>(),
        more => names.map_or(0, |it| (it.count as usize).saturating_sub(TESTS_NAMED)),
        stuck => tests.and_then(TestReport::stuck_hint),
        tail => tail_of(&check.tail, characters),
    }
}

/// The message of the commit after the iteration that the loop's evidence is about.
pub fn commit_message(subject: &Loop) -> String {
    let last = subject.state.evidence.as_ref();
    let checks = last.iter().flat_map(|last| &last.checks);
    let text = render_template(
        "commit.j2",
        &context! {
            id => subject.id,
            iteration => last.map_or(subject.state.completed, |last| last.iteration),
            task => subject.contract.task.trim_start(),
            procedure => subject.procedure(),
            last,
            checks => checks.map(|it| (&it.run, it.what_happened())).collect::<Vec<_>>(),
            test_news => last.iter().flat_map(|last| last.test_news()).collect::<Vec<_>>(),
        },
    );
    // `git log` prints it as it is, and an agent's reason may hold what no argument can.
    format!("{}\n", clean_text(&text).trim_end())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::boundary::judge::judge_boundary;
    use crate::claim::Claim;
    use crate::fixture::{a_loop, a_loop_with, facts, result};
    use crate::record::Role;

    #[test]
    fn the_message_says_which_iteration_of_which_task_and_what_was_seen() {
        let mut subject = a_loop_with(&[("cargo test", Role::Gate), ("cargo fmt", Role::Verify)]);
        subject.contract.task = "\nBuild the todo API\n\nwith a list endpoint".to_owned();
        let mut ended = facts(Claim::Success);
        ended.checks =
            vec![result("cargo test", Verdict::Failed), result("cargo fmt", Verdict::Passed)];
        let subject = judge_boundary(&subject, &ended).after;
        assert_snapshot!(commit_message(&subject), @"
        crew: iteration 1 of loop haaaaaaa

        Build the todo API…

        - `cargo test` failed (exit 1)
        - `cargo fmt` passed
        - claim refused: `cargo test` failed (exit 1)
        - failed: gate `cargo test` failed
        ");
    }

    #[test]
    fn a_loop_without_evidence_has_a_message_too() {
        assert_snapshot!(commit_message(&a_loop()), @"
        crew: iteration 0 of loop haaaaaaa

        Build the todo API
        ");
    }
}

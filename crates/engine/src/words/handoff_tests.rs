//! The page for the next worker.

use insta::assert_snapshot;

use super::*;
use crate::boundary::decide::{apply_decision, decide_next};
use crate::boundary::judge::judge_boundary;
use crate::claim::Claim;
use crate::evidence::Verdict;
use crate::evidence::changes::Commits;
use crate::evidence::changes::{ChangeKind, ChangedFile, Changes};
use crate::fixture::{SetState, a_loop_with, a_page, at, facts, result};
use crate::journal::story::Story;
use crate::record::{CheckMemory, EndReason, Ending, IncurableRefusal, Outcome, Proof, Role};

fn refused_at_its_limit() -> Loop {
    let mut subject = a_loop_with(&[("cargo test", Role::Verify)]);
    subject.contract.limits.max_iterations = 1;
    let mut refused = facts(Claim::Success);
    refused.checks = vec![result("cargo test", Verdict::Failed)];
    let judged = judge_boundary(&subject, &refused);
    apply_decision(judged.clone(), &decide_next(&judged, &refused))
}

#[test]
fn a_handoff_contains_every_fact_crew_has_and_no_empty_section() {
    let ended = refused_at_its_limit();
    let file = |path: &str, kind, yours| ChangedFile {
        path: path.to_owned(),
        kind,
        lines: Some((3, 1)),
        yours,
    };
    let files =
        [file("src/a.rs", ChangeKind::Created, false), file("b.txt", ChangeKind::Modified, true)];
    let made = vec!["1a2b3c4 Add the list endpoint".to_owned()];
    let page = Page {
        commits: Commits { made: Some(made), ..Commits::default() },
        changes: Some(Changes::from_files(files)),
        ..a_page(&ended, &Story::with_pick(None))
    };
    let shown = "the parser is done, its tests are next";
    assert_snapshot!(render_handoff(&page, shown, "exhausted", at(60).wall), @r#"
    ---
    type: exhausted
    timestamp: 2026-11-18T11:07:40Z
    branch: "main"
    status: exhausted
    loop: haaaaaaa
    ---

    # Build the todo API

    Loop haaaaaaa: exhausted after 1 iteration, `cargo test` fails.
    - the limit of 1 iteration is reached
    - 1m of work

    ## What the author of this page says (not checked)

    the parser is done, its tests are next

    ## Next steps

    Run `cargo test` first: it failed (exit 1).

    ## What was done

    Commits since the start:

        1a2b3c4 Add the list endpoint

    ## Files changed

    1 file changed, 1 new, +6 −2.

    - new src/a.rs
    - changed b.txt (had changes before the loop)

    ## Checks

    - `cargo test` (verify): failed (exit 1)
    - fails: `cargo test` failed (exit 1)

        output of cargo test

    ## Context for resume

    - Task, word for word: /repo/.claude/branches/main/task.md
    - Promise: COMPLETE
    - Folder of the checks: /repo
    - Record: `crew show haaaaaaa`
    - Resume: `crew resume haaaaaaa`
    "#);
}

#[test]
fn a_loop_that_no_resume_can_help_names_no_command_for_it() {
    let mut subject = a_loop_with(&[("cargo test", Role::Verify)]);
    subject.contract.require = Some(Proof::Checked);
    subject.state.set("checked_as_found", true);
    let memory = CheckMemory::from_result(&result("cargo test", Verdict::Passed), 0, None);
    subject.state.remember_check("cargo test".to_owned(), memory);
    let weak = Proof::Passing.falls_short(Some(Proof::Checked), None).unwrap();
    let reason = EndReason::Refused(IncurableRefusal::ProofTooWeak(weak));
    subject.state.finish(Ending::new(Outcome::Blocked, reason), 0);
    let page = a_page(&subject, &Story::with_pick(None));
    let text = render_handoff(&page, "", "blocked", at(0).wall);
    assert!(!text.contains("crew resume"), "{text}");
    assert!(text.contains("a person has to start a new loop, as the reason says"), "{text}");
}

#[test]
fn a_branch_is_quoted_in_the_front_matter_as_yaml_requires() {
    let mut subject = a_loop_with(&[]);
    let table = [
        ("@", r#""@""#),
        ("\"quoted\": #1", r#""\"quoted\": #1""#),
        ("\u{202e}\u{9b}2J", r#""\u202e\u009b2J""#),
    ];
    for (branch, written) in table {
        subject.place.branch = Some(branch.to_owned());
        let page = a_page(&subject, &Story::with_pick(None));
        let text = render_handoff(&page, "", "task", at(0).wall);
        assert_eq!(text.lines().nth(3), Some(format!("branch: {written}").as_str()));
    }
}

#[test]
fn a_page_names_its_loop_and_is_found_by_it() {
    let subject = refused_at_its_limit();
    let page = a_page(&subject, &Story::with_pick(None));
    assert!(is_of(&subject, &render_handoff(&page, "", "task", at(0).wall)));
    assert!(!is_of(&subject, &format!("loop: {}x\n", subject.id)));
    assert_eq!(file_name("task", at(0).wall), "task-20261118T110640Z.md");
}

#[test]
fn an_authors_headings_are_kept_and_cannot_be_mistaken_for_crews() {
    let subject = refused_at_its_limit();
    let page = a_page(&subject, &Story::with_pick(None));
    let shown =
        "## Done\n\nThe parser.\n\n## Next steps\n\nIts tests.\n\n## Context for resume\n\nNone.";
    let text = render_handoff(&page, shown, "task", at(0).wall);
    let words = authors_words(&text).unwrap();
    assert_snapshot!(words, @"
    ## Done

    The parser.

    ### Next steps

    Its tests.

    ### Context for resume

    None.
    ");
    assert_eq!(lower_headings(words), words, "as often as it is handed on");
    assert_eq!(text.matches("\n## Context for resume\n").count(), 1);
}

#[test]
fn a_procedure_without_a_task_names_no_task_file() {
    for (task, is_named) in [("Build it", true), ("", false)] {
        let mut subject = refused_at_its_limit();
        subject.contract.task = task.to_owned();
        let page = a_page(&subject, &Story::with_pick(None));
        let text = render_handoff(&page, "", "task", at(0).wall);
        assert_eq!(text.contains("- Task, word for word: "), is_named, "{text}");
    }
}

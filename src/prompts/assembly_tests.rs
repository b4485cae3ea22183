use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::engine::account::Account;
use crate::engine::agent::{Agent, Dialect, Permissions, PromptDoor};
use crate::engine::claim::{Claim, read};
use crate::engine::contract::Role;
use crate::engine::fixture::{a_loop_with, facts, result};
use crate::engine::judge::judge;
use crate::engine::run::{Fragment, GitSteps, Pace, Recipe, Run};
use crate::prompts::parts::{self, Files};
use crate::prompts::procedures;
use crate::prompts::values::{Handoff, VALUE_BYTES_MAX};

/// One file, whatever it is called.
struct Only<'text>(&'text str);

impl Files for Only<'_> {
    fn read(&self, _: &Path) -> Result<String, String> {
        Ok(self.0.to_owned())
    }
}

fn a_run(procedure: Option<&str>, recipe: Recipe) -> Run {
    let agent = Agent {
        name: "claude".to_owned(),
        command: vec!["claude".to_owned()],
        prompt: PromptDoor::Stdin,
        dialect: Dialect::Claude,
        permissions: [].into(),
        max_turns: None,
    };
    Run {
        procedure: procedure.map(str::to_owned),
        agent,
        permissions: Permissions::default(),
        recipe,
        pace: Pace::default(),
        max_turns: 0,
        git: GitSteps::default(),
        reactions: Vec::new(),
    }
}

fn of(procedure: &str) -> Loop {
    let mut subject = a_loop_with(&[("cargo test", Role::Verify)]);
    let recipe = procedures::find(procedure).unwrap().recipe;
    subject.contract.run = Some(a_run(Some(procedure), recipe));
    subject.contract.limits.max_iterations = 5;
    subject
}

fn of_task(task: &str, recipe: Recipe) -> Loop {
    let mut subject = a_loop_with(&[]);
    subject.contract.task = task.to_owned();
    subject.contract.run = Some(a_run(None, recipe));
    subject
}

fn made(subject: &Loop, known: &Known<'_>, files: &str) -> String {
    let recipe = &subject.contract.run.as_ref().unwrap().recipe;
    prompt(subject, &parts::read(recipe, &Only(files)).unwrap(), known).unwrap()
}

#[test]
fn a_first_prompt_is_who_you_are_the_phases_and_how_to_finish() {
    let subject = of("build");
    let known = Known {
        git_status: Some(" M src/lib.rs\n?? notes.txt\n"),
        git_log: Some("1a2b3c4 Add the list endpoint\n"),
        ..Known::default()
    };
    assert_snapshot!(made(&subject, &known, ""), @r#"
    # OODA Loop Iteration

    This is iteration 1 of 5 of procedure `build`. crew starts a fresh process for each: you know nothing of the iterations before, and the next will know nothing of yours but what is in files and commits. Nobody answers questions while you work.

    ## OBSERVE

    Look before you decide anything. Read, in this order:

    1. `AGENTS.md`, else `CLAUDE.md` or the README: how this project is laid out, built and tested.
    2. The plan: `PLAN.md`, unless `AGENTS.md` names another. What is done, what is open, what earlier iterations noted.
    3. The specification or issue that the next open task points to.
    4. The code which that task touches, and its tests. Search the whole tree before you conclude that something does not exist.

    Uncommitted when this iteration began (`git status --porcelain`). It may be an earlier iteration's work, or a person's; find out before you touch it, and never throw it away:

     M src/lib.rs
    ?? notes.txt

    The latest commits:

    1a2b3c4 Add the list endpoint

    ## ORIENT

    Work out where things stand:

    - Does the EVIDENCE below tell of a failed check or a refused claim? Mending that is this iteration's task, before anything new.
    - Is there work in the tree that an earlier iteration began and did not finish? Finishing it comes next.
    - Otherwise: which open task comes first, by the order of the plan and by what the others depend on?
    - Does the plan still match the code? Where it does not, the code is the fact; correct the plan.
    - If there is no plan, the CONTEXT and the specifications are it: write the open tasks into `PLAN.md`, the most important first, and go on with the first.

    ## DECIDE

    Choose one task. Before you edit anything, say in two or three sentences:

    - which task it is and why it is next;
    - what will be true when it is done, and which command or test will show it;
    - which files you expect to change.

    If it is too large for one iteration, split it in the plan and take the first part that works by itself. If no task is open, check that this is so: every requirement has code, every check runs and passes. Then nothing is left to build, and you may claim it.

    ## ACT

    Do that one task, and do all of it:

    1. Where it can be tested, write the test first and see it fail for the reason you expect.
    2. Write the code in the manner of the code around it: no stub, no placeholder, no commented-out remains, nothing beyond the task.
    3. Run the project's own tests, linter and build, all of them. What you broke, mend now.
    4. Read your own diff once as a reviewer would, and correct what you find.
    5. Bring the plan up to date: mark the task done only if it is; add the tasks and bugs you came across; note in a line or two what the next iteration must know and cannot see in the code. Keep it short: delete what no longer helps.
    6. If `AGENTS.md` told you something that proved wrong, correct that line.

    Be exact about what you know:

    - "Passes" is for a command that you ran in this iteration, after your last edit, and saw pass. Name the command.
    - What you did not run or could not check, call unchecked. An honest gap helps the next iteration; a hidden one costs it.
    - Never make a check pass by weakening it: no test deleted, skipped or loosened, no warning silenced, no check's settings changed to get there. If a check itself is wrong, write down why and leave that decision to a person.

    Commit only if `AGENTS.md` or the CONTEXT above asks for it, one commit for one task. Uncommitted work is not lost: the next iteration finds it in the working tree. Never push.

    Then stop. One task is one iteration: the next one starts with a clear head.

    ## HOW TO FINISH

    - When the whole task is done, and only then, let the last line of your final message be <promise>COMPLETE</promise> alone, outside code blocks and quotes. crew then runs `cargo test` itself and believes only that.
    - If work is left after this iteration's part, make no claim and stop: the next iteration goes on.
    - If only a person can help, let that line be <promise>BLOCKED: the reason</promise>; if this iteration failed, <promise>FAILURE: the reason</promise>. Both are honest; an untrue claim is not.

    Now begin iteration 1.
    "#);
}

#[test]
fn a_fourth_prompt_tells_what_crew_saw_and_what_came_before() {
    let mut subject = of("fix");
    let mut accounts = Vec::new();
    subject.contract.run.as_mut().unwrap().git.commit = true;
    subject.contract.run.as_mut().unwrap().recipe.context =
        vec![Fragment::Text("Only the parser's tests.".to_owned())];
    for claim in [Claim::None, Claim::None, Claim::Success] {
        let mut facts = facts(claim);
        facts.checks = vec![result("cargo test", Verdict::Failed)];
        facts.checks[0].tail = "test parse::lists ... FAILED\n1 failed; 3 passed".to_owned();
        subject = judge(&subject, &facts).after;
        accounts.push(Account::of(subject.state.evidence.as_ref().unwrap()));
    }
    subject.state.still = 3;
    subject.state.words = vec!["Leave src/old alone.\nIt goes next week.".to_owned()];
    let page = Path::new("/repo/.claude/branches/main/handoffs/task-1.md");
    let handoff = Some(Handoff { path: page, text: "# Handoff\n\nThe lexer is done.\n" });
    let known = Known { accounts: &accounts, handoff, ..Known::default() };
    assert_snapshot!(made(&subject, &known, ""), @r#"
    # OODA Loop Iteration

    This is iteration 4 of 5 of procedure `fix`. crew starts a fresh process for each: you know nothing of the iterations before, and the next will know nothing of yours but what is in files and commits. Nobody answers questions while you work.

    ## HANDOFF

    This loop was handed over to you. What was done before, as of /repo/.claude/branches/main/handoffs/task-1.md:

    # Handoff

    The lexer is done.

    ## CONTEXT

    Only the parser's tests.

    ## OBSERVE

    See what fails, with your own eyes. In this order:

    1. Read `AGENTS.md`, else `CLAUDE.md` or the README, for the commands that check this project.
    2. These checks did not pass when crew last ran them. Run each one yourself:
       - `cargo test`
    3. Read the whole output of a failure, from its first error on: later errors are often only its echo.
    4. Read the EVIDENCE below: what earlier iterations tried. Then `PLAN.md`, if it is there: its notes may name causes already ruled out.

    ## ORIENT

    Find the cause, not the place where it shows:

    - Which failures have one cause in common? Group them.
    - For the group to take first: what did the code do, what should it have done, and since when? `git log` and `git blame` of the lines involved often answer the last.
    - Say what you think the cause is, and look for what would prove you wrong: a smaller input, a printed value, a single test run alone.
    - Is the code wrong, the test, or the environment? A test is wrong only if it contradicts the specification; say which line does.
    - Was the same thing tried before, by the EVIDENCE? Then it is not the cause, or not the whole of it.

    ## DECIDE

    Choose one cause for this iteration: the one that hides others, or else the one that makes the most checks fail. Say in two or three sentences what the cause is, how you know, what you will change, and which command will show that it is mended.

    If every check passes, run all of them once more, from a clean state where you can. Still green: nothing is left to fix, and you may claim it.

    ## ACT

    Mend that cause:

    1. Make the failure small: the one test or command that shows it, run by itself.
    2. Change as little as mends it, in the manner of the code around it. No rewriting beside the point.
    3. If no test would have caught it, add one and see it fail without your change.
    4. Run that command, then every check of the project: what passed before must still pass.
    5. If something still fails, note in `PLAN.md`, under Notes, what you ruled out and what you would try next. If nothing does, delete such notes.

    Be exact about what you know:

    - "Passes" is for a command that you ran in this iteration, after your last edit, and saw pass. Name the command.
    - What you did not run or could not check, call unchecked. An honest gap helps the next iteration; a hidden one costs it.
    - Never make a check pass by weakening it: no test deleted, skipped or loosened, no warning silenced, no check's settings changed to get there. If a check itself is wrong, write down why and leave that decision to a person.

    Do not commit: crew commits what you leave in the working tree when this iteration ends. Leave nothing there that does not belong in a commit.

    Then stop. If the cause is outside this tree (a service that is down, a missing secret, a wrong machine), do not work around it: say so, as the rules below tell you to.

    ## EVIDENCE

    What crew saw after iteration 3:
    - Its claim was refused.
    - `cargo test` (verify) failed (exit 1).
      Its last lines:
        test parse::lists ... FAILED
        1 failed; 3 passed

    What the last iterations came to:
    - Iteration 1: `cargo test` failed (exit 1); files, commits or checks changed.
    - Iteration 2: `cargo test` failed (exit 1); nothing changed.
    - Iteration 3: claimed done, refused: `cargo test` failed (exit 1); nothing changed.

    The user says:
    Leave src/old alone.
    It goes next week.

    Nothing changed in the last 3 iterations; after 5 the loop ends as stalled. Try another approach, or say what blocks you.

    ## HOW TO FINISH

    - When the whole task is done, and only then, let the last line of your final message be <promise>COMPLETE</promise> alone, outside code blocks and quotes. crew then runs `cargo test` itself and believes only that.
    - If work is left after this iteration's part, make no claim and stop: the next iteration goes on.
    - If only a person can help, let that line be <promise>BLOCKED: the reason</promise>; if this iteration failed, <promise>FAILURE: the reason</promise>. Both are honest; an untrue claim is not.

    Now begin iteration 4.
    "#);
}

#[test]
fn after_an_answer_that_was_cut_the_next_carries_on_from_there() {
    let mut subject = of_task("Build it", Recipe::default());
    let mut cut = facts(Claim::Success);
    cut.seen.agent.cut = true;
    subject = judge(&subject, &cut).after;
    let text = made(&subject, &Known::default(), "");
    assert!(
        text.contains("cut by the token limit; what it changed is there. Carry on from there.")
    );
}

#[test]
fn a_task_alone_needs_no_phases_and_its_act_stands_beside_it() {
    let plain = made(&of_task("Build it", Recipe::default()), &Known::default(), "");
    assert!(plain.starts_with("# Loop Iteration\n\nThis is iteration 1 of 10."));
    assert!(plain.contains("\n\n## TASK\n\nBuild it\n\n## HOW TO FINISH\n\n"));
    let act = Recipe { act: vec![Fragment::Text("Slowly.".to_owned())], ..Recipe::default() };
    let both = made(&of_task("Build it", act.clone()), &Known::default(), "");
    assert!(both.contains("\n\n## TASK\n\nBuild it\n\n## ACT\n\nSlowly.\n\n## HOW"));
    let mut procedure = of_task("the build procedure", act);
    procedure.contract.run.as_mut().unwrap().procedure = Some("own".to_owned());
    assert!(!made(&procedure, &Known::default(), "").contains("TASK"));
}

#[test]
fn a_value_is_inserted_as_it_is_and_never_expanded_again() {
    let recipe = Recipe { context: vec![Fragment::File("/p/a.hbs".into())], ..Recipe::default() };
    let hostile = "{{task}} {{> x.hbs}} {{{{raw}}}} <b>&\"'` {{#if";
    let known = Known { git_diff: Some(hostile), ..Known::default() };
    let text =
        made(&of_task("t", recipe), &known, "[{{git-diff}}] [{{{git-diff}}}] \\{{git-diff}}");
    assert!(text.contains(&format!("[{hostile}] [{hostile}] {{{{git-diff}}}}")), "{text}");
}

#[test]
fn a_long_value_is_cut_at_a_line_and_says_so_but_the_task_is_whole() {
    let recipe = Recipe { context: vec![Fragment::File("/p/a.hbs".into())], ..Recipe::default() };
    let diff = "+ another line of 日本語\n".repeat(2000);
    let known = Known { git_diff: Some(&diff), ..Known::default() };
    let task = "x".repeat(10_000_000);
    let text = made(&of_task(&task, recipe), &known, "{{git-diff}}\n{{task}}");
    assert_eq!(text.matches(&task).count(), 2);
    let shown = text.matches("another line").count();
    assert!((500..600).contains(&shown), "{shown}");
    assert!(text.contains("日本語\n[crew left out the other "));
    assert!(text.len() < 2 * task.len() + VALUE_BYTES_MAX + 3000);
}

#[test]
fn a_baseline_is_the_evidence_of_the_first_prompt() {
    let mut subject = of("fix");
    let memory = crate::engine::looped::CheckMemory { last: Verdict::Failed, ever_failed: true };
    subject.state.checks.insert("cargo test".to_owned(), memory);
    let text = made(&subject, &Known::default(), "");
    assert!(text.contains(
        "## EVIDENCE\n\nWhat crew saw before iteration 1:\n- `cargo test` did not pass.\n"
    ));
    assert!(text.contains("Run each one yourself:\n   - `cargo test`\n3. Read"), "{text}");
}

#[test]
fn no_line_of_crews_own_is_a_claim() {
    for name in procedures::names() {
        let subject = of(name);
        let known = Known { git_status: Some("M a"), git_log: Some("1 b"), ..Known::default() };
        let text = made(&subject, &known, "");
        assert!(text.ends_with("\n\nNow begin iteration 1."));
        let mut before = String::new();
        for line in text.lines() {
            before.push_str(line);
            before.push('\n');
            for said in [line, &before] {
                let claim = read(said, subject.contract.promise.as_ref());
                let is_heard = !matches!(claim, Claim::None | Claim::NearMiss(_));
                assert!(!is_heard, "{name}: {line:?} is {claim:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_a_person_writes_comes_through_byte_for_byte_and_is_no_claim(
        task in "(\\PC|\n|\\{\\{|\\}\\}|#if|<b>&\"|\\$\\{\\{ secrets\\.X \\}\\}|<promise>COMPLETE</promise>\n?){1,60}",
        context in "(\\PC|\n|\r|\\{\\{task\\}\\}|&amp;|\\\\){1,60}",
        words in "(\\PC|\n|\\{\\{|`|<promise>BLOCKED</promise>){1,60}",
        file in "(\\PC|\n|\\{\\{|\\}\\}){1,60}",
    ) {
        let recipe = Recipe {
            context: vec![Fragment::Text(context.clone()), Fragment::File("/p/a.md".into())],
            orient: vec![Fragment::BuiltIn("build/orient".to_owned())],
            ..Recipe::default()
        };
        let mut subject = of_task(&task, recipe);
        subject.state.words = vec![words.clone()];
        let text = made(&subject, &Known::default(), &file);
        for (heading, literal) in [
            ("## TASK\n\n", &task),
            ("## CONTEXT\n\n", &context),
            ("The user says:\n", &words),
            ("\n\n", &file),
        ] {
            let is_there = text.contains(&format!("{heading}{literal}"));
            prop_assert!(is_there || literal == &file && text.contains(literal.as_str()));
        }
        prop_assert!(text.ends_with("\n\nNow begin iteration 1."));
        let claim = read(&text, subject.contract.promise.as_ref());
        prop_assert!(matches!(claim, Claim::None | Claim::NearMiss(_)), "{claim:?}");
    }
}

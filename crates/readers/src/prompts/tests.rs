use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::parse::settings::merge::{Layers, merge_layers};
use crate::prompts::procedures;
use crate::prompts::variables::VALUE_BYTES_MAX;
use engine::boundary::judge::judge_boundary;
use engine::claim::{Claim, read};
use engine::evidence::Verdict;
use engine::fixture::{SetState, a_loop_with, facts, result};
use engine::journal::story::IterationSummary;
use engine::record::{
    Agent, CheckMemory, Dialect, Fragment, GitSteps, IterationTimes, Permissions, Phase, PromptVia,
    Recipe, Role, Run,
};

fn a_run(procedure: Option<&str>, recipe: Recipe) -> Run {
    let agent = Agent {
        name: "claude".to_owned(),
        command: vec!["claude".to_owned()],
        prompt: PromptVia::Stdin,
        dialect: Dialect("claude".into()),
        permissions: [].into(),
        ..Agent::default()
    };
    Run {
        procedure: procedure.map(str::to_owned),
        agent,
        permissions: Permissions::default(),
        recipe,
        pace: IterationTimes::default(),
        max_turns: 0,
        token_budget: 100_000,
        may_sleep: false,
        git: GitSteps::default(),
        ..Run::default()
    }
}

fn of(procedure: &str) -> Loop {
    let mut subject = a_loop_with(&[("cargo test", Role::Verify)]);
    let settings = merge_layers(&Layers::default(), Some(procedure)).unwrap();
    subject.contract.run = Some(a_run(Some(procedure), settings.recipe().clone()));
    subject.contract.limits.max_iterations = 5;
    subject
}

fn of_task(task: &str, recipe: Recipe) -> Loop {
    let mut subject = a_loop_with(&[]);
    subject.contract.task = task.to_owned();
    subject.contract.run = Some(a_run(None, recipe));
    subject
}

fn made(subject: &Loop, known: &PromptInputs<'_>, files: &str) -> String {
    let recipe = &subject.contract.run.as_ref().unwrap().recipe;
    build_prompt(subject, &Parts::read_recipe(recipe, &|_, _| Ok(files.to_owned())).unwrap(), known)
        .unwrap()
}

#[test]
fn a_first_prompt_names_the_role_the_phases_and_how_to_finish() {
    let subject = of("build");
    let known = PromptInputs {
        git_status: Some(" M src/lib.rs\n?? notes.txt\n"),
        git_log: Some("1a2b3c4 Add the list endpoint\n"),
        ..PromptInputs::default()
    };
    assert_snapshot!("the_first_prompt_of_build", made(&subject, &known, ""));
}

#[test]
fn a_fourth_prompt_says_what_crew_saw_and_what_came_before() {
    let mut subject = of("fix");
    let mut accounts = Vec::new();
    subject.contract.run.as_mut().unwrap().git.commit = true;
    let context = vec![Fragment::Text("Only the parser's tests.".to_owned())];
    subject.contract.run.as_mut().unwrap().recipe.0.insert(Phase::Context, context);
    for claim in [Claim::None, Claim::None, Claim::Success] {
        let mut facts = facts(claim);
        facts.checks = vec![result("cargo test", Verdict::Failed)];
        facts.checks[0].tail = "test parse::lists ... FAILED\n1 failed; 3 passed".to_owned();
        subject = judge_boundary(&subject, &facts).after;
        accounts.push(IterationSummary::from_evidence(
            subject.state.seen().evidence().as_ref().unwrap(),
        ));
    }
    subject.state.set("still", 3);
    subject.state.set("words", vec!["Leave src/old alone.\nIt goes next week.".to_owned()]);
    let page = "/repo/.claude/branches/main/handoffs/task-1.md";
    let page = (page.into(), "# Handoff\n\nThe lexer is done.\n".to_owned());
    let known =
        PromptInputs { accounts: &accounts, handoff: Some(&page), ..PromptInputs::default() };
    assert_snapshot!("the_fourth_prompt_of_fix", made(&subject, &known, ""));
}

#[test]
fn the_prompt_after_a_truncated_answer_says_to_continue_from_there() {
    let mut subject = of_task("Build it", Recipe::default());
    let mut cut = facts(Claim::Success);
    cut.seen.agent.cut = true;
    subject = judge_boundary(&subject, &cut).after;
    let text = made(&subject, &PromptInputs::default(), "");
    assert!(text.contains("The answer was truncated by the token limit; its changes are kept."));
}

#[test]
fn a_task_without_phases_is_followed_by_how_to_finish() {
    let plain = made(&of_task("Build it", Recipe::default()), &PromptInputs::default(), "");
    assert!(plain.starts_with("# Loop Iteration\n\nThis is iteration 1 of 10."));
    assert!(plain.contains("\n\n## TASK\n\nBuild it\n\n## HOW TO FINISH\n\n"));
    let act = Recipe([(Phase::Act, vec![Fragment::Text("Slowly.".to_owned())])].into());
    let both = made(&of_task("Build it", act.clone()), &PromptInputs::default(), "");
    assert!(both.contains("\n\n## TASK\n\nBuild it\n\n## ACT\n\nSlowly.\n\n## HOW"));
    let mut procedure = of_task("the build procedure", act);
    procedure.contract.run.as_mut().unwrap().procedure = Some("own".to_owned());
    assert!(!made(&procedure, &PromptInputs::default(), "").contains("TASK"));
}

#[test]
fn a_task_that_asks_for_handoffs_is_followed_by_the_command_that_writes_one() {
    let known = PromptInputs { crew: Some("'/my tools/crew'"), ..PromptInputs::default() };
    let line = "\n- A page for whoever continues: '/my tools/crew' handoff task \"what";
    for (task, is_there) in
        [("Build it. Handoff after each: /crew:handoff", true), ("Build it", false)]
    {
        let made = made(&of_task(task, Recipe::default()), &known, "");
        assert_eq!(made.contains(line), is_there, "{made}");
    }
}

#[test]
fn a_value_is_inserted_unchanged_and_never_expanded() {
    let recipe = Recipe([(Phase::Context, vec![Fragment::File("/p/a.j2".into())])].into());
    let hostile = "{{ task }} {% include \"x.j2\" %} {% raw %} {# <b>&\"'` {% if";
    let known = PromptInputs { git_diff: Some(hostile), ..PromptInputs::default() };
    let template = "[{{ git_diff }}] [{{git_diff}}] {% raw %}{{ git_diff }}{% endraw %}";
    let text = made(&of_task("t", recipe), &known, template);
    assert!(text.contains(&format!("[{hostile}] [{hostile}] {{{{ git_diff }}}}")), "{text}");
}

#[test]
fn the_blocks_of_a_template_work_as_in_jinja() {
    let recipe = Recipe([(Phase::Context, vec![Fragment::File("/p/a.j2".into())])].into());
    let mut subject = of_task("T", recipe);
    subject.state.set("words", vec!["one {{ task }}".to_owned(), "two".to_owned()]);
    let table = [
        (
            "{% for word in words %}{{ loop.index0 }}={{ word }}{% if not loop.last %}, {% endif %}{% endfor %}",
            "0=one {{ task }}, 1=two",
        ),
        (
            "{% for word in words %}{% if loop.first %}{{ task }}{% endif %}{% for _ in words %}{{ task }}{% endfor %}{% endfor %}",
            "TTTTT",
        ),
        (
            "{% for one in failing %}x{% else %}none of {{ max_iterations }}{% endfor %}",
            "none of 10",
        ),
        ("{% if failing %}red{% elif iteration > 1 %}later{% else %}first{% endif %}", "first"),
        ("{% if task == \"T\" and not crew_commits %}{{ words | length }}{% endif %}", "2"),
        (
            "{% raw %}{{ task }} {{ git_stat }}{% endraw %}{# gone {% include \"gone\" %} #}.",
            "{{ task }} {{ git_stat }}.",
        ),
        ("{%- if not git_diff %}\n  {# alone #}\nclean\n  {% endif %}", "clean"),
    ];
    for (template, expected) in table {
        let text = made(&subject, &PromptInputs::default(), template);
        assert!(
            text.contains(&format!("## CONTEXT\n\n{expected}\n\n## TASK")),
            "{template}: {text}"
        );
    }
    let run = subject.contract.run.as_ref().unwrap();
    for (template, expected) in [
        ("\n{{ task | shout }}", "unknown filter: filter shout is unknown (in /p/a.j2:2)"),
        ("{{ task.gone }}", "undefined value (in /p/a.j2:1)"),
        (
            "{% for a in words * 999 %}{% for b in words * 999 %}{{ b }}{% endfor %}{% endfor %}",
            "engine ran out of fuel",
        ),
    ] {
        let parts = Parts::read_recipe(&run.recipe, &|_, _| Ok(template.to_owned())).unwrap();
        let error = build_prompt(&subject, &parts, &PromptInputs::default()).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_long_value_is_truncated_at_a_line_break_with_a_note_but_the_task_is_whole() {
    let recipe = Recipe([(Phase::Context, vec![Fragment::File("/p/a.j2".into())])].into());
    let diff = "+ another line of 日本語\n".repeat(2000);
    let known = PromptInputs { git_diff: Some(&diff), ..PromptInputs::default() };
    let task = "x".repeat(10_000_000);
    let text = made(&of_task(&task, recipe), &known, "{{ git_diff }}\n{{ task }}");
    assert_eq!(text.matches(&task).count(), 2);
    let shown = text.matches("another line").count();
    assert!((500..600).contains(&shown), "{shown}");
    assert!(text.contains("日本語\n[crew left out the other "));
    assert!(text.len() < 2 * task.len() + VALUE_BYTES_MAX + 3000);
}

#[test]
fn the_first_prompt_contains_the_baseline_as_its_evidence() {
    let mut subject = of("fix");
    let mut memory = CheckMemory::from_result(&result("cargo test", Verdict::Failed), 0, None);
    memory.tail = "test b ... FAILED\n\n1 failed".to_owned();
    subject.state.remember_check("cargo test".to_owned(), memory);
    let text = made(&subject, &PromptInputs::default(), "");
    assert!(text.contains(
        "## WHERE IT STANDS (crew's own record)\n\nNothing was done yet. Before iteration 1:\n- `cargo test` failed (exit 1).\n  \
         Its last lines:\n    test b ... FAILED\n    \n    1 failed\n"
    ));
    assert!(text.contains("Run each one yourself:\n   - `cargo test`\n3. Read"), "{text}");
}

#[test]
fn no_line_of_crews_prompts_is_a_claim() {
    for name in procedures::NAMES {
        let subject = of(name);
        let known = PromptInputs {
            git_status: Some("M a"),
            git_log: Some("1 b"),
            ..PromptInputs::default()
        };
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
    fn whatever_a_person_writes_is_kept_byte_for_byte_and_is_not_a_claim(
        task in "(\\PC|\n|\\{\\{|\\}\\}|\\{%|<b>&\"|\\$\\{\\{ secrets\\.X \\}\\}|<promise>COMPLETE</promise>\n?){1,60}",
        context in "(\\PC|\n|\r|\\{\\{ task \\}\\}|&amp;|\\\\){1,60}",
        words in "(\\PC|\n|\\{\\{|`|<promise>BLOCKED</promise>){1,60}",
        file in "(\\PC|\n|\\{\\{|\\}\\}){1,60}",
    ) {
        let texts = vec![Fragment::Text(context.clone()), Fragment::File("/p/a.md".into())];
        let orient = vec![Fragment::BuiltIn("build/orient".to_owned())];
        let recipe = Recipe([(Phase::Context, texts), (Phase::Orient, orient)].into());
        let mut subject = of_task(&task, recipe);
        subject.state.set("words", vec![words.clone()]);
        let text = made(&subject, &PromptInputs::default(), &file);
        for (heading, literal) in [
            ("## TASK\n\n", &task),
            ("## CONTEXT\n\n", &context),
            ("## THE USER SAYS\n\n", &words),
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

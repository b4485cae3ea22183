//! Folders of tasks in real repositories.

use std::path::PathBuf;

use super::fixture::{A_TASK, Yard};
use super::*;
use crate::drive::failure::failure_of;
use crate::fleet::record::FleetTerms;
use crate::fleet::store::refuse_other_fleet;
use engine::failure::FailureKind;
use engine::fleet::LandingMode;
use readers::parse::arguments::FleetRunArgs;
use world::files::disk;

/// The refusal because the machine or git lacks something.
fn refusal_of(described: anyhow::Result<DescribedFleet>) -> String {
    reason_of(described, FailureKind::Error)
}

/// The refusal because the command line or a file is wrong.
fn refused_as_wrong(described: anyhow::Result<DescribedFleet>) -> String {
    reason_of(described, FailureKind::Usage)
}

fn reason_of(described: anyhow::Result<DescribedFleet>, kind: FailureKind) -> String {
    let failure = failure_of(&described.expect_err("a fault"));
    assert_eq!(failure.kind, kind, "{failure}");
    failure.with_hint()
}

#[test]
fn a_folder_becomes_a_fleet_and_the_command_line_overrides_its_file() {
    let yard = Yard::new();
    let file = "slots = 3\nmax-cost = 5\nsetup = 'true'\nsetup-timeout = '2m'\nkeep-branches = true\n\
                [land]\nkeep = 'target'\ncheck = 'true'\n";
    yard.write("shop/tasks/fleet.toml", file);
    let described = yard.describe(&Yard::arguments()).unwrap();
    let terms = &described.terms;
    assert_eq!((&*terms.name, &*terms.folder, &*terms.base), ("shop", "tasks", "main"));
    assert_eq!(
        (terms.limits.slots, terms.limits.max_cost_micros, terms.clones.setup_timeout_s),
        (3, 5_000_000, 120)
    );
    assert!(terms.keeps_branches && terms.remote.is_none());
    assert_eq!((terms.landing, &*terms.land_keep), (LandingMode::No, &["target".to_owned()][..]));
    let names: Vec<&str> = described.tasks.iter().map(|task| task.task.id.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(described.tasks[0].contract.checks[0].run, "test -f done");
    let run = described.tasks[0].contract.run.as_ref().unwrap();
    assert!(run.git.commit && !run.git.push);

    let typed = FleetRunArgs { slots: Some(1), max_cost_micros: Some(0), ..Yard::arguments() };
    let terms = yard.describe(&typed).unwrap().terms;
    assert_eq!((terms.limits.slots, terms.limits.max_cost_micros), (1, 0));
    let terms = yard.landing().terms;
    assert_eq!((terms.landing, terms.remote.unwrap().name.as_str()), (LandingMode::Main, "origin"));
}

#[test]
fn a_fleet_has_the_name_of_its_folder_or_else_of_the_project() {
    let yard = Yard::new();
    let name_of = |here: &str, folder: &str| {
        let arguments = FleetRunArgs { folder: PathBuf::from(folder), ..FleetRunArgs::default() };
        describe_fleet(&yard.home, &arguments, &yard.path(here)).unwrap().terms.name
    };
    yard.write("shop/billing/a.md", A_TASK);
    assert_eq!(name_of("shop", "billing"), "billing");
    yard.git("shop", &["worktree", "add", "-q", "../other"]);
    assert_eq!(name_of("other", "tasks"), "shop");
    // A bare repository beside its working trees.
    yard.git(".", &["clone", "-q", "--bare", "origin.git", "project/.bare"]);
    yard.git("project/.bare", &["worktree", "add", "-q", "../main", "main"]);
    assert_eq!(name_of("project/main", "tasks"), "project");
    yard.git(".", &["clone", "-q", "--bare", "origin.git", "till.git"]);
    yard.git("till.git", &["worktree", "add", "-q", "../trunk", "main"]);
    assert_eq!(name_of("trunk", "tasks"), "till");
}

#[test]
fn a_fleet_with_the_name_of_one_from_another_folder_or_repository_is_refused() {
    let yard = Yard::new();
    let known = yard.describe(&Yard::arguments()).unwrap().terms;
    assert!(refuse_other_fleet(&known, &known).is_ok());
    yard.git("shop", &["worktree", "add", "-q", "../other"]);
    let elsewhere = FleetTerms { repository: yard.path("other"), ..known.clone() };
    assert!(refuse_other_fleet(&elsewhere, &known).is_ok());
    let folder = FleetTerms { folder: "fleet".to_owned(), ..known.clone() };
    let why = failure_of(&refuse_other_fleet(&folder, &known).unwrap_err()).with_hint();
    assert!(
        why.starts_with("the fleet shop belongs to the tasks in tasks\nhint: name = "),
        "{why}"
    );
    yard.git(".", &["clone", "-q", "origin.git", "copy"]);
    let copy = FleetTerms { repository: yard.path("copy"), ..known.clone() };
    let why = failure_of(&refuse_other_fleet(&copy, &known).unwrap_err()).with_hint();
    assert!(why.contains("there is a fleet shop of another repository"), "{why}");
}

#[test]
fn every_fault_of_a_folder_is_reported_on_a_separate_line() {
    let yard = Yard::new();
    yard.write("shop/tasks/a\nb.md", A_TASK);
    yard.write("shop/tasks/c.md", "---\nagent: nobody\n---\nDo it.\n");
    let why = refused_as_wrong(yard.describe(&Yard::arguments()));
    assert_eq!(why.lines().count(), 3, "{why}");
    assert!(why.contains("\n  a b.md: \"a\\nb\" cannot be a part of a branch"), "{why}");
    disk::remove(&yard.path("shop/tasks/a\nb.md")).unwrap();
    let why = refused_as_wrong(yard.describe(&Yard::arguments()));
    assert!(why.contains("\n  c.md: ") && why.contains("nobody"), "{why}");
}

#[test]
fn a_prompt_too_long_for_a_spec_is_reported_as_a_fault_of_its_file() {
    let yard = Yard::new();
    let front = "---\nagent-cmd: sh -c true\n---\n";
    yard.write("shop/tasks/quotes.md", &format!("{front}x{}", "\"\\".repeat(100 << 10)));
    assert!(yard.describe(&Yard::arguments()).is_ok());
    yard.write("shop/tasks/codes.md", &format!("{front}x{}", "\u{1}".repeat(250 << 10)));
    let why = refused_as_wrong(yard.describe(&Yard::arguments()));
    assert!(why.contains("\n  codes.md: with its escapes") && why.contains("1024"), "{why}");
}

#[test]
fn a_template_that_other_machines_lack_is_reported_as_a_fault_of_its_file() {
    let yard = Yard::new();
    yard.write("shop/tasks/_log.j2", "{{ git_log }}");
    let front = "---\nagent-cmd: sh -c true\ncontext: tasks/_log.j2\n---\nDo it.\n";
    yard.write("shop/tasks/c.md", front);
    assert!(yard.describe(&Yard::arguments()).is_ok());
    let elsewhere = FleetRunArgs { on: Some("slurm".to_owned()), ..Yard::arguments() };
    let why = refused_as_wrong(yard.describe(&elsewhere));
    assert!(why.contains("\n  c.md: the template ") && why.contains("not a template"), "{why}");
}

#[test]
fn a_folder_that_cannot_be_a_fleet_is_refused_with_the_reason() {
    let yard = Yard::new();
    let outside = testkit::folder();
    let why = refused_as_wrong(describe_fleet(&yard.home, &Yard::arguments(), outside.path()));
    assert!(why.contains("cannot") && why.ends_with("\nhint: correct the path"), "{why}");
    std::fs::create_dir(outside.path().join("tasks")).unwrap();
    let why = refusal_of(describe_fleet(&yard.home, &Yard::arguments(), outside.path()));
    assert!(why.starts_with("a fleet needs a git repository"), "{why}");
    yard.write("shop/c.md", A_TASK);
    let root =
        FleetRunArgs { folder: ".".into(), land: Some(LandingMode::Main), ..Default::default() };
    let why = refused_as_wrong(yard.describe(&root));
    assert!(why.starts_with("tasks at the root of the repository"), "{why}");
    yard.git("shop", &["switch", "-q", "--detach"]);
    let why = refusal_of(yard.describe(&Yard::arguments()));
    assert!(why.starts_with("no branch is checked out here"), "{why}");
    let running = FleetRunArgs { base: Some("main".to_owned()), ..Yard::arguments() };
    assert_eq!(yard.describe(&running).unwrap().terms.base, "main");
    // A tag is not a branch.
    yard.git("shop", &["tag", "nowhere"]);
    yard.write("shop/tasks/fleet.toml", "base = 'nowhere'");
    let why = refused_as_wrong(yard.describe(&Yard::arguments()));
    assert!(why.starts_with("base in fleet.toml: this repository has no branch nowhere"), "{why}");
}

#[test]
fn everything_that_needs_trust_is_asked_about_once_and_again_after_a_change() {
    let yard = Yard::new();
    yard.write("shop/tasks/fleet.toml", "setup = 'true'\n[land]\ncheck = 'make'\n");
    yard.write("shop/.worktreeinclude", ".env\n");
    let asked = |described: &DescribedFleet| -> Vec<String> {
        described
            .untrusted
            .iter()
            .map(|request| request.text.replace("[fleet shop] ", ""))
            .collect()
    };
    let described = yard.describe(&Yard::arguments()).unwrap();
    let first = asked(&described);
    for what in ["terms: slots usual", "setup: true", "land check: make", ".worktreeinclude: .env"]
    {
        assert!(first.iter().any(|text| text.starts_with(what)), "{what}: {first:?}");
    }
    let task = first.iter().find(|text| text.starts_with("task a, fingerprint ")).unwrap();
    assert!(task.ends_with(r#"agent-cmd = "sh -c true", verify = ["test -f done"]"#), "{task}");
    world::store::settings::trust_requests(&yard.home, &yard.path("shop"), &described.untrusted)
        .unwrap();
    assert_eq!(asked(&yard.describe(&Yard::arguments()).unwrap()), [""; 0]);
    yard.write("shop/tasks/a.md", &A_TASK.replace("Do it", "Do more"));
    let again = asked(&yard.describe(&Yard::arguments()).unwrap());
    assert!(again.len() == 1 && again[0].starts_with("task a, "), "{again:?}");
    let pushes = asked(&yard.landing());
    assert!(
        pushes
            .iter()
            .any(|text| text.starts_with("pushes to origin (") && text.ends_with(", and main"))
    );
}

#[test]
fn untrusted_settings_of_the_project_are_named_and_no_task_is_blamed() {
    let yard = Yard::new();
    yard.write("shop/.claude/crew.toml", "[loop]\nmax-iterations = 99\nverify = \"make\"\n");
    let why = refused_as_wrong(yard.describe(&Yard::arguments()));
    let lines: Vec<&str> = why.lines().collect();
    assert!(lines[0].starts_with("the project's settings need trust"), "{why}");
    assert!(lines[1].contains(".claude/crew.toml:2: [loop] max-iterations = 99"), "{why}");
    assert!(lines[2].contains(".claude/crew.toml:3: verify "), "{why}");
    let hint = "hint: read them, then run `crew trust` in a terminal here";
    assert_eq!(lines[lines.len() - 1], hint);
    assert!(!why.contains(".md"), "{why}");
    // A fleet has no --no-project.
    yard.write("shop/.claude/crew.toml", "[loop");
    let why = refused_as_wrong(yard.describe(&Yard::arguments()));
    assert!(why.ends_with("\nhint: correct that; nothing was started"), "{why}");
}

#[test]
fn an_unknown_executor_is_refused_even_in_a_dry_run() {
    let yard = Yard::new();
    let on = Some("nowhere".to_owned());
    let arguments = FleetRunArgs { on, dry_run: true, ..Yard::arguments() };
    let why = refused_as_wrong(yard.describe(&arguments));
    assert!(why.starts_with("executor `nowhere` does not exist\nhint: name one of"), "{why}");
}

#[test]
fn more_tasks_than_fit_in_a_record_are_refused_at_the_start() {
    let yard = Yard::new();
    for number in 0..2000 {
        yard.write(&format!("shop/tasks/t{number}.md"), A_TASK);
    }
    let why = refused_as_wrong(yard.describe(&Yard::arguments()));
    assert!(why.contains("has 2002 tasks, and a fleet at most 2000"), "{why}");
}

#[test]
fn files_that_do_not_form_a_fleet_are_a_usage_error() {
    let table = [
        ("shop/tasks/c.md", "x".repeat((1 << 20) + 1), "c.md: it is larger than 1048576 bytes"),
        ("shop/tasks/fleet.toml", "#".repeat((1 << 20) + 1), "fleet.toml: it is larger than"),
        ("shop/.worktreeinclude", "#".repeat((1 << 20) + 1), ".worktreeinclude: it is larger"),
        ("shop/tasks/fleet.toml", "name = 'a b'".to_owned(), "name"),
    ];
    for (file, text, expected) in table {
        let yard = Yard::new();
        yard.write(file, &text);
        let why = refused_as_wrong(yard.describe(&Yard::arguments()));
        assert!(why.contains(expected), "{why}");
        assert_eq!(
            why.contains("larger"),
            why.ends_with("\nhint: make it smaller, or move it away")
        );
    }
    let yard = Yard::new();
    let typed = |folder: &str| FleetRunArgs { folder: folder.into(), ..Yard::arguments() };
    let why = refused_as_wrong(yard.describe(&typed("tasks/a.md")));
    assert!(why.contains("tasks/a.md is a file"), "{why}");
    std::fs::create_dir(yard.path("shop/empty")).unwrap();
    let why = refused_as_wrong(yard.describe(&typed("empty")));
    assert!(why.contains("empty has no task") && why.ends_with("empty/NAME.md"), "{why}");
}

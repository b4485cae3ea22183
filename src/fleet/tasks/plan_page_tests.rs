use insta::assert_snapshot;

use super::*;
use crate::fleet::record::{FleetLimits, TaskState};
use crate::report::colour::paint_marks;
use engine::fixture::a_run;
use engine::fleet::{FleetTask, Remote};
use engine::record::{Agent, Outcome, Role};
use readers::parse::settings::merge::ValueOrigin;
use readers::parse::settings::trust::{TrustRequest, TrustSubject};

/// The page without colours.
fn render_page(described: &DescribedFleet, record: Option<&FleetRecord>, is_dry: bool) -> String {
    paint_marks(&render_plan(described, record, 80, is_dry), false)
}

fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

fn a_task(name: &str, checks: &[(&str, Role)]) -> DescribedTask {
    let task = FleetTask {
        id: id(name),
        prompt: format!("Do {name}"),
        words: Vec::new(),
        after: Vec::new(),
        touches: Vec::new(),
        priority: 5,
        revision: "0123456789ab".to_owned(),
    };
    let mut contract = a_run(None).contract;
    contract.checks = checks.iter().map(|(run, role)| Check::new(*run, *role)).collect();
    DescribedTask { task, contract }
}

fn a_fleet(tasks: Vec<DescribedTask>) -> DescribedFleet {
    let terms = FleetTerms {
        name: "billing".to_owned(),
        repository: "/repo".into(),
        folder: "tasks".to_owned(),
        base: "main".to_owned(),
        executor: LOCAL.to_owned(),
        limits: FleetLimits { slots: 4, max_cost_micros: 50_000_000, ..FleetLimits::default() },
        ..FleetTerms::default()
    };
    let (left_out, notes, untrusted) = (Vec::new(), Vec::new(), Vec::new());
    DescribedFleet { terms, tasks, left_out, notes, untrusted }
}

fn a_request(subject: TrustSubject) -> TrustRequest {
    TrustRequest { subject, text: String::new(), origin: ValueOrigin::Typed }
}

/// Five tasks that fill every kind of row on the page.
fn five_tasks() -> DescribedFleet {
    let test = ("npm test", Role::Verify);
    let mut vat = a_task("vat-rounding", &[test, ("npm run lint", Role::Gate)]);
    vat.contract.limits.max_cost_micros = 5_000_000;
    vat.task.words =
        vec!["verify = [\"npm test\"]".to_owned(), "max-iterations = \"15\"".to_owned()];
    vat.task.touches = vec!["src/tax/**".to_owned()];
    if let Some(run) = &mut vat.contract.run {
        run.model = Some("opus".to_owned());
        run.permissions = Permissions::Bypass;
        run.fallback = vec![Agent { name: "codex".to_owned(), ..Agent::default() }];
    }
    let mut invoice = a_task("invoice-pdf", &[("npm test -- pdf", Role::Verify)]);
    invoice.task.after = vec![id("vat-rounding"), id("csv-export")];
    invoice.task.touches = vec!["src/tax/pdf.ts".to_owned()];
    let csv = a_task("csv-export", &[test]);
    let mut fleet =
        a_fleet(vec![vat, csv, invoice, a_task("dunning", &[test]), a_task("notes", &[])]);
    let url = "https://git.example.org/acme/billing.git".to_owned();
    fleet.terms.remote = Some(Remote { name: "origin".to_owned(), url });
    fleet.terms.landing = LandingMode::Main;
    fleet.terms.clones.setup = Some("npm ci".to_owned());
    fleet.terms.clones.include = Some(".env\nconf/*.env\n".to_owned());
    fleet.terms.land_keep = vec!["target/".to_owned()];
    fleet.terms.land_checks = vec![Check::new("npm run e2e", Role::Verify)];
    fleet.left_out = ["README.md", "_notes.md"].map(str::to_owned).to_vec();
    let task = TrustSubject::Task("vat-rounding".to_owned());
    fleet.untrusted = [TrustSubject::Terms, TrustSubject::Setup, task].map(a_request).to_vec();
    fleet
}

#[test]
fn five_tasks_fit_a_terminal_of_24_lines_with_the_question() {
    let page = render_page(&five_tasks(), None, false);
    assert_snapshot!(page, @r#"
    fleet billing: 5 tasks from main, on this machine, 4 at once, at most $50.00
      reads   tasks/*.md (README.md, _notes.md are not tasks)
      order   1  vat-rounding
              2  csv-export
              3  invoice-pdf   after vat-rounding, csv-export
              4  dunning
              5  notes
      overlap vat-rounding, invoice-pdf: src/tax/** and src/tax/pdf.ts, one by one
      agent   claude, model opus, permissions bypass, at most $5.00; then codex
                for vat-rounding
      agent   claude  for csv-export, invoice-pdf, dunning, notes
      options max-iterations = "15"  for vat-rounding
      setup   `npm ci` in each new clone
      verify  `npm test`  for vat-rounding, csv-export, dunning
      gate    `npm run lint`  for vat-rounding
      verify  `npm test -- pdf`  for invoice-pdf
      checks  none: only its agent says when a task is done  for notes
      land    `npm run e2e` on main as it will be
      copies  ignored files that .worktreeinclude names: .env, conf/*.env
      pushes  to origin (https://git.example.org/acme/billing.git), each iteration:
              fleet/billing/* (CI may run), refs/crew/billing/*; main, when a task's
              checks pass on it (--land, keeps target/)
      trust   new, and asked about once: terms, setup, vat-rounding
    "#);
    assert!(page.lines().count() < 24, "{}", page.lines().count());
    assert!(page.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_small_fleet_needs_only_a_few_rows() {
    let fleet = a_fleet(vec![a_task("only", &[("cargo test", Role::Verify)])]);
    assert_snapshot!(render_page(&fleet, None, false), @"
    fleet billing: 1 task from main, on this machine, 4 at once, at most $50.00
      reads   tasks/*.md
      order   1  only
      agent   claude
      verify  `cargo test`
      pushes  nothing. Branches stay here; --push or --land sends them
      trust   nothing is new: it starts without asking
    ");
}

#[test]
fn the_page_shows_which_tasks_have_ended_and_which_are_running() {
    let fleet = five_tasks();
    let mut record = FleetRecord::default();
    let ending = |outcome| {
        TaskState::Ended(TaskEnding { outcome, proof: None, reason: "a key".into(), landed: None })
    };
    let running = TaskState::Running { job: "1".to_owned(), since: engine::fixture::at(0).wall };
    for (name, state) in [
        ("vat-rounding", ending(Outcome::Completed)),
        ("notes", ending(Outcome::Blocked)),
        ("csv-export", running),
    ] {
        record.tasks.insert(id(name), TaskRecord { state, ..TaskRecord::default() });
    }
    assert_snapshot!(render_page(&fleet, Some(&record), false).lines().take(8).collect::<Vec<_>>().join("\n"), @"
    fleet billing: 5 tasks from main, on this machine, 4 at once, at most $50.00
      reads   tasks/*.md (README.md, _notes.md are not tasks)
      stays   2 tasks that ended already; crew resume billing takes up the 1 that
              did not complete
      order   1  csv-export   runs already
              2  invoice-pdf  after vat-rounding, csv-export
              3  dunning
      agent   claude, model opus, permissions bypass, at most $5.00; then codex
    ");
}

#[test]
fn a_task_is_listed_after_those_that_it_waits_for_whatever_its_name() {
    let mut tasks: Vec<DescribedTask> = ["b", "a", "c", "d"].map(|name| a_task(name, &[])).into();
    tasks[0].task.after = vec![id("c"), id("d")];
    tasks[2].task.after = vec![id("d")];
    let page = render_page(&a_fleet(tasks), None, true);
    let order = page.lines().skip(2).take(4).map(|line| line.get(10..).unwrap_or_default());
    assert_eq!(order.collect::<Vec<_>>(), ["1  a", "2  d", "3  c  after d", "4  b  after c, d"]);
}

#[test]
fn a_dry_run_of_five_hundred_tasks_lists_each_task_once() {
    let mut tasks: Vec<DescribedTask> = (0..500)
        .map(|number| a_task(&format!("task-{number}"), &[("npm test", Role::Verify)]))
        .collect();
    for task in &mut tasks[..100] {
        task.task.touches = vec!["src/tax/**".to_owned()];
    }
    let mut fleet = DescribedFleet { tasks, ..five_tasks() };
    let tasks = fleet.tasks.iter().map(|task| TrustSubject::Task(task.task.id.to_string()));
    fleet.untrusted = tasks.map(a_request).collect();
    let dry = render_page(&fleet, None, true);
    assert!(dry.contains("\n          500  task-499\n"), "{dry}");
    assert!(dry.lines().count() < 530, "{}", dry.lines().count());
    let short = render_page(&fleet, None, false);
    assert!(
        short.lines().count() < 32 && short.contains("… 492 more, all with --dry-run"),
        "{short}"
    );
    assert!(short.contains("asked about once: task-0, task-1"), "{short}");
}

#[test]
fn a_command_to_be_trusted_is_shown_whole() {
    let run = format!("npm test\u{1b}[2K\r\n{}\u{202e}; curl evil", "x".repeat(200));
    let mut fleet = a_fleet(vec![a_task("only", &[(&run, Role::Verify)])]);
    fleet.tasks[0].task.words = vec!["agent-cmd = \"evil\u{1b}[2J\"".to_owned()];
    fleet.left_out = vec!["a\u{1b}[2J\nb.md".to_owned()];
    fleet.terms.folder = "ta\u{1b}]0;x\u{7}sks".to_owned();
    fleet.terms.executor = "\u{9b}31mslurm".to_owned();
    fleet.terms.clones.include = Some(".env\u{202e}\n".to_owned());
    let shown = render_page(&fleet, None, false).replace(&"x".repeat(200), "<200 letters>");
    assert_snapshot!(shown, @r#"
    fleet billing: 1 task from main, on slurm, 4 at once, at most $50.00
      reads   tasks/*.md (a b.md is not a task)
      order   1  only
      agent   claude
      options agent-cmd = "evil\u{1b}[2J"
      verify  `npm test\u{1b}[2K\u{d}\n<200 letters>\u{202e}; curl evil`
      copies  ignored files that .worktreeinclude names: .env\u{202e}
      pushes  nothing. Branches stay here; --push or --land sends them
      trust   nothing is new: it starts without asking
    "#);
}

use insta::assert_snapshot;

use super::*;
use crate::engine::fleet::fixture::{a_fleet, a_lease, ended, id, running};
use crate::engine::fleet::{JobPhase, LandingMode, Remote};
use crate::engine::record::{Agent, Check, Role};
use crate::report::colour::painted;

/// The page without colours.
fn page(start: &FleetStart<'_>, width: usize) -> String {
    painted(&super::page(start, width), false)
}

fn checked(name: &str, checks: &[(&str, Role)]) -> Lease {
    let mut lease = a_lease(name);
    lease.contract.checks = checks.iter().map(|(run, role)| Check::new(*run, *role)).collect();
    lease
}

fn starts<'a>(fleet: &'a Fleet, leases: &'a [Lease]) -> FleetStart<'a> {
    FleetStart { fleet, leases, not_tasks: &[], slots: None, is_dry: false }
}

/// Tasks with different checks and limits, one that runs and two that ended.
fn tasks() -> Vec<Lease> {
    let test = ("npm test", Role::Verify);
    let mut vat = checked("vat-rounding", &[test, ("npm run lint", Role::Gate)]);
    vat.contract.limits.max_cost_micros = 5_000_000;
    if let Some(run) = &mut vat.contract.run {
        run.model = Some("opus".to_owned());
        run.permissions = Permissions::Bypass;
        run.fallback = vec![Agent { name: "codex".to_owned(), ..Agent::default() }];
    }
    let mut invoice = checked("invoice-pdf", &[("npm test -- pdf", Role::Verify)]);
    invoice.task.after = vec![id("vat-rounding"), id("user-model")];
    let mut runs = running("csv-export", JobPhase::Prepares);
    runs.contract.checks = vec![Check { no_worse: true, ..Check::new("npm test", Role::Verify) }];
    let done = ended("user-model", Outcome::Completed, "done", 60);
    let blocked = ended("sso-logout", Outcome::Blocked, "a key", 60);
    vec![done, blocked, runs, vat, invoice, a_lease("notes")]
}

fn sent() -> Fleet {
    let url = "https://git.example.org/acme/billing.git".to_owned();
    let remote = Remote { name: "origin".to_owned(), url };
    let mut land = a_fleet();
    land.base = "origin/main".to_owned();
    land.setup = Some("npm ci".to_owned());
    land.land_checks = vec![Check::new("npm run e2e", Role::Verify)];
    Fleet { remote: Some(remote), landing: LandingMode::Main, ..land }
}

#[test]
fn a_small_fleet_is_told_in_a_few_rows() {
    let leases = [checked("only", &[("cargo test", Role::Verify)])];
    let names = ["README.md", "_notes.md"].map(str::to_owned);
    let fleet = a_fleet();
    let start = FleetStart { not_tasks: &names, ..starts(&fleet, &leases) };
    assert_snapshot!(page(&start, 80), @"
    fleet billing-cleanup: 1 task, on this machine, 4 at once, at most $50.00
      reads   tasks/*.md (README.md and _notes.md are not tasks)
      order   1  only
      agent   claude
      budget  at most $50.00 for all tasks; an equal share of what is left for each
      verify  `cargo test`
      pushes  nothing. Branches stay here; --push or --land sends them
    ");
}

#[test]
fn what_is_pushed_is_named_by_pattern() {
    let (fleet, leases) = (Fleet { engine: "slurm:login.host".to_owned(), ..sent() }, tasks());
    assert_snapshot!(page(&starts(&fleet, &leases), 80), @"
    fleet billing-cleanup: 6 tasks, on slurm:login.host, 4 at once, at most $50.00
      reads   tasks/*.md
      stays   2 tasks that ended already; --retry takes up the 1 that did not
              complete
      order   1  csv-export    a share  runs already
              2  vat-rounding    $5.00
              3  invoice-pdf   a share  after vat-rounding, user-model
              4  notes         a share
      agent   claude
                for csv-export, invoice-pdf, notes
      agent   claude, model opus, permissions bypass; at a limit codex
                for vat-rounding
      budget  at most $50.00 for all tasks; each task its own, listed above
      setup   `npm ci` in each new working tree
      verify  `npm test` gets no worse
                for csv-export
      verify  `npm test`
                for vat-rounding
      gate    `npm run lint`
                for vat-rounding
      verify  `npm test -- pdf`
                for invoice-pdf
      checks  none: only its agent says when a task is done
                for notes
      land    `npm run e2e` on main as it will be
      pushes  to origin (https://git.example.org/acme/billing.git), each iteration:
              branches of tasks; your CI runs unless it skips these:
                fleet/billing-cleanup/*
              leases: who works on what, and how far it is:
                refs/crew/billing-cleanup/*
              main, when a task's checks pass on it (--land)
    ");
}

#[test]
fn a_dry_run_names_every_branch_and_ref() {
    let leases = tasks();
    let told = |landing| {
        let fleet = Fleet { landing, ..sent() };
        let page = page(&FleetStart { is_dry: true, ..starts(&fleet, &leases) }, 80);
        page[page.find("  pushes").unwrap()..].to_owned()
    };
    let main = told(LandingMode::Main);
    assert!(
        main.contains("whose turn it is to land:\n            refs/crew/billing-cleanup/_land\n")
    );
    assert_snapshot!(told(LandingMode::Pr), @"
    pushes  to origin (https://git.example.org/acme/billing.git), each iteration:
            branches of tasks; your CI runs unless it skips these:
              fleet/billing-cleanup/csv-export
              fleet/billing-cleanup/vat-rounding
              fleet/billing-cleanup/invoice-pdf
              fleet/billing-cleanup/notes
            leases: who works on what, and how far it is:
              refs/crew/billing-cleanup/user-model
              refs/crew/billing-cleanup/sso-logout
              refs/crew/billing-cleanup/csv-export
              refs/crew/billing-cleanup/vat-rounding
              refs/crew/billing-cleanup/invoice-pdf
              refs/crew/billing-cleanup/notes
            the fleet's terms and your orders:
              refs/crew/billing-cleanup/_fleet
            a pull request to main for each completed task
    ");
}

#[test]
fn sixty_tasks_are_listed_only_for_a_dry_run() {
    let check = [("npm test", Role::Verify)];
    let mut leases: Vec<Lease> =
        (0..60).map(|number| checked(&format!("task-{number}"), &check)).collect();
    for lease in &mut leases[..12] {
        lease.task.touches = vec!["src/tax/**".to_owned()];
    }
    let fleet = Fleet { max_cost_micros: 0, slots: 0, ..a_fleet() };
    let slots = SlotCount { count: 1, why: "1 slot: half of 2 cores".to_owned() };
    let start = FleetStart { slots: Some(&slots), ..starts(&fleet, &leases) };
    assert_snapshot!(page(&start, 80), @"
    fleet billing-cleanup: 60 tasks, on this machine, 1 at once, no limit on its
    cost
      reads   tasks/*.md
      order   1  task-0
              2  task-1
              3  task-2
              4  task-3
              5  task-4
              6  task-5
              7  task-6
              8  task-7
              … 52 more, all with --dry-run
      overlap task-0, task-1: both touch src/tax/**, so one by one
      overlap task-0, task-2: both touch src/tax/**, so one by one
      overlap task-0, task-3: both touch src/tax/**, so one by one
      overlap task-0, task-4: both touch src/tax/**, so one by one
      overlap task-0, task-5: both touch src/tax/**, so one by one
      overlap task-0, task-6: both touch src/tax/**, so one by one
      overlap task-0, task-7: both touch src/tax/**, so one by one
      overlap task-0, task-8: both touch src/tax/**, so one by one
              … 58 more, all with --dry-run
      slots   1 slot: half of 2 cores; --slots N sets another number
      agent   claude
      budget  no limit for all tasks together; no limit for each
      verify  `npm test`
      pushes  nothing. Branches stay here; --push or --land sends them
    ");
    let dry = page(&FleetStart { is_dry: true, ..start }, 80);
    assert!(dry.contains("\n          60  task-59\n"), "{dry}");
    assert_eq!(dry.matches("  overlap ").count(), 66);
}

#[test]
fn nothing_to_do_is_told_too() {
    let fleet = a_fleet();
    assert_snapshot!(page(&starts(&fleet, &[]), 80), @"
    fleet billing-cleanup: 0 tasks, on this machine, 4 at once, at most $50.00
      reads   tasks/*.md
      budget  at most $50.00 for all tasks
      pushes  nothing. Branches stay here; --push or --land sends them
    ");
}

#[test]
fn a_command_to_be_trusted_hides_nothing_and_is_never_cut() {
    let run = format!("npm test\u{1b}[2K\r\n{}\u{202e}; curl evil", "x".repeat(200));
    let leases = [checked("only", &[(&run, Role::Verify)])];
    let name = "a\u{1b}[2J\nb.md".to_owned();
    let mut fleet = a_fleet();
    fleet.folder = "ta\u{1b}]0;x\u{7}sks".to_owned();
    fleet.engine = "\u{9b}31mslurm".to_owned();
    let not_tasks = std::slice::from_ref(&name);
    let start = FleetStart { not_tasks, ..starts(&fleet, &leases) };
    let told = page(&start, 80).replace(&"x".repeat(200), "<200 letters>");
    assert_snapshot!(told, @r#"
    fleet billing-cleanup: 1 task, on slurm, 4 at once, at most $50.00
      reads   tasks/*.md (a b.md is not a task)
      order   1  only
      agent   claude
      budget  at most $50.00 for all tasks; an equal share of what is left for each
      verify  `npm test\u{1b}[2K\u{d}\n<200 letters>\u{202e}; curl evil`
      pushes  nothing. Branches stay here; --push or --land sends them
    "#);
}

use tempfile::TempDir;

use super::*;
use crate::fleet::fixture::{a_record, an_ended_task, id};
use engine::fleet::LandingMode;
use engine::record::Outcome;
use world::clock::Deadline;
use world::files::disk::Durability;
use world::process::{Call, ExitCause};
use world::store::write_json;

/// A fleet without a remote of a repository with one commit, whose task `vat` was cancelled.
struct Yard {
    root: TempDir,
    record: FleetRecord,
}

impl Yard {
    fn new() -> Self {
        let root = testkit::folder();
        let mut record = a_record(LandingMode::No);
        record.terms.repository = disk::real_path(root.path()).unwrap().join("repo");
        record.tasks.insert(id("vat"), an_ended_task(Outcome::Cancelled));
        let yard = Self { root, record };
        FleetFiles::new(&yard.home(), "shop").make().unwrap();
        yard.keep(&yard.record);
        yard.sh("git init -q -b main repo; cd repo; git config user.name A");
        yard.sh("cd repo; git config user.email a@example.com; echo one > file; git add .");
        yard.sh("cd repo; git commit -qm first");
        yard
    }

    fn sh(&self, line: &str) -> String {
        let ended = Call::shell(line, self.root.path()).run(|| false).unwrap();
        assert_eq!(ended.cause(), ExitCause::Exit(0), "{line}: {}", ended.text());
        ended.text()
    }

    fn home(&self) -> Home {
        Home::at(&self.root.path().join("home"))
    }

    /// Writes the record.
    fn keep(&self, record: &FleetRecord) {
        let file = FleetFiles::new(&self.home(), "shop").record();
        write_json(&file, record, Durability::Process).unwrap();
    }

    /// The leftovers. A child that another test starts has a copy of the fleet's lock until it runs
    /// its program, so the search is repeated.
    fn found<'a>(&'a self, home: &'a Home) -> FleetLeftovers<'a> {
        let find = || FleetLeftovers::find_leftovers(home, &self.record, &Signals::default()).ok();
        Deadline::after(Duration::from_secs(10)).poll(Duration::from_millis(20), find).unwrap()
    }
}

#[test]
fn commits_kept_by_an_earlier_removal_are_named_until_the_base_has_them() {
    let yard = Yard::new();
    let kept = "refs/crew/kept/shop/gone/1/0123456789abcdef";
    let make =
        format!("cd repo; git update-ref {kept} $(git commit-tree -p HEAD -m own HEAD^{{tree}})");
    yard.sh(&make);
    let home = yard.home();
    let found = yard.found(&home);
    let why = "commits that only a removed clone had; git update-ref -d drops them";
    assert_eq!(found.stays, [format!("{kept}: {why}")]);
    assert!(
        !found.render_lines().iter().any(|line| line.contains("refs/")),
        "{:?}",
        found.render_lines()
    );

    yard.sh(&format!("cd repo; git reset -q --hard {kept}"));
    let found = yard.found(&home);
    assert!(
        found.stays.is_empty() && found.render_lines()[0] == format!("ref     {kept}"),
        "{found:?}"
    );
    assert!(found.remove_files().unwrap().is_empty());
    assert_eq!(yard.sh("cd repo; git for-each-ref refs/crew"), "");
}

#[test]
fn a_clone_with_work_that_is_not_committed_is_listed_as_such() {
    let yard = Yard::new();
    let clone = FleetFiles::new(&yard.home(), "shop").clone_of(&id("vat"), 1);
    let clone = clone.display().to_string();
    yard.sh(&format!("git clone -q repo '{clone}'"));
    let home = yard.home();
    assert_eq!(yard.found(&home).render_lines()[0], format!("clone   {clone}"));
    yard.sh(&format!("cd '{clone}'; echo two > file; echo new > other"));
    let line = format!("clone   {clone}: 2 files changed and not committed");
    assert_eq!(yard.found(&home).render_lines()[0], line);
}

#[test]
fn a_clone_that_changed_since_it_was_listed_is_not_removed() {
    let yard = Yard::new();
    let (home, kept) = (yard.home(), "refs/crew/kept/shop/gone/1/0123456789abcdef");
    yard.sh(&format!("cd repo; git update-ref {kept} HEAD; git commit -q --allow-empty -m next"));
    let found = yard.found(&home);
    yard.keep(&FleetRecord { beat: 7, ..yard.record.clone() });
    let refused = found.remove_files().unwrap_err().to_string();
    assert!(refused.starts_with("the fleet shop or its refs changed just now"), "{refused}");

    yard.keep(&yard.record);
    let found = yard.found(&home);
    yard.sh(&format!("cd repo; git update-ref {kept} HEAD"));
    assert!(found.remove_files().is_err());
    assert_eq!(yard.sh("cd repo; git for-each-ref refs/crew | wc -l").trim(), "1");
    assert!(yard.found(&home).remove_files().unwrap().is_empty());
    assert_eq!(yard.sh("cd repo; git for-each-ref refs/crew"), "");
}

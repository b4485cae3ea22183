//! What a person types for a task that ended undone. It knows nothing of the task's loop, whose
//! page says more where the loop ended so itself.

use super::lease::{ASKED, Lease};
use super::manifest::{Fleet, LandingMode};
use super::standing::LANDING_REFUSALS;
use crate::engine::view::Step;

/// The commands, in their order; none for a task that is open, completed or cancelled.
pub fn way_out(fleet: &Fleet, lease: &Lease) -> Vec<Step> {
    let ending = lease.ending();
    let undone = ending.filter(|ending| ending.outcome.leaves_a_task_undone());
    let Some(ending) = undone else { return Vec::new() };
    let task = fleet.task(lease.id());
    let remote = fleet.remote.as_ref().filter(|_| fleet.landing == LandingMode::Main);
    // What is red would be so on the main branch, too.
    let mut merges = LANDING_REFUSALS.iter().filter(|(_, word)| *word != "red");
    let is_merged_by_hand = merges.any(|(begins, _)| ending.why.starts_with(begins));
    let (first, then) = if ending.is_blocked_by_test_changes() {
        let accept = step(task.accept_test_changes(), "if you accept that change");
        return vec![accept, step(task.run(), "tries it again")];
    } else if ending.why.starts_with(ASKED) {
        let answer = step(format!("{} \"your answer\"", task.tell()), "no secrets in it");
        (Some(answer), "tries it again with your answer")
    } else if let Some(remote) = remote.filter(|_| is_merged_by_hand) {
        let (name, base, branch) = (&remote.name, &fleet.base, &lease.branch);
        let merge =
            format!("git fetch {name} && git merge {name}/{base} && git merge {name}/{branch}");
        let markers = if lease.conflicts.is_empty() { "" } else { ", without its <<<<<<< markers" };
        let what = format!("on {}, if you want what it changes{markers}; then push", fleet.base);
        (Some(step(merge, &what)), "finds its work there")
    } else {
        (None, "once its cause is gone")
    };
    first.into_iter().chain([step(task.retry(), then)]).collect()
}

fn step(command: String, what: &str) -> Step {
    Step { command, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fleet::fixture::{a_fleet, a_lease, ended, landed};
    use crate::engine::fleet::manifest::Remote;
    use crate::engine::record::Outcome;

    #[test]
    fn every_task_that_needs_a_person_names_the_command_that_tries_it_again() {
        let remote =
            Remote { name: "origin".to_owned(), url: "/hub.git".to_owned(), only_branches: false };
        let lands = Fleet { remote: Some(remote), landing: LandingMode::Main, ..a_fleet() };
        let blocked = |why: &str| ended("vat", Outcome::Blocked, why, 1);
        let leases = vec![
            a_lease("vat"),
            landed("vat", "4f2c9d1", 1),
            ended("vat", Outcome::Cancelled, "cancelled by the user", 1),
            blocked("tasks folder: it changes tasks/vat.md, which only a person may land"),
            blocked("conflict: src/tax.rs changed on main too"),
            blocked("red: `cargo test` fails on main with this work"),
            blocked("its branch lacks its work: commit failed"),
            blocked("worktree failed: the setting filter.lfs.clean changed during this run"),
            blocked("the agent said BLOCKED: which port?"),
            blocked("check.sh changed: crew tell --fleet f --task vat --accept-test-changes"),
            ended("vat", Outcome::Error, "setup `npm ci` exits 1", 1),
        ];
        let told = |fleet: &Fleet, lease: &Lease| {
            let steps = way_out(fleet, lease).into_iter();
            let steps = steps.map(|it| format!("\n  {} · {}", it.command, it.what));
            let why = lease.ending().map_or("open", |ending| &ending.why);
            format!("{why}{}", steps.collect::<String>())
        };
        let all: Vec<String> = leases.iter().map(|lease| told(&lands, lease)).collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
        open
        done
        cancelled by the user
        tasks folder: it changes tasks/vat.md, which only a person may land
          git fetch origin && git merge origin/main && git merge origin/fleet/billing-cleanup/vat · on main, if you want what it changes; then push
          crew fleet run tasks --retry · finds its work there
        conflict: src/tax.rs changed on main too
          git fetch origin && git merge origin/main && git merge origin/fleet/billing-cleanup/vat · on main, if you want what it changes; then push
          crew fleet run tasks --retry · finds its work there
        red: `cargo test` fails on main with this work
          crew fleet run tasks --retry · once its cause is gone
        its branch lacks its work: commit failed
          crew fleet run tasks --retry · once its cause is gone
        worktree failed: the setting filter.lfs.clean changed during this run
          crew fleet run tasks --retry · once its cause is gone
        the agent said BLOCKED: which port?
          crew tell --fleet billing-cleanup --task vat "your answer" · no secrets in it
          crew fleet run tasks --retry · tries it again with your answer
        check.sh changed: crew tell --fleet f --task vat --accept-test-changes
          crew tell --fleet billing-cleanup --task vat --accept-test-changes · if you accept that change
          crew fleet run tasks · tries it again
        setup `npm ci` exits 1
          crew fleet run tasks --retry · once its cause is gone
        "#);
        let before = blocked("conflict: fleet/f/a, which comes before, and others");
        insta::assert_snapshot!(told(&a_fleet(), &before), @"
        conflict: fleet/f/a, which comes before, and others
          crew fleet run tasks --retry · once its cause is gone
        ");
    }
}

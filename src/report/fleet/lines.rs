//! What a fleet says in lines: each event while it runs, with its task in front, and the answers to
//! a request, to a message, and to a fleet that is forgotten. They hold no time of day.

use chrono::{DateTime, FixedOffset};
use minijinja::context;
use unicode_width::UnicodeWidthStr;

use super::{counted, render, rests, shown};
use crate::engine::fleet::standing::end_of;
use crate::engine::fleet::{
    Fleet, FleetEvent, FleetRequest, StandingNews, TaskEnding, TaskEvent, TaskId,
};
use crate::engine::record::{Outcome, Proof, fleet_run};
use crate::engine::text::{quoted, with_reason};

/// The least columns of a task's name: those of one fleet are mostly shorter.
const TASK_COLUMNS: usize = 14;

/// The line of an event at `at`, the user's local time, without its line break.
pub fn line(event: &FleetEvent, at: DateTime<FixedOffset>) -> String {
    let (task, event) = match event {
        FleetEvent::Noted(text) => return shown(text),
        FleetEvent::Of(task, event) => (task.to_string(), event),
    };
    let text = match event {
        TaskEvent::Started(0 | 1) => "starts".to_owned(),
        TaskEvent::Started(attempt) => format!("starts, attempt {attempt}"),
        TaskEvent::Boundary { iteration, of, last } => {
            let ended = format!("iteration {} ended", counted(*iteration, *of));
            with_reason(&ended, &shown(last))
        }
        TaskEvent::Rests { until, why } => rests(*until, why, at),
        TaskEvent::Resumes => "resumes".to_owned(),
        TaskEvent::Paused => "is paused".to_owned(),
        TaskEvent::Lands => "is being landed".to_owned(),
        TaskEvent::SentBack(why) => with_reason("sent back to its loop", &shown(why)),
        TaskEvent::Ended(ending) => ended(ending),
        TaskEvent::Joined => "runs already, joined".to_owned(),
        TaskEvent::Gone(why) => with_reason("taken up again, its process is gone", &shown(why)),
    };
    let missing = TASK_COLUMNS.saturating_sub(task.width());
    format!("{task}{:missing$} {text}", "")
}

/// How a task ended: "landed as 4f2c9d1, proof: checked", "needs you: conflict: src/pay.rs changed
/// on main".
pub fn ended(ending: &TaskEnding) -> String {
    let (word, news) = end_of(ending);
    let said = match news {
        Some(StandingNews::Needs(needs)) => quoted(&shown(&needs)),
        Some(StandingNews::Why(why)) => shown(&why),
        _ => String::new(),
    };
    let TaskEnding { outcome, proof, landed, .. } = ending;
    let proof = proof.map(Proof::label);
    render("ended.j2", &context! { word, said, outcome, landed, proof })
}

/// One line for each group of tasks: those that obey at once, after their running iteration, and
/// those that had ended before.
pub fn obeyed(fleet: &str, what: FleetRequest, groups: [&[TaskId]; 3]) -> String {
    let [at_once, later, over] = groups;
    render("obeyed.j2", &context! { fleet, what, at_once, later, over })
}

/// Who reads a message: tasks that are open, those that ended, and those for which too many wait.
pub fn told(
    fleet: &Fleet,
    open: &[TaskId],
    ended: &[(TaskId, Outcome)],
    full: &[TaskId],
) -> String {
    let retry = format!("{} --retry", fleet_run(&fleet.folder));
    render("told.j2", &context! { fleet => fleet.name, open, ended, full, retry })
}

/// What follows from accepting the changed checks of a task.
pub fn accepted(fleet: &Fleet, task: &TaskId) -> String {
    let run = fleet.task(task).run();
    format!(
        "{task}: its tests and check settings count as it ended with them; {run} tries it again"
    )
}

/// What stays of a fleet that was forgotten, and the commands that remove it. `terms` are what it
/// had, if they could be read. Where its repository does not stay here, nothing else knows the
/// remote by its name.
pub fn forgotten(name: &str, terms: Option<&Fleet>, stays_here: bool) -> String {
    let remote = terms.and_then(|terms| terms.remote.as_ref());
    let repository = terms.map(|terms| terms.repository.to_string_lossy());
    let values = context! {
        name,
        is_known => terms.is_some(),
        repository => repository.filter(|_| stays_here),
        remote => remote.map(|remote| if stays_here { &remote.name } else { &remote.url }),
    };
    render("forgotten.j2", &values)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::fixture::at;
    use crate::engine::fleet::fixture::{ended, id, landed};
    use crate::engine::fleet::{Landed, TaskState};

    #[test]
    fn an_event_is_one_line_with_its_task_in_front() {
        let vat = || id("vat-rounding");
        let last = || "npm test 1 of 402 fails".to_owned();
        let why = "claude:\nusage \u{1b}[2Jlimit\u{202e}".to_owned();
        let none = String::new;
        let until = Some(at(3600).wall);
        let events = [
            FleetEvent::Of(vat(), TaskEvent::Started(1)),
            FleetEvent::Of(id("a-name-that-is-rather-long"), TaskEvent::Started(2)),
            FleetEvent::Of(vat(), TaskEvent::Boundary { iteration: 3, of: 10, last: last() }),
            FleetEvent::Of(vat(), TaskEvent::Boundary { iteration: 4, of: 0, last: none() }),
            FleetEvent::Of(vat(), TaskEvent::Rests { until, why }),
            FleetEvent::Of(vat(), TaskEvent::Rests { until: Some(at(119).wall), why: none() }),
            FleetEvent::Of(vat(), TaskEvent::Rests { until: Some(at(120).wall), why: none() }),
            FleetEvent::Of(vat(), TaskEvent::Rests { until: None, why: none() }),
            FleetEvent::Of(vat(), TaskEvent::Resumes),
            FleetEvent::Of(vat(), TaskEvent::Lands),
            FleetEvent::Of(vat(), TaskEvent::SentBack("src/tax.rs changed on main".to_owned())),
            FleetEvent::Of(vat(), TaskEvent::Joined),
            FleetEvent::Of(vat(), TaskEvent::Gone(none())),
            FleetEvent::Of(vat(), TaskEvent::Gone("NODE_FAIL (NodeDown)".to_owned())),
            FleetEvent::Noted("the account answers \u{1b}]0;again\u{7}again".to_owned()),
        ];
        let lines = events.map(|event| line(&event, at(0).wall.fixed_offset()));
        assert_snapshot!(lines.join("\n"), @"
        vat-rounding   starts
        a-name-that-is-rather-long starts, attempt 2
        vat-rounding   iteration 3/10 ended: npm test 1 of 402 fails
        vat-rounding   iteration 4 ended
        vat-rounding   rests until 12:06: claude: usage limit
        vat-rounding   rests until 11:08:39
        vat-rounding   rests until 11:08
        vat-rounding   rests
        vat-rounding   resumes
        vat-rounding   is being landed
        vat-rounding   sent back to its loop: src/tax.rs changed on main
        vat-rounding   runs already, joined
        vat-rounding   taken up again, its process is gone
        vat-rounding   taken up again, its process is gone: NODE_FAIL (NodeDown)
        the account answers again
        ");
    }

    #[test]
    fn an_end_says_where_the_work_went_or_what_it_needs() {
        let went = |place: Landed| {
            let mut lease = ended("vat-rounding", Outcome::Completed, "done", 1);
            if let TaskState::Ended(ending) = &mut lease.state {
                ending.landed = Some(place);
            }
            lease
        };
        let leases = [
            ended("vat-rounding", Outcome::Completed, "done", 1),
            landed("vat-rounding", "4f2c9d1", 1),
            went(Landed::Main(None)),
            went(Landed::Request("https://example.org/7".to_owned())),
            ended("vat-rounding", Outcome::Blocked, "conflict: a.rs changed on main", 1),
            ended("vat-rounding", Outcome::Blocked, "the agent said BLOCKED: a \"key\"", 1),
            ended("vat-rounding", Outcome::Stalled, "no progress", 1),
            ended("vat-rounding", Outcome::Cancelled, "cancelled by the user: wrong", 1),
        ];
        let lines = leases.iter().map(|lease| {
            let (task, ending) = (lease.id().clone(), lease.ending().unwrap().clone());
            line(&FleetEvent::Of(task, TaskEvent::Ended(ending)), at(0).wall.fixed_offset())
        });
        assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
        vat-rounding   completed, proof: checked
        vat-rounding   landed as 4f2c9d1, proof: checked
        vat-rounding   landed: main has its work already, proof: checked
        vat-rounding   requested: https://example.org/7, proof: checked
        vat-rounding   needs you: conflict: a.rs changed on main
        vat-rounding   needs you: blocked: "a 'key'"
        vat-rounding   needs you: stalled: no progress
        vat-rounding   cancelled by the user: wrong
        "#);
    }
}

#[cfg(test)]
mod forgotten_tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::fleet::Remote;
    use crate::engine::fleet::fixture::a_fleet;

    #[test]
    fn what_stays_is_named_with_the_commands_that_remove_it() {
        let (name, url) = ("origin".to_owned(), "https://example.org/shop".to_owned());
        let fleet = Fleet { remote: Some(Remote { name, url }), ..a_fleet() };
        assert_snapshot!(forgotten("shop", Some(&fleet), true), @"
        fleet shop is forgotten on this machine
        its branches and working trees stay, with their work, in /repo:
          git worktree list; git worktree remove PATH removes one
          git branch --list 'fleet/shop/*'; git branch -D BRANCH removes one
        its leases and branches stay on origin: a new run begins once the leases are removed, and continues from the branches:
          git ls-remote origin 'refs/crew/shop/*' | cut -f2 | xargs git push origin --delete
          git ls-remote origin 'refs/heads/fleet/shop/*' | cut -f2 | xargs git push origin --delete
        ");
        assert_snapshot!(forgotten("shop", None, false), @"
        fleet shop is forgotten on this machine
        its terms could not be read: git branch --list 'fleet/shop/*' in its repository lists what stays of it
        ");
    }
}

//! The effects of single events and of sequences of them.

use super::table_tests::{a_conflict, all_states, effect, state};
use super::*;
use crate::fleet::fixture::{
    Bench, a_commit, a_described, a_report, a_running_task, a_task, an_ended_task, an_ending, id,
    some_terms, with_commits, with_tip,
};
use crate::fleet::record::{FleetTerms, Holder, TaskEndKind};
use engine::fixture::at;
use engine::fleet::{Carried, Remote};
use engine::record::Proof;

/// The notes of a step, in full.
pub(super) fn notes_of(effects: &[Effect]) -> Vec<String> {
    let notes = effects.iter().filter_map(|effect| match effect {
        Effect::Say(FleetLine::Note(text)) => Some(text.clone()),
        _ => None,
    });
    notes.collect()
}

pub(super) fn ask_resume(name: &str) -> FleetEvent {
    let resume = FleetRequest::Resume { accepts_test_changes: false };
    FleetEvent::Requested(Some(id(name)), resume)
}

fn a_loss(number: u32) -> FleetEvent {
    FleetEvent::Gone { task: id("a"), number, why: "killed".to_owned() }
}

fn a_start(number: u32) -> FleetEvent {
    FleetEvent::Started { task: id("a"), number, job: "7".to_owned() }
}

#[test]
fn a_task_whose_process_disappears_three_times_in_a_row_ends_even_across_restarts() {
    let mut bench = Bench::new(LandingMode::No, vec![("a", a_running_task())]);
    bench.step(a_loss(1));
    bench.step(a_start(1));
    bench.step(FleetEvent::Reported(id("a"), a_report(1, 1, None)));
    assert_eq!(bench.task("a").gone, 0, "an iteration was finished");
    for _ in 0..2 {
        bench.step(a_loss(1));
        bench.step(a_loss(1));
        assert!(bench.task("a").is_running(), "one that was not handed over does not count");
        bench.step(a_start(1));
    }
    bench.coordination.reports.clear();
    bench.step(a_loss(1));
    let ending = bench.task("a").ending().unwrap();
    assert_eq!(ending.reason.to_string(), "its process disappeared 3 times in a row: killed");
    assert_eq!((ending.outcome, ending.reason.kind()), (Outcome::Error, TaskEndKind::Machine));
    bench.step(ask_resume("a"));
    assert_eq!((bench.task("a").gone, bench.task("a").is_running()), (0, true));
    // One that is paused before it has a loop is ended.
    bench.step(a_start(1));
    let pause = FleetRequest::Task(TaskRequest::Pause { now: false });
    bench.step(FleetEvent::Requested(Some(id("a")), pause));
    bench.step(a_loss(1));
    assert_eq!((bench.task("a").gone, state(bench.task("a"))), (0, "waits, to pause".into()));
}

#[test]
fn an_attempt_that_fails_or_is_interrupted_repeatedly_does_not_count_as_disappeared() {
    let failed = || AttemptEnd::Failed {
        reason: TaskReason::Failed("the remote is out of reach".to_owned()),
        needs_person: false,
    };
    let words = |end: fn() -> AttemptEnd| {
        let mut bench = Bench::new(LandingMode::No, vec![("a", a_running_task())]);
        for _ in 0..3 {
            bench.step(a_start(1));
            bench.step(FleetEvent::Reported(id("a"), a_report(1, 0, Some(end()))));
        }
        bench.task("a").ending().unwrap().reason.to_string()
    };
    let why = "it failed 3 times in a row, the last time: the remote is out of reach";
    assert_eq!(words(failed), why);
    assert_eq!(words(|| AttemptEnd::Interrupted), "it was interrupted 3 times in a row");
}

#[test]
fn work_that_lands_after_a_refusal_does_not_keep_the_refusal_as_its_reason() {
    let refused = TaskReason::Refused { refusal: a_conflict(), unsettled: None };
    let ending =
        TaskEnding { proof: Some(Proof::Checked), ..TaskEnding::new(Outcome::Blocked, refused) };
    assert_eq!(ending.for_landing().reason.to_string(), Proof::Checked.meaning());
}

#[test]
fn a_landing_sends_a_task_back_once_and_only_if_an_iteration_is_left() {
    let landing = all_states().remove(4).1;
    let mut bench = Bench::new(LandingMode::Main, vec![("a", landing.clone())]);
    let red = || Refusal::Red { run: "make".to_owned(), output: "1 failed".to_owned() };
    bench.step(FleetEvent::Tick);
    bench.step(FleetEvent::Refused(id("a"), a_conflict()));
    let task = bench.task("a");
    assert_eq!(
        (task.attempt, task.is_running(), &task.refused.conflicts[..]),
        (2, true, &["a.rs".to_owned()][..])
    );
    let end = AttemptEnd::Ended(an_ending(Outcome::Completed));
    bench.step(FleetEvent::Reported(id("a"), a_report(2, 2, Some(end))));
    bench.step(FleetEvent::Refused(id("a"), red()));
    let ending = bench.task("a").ending().unwrap();
    assert_eq!(ending.reason.to_string(), "red: `make` fails on main with this work");
    assert_eq!((ending.outcome, ending.reason.kind()), (Outcome::Blocked, TaskEndKind::Red));
    bench.step(ask_resume("a"));
    assert!(matches!(bench.task("a").state, TaskState::Landing { .. }), "what is left is to land");
    bench.step(FleetEvent::Refused(id("a"), red()));
    assert!(bench.task("a").is_running(), "it is sent back once more");

    let carried = Carried { completed: 10, ..Carried::default() };
    let mut bench = Bench::new(LandingMode::Main, vec![("a", TaskRecord { carried, ..landing })]);
    bench.step(FleetEvent::Tick);
    bench.step(FleetEvent::Refused(id("a"), red()));
    let why = &bench.task("a").ending().unwrap().reason;
    insta::assert_snapshot!(why, @"red: `make` fails on main with this work; its max-iterations is used up: raise it, then crew resume shop/a");
    let mut raised = a_described("a");
    raised.task.revision = "r2".to_owned();
    raised.contract.limits.max_iterations = 20;
    bench.step(FleetEvent::Described(vec![raised]));
    bench.step(ask_resume("a"));
    let task = bench.task("a");
    assert!(task.is_running() && task.refused.sent_back.is_some());
    assert_eq!(task.attempt, 2);
}

#[test]
fn a_task_stays_exhausted_until_its_limit_is_raised() {
    let exhausted = all_states().remove(11).1;
    let mut bench = Bench::new(LandingMode::No, vec![("a", exhausted)]);
    let shown = notes_of(&bench.step(ask_resume("a")));
    insta::assert_snapshot!(shown.join("\n"), @"a stays exhausted: its max-iterations is used up; hint: raise max-iterations in tasks/a.md, or under [task] in fleet.toml, then resume it");
    let mut raised = a_described("a");
    raised.task.revision = "r2".to_owned();
    raised.contract.limits.max_iterations = 20;
    bench.step(FleetEvent::Described(vec![raised]));
    bench.step(ask_resume("a"));
    assert_eq!((bench.task("a").attempt, bench.task("a").is_running()), (2, true));
}

/// Its loop would only report that the limit is used up, and the refusal would be forgotten.
#[test]
fn a_refusal_stays_the_reason_if_no_iteration_is_left_to_resolve_it() {
    let mut sent_back = a_running_task();
    sent_back.refused.sent_back = Some(a_conflict());
    let mut bench = Bench::new(LandingMode::Main, vec![("a", sent_back)]);
    let end = Some(AttemptEnd::Ended(an_ending(Outcome::Exhausted)));
    bench.step(FleetEvent::Reported(id("a"), a_report(1, 10, end)));
    let refused = bench.task("a").ending().unwrap().clone();
    assert_eq!((refused.outcome, refused.reason.kind()), (Outcome::Blocked, TaskEndKind::Conflict));
    assert_eq!(refused.reason.to_string(), "conflict: a.rs changed on main too; its loop: so");
    let all = FleetEvent::Requested(None, FleetRequest::Resume { accepts_test_changes: false });
    for event in [ask_resume("a"), all] {
        let shown = notes_of(&bench.step(event)).join("\n");
        assert!(shown.starts_with("a stays blocked: its max-iterations is used up; "), "{shown}");
        assert_eq!(bench.task("a").ending(), Some(&refused));
    }
    let mut raised = a_described("a");
    raised.task.revision = "r2".to_owned();
    raised.contract.limits.max_iterations = 20;
    bench.step(FleetEvent::Described(vec![raised]));
    bench.step(ask_resume("a"));
    assert!(bench.task("a").is_running());
}

#[test]
fn completed_work_lands_on_a_later_start_that_lands() {
    let mut bench = Bench::new(LandingMode::Main, vec![("a", an_ended_task(Outcome::Completed))]);
    let described = std::mem::take(&mut bench.coordination.described);
    bench.coordination.has_begun = false;
    let effects = bench.step(FleetEvent::Described(described));
    assert!(effects.contains(&Effect::Land { task: id("a") }), "{effects:?}");
    assert_eq!(notes_of(&effects), ["a is completed, and lands now"]);
}

#[test]
fn completed_work_whose_task_file_is_hidden_lands_once_the_file_is_back() {
    let mut bench = Bench::new(LandingMode::Main, vec![("a", all_states().remove(4).1)]);
    let described = std::mem::take(&mut bench.coordination.described);
    for has_begun in [false, true] {
        bench.coordination.has_begun = has_begun;
        let effects = bench.step(FleetEvent::Described(Vec::new()));
        assert!(effects.contains(&Effect::Finish), "{effects:?}");
        assert_eq!(state(bench.task("a")), "lands");
    }
    let effects = bench.step(FleetEvent::Described(described));
    assert!(effects.contains(&Effect::Land { task: id("a") }), "{effects:?}");
}

/// Starts the fleet again with these terms and the same folder.
fn start_again(bench: &mut Bench, terms: FleetTerms) -> Vec<Effect> {
    bench.record.take_up(terms, Holder::default());
    let described = std::mem::take(&mut bench.coordination.described);
    (bench.coordination.has_begun, bench.coordination.landing) = (false, None);
    bench.step(FleetEvent::Described(described))
}

#[test]
fn a_start_lands_completed_work_that_has_not_yet_landed_where_it_should() {
    let on_main = Landed::Main(Some(a_commit(1)));
    let in_request = Landed::Request("https://h/1".to_owned());
    for (landed, landing, lands) in [
        (None, LandingMode::No, false),
        (None, LandingMode::Pr, true),
        (None, LandingMode::Main, true),
        (Some(&in_request), LandingMode::No, false),
        (Some(&in_request), LandingMode::Pr, false),
        (Some(&in_request), LandingMode::Main, true),
        (Some(&on_main), LandingMode::Pr, false),
        (Some(&on_main), LandingMode::Main, false),
    ] {
        let ending = TaskEnding { landed: landed.cloned(), ..an_ending(Outcome::Completed) };
        let task = TaskRecord { state: TaskState::Ended(ending), attempt: 1, ..a_task() };
        let mut bench = Bench::new(LandingMode::Pr, vec![("a", task), ("b", a_task())]);
        bench.coordination.described[1].task.after = vec![id("a")];
        start_again(&mut bench, some_terms(landing));
        assert_eq!(bench.task("a").landing().is_some(), lands, "{landed:?} {landing:?}");
        assert_eq!(bench.task("a").is_done(landing), !lands, "{landed:?} {landing:?}");
        if lands {
            bench.step(FleetEvent::Landed(id("a"), on_main.clone()));
        }
        assert!(bench.task("a").is_done(landing) && bench.task("b").is_running());
    }
}

#[test]
fn a_start_with_another_remote_pushes_work_that_was_fetched_earlier() {
    let remote = |url: &str| {
        let remote = Remote { name: "origin".to_owned(), url: url.to_owned() };
        FleetTerms { remote: Some(remote), ..some_terms(LandingMode::No) }
    };
    let work = |task: TaskRecord| with_commits(task, [Some(a_commit(1)), Some(a_commit(1))]);
    let mut landed = work(an_ended_task(Outcome::Completed));
    if let TaskState::Ended(ending) = &mut landed.state {
        ending.landed = Some(Landed::Main(Some(a_commit(2))));
    }
    let tasks = vec![
        ("done", work(an_ended_task(Outcome::Completed))),
        ("landed", landed),
        ("new", a_task()),
        ("stuck", work(an_ended_task(Outcome::Blocked))),
    ];
    let mut bench = Bench::new(LandingMode::No, tasks);
    bench.coordination.slots = 0;
    // The clones are not needed for it.
    bench.coordination.clones.clear();
    let asked = |effects: Vec<Effect>| {
        let tasks = effects.into_iter().filter_map(|effect| match effect {
            Effect::Fetch { task } => Some(task.to_string()),
            _ => None,
        });
        tasks.collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(asked(start_again(&mut bench, some_terms(LandingMode::No))), none);
    assert_eq!(asked(start_again(&mut bench, remote("/hub.git"))), ["done", "stuck"]);
    assert!(!bench.task("done").is_done(LandingMode::No), "those after it would not find it");
    for name in ["done", "stuck"] {
        bench.step(FleetEvent::Fetched { task: id(name), commit: a_commit(1) });
    }
    assert!(bench.task("done").is_done(LandingMode::No));
    assert_eq!(asked(start_again(&mut bench, remote("/hub.git"))), none);
    assert_eq!(asked(start_again(&mut bench, remote("/other.git"))), ["done", "stuck"]);
    let (why, concerns) = ("somebody else pushed".to_owned(), FetchConcern::Task);
    for _ in 0..FETCH_FAILURES_MAX {
        let (task, why) = (id("done"), why.clone());
        bench.step(FleetEvent::FetchFailed { task, why, concerns });
    }
    assert!(bench.task("done").is_fetched(), "that is for a person to look at");
    assert_eq!(asked(start_again(&mut bench, some_terms(LandingMode::No))), none);
}

#[test]
fn commits_of_a_running_task_are_fetched_and_those_after_its_end_are_not() {
    let tip = || Some(a_commit(1));
    let mut bench = Bench::new(LandingMode::Main, vec![("a", with_tip(a_running_task(), tip()))]);
    bench.step(FleetEvent::Tick);
    bench.step(FleetEvent::Fetched { task: id("a"), commit: a_commit(2) });
    assert!(bench.task("a").is_fetched(), "it is asked for again once more is reported");
    let landing = with_tip(all_states().remove(4).1, tip());
    let mut bench = Bench::new(LandingMode::Main, vec![("a", landing)]);
    for wait in [5, 10, 20, 40, 80] {
        bench.step(FleetEvent::Tick);
        bench.step(FleetEvent::Fetched { task: id("a"), commit: a_commit(2) });
        bench.second += wait;
    }
    let ending = bench.task("a").ending().unwrap();
    let why = "its work cannot be fetched: its branch moved after its loop";
    assert_eq!(ending.reason.to_string(), why);
    assert_eq!(bench.task("a").work.commit, None);
}

#[test]
fn an_unreachable_remote_is_tried_by_one_task_and_then_by_all() {
    let task = || with_tip(a_running_task(), Some(a_commit(1)));
    let mut bench = Bench::new(LandingMode::No, vec![("a", task()), ("b", task())]);
    let asked = |effects: Vec<Effect>| effects.iter().filter(|one| effect(one) == "fetch").count();
    assert_eq!(asked(bench.step(FleetEvent::Tick)), 2);
    for name in ["a", "b"] {
        let why = "no route".to_owned();
        let concerns = FetchConcern::All;
        bench.step(FleetEvent::FetchFailed { task: id(name), why, concerns });
    }
    assert_eq!(bench.coordination.first_trouble(), Some("b cannot be fetched: no route"));
    assert_eq!(asked(bench.step(FleetEvent::Tick)), 0, "not at once");
    bench.second += 5;
    assert_eq!(asked(bench.step(FleetEvent::Tick)), 1);
    let effects = bench.step(FleetEvent::Fetched { task: id("a"), commit: a_commit(1) });
    assert_eq!((notes_of(&effects), asked(effects)), (vec!["it works again".to_owned()], 1));
}

#[test]
fn a_start_removes_the_clone_that_a_landing_could_not_remove() {
    for is_here in [true, false] {
        let landed = Some(Landed::Main(Some(a_commit(1))));
        let ending = TaskEnding { landed, ..an_ending(Outcome::Completed) };
        let task =
            TaskRecord { state: TaskState::Ended(ending), ..an_ended_task(Outcome::Completed) };
        let mut bench = Bench::new(LandingMode::No, vec![("a", task)]);
        bench.coordination.clones.retain(|_| is_here);
        let terms = bench.record.terms.clone();
        let effects = start_again(&mut bench, terms);
        assert_eq!(effects.contains(&Effect::Remove { task: id("a") }), is_here, "{effects:?}");
    }
}

#[test]
fn a_start_adopts_running_tasks_and_gives_up_those_without_a_file() {
    let tasks = vec![
        ("a", a_running_task()),
        ("b", a_task()),
        ("c", an_ended_task(Outcome::Blocked)),
        ("d", an_ended_task(Outcome::Completed)),
        ("e", a_running_task()),
    ];
    let mut bench = Bench::new(LandingMode::No, tasks);
    (bench.coordination.has_begun, bench.coordination.described) = (false, Vec::new());
    assert_eq!(bench.step(FleetEvent::Tick), [], "nothing before the folder is read");
    let effects = bench.step(FleetEvent::Described(vec![a_described("a")]));
    assert!(effects.contains(&Effect::Say(FleetLine::Adopted { task: id("a") })));
    assert_eq!(notes_of(&effects), ["e runs without its file; crew cancel shop/e ends it"]);
    let all = ["a", "b", "c", "d", "e"].map(|name| state(bench.task(name)));
    let gone = "cancelled (Person)";
    assert_eq!(all, ["runs 1", gone, gone, "completed (Loop)", "runs 1"]);
}

#[test]
fn no_task_is_given_up_while_the_folder_is_hidden_during_a_run() {
    let mut bench = Bench::new(LandingMode::No, vec![("a", a_task()), ("r", a_running_task())]);
    bench.coordination.slots = 1;
    let effects = bench.step(FleetEvent::Described(Vec::new()));
    assert_eq!(
        notes_of(&effects),
        ["tasks/a.md: the file is gone", "tasks/r.md: the file is gone"]
    );
    assert_eq!(bench.task("a").waits, Some(WaitsFor::File));
    bench.step(FleetEvent::Described(vec![a_described("a")]));
    assert_eq!(bench.task("a").waits, Some(WaitsFor::Slot));
}

#[test]
fn changes_to_many_tasks_are_reported_in_one_line() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let tasks = names.map(|name| (name, an_ended_task(Outcome::Completed))).into();
    let mut bench = Bench::new(LandingMode::No, tasks);
    let changed = bench.coordination.described.clone().into_iter().map(|mut one| {
        one.task.revision = "r2".to_owned();
        one
    });
    let effects = bench.step(FleetEvent::Described(changed.collect()));
    insta::assert_snapshot!(notes_of(&effects).join("\n"), @"a, b, c, d, e and 2 more: the file has changed, but the task is completed; another name for the file makes a new one");
}

#[test]
fn an_executor_that_accepts_nothing_is_tried_less_and_less_often_and_then_given_up() {
    let mut bench = Bench::new(LandingMode::No, vec![("a", a_task()), ("b", a_task())]);
    bench.coordination.slots = 1;
    bench.step(FleetEvent::Tick);
    let refused = |bench: &mut Bench| {
        let running = bench.record.tasks.iter().find(|(_, task)| task.is_running());
        let task = running.map(|(id, _)| id.clone());
        let why = "no partition".to_owned();
        task.map(|task| bench.step(FleetEvent::NotStarted { task, why }))
    };
    let mut last = refused(&mut bench).unwrap();
    for wait in [5, 10, 20, 40] {
        bench.step(FleetEvent::Tick);
        assert!(refused(&mut bench).is_none(), "too early");
        bench.second += wait;
        bench.step(FleetEvent::Tick);
        last = refused(&mut bench).unwrap();
    }
    assert!(last.contains(&Effect::Finish) && bench.coordination.stop.gave_up.is_some());
    assert_eq!(bench.task("a").state, TaskState::Waiting, "no task ends for it");
    // What was not handed over because of a signal is nobody's refusal.
    let mut bench = Bench::new(LandingMode::No, vec![("a", a_running_task())]);
    bench.record.terms.executor = "slurm".to_owned();
    bench.step(FleetEvent::Signal { times: 1, is_hangup: false });
    let effects = bench.step(FleetEvent::NotStarted { task: id("a"), why: "stopped".to_owned() });
    assert!(notes_of(&effects).is_empty() && effects.contains(&Effect::Finish), "{effects:?}");
    assert_eq!((bench.task("a").is_waiting(), bench.coordination.backoffs.starts.times), (true, 0));
}

#[test]
fn remote_jobs_continue_after_one_signal_and_are_not_waited_for_after_a_hangup() {
    let signal = |times, is_hangup| FleetEvent::Signal { times, is_hangup };
    let remote = || {
        let mut bench = Bench::new(LandingMode::No, vec![("a", a_running_task())]);
        bench.record.terms.executor = "slurm".to_owned();
        bench
    };
    let shown = |effects: &[Effect]| effects.iter().map(effect).collect::<Vec<_>>().join(" ");
    let mut bench = remote();
    assert_eq!(shown(&bench.step(signal(1, false))).trim(), "");
    assert_eq!(shown(&bench.step(signal(2, false))).trim(), "TERM");
    let end = a_report(1, 1, Some(AttemptEnd::Interrupted));
    assert_eq!(shown(&bench.step(FleetEvent::Reported(id("a"), end))).trim(), "save  finish");
    assert_eq!(shown(&remote().step(signal(1, true))).trim(), "finish");
}

#[test]
fn a_waiting_task_is_reported_as_resumed_even_if_its_short_iteration_was_not_seen() {
    let lines = |end, completed| {
        let mut bench = Bench::new(LandingMode::No, vec![("a", a_running_task())]);
        let mut waiting = a_report(1, 0, None);
        waiting.phase = AttemptPhase::Waiting { until: None, why: "429".to_owned() };
        bench.step(FleetEvent::Reported(id("a"), waiting));
        let effects = bench.step(FleetEvent::Reported(id("a"), a_report(1, completed, end)));
        let lines = effects.iter().filter_map(|one| match one {
            Effect::Say(FleetLine::Resumes { .. }) => Some("resumes"),
            Effect::Say(FleetLine::Iteration { .. }) => Some("iteration"),
            Effect::Say(FleetLine::Ended { .. }) => Some("ended"),
            _ => None,
        });
        lines.collect::<Vec<_>>().join(", ")
    };
    let completed = || Some(AttemptEnd::Ended(an_ending(Outcome::Completed)));
    assert_eq!(lines(None, 0), "resumes");
    assert_eq!(lines(None, 1), "resumes, iteration");
    assert_eq!(lines(completed(), 1), "resumes, iteration, ended");
    assert_eq!(lines(Some(AttemptEnd::Ended(an_ending(Outcome::Cancelled))), 0), "ended");
}

#[test]
fn a_fleet_that_gets_a_limit_assigns_shares_to_running_tasks_after_their_iterations() {
    let mut bench = Bench::new(LandingMode::No, vec![("a", a_running_task())]);
    bench.record.terms.limits.max_cost_micros = 5_000_000;
    bench.coordination.has_begun = false;
    let described = std::mem::take(&mut bench.coordination.described);
    let effects = bench.step(FleetEvent::Described(described));
    assert!(effects.iter().any(|one| effect(one) == "pass pause"), "{effects:?}");
    bench.step(FleetEvent::Reported(id("a"), a_report(1, 1, Some(AttemptEnd::Paused))));
    let task = bench.task("a");
    assert_eq!((task.is_running(), task.reserved_micros), (true, 5_000_000));
}

#[test]
fn a_limit_lowered_while_tasks_run_is_divided_again_after_their_iterations() {
    let running = || TaskRecord { reserved_micros: 5_000_000, ..a_running_task() };
    let mut bench = Bench::new(LandingMode::No, vec![("a", running()), ("b", running())]);
    bench.record.terms.limits.max_cost_micros = 10_000_000;
    let described = bench.coordination.described.clone();
    let pauses =
        |effects: &[Effect]| effects.iter().filter(|one| effect(one) == "pass pause").count();
    assert_eq!(pauses(&bench.step(FleetEvent::Described(described.clone()))), 0);
    bench.record.terms.limits.max_cost_micros = 6_000_000;
    assert_eq!(pauses(&bench.step(FleetEvent::Described(described))), 2);
    for name in ["a", "b"] {
        let paused = a_report(1, 1, Some(AttemptEnd::Paused));
        bench.step(FleetEvent::Reported(id(name), paused));
    }
    let tasks = ["a", "b"].map(|name| bench.task(name));
    assert_eq!(tasks.map(state), ["runs 1"; 2]);
    let aside: u64 = tasks.iter().map(|task| task.reserved_micros).sum();
    assert!(aside <= 6_000_000, "{aside}");
}

#[test]
fn work_that_was_not_fetched_does_not_land_and_is_fetched_before_the_end() {
    let mut bench = Bench::new(LandingMode::Main, vec![("a", a_running_task())]);
    let mut report = a_report(1, 1, Some(AttemptEnd::Ended(an_ending(Outcome::Completed))));
    report.commit = Some(a_commit(1));
    let shown = |effects: &[Effect]| {
        effects.iter().map(effect).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(shown(&bench.step(FleetEvent::Reported(id("a"), report))), "save, fetch");
    assert_eq!(shown(&bench.step(FleetEvent::Tick)), "", "it is under way");
    let fetched = FleetEvent::Fetched { task: id("a"), commit: a_commit(1) };
    assert_eq!(shown(&bench.step(fetched)), "save, land");
}

#[test]
fn completed_work_whose_clone_is_gone_before_it_was_fetched_is_done_again() {
    for (landing, state) in [(LandingMode::Main, "lands"), (LandingMode::No, "completed")] {
        let (_, task) = all_states().into_iter().find(|(name, _)| *name == state).unwrap();
        let task = with_commits(task, [Some(a_commit(2)), Some(a_commit(1))]);
        let mut bench = Bench::new(landing, vec![("a", task)]);
        bench.coordination.clones.clear();
        let effects = bench.step(FleetEvent::Tick);
        let expected = [
            "a: its clone is gone, with the commits that were not fetched",
            "a: its last clone is not here, and what was not committed in it is lost",
        ];
        assert_eq!(notes_of(&effects), expected, "{state}");
        assert_eq!((bench.task("a").attempt, bench.task("a").is_running()), (2, true));
    }
}

#[test]
fn a_failed_fetch_that_nothing_waits_for_any_more_causes_no_trouble() {
    let task = with_tip(all_states().remove(4).1, Some(a_commit(2)));
    let mut bench = Bench::new(LandingMode::Main, vec![("a", task), ("b", a_task())]);
    bench.coordination.slots = 1;
    bench.step(FleetEvent::Tick);
    let why = "No space left".to_owned();
    let concerns = FetchConcern::All;
    bench.step(FleetEvent::FetchFailed { task: id("a"), why, concerns });
    // A person removes the clone to make room.
    bench.coordination.clones.clear();
    bench.second += 60;
    bench.step(FleetEvent::Tick);
    bench.step(FleetEvent::Tick);
    assert_eq!(bench.coordination.first_trouble(), None);
}

#[test]
fn a_clone_that_cannot_be_read_ends_its_own_task_and_stops_no_other() {
    let broken = with_tip(all_states().remove(4).1, Some(a_commit(2)));
    let mut bench = Bench::new(LandingMode::Main, vec![("a", broken), ("b", a_task())]);
    let (why, concerns) = ("bad object".to_owned(), FetchConcern::Task);
    let failed = || FleetEvent::FetchFailed { task: id("a"), why: why.clone(), concerns };
    let effects = bench.step(failed());
    assert_eq!(notes_of(&effects), ["a cannot be fetched: bad object; it is tried again"]);
    assert!(bench.task("b").is_running(), "{effects:?}");
    let asks = |effects: Vec<Effect>| effects.iter().any(|one| effect(one) == "fetch");
    assert!(!asks(bench.step(FleetEvent::Tick)), "not at once");
    bench.second += 5;
    assert!(asks(bench.step(FleetEvent::Tick)));
    (0..3).for_each(|_| drop(bench.step(failed())));
    assert_eq!(state(bench.task("a")), "lands");
    let effects = bench.step(failed());
    let ended = Effect::Say(FleetLine::Ended { task: id("a") });
    assert!(effects.contains(&ended) && notes_of(&effects).is_empty(), "{effects:?}");
    assert!(bench.task("a").is_fetched(), "nothing more is asked of that clone");
    // What works in it is left to it.
    let running = with_tip(a_running_task(), Some(a_commit(2)));
    let mut bench = Bench::new(LandingMode::No, vec![("a", running)]);
    (0..9).for_each(|_| drop(bench.step(failed())));
    assert!(bench.task("a").is_running());
}

/// For example, a file may be too large for the host.
#[test]
fn a_branch_that_the_remote_refuses_blocks_only_its_own_task_until_it_is_cancelled() {
    let work = || with_tip(all_states().remove(4).1, Some(a_commit(2)));
    let mut bench = Bench::new(LandingMode::Main, vec![("a", work()), ("b", a_task())]);
    let refused = || {
        let (why, concerns) = ("GH001: too large".to_owned(), FetchConcern::Rules);
        FleetEvent::FetchFailed { task: id("a"), why, concerns }
    };
    let effects = bench.step(refused());
    assert_eq!(notes_of(&effects), ["a cannot be pushed: GH001: too large; it is tried again"]);
    assert_eq!((bench.task("b").is_running(), bench.coordination.first_trouble()), (true, None));
    (0..9).for_each(|_| drop(bench.step(refused())));
    assert_eq!((state(bench.task("a")), bench.task("a").is_fetched()), ("lands".into(), false));
    let cancel = |of| {
        let cancel = TaskRequest::Cancel { now: false, by_agent: false, reason: None };
        FleetEvent::Requested(of, FleetRequest::Task(cancel))
    };
    bench.step(cancel(Some(id("a"))));
    bench.step(refused());
    assert!(bench.task("a").is_fetched() && bench.task("a").ending().unwrap().is_cancelled());
    // Completed work stays completed when its fleet is cancelled, and is waited for no longer.
    let completed = with_tip(an_ended_task(Outcome::Completed), Some(a_commit(2)));
    let mut bench = Bench::new(LandingMode::No, vec![("a", completed)]);
    bench.step(refused());
    bench.step(cancel(None));
    let effects = bench.step(refused());
    assert!(bench.task("a").is_fetched() && effects.contains(&Effect::Finish), "{effects:?}");
    // Nor does an end by a signal wait for it.
    let mut bench = Bench::new(LandingMode::Main, vec![("a", work())]);
    bench.step(refused());
    let effects = bench.step(FleetEvent::Signal { times: 1, is_hangup: false });
    assert!(effects.contains(&Effect::Finish), "{effects:?}");
}

#[test]
fn simultaneous_events_are_planned_for_once() {
    let mut bench = Bench::new(LandingMode::No, vec![("a", a_running_task()), ("b", a_task())]);
    bench.coordination.slots = 1;
    let end = Some(AttemptEnd::Ended(an_ending(Outcome::Completed)));
    let event = FleetEvent::Reported(id("a"), a_report(1, 1, end));
    let effects = step_fleet(&mut bench.record, &mut bench.coordination, event, at(1).wall);
    assert!(effects.contains(&Effect::Save) && !bench.task("b").is_running(), "{effects:?}");
    bench.step(FleetEvent::Tick);
    assert!(bench.task("b").is_running());
}

//! The rules of a start, and the messages between an attempt and its coordinator: by files, and by
//! refs of real remotes on this machine.

use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::drive::run::{Admission, IterationGate as _};
use crate::fleet::attempt::gate::AttemptGate;
use crate::fleet::attempt::remote::{AttemptRequest, fetch_result, list_reports, send_request};
use crate::fleet::record::{CloneSetup, TaskRequest};
use crate::fleet::spec::{CloneOrigin, SlotTurn};
use crate::fleet::step::FleetRequest;
use engine::fixture::{SetState, a_run, at};
use engine::record::{Actor, LoopId, TaskOfFleet};
use world::files::disk::Durability;
use world::git::remotes::Refs;
use world::git::steps;
use world::process::{Call, ExitCause};

/// A remote `hub.git` with one commit on main, a home, and a clone of the remote with an attempt's
/// clone in it.
struct Yard {
    root: TempDir,
    home: Home,
    files: FleetFiles,
}

impl Yard {
    fn new() -> Self {
        let root = testkit::folder();
        let real = disk::real_path(root.path()).unwrap();
        let home = Home::at(&real.join("home"));
        let url = real.join("hub.git").display().to_string();
        let files = FleetFiles::of_node(&home, "shop", &url);
        files.make().unwrap();
        let yard = Self { root, home, files };
        yard.git(".", &["init", "-q", "--bare", "-b", "main", "hub.git"]);
        yard.git(".", &["init", "-q", "-b", "main", "person"]);
        yard.commit("person", "one");
        yard.git("person", &["push", "-q", &yard.url(), "main"]);
        yard
    }

    fn path(&self, name: &str) -> PathBuf {
        disk::real_path(self.root.path()).unwrap().join(name)
    }

    fn url(&self) -> String {
        self.path("hub.git").display().to_string()
    }

    fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let person = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let call = Call::of("git", &self.path(folder)).args(person).args(arguments);
        let ended = call.run(|| false).unwrap();
        assert_eq!(ended.cause(), ExitCause::Exit(0), "{arguments:?}: {}", ended.text());
        ended.text().trim().to_owned()
    }

    fn commit(&self, folder: &str, words: &str) -> String {
        self.git(folder, &["commit", "-q", "--allow-empty", "-m", words]);
        self.git(folder, &["rev-parse", "HEAD"])
    }

    fn clone_name(&self) -> String {
        let clone = self.files.clone_of(&vat_id(), 1);
        clone.strip_prefix(self.path(".")).unwrap_or(&clone).display().to_string()
    }

    /// The clone of the first attempt, on its branch.
    fn make_clone(&self) -> String {
        let name = self.clone_name();
        self.git(".", &["clone", "-q", &self.url(), &name]);
        self.git(&name, &["checkout", "-q", "-b", "fleet/shop/vat/1"]);
        name
    }

    fn link(&self, signals: &Signals) -> RemoteLink {
        RemoteLink::open_link(&self.home, &a_spec(self.remote()), signals).unwrap().unwrap()
    }

    fn remote(&self) -> Source {
        Source::Remote { url: self.url() }
    }

    fn attempt<'a>(&'a self, spec: &'a AttemptSpec, signals: &'a Signals) -> Attempt<'a> {
        Attempt {
            home: &self.home,
            spec,
            files: &self.files,
            clone: self.files.clone_of(&vat_id(), 1),
            signals,
            reports: Reports::new(self.files.report(&vat_id(), 1), begun_report(spec, None)),
            link: None,
            is_same_spec: false,
        }
    }

    /// The record of a loop in the clone.
    fn record(&self) -> Loop {
        let checkout = self.files.clone_of(&vat_id(), 1);
        let mut record = a_run(None);
        record.trusted = steps::read_trusted(&checkout);
        record.place.branch = Some("fleet/shop/vat/1".to_owned());
        (record.place.folder, record.place.checkout) = (checkout.clone(), checkout);
        record
    }

    /// Sends a request to an attempt as the coordinator does, twice, because the answer to the
    /// first try was lost.
    fn ask(&self, number: u32, request: FleetRequest) {
        let asked = AttemptRequest { id: env::random_number(), number, request };
        for _ in 0..2 {
            self.on_remote(|refs| send_request(refs, "shop", &vat_id(), &asked)).unwrap();
        }
    }

    fn on_remote<T>(&self, ask: impl FnOnce(&Refs<'_>) -> T) -> T {
        let (folder, remote) = (self.path("person"), self.url());
        ask(&Refs { folder: &folder, remote: &remote, stop: &|| false, patience: None })
    }
}

fn vat_id() -> TaskId {
    "vat".parse().unwrap()
}

fn a_spec(source: Source) -> AttemptSpec {
    AttemptSpec {
        task: TaskOfFleet { name: "shop".into(), task: vat_id() },
        number: 1,
        branch: "fleet/shop/vat/1".to_owned(),
        contract: a_run(None).contract,
        carried: Carried::default(),
        sent_back: None,
        accepts_test_changes: false,
        is_resumed: false,
        messages: Vec::new(),
        origin: CloneOrigin {
            base: "main".to_owned(),
            start: None,
            stands_on: None,
            before: Vec::new(),
            source,
        },
        clones: CloneSetup { setup: None, setup_timeout_s: 0, include: None, trusted: None },
        turn: SlotTurn { slots: 0, priority: 5 },
    }
}

fn local_source() -> Source {
    Source::Local { repository: "/repo".into(), url: None }
}

fn a_report() -> AttemptReport {
    AttemptReport { at: at(0).wall, process: None, ..begun_report(&a_spec(local_source()), None) }
}

fn ended_with(outcome: Outcome) -> AttemptEnd {
    AttemptEnd::Ended(TaskEnding::new(outcome, "so"))
}

fn a_record(outcome: Option<Outcome>, completed: u32) -> Loop {
    let mut record = a_run(None);
    record.state.set("completed", completed);
    if let Some(outcome) = outcome {
        record.state.finish(Ending::new(outcome, "so"), 0);
    }
    record
}

#[test]
fn a_start_reports_an_end_closes_an_ended_loop_and_resumes_any_other() {
    use Outcome::{Blocked, Completed, Interrupted};
    let report = |end: Option<AttemptEnd>, completed| AttemptReport {
        end,
        carried: Carried { completed, ..Carried::default() },
        ..a_report()
    };
    let blocked = Some(ended_with(Blocked));
    // The report's end, whether the spec is the same, and the loop's end and iterations.
    let table = [
        (None, None, AttemptStart::Begin),
        (None, Some((None, 0)), AttemptStart::Resume),
        (Some((None, true)), Some((None, 0)), AttemptStart::Resume),
        (Some((None, true)), Some((Some(Interrupted), 2)), AttemptStart::Resume),
        (None, Some((Some(Blocked), 2)), AttemptStart::Close),
        (Some((None, true)), Some((Some(Completed), 2)), AttemptStart::Close),
        (
            Some((blocked.clone(), true)),
            Some((Some(Blocked), 2)),
            AttemptStart::Answer(ended_with(Blocked)),
        ),
        (Some((blocked.clone(), true)), None, AttemptStart::Answer(ended_with(Blocked))),
        (Some((blocked.clone(), false)), Some((Some(Blocked), 2)), AttemptStart::Close),
        (Some((blocked, false)), None, AttemptStart::Begin),
        (Some((Some(AttemptEnd::Paused), true)), Some((None, 1)), AttemptStart::Resume),
        (Some((Some(AttemptEnd::Interrupted), true)), Some((None, 1)), AttemptStart::Resume),
    ];
    for (said, found, expected) in table {
        let how = [said.as_ref().is_some_and(|(_, is_same)| *is_same), false];
        let report = said.map(|(end, _)| report(end, 0));
        let record = found.map(|(outcome, completed)| a_record(outcome, completed));
        let start = decide_start(report.as_ref(), how, record.as_ref());
        assert_eq!(start, expected, "{report:?} {found:?}");
    }
    for (outcome, expected) in [(Blocked, AttemptStart::Resume), (Completed, AttemptStart::Close)] {
        let (before, found) = (report(None, 2), a_record(Some(outcome), 2));
        for earlier in [None, Some(&before)] {
            let resumed = decide_start(earlier, [false, true], Some(&found));
            assert_eq!(resumed, expected, "a person wants more of what is {outcome:?}");
        }
    }
    let further = report(None, 3);
    let behind = a_record(None, 2);
    assert_eq!(decide_start(Some(&further), [true, false], Some(&behind)), AttemptStart::Begin);
}

#[test]
fn a_spec_with_names_that_lead_out_of_its_folder_is_refused() {
    let refused = |change: fn(&mut AttemptSpec)| {
        let mut spec = a_spec(local_source());
        change(&mut spec);
        check_names(&spec).is_err()
    };
    assert!(!refused(|_| {}));
    assert!(refused(|spec| spec.task.name = "../x".to_owned()));
    assert!(refused(|spec| spec.branch = "main".to_owned()));
    assert!(refused(|spec| spec.number = 2));
    let typed =
        serde_json::to_string(&a_spec(local_source())).unwrap().replace("\"vat\"", "\"../vat\"");
    assert!(serde_json::from_str::<AttemptSpec>(&typed).is_err());
}

#[test]
fn only_one_process_runs_an_attempt_and_its_lock_names_that_process() {
    let yard = Yard::new();
    let (files, spec) = (&yard.files, a_spec(local_source()));
    assert!(!is_alive(files, &vat_id(), 1));
    let held = HeldAttempt::take_attempt(files, &spec).unwrap().unwrap();
    assert!(!held.is_same_spec);
    assert!(is_alive(files, &vat_id(), 1));
    assert_eq!(process_of(files, &vat_id(), 1), identity::this_process());
    assert!(HeldAttempt::take_attempt(files, &spec).unwrap().is_none());
    drop(held);
    // A process that another test starts has the lock, too, until it is another program.
    let is_free = || process_of(files, &vat_id(), 1).is_none().then_some(());
    let found =
        clock::Deadline::after(Duration::from_secs(10)).poll(Duration::from_millis(50), is_free);
    assert!(found.is_some(), "its id may be another process's by now");
    let again = HeldAttempt::take_attempt(files, &spec).unwrap().unwrap();
    assert!(again.is_same_spec && again.is_of_this_start);
    drop(again);
    // The same words, written again: somebody asks for more.
    disk::write(&files.spec(&vat_id(), 1), b"{}", Durability::Process).unwrap();
    assert!(!HeldAttempt::take_attempt(files, &spec).unwrap().unwrap().is_same_spec);
}

#[test]
fn a_report_is_read_back_as_it_was_written_and_written_only_when_it_changes() {
    let yard = Yard::new();
    let file = yard.files.report(&vat_id(), 1);
    let reports = Reports::new(file.clone(), a_report());
    assert_eq!(read_report(&yard.files, &vat_id(), 1), None);
    reports.change_report(|report| report.phase = AttemptPhase::Queued).unwrap();
    let written = read_report(&yard.files, &vat_id(), 1);
    assert_eq!(written, Some(reports.newest_report()));
    let stamp = disk::stamp(&file);
    reports.change_report(|report| report.phase = AttemptPhase::Queued).unwrap();
    assert_eq!(disk::stamp(&file), stamp);
    reports.change_report(|report| report.end = Some(ended_with(Outcome::Blocked))).unwrap();
    assert_eq!(read_report(&yard.files, &vat_id(), 1), Some(reports.newest_report()));
    assert_eq!(read_report(&yard.files, &vat_id(), 2), None);
}

#[test]
fn a_branch_and_its_result_are_pushed_together_and_a_second_process_locks_out_the_first() {
    let yard = Yard::new();
    let clone = yard.make_clone();
    let signals = Signals::default();
    let link = yard.link(&signals);
    assert_eq!(link.fetch_report().unwrap(), None);
    let report = a_report();
    link.claim_attempt(&report).unwrap();
    let tip = yard.commit(&clone, "work");
    let worked = AttemptReport { commit: Some(tip.clone()), ..report.clone() };
    link.publish(&worked, None, Duration::ZERO).unwrap();
    assert_eq!(yard.git("hub.git", &["rev-parse", "refs/heads/fleet/shop/vat/1"]), tip);
    let seen = yard.on_remote(|refs| list_reports(refs, "shop")).unwrap();
    assert_eq!(seen, [(vat_id(), worked.clone())]);

    // The job is started again: it takes over what was pushed.
    let second = yard.link(&signals);
    assert_eq!(second.fetch_report().unwrap(), Some(worked.clone()));
    second.claim_attempt(&worked).unwrap();
    let late = AttemptReport { commit: Some(yard.commit(&clone, "late")), ..worked };
    let refused = |link: &RemoteLink| link.publish(&late, None, Duration::ZERO);
    assert!(matches!(refused(&link), Err(RemoteTrouble::Fenced)));
    assert_eq!(yard.git("hub.git", &["rev-parse", "refs/heads/fleet/shop/vat/1"]), tip);
    let id = LoopId::from_random(7);
    assert!(matches!(link.before_iteration(&id), Err(RemoteTrouble::Fenced)));
    second.before_iteration(&id).unwrap();
}

#[test]
fn a_branch_moved_by_another_process_ends_the_attempt() {
    let yard = Yard::new();
    let clone = yard.make_clone();
    let link = yard.link(&Signals::default());
    link.fetch_report().unwrap();
    link.claim_attempt(&a_report()).unwrap();
    yard.git("person", &["push", "-q", &yard.url(), "main:refs/heads/fleet/shop/vat/1"]);
    let worked = AttemptReport { commit: Some(yard.commit(&clone, "work")), ..a_report() };
    let id = LoopId::from_random(7);
    assert!(matches!(link.before_iteration(&id), Err(RemoteTrouble::Fenced)), "before a push");
    let pushed = link.publish(&worked, None, Duration::ZERO);
    assert!(matches!(pushed, Err(RemoteTrouble::Fenced)));
}

#[test]
fn an_unreachable_remote_is_tried_again_before_the_next_iteration() {
    let yard = Yard::new();
    let clone = yard.make_clone();
    let link = yard.link(&Signals::default());
    link.fetch_report().unwrap();
    link.claim_attempt(&a_report()).unwrap();
    let tip = yard.commit(&clone, "work");
    let worked = AttemptReport { commit: Some(tip.clone()), ..a_report() };
    disk::rename(&yard.path("hub.git"), &yard.path("away.git")).unwrap();
    let pushed = link.publish(&worked, None, Duration::ZERO);
    assert!(matches!(pushed, Err(RemoteTrouble::Away(_))));
    let id = LoopId::from_random(7);
    assert!(matches!(link.before_iteration(&id), Err(RemoteTrouble::Away(_))));
    disk::rename(&yard.path("away.git"), &yard.path("hub.git")).unwrap();
    clock::sleep(Duration::from_millis(1100));
    link.before_iteration(&id).unwrap();
    assert_eq!(yard.git("hub.git", &["rev-parse", "refs/heads/fleet/shop/vat/1"]), tip);
}

#[test]
fn requests_reach_the_loop_of_their_attempt_once() {
    let yard = Yard::new();
    let link = yard.link(&Signals::default());
    link.fetch_report().unwrap();
    link.claim_attempt(&a_report()).unwrap();
    let id = LoopId::from_random(7);
    disk::make_private_folder(&yard.home.loop_folder(&id)).unwrap();
    let pause = || FleetRequest::Task(TaskRequest::Pause { now: true });
    let send = |number| yard.ask(number, pause());
    send(2);
    link.before_iteration(&id).unwrap();
    assert_eq!(store::pending_request(&yard.home, &id), None, "it is for a later attempt");
    // A process that had no loop for it yet has not obeyed it.
    send(1);
    link.fetch_report().unwrap();
    link.publish(&a_report(), None, Duration::ZERO).unwrap();
    let link = yard.link(&Signals::default());
    link.fetch_report().unwrap();
    link.before_iteration(&id).unwrap();
    assert!(store::breaks_off(&yard.home, &id));
    yard.ask(1, FleetRequest::Resume { accepts_test_changes: false });
    link.before_iteration(&id).unwrap();
    assert_eq!(store::pending_request(&yard.home, &id), None, "the pause is lifted");
    link.before_iteration(&id).unwrap();
    assert_eq!(store::pending_request(&yard.home, &id), None);
    // Another process of the attempt knows what was obeyed.
    link.publish(&a_report(), None, Duration::ZERO).unwrap();
    let second = yard.link(&Signals::default());
    second.fetch_report().unwrap();
    second.before_iteration(&id).unwrap();
    assert_eq!(store::pending_request(&yard.home, &id), None);
    yard.git("person", &["commit", "-q", "--allow-empty", "-m", "not JSON"]);
    let forged = "main:refs/crew/shop/request/vat";
    yard.git("person", &["push", "-q", "--force", &yard.url(), forged]);
    link.before_iteration(&id).unwrap();
}

#[test]
fn the_last_result_contains_the_record_and_as_much_of_the_journal_as_fits() {
    let yard = Yard::new();
    let link = yard.link(&Signals::default());
    link.fetch_report().unwrap();
    let record = a_record(Some(Outcome::Completed), 0);
    disk::make_private_folder(&yard.home.loop_folder(&record.id)).unwrap();
    let line = "\"\\".repeat(100_000);
    let journal = format!("{line}\n").repeat(20) + "the end\n";
    let file = yard.home.loop_file(&record.id, "journal.jsonl");
    disk::write(&file, journal.as_bytes(), Durability::Process).unwrap();
    let report = AttemptReport { end: Some(ended_with(Outcome::Completed)), ..a_report() };
    link.publish(&report, Some(&record), Duration::ZERO).unwrap();
    let found = yard.on_remote(|refs| fetch_result(refs, "shop", &vat_id(), 1)).unwrap().unwrap();
    assert_eq!((found.report, found.record.map(|record| record.id)), (report, Some(record.id)));
    assert!(found.journal.unwrap().ends_with("the end\n"));
}

#[test]
fn only_reports_of_the_newest_attempt_count_and_junk_is_ignored() {
    let yard = Yard::new();
    let push = |number: u32, report: u32| {
        let text = serde_json::json!({ "report": AttemptReport { number: report, ..a_report() },
            "record": null, "journal": null });
        yard.on_remote(|refs| {
            let new = Some(refs.make_commit(&text.to_string(), None).unwrap());
            let name = format!("refs/crew/shop/result/vat/{number}");
            refs.swap(&[engine::git::RefUpdate { name, old: None, new }]).unwrap()
        });
    };
    let heard = || {
        let seen = yard.on_remote(|refs| list_reports(refs, "shop")).unwrap();
        seen.into_iter().map(|(_, report)| report.number).collect::<Vec<_>>()
    };
    assert!(heard().is_empty());
    push(2, 2);
    push(10, 10);
    assert_eq!(heard(), [10]);
    push(11, 3);
    assert!(heard().is_empty(), "a report of another number is not the newest attempt's");
    yard.git("person", &["push", "-q", &yard.url(), "main:refs/crew/shop/result/-x/1"]);
    yard.git("person", &["push", "-q", &yard.url(), "main:refs/crew/shop/result/other/1"]);
    assert!(heard().is_empty());
}

#[test]
fn no_iteration_begins_while_a_request_of_a_person_is_open() {
    let yard = Yard::new();
    yard.make_clone();
    let (spec, signals) = (a_spec(local_source()), Signals::default());
    let attempt = yard.attempt(&spec, &signals);
    assert_eq!(attempt.left_here(), None);
    let record = yard.record();
    disk::make_private_folder(&yard.home.loop_folder(&record.id)).unwrap();
    store::request_pause(&yard.home, &record.id, Actor::User, false).unwrap();
    let mut gate = AttemptGate::new(&attempt);
    assert_eq!(gate.admit(&record), Admission::Later("what a person asked".to_owned()));
    store::clear_requests(&yard.home, &record.id).unwrap();
    assert_eq!(gate.admit(&record), Admission::Granted);
}

#[test]
fn an_iteration_waits_for_a_slot_and_frees_it_when_it_is_over() {
    let yard = Yard::new();
    yard.make_clone();
    let (spec, signals) = (
        AttemptSpec {
            turn: SlotTurn { slots: 1, ..a_spec(local_source()).turn },
            ..a_spec(local_source())
        },
        Signals::default(),
    );
    let (first, second) = (yard.attempt(&spec, &signals), yard.attempt(&spec, &signals));
    let record = yard.record();
    let mut gates = [AttemptGate::new(&first), AttemptGate::new(&second)];
    assert_eq!(gates[0].admit(&record), Admission::Granted);
    assert!(matches!(
        first.reports.newest_report().phase,
        AttemptPhase::Running { slot: Some(0), .. }
    ));
    assert_eq!(gates[1].admit(&record), Admission::Later("a slot".to_owned()));
    assert_eq!(second.reports.newest_report().phase, AttemptPhase::Queued);
    assert_eq!(gates[0].iteration_ended(&record), None);
    assert_eq!(gates[1].admit(&record), Admission::Granted);
}

#[test]
fn an_iteration_begins_with_the_newest_base_but_never_with_a_rewritten_one() {
    let yard = Yard::new();
    let clone = yard.make_clone();
    let source = Source::Local { repository: yard.path("person"), url: Some(yard.url()) };
    let first = yard.git(&clone, &["rev-parse", "HEAD"]);
    let mut spec = a_spec(source);
    spec.origin.stands_on = Some(first);
    let signals = Signals::default();
    let attempt = yard.attempt(&spec, &signals);
    let mut gate = AttemptGate::new(&attempt);
    let record = yard.record();
    let base = || yard.git(&clone, &["rev-parse", "refs/remotes/origin/main"]);
    // Neither a tag of its name nor a ref that leads elsewhere is taken for the base.
    yard.git(&clone, &["tag", "origin/main"]);
    yard.git(&clone, &["symbolic-ref", "refs/remotes/origin/main", "refs/heads/other"]);
    let second = yard.commit("person", "two");
    yard.git("person", &["push", "-q", &yard.url(), "main"]);
    assert_eq!(gate.admit(&record), Admission::Granted);
    assert_eq!(base(), second);
    yard.git(&clone, &["merge", "-q", &second]);
    gate.iteration_ended(&record);
    assert_eq!(attempt.reports.newest_report().stands_on, Some(second.clone()));

    yard.git("person", &["reset", "-q", "--hard", "HEAD~1"]);
    yard.commit("person", "instead");
    yard.git("person", &["push", "-q", "--force", &yard.url(), "main"]);
    assert_eq!(gate.admit(&record), Admission::Granted);
    assert_eq!(base(), second);
    assert_eq!(gate.stood_on(), Some(second));
    let notes = gate.take_notes();
    assert_eq!(notes, ["main was rewritten: this branch stays on what it was before"]);

    yard.git(&clone, &["config", "core.sshCommand", "evil"]);
    assert_eq!(gate.admit(&record), Admission::Granted);
    assert!(gate.take_notes()[0].contains("core.sshcommand"));
    disk::rename(&yard.path("hub.git"), &yard.path("away.git")).unwrap();
    yard.git(&clone, &["config", "--unset", "core.sshCommand"]);
    assert_eq!(gate.admit(&record), Admission::Granted, "a remote that is away is not waited for");
}

#[test]
fn a_base_that_is_rewritten_before_the_first_iteration_is_not_followed() {
    let yard = Yard::new();
    let dropped = yard.commit("person", "dropped");
    yard.git("person", &["push", "-q", &yard.url(), "main"]);
    let clone = yard.make_clone();
    yard.git("person", &["push", "-q", "--force", &yard.url(), "main~1:main"]);
    let source = Source::Local { repository: yard.path("person"), url: Some(yard.url()) };
    let (spec, signals) = (a_spec(source), Signals::default());
    let attempt = yard.attempt(&spec, &signals);
    let mut gate = AttemptGate::new(&attempt);
    assert_eq!(gate.admit(&yard.record()), Admission::Granted);
    let notes = gate.take_notes();
    assert_eq!(notes, ["main was rewritten: this branch stays on what it was before"]);
    assert_eq!(attempt.reports.newest_report().stands_on, Some(dropped.clone()));
    assert_eq!(yard.git(&clone, &["rev-parse", "refs/remotes/origin/main"]), dropped);
}

#[test]
fn no_iteration_begins_in_a_clone_redirected_to_the_users_repository() {
    let yard = Yard::new();
    let clone = yard.make_clone();
    let mut record = yard.record();
    record.place.repository = steps::repository_folder(&record.place.checkout);
    record.place.is_clone = true;
    let work = yard.commit(&clone, "work");
    let from = yard.path(&clone).display().to_string();
    yard.git("person", &["fetch", "-q", &from, "refs/heads/fleet/shop/vat/1"]);
    yard.git("person", &["branch", "fleet/shop/vat/1", &work]);
    yard.git("person", &["checkout", "-q", "-b", "newer", &work]);
    let lock = yard.path("person/.git/packed-refs.lock");
    disk::write(&lock, b"", Durability::Process).unwrap();
    let own = yard.path(&format!("{clone}/.git"));
    disk::rename(&own, &yard.path("moved")).unwrap();
    let link = format!("gitdir: {}\n", yard.path("person/.git").display());
    disk::write(&own, link.as_bytes(), Durability::Process).unwrap();

    let (spec, signals) = (a_spec(local_source()), Signals::default());
    let attempt = yard.attempt(&spec, &signals);
    let mut gate = AttemptGate::new(&attempt);
    let Admission::Ends(ending) = gate.admit(&record) else { panic!("it is granted") };
    assert_eq!(ending.outcome, Outcome::Blocked);
    let found = loop_tip(&record);
    assert_eq!(found.commit, None);
    assert!(found.astray.unwrap().contains("no longer a repository of its own"));
    let checked_out = yard.git("person", &["symbolic-ref", "HEAD"]);
    assert_eq!((&*checked_out, disk::exists(&lock)), ("refs/heads/newer", true));
}

#[test]
fn a_later_attempt_removes_what_an_earlier_one_left_on_its_node_and_keeps_its_commits() {
    let yard = Yard::new();
    let (first, signals) = (yard.make_clone(), Signals::default());
    let stray = yard.commit(&first, "stray");
    let _link = yard.link(&signals);
    drop(HeldAttempt::take_attempt(&yard.files, &a_spec(yard.remote())).unwrap().unwrap());
    let spec = AttemptSpec { number: 2, ..a_spec(yard.remote()) };
    let attempt =
        Attempt { clone: yard.files.clone_of(&vat_id(), 2), ..yard.attempt(&spec, &signals) };
    let second = attempt.clone.display().to_string();
    yard.git(".", &["clone", "-q", &yard.url(), &second]);
    let mut notes = Vec::new();
    let mut note = |words: &str| notes.push(words.to_owned());
    let groups = yard.files.groups(&vat_id(), 2);
    attempt.remove_earlier(&FleetCommands::new(groups, &|| false, &mut note));
    assert_eq!((notes, yard.files.list_clones()), (Vec::new(), vec![(vat_id(), 2)]));
    assert_eq!(disk::names(&yard.files.attempts(), 100), Vec::<String>::new());
    let kept = yard.git(&second, &["for-each-ref", "--format=%(objectname)", "refs/crew/kept"]);
    assert_eq!(kept, stray);
}

#[test]
fn work_whose_commit_cannot_be_read_does_not_count_as_completed() {
    let end = |outcome| AttemptEnd::Ended(TaskEnding::new(outcome, "w"));
    let tip = |commit: Option<&str>| OwnTip { commit: commit.map(str::to_owned), astray: None };
    let kept = |outcome, tip: Option<OwnTip>| end_with(end(outcome), tip.as_ref()) == end(outcome);
    assert!(!kept(Outcome::Completed, Some(tip(None))));
    assert!(kept(Outcome::Completed, Some(tip(Some("c")))) && kept(Outcome::Completed, None));
    assert!(kept(Outcome::Blocked, Some(tip(None))));
}

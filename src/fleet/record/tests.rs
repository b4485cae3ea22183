use serde_json::{Value, json};

use super::*;
use crate::drive::failure::failure_of;
use crate::fleet::fixture::{
    a_commit, a_record, a_running_task, a_task, an_ended_task, an_ending, id,
};
use engine::fixture::at;

fn a_full_record() -> FleetRecord {
    let mut record = a_record(LandingMode::Main);
    let waits = Some(WaitsFor::Files { task: id("b"), theirs: "x".into(), ours: "y".into() });
    record.tasks.insert(id("a"), TaskRecord { waits, ..a_task() });
    record.tasks.insert(id("b"), a_running_task());
    record.tasks.insert(id("c"), an_ended_task(Outcome::Completed));
    let by_agent = TaskRequest::Cancel { now: true, by_agent: true, reason: Some("so".into()) };
    let landing = TaskState::Landing(an_ending(Outcome::Completed));
    let landing = TaskRecord {
        state: landing,
        attempt: 3,
        work: TaskWork { commit: Some(a_commit(1)), tip: Some(a_commit(1)), ..a_task().work },
        refused: RefusedLanding {
            sent_back: Some(Refusal::Conflict(vec!["src/a b.rs".into()])),
            conflicts: vec!["src/a b.rs".into()],
            ..a_task().refused
        },
        asked: TaskInput {
            messages: vec!["hi".into()],
            given: 1,
            request: Some(by_agent),
            ..a_task().asked
        },
        ..a_task()
    };
    record.tasks.insert(id("d"), landing);
    record
}

fn read_error(bytes: &[u8]) -> Result<FleetRecord, String> {
    let read = FleetRecord::read_record("fleet.json", bytes, "move it away");
    read.map_err(|error| failure_of(&error).with_hint())
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    let record = a_full_record();
    assert_eq!(read_error(&serde_json::to_vec(&record).unwrap()), Ok(record));
}

#[test]
fn a_record_of_a_newer_crew_is_refused_whatever_it_contains() {
    for rest in ["", ", \"tasks\": 7"] {
        let shown = read_error(format!("{{\"schema\": 2{rest}}}").as_bytes()).unwrap_err();
        assert_eq!(shown, "fleet.json was made by a newer crew\nhint: update crew");
    }
}

/// A record with another value at this path.
fn change_record(path: &str, value: Value) -> Vec<u8> {
    let mut record = serde_json::to_value(a_full_record()).unwrap();
    *record.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value;
    serde_json::to_vec(&record).unwrap()
}

/// Records written by somebody who may push to the remote. Each is refused with its cause, or
/// contains nothing that crew acts on.
#[test]
fn hostile_records_are_refused() {
    let deep = ["[", "]"].map(|text| text.repeat(200_000)).join("");
    let deep = format!("{{\"schema\":1,\"made_by\":{deep}}}");
    let mut long = vec![b' '; RECORD_BYTES_MAX];
    long.extend(b"{}");
    let lines = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("garbage", b"\x1b[31m\xff\xfe{".to_vec()),
        ("a blob", b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_vec()),
        ("200,000 deep", deep.into_bytes()),
        ("too long", long),
        ("a NUL", change_record("/terms/folder", json!("tasks\0x"))),
        ("another type", change_record("/tasks/b/attempt", json!("one"))),
        (
            "a number that is too large",
            change_record("/tasks/b/attempt", json!(18_446_744_073_709_551_616.0)),
        ),
        ("too many attempts", change_record("/tasks/b/attempt", json!(4_294_967_295_u32))),
        ("no attempt", change_record("/tasks/b/attempt", json!(0))),
        ("another id", change_record("/id", json!("../x"))),
        ("a name as a path", change_record("/terms/name", json!("../../x"))),
        ("an option as base", change_record("/terms/base", json!("--upload-pack=x"))),
        ("a base that leaves", change_record("/terms/base", json!("../../main"))),
        ("a base with a refspec", change_record("/terms/base", json!("main:refs/heads/x"))),
        ("a folder that leaves", change_record("/terms/folder", json!("../.."))),
        ("a commit as an option", change_record("/tasks/d/commit", json!("--force"))),
        ("a tip that is a ref", change_record("/tasks/d/tip", json!("refs/heads/main"))),
        ("a loop id as a path", change_record("/tasks/b/loop_id", json!("../../etc"))),
        ("a job as an option", change_record("/tasks/b/state/job", json!("--all"))),
        ("a job of two words", change_record("/tasks/b/state/job", json!("7 8"))),
        ("a conflict that leaves", change_record("/tasks/d/conflicts", json!(["../../.bashrc"]))),
        ("an absolute conflict", change_record("/tasks/d/conflicts", json!(["/etc/passwd"]))),
        (
            "many messages",
            change_record("/tasks/d/messages", json!(["a", "b", "c", "d", "e", "f"])),
        ),
        ("more given than there", change_record("/tasks/d/given", json!(2))),
        ("a state of none", change_record("/tasks/b/state", json!({"is": "root"}))),
        ("a task as a path", change_record("/tasks", json!({"../x": {}}))),
    ];
    let shown = cases.iter().map(|(name, bytes)| {
        let why = read_error(bytes).unwrap_err();
        assert!(why.ends_with("\nhint: move it away, and crew fleet run starts again"), "{why}");
        let why = lines(&why);
        let why = why.strip_prefix("fleet.json cannot be read: ").unwrap();
        let why = why.split(" at line").next().unwrap();
        format!("{name}: {why}")
    });
    insta::assert_snapshot!("hostile_records", shown.collect::<Vec<_>>().join("\n"));
}

/// Values that are valid although unusual: text that is cleaned where it is shown, and times in the
/// future.
#[test]
fn odd_strings_and_times_are_accepted_as_data() {
    for (path, value) in [
        ("/tasks/d/messages", json!(["\u{1b}]0;x\u{7}"])),
        ("/tasks/d/state/why", json!("\u{1b}[2J; rm -rf /")),
        ("/tasks/d/conflicts", json!(["$(touch x)", "a'; rm -rf .; '"])),
        ("/tasks/b/state/since", json!("2999-01-01T00:00:00Z")),
        ("/terms/setup", json!("rm -rf /")),
        ("/holder/pid", json!(1)),
    ] {
        let mut record = read_error(&change_record(path, value))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        record.take_up(crate::fleet::fixture::some_terms(LandingMode::No), Holder::default());
        assert_eq!(
            record.terms,
            crate::fleet::fixture::some_terms(LandingMode::No),
            "no term is kept"
        );
    }
}

#[test]
fn a_later_start_lifts_pauses_and_keeps_cancels_that_were_not_carried_out() {
    let mut record = a_full_record();
    record.request = Some(TaskRequest::Cancel { now: false, by_agent: false, reason: None });
    record.tasks.get_mut(&id("b")).unwrap().asked.request = Some(TaskRequest::Pause { now: true });
    record.take_up(record.terms.clone(), Holder::default());
    assert_eq!((record.request_of(&id("b")), record.request_of(&id("a"))), (None, None));
    let why = record.cancel_of(&id("d")).unwrap().reason.to_string();
    assert_eq!(why, "cancelled by the agent: so");
}

#[test]
fn the_command_to_continue_a_fleet_includes_its_options() {
    let command = |landing, has_remote, executor: &str| {
        let remote = Remote { name: "origin".to_owned(), url: "/hub".to_owned() };
        let (folder, executor) = ("my tasks".to_owned(), executor.to_owned());
        let remote = if has_remote { Some(remote) } else { None };
        FleetTerms { folder, executor, remote, landing, ..FleetTerms::default() }.run_command()
    };
    let run = "crew fleet run 'my tasks'";
    assert_eq!(command(LandingMode::No, false, LOCAL), run);
    assert_eq!(command(LandingMode::No, true, LOCAL), format!("{run} --push"));
    assert_eq!(command(LandingMode::Main, true, LOCAL), format!("{run} --land"));
    assert_eq!(
        FleetTerms { executor: LOCAL.to_owned(), ..FleetTerms::default() }.run_command(),
        "crew fleet run ."
    );
    let elsewhere = command(LandingMode::Pr, true, "slurm:login");
    assert_eq!(elsewhere, format!("{run} --land pr --on slurm:login"));
    let limited = |typed_max_cost_micros| {
        let folder = "my tasks".to_owned();
        let executor = LOCAL.to_owned();
        let typed_slots = Some(2);
        let terms = FleetTerms {
            folder,
            executor,
            limits: FleetLimits { typed_slots, ..FleetLimits::default() },
            ..FleetTerms::default()
        };
        FleetTerms { limits: FleetLimits { typed_max_cost_micros, ..terms.limits }, ..terms }
            .run_command()
    };
    assert_eq!(limited(Some(2_500_000)), format!("{run} --slots 2 --max-cost 2.50"));
    assert_eq!(
        limited(Some(0)),
        format!("{run} --slots 2 --max-cost 0"),
        "it lifts that of a file"
    );
}

#[test]
fn git_reads_a_branch_name_as_nothing_else() {
    for (name, expected) in [
        ("main", true),
        ("release/1.x", true),
        ("-x", false),
        ("a/-x", false),
        ("", false),
        ("a//b", false),
        ("a..b", false),
        ("a.lock/b", false),
        ("a@{1}", false),
        ("a b", false),
        ("a^", false),
        ("a\u{7f}", false),
    ] {
        assert_eq!(is_branch(name), expected, "{name}");
    }
    assert!(
        is_id(&a_commit(7))
            && !is_id("HEAD")
            && !is_id(&a_commit(7).to_uppercase().replace('0', "G"))
    );
}

#[test]
fn a_report_never_lowers_what_was_used() {
    use crate::fleet::fixture::{a_carried, a_report};
    let mut task = TaskRecord { carried: a_carried(3, 10), gone: 2, ..a_running_task() };
    assert!(!task.take_report(&a_report(1, 2, None)));
    assert_eq!((task.carried.completed, task.gone), (3, 2));
    let mut cheaper = a_report(1, 4, None);
    cheaper.carried = a_carried(4, 0);
    assert!(task.take_report(&cheaper));
    assert_eq!((task.cost(), task.gone), (300_000, 0));
    let mut more = a_report(1, 4, None);
    more.carried = a_carried(4, 10);
    more.conflicts = vec!["a".into(), "a".into(), "b".into()];
    more.commit = Some(a_commit(4));
    assert!(task.take_report(&more));
    assert!(!task.take_report(&more));
    assert_eq!((task.cost(), task.is_fetched()), (400_000, false));
    task.set(TaskState::Waiting, at(1).wall);
    assert_eq!(task.reserved_micros, 0);
}

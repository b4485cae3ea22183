//! Two stores of one fleet: of one home, and of two homes with one remote.

use std::path::Path;

use tempfile::TempDir;

use super::requests::{REQUESTS_MAX, WaitingRequests, send_request};
use super::*;
use crate::drive::failure::failure_of;
use crate::fleet::record::{CloneSetup, TaskEnding, TaskRecord, TaskRequest, TaskState, TaskWork};
use crate::fleet::step::FleetRequest;
use engine::fleet::Remote;
use engine::record::Outcome;
use world::files::tree;
use world::git::steps;
use world::process::Call;

/// A bare remote with one commit on `main`, and a clone of it.
struct Yard {
    root: TempDir,
}

impl Yard {
    fn new() -> Self {
        let yard = Self { root: testkit::folder() };
        yard.git(".", &["init", "-q", "--bare", "-b", "main", "origin.git"]);
        yard.git(".", &["clone", "-q", "origin.git", "repo"]);
        yard.commit("first");
        yard.git("repo", &["push", "-q", "origin", "HEAD:refs/heads/main"]);
        yard
    }

    fn git(&self, folder: &str, words: &[&str]) -> String {
        let own = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let call = Call::of("git", &self.root.path().join(folder)).args(own).args(words);
        let ended = call.within(Duration::from_secs(60)).run(|| false).unwrap();
        assert!(ended.text().len() < 1 << 20, "{words:?}");
        ended.text().trim().to_owned()
    }

    fn commit(&self, message: &str) -> String {
        self.git("repo", &["commit", "-q", "--allow-empty", "-m", message]);
        self.git("repo", &["rev-parse", "HEAD"])
    }

    fn home(&self, name: &str) -> Home {
        let home = Home::at(&self.root.path().join(name));
        home.make_folders().unwrap();
        home
    }

    fn terms(&self, is_shared: bool) -> FleetTerms {
        let url = format!("file://{}", self.root.path().join("origin.git").display());
        FleetTerms {
            name: "shop".to_owned(),
            repository: self.root.path().join("repo"),
            folder: "tasks".to_owned(),
            base: "main".to_owned(),
            executor: "local".to_owned(),
            remote: if is_shared { Some(Remote { name: "origin".to_owned(), url }) } else { None },
            clones: CloneSetup {
                trusted: steps::read_trusted(&self.root.path().join("repo")),
                ..CloneSetup::default()
            },
            ..FleetTerms::default()
        }
    }

    fn take(&self, home: &Home, is_shared: bool, replaces: bool) -> Result<Taken> {
        let mut quiet = |_: &str| {};
        let signals = Signals::default();
        LockedFleetStore::take_fleet(home, &self.terms(is_shared), &signals, replaces, &mut quiet)
    }

    /// Takes the fleet and writes its first record, or the existing one under its name.
    fn begin(&self, home: &Home, is_shared: bool) -> (LockedFleetStore, FleetRecord) {
        let (mut store, found) = self.take(home, is_shared, false).unwrap();
        let holder = Holder::this_process(home, clock::now().wall).unwrap();
        let mut record = found.unwrap_or_else(|| {
            FleetRecord::begin_fleet(
                self.terms(is_shared),
                "a1".to_owned(),
                holder.clone(),
                holder.since,
            )
        });
        record.holder = holder;
        save_record(&mut store, &record).unwrap();
        (store, record)
    }

    fn main(&self) -> String {
        self.git("origin.git", &["rev-parse", "refs/heads/main"])
    }
}

/// Writes the record here and at the remote.
fn save_record(store: &mut LockedFleetStore, record: &FleetRecord) -> Result<(), StoreFault> {
    store.save_record(record)?;
    let Some(push) = store.begin_push(record, None) else { return Ok(()) };
    let pushed = push();
    store.note_answer(pushed.is_ok());
    pushed.map(drop)
}

/// The newest record, as the next start finds it.
fn load_record(store: &LockedFleetStore) -> Option<FleetRecord> {
    let mut shared = store.shared.as_ref().unwrap().lock().unwrap();
    let (here, there) = (read_file(&store.files.record()).unwrap(), shared.read_record().unwrap());
    newest_record(here, there, |commit| shared.base_has("main", commit))
}

fn move_of(before: &str, commit: &str) -> RefUpdate {
    let [old, new] = [before, commit].map(|id| Some(id.to_owned()));
    RefUpdate { name: "refs/heads/main".to_owned(), old, new }
}

/// Moves the base with the record.
fn push_landing(
    store: &mut LockedFleetStore,
    base: &RefUpdate,
    record: &FleetRecord,
) -> Result<bool, StoreFault> {
    let pushed = store.push_with_base(base.clone(), record).unwrap()();
    store.note_answer(matches!(pushed, Ok(true)));
    pushed
}

type Taken = (LockedFleetStore, Option<FleetRecord>);

fn error_of<T>(taken: Result<T>) -> String {
    failure_of(&taken.map(drop).unwrap_err()).with_hint()
}

#[test]
fn a_second_coordinator_of_a_home_is_refused_and_a_later_one_reads_the_record() {
    let yard = Yard::new();
    let home = yard.home("home");
    assert!(!is_coordinated(&home, "shop") && list_names(&home).unwrap().is_empty());
    let (store, record) = yard.begin(&home, false);
    assert!(is_coordinated(&home, "shop"));
    assert_eq!(list_names(&home).unwrap(), ["shop"]);
    let refused = error_of(yard.take(&home, false, true));
    let expected =
        format!("the fleet shop is coordinated already, by process {}", std::process::id());
    assert!(refused.starts_with(&expected), "{refused}");
    assert!(refused.contains(&record.holder.host) && refused.contains(&record.holder.home));
    drop(store);
    // A process that another test starts has the lock, too, until it is another program.
    let is_free = || (!is_coordinated(&home, "shop")).then_some(());
    assert!(Deadline::after(Duration::from_secs(10)).poll(LOCK_LOOK, is_free).is_some());
    assert_eq!(yard.take(&home, false, false).unwrap().1, Some(record));
}

#[test]
fn only_one_home_runs_a_fleet_until_it_releases_it_or_stops_updating_its_record() {
    let yard = Yard::new();
    let (one, other) = (yard.home("one"), yard.home("other"));
    let (mut first, record) = yard.begin(&one, true);
    let refused = error_of(yard.take(&other, true, false));
    assert!(refused.contains("as its record at origin says"), "{refused}");
    assert!(refused.contains(&record.holder.home), "{refused}");
    // The same home takes its own again.
    drop(first);
    (first, _) = yard.begin(&one, true);
    save_record(&mut first, &FleetRecord { holder: record.holder.released(), ..record.clone() })
        .unwrap();
    let (mut second, mut there) = yard.begin(&other, true);
    assert_eq!(there.id, record.id);
    // What lost the ref writes nothing more, and lands nothing.
    let lost = save_record(&mut first, &record).unwrap_err();
    assert!(matches!(&lost, StoreFault::Lost(who) if who.contains(&there.holder.home)), "{lost}");
    let (main, commit) = (yard.main(), yard.commit("work"));
    let base = move_of(&main, &commit);
    assert!(matches!(push_landing(&mut first, &base, &record), Err(StoreFault::Lost(_))));
    assert_eq!(yard.main(), main);
    assert!(second.push(&mut there, PushTime::Usual).is_none(), "it is no minute old");
    // What the first home may clean is what nobody has continued.
    let clean = |home| own_ref(home, &yard.terms(true), &Signals::default());
    assert_eq!(clean(&other).unwrap().unwrap().name, "refs/crew/shop/record");
    assert!(error_of(clean(&one)).starts_with("the fleet shop is coordinated already, by process"));
    there.holder = there.holder.released();
    save_record(&mut second, &there).unwrap();
    assert!(error_of(clean(&one)).contains("has worked on the fleet shop since"));
}

#[test]
fn a_landing_moves_both_the_base_and_the_record_or_neither() {
    let yard = Yard::new();
    let (mut store, record) = yard.begin(&yard.home("home"), true);
    let (main, commit) = (yard.main(), yard.commit("work"));
    let there = || yard.git("origin.git", &["rev-parse", "refs/crew/shop/record"]);
    let landed = FleetRecord { beat: 7, ..record.clone() };
    let base = move_of(&main, &commit);
    assert!(push_landing(&mut store, &base, &landed).unwrap());
    assert_eq!(yard.main(), commit);
    // What a person agreed to on this machine is not there.
    let terms = FleetTerms {
        clones: CloneSetup { trusted: None, ..landed.terms.clones.clone() },
        ..landed.terms.clone()
    };
    assert_eq!(load_record(&store), Some(FleetRecord { terms, ..landed }));
    // Somebody else pushed since the commit was made.
    let (before, late) = (there(), yard.commit("late"));
    let base = move_of(&main, &late);
    assert!(!push_landing(&mut store, &base, &FleetRecord { beat: 8, ..record.clone() }).unwrap());
    assert_eq!((yard.main(), there()), (commit.clone(), before));
    // Where the base has the work already only the record moves.
    let base = move_of(&commit, &commit);
    assert!(push_landing(&mut store, &base, &FleetRecord { beat: 9, ..record }).unwrap());
    assert_eq!(yard.main(), commit);
    assert_eq!(load_record(&store).unwrap().beat, 9);
}

#[test]
fn the_next_start_recognizes_a_landing_that_a_killed_coordinator_had_pushed() {
    let yard = Yard::new();
    let (mut store, mut record) = yard.begin(&yard.home("home"), true);
    let (main, commit) = (yard.main(), yard.commit("work"));
    let ending = TaskEnding::new(Outcome::Completed, "");
    let mut task = TaskRecord {
        attempt: 1,
        work: TaskWork { commit: Some(commit.clone()), ..TaskWork::default() },
        ..TaskRecord::default()
    };
    task.land(ending.clone(), record.started_at);
    record.tasks.insert("vat".parse().unwrap(), task.clone());
    save_record(&mut store, &record).unwrap();
    let landed = Some(Landed::Main(Some(commit.clone())));
    task.set(TaskState::Ended(TaskEnding { landed, ..ending }), record.started_at);
    let mut landed = record.clone();
    landed.tasks.insert("vat".parse().unwrap(), task);
    assert!(push_landing(&mut store, &move_of(&main, &commit), &landed).unwrap());
    assert_eq!(load_record(&store).unwrap().tasks, landed.tasks);
    // Also where the base has moved on, and where another push had come before.
    let (behind, later) = (FleetRecord { beat: 0, ..record.clone() }, yard.commit("later"));
    landed.beat = 1;
    assert!(push_landing(&mut store, &move_of(&commit, &later), &landed).unwrap());
    store.save_record(&behind).unwrap();
    assert_eq!(load_record(&store).unwrap().tasks, landed.tasks);
    // Not where the remote was killed after it had moved the record alone.
    yard.git("origin.git", &["update-ref", "refs/heads/main", &main]);
    for beat in [0, 1] {
        store.save_record(&FleetRecord { beat, ..record.clone() }).unwrap();
        assert_eq!(load_record(&store).unwrap().tasks, record.tasks);
    }
    // Not of another attempt.
    for task in record.tasks.values_mut() {
        task.attempt = 2;
    }
    yard.git("origin.git", &["update-ref", "refs/heads/main", &later]);
    store.save_record(&FleetRecord { beat: 1, ..record.clone() }).unwrap();
    assert_eq!(load_record(&store).unwrap().tasks, record.tasks);
}

#[test]
fn a_push_whose_answer_was_lost_is_recognized_and_a_removed_record_is_an_error() {
    let yard = Yard::new();
    let (mut store, record) = yard.begin(&yard.home("home"), true);
    {
        let mut shared = store.shared.as_ref().unwrap().lock().unwrap();
        let before = shared.refs.clone();
        shared.push(&record, None).unwrap();
        shared.refs.lose_answer(&before);
    }
    save_record(&mut store, &record).unwrap();
    yard.git("origin.git", &["update-ref", "-d", "refs/crew/shop/record"]);
    let lost = save_record(&mut store, &record).unwrap_err().to_string();
    assert!(lost.ends_with("its record at origin was removed"), "{lost}");
}

#[test]
fn an_unreachable_remote_loses_nothing_and_a_planted_setting_stops_every_push() {
    let yard = Yard::new();
    let (mut store, record) = yard.begin(&yard.home("home"), true);
    let [here, away] = ["origin.git", "away.git"].map(|name| yard.root.path().join(name));
    disk::rename(&here, &away).unwrap();
    assert!(matches!(save_record(&mut store, &record), Err(StoreFault::Remote(_))));
    store.save_record(&FleetRecord { beat: 3, ..record.clone() }).unwrap();
    disk::rename(&away, &here).unwrap();
    let mut last = record.clone();
    store.tried_at = Some(Stopwatch::start());
    assert!(store.push(&mut last, PushTime::Soon).is_none(), "a push failed just now");
    store.push(&mut last, PushTime::Now).unwrap()().unwrap();
    store.note_answer(true);
    yard.git("repo", &["config", "core.sshCommand", "touch planted"]);
    let refused = save_record(&mut store, &record).unwrap_err();
    assert!(matches!(&refused, StoreFault::Remote(_)), "{refused}");
}

#[test]
fn a_record_that_could_not_be_read_again_is_not_written() {
    let yard = Yard::new();
    let home = yard.home("home");
    let (mut store, record) = yard.begin(&home, false);
    let include = Some("x".repeat(RECORD_BYTES_MAX));
    let long = FleetRecord {
        terms: FleetTerms {
            clones: CloneSetup { include, ..yard.terms(false).clones },
            ..yard.terms(false)
        },
        ..record.clone()
    };
    let refused = store.save_record(&long).unwrap_err().to_string();
    assert_eq!(refused, "the record of the fleet is longer than 8 MiB");
    assert_eq!(read_local(&home, "shop").unwrap(), Some(record));
}

#[test]
fn the_record_at_the_remote_contains_nothing_local_to_this_machine() {
    let record = FleetRecord { terms: Yard::new().terms(true), ..FleetRecord::default() };
    assert!(record.terms.clones.trusted.is_some());
    let message = record_text(&record).unwrap();
    let (title, kept) = message.split_once("\n\n").unwrap();
    assert_eq!(title, "crew fleet shop");
    let kept: FleetRecord = serde_json::from_str(kept).unwrap();
    assert_eq!(kept.terms.clones.trusted, None);
}

#[test]
fn requests_are_read_in_order_and_unreadable_ones_are_moved_aside() {
    let yard = Yard::new();
    let home = yard.home("home");
    let pause = FleetRequest::Task(TaskRequest::Pause { now: true });
    let none = error_of(send_request(&home, "shop", None, &pause));
    assert!(none.starts_with("this machine has no fleet shop"), "{none}");
    let (_store, _) = yard.begin(&home, false);
    let files = FleetFiles::new(&home, "shop");
    let vat: TaskId = "vat".parse().unwrap();
    let tell = FleetRequest::Tell { words: "use the parser".to_owned(), by_agent: false };
    send_request(&home, "shop", Some(&vat), &pause).unwrap();
    send_request(&home, "shop", None, &tell).unwrap();
    write_request(&files, "00-broken.json", b"{\"task\":\"../x\"}");
    write_request(&files, "00-long.json", &vec![b' '; 1 << 20]);
    write_request(&files, ".hidden.json", b"{}");
    let waiting = WaitingRequests::read_waiting(&files);
    assert_eq!(waiting.requests, [(Some(vat), pause.clone()), (None, tell)]);
    assert_eq!(waiting.notes.len(), 2, "{:?}", waiting.notes);
    assert!(waiting.notes[0].contains("cannot be read"), "{:?}", waiting.notes);
    waiting.remove_files().unwrap();
    assert!(WaitingRequests::read_waiting(&files).requests.is_empty());
    for number in 0..REQUESTS_MAX {
        write_request(&files, &format!("{number}.json"), b"{}");
    }
    let full = error_of(send_request(&home, "shop", None, &pause));
    let run = "hint: crew fleet run tasks reads them";
    assert_eq!(full, format!("1000 requests to the fleet shop wait already\n{run}"));
}

#[test]
fn processes_of_another_home_are_not_mistaken_for_local_ones() {
    let yard = Yard::new();
    let (one, other) = (yard.home("one"), yard.home("other"));
    let (mut first, mut record) = yard.begin(&one, true);
    let running = TaskState::Running { job: "7@1".to_owned(), since: record.started_at };
    let task = TaskRecord { attempt: 1, state: running, ..TaskRecord::default() };
    record.tasks.insert("vat".parse().unwrap(), task);
    record.holder = record.holder.released();
    save_record(&mut first, &record).unwrap();
    drop(first);
    let job = |home: &Home| {
        let (_store, found) = yard.take(home, true, false).unwrap();
        let task = found.unwrap().tasks.into_values().next().unwrap();
        let TaskState::Running { job, .. } = task.state else { panic!("{task:?}") };
        job
    };
    assert_eq!((job(&one), job(&other)), ("7@1".to_owned(), String::new()));
}

fn write_request(files: &FleetFiles, name: &str, bytes: &[u8]) {
    disk::write(&files.requests().join(name), bytes, Durability::Process).unwrap();
}

#[test]
fn a_home_is_identified_by_an_id_that_is_written_once() {
    let yard = Yard::new();
    let (one, other) = (yard.home("one"), yard.home("other"));
    let id = |home: &Home| home_id(home).unwrap();
    assert_eq!(id(&one), id(&one));
    assert_ne!(id(&one), id(&other));
    disk::remove(&other.root().join("id")).unwrap();
    tree::copy_with_time(&one.root().join("id"), &other.root().join("id")).unwrap();
    assert_ne!(id(&one), id(&other), "a copy of a home is another one");
    assert!(Path::new(&id(&one)).components().count() == 1 && id(&one).len() == 16);
}

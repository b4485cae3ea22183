//! Reactions as real commands in a separate folder.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use engine::fixture::a_loop;
use engine::record::{
    Agent, Dialect, GitSteps, IterationTimes, Permissions, PromptVia, Recipe, Run,
};
use world::files::disk;

/// A loop in a folder, whose reactions may take a minute.
struct Scene {
    folder: TempDir,
    subject: Loop,
}

impl Scene {
    fn new(reactions: &[(LoopMoment, &str)]) -> Self {
        let folder = testkit::folder();
        let mut subject = a_loop();
        subject.place.folder = folder.path().to_owned();
        let reaction = |(on, run): &(LoopMoment, &str)| Reaction {
            on: *on,
            run: (*run).to_owned(),
            timeout_s: 60,
        };
        subject.contract.run = Some(Run {
            procedure: Some("build".to_owned()),
            agent: Agent {
                name: "fake".to_owned(),
                command: Vec::new(),
                prompt: PromptVia::Stdin,
                dialect: Dialect::TEXT,
                permissions: [].into(),
                ..Agent::default()
            },
            permissions: Permissions::default(),
            recipe: Recipe::default(),
            pace: IterationTimes::default(),
            max_turns: 0,
            token_budget: 100_000,
            may_sleep: false,
            git: GitSteps::default(),
            reactions: reactions.iter().map(reaction).collect(),
            ..Run::default()
        });
        Self { folder, subject }
    }

    fn open_home(&self) -> Home {
        Home::at(&self.folder.path().join("home"))
    }

    fn run_reactions(&self, on: LoopMoment) -> Vec<ReactionEnd> {
        ThisMachine(&self.open_home()).react(&self.subject, on, &|_| (), &|| false)
    }

    fn with_timeout(mut self, seconds: u64) -> Self {
        for reaction in self.subject.contract.run.iter_mut().flat_map(|run| &mut run.reactions) {
            reaction.timeout_s = seconds;
        }
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read_file(&self, name: &str) -> String {
        disk::read_text(&self.path(name), 1 << 20).unwrap().unwrap_or_default()
    }
}

fn list_verdicts(ends: &[ReactionEnd]) -> Vec<(Verdict, Option<i32>)> {
    ends.iter().map(|end| (end.verdict, end.exit)).collect()
}

#[test]
fn the_reactions_of_a_moment_run_in_order_even_after_a_failure() {
    let scene = Scene::new(&[
        (LoopMoment::Finish, "echo one >> log"),
        (LoopMoment::Wait, "echo another moment >> log"),
        (LoopMoment::Finish, "echo two >> log; echo it is full >&2; exit 3"),
        (LoopMoment::Finish, "echo three >> log"),
    ]);
    let ends = scene.run_reactions(LoopMoment::Finish);
    let passed = (Verdict::Passed, Some(0));
    assert_eq!(list_verdicts(&ends), [passed, (Verdict::Failed, Some(3)), passed]);
    assert_eq!(scene.read_file("log"), "one\ntwo\nthree\n");
    assert!(ends[1].has_failed());
    assert_eq!(
        ends[1].end_line(),
        "finish `echo two >> log; echo it is full >&2; exit 3` failed (exit 3): it is full"
    );
    assert_eq!(scene.run_reactions(LoopMoment::Stall), []);
    let begun = Cell::new(0);
    let begins = |event: &RunEvent<'_>| {
        let begun_step = event.begun_step().map(|(_, run)| run);
        assert!(begun_step.is_some_and(|run| run.starts_with("echo")), "{event:?}");
        begun.set(begun.get() + 1);
    };
    ThisMachine(&scene.open_home()).react(&scene.subject, LoopMoment::Finish, &begins, &|| false);
    assert_eq!(begun.get(), 3, "each is named as it begins");
}

#[test]
fn a_reaction_gets_the_loop_in_its_variables_and_on_standard_input() {
    let scene = Scene::new(&[(
        LoopMoment::IterationStart,
        "cat > told.json; echo \"$CREW_ON $CREW_LOOP $CREW_ITERATION/$CREW_MAX_ITERATIONS \
         [$CREW_OUTCOME] ${CLAUDECODE-unset}\"; pwd -P > where",
    )]);
    let ends = scene.run_reactions(LoopMoment::IterationStart);
    assert_eq!(ends[0].tail, "iteration_start haaaaaaa 1/10 [] unset");
    let folder = disk::real_path(scene.folder.path()).unwrap();
    assert_eq!(Path::new(scene.read_file("where").trim()), folder);
    let shown: Value = serde_json::from_str(&scene.read_file("told.json")).unwrap();
    assert_eq!(shown["schema"], 2);
    assert_eq!(shown["on"], "iteration_start");
    assert_eq!(shown["task"], "Build the todo API");
    assert_eq!((&shown["procedure"], &shown["agent"]), (&json!("build"), &json!("fake")));
}

#[test]
fn a_reaction_that_does_not_read_its_long_input_ends_anyway() {
    let mut scene =
        Scene::new(&[(LoopMoment::Finish, "exit 0"), (LoopMoment::Finish, "wc -c > size")]);
    scene.subject.contract.task = "x".repeat(1 << 20);
    assert!(
        scene.run_reactions(LoopMoment::Finish).iter().all(|end| end.verdict == Verdict::Passed)
    );
    assert!(scene.read_file("size").trim().parse::<usize>().unwrap() > 1 << 20);
}

#[test]
fn a_reaction_that_takes_too_long_is_ended_with_all_it_started() {
    let scene =
        Scene::new(&[(LoopMoment::IterationEnd, "echo begun; (sleep 600; : > late) & wait")]);
    let scene = scene.with_timeout(1);
    let ends = scene.run_reactions(LoopMoment::IterationEnd);
    assert_eq!(list_verdicts(&ends), [(Verdict::TimedOut, None)]);
    assert!(ends[0].has_failed());
    assert_eq!(ends[0].tail, "begun");
    // Its note is gone too: a later crew finds nothing to end.
    let notes = scene.open_home().loop_file(&scene.subject.id, "groups");
    assert_eq!(disk::names(&notes, 9), [""; 0]);
}

#[test]
fn a_reaction_that_a_foreign_signal_or_the_end_of_the_run_kills_has_not_failed() {
    let killed =
        Scene::new(&[(LoopMoment::Finish, "kill -KILL $$")]).run_reactions(LoopMoment::Finish);
    assert_eq!(list_verdicts(&killed), [(Verdict::Unknown, None)]);
    assert!(!killed[0].has_failed());

    let scene = Scene::new(&[(LoopMoment::Finish, "sleep 600"), (LoopMoment::Finish, ": > next")]);
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let ends =
        ThisMachine(&scene.open_home()).react(&scene.subject, LoopMoment::Finish, &|_| (), &stop);
    assert_eq!(list_verdicts(&ends), [(Verdict::Unknown, None)]);
    assert!(!disk::exists(&scene.path("next")));
}

#[test]
fn a_folder_that_is_gone_is_a_failure_with_its_reason() {
    let mut scene = Scene::new(&[(LoopMoment::IterationStart, "true")]);
    scene.subject.place.folder = scene.path("gone");
    let ends = scene.run_reactions(LoopMoment::IterationStart);
    assert_eq!(list_verdicts(&ends), [(Verdict::Failed, None)]);
    assert!(ends[0].end_line().starts_with("iteration_start `true` could not be started: "));
}

#[test]
fn only_the_end_of_a_long_output_is_kept() {
    let scene = Scene::new(&[(LoopMoment::Finish, "seq 1 100000; exit 1")]);
    let ends = scene.run_reactions(LoopMoment::Finish);
    assert!(ends[0].tail.len() <= TAIL_CHARS && ends[0].tail.ends_with("\n99999\n100000"));
}

#[test]
fn a_loop_without_a_run_has_no_reactions() {
    let home = Home::at(Path::new("/nowhere"));
    assert_eq!(ThisMachine(&home).react(&a_loop(), LoopMoment::Finish, &|_| (), &|| false), []);
}

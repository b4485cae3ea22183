//! Loops that share an account: a limit that one of them reaches applies to all of them, and they
//! return one after the other. Each works in a separate folder, and all have one home. The agent's
//! service refuses until the time in the note `until`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use super::World;
use super::claude::{answer, limited};
use crate::sandbox::{DEADLINE, poll_until, poll_within};
use crate::spawned::Running;

/// How far apart two loops return.
const APART: f64 = 20.0;

/// A world of loops of one account. An agent notes when it starts. One that begins before the note
/// `go` is there waits for it, unless its folder has the file `first`, and is answered, unless the
/// note `all` is there.
fn world() -> World {
    let step = format!(
        "echo \"$(date +%s.%N) $(basename \"$PWD\")\" >> \"$notes/starts\"\n\
         echo line >> work.txt\n\
         left=0; while ! [ -e first -o -e \"$notes/go\" ]; do sleep 0.05; [ -e \"$notes/all\" ] || left=-1; done\n\
         until=$(cat \"$notes/until\" 2>/dev/null || echo 0)\n\
         [ \"$left\" = -1 ] || left=$((until - $(date +%s)))\n\
         if [ \"$left\" -gt 0 ]; then {}; fi\n\
         {}\n",
        limited("$left"),
        answer("Wrote a line.")
    );
    World::claude(&[&step], "agents.fake.model = \"--model\"\n")
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// Makes the service refuse for this many seconds from now on. Returns the end of that time.
fn refuses_for(world: &World, seconds: u32) -> f64 {
    let until = now().ceil() + f64::from(seconds);
    std::fs::write(world.note("until"), format!("{until}")).unwrap();
    until
}

fn is_answered_again(world: &World) {
    std::fs::write(world.note("until"), "0").unwrap();
}

fn folder(world: &World, name: &str) -> PathBuf {
    let folder = world.sandbox.root().join("loops").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Starts a loop in its folder, with additional variables.
fn start(world: &World, name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(arguments).current_dir(folder(world, name)).envs(variables.iter().copied());
    Running::start(command, None)
}

fn run(world: &World, name: &str, iterations: &str) -> Running {
    start(world, name, &["run", "Do it", "-n", iterations], &[])
}

/// The loop that reaches the limit in its first call.
fn first(world: &World, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
    std::fs::write(folder(world, "first").join("first"), "").unwrap();
    let first = start(world, "first", arguments, variables);
    poll_until("a limit is met", || first.stdout().contains("Waiting until"));
    first
}

/// The starts of the loops' agents, each with its time.
fn starts(world: &World) -> Vec<(f64, String)> {
    let text = std::fs::read_to_string(world.note("starts")).unwrap_or_default();
    let line = |line: &str| {
        let (at, name) = line.split_once(' ').unwrap();
        (at.parse().unwrap(), name.to_owned())
    };
    text.lines().map(line).collect()
}

/// Starts loops and waits until all of their agents are at work.
fn at_work(world: &World, names: &[String]) -> Vec<Running> {
    let loops = names.iter().map(|name| run(world, name, "2")).collect();
    poll_until("every agent works", || starts(world).len() == names.len());
    loops
}

fn go(world: &World) {
    std::fs::write(world.note("go"), "").unwrap();
}

#[track_caller]
fn status(world: &World) -> Value {
    let shown = world.crew(&["status", "--all", "--json"]).success();
    serde_json::from_str(&shown).unwrap()
}

/// The record of the loop in a folder.
#[track_caller]
fn shown(world: &World, name: &str) -> Value {
    let folder = folder(world, name).display().to_string();
    let loops = status(world)["loops"].as_array().unwrap().clone();
    loops.into_iter().find(|it| it["checkout"] == folder.as_str()).unwrap()
}

fn waits(world: &World) -> usize {
    let loops = status(world)["loops"].as_array().unwrap().clone();
    loops.iter().filter(|it| it["status"] == "waiting").count()
}

/// Lets one loop reach a limit while the others are at work: all of them wait, and all return.
#[track_caller]
fn come_back(others: usize, seconds: u32) {
    let world = world();
    let names: Vec<String> = (1..=others).map(|number| format!("r{number:02}")).collect();
    let loops = at_work(&world, &names);
    let until = refuses_for(&world, seconds);
    let first = first(&world, &["run", "Do it", "-n", "2"], &[]);
    let before = starts(&world).len();
    assert_eq!(before, others + 1);
    go(&world);
    poll_until("every loop waits", || waits(&world) == others + 1);
    assert!(now() < until, "the machine is too slow for a window of {seconds} s");
    let met_by = shown(&world, "first")["id"].as_str().unwrap().to_owned();
    let waiting = shown(&world, "r01");
    let why = format!("limit met by loop {met_by}: It did not answer (rate_limit)");
    assert_eq!(waiting["wait"]["why"], why.as_str(), "{waiting:#}");
    assert_eq!(waiting["wait"]["account"]["name"], "agent");
    let deadline = Duration::from_secs(u64::from(seconds) + 22 * (others as u64 + 1) + 60);
    poll_within(deadline, "every loop is over", || {
        first.has_ended() && loops.iter().all(Running::has_ended)
    });
    for ended in loops.into_iter().chain([first]) {
        assert_eq!(ended.wait(DEADLINE).code(), 10);
    }
    let returned = &starts(&world)[before..];
    let mut back: Vec<(f64, String)> = Vec::new();
    for (at, name) in returned {
        if !back.iter().any(|(_, known)| known == name) {
            back.push((*at, name.clone()));
        }
    }
    let times: Vec<f64> = back.iter().map(|(at, _)| at - until).collect();
    let least = times.windows(2).map(|two| two[1] - two[0]).fold(f64::MAX, f64::min);
    crate::client::say(&format!(
        "{} loops, a window of {seconds} s: first back {:.1} s after its end, last {:.1} s, at least {least:.2} s apart",
        others + 1,
        times[0],
        times[others]
    ));
    assert_eq!(back.len(), others + 1);
    assert!(times[0] >= 0.0, "a start in the window: {times:?}");
    assert!(least >= APART, "{times:?}");
    assert_eq!(back[0].1, "first");
    for it in status(&world)["loops"].as_array().unwrap() {
        let counted = (&it["completed_iterations"], &it["consecutive_failures"]);
        assert_eq!(counted, (&2.into(), &0.into()), "{it:#}");
    }
}

#[test]
#[ignore = "long"]
fn loops_of_an_account_wait_for_its_usage_limit_and_return_one_by_one() {
    come_back(3, 8);
}

/// It takes seven and a half minutes.
#[test]
#[ignore = "long"]
fn twenty_loops_wait_for_a_usage_limit_and_return_one_by_one() {
    if std::env::var("CREW_LONG_WAIT").as_deref() == Ok("1") {
        come_back(19, 40);
    } else {
        crate::client::say("skipped: seven minutes of waiting; CREW_LONG_WAIT=1 runs it");
    }
}

#[test]
#[ignore = "long"]
fn a_window_outlives_its_loop_and_a_typed_start_clears_a_wrong_one() {
    let world = world();
    let other = at_work(&world, &["r01".to_owned()]).remove(0);
    refuses_for(&world, 600);
    let first = first(&world, &["run", "Do it"], &[]);
    let met_by = shown(&world, "first")["id"].as_str().unwrap().to_owned();
    first.signal(Signal::KILL);
    first.wait(DEADLINE);
    go(&world);
    poll_until("the other loop waits", || other.stdout().contains("Waiting until"));
    let page = world.crew(&["status", "--all"]).success();
    let line = page.lines().last().unwrap();
    let id = shown(&world, "r01")["id"].as_str().unwrap().to_owned();
    assert!(line.starts_with("agent is at its limit until "), "{page}");
    let met = format!("(met by loop {met_by}: It did not answer (rate_limit)); 1 loop waits, ");
    assert!(line.contains(&met) && line.ends_with(&format!(": {id}")), "{page}");
    let windows = &status(&world)["windows"];
    assert_eq!(windows[0]["waiting"], serde_json::json!([id]), "{windows:#}");
    assert_eq!(windows[0]["met_by"], met_by.as_str());

    is_answered_again(&world);
    let typed = run(&world, "typed", "2");
    let said = format!(
        "the service answers again: no loop waits for the limit met by loop {met_by}: It did not answer (rate_limit) any longer"
    );
    poll_until("the window is cleared", || typed.stderr().contains(&said));
    let cleared = now();
    assert_eq!(typed.wait(DEADLINE).code(), 10);
    let other = other.wait(DEADLINE);
    assert_eq!(other.code(), 10, "{other:#?}");
    let back = starts(&world).iter().rfind(|(_, name)| name == "r01").unwrap().0;
    assert!(back - cleared >= APART - 1.0, "back after {}", back - cleared);
    assert_eq!(status(&world)["windows"], serde_json::json!([]));
}

#[test]
#[ignore = "long"]
fn a_typed_start_tries_once_and_a_new_limit_extends_the_wait() {
    let world = world();
    let other = at_work(&world, &["r01".to_owned()]).remove(0);
    refuses_for(&world, 300);
    let first = first(&world, &["run", "Do it"], &[]);
    go(&world);
    poll_until("the other loop waits", || waits(&world) == 2);
    let due = |name| shown(&world, name)["wait"]["until"].as_str().unwrap().to_owned();
    let before = due("r01");
    let until = refuses_for(&world, 900);
    let typed = run(&world, "typed", "2");
    poll_until("the typed start waits", || waits(&world) == 3);
    poll_until("the other loop waits longer", || due("r01") > before);
    assert!(before < due("typed") && due("typed") < due("r01"));
    assert_eq!(starts(&world).iter().filter(|(_, name)| name == "typed").count(), 1);

    // So does one whose wait a person cuts short.
    let id = shown(&world, "r01")["id"].as_str().unwrap().to_owned();
    let calls = starts(&world).len();
    world.crew(&["resume", "--now", &id]).success();
    poll_until("it tries", || starts(&world).len() == calls + 1);
    poll_until("it waits again", || waits(&world) == 3 && now() < until);
    for running in [first, other, typed] {
        running.signal(Signal::INT);
        assert_eq!(running.wait(DEADLINE).code(), 130);
    }
}

#[test]
fn a_limit_stops_no_loop_of_another_account_or_model() {
    let world = world();
    refuses_for(&world, 600);
    let first = first(&world, &["run", "Do it"], &[("CREW_ACCOUNT", "work")]);
    is_answered_again(&world);
    go(&world);
    let plain = vec!["run", "Do it", "-n", "2"];
    let with_model = [&plain[..], &["--model", "m"]].concat();
    for (name, arguments, account) in
        [("none", &plain, "agent"), ("home", &plain, "home"), ("model", &with_model, "work")]
    {
        let running = start(&world, name, arguments, &[("CREW_ACCOUNT", account)]);
        assert_eq!(running.wait(DEADLINE).code(), 10, "{name}");
    }
    let windows = &status(&world)["windows"];
    assert_eq!(windows.as_array().unwrap().len(), 1, "{windows:#}");
    assert_eq!(windows[0]["account"], serde_json::json!({ "name": "work", "model": null }));
    first.signal(Signal::INT);
    assert_eq!(first.wait(DEADLINE).code(), 130);
}

#[test]
#[ignore = "long"]
fn twenty_loops_that_meet_a_limit_at_once_lose_no_turn() {
    let world = world();
    std::fs::write(world.note("all"), "").unwrap();
    let names: Vec<String> = (1..=20).map(|number| format!("r{number:02}")).collect();
    let loops = at_work(&world, &names);
    refuses_for(&world, 600);
    go(&world);
    poll_until("every loop waits", || waits(&world) == 20);
    let file = world.sandbox.crew_home().join("accounts/agent.json");
    let turns = || {
        let window: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let time = |at: &Value| humantime::parse_rfc3339(at.as_str().unwrap()).unwrap();
        let turns = window["turns"].as_object().unwrap();
        let mut turns: Vec<(SystemTime, String)> =
            turns.iter().map(|(id, at)| (time(at), id.clone())).collect();
        turns.sort_unstable();
        turns
    };
    poll_until("every loop has its turn", || turns().len() == 20);
    let before = turns();
    let apart = |two: &[(SystemTime, String)]| two[1].0.duration_since(two[0].0).unwrap();
    assert!(before.windows(2).all(|two| apart(two).as_secs() >= 20), "{before:?}");

    // Two of them are over: nobody waits for their turns.
    for (_, id) in &before[..2] {
        world.crew(&["cancel", id]).success();
    }
    let times = before.iter().map(|(at, _)| *at);
    let ids = before[2..].iter().map(|(_, id)| id.clone());
    assert_eq!(turns(), times.zip(ids).collect::<Vec<_>>());
    for running in loops {
        running.signal(Signal::INT);
        let code = running.wait(DEADLINE).code();
        assert!([130, 14].contains(&code), "{code}");
    }
}

#[test]
fn an_invalid_window_is_ignored_and_replaced() {
    let world = world();
    go(&world);
    let file = world.sandbox.crew_home().join("accounts/agent.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let soon = humantime::format_rfc3339_seconds(SystemTime::now() + Duration::from_secs(3600));
    let window = |account: &str, until: &str| {
        format!(
            r#"{{"account":{{"name":"{account}"}},"until":"{until}","why":"w","met_by":"haaaaaaa","met_at":"2026-01-01T00:00:00Z","turns":{{}}}}"#
        )
    };
    for text in [
        "{".to_owned(),
        "[1]".to_owned(),
        window("agent", "2999-01-01T00:00:00Z"),
        window("another", &soon.to_string()),
    ] {
        std::fs::write(&file, &text).unwrap();
        let name = format!("r{}", text.len());
        let ran = run(&world, &name, "2").wait(DEADLINE);
        assert_eq!(ran.code(), 10, "{text}: {ran:#?}");
        assert!(!ran.stdout.contains("Waiting"), "{text}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    refuses_for(&world, 600);
    let first = first(&world, &["run", "Do it"], &[]);
    let id = shown(&world, "first")["id"].clone();
    assert_eq!(status(&world)["windows"][0]["met_by"], id);
    first.signal(Signal::INT);
    assert_eq!(first.wait(DEADLINE).code(), 130);

    // Only one that is over is removed.
    world.crew(&["clean", "--yes"]).success();
    assert!(file.exists());
    std::fs::write(&file, window("agent", "2020-01-01T00:00:00Z")).unwrap();
    world.crew(&["clean", "--yes"]).success();
    assert!(!file.exists());
}

/// The account's window exists, and nothing can be added to it.
#[test]
#[ignore = "long"]
fn a_loop_whose_turn_cannot_be_written_waits_quietly() {
    let world = world();
    refuses_for(&world, 600);
    let other = at_work(&world, &["r01".to_owned()]).remove(0);
    let first = first(&world, &["run", "Do it"], &[]);
    let folder = world.sandbox.crew_home().join("accounts");
    let lock = folder.join("agent.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    go(&world);
    let shown = || other.stdout().matches("Waiting until").count();
    poll_until("the other loop waits", || shown() > 0);
    // It looks once a second: its own wait, and its turn, are each told once.
    std::thread::sleep(Duration::from_secs(5));
    assert!(shown() <= 2, "{}", other.stdout());
    for running in [first, other] {
        running.signal(Signal::INT);
        assert_eq!(running.wait(DEADLINE).code(), 130);
    }
}

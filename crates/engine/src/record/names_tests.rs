//! The names of all fields of a record: what was written has to be read again.

use serde::Serialize;
use serde_json::{Value, json};

use super::*;
use crate::evidence::{ClaimResult, Progress, Verdict};
use crate::journal::JournalEntry;
use crate::record::Driver;
use crate::record::QuestionMode;
use crate::record::Role;
use crate::record::Status;
use crate::record::{Agent, Dialect, Permissions, PromptVia};
use crate::record::{Fragment, LoopMoment};
use crate::record::{Outcome, Proof};

fn usage() -> Value {
    let tokens = json!({
        "input": 1, "cache_write": 2, "cache_write_hour": 3, "cache_read": 4, "output": 5,
    });
    json!({
        "tokens": tokens, "cost": 6, "unpriced": tokens, "unpriced_models": ["m"], "lost": true,
        "behind": true,
    })
}

fn mark() -> Value {
    json!({ "bytes": 1, "ends": "d", "recent": [{ "id": "m", "tokens": usage()["tokens"], "cost": 1 }] })
}

fn contract() -> Value {
    let permissions = json!({ "accept-edits": ["--edits"], "bypass": ["--all"] });
    let agent = json!({
        "name": "mine", "command": ["agent"], "prompt": "argument", "dialect": "codex",
        "permissions": permissions, "max_turns": "--max-turns",
        "model": "--model", "allow": "--allow=Bash({check})",
        "environment": { "V": "1" }, "usage_file": "--usage", "answer_mark": ">", "login": ["auth"],
    });
    let pieces = json!([{ "text": "t" }, { "file": "/f.j2" }, { "built_in": "b" }]);
    json!({
        "task": "t", "promise": "P", "protect": ["tests/**"], "require": "checked", "test_changes": "report",
        "questions": "defer", "silent": true,
        "trial": { "prove": "proven", "timeout_s": 1, "setup": "s", "tests": ["t"], "may_change": ["g"] },
        "checks": [{
            "run": "c", "role": "verify", "timeout_s": 1, "success_exit_code": 2, "no_worse": true,
        }],
        "limits": {
            "max_iterations": 2, "failure_threshold": 2, "stall": 3, "max_duration_s": 4,
            "max_wait_s": 5, "max_cost_micros": 6, "max_tokens": 7,
        },
        "run": {
            "procedure": "p", "agent": agent, "fallback": [agent], "permissions": "bypass", "model": "m", "account": "a", "words": ["w"],
            "recipe": {
                "context": pieces, "observe": pieces, "orient": pieces, "decide": pieces,
                "act": pieces,
            },
            "pace": { "timeout_s": 1, "idle_timeout_s": 2, "delay_s": 3 },
            "max_turns": 1, "token_budget": 2, "redline": 80,
            "git": {
                "commit": true, "push": true, "rebase": "main", "branch": "b",
            },
            "reactions": [{ "on": "iteration_start", "run": "r", "timeout_s": 1 }],
            "may_sleep": true,
        },
    })
}

fn session() -> Value {
    json!({
        "prompt_id": "p", "without_tools": 1, "transcript_bytes": 2, "transcript": "/t",
        "metered": {
            "since": "2026-11-22T08:00:00Z", "last": "2026-11-22T08:00:00Z", "main": mark(),
            "agents": { "a": mark() },
        },
        "last_stop": { "digest": "d", "recorded_ms": 3 },
        "tasks": ["a"], "unawaited": ["b"], "holds": 4, "worked_holds": 5,
        "queue": {
            "bytes": 6, "waiting": ["/crew:pause"],
            "executed": [{ "command": "/crew:pause", "iteration": 7 }],
        },
        "dialog": {
            "since": "2026-11-22T08:00:00Z", "tool": "Bash", "call": "t", "is_question": true,
            "transcript": "/t", "transcript_bytes": 8,
        },
    })
}

fn trees() -> Value {
    json!({
        "snapshot": "s", "head": { "branch": "b", "commit": "c" },
        "repositories": { "lib": { "commit": "c", "uncommitted": "u" } }, "tips": ["c"], "recent": [[1, "i"]],
    })
}

fn baseline() -> Value {
    json!({ "commit": "s", "named": { "run": ["r"], "compared": ["c"], "tests": ["t"], "globs": ["t/*"], "loaded": ["l"], "written": ["w"], "folders": ["f"], "programs": ["p"] }, "hashes": { "h": "1" } })
}

fn git() -> Value {
    json!({
        "pushed": { "remote": "r", "branch": "b", "commit": "c", "rebased": "d" },
        "commits": { "count": 1, "why": "w" }, "pushes": { "count": 2, "why": "w" },
        "pending": { "commit": true, "push": true, "reaction": true },
    })
}

fn owner() -> Value {
    json!({
        "driver": "session", "session_id": "s", "client": "c", "process": { "pid": 42, "started": "9" },
        "search_path": "/bin", "host": { "name": "n", "machine": "m", "boot": "b" },
    })
}

fn state() -> Value {
    let mut state = json!({
        "generation": 1, "boundaries": 2, "status": "finished",
        "ending": {
            "outcome": "completed", "proof": "checked", "why": "ran, and every check passes; r",
            "reason": { "is": "completed", "of": {
                "basis": { "is": "limit", "of": { "ran": "ran", "is_checked": true } }, "remark": "r",
            } },
            "proof_notes": ["n"],
        },
        "owner": owner(),
        "completed": 2, "consecutive_failures": 1, "still": 1, "transient_errors": 3, "crashes": 2, "tally": tally(),
        "due": "2026-11-22T08:00:00Z", "awaited": "a rate limit",
        "agents": agents(),
        "window": { "name": "a", "model": "m" }, "awake_ms": 4,
        "began": { "wall": "2026-11-22T08:00:00Z", "awake_ms": 5 },
        "last_iteration_at": "2026-11-22T08:00:00Z", "ended_at": "2026-11-22T08:00:00Z", "proved_at": "2026-11-22T08:00:00Z",
        "prover": { "pid": 42, "started": "9" }, "tree": "t", "trees": trees(),
        "checks": { "c": {
            "last": "timedout", "failed_with": 2, "program_missing": true, "after": 3, "exit": 4, "elapsed_ms": 5, "tail": "t",
        } }, "checked_as_found": true, "checked_after_work": true, "baseline": baseline(), "test_refusals": 1, "unrecorded": "u",
        "incurable": { "is": "checks", "of": ["i"] },
        "evidence": evidence(),
        "usage": usage(), "words": ["w"], "in_prompt": 1,
        "asked": [{ "iteration": 1, "question": "q", "options": ["o"] }],
        "git": git(),
        "session": session(),
    });
    // The macro takes no more keys at once.
    state["counted_late"] = json!(1);
    state
}

fn tally() -> Value {
    json!({
        "iterations_completed": 1, "iterations_failed": 2, "iterations_timed_out": 3, "iterations_skipped": 4,
        "iterations_interrupted": 8, "files_changed": 5, "files_created": 6, "files_modified": 7,
    })
}

fn changes() -> Value {
    json!({
        "files": [
            { "path": "p", "kind": { "renamed": { "from": "f" } }, "lines": [1, 2], "yours": true },
        ],
        "created": 1, "modified": 2, "deleted": 3, "renamed": 4, "added": 5, "removed": 6,
        "head": { "commits": 7, "gone": 8, "switched_to": "b", "holds_work": true },
        "white_space": true, "left_out": ["l"], "repositories": ["lib"], "elsewhere": 9,
    })
}

fn evidence() -> Value {
    json!({
        "iteration": 1, "status": "timed_out", "started_at": "2026-11-22T08:00:00Z", "exit": 1, "claim": { "is": "near_miss", "because": "b" },
        "checks": [{
            "run": "c", "roles": ["verify", "gate", "until"], "verdict": "failed", "exit": 1,
            "elapsed_ms": 2, "tail": "t", "tests": tests(),
        }],
        "failure": "f", "failed_gate": "g", "errors": "e", "skipped": "s", "ended": "e", "progress": "made", "mended": 3,
        "progress_why": "w", "changes": changes(),
        "usage": usage(), "agent": "mine", "context_percent": 86, "context_tokens": 93_000, "said": "s", "words": ["w"], "cut": true,
    })
}

fn agents() -> Value {
    json!({
        "active_fallback": { "agent": "mine", "until": "2026-11-22T08:00:00Z" }, "out": ["o"],
        "alone": "mine", "shares": { "mine": { "iterations": 1, "usage": usage() } },
    })
}

fn environment() -> Value {
    json!({ "salt": "s", "hashes": { "PATH": "h" }, "values": { "PATH": "/bin" } })
}

fn protected() -> Value {
    json!({ "snapshot": "s", "outside": { "p": "m" } })
}

/// A record with every field, as this crew writes it.
pub fn every_field() -> Value {
    json!({
        "version": VERSION, "id": "k3v9abcd", "made_by": "0.1.0",
        "started_at": "2026-11-22T08:00:00Z", "contract": contract(),
        "place": {
            "checkout": "/r", "folder": "/r/f", "branch": "b", "branch_dir": "b",
            "repository": "/r/.git", "head": "h", "apart": "/a", "is_clone": true,
        },
        "elapsed_ms": [1],
        "earlier": { "count": 1, "min_ms": 2, "max_ms": 3, "sum_ms": 4 }, "trusted": [{ "name": "n", "value": "v" }],
        "environment": environment(), "protected": protected(),
        "fleet": { "name": "n", "task": "t" }, "state": state(),
    })
}

fn tests() -> Value {
    let names = json!({ "count": 1, "first": ["n"] });
    json!({
        "passed": 1, "failed": 2, "skipped": 3, "filtered": 4, "errors": 5, "failing": names,
        "same_failures": 6, "fixed": names, "broken": names, "gone": names, "newly_skipped": names,
        "total_before": 7, "skipped_before": 2, "failed_before": 8,
    })
}

/// A name changed here breaks every existing record.
#[test]
fn a_record_has_exactly_these_field_names() {
    let mut record: Loop = serde_json::from_value(every_field()).unwrap();
    record.place.branches = "in no record";
    assert_eq!(record.check_rules(), Ok(()));
    assert_eq!(serde_json::to_value(&record).unwrap(), every_field());
    let known = format!("{record:?}")
        .replace("incurable: None, program_missing: false, test_run: None,", "");
    for unset in ["None", "[]", "{}", "\"\"", "false", ": 0,", ": 0 "] {
        assert!(!known.contains(unset), "a field is {unset}: set it in every_field(): {known}");
    }
}

#[test]
fn a_journal_has_exactly_these_field_names() {
    let events = [
        json!({ "started": { "record": every_field() } }),
        json!({ "boundary": {
            "decision": "continue", "why": "w", "elapsed_ms": 1, "state": state(),
        } }),
        json!({ "changed": {
            "what": "w", "limits": contract()["limits"], "after": { "state": state() },
        } }),
        json!({ "changed": { "what": "w", "limits": null, "after": { "record": every_field() } } }),
        json!({ "noted": { "what": "w" } }),
        json!({ "noted": { "what": "w", "kind": { "is": "woken", "of": 2 } } }),
    ];
    for event in events {
        let line = json!({
            "schema": 1, "at": "2026-11-22T08:00:00Z", "generation": 1, "event": event,
        });
        let entry: JournalEntry = serde_json::from_value(line.clone()).unwrap();
        assert_eq!(serde_json::to_value(&entry).unwrap(), line);
    }
}

/// The values on disk, without their quotes.
fn spelled<T: Serialize>(values: impl IntoIterator<Item = T>) -> String {
    let words = values.into_iter().map(|value| serde_json::to_string(&value).unwrap());
    words.collect::<Vec<_>>().join(" ").replace('"', "")
}

#[test]
fn the_values_of_a_record_are_spelled_like_this() {
    use Outcome::{Aborted, Blocked, Cancelled, Completed, Error, Exhausted, Interrupted, Stalled};
    let because = || "b".to_owned();
    let standings = [
        ClaimResult::None,
        ClaimResult::Accepted,
        ClaimResult::Refused(because()),
        ClaimResult::Failure(because()),
        ClaimResult::Blocked(because()),
        ClaimResult::NearMiss(because()),
    ];
    let pieces =
        [Fragment::Text(because()), Fragment::File("f".into()), Fragment::BuiltIn(because())];
    let table = [
        spelled([Status::Running, Status::Waiting, Status::Paused, Status::Finished]),
        spelled([Completed, Exhausted, Aborted, Stalled, Blocked, Cancelled, Interrupted, Error]),
        spelled([Proof::Proven, Proof::Checked, Proof::Passing, Proof::Claimed]),
        spelled([Driver::Session, Driver::Process]),
        spelled(Role::ALL),
        spelled(QuestionMode::ALL),
        spelled([Verdict::Passed, Verdict::Failed, Verdict::TimedOut, Verdict::Unknown]),
        spelled([Progress::Made, Progress::None, Progress::Unknown]),
        spelled(standings),
        spelled(pieces),
        spelled(LoopMoment::ALL),
        spelled(Permissions::ALL),
        spelled([PromptVia::Stdin, PromptVia::Argument]),
        spelled(["claude", "codex", "text"].map(|name| Dialect(name.into()))),
    ];
    insta::assert_snapshot!(table.join("\n"), @"
    running waiting paused finished
    completed exhausted aborted stalled blocked cancelled interrupted error
    proven checked passing claimed
    session process
    verify gate until
    auto ask defer
    passed failed timedout unknown
    made none unknown
    {is:none} {is:accepted} {is:refused,because:b} {is:failure,because:b} {is:blocked,because:b} {is:near_miss,because:b}
    {text:b} {file:f} {built_in:b}
    iteration_start iteration_end wait stall finish
    default accept-edits auto bypass
    stdin argument
    claude codex text
    ");
}

#[test]
fn an_agent_needs_a_command_and_has_defaults_for_the_rest() {
    let read = |text| serde_json::from_str::<Agent>(text).map_err(|error| error.to_string());
    let agent = read(r#"{"command":["m"]}"#).unwrap();
    assert_eq!(agent, Agent { command: vec!["m".to_owned()], ..Agent::default() });
    assert_eq!((agent.prompt, agent.dialect), (PromptVia::Stdin, Dialect::TEXT));
    assert!(read(r#"{"name":"m"}"#).unwrap_err().starts_with("missing field `command`"));
}

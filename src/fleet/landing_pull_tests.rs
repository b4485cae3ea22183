//! Pull requests by a scripted `gh`: opened, found, merged, refused, and a host that cannot be
//! reached.

use super::*;
use crate::fleet::record::TaskWork;
use engine::fleet::Remote;
use world::files::disk::{self, Durability};
use world::files::tree;

/// The result for a branch `fleet/shop/vat/1` at the commit `c0ffee`, with a command-line program
/// that runs this script, and the arguments that it got.
fn open_with(script: &str, stop: Stop<'_>) -> (Result<Result<Landed, Refusal>>, String) {
    let folder = testkit::folder();
    let (gh, words) = (folder.path().join("gh"), folder.path().join("words"));
    let here = folder.path().display();
    let text = format!("#!/bin/sh\nhere={here}\necho \"$*\" >> $here/words\n{script}\n");
    disk::write(&gh, text.as_bytes(), Durability::Process).unwrap();
    tree::set_mode(&gh, 0o700).unwrap();
    let url = "https://example.invalid/shop.git".to_owned();
    let remote = Some(Remote { name: "origin".to_owned(), url });
    let terms = FleetTerms { base: "main".to_owned(), remote, ..FleetTerms::default() };
    let record = TaskRecord {
        work: TaskWork { commit: Some("c0ffee".to_owned()), ..TaskWork::default() },
        ..TaskRecord::default()
    };
    let what = ("fleet/shop/vat/1", "Build the vat\n\nTask vat.\n");
    let opened = open_pull(&gh.display().to_string(), &terms, &record, what, stop);
    (opened, disk::read_text(&words, 4096).unwrap().unwrap_or_default())
}

fn open_now(script: &str) -> Result<Landed, Refusal> {
    open_with(script, &|| false).0.unwrap()
}

#[test]
fn a_request_with_the_message_is_opened_at_the_remote_of_the_fleet() {
    let script = "test $1 = pr || exit 2\ncase $2 in list) ;; create)\n\
                  git config remote.origin.url\necho 'https://h/pull/7\\033[31m' ;; esac";
    let (found, words) = open_with(script, &|| false);
    assert_eq!(found.unwrap(), Ok(Landed::Request("https://h/pull/7".to_owned())));
    let last = words.split_once("pr create ").unwrap().1;
    let expected = "--head fleet/shop/vat/1 --base main --title Build the vat --body Task vat.\n\n";
    assert_eq!(last, expected);
}

#[test]
fn a_request_that_is_open_or_was_merged_with_all_of_the_work_is_found() {
    let list = |lines: &str| {
        open_now(&format!("test $2 = list && printf '{lines}' || echo https://h/pull/new"))
    };
    let request = |address: &str| Ok(Landed::Request(address.to_owned()));
    let table = [
        ("https://h/1 aaa CLOSED \\nhttps://h/2 bbb OPEN \\n", request("https://h/2")),
        ("https://h/3 c0ffee MERGED 0123abc\\n", Ok(Landed::Main(Some("0123abc".to_owned())))),
        ("https://h/4 older MERGED 0123abc\\n", request("https://h/pull/new")),
        ("https://h/5 c0ffee CLOSED \\n", request("https://h/pull/new")),
        ("", request("https://h/pull/new")),
    ];
    for (lines, expected) in table {
        assert_eq!(list(lines), expected, "{lines}");
    }
}

#[test]
fn a_hosts_refusal_is_quoted_without_control_codes_and_an_unreachable_host_is_retried() {
    let refused = open_now("echo 'HTTP 401: Bad \\033[31mcredentials' >&2; exit 1");
    let why = "gh pr list fails: HTTP 401: Bad credentials".to_owned();
    assert_eq!(refused, Err(Refusal::Request(why)));
    let nameless = open_now("test $2 = list || echo done");
    assert_eq!(nameless, Err(Refusal::Request("gh names no address: done".to_owned())));
    let away = "test $(wc -l < $here/words) -gt 1 || { echo 'error connecting to h' >&2; exit 1; }";
    let again = format!("{away}\ntest $2 = list && echo 'https://h/2 bbb OPEN '");
    assert_eq!(open_now(&again), Ok(Landed::Request("https://h/2".to_owned())));
    let (stopped, _) = open_with("echo 'error connecting to h' >&2; exit 1", &|| true);
    let fault = stopped.unwrap_err().downcast::<GitFault>().unwrap();
    assert_eq!(fault.trouble, GitTrouble::Network);
}

#[test]
fn a_missing_command_line_tool_is_named_with_a_hint() {
    let terms = FleetTerms {
        remote: Some(Remote { name: "origin".to_owned(), url: "/nowhere".to_owned() }),
        ..FleetTerms::default()
    };
    let record = TaskRecord::default();
    let opened = open_pull("/nowhere/gh", &terms, &record, ("b", "m"), &|| false).unwrap();
    let why = opened.unwrap_err().full_reason();
    assert!(why.starts_with("pull request: gh cannot be started: "), "{why}");
    assert!(why.ends_with("; install the GitHub CLI, and log in with gh auth login"), "{why}");
}

//! The user's answers in the session to an agent that said BLOCKED.

use super::{Answer, Door};

const CLAIM: &str = "<promise>COMPLETE</promise>";
const ASKED: &str = "<promise>BLOCKED: which database?</promise>";

impl Door {
    fn resumes(&self, arguments: &str) -> Answer {
        self.command(arguments).with("command_name", "crew:resume").with("prompt_id", "p-2").send()
    }
}

#[test]
fn a_blocked_agent_is_answered_in_its_own_session() {
    let door = Door::new();
    let id = door.begin("\"Build it\" --stall 0");
    let page = door.stop(ASKED).assert_lets_go();
    let next = format!(
        "next    /crew:resume {id} --tell \"your answer\"  no secrets in it: the agent reads it, and the transcript keeps it"
    );
    let words: Vec<&str> = page.line().split_whitespace().collect();
    let expected: Vec<&str> = next.split_whitespace().collect();
    assert!(words.windows(expected.len()).any(|part| part == expected), "{}", page.line());
    let answer = "use \\\"postgres\\\",\n and `psql` for $HOME";
    let shown = door.resumes(&format!("{id} --tell \"{answer}\" -n +2")).assert_goes_on();
    let message = "use \"postgres\", and `psql` for $HOME";
    assert!(shown.context().contains(message), "{}", shown.context());
    let page = door.sandbox.crew(&["status", &id]).success();
    assert!(page.contains("(in the prompt of iteration 2)"), "{page}");
    let again = door.stop("On it.").assert_goes_on();
    assert!(!again.context().contains(message), "{}", again.context());
    let page = door.sandbox.crew(&["status", &id]).success();
    assert!(page.contains("(in the prompt of iteration 2)"), "{page}");
}

#[test]
fn a_person_accepts_changed_tests_in_the_session() {
    let door = Door::new();
    door.sandbox.write("check.sh", "false\n");
    let id = door.begin("\"Build it\" --stall 0 --failure-threshold 1 --verify 'sh check.sh'");
    door.stop("Not yet.").assert_goes_on();
    door.sandbox.write("check.sh", "true\n");
    let page = door.stop(CLAIM).assert_lets_go();
    assert!(page.line().contains("blocked"), "{page:#?}");
    let resumed = door.resumes(&format!("{id} --accept-test-changes")).assert_goes_on();
    let line = resumed.line();
    assert!(line.contains("the checks are accepted as they are now"), "{line}");
    let page = door.stop(CLAIM).assert_lets_go();
    assert!(page.line().contains("completed"), "{page:#?}");
}

#[test]
fn an_answer_that_cannot_be_delivered_resumes_nothing_and_shows_how_to_type_it() {
    let door = Door::new();
    let id = door.begin("\"Build it\" --stall 0");
    door.stop(ASKED).assert_lets_go();
    let long = format!("--tell \"{}\"", "x".repeat(401));
    let table = [
        (
            "--tell use postgres",
            "crew: unexpected word `postgres`\n\
             hint: put a whole message in double quotes: --tell \"use the old parser\"",
        ),
        (
            &long,
            "crew: the message is longer than 400 characters\n\
             hint: write it to a file and send the file's name",
        ),
        ("--tel \"postgres\"", "crew: unknown option `--tel`\nhint: did you mean --tell?"),
    ];
    for (arguments, expected) in table {
        assert_eq!(door.resumes(arguments).refusal(), expected);
    }
    assert_eq!(door.status(&id)["outcome"], "blocked");
}

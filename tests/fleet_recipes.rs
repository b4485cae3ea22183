//! The page on fleets and the recipes beside it, held against the crew that is built: the example
//! is run, every command is one that crew takes, and the shell pieces do what their comments say.
//! No cluster and no hosted machine is asked.

use granit_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value, json};

use crate::child::{Ran, Running};
use crate::sandbox::{DEADLINE, Sandbox, checkout};
use crate::slurm::{self, Sshd};
use crate::tidy::pattern;

const PAGE: &str = include_str!("../docs/fleets.md");
const KUBERNETES: &str = include_str!("../docs/fleets/kubernetes.yaml");
const ACTIONS: &str = include_str!("../docs/fleets/github-actions.yml");
const PARALLEL: &str = include_str!("../docs/fleets/parallel.sh");

/// Prints the words that it is called with, one a line.
const ECHO: &str = "printf '%s\\n' \"$@\"";

/// Does the tasks of the page, and those of the test of GNU parallel.
const AGENT: &str = r#"case $(cat) in
    *'shell function vat'*) echo 'vat() { echo $(($1 * 119 / 100)); }' > vat.sh ;;
    *'Write invoice.sh'*) printf '. ./vat.sh\necho "total $(vat 100)"\n' > invoice.sh ;;
    *'Write greet.sh'*) echo 'echo hello' > greet.sh ;;
esac
echo '<promise>COMPLETE</promise>'"#;

/// The documents of a YAML text.
fn documents(text: &str) -> Vec<Value> {
    let mut events = Parser::new_from_str(text);
    let mut found = Vec::new();
    loop {
        match next(&mut events) {
            Event::StreamEnd => return found,
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            event => found.push(value(&event, &mut events)),
        }
    }
}

fn next<'text>(events: &mut Parser<'text, StrInput<'text>>) -> Event<'text> {
    events.next_event().unwrap().unwrap().0
}

fn value<'text>(event: &Event<'text>, events: &mut Parser<'text, StrInput<'text>>) -> Value {
    match event {
        // A number or a switch is written in YAML as in JSON.
        Event::Scalar(text, ScalarStyle::Plain, ..) => {
            serde_json::from_str(text).unwrap_or_else(|_| json!(text))
        }
        Event::Scalar(text, ..) => json!(text),
        Event::SequenceStart(..) => {
            let mut list = Vec::new();
            loop {
                match next(events) {
                    Event::SequenceEnd => return Value::Array(list),
                    event => list.push(value(&event, events)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut map = Map::new();
            loop {
                let key = match next(events) {
                    Event::MappingEnd => return Value::Object(map),
                    key => value(&key, events).as_str().unwrap().to_owned(),
                };
                let event = next(events);
                assert!(map.insert(key.clone(), value(&event, events)).is_none(), "{key} twice");
            }
        }
        event => panic!("{event:?} is in no recipe"),
    }
}

/// Runs a script as its recipe starts it, with these variables.
fn shell(sandbox: &Sandbox, option: &str, script: &str, variables: &[(&str, &str)]) -> Ran {
    let mut command = sandbox.command("sh");
    command.args([option, script]).envs(variables.iter().copied());
    Running::start(command, None).wait(DEADLINE)
}

/// A sandbox with the real crew on the PATH, and the agent of these tests for every task.
fn with_an_agent() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.put_crew_on_the_path();
    sandbox.program("agent", AGENT);
    let folder = sandbox.home().join(".config/crew");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = "loop.agent = \"fake\"\nagents.fake.command = [\"agent\"]\n";
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    sandbox
}

#[test]
fn every_command_of_the_page_and_the_recipes_is_one_that_crew_takes() {
    let sandbox = Sandbox::new();
    let command =
        pattern(r"(?m)(?:^|[\s`($])crew ((?:fleet [a-z]+|tell|run|resume|doctor)\b[^|>;)`#\n]*)");
    // Between backticks no verb is left out.
    let quoted = pattern("`crew ([a-z]+)");
    let variable = pattern(r#""?\$[@A-Za-z]+"?"#);
    let mut all = 0;
    for text in [PAGE, KUBERNETES, ACTIONS, PARALLEL] {
        for found in quoted.captures_iter(text) {
            assert!(command.is_match(&found[0]) || &found[1] == "fleet", "{}", &found[0]);
        }
        for found in command.captures_iter(text) {
            // In a comment, what it is for stands behind it.
            let typed = found[1].split("  ").next().unwrap();
            let typed = variable.replace_all(typed, "x");
            let mut words = shell_words::split(&typed).unwrap();
            words.push("--help".to_owned());
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ran = sandbox.crew(&words);
            assert!(
                ran.code() == 0 && ran.stdout.contains("Usage: crew "),
                "crew {typed}: {ran:#?}"
            );
            all += 1;
        }
    }
    assert!(all > 20, "only {all} commands were found");
}

#[test]
fn the_example_of_the_page_lands_all_of_its_tasks() {
    let sandbox = with_an_agent();
    let (_, example) = PAGE.split_once("```sh\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    // Nobody can be asked here.
    let trusted = pattern("(?m)^crew fleet run tasks/ --land$").replace(example, "$0 --yes");
    assert_ne!(trusted, example);
    let told = shell(&sandbox, "-ec", &trusted, &[]).success();
    assert!(told.contains("fleet shop    3 of 3 landed\n"), "{told}");
    let log: Vec<&str> = told.lines().rev().take(4).collect();
    let subjects: Vec<&str> = log.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    // The task with the highest priority is the first, and the one after it comes behind it.
    assert_eq!(
        subjects[..2],
        ["Begin", "Write vat.sh with a shell function vat: it prints an amount with 19 %…"]
    );
    assert!(subjects.iter().any(|subject| subject.starts_with("Write invoice.sh.")), "{log:?}");
}

#[test]
fn the_fleet_file_of_the_page_says_what_its_comments_say() {
    let sandbox = with_an_agent();
    let (_, file) = PAGE.split_once("```toml\n").unwrap();
    sandbox.write("tasks/fleet.toml", file.split_once("```").unwrap().0);
    sandbox.write("tasks/vat.md", "Write vat.sh.\n");
    sandbox.git(&["init", "--quiet", "--bare", "../hub.git"]);
    sandbox.git(&["remote", "add", "origin", "../hub.git"]);
    sandbox.git(&["push", "--quiet", "origin", "main"]);
    // The base is the one of the file, and not the one checked out.
    sandbox.git(&["checkout", "--quiet", "-b", "other"]);
    let told = sandbox.crew(&["fleet", "run", "tasks", "--land", "--dry-run"]).success();
    for expected in [
        "fleet shop: 1 task, on this machine, 4 at once, at most $50.00\n",
        "  setup   `npm ci` in each new working tree, not trusted yet\n",
        "  verify  `npm test`, not trusted yet\n",
        "  land    `npm run e2e` on main as it will be, not trusted yet\n",
        "          main, when a task's checks pass on it (--land)\n",
        "] terms: slots 4, base main, max-cost $50.00, land checks 1\n",
        ": '--max-iterations=15' '--verify=npm test'\n",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn the_kubernetes_job_gives_each_task_one_index_and_tries_nothing_again_that_crew_decided() {
    let documents = documents(KUBERNETES);
    let [list, job] = &documents[..] else { panic!("{documents:#?}") };
    let (spec, pod) = (&job["spec"], &job["spec"]["template"]["spec"]);
    let tasks = list["data"]["tasks"].as_str().unwrap().lines().count();
    assert_eq!((&list["kind"], &job["kind"]), (&json!("ConfigMap"), &json!("Job")));
    assert_eq!(spec["completions"], json!(tasks));
    for (field, expected) in [
        ("completionMode", json!("Indexed")),
        ("backoffLimitPerIndex", json!(3)),
        ("podReplacementPolicy", json!("Failed")),
    ] {
        assert_eq!(spec[field], expected, "{field}");
    }
    // The first rule that fits counts: a lost node before what its crew said at the end.
    let rules = &spec["podFailurePolicy"]["rules"];
    assert_eq!(rules[0]["action"], "Ignore");
    assert_eq!(rules[0]["onPodConditions"], json!([{ "type": "DisruptionTarget" }]));
    let codes = json!({
        "containerName": "crew", "operator": "In", "values": [2, 10, 11, 12, 13, 14, 130],
    });
    assert_eq!((&rules[1]["action"], &rules[1]["onExitCodes"]), (&json!("FailIndex"), &codes));
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(pod["terminationGracePeriodSeconds"], 60);
    assert_eq!(pod["containers"][0]["name"], "crew");
}

#[test]
fn no_secret_is_a_word_of_a_command_and_no_two_pods_share_a_home() {
    let documents = documents(KUBERNETES);
    let container = &documents[1]["spec"]["template"]["spec"]["containers"][0];
    let environment = container["env"].as_array().unwrap();
    let of_secrets = environment.iter().filter(|it| it["valueFrom"]["secretKeyRef"].is_object());
    let secrets: Vec<&str> = of_secrets.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(secrets, ["ANTHROPIC_API_KEY"]);
    let script = container["args"][0].as_str().unwrap();
    assert!(!script.contains(secrets[0]) && !script.contains("/secrets"), "{script}");
    let place = |name: &str| environment.iter().position(|it| it["name"] == name).unwrap();
    assert_eq!(environment[place("CREW_HOME")]["value"], "/scratch/$(POD)");
    assert_eq!(environment[place("POD")]["valueFrom"]["fieldRef"]["fieldPath"], "metadata.uid");
    // A variable is filled in only behind the one that it names.
    assert!(place("POD") < place("CREW_HOME"));
}

#[test]
fn the_index_of_a_pod_picks_its_task() {
    let documents = documents(KUBERNETES);
    let sandbox = Sandbox::new();
    sandbox.program("crew", ECHO);
    let data = &documents[0]["data"];
    let list = sandbox.write("tasks", data["tasks"].as_str().unwrap()).display().to_string();
    let container = &documents[1]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["sh", "-euc"]));
    let script = container["args"][0].as_str().unwrap();
    let remote = data["remote"].as_str().unwrap();
    let pod = |index: &str| {
        let variables = [
            ("FLEET", data["fleet"].as_str().unwrap()),
            ("REMOTE", remote),
            ("TASKS", &list),
            ("JOB_COMPLETION_INDEX", index),
        ];
        shell(&sandbox, "-euc", script, &variables)
    };
    for (index, task) in [("0", "vat"), ("1", "greeting"), ("2", "search")] {
        let expected = format!("fleet\njob\nshop\n{task}\n--remote={remote}\n");
        assert_eq!(pod(index).success(), expected);
    }
    let beyond = pod("3");
    assert_eq!((beyond.code(), &*beyond.stderr), (2, "the list of tasks has no line 4\n"));
}

#[test]
fn the_workflow_lists_the_open_tasks_and_works_on_each() {
    let documents = documents(ACTIONS);
    let workflow = &documents[0];
    assert_eq!(workflow["permissions"], json!({ "contents": "write" }));
    assert_eq!(workflow["concurrency"]["cancel-in-progress"], json!(false));
    let jobs = &workflow["jobs"];
    assert_eq!(jobs["work"]["strategy"]["fail-fast"], json!(false));
    let script = |job: &str| {
        let steps = jobs[job]["steps"].as_array().unwrap();
        let step = steps.iter().find(|step| step["id"] == *job).unwrap();
        step["run"].as_str().unwrap()
    };
    let sandbox = Sandbox::new();
    let output = sandbox.file("output");
    for (open, expected) in [
        ("", "fleet=\ntasks=[]\n"),
        ("fleet shop: 2 tasks\n  reads   tasks/*.md\n", "fleet=\ntasks=[]\n"),
        (
            "fleet shop: 2 tasks\n\
             crew fleet job shop vat '--remote=https://example.org/shop'\n\
             crew fleet job shop greeting '--remote=https://example.org/shop'\n",
            "fleet=shop\ntasks=[\"vat\",\"greeting\"]\n",
        ),
    ] {
        let answer = sandbox.write("answer", open);
        sandbox.program("crew", &format!("cat {}", answer.display()));
        let _ = std::fs::remove_file(&output);
        let variables = [("GITHUB_OUTPUT", &*output.display().to_string())];
        shell(&sandbox, "-ec", script("list"), &variables).success();
        assert_eq!(std::fs::read_to_string(&output).unwrap(), expected);
    }
    sandbox.program("crew", ECHO);
    let variables = [("FLEET", "shop"), ("TASK", "vat"), ("REMOTE", "https://example.org/shop")];
    let told = shell(&sandbox, "-ec", script("work"), &variables).success();
    assert_eq!(told, "fleet\njob\nshop\nvat\n--remote=https://example.org/shop\n");
}

#[test]
fn gnu_parallel_is_given_the_commands_alone_and_nothing_after_a_refusal() {
    let sandbox = Sandbox::new();
    sandbox.program("parallel", &format!("{ECHO}\ncat"));
    let run = |crew: &str| {
        sandbox.program("crew", crew);
        let mut command = sandbox.command(checkout().join("docs/fleets/parallel.sh"));
        command.args(["2/build1,build2", "tasks/", "--land"]);
        Running::start(command, None).wait(DEADLINE)
    };
    let told = run("echo \"  trust   $*\"; echo 'crew fleet job shop vat --remote=x'").success();
    insta::assert_snapshot!(told, @"
    --sshlogin
    2/build1,build2
    --line-buffer
    --tagstring
    {=$_=(split)[4]=}
    crew fleet job shop vat --remote=x
    ");
    let refused = run("echo 'crew fleet job shop vat --remote=x'; exit 2");
    assert_eq!((refused.code(), &*refused.stdout), (2, ""));
}

#[test]
fn gnu_parallel_works_on_the_tasks_of_a_fleet_by_ssh() {
    let parallel = slurm::program("parallel");
    let no_parallel = parallel.is_none().then(|| "GNU parallel is not installed".to_owned());
    if slurm::is_skipped(slurm::sshd::missing().or(no_parallel)) {
        return;
    }
    let sandbox = with_an_agent();
    sandbox.program("parallel", &format!("exec {} \"$@\"", parallel.unwrap().display()));
    let root = sandbox.root().display().to_string();
    let of_the_host = [
        ("PATH", format!("{root}/bin:/usr/bin:/bin")),
        ("CREW_HOME", format!("{root}/login/crew")),
        ("GIT_AUTHOR_NAME", "Tester".to_owned()),
        ("GIT_AUTHOR_EMAIL", "tester@example.invalid".to_owned()),
        ("GIT_COMMITTER_NAME", "Tester".to_owned()),
        ("GIT_COMMITTER_EMAIL", "tester@example.invalid".to_owned()),
    ];
    let _login = Sshd::start(&sandbox, &of_the_host);
    for name in ["one", "two"] {
        let text = format!("---\nverify: test -e greet.sh\n---\nWrite greet.sh for {name}.\n");
        sandbox.write(&format!("tasks/{name}.md"), &text);
    }
    sandbox.write("tasks/fleet.toml", "name = \"shop\"\n");
    sandbox.git(&["init", "--quiet", "--bare", "../hub.git"]);
    sandbox.git(&["remote", "add", "origin", "../hub.git"]);
    sandbox.git(&["push", "--quiet", "origin", "main"]);
    let mut command = sandbox.command(checkout().join("docs/fleets/parallel.sh"));
    command.args(["2/login", "tasks/", "--yes"]);
    let ran = Running::start(command, None).wait(DEADLINE);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let is_told = |name: &str| {
        ran.stdout.contains(&format!("\n{name}\t["))
            || ran.stdout.starts_with(&format!("{name}\t["))
    };
    assert!(is_told("one") && is_told("two"), "{ran:#?}");
    let status = sandbox.crew(&["fleet", "status", "shop"]).success();
    assert!(status.starts_with("fleet shop    2 of 2 completed\n"), "{status}");
}

//! Checks the commands of the pages with the built crew: each command and option exists, and each
//! block of `sh` runs in a prepared repository and prints something. Blocks of `sh,ignore` and
//! `bash` are not run, because they need a network, a cluster or a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::Value;

use crate::fleet_page;
use crate::sandbox::{Sandbox, checkout, poll_until};
use crate::tidy::{File, pattern, tree};

/// The blocks of code of a page whose fence is followed by this word.
pub(crate) fn blocks<'page>(page: &'page str, word: &str) -> Vec<&'page str> {
    let block = pattern(&format!(r"(?ms)^```{word}\n(.*?)^```$"));
    block.captures_iter(page).map(|found| found.get(1).unwrap().as_str()).collect()
}

/// The arguments of each call of crew in a piece of shell.
fn calls(shell: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    for line in shell.replace("\\\n", " ").lines() {
        // A line of a file that the shell writes may not be shell.
        let words = shell_words::split(line).unwrap_or_default();
        assert!(!words.is_empty() || !line.starts_with("crew"), "not one line of shell: {line}");
        let is_end = |word: &String| {
            ["|", "||", "&&", ";"].contains(&word.as_str())
                || word.starts_with('>')
                || word == "2>&1"
        };
        for part in words.split(is_end) {
            let is_variable = |word: &&String| pattern(r"^[A-Z_]+=").is_match(word);
            let call: Vec<String> = part.iter().skip_while(is_variable).cloned().collect();
            if call.first().is_some_and(|program| program == "crew") {
                calls.push(call[1..].to_vec());
            }
        }
    }
    calls
}

/// With `--help` appended, a call shows that its command and options exist, but not that they can
/// be combined or that no argument is missing: the blocks that run show that.
#[test]
fn every_command_and_option_of_a_page_exists() {
    let sandbox = Sandbox::new();
    let is_read = |file: &File| {
        ["docs/", "examples/", "README.md"].iter().any(|begin| file.path.starts_with(begin))
            && file.is_page()
    };
    let mut calls_of_pages = BTreeSet::new();
    for page in tree().into_iter().filter(is_read) {
        let shell = blocks(&page.text, "(?:sh|sh,ignore|bash)").concat();
        // A command between backticks may go on in the next line.
        let prose = pattern(r"(?ms)^```.*?^```$").replace_all(&page.text, "");
        let quoted = pattern(r"`(crew\s[a-z-][^`]+)`");
        let quoted = quoted.captures_iter(&prose).map(|found| found[1].replace('\n', " "));
        let shell = quoted.fold(shell, |shell, command| shell + &command + "\n");
        calls_of_pages.extend(calls(&shell).into_iter().map(|call| (call, page.path.clone())));
    }
    assert!(calls_of_pages.len() > 150, "only {} commands were found", calls_of_pages.len());
    let mut complaints = Vec::new();
    for (call, page) in calls_of_pages {
        let words = call.iter().map(String::as_str).chain(["--help"]);
        // What a page leaves to its reader: a number, and any of several options.
        let words = words.filter(|word| !word.starts_with('['));
        let words: Vec<&str> = words.map(|word| if word == "N" { "3" } else { word }).collect();
        let ran = sandbox.crew(&words);
        if ran.code() != 0 || ran.stdout.is_empty() {
            complaints.push(format!("{page}: crew {}: {}", call.join(" "), ran.stderr));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The files that the blocks of a page find.
#[derive(PartialEq)]
enum Files {
    /// The shell functions of `crew demo`, with scripts in place of Claude Code and Codex.
    Numbers,
    /// A tax of 10 percent whose test expects 19, with a script as the agent.
    Tax,
    /// The repository that the page on a first fleet creates.
    Shop,
    /// As `Shop`, but a task does not state the rate, so its agent asks.
    ShopThatAsks,
}
/// A fake Claude Code: each start fixes one fault of `numbers.sh`, and the second claims too early.
const CLAUDE: &str = r#"case "$1" in
    auth) echo '{"loggedIn":true}'; exit ;;
    --version) echo "2.1.330 (Claude Code)"; exit ;;
esac
cat >/dev/null
if [ -n "$LIMITED" ]; then
    echo '{"type":"result","subtype":"success","is_error":true,"result":"API Error: Request rejected (429)","terminal_reason":"api_error","api_error_status":429,"num_turns":1,"modelUsage":{}}'
    exit 1
fi
fix() { new=$(sed "s/$1/$2/" numbers.sh); printf '%s\n' "$new" > numbers.sh; }
claim='\n\n<promise>COMPLETE</promise>'
if grep -q 'total - number' numbers.sh; then
    fix 'total - number' 'total + number'; says='sum is right now.'
elif grep -q -e ' -lt ' numbers.sh; then
    fix ' -lt ' ' -gt '; says="That was the last fault.$claim"
else
    fix 'best=0' 'best=$1'; says="All three pass now.$claim"
fi
usage='"usage":{"input_tokens":1200,"output_tokens":240}'
by_model='"modelUsage":{"claude-opus-5-5":{"inputTokens":1200,"outputTokens":240,"costUSD":0.21}}'
cat <<EVENTS
{"type":"system","subtype":"init","session_id":"s","model":"claude-opus-5-5"}
{"type":"assistant","message":{"id":"m1","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"$says"}],$usage}}
{"type":"result","subtype":"success","is_error":false,"result":"$says","num_turns":3,$by_model}
EVENTS"#;
/// A fake Codex that fixes everything at once.
const CODEX: &str = r#"case "$1" in
    login) echo "Logged in"; exit ;;
    --version) echo "codex-cli 0.169.0"; exit ;;
esac
cat >/dev/null
new=$(sed 's/total - number/total + number/; s/ -lt / -gt /; s/best=0/best=$1/' numbers.sh)
printf '%s\n' "$new" > numbers.sh
cat <<'EVENTS'
{"type":"thread.started","thread_id":"t"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"All three pass now.\n\n<promise>COMPLETE</promise>"}}
{"type":"turn.completed","usage":{"input_tokens":21000,"cached_input_tokens":18000,"output_tokens":900}}
EVENTS"#;

const FIXES: &str =
    "fix() { new=$(sed \"$1\" $2); printf '%s\\n' \"$new\" > $2; }; cat >/dev/null\n";
const GOOD: &str = "fix 's/0.1$/0.19/' tax.py; echo '<promise>COMPLETE</promise>'";
const BAD: &str = "fix 's/, 19)/, 10.0)/' test_tax.py; echo '<promise>COMPLETE</promise>'";
const DECEIT: &str = "if [ -e ~/deceived ]; then git checkout -q test_tax.py; fix 's/0.1$/0.19/' tax.py
    else touch ~/deceived; fix 's/, 19)/, 10.0)/' test_tax.py; fi; echo '<promise>COMPLETE</promise>'";
const RATES: &str = "echo 'rate = 19' > rates.py; echo '<promise>COMPLETE</promise>'";
const CLAIM: &str = "echo '<promise>COMPLETE</promise>'";
const STEPS: &str = "if [ -e notes.txt ]; then fix 's/0.17$/0.190/' tax.py; rm notes.txt
    echo '<promise>COMPLETE</promise>'
    else fix 's/0.1$/0.17/' tax.py; echo 'rates: see the law' > notes.txt; fi";
const RUN: &str = "crew run 'make the tax 19 percent' --verify 'python3 -m unittest' -q";
const SETTINGS: &str =
    "mkdir .claude; cp $TOML/0 .claude/crew.toml; git add .; git commit -qm Settings";
const NIGHT: &str = "crew run 'fix the failing tests' --verify 'sh test.sh' -q";
const FIXED: &str = "sed -i.old 's/0.1$/0.19/' tax.py; git commit -qam Fix";
const REMOTE: &str = "git init -q --bare ../hub.git; git remote add origin ../hub.git";

/// For each page: this many blocks of `sh` run in one shell with these files, this agent and,
/// before them, these commands. `$TOML/N` is the page's N-th block of TOML.
const PAGES: &[(&str, usize, Files, &str, &str)] = &[
    ("concepts/proof", 2, Files::Tax, GOOD, ""),
    ("concepts/protection", 1, Files::Tax, GOOD, RUN),
    ("concepts/test-changes", 1, Files::Tax, DECEIT, ""),
    ("concepts/test-changes", 1, Files::Tax, BAD, ""),
    ("guides/checks", 1, Files::Tax, GOOD, ""),
    ("guides/checks", 1, Files::Tax, CLAIM, FIXED),
    ("guides/checks", 1, Files::Tax, RATES, ""),
    ("guides/checks", 1, Files::Tax, GOOD, "sed -i.old 's/, 0)/, 1)/' test_tax.py"),
    ("guides/checks", 1, Files::Tax, GOOD, ""),
    ("guides/cluster", 1, Files::Shop, "", ""),
    ("guides/limits", 2, Files::Numbers, "", ""),
    ("guides/limits", 1, Files::Numbers, "", "export LIMITED=1"),
    ("guides/many-tasks", 2, Files::ShopThatAsks, "", "crew fleet run tasks/ --land --yes || true"),
    ("guides/notices", 1, Files::Tax, GOOD, "cat $TOML/0 >> ~/.config/crew/config.toml"),
    (
        "guides/notices",
        1,
        Files::Tax,
        CLAIM,
        "cat $TOML/3 >> ~/.config/crew/config.toml; touch junk",
    ),
    ("guides/overnight", 4, Files::Numbers, "", ""),
    ("guides/own-agent", 2, Files::Numbers, "", ""),
    ("guides/teams-and-ci", 2, Files::Tax, GOOD, ""),
    ("guides/teams-and-ci", 1, Files::Tax, DECEIT, SETTINGS),
    ("guides/teams-and-ci", 1, Files::Tax, GOOD, SETTINGS),
    ("reference/agents", 1, Files::Numbers, "", ""),
    ("reference/checks", 1, Files::Tax, CLAIM, ""),
    ("reference/commands", 1, Files::Tax, GOOD, ""),
    ("reference/executors", 1, Files::Shop, "", "cat $TOML/0 >> ~/.config/crew/config.toml"),
    ("reference/files", 3, Files::Numbers, "", ""),
    ("reference/fleet-clones", 1, Files::Shop, "", "crew fleet run tasks/ --push --yes"),
    ("reference/fleet-files", 1, Files::Shop, "", ""),
    ("reference/fleets", 1, Files::Shop, "", ""),
    ("reference/git", 1, Files::Tax, STEPS, REMOTE),
    ("reference/json", 1, Files::Tax, GOOD, ""),
    ("reference/outcomes", 1, Files::Tax, CLAIM, ""),
    ("reference/outcomes", 1, Files::Tax, CLAIM, FIXED),
    ("reference/reactions", 1, Files::Tax, GOOD, "cat $TOML/0 >> ~/.config/crew/config.toml"),
    ("reference/run", 2, Files::Numbers, "", ""),
    ("reference/settings", 1, Files::Tax, GOOD, SETTINGS),
    ("reference/snapshots", 2, Files::Tax, STEPS, RUN),
    ("reference/variables", 1, Files::Tax, GOOD, ""),
    ("start/first-loop", 1, Files::Numbers, "", ""),
    ("start/first-night", 1, Files::Numbers, "", ""),
    ("start/first-night", 1, Files::Numbers, "", ""),
    ("start/first-night", 2, Files::Numbers, "", NIGHT),
    ("start/install", 2, Files::Numbers, "", ""),
];
/// Pages whose blocks another module of tests runs.
const ELSEWHERE: [(&str, &str); 2] =
    [("reference/fleet-landing", "demo"), ("start/first-fleet", "fleet_page")];

const TAX: &str = r"printf 'def tax(net):\n    return net * 0.1\n' > tax.py
cat > test_tax.py <<'PYTHON'
import unittest
from tax import tax


class T(unittest.TestCase):
    def test_tax(self):
        self.assertEqual(tax(100), 19)

    def test_zero(self):
        self.assertEqual(tax(0), 0)
PYTHON
echo '__pycache__/' > .gitignore";

/// The repository of a page, and what its shell has to run before the blocks.
fn prepared(page: &str, files: &Files, agent: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::without_git();
    sandbox.put_crew_on_the_path();
    for (number, block) in blocks(page, "toml").into_iter().enumerate() {
        sandbox.write(&format!("../toml/{number}"), block);
    }
    let begin = "git init -q -b main; git add .; git commit -qm Begin";
    let shop = || blocks(fleet_page::PAGE, "sh")[0].to_owned();
    let scripts = checkout().join("src/demo/scripts");
    let made = match files {
        Files::Numbers => {
            sandbox.program("claude", CLAUDE);
            sandbox.program("codex", CODEX);
            let scripts = scripts.display();
            format!("cp {scripts}/numbers.sh {scripts}/test.sh .; {begin}")
        }
        Files::Tax => {
            sandbox.make_the_agent(&format!("{FIXES}{agent}"));
            format!("{TAX}\n{begin}")
        }
        Files::Shop | Files::ShopThatAsks => {
            sandbox.make_the_agent(fleet_page::AGENT);
            if *files == Files::Shop { shop() } else { shop().replace("with 19 % tax", "with tax") }
        }
    };
    let script = format!("exec 2>&1\nTOML={}/toml\n{made}", sandbox.root().display());
    (sandbox, script)
}

/// Runs the blocks of an entry of `PAGES`, from the block with the number `first` on.
fn run_blocks(entry: &(&str, usize, Files, &str, &str), first: usize) {
    const MARK: &str = "=== the next block";
    let (name, count, files, agent, before) = entry;
    let page = std::fs::read_to_string(checkout().join(format!("docs/{name}.md"))).unwrap();
    let (sandbox, made) = prepared(&page, files, agent);
    let mut script = vec![made.as_str(), before];
    let mark = format!("echo '{MARK}'");
    for block in blocks(&page, "sh").into_iter().skip(first).take(*count) {
        script.extend([&mark, block]);
    }
    let ran = sandbox.sh(&script.join("\n"));
    let printed = &ran.stdout;
    assert_eq!(ran.code(), 0, "{name}: {printed}");
    for block in printed.split(MARK).skip(1) {
        assert!(!block.trim().is_empty(), "{name}: a block prints nothing: {printed}");
    }
    poll_until("the loop in the background is over", || {
        let status = sandbox.crew(&["status", "--all", "--json"]).success();
        let status: Value = serde_json::from_str(&status).unwrap();
        let loops = status["loops"].as_array().unwrap().iter();
        loops.clone().all(|each| each["status"] != "running")
    });
}

#[test]
#[ignore = "long"]
fn every_block_of_shell_in_a_page_runs_and_prints_something() {
    let mut so_far = BTreeMap::<&str, usize>::new();
    let mut entries = Vec::new();
    for entry in PAGES {
        let first = so_far.entry(entry.0).or_default();
        entries.push((entry, *first));
        *first += entry.1;
    }
    let (entries, failed) = (Mutex::new(entries.into_iter()), Mutex::new(Vec::new()));
    // A lock that is held while an entry runs would let only one run.
    let next = || entries.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((entry, first)) = next() {
                    if std::panic::catch_unwind(|| run_blocks(entry, first)).is_err() {
                        failed.lock().unwrap().push(format!("{} from block {first}", entry.0));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "failed, see above: {failed:#?}");
    let elsewhere = ELSEWHERE.map(|(page, _)| page);
    for page in tree() {
        let name = page.path.strip_prefix("docs/").and_then(|path| path.strip_suffix(".md"));
        let Some(name) = name.filter(|name| !elsewhere.contains(name)) else { continue };
        let count = so_far.get(name).copied().unwrap_or_default();
        assert_eq!(
            blocks(&page.text, "sh").len(),
            count,
            "{name}: blocks of sh (left), run (right)"
        );
    }
}

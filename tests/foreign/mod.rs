//! Foreign text: planted in one place after another, with codes in it that control a terminal or
//! turn the direction of writing. Then everything that prints is run. None of the codes may reach a
//! terminal, a page or HTML, and the text itself must appear, or the row proves nothing.

mod arguments;
mod machine;
mod run;
mod session;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::run::World;
use crate::sandbox::{DEADLINE, Sandbox, crew};
use crate::spawned::{Ran, Running};

/// Where a text is planted: the name of the place, and how the text gets there.
type Source = (&'static str, fn(&Scene, &str));

/// The beginning of the text, to find it again.
const MARK: &str = "planted";
/// The clipboard set, a bell, the screen wiped, a step back, a colour by an 8-bit code, a line
/// break by another, a deletion, and the direction of writing turned: overridden, isolated, and
/// marked twice; and the marks with which crew says what is green and where that ends.
const CODES: &str = "\u{fdd0}\u{1b}]52;c;cHduZWQ=\u{7}\u{1b}[2J\u{8}\u{9b}31m\u{85}\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}\u{fdd5}";
/// Those of the codes that git accepts in the name of a branch, and TOML accepts unescaped.
const NAME: &str = "planted\u{fdd0}\u{9b}31m\u{85}\u{202e}\u{2066}\u{200f}\u{61c}end";
const CLAIM: &str = "All done.\n<promise>COMPLETE</promise>";

/// All commands that print while a loop is live.
const LIVE: [&[&str]; 7] = [
    &["status"],
    &["status", "--all"],
    &["status", "--json"],
    &["status", "--line"],
    &["show"],
    &["config"],
    &["handoff", "as it stands"],
];
/// All commands that print when it has ended.
const OVER: [&[&str]; 9] = [
    &["status"],
    &["show"],
    &["show", "--json"],
    &["show", "--iteration", "1"],
    &["show", "--log"],
    &["history"],
    &["history", "--all", "--json"],
    &["watch"],
    &["doctor"],
];

/// The planted text.
fn planted() -> String {
    format!("{MARK}{CODES}end")
}

/// Whether a character must not reach a terminal, a page or HTML.
fn is_forbidden(character: char) -> bool {
    matches!(character, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}'
        | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | '\u{fdd0}'..='\u{fdef}')
}

/// A sandbox with one planted text, and all output in it.
struct Scene {
    world: World,
    /// The sources of output, each with its text.
    said: RefCell<Vec<(String, String)>>,
}

impl Scene {
    fn new() -> Self {
        let sandbox = Sandbox::new().env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0");
        // What a terminal gets has colours. Hooks, files and JSON never have any.
        let sandbox = sandbox.env("CLICOLOR_FORCE", "1");
        // git would write non-ASCII characters as numbers.
        sandbox.git(&["config", "core.quotePath", "false"]);
        let world = World::of(sandbox, &["echo Thinking."]);
        Self { world, said: RefCell::default() }
    }

    fn sandbox(&self) -> &Sandbox {
        &self.world.sandbox
    }

    fn hear(&self, by: &str, text: &str) {
        self.said.borrow_mut().push((by.to_owned(), text.to_owned()));
    }

    /// Records output. The codes of crew's own colours are removed where a user reads it, but never
    /// one within the text.
    fn heard(&self, by: &str, mut ran: Ran) -> Ran {
        for text in [&mut ran.stdout, &mut ran.stderr] {
            assert!(!text.contains(&format!("{MARK}\u{1b}")), "{by}: {text}");
            for code in ["0", "1", "2", "31", "32", "33"] {
                if by.starts_with("crew") {
                    *text = text.replace(&format!("\u{1b}[{code}m"), "");
                }
            }
        }
        self.hear(&format!("{by}, standard output"), &ran.stdout);
        self.hear(&format!("{by}, standard error"), &ran.stderr);
        ran
    }

    fn crew(&self, arguments: &[&str]) -> Ran {
        self.heard(&format!("crew {}", arguments.join(" ")), self.sandbox().crew(arguments))
    }

    /// Runs crew with other arguments, or a hook with this payload.
    fn other(
        &self,
        by: &str,
        payload: Option<Value>,
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) {
        let mut command = self.sandbox().command(crew());
        change(&mut command);
        let payload = payload.map(|mut it| {
            it["session_id"] = json!("00000000-0000-4000-8000-000000000001");
            it["cwd"] = json!(self.sandbox().repository());
            it.to_string().into_bytes()
        });
        self.heard(by, Running::start(command, payload).wait(DEADLINE));
    }

    /// Sends an event of the client; what the client would print of the answer is recorded, too.
    fn event(&self, name: &str, mut more: Value) -> Ran {
        more["hook_event_name"] = json!(name);
        let ran = self.heard(&format!("the {name} hook"), self.sandbox().hook(more));
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        let context = answer["hookSpecificOutput"]["additionalContext"].as_str();
        // The user's own task reaches the agent as it was typed.
        let context = context.unwrap_or_default().replace(&format!("The task:\n{}", planted()), "");
        for words in [answer["systemMessage"].as_str(), answer["reason"].as_str(), Some(&context)] {
            self.hear(&format!("the answer of the {name} hook"), words.unwrap_or_default());
        }
        ran
    }

    /// Types a slash command.
    fn types(&self, name: &str, arguments: &str) {
        let more = json!({"command_name": format!("crew:{name}"), "command_args": arguments});
        self.event("UserPromptExpansion", more);
    }

    fn begins(&self, arguments: &str) {
        self.types("loop", arguments);
    }

    /// Sends the stop of the agent after these words.
    fn stops(&self, words: &str) {
        self.event("Stop", json!({"last_assistant_message": words, "prompt_id": "p-1"}));
    }

    /// Writes the project's settings file.
    fn project(&self, text: &str) {
        self.sandbox().write(".claude/crew.toml", text);
    }

    /// A file of the only loop.
    fn file(&self, name: &str) -> PathBuf {
        self.world.file(name)
    }

    /// Prints everything that can be printed, while the loop is live and after its end.
    fn print_everything(&self) {
        for arguments in LIVE {
            self.crew(arguments);
        }
        self.event("SessionStart", json!({"source": "compact"}));
        self.crew(&["cancel"]);
        for arguments in OVER {
            self.crew(arguments);
        }
        let story = self.sandbox().root().join("story.html");
        self.crew(&["show", "--html", story.to_str().unwrap()]);
        self.hear("the HTML page", &fs::read_to_string(story).unwrap_or_default());
        self.hear_pages(self.sandbox().root());
    }

    /// Reads every handoff page of this world.
    fn hear_pages(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.hear_pages(&path);
            } else if folder.ends_with("handoffs") {
                self.hear("a handoff page", &fs::read_to_string(path).unwrap());
            }
        }
    }

    /// The codes that got through, or a note that the text never appeared.
    fn complaints(self, source: &str) -> Vec<String> {
        let said = self.said.into_inner();
        let mut complaints = Vec::new();
        if !said.iter().any(|(_, text)| text.contains(MARK)) {
            complaints.push(format!("{source}: never seen"));
        }
        for (by, text) in said {
            if let Some(at) = text.find(is_forbidden) {
                let shown: String = text[at..].chars().take(30).collect();
                complaints.push(format!("{source}: {by}: {shown:?}"));
            }
        }
        complaints
    }
}

/// Plants the text in each of these places, each in a separate world.
#[track_caller]
fn plant(sources: &[Source]) {
    let mut complaints = Vec::new();
    for (source, plant) in sources {
        let scene = Scene::new();
        plant(&scene, &planted());
        scene.print_everything();
        complaints.extend(scene.complaints(source));
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn each_of_at_least_forty_sources_is_planted_once() {
    let all = [session::SOURCES, run::SOURCES, machine::SOURCES, arguments::SOURCES].concat();
    let names: BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
    assert!(all.len() >= 40 && names.len() == all.len(), "{}: {names:?}", all.len());
}

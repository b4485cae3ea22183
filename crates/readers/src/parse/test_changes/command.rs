//! Reads what the command of a check names: the scripts and programs it runs, the files it passes
//! to a test runner, and whether it compares what they print. Names are looked for in every folder
//! that the command changes to, and a name in doubt counts. A shell command line is split into
//! its simple commands; quotes and substitutions are honoured, and variables in a word are dropped.

use crate::parse::shell_command::INTERPRETERS;
use engine::test_changes::kind::{NamedPaths, SCRIPT_FOLDERS, is_test};
use engine::text::{is_word_of, words_of};

/// Shell keywords that may precede a command.
const KEYWORDS: &str = "if then do else elif while until ! { time exec command nohup builtin";
/// Programs that run the command after them; words before it may be their own.
const WRAPPERS: &str = "env timeout nice setsid stdbuf flock ionice chronic sudo xvfb-run xargs for npx bunx \
    pnpx uv uvx poetry pipenv pdm hatch rye bundle mise";
/// Shells, and programs that run their arguments as a shell command.
const SHELLS: &str = "sh bash dash zsh ksh ash busybox eval su watch script";
/// Programs and Python modules that run tests.
pub(super) const TEST_RUNNERS: &str = "pytest py.test unittest nose2 jest vitest mocha ava tap rspec phpunit bats prove \
    minitest playwright cypress behave busted ctest";
/// Programs that compare what they read.
const COMPARERS: &str = "grep egrep fgrep rg diff cmp jq comm xmllint awk gawk mawk sed";
/// Tools that execute a file of their own, such as a makefile.
const MAKERS: &str = "make gmake just task npm npx pnpm yarn bun cargo tox nox invoke inv ninja ctest coverage c8 \
    nyc go gradle gradlew mvn mvnw rake doit poe hatch";
/// Options whose value is a file that such a tool, a runner or an interpreter follows.
const EXECUTED: &str = include_str!("names/obeyed_options.txt");
/// Options with which an interpreter only reads a file, or runs its argument.
const RUNS_NO_FILE: &str = "-c -n --check -e --eval";
/// Python modules that run a script.
const SCRIPT_RUNNERS: &str = "coverage trace cProfile profile pdb runpy";
/// Options and words that give a runner sources instead of tests.
const GIVEN_SOURCES: &str = "--doctest-modules --doctest-glob --findRelatedTests related";
/// Variables that name a file which a shell or an interpreter runs.
const OBEYED_VARIABLES: &str = "BASH_ENV ENV NODE_OPTIONS PYTHONSTARTUP RUBYOPT PERL5OPT";
/// Variables that name the folders of modules and programs.
const SEARCH_PATHS: &str = "PATH PYTHONPATH NODE_PATH RUBYLIB PERL5LIB";
/// Options whose value is the folder that a program works in.
pub(super) const FOLDERS: &str = "-C --directory --prefix --cwd --rootdir --working-directory --manifest-path \
    --start-directory";
/// Folders of a system's programs, and of open files.
const SYSTEM: &str = "/bin/ /sbin/ /usr/ /lib /nix/ /opt/homebrew/ /dev/fd/ /dev/std /proc/";
/// Formatters, linters and type checkers.
pub(super) const STATIC_PROGRAMS: &str = include_str!("names/static_programs.txt");
/// What the command of a check names. `folder`, from the root of the checkout, is where it runs,
/// `checkout` the absolute path of that root, and `is_file` whether there is a file at a path from
/// it.
pub fn named_paths(
    run: &str,
    folder: &str,
    checkout: &str,
    is_file: &dyn Fn(&str) -> bool,
) -> NamedPaths {
    let commands = find_commands(run);
    let comparing =
        commands.iter().filter(|command| is_word_of(COMPARERS, base_name(&command.words[0])));
    let mut reader = Reader {
        checkout,
        is_file,
        folders: vec![String::new()],
        compared: comparing.flat_map(|command| &command.words).map(String::as_str).collect(),
        has_runner: commands.iter().any(|command| runs_tests(&command.words)),
        found: NamedPaths::default(),
    };
    reader.add_folder(folder);
    for command in &commands {
        reader.follow_folders(&command.words);
    }
    for command in &commands {
        reader.read_command(command);
    }
    reader.found.folders.extend(reader.folders);
    reader.found
}

/// The simple commands of a command line, including commands that a shell in it runs.
pub(super) fn find_commands(run: &str) -> Vec<SimpleCommand> {
    let mut all = Vec::new();
    let mut waiting = split_commands(run);
    waiting.reverse();
    while let Some(command) = waiting.pop() {
        let is_shell = command.words.iter().any(|word| is_word_of(SHELLS, base_name(word)));
        for text in command.words.iter().filter(|word| is_shell && word.contains([' ', ';', '|'])) {
            let inner = split_commands(text).into_iter().map(|inner| SimpleCommand {
                is_substituted: inner.is_substituted || command.is_substituted,
                pipes_into: [inner.pipes_into, command.pipes_into.clone()].concat(),
                ..inner
            });
            // Each is shorter than the text it came from.
            waiting.extend(inner.filter(|inner| inner.words != command.words));
        }
        all.push(command);
    }
    all
}

/// The last part of a path.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a file has the name of a script.
fn is_script(path: &str) -> bool {
    let (stem, ending) = path.rsplit_once('.').unwrap_or((path, ""));
    let is_code = ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "mk"];
    is_code.contains(&ending) || stem.contains('/') && ending.is_empty()
}

fn is_interpreter(program: &str) -> bool {
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&program)
        || ["python", "ts-node", "deno", "bun", "Rscript"].contains(&name)
}

/// The modules of Python that a command runs.
fn python_modules<'w>(words: &[&'w str]) -> Vec<&'w str> {
    words.windows(2).filter(|pair| pair[0] == "-m").map(|pair| pair[1]).collect()
}

/// Whether a command runs a test runner.
fn runs_tests(words: &[String]) -> bool {
    words.iter().any(|word| word == "--test" || is_word_of(TEST_RUNNERS, base_name(word)))
}

struct Reader<'a> {
    checkout: &'a str,
    is_file: &'a dyn Fn(&str) -> bool,
    /// The folders in which words are resolved, relative to the root of the checkout.
    folders: Vec<String>,
    /// The words of commands that compare.
    compared: Vec<&'a str>,
    /// Whether one of the commands runs a test runner.
    has_runner: bool,
    found: NamedPaths,
}

impl Reader<'_> {
    fn add_folder(&mut self, folder: &str) {
        let folder = self.strip_checkout(folder).to_owned();
        let joined: Vec<String> =
            self.folders.iter().filter_map(|above| path_below(above, &folder)).collect();
        for folder in joined {
            if !self.folders.contains(&folder) && self.folders.len() < 64 {
                self.folders.push(folder);
            }
        }
    }

    /// Notes the folders that a command changes to.
    fn follow_folders(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).map(String::as_str);
            let by_option = words_of(FOLDERS).find_map(|option| {
                let rest = word.strip_prefix(option)?;
                let rest = rest.strip_prefix('=').unwrap_or(rest);
                if rest.is_empty() { next } else { Some(rest) }
            });
            let is_change = ["cd", "pushd"].contains(&word.as_str());
            let grouped = word.starts_with('-') && word.ends_with('C') && !word.starts_with("--");
            let is_start = word == "-s" && words.iter().any(|word| word == "discover");
            let takes_next = is_change || grouped || is_start;
            let folder = by_option.or(if takes_next { next } else { None });
            let searched = word.split_once('=').filter(|(name, _)| is_word_of(SEARCH_PATHS, name));
            let searched = searched.into_iter().flat_map(|(_, folders)| folders.split(':'));
            for folder in folder.into_iter().chain(searched) {
                self.add_folder(folder);
            }
        }
    }

    /// A word as a path from a folder of the checkout: without the checkout's own path, and without
    /// a leading variable or substitution.
    fn strip_checkout<'w>(&self, word: &'w str) -> &'w str {
        let word = match word.strip_prefix(self.checkout) {
            Some(inside) if inside.is_empty() || inside.starts_with('/') => inside,
            _ => word,
        };
        let word = match word.strip_prefix('$') {
            Some(named) => named.find('/').map_or("", |at| &named[at..]),
            None => word,
        };
        word.trim_start_matches(['}', '/'])
    }

    /// The files that a word may name; a file outside the checkout by its absolute path.
    fn candidate_files(&self, word: &str) -> Vec<String> {
        let is_foreign = word.starts_with('/') && !word.starts_with(self.checkout);
        let is_systems = words_of(SYSTEM).any(|folder| word.starts_with(folder));
        if is_foreign && !is_systems && (self.is_file)(word) {
            return vec![word.to_owned()];
        }
        let word = self.strip_checkout(word.split("::").next().unwrap_or_default());
        if word.is_empty() {
            return Vec::new();
        }
        let paths = self.folders.iter().filter_map(|folder| path_below(folder, word));
        paths.filter(|path| !path.is_empty() && (self.is_file)(path)).collect()
    }

    fn read_command(&mut self, command: &SimpleCommand) {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let mut run = Vec::new();
        let at = self.skip_wrappers(&words, &mut run);
        let program = words.get(at).copied().unwrap_or_default();
        if !program.contains('/') && !program.is_empty() {
            self.found.programs.insert(program.to_owned());
        }
        run.extend(self.candidate_files(program));
        let rest = words.get(at + 1..).unwrap_or_default();
        let name = base_name(program);
        let is_script_host = is_word_of(SHELLS, name) || is_interpreter(name);
        let feeds_a_shell = command
            .pipes_into
            .iter()
            .map(|into| base_name(into))
            .any(|into| is_word_of(SHELLS, into) || into == "xargs" || is_interpreter(into));
        self.note_globs(&words);
        self.note_written(&words);
        let mut is_tested = self.is_compared(command);
        let is_runner = is_word_of(TEST_RUNNERS, name);
        if is_runner || is_script_host {
            run.extend(self.obeyed_files(rest));
            for name in python_modules(rest) {
                run.extend(self.candidate_files(&module_path(name)));
            }
        }
        if is_runner || is_script_host && runs_tests(&command.words) {
            self.read_given(rest);
        } else if is_script_host {
            run.extend(self.find_script(rest));
            // Beside a runner of tests it is the product that runs, except for a project's scripts.
            let mut folders = run.iter().flat_map(|path| path.split('/').rev().skip(1));
            let is_among_scripts = folders.any(|folder| is_word_of(SCRIPT_FOLDERS, folder));
            is_tested |= self.has_runner && !is_word_of(SHELLS, name) && !is_among_scripts;
        } else if [".", "source"].contains(&program) {
            run.extend(rest.iter().take(1).flat_map(|word| self.candidate_files(word)));
            is_tested = true;
        } else if feeds_a_shell {
            run.extend(rest.iter().flat_map(|word| self.candidate_files(word)));
        } else if is_word_of(MAKERS, name) || is_word_of(STATIC_PROGRAMS, name) {
            run.extend(self.obeyed_files(rest));
        }
        if is_tested {
            self.found.compared.extend(run.iter().cloned());
        }
        self.found.run.extend(run);
    }

    /// Notes the scripts that a pattern gives to a shell or to a loop.
    fn note_globs(&mut self, words: &[&str]) {
        let is_shell = words.iter().take(1).any(|word| is_word_of(SHELLS, base_name(word)));
        let script = words.iter().skip(1).find(|word| !word.starts_with('-'));
        let is_loop = words.contains(&"for");
        for word in words.iter().filter(|word| word.contains('*')) {
            let is_looped = is_loop && word.rsplit('.').next() == Some("sh");
            if is_looped || (is_shell && script == Some(word)) {
                self.add_globs(word);
            }
        }
    }

    /// Notes a pattern of files in each folder.
    fn add_globs(&mut self, word: &str) {
        let globs = self.folders.iter().filter_map(|folder| path_below(folder, word));
        self.found.globs.extend(globs);
    }

    /// Notes the files that output is written to.
    fn note_written(&mut self, words: &[&str]) {
        let written = words.windows(2).filter(|pair| [">", "tee"].contains(&pair[0]));
        let paths = written.flat_map(|pair| {
            let file = self.strip_checkout(pair[1]);
            self.folders.iter().filter_map(move |folder| path_below(folder, file))
        });
        let paths: Vec<String> = paths.collect();
        self.found.written.extend(paths);
    }

    /// Whether the check compares the output of a command.
    fn is_compared(&self, command: &SimpleCommand) -> bool {
        let into = command.words.windows(2).filter(|pair| pair[0] == ">");
        command.is_substituted
            || command.is_in_background
            || command.pipes_into.iter().any(|program| is_word_of(COMPARERS, base_name(program)))
            || into.into_iter().any(|pair| self.compared.contains(&pair[1].as_str()))
    }

    /// The files that options name, and that a program follows.
    fn obeyed_files(&self, words: &[&str]) -> Vec<String> {
        option_files(words).into_iter().flat_map(|word| self.files_or_modules(word)).collect()
    }

    /// The files that a word may name, also as a module of Python.
    fn files_or_modules(&self, word: &str) -> Vec<String> {
        [self.candidate_files(word), self.candidate_files(&module_path(word))].concat()
    }

    /// The script that a shell or an interpreter runs.
    fn find_script(&self, words: &[&str]) -> Vec<String> {
        let modules = python_modules(words);
        let runs_no_file = words.iter().any(|word| is_word_of(RUNS_NO_FILE, word))
            || !modules.is_empty()
                && !modules.iter().any(|module| is_word_of(SCRIPT_RUNNERS, module));
        if runs_no_file {
            return Vec::new();
        }
        let plain = words.iter().filter(|word| !word.starts_with('-'));
        plain
            .map(|word| self.candidate_files(word))
            .find(|files| !files.is_empty())
            .unwrap_or_default()
    }

    /// Notes the files that a test runner is given. If one has the name of a test, the others are
    /// the sources it tests.
    fn read_given(&mut self, words: &[&str]) {
        let executed = option_files(words);
        let modules = python_modules(words);
        let given = words.iter().filter(|word| {
            !word.starts_with('-') && !executed.contains(word) && !modules.contains(word)
        });
        let given: Vec<&str> = given.copied().collect();
        let are_sources = words.iter().any(|word| is_word_of(GIVEN_SOURCES, word))
            || given.iter().any(|word| has_test_name(word));
        let pattern = words.windows(2).find(|pair| ["-p", "--pattern"].contains(&pair[0]));
        let patterns = pattern.map(|pair| format!("**/{}", pair[1]));
        self.found.globs.extend(patterns.filter(|glob| glob.contains('.')));
        let given = given.into_iter().filter(|word| !are_sources || has_test_name(word));
        for word in given {
            let files = self.files_or_modules(word);
            self.found.tests.extend(files);
            if word.contains('*') {
                self.add_globs(word);
            }
        }
    }

    /// The position of a command's program: after assignments, and after programs that only run
    /// another program. Files before it may be run too.
    fn skip_wrappers(&self, words: &[&str], run: &mut Vec<String>) -> usize {
        let mut at = 0;
        let mut is_wrapped = false;
        while let Some(word) = words.get(at) {
            let assigned = word.split_once('=').filter(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            });
            if let Some((name, value)) = assigned {
                let is_obeyed = is_word_of(OBEYED_VARIABLES, name);
                let files = value.split([' ', '=']).flat_map(|word| self.candidate_files(word));
                run.extend(files.filter(|path| is_obeyed || is_script(path)));
            } else if is_word_of(KEYWORDS, word) {
                is_wrapped = false;
            } else if is_word_of(WRAPPERS, word) {
                is_wrapped = true;
            } else if !is_wrapped || is_known_program(word) {
                break;
            } else {
                // Before a known program a file outside the checkout is the wrapper's, such as a
                // lock.
                let is_last = !words[at + 1..].iter().any(|word| is_known_program(word));
                let files = self.candidate_files(word);
                if files.iter().any(|path| !path.starts_with('/') || is_last) {
                    break;
                }
            }
            at += 1;
        }
        if at < words.len() {
            return at;
        }
        // Nothing that is known follows: the first word after the wrappers.
        let mut plain =
            words.iter().map(|word| !is_word_of(WRAPPERS, word) && !is_word_of(KEYWORDS, word));
        plain.position(|is_plain| is_plain).unwrap_or(at)
    }
}

/// Whether a word names a shell, an interpreter or a test runner.
fn is_known_program(word: &str) -> bool {
    let name = base_name(word);
    is_word_of(SHELLS, name) || is_interpreter(name) || is_word_of(TEST_RUNNERS, name)
}

/// Whether a file, or a folder by the files in it, has the name of a test.
fn has_test_name(word: &str) -> bool {
    is_test(word) || is_test(&format!("{word}/it"))
}

/// The values of options that a runner or an interpreter follows as files: `--config=F`, `-c F`,
/// `-cF`, `-sf F`.
fn option_files<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut values = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied();
        if *word == "<" || is_word_of(EXECUTED, word) {
            values.extend(next);
        }
        let assigned = word.split_once('=').filter(|(name, _)| is_word_of(EXECUTED, name));
        values.extend(assigned.map(|(_, value)| value));
        let short = word.strip_prefix('-').filter(|short| !short.starts_with('-'));
        let glued = short.and_then(|short| short.split_once(['f', 'c', 'r', 'p']));
        values.extend(glued.and_then(|(_, rest)| if rest.is_empty() { next } else { Some(rest) }));
    }
    values
}

/// The file of a Python module: `tools.check` is `tools/check.py`.
fn module_path(name: &str) -> String {
    format!("{}.py", name.replace('.', "/"))
}

/// One simple command, without the substitutions in it, which are commands of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    pub words: Vec<String>,
    /// Whether its output is a part of another command: `$(…)`, `<(…)`, backticks.
    is_substituted: bool,
    /// The programs that its output is piped into, one after the other.
    pipes_into: Vec<String>,
    /// Whether it runs in the background while later commands run.
    is_in_background: bool,
}

/// The text being read: the whole command line, or a substitution in it.
#[derive(Default)]
struct Frame {
    text: String,
    quote: Option<char>,
    /// The character that ends the substitution; `None` for the whole text.
    end: Option<char>,
    /// The commands of the current pipeline.
    pipeline: Vec<usize>,
}

#[derive(Default)]
struct Splitter {
    commands: Vec<SimpleCommand>,
    frames: Vec<Frame>,
}

/// Splits a command line into its simple commands.
pub fn split_commands(run: &str) -> Vec<SimpleCommand> {
    let mut splitter = Splitter { frames: vec![Frame::default()], ..Splitter::default() };
    let mut letters = run.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        let Some(frame) = splitter.frames.last_mut() else { break };
        if frame.quote == Some('\'') && letter != '\'' {
            frame.text.push(letter);
            continue;
        }
        match (frame.quote, letter) {
            (_, '\\') => frame.text.extend([Some(letter), letters.next()].into_iter().flatten()),
            (None, _) if frame.end == Some(letter) => splitter.close_frame(),
            (_, '`') => splitter.open_frame('`'),
            (_, '$') | (None, '<' | '>') if next == Some('(') => {
                letters.next();
                splitter.open_frame(')');
            }
            (_, '$') if next == Some('{') => while letters.next_if(|c| *c != '}').is_some() {},
            (None, '<' | '>') => {
                frame.text.extend([' ', letter, ' ']);
                while letters.next_if(|c| "<>&".contains(*c)).is_some() {}
            }
            (Some(open), _) if open == letter => {
                frame.quote = None;
                frame.text.push(letter);
            }
            (None, '\'' | '"') => {
                frame.quote = Some(letter);
                frame.text.push(letter);
            }
            (None, '|') if next != Some('|') => splitter.end_command(),
            (None, '&') => {
                let is_and = letters.next_if_eq(&'&').is_some();
                splitter.end_pipeline();
                if let Some(last) = splitter.commands.last_mut() {
                    last.is_in_background = !is_and && next != Some('>');
                }
            }
            (None, ';' | '|' | '\n' | '(' | ')') => splitter.end_pipeline(),
            (None, '{' | '}') if frame.text.trim_end().is_empty() => splitter.end_pipeline(),
            _ => frame.text.push(letter),
        }
    }
    while !splitter.frames.is_empty() {
        splitter.close_frame();
    }
    splitter.commands
}

impl Splitter {
    fn open_frame(&mut self, end: char) {
        self.frames.push(Frame { end: Some(end), ..Frame::default() });
    }

    fn close_frame(&mut self) {
        self.end_pipeline();
        self.frames.pop();
    }

    fn end_command(&mut self) {
        let is_substituted = self.frames.len() > 1;
        let Some(frame) = self.frames.last_mut() else { return };
        let text = std::mem::take(&mut frame.text);
        // A text whose quote is not closed is split, too.
        let words = shell_words::split(&text)
            .unwrap_or_else(|_| text.split_whitespace().map(str::to_owned).collect());
        let Some(program) = words.first() else { return };
        for earlier in &frame.pipeline {
            self.commands[*earlier].pipes_into.push(program.clone());
        }
        frame.pipeline.push(self.commands.len());
        self.commands.push(SimpleCommand { words, is_substituted, ..SimpleCommand::default() });
    }

    fn end_pipeline(&mut self) {
        self.end_command();
        if let Some(frame) = self.frames.last_mut() {
            frame.pipeline.clear();
        }
    }
}

/// A path below a folder, without `.` and `..`; `None` if it leads out of the tree.
pub fn path_below(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('~') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;

#[cfg(test)]
mod split_tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_at_operators_and_substitutions() {
        let shown = |run: &str| -> Vec<String> {
            let commands = split_commands(run).into_iter().map(|command| {
                let inner = if command.is_substituted { "$" } else { "" };
                let beside = if command.is_in_background { " &" } else { "" };
                let pipes: Vec<String> =
                    command.pipes_into.iter().map(|into| format!(" | {into}")).collect();
                format!("{inner}{}{}{beside}", command.words.join("·"), pipes.concat())
            });
            commands.collect()
        };
        for (run, expected) in [
            ("cd a && sh check.sh; true", &["cd·a", "sh·check.sh", "true"][..]),
            ("(cd a && x) && (cd b && y)", &["cd·a", "x", "cd·b", "y"]),
            ("bash -o pipefail -c 'a | b'", &["bash·-o·pipefail·-c·a | b"]),
            ("[ \"$(sh greet.sh)\" = Hello ]", &["$sh·greet.sh", "[··=·Hello·]"]),
            (
                "sh greet.sh | sort | grep -q Hello",
                &["sh·greet.sh | sort | grep", "sort | grep", "grep·-q·Hello"],
            ),
            ("diff <(sh a.sh) b.txt 2>&1", &["$sh·a.sh", "diff·b.txt·2·>·1"]),
            ("sh < f", &["sh·<·f"]),
            ("serve 2>&1 & curl x && true", &["serve·2·>·1 &", "curl·x", "true"]),
            ("a &> log; b", &["a", ">·log", "b"]),
            ("${X}/a \"`b c`\"", &["$b·c", "/a·"]),
            ("echo 'a", &["echo·'a"]),
            ("a\\;b", &["a;b"]),
        ] {
            assert_eq!(shown(run), expected, "{run}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_split(run in "[ a-z$(){}`'\"|&;<>\\\\\n]{0,60}") {
            let _ = split_commands(&run);
        }
    }
}

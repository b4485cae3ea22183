//! The commands of the pages, held against the crew that is built: each is one that crew takes, and
//! each block of `sh` runs in a prepared repository and prints something. `sh,ignore` and `bash`
//! are what no test can run: it takes a network, a cluster or a session.

use crate::sandbox::Sandbox;
use crate::tidy::{File, pattern, tree};

/// The blocks of code of a page with one word behind their fence.
pub(crate) fn blocks<'page>(page: &'page str, word: &str) -> Vec<&'page str> {
    let block = pattern(&format!(r"(?ms)^```{word}\n(.*?)^```$"));
    block.captures_iter(page).map(|found| found.get(1).unwrap().as_str()).collect()
}

/// What crew is called with in a piece of shell: the words of each call.
fn calls(shell: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    for line in shell.replace("\\\n", " ").lines() {
        // A line of a file that the shell writes may not be shell.
        let words = shell_words::split(line).unwrap_or_default();
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

#[test]
fn every_command_of_a_page_is_one_that_crew_takes() {
    let sandbox = Sandbox::new();
    let is_read = |file: &File| {
        ["docs/", "examples/", "README.md"].iter().any(|begin| file.path.starts_with(begin))
            && file.is_page()
    };
    let mut calls_of_pages = std::collections::BTreeSet::new();
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

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

/// Files in memory.
struct Shelf(BTreeMap<PathBuf, String>);

impl Files for Shelf {
    fn read(&self, path: &Path, _: &Path) -> Result<String, String> {
        let found = self.0.get(path).cloned();
        found.ok_or_else(|| format!("cannot read {}: no such file", path.display()))
    }
}

fn shelf(files: &[(&str, &str)]) -> Shelf {
    Shelf(files.iter().map(|(path, text)| ((*path).into(), (*text).to_owned())).collect())
}

fn of(path: &str) -> Recipe {
    Recipe([(Phase::Observe, vec![Fragment::File(path.into())])].into())
}

fn told(files: &[(&str, &str)]) -> String {
    read(&of("/p/main.hbs"), &shelf(files)).unwrap_err()
}

#[test]
fn what_nobody_names_is_not_wanted() {
    let text = "{{#if (gt iteration 1)}}{{git-log}}{{/if}}{{#each words as |one i|}}\
                {{i}} {{one}} {{this}} {{@index}} {{@root.branch}} {{../task}}{{/each}}";
    let parts = read(&of("/p/main.hbs"), &shelf(&[("/p/main.hbs", text)])).unwrap();
    let names: Vec<&str> = parts.wanted().iter().map(|one| one.meaning().name).collect();
    assert_eq!(names, ["task", "iteration", "words", "branch", "git-log"]);
    let literal = read(&of("/p/main.md"), &shelf(&[("/p/main.md", "{{git-diff}}")])).unwrap();
    assert!(literal.wanted().is_empty());
}

#[test]
fn every_mistake_is_told_with_its_file_its_line_and_the_way_out() {
    let table = [
        (
            "a\n{{git-stat}}",
            "/p/main.hbs:2: there is no variable `git-stat`; did you mean `git-status`?",
        ),
        (
            "{{#if itteration}}{{/if}}",
            "/p/main.hbs:1: there is no variable `itteration`; did you mean `iteration`?",
        ),
        (
            "{{#each words}}\n{{branch}}{{/each}}",
            "/p/main.hbs:2: inside #each a variable is written `@root.branch`",
        ),
        ("{{this}}", "/p/main.hbs:1: `this` has a meaning only inside #each"),
        ("{{words}}", "/p/main.hbs:1: `words` is a list: {{#each words}}{{this}}{{/each}}"),
        ("{{#each git-log}}{{/each}}", "/p/main.hbs:1: #each needs a list: `failing` or `words`"),
        (
            "{{#with task}}{{/with}}",
            "/p/main.hbs:1: there is no block `#with`; there are if, unless, each, raw",
        ),
        (
            "{{lookup task 1}}",
            "/p/main.hbs:1: there is no helper `lookup`; there are eq, ne, gt, gte, lt, lte, and, or, not, len",
        ),
        (
            "{{log task}}",
            "/p/main.hbs:1: there is no helper `log`; there are eq, ne, gt, gte, lt, lte, and, or, not, len",
        ),
        (
            "{{> a.md task}}",
            "/p/main.hbs:1: an include is {{> FILE}}, with nothing but the file's name",
        ),
        (
            "{{#> a.md}}{{/a.md}}",
            "/p/main.hbs:1: an include is {{> FILE}}; it has no block, and {{* }} does not exist",
        ),
        (
            "{{#*inline \"a\"}}{{/inline}}",
            "/p/main.hbs:1: an include is {{> FILE}}; it has no block, and {{* }} does not exist",
        ),
        ("\n{{> gone.hbs}}", "/p/main.hbs:2: cannot read /p/gone.hbs: no such file"),
        (
            "{{> crew/build/obsrve.hbs}}",
            "/p/main.hbs:1: crew has no template crew/build/obsrve.hbs; did you mean crew/build/observe.hbs?",
        ),
        ("{{> sub/bad.hbs}}", "/p/sub/bad.hbs:3: there is no variable `tsk`; did you mean `task`?"),
    ];
    for (text, expected) in table {
        let files = [("/p/main.hbs", text), ("/p/sub/bad.hbs", "\n\n{{tsk}}"), ("/p/a.md", "")];
        assert_eq!(told(&files), expected, "{text}");
    }
    let unclosed = told(&[("/p/main.hbs", "x\n{{#if task}}")]);
    assert!(unclosed.starts_with("/p/main.hbs:"), "{unclosed}");
}

#[test]
fn a_circle_of_includes_is_told_and_so_are_too_many() {
    let circle = [
        ("/p/main.hbs", "{{> sub/a.hbs}}"),
        ("/p/sub/a.hbs", "{{> ../b.hbs}}"),
        ("/p/b.hbs", "\n{{> ./sub/../main.hbs}}"),
    ];
    assert_eq!(told(&circle), "/p/b.hbs:2: /p/main.hbs includes itself in a circle");
    let names: Vec<String> = (0..40).map(|n| format!("/p/{n}.hbs")).collect();
    let texts: Vec<String> = (1..41).map(|n| format!("{{{{> {n}.hbs}}}}")).collect();
    let mut deep: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    deep.push(("/p/main.hbs", "{{> 0.hbs}}"));
    let too_many = "too many includes: at most 16 deep and 256 in all";
    assert!(told(&deep).ends_with(too_many));
    let twice: Vec<String> =
        (1..11).map(|n| format!("{{{{> {n}.hbs}}}}{{{{> {n}.hbs}}}}")).collect();
    let mut wide: Vec<(&str, &str)> =
        names.iter().zip(&twice).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    wide.extend([("/p/main.hbs", "{{> 0.hbs}}"), ("/p/10.hbs", "")]);
    assert!(told(&wide).ends_with(too_many));
}

proptest! {
    #[test]
    fn no_text_of_a_template_is_a_panic(text in "(\\{\\{|\\}\\}|#|/|>|~|!|\\(|\\[|each|if|else|raw|task|words|as \\||@root\\.| |\n|\"|'|\\\\|[a-z.]|\\PC){0,40}") {
        let files = shelf(&[("/p/main.hbs", text.as_str())]);
        let _ = read(&of("/p/main.hbs"), &files);
    }
}

#[test]
fn a_template_nested_too_deep_is_told_and_ends_nothing() {
    let deep = "{{#if task}}".repeat(100_000);
    assert_eq!(told(&[("/p/main.hbs", &deep)]), "/p/main.hbs: a template nested over 64 deep");
    let lists = format!("{{{{eq {} 1}}}}", "[".repeat(100_000));
    assert!(told(&[("/p/main.hbs", &lists)]).starts_with("/p/main.hbs:"));
    let fine = format!("{}{}", "{{#if task}}".repeat(60), "{{/if}}".repeat(60));
    assert!(read(&of("/p/main.hbs"), &shelf(&[("/p/main.hbs", &fine)])).is_ok());
}

use proptest::prelude::*;

use super::*;

fn read(path: &str, files: &[(&str, &str)]) -> Result<Parts, String> {
    Parts::read_recipe(&of(path), &|path, _| {
        let found = files.iter().find(|(known, _)| Path::new(known) == path);
        let found = found.map(|(_, text)| (*text).to_owned());
        found.ok_or_else(|| format!("cannot read {}: no such file", path.display()))
    })
}

fn of(path: &str) -> Recipe {
    Recipe([(Phase::Observe, vec![Fragment::File(path.into())])].into())
}

fn error_of(files: &[(&str, &str)]) -> String {
    read("/p/main.j2", files).unwrap_err()
}

#[test]
fn a_variable_that_no_template_names_is_not_computed() {
    let text = "{% if iteration > 1 %}{{ git_log }}{% endif %}{% for one in words %}\
                {{ loop.index }} {{ one }} {{ branch }} {{ task }}{% endfor %}\
                {% include \"sub/a.j2\" %}{% include 'b.md' %}";
    let files =
        [("/p/main.j2", text), ("/p/sub/a.j2", "{{ folder }}"), ("/p/b.md", "{{ git_diff }}")];
    let parts = read("/p/main.j2", &files).unwrap();
    let names: Vec<&str> = parts.wanted.iter().copied().collect();
    assert_eq!(names, ["branch", "folder", "git_log", "iteration", "task", "words"]);
    let literal = read("/p/main.md", &[("/p/main.md", "{{ git_diff }}")]).unwrap();
    assert!(literal.wanted.is_empty());
}

#[test]
fn every_mistake_is_reported_with_its_file_its_line_and_a_hint() {
    let table = [
        (
            "a\n{{ git_stat }}",
            "there is no variable `git_stat`; did you mean `git_status`? (in /p/main.j2:2)",
        ),
        (
            "{% if itteration %}{% endif %}",
            "there is no variable `itteration`; did you mean `iteration`? (in /p/main.j2:1)",
        ),
        (
            "{% for one in words %}\n{{ brunch }}{% endfor %}",
            "there is no variable `brunch`; did you mean `branch`? (in /p/main.j2:2)",
        ),
        (
            "{% include \"a.md\" ignore missing %}",
            "an include is {% include \"FILE\" %} (in /p/main.j2:1)",
        ),
        ("{% include task %}", "an include is {% include \"FILE\" %} (in /p/main.j2:1)"),
        ("{% include \"\" %}", "an include is {% include \"FILE\" %} (in /p/main.j2:1)"),
        ("\n{% include \"gone.j2\" %}", "cannot read /p/gone.j2: no such file (in /p/main.j2:2)"),
        (
            "{% include \"crew/build/obsrve.j2\" %}",
            "crew has no template crew/build/obsrve.j2; did you mean crew/build/observe.j2? (in /p/main.j2:1)",
        ),
        (
            "{% include \"sub/bad.j2\" %}",
            "there is no variable `tsk`; did you mean `task`? (in /p/sub/bad.j2:3) (in /p/main.j2:1)",
        ),
        ("x\n{% unless task %}", "syntax error: unknown statement unless (in /p/main.j2:2)"),
        (
            "x\n{% if task %}",
            "syntax error: unexpected end of input, expected end of block (in /p/main.j2:2)",
        ),
    ];
    for (text, expected) in table {
        let files = [("/p/main.j2", text), ("/p/sub/bad.j2", "\n\n{{ tsk }}"), ("/p/a.md", "")];
        assert_eq!(error_of(&files), expected, "{text}");
    }
    let foreign = error_of(&[("/p/main.j2", "{{ range(9) }}")]);
    assert!(foreign.starts_with("there is no variable `range`"), "{foreign}");
}

#[test]
fn circular_and_too_many_includes_are_reported() {
    let circle = [
        ("/p/main.j2", "{% include \"sub/a.j2\" %}"),
        ("/p/sub/a.j2", "{% include \"../b.j2\" %}"),
        ("/p/b.j2", "\n{% include \"./sub/../main.j2\" %}"),
    ];
    assert!(error_of(&circle).starts_with("/p/main.j2 includes itself (in /p/b.j2:2)"));
    let names: Vec<String> = (0..40).map(|n| format!("/p/{n}.j2")).collect();
    let texts: Vec<String> = (1..41).map(|n| format!("{{% include \"{n}.j2\" %}}")).collect();
    let mut deep: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    deep.push(("/p/main.j2", "{% include \"0.j2\" %}"));
    let too_many = "too many includes: at most 16 deep (in /p/15.j2:1)";
    assert!(error_of(&deep).starts_with(too_many), "{}", error_of(&deep));
}

proptest! {
    #[test]
    fn no_template_text_panics(text in "(\\{\\{|\\}\\}|\\{%|%\\}|\\{#|#\\}|-|\\(|\\[|for|in|if|elif|else|raw|end|include|task|words|loop\\.| |\n|\"|'|\\||\\\\|[a-z.]|\\PC){0,40}") {
        let files = [("/p/main.j2", text.as_str())];
        let _ = read("/p/main.j2", &files);
    }
}

#[test]
fn a_template_nested_too_deep_is_reported_and_crashes_nothing() {
    let deep = |text: &str| error_of(&[("/p/main.j2", &text.repeat(100_000))]);
    let within = |open: &str, text: &str| {
        error_of(&[("/p/main.j2", &format!("{open}{}", text.repeat(100_000)))])
    };
    let recursion = "syntax error: template exceeds maximum recursion limits (in /p/main.j2:1)";
    assert_eq!(deep("{% if task %}"), recursion);
    assert_eq!(deep("{% for a in words %}"), recursion);
    let tags = "a tag over 1024 bytes, or over 64 `elif` (in /p/main.j2:1)";
    for part in ["(", "[", "not ", "-", "task+", "task.task|length|", "task if task else "] {
        assert_eq!(within("{{ ", part), tags, "{part}");
    }
    assert_eq!(within("{% if task %}", "{% elif task %}"), tags);
    let fine = format!("{}{}", "{% if task %}".repeat(60), "{% endif %}".repeat(60));
    assert!(read("/p/main.j2", &[("/p/main.j2", &fine)]).is_ok());
    let long = "a".repeat(100_000);
    let fine = format!("{{# {long} #}}{long}{{% raw %}}{{{{ {long}{{% endraw %}}");
    assert!(read("/p/main.j2", &[("/p/main.j2", &fine)]).is_ok());
}

#[test]
fn a_file_that_is_included_many_times_is_bounded_with_the_whole_prompt() {
    let (many, long) = ("{% include 'b.md' %}".repeat(17), "x".repeat(1 << 20));
    let error_of = error_of(&[("/p/main.j2", &many), ("/p/b.md", &long)]);
    assert!(error_of.contains("over 16 MiB in all"), "{error_of}");
}

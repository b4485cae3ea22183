//! Removes what tools that run several programs put before each line: a package and its script, a
//! container, a time. Runners are read behind it.

use memchr::memchr;

/// A line without the prefix of turbo (`pkg:test: `), pnpm (`packages/web test: `), lerna
/// (`@acme/web: `), compose (`app-1  | `), concurrently (`[web] `), yarn (`[@acme/web]: `) or
/// GitHub Actions (`2026-01-02T03:04:05.6789Z `).
pub(super) fn without_prefix(line: &str) -> &str {
    let line = if line.starts_with("20") { without_time(line) } else { line };
    if let Some((name, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']'))
        && let Some(rest) = rest.strip_prefix(": ").or_else(|| rest.strip_prefix(' '))
        && is_name(name)
    {
        return rest;
    }
    let (first, rest) = split_word(line);
    if first.strip_suffix(':').is_some_and(is_script) {
        return rest;
    }
    if let Some(behind) = rest.trim_start().strip_prefix("| ")
        && is_container(first)
    {
        return behind;
    }
    let (second, behind) = split_word(rest);
    if second.ends_with(':') && is_script(&line[..first.len() + second.len()]) {
        return behind;
    }
    line
}

/// The first word, and what is behind its blank. Every line of a log is asked.
fn split_word(text: &str) -> (&str, &str) {
    memchr(b' ', text.as_bytes()).map_or((text, ""), |at| (&text[..at], &text[at + 1..]))
}

fn without_time(line: &str) -> &str {
    match line.split_once(' ') {
        Some((time, rest)) if time.ends_with('Z') && time.contains('T') => rest,
        _ => line,
    }
}

/// "app-1"
fn is_container(head: &str) -> bool {
    head.rsplit_once('-').is_some_and(|(name, number)| {
        !name.is_empty()
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && !head.contains(' ')
    })
}

/// "shop:test", "@acme/web:unit", "packages/web test", "@acme/web"
fn is_script(head: &str) -> bool {
    const WORDS: [&str; 7] = ["test", "unit", "spec", "check", "verify", "e2e", "integration"];
    let Some((package, script)) = head.split_once([':', ' ']) else {
        return head.starts_with('@') && head.contains('/');
    };
    let is_test = script.split([':', '-', '.']).any(|word| WORDS.contains(&word));
    is_test && is_name(package) && !script.contains(' ')
}

/// Of a package or a script: it has a letter and no blank.
fn is_name(text: &str) -> bool {
    text.contains(char::is_alphabetic) && !text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_a_known_form_is_taken_off_and_nothing_else() {
        let table = [
            ("shop:test: Tests: 1 passed, 1 total", "Tests: 1 passed, 1 total"),
            ("@acme/web:test:unit: 1 passed", "1 passed"),
            ("packages/web test:  Tests  2 passed (2)", " Tests  2 passed (2)"),
            ("packages/web test:", ""),
            ("web:unit: 1 passed", "1 passed"),
            ("@acme/web: 1 passed", "1 passed"),
            ("[web] 1 passed", "1 passed"),
            ("[@acme/web]: 1 passed", "1 passed"),
            ("[INFO] Tests run: 3, Failures: 0", "Tests run: 3, Failures: 0"),
            ("[  PASSED  ] 0 tests.", "[  PASSED  ] 0 tests."),
            ("[1/3] 0 passed", "[1/3] 0 passed"),
            ("app-1  | 1 passed in 0.01s", "1 passed in 0.01s"),
            ("2026-01-02T03:04:05.6789Z 1 passed in 0.01s", "1 passed in 0.01s"),
            ("test result: ok. 1 passed; 0 failed", "test result: ok. 1 passed; 0 failed"),
            ("FAIL: test_a (test.A)", "FAIL: test_a (test.A)"),
            ("a | b", "a | b"),
            ("é: ü", "é: ü"),
        ];
        for (line, expected) in table {
            assert_eq!(without_prefix(line), expected, "{line}");
        }
    }
}

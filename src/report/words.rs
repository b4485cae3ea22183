//! Small values with a voice: counts, durations, lists.

use std::time::Duration;

/// "1 iteration", "3 iterations".
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// "450ms", "45s", "4m 12s", "11h 58m".
pub fn duration(ms: u64) -> String {
    if ms < 1000 {
        return format!("{ms}ms");
    }
    let seconds = ms / 1000;
    let shown = if seconds >= 3600 { seconds / 60 * 60 } else { seconds };
    humantime::format_duration(Duration::from_secs(shown)).to_string()
}

/// "`a`, `b` and `c`".
pub fn commands<'a>(commands: impl Iterator<Item = &'a str>) -> String {
    let mut quoted: Vec<String> = Vec::new();
    for command in commands {
        let command = format!("`{}`", crate::engine::prompt::clip(command, 80));
        if !quoted.contains(&command) {
            quoted.push(command);
        }
    }
    match quoted.pop() {
        None => String::new(),
        Some(last) if quoted.is_empty() => last,
        Some(last) => format!("{} and {last}", quoted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spoken_as_people_say_them() {
        assert_eq!([count(1, "commit"), count(0, "commit")], ["1 commit", "0 commits"]);
        let spoken: Vec<String> = [450, 45_000, 252_400, 43_080_000].map(duration).to_vec();
        assert_eq!(spoken, ["450ms", "45s", "4m 12s", "11h 58m"]);
        assert_eq!(commands(["a", "b", "a", "c"].into_iter()), "`a`, `b` and `c`");
        assert_eq!(commands(["a"].into_iter()), "`a`");
    }
}

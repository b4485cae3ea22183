//! How fast the demo is shown to a person: each line stays for a while before the next one comes,
//! longest where the agent's claim is refused. Any key hurries: the rest comes at once.

use std::cell::Cell;
use std::time::Duration;

use crate::world::{fault, terminal};

/// How long a line with these words stays, in milliseconds; the first that it has counts.
const STAYS: [(&str, u64); 6] = [
    ("> /crew:loop ", 1500),
    ("* iteration ", 1000),
    ("claim refused", 2500),
    ("FAIL ", 2000),
    ("completed after", 2000),
    ("", 100),
];

/// How long the line stays before the next one comes.
fn stays(line: &str) -> Duration {
    let known = STAYS.iter().find(|(words, _)| line.contains(words));
    Duration::from_millis(known.map_or(0, |(_, ms)| *ms))
}

/// Shows the lines of a scene, with pauses unless a person hurries.
pub fn show(scene: &str, is_hurried: &Cell<bool>, print: &impl Fn(&str)) {
    for line in scene.strip_suffix('\n').unwrap_or(scene).split('\n') {
        print(line);
        if !is_hurried.get() {
            is_hurried.set(terminal::key_within(fault::stay(stays(line))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn every_line_is_shown_also_an_empty_one() {
        for (scene, expected) in [
            ("", &[""][..]),
            ("\n", &[""]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\n\n", &["a", ""]),
            ("\na\n\nb\n", &["", "a", "", "b"]),
        ] {
            let shown = RefCell::new(Vec::new());
            show(scene, &Cell::new(true), &|line| shown.borrow_mut().push(line.to_owned()));
            assert_eq!(shown.into_inner(), expected, "{scene:?}");
        }
    }

    /// A demo as it was shown once.
    const SHOWN: &str = include_str!("scripts/shown.txt");

    #[test]
    fn the_demo_takes_about_fifteen_seconds_most_of_them_at_what_matters() {
        let of = |lines: &mut dyn Iterator<Item = &str>| lines.map(stays).sum::<Duration>();
        let all = of(&mut SHOWN.lines());
        assert!((13..=16).contains(&all.as_secs()), "{all:?}");
        let (_, refused) = SHOWN.split_once("claim refused").unwrap();
        let (refused, _) = refused.split_once("* iteration 3").unwrap();
        assert!(of(&mut format!("claim refused{refused}").lines()).as_secs() >= 5);
    }
}

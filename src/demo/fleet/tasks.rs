//! The six tasks of the demo's fleet: what their files say, and what the scripted agent changes
//! for each. They are made to meet: two write in the same place, two break each other, two meet a
//! limit. It is only text: nothing here acts.

use crate::demo::agent::LIBRARY;

/// The test that is there from the beginning.
pub const TEST: (&str, &str) =
    ("test-largest.sh", ". ./numbers.sh\n[ \"$(largest 4 9 2)\" = 9 ]\n");
/// The file in which one task uses what another one renames.
pub const AVERAGE: &str = "average.sh";
/// The name that is taken away, and the one that takes its place.
pub const RENAMED: (&str, &str) = ("sum", "total");

/// The landing's check: every test that there is.
pub const LAND_CHECK: &str = r#"for test in test-*.sh; do sh "$test" || exit 1; done"#;

/// A task.
#[derive(Debug)]
pub struct ScriptedTask {
    pub name: &'static str,
    /// Its own front matter, in YAML.
    pub terms: &'static str,
    pub prompt: &'static str,
    pub meets: Meets,
    /// What its agent changes at first.
    pub edits: &'static [Edit],
}

/// What a task meets.
#[derive(Debug)]
pub enum Meets {
    /// Another one that begins from the same main branch.
    Twin(&'static str),
    /// A limit of the account.
    Limit,
}

/// A change of a file: everywhere the first text becomes the second. Without a first text the
/// second one is added at the end.
#[derive(Debug)]
pub struct Edit(pub &'static str, pub &'static str, pub &'static str);

/// The fleet. The names of a pair do not matter: both begin before either lands.
pub const TASKS: [ScriptedTask; 6] = [
    ScriptedTask {
        name: "smallest",
        terms: "priority: 9\nverify: 'test \"$(. ./numbers.sh; smallest 4 2 9)\" = 2'",
        prompt: "Add smallest to numbers.sh, with a test.",
        meets: Meets::Twin("count"),
        edits: &[
            Edit(LIBRARY, "", "\nsmallest() { printf '%s\\n' \"$@\" | sort -n | head -n 1; }\n"),
            Edit("test-smallest.sh", "", ". ./numbers.sh\n[ \"$(smallest 4 2 9)\" = 2 ]\n"),
        ],
    },
    ScriptedTask {
        name: "count",
        terms: "priority: 9\nverify: 'test \"$(. ./numbers.sh; count 4 2 9)\" = 3'",
        prompt: "Add count to numbers.sh, with a test.",
        meets: Meets::Twin("smallest"),
        edits: &[
            Edit(LIBRARY, "", "\ncount() { echo \"$#\"; }\n"),
            Edit("test-count.sh", "", ". ./numbers.sh\n[ \"$(count 4 2 9)\" = 3 ]\n"),
        ],
    },
    ScriptedTask {
        name: "total",
        terms: "verify: 'test \"$(. ./numbers.sh; total 4 9 2)\" = 15'",
        prompt: "Rename sum to total.",
        meets: Meets::Twin("average"),
        edits: &[Edit(LIBRARY, RENAMED.0, RENAMED.1)],
    },
    ScriptedTask {
        name: "average",
        terms: "verify: 'test \"$(. ./average.sh; average 4 2 9)\" = 5'",
        prompt: "Add average.sh, with a test. It uses sum.",
        meets: Meets::Twin("total"),
        edits: &[
            Edit(
                AVERAGE,
                "",
                ". ./numbers.sh\n\naverage() { all=$(sum \"$@\") && echo $((all / $#)); }\n",
            ),
            Edit("test-average.sh", "", ". ./average.sh\n[ \"$(average 4 2 9)\" = 5 ]\n"),
        ],
    },
    ScriptedTask {
        name: "guide",
        terms: "after: [total, average]\nmax-iterations: 1\nverify: grep total GUIDE.md",
        prompt: "Write GUIDE.md: what the library can do.",
        meets: Meets::Limit,
        edits: &[Edit(
            "GUIDE.md",
            "",
            "Whole numbers in the shell: total, average, count, smallest and largest.\n",
        )],
    },
    ScriptedTask {
        name: "changes",
        terms: "after: [total, average]\nmax-iterations: 1\nverify: grep total CHANGES.md",
        prompt: "Write CHANGES.md: what is new.",
        meets: Meets::Limit,
        edits: &[Edit(
            "CHANGES.md",
            "",
            "- sum is now total.\n- New: average, count and smallest.\n",
        )],
    },
];

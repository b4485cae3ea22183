//! The limits a person moves while a loop runs or as it is resumed: `-n 30`, `-n +10`, `--max-duration +2h`,
//! `--max-cost +5`.

use super::{amounts, duration};
use crate::engine::limits::{self, Change, Limits};
use crate::engine::looped::Loop;

/// What is typed after `resume` or `set`: a loop's name, and changes of its limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub name: Option<String>,
    pub limits: limits::Changes,
}

impl Changes {
    /// Whether no limit is moved.
    pub fn is_empty(&self) -> bool {
        self.limits == limits::Changes::default()
    }

    /// The limits of `subject` after the changes; `spent_ms` are the awake milliseconds of its running iteration.
    pub fn apply(&self, subject: &Loop, spent_ms: u64) -> Limits {
        self.limits.apply(subject, spent_ms)
    }
}

/// Reads the words; the error is one line and says the way out.
pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Changes, String> {
    let mut changes = Changes::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            if changes.name.replace(word.to_owned()).is_some() {
                return Err(format!("{word:?} is one loop too many; name one loop"));
            }
            continue;
        }
        let (flag, value) = match (word.split_once('='), word.strip_prefix("-n")) {
            (Some((flag, value)), _) => (flag, Some(value)),
            (None, Some(value)) if !value.is_empty() => ("-n", Some(value)),
            _ => (word, None),
        };
        let place = match flag {
            "-n" | "--max-iterations" => &mut changes.limits.max_iterations,
            "--failure-threshold" => &mut changes.limits.failure_threshold,
            "--stall" => &mut changes.limits.stall,
            "--max-duration" => &mut changes.limits.max_duration_s,
            "--max-cost" => &mut changes.limits.max_cost_micros,
            "--max-tokens" => &mut changes.limits.max_tokens,
            _ => {
                return Err(format!(
                    "unknown option `{flag}`: the limits are --max-iterations, --max-duration, \
                     --max-cost, --max-tokens, --failure-threshold and --stall"
                ));
            }
        };
        let value = value.or_else(|| words.next()).ok_or_else(|| {
            format!("`{flag}` needs a value: `{flag} 30`, or `{flag} +10` for ten more")
        })?;
        *place = Some(change(flag, value)?);
    }
    Ok(changes)
}

fn change(flag: &str, value: &str) -> Result<Change, String> {
    let (number, more) = value.strip_prefix('+').map_or((value, false), |number| (number, true));
    let read = match flag {
        "--max-duration" => duration::parse(number)
            .map(duration::whole_seconds)
            .map_err(|wanted| format!("{wanted}, or `+2h`")),
        "--max-cost" => {
            let micros = amounts::dollars(number).map(amounts::micros);
            micros.ok_or_else(|| "`5.00` or `+2.50`".to_owned())
        }
        "--max-tokens" => amounts::tokens(number).ok_or_else(|| "`2M` or `+500k`".to_owned()),
        _ => number.parse::<u32>().map(u64::from).map_err(|_| "`30` or `+10`".to_owned()),
    };
    let read = read.map_err(|wanted| format!("`{flag} {value}` is no limit: write {wanted}"))?;
    Ok(if more { Change::By(read) } else { Change::To(read) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixture::a_loop;

    fn a_loop_with(limits: &Limits) -> Loop {
        let mut subject = a_loop();
        subject.contract.limits = limits.clone();
        subject
    }

    fn applied(words: &str) -> Result<(u32, u32, u32, u64), String> {
        let subject = a_loop_with(&Limits::default());
        let limits = parse(words.split_whitespace())?.apply(&subject, 0);
        let Limits { max_iterations, failure_threshold, stall, max_duration_s, .. } = limits;
        Ok((max_iterations, failure_threshold, stall, max_duration_s))
    }

    #[test]
    fn limits_are_set_or_raised_and_junk_is_refused_with_the_way_out() {
        let table = [
            ("", Ok((10, 3, 5, 43_200))),
            ("-n +10", Ok((20, 3, 5, 43_200))),
            ("-n30 --stall=0", Ok((30, 3, 0, 43_200))),
            ("--max-iterations 0 --failure-threshold +1", Ok((0, 4, 5, 43_200))),
            ("--max-duration +2h", Ok((10, 3, 5, 50_400))),
            ("-n", Err("`-n` needs a value: `-n 30`, or `-n +10` for ten more")),
            ("-n ten", Err("`-n ten` is no limit: write `30` or `+10`")),
            (
                "--max-duration 5",
                Err(
                    "`--max-duration 5` is no limit: write a time with its unit, such as 90m, 12h or \
                     \"1h 30m\", or `+2h`",
                ),
            ),
            ("a b", Err("\"b\" is one loop too many; name one loop")),
        ];
        for (words, expected) in table {
            assert_eq!(applied(words), expected.map_err(str::to_owned), "{words}");
        }
        assert_eq!(parse(["k3v9", "-n", "5"]).unwrap().name.as_deref(), Some("k3v9"));
        assert!(parse(["--verify", "true"]).unwrap_err().starts_with("unknown option `--verify`"));
    }

    #[test]
    fn limits_on_cost_and_tokens_are_set_and_raised_too() {
        let limits = Limits { max_cost_micros: 2_000_000, max_tokens: 1_000, ..Limits::default() };
        let table = [
            ("--max-cost 5", Ok((5_000_000, 1_000))),
            ("--max-cost +$2.50 --max-tokens=2M", Ok((4_500_000, 2_000_000))),
            ("--max-cost 0 --max-tokens +500k", Ok((0, 501_000))),
            ("--max-cost five", Err("`--max-cost five` is no limit: write `5.00` or `+2.50`")),
            ("--max-tokens 1.5M", Err("`--max-tokens 1.5M` is no limit: write `2M` or `+500k`")),
        ];
        for (words, expected) in table {
            let moved = parse(words.split_whitespace())
                .map(|changes| changes.apply(&a_loop_with(&limits), 0));
            let moved = moved.map(|it| (it.max_cost_micros, it.max_tokens));
            assert_eq!(moved, expected.map_err(str::to_owned), "{words}");
        }
    }

    #[test]
    fn narrowing_is_told_from_raising_and_zero_is_the_widest() {
        let limits = Limits::default();
        let with =
            |words: &str| parse(words.split_whitespace()).unwrap().apply(&a_loop_with(&limits), 0);
        for (words, expected) in [
            ("-n 5", true),
            ("-n 10", true),
            ("-n 11", false),
            ("-n 0", false),
            ("--stall 2", true),
            ("--max-duration 13h", false),
            ("--max-cost 5", true),
            ("--max-tokens 1M -n 11", false),
        ] {
            assert_eq!(with(words).are_within(&limits), expected, "{words}");
        }
        let priced = Limits { max_cost_micros: 5_000_000, max_tokens: 9, ..Limits::default() };
        for (words, expected) in [
            ("--max-cost 4.99", true),
            ("--max-cost +0.01", false),
            ("--max-cost 0", false),
            ("--max-tokens 10", false),
        ] {
            let moved = parse(words.split_whitespace()).unwrap().apply(&a_loop_with(&priced), 0);
            assert_eq!(moved.are_within(&priced), expected, "{words}");
        }
    }
}

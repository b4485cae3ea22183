//! The values of options: counts, durations, money, tokens. A refusal says what is expected
//! instead.

use crate::parse::amounts::Unit;
use crate::parse::settings::merge::clamp_to_u32;

/// A whole number of things.
pub fn parse_count(text: &str) -> Result<u32, String> {
    Unit::Count.parse_text(text).map(clamp_to_u32)
}

/// At least one.
pub(super) fn parse_nonzero(text: &str) -> Result<u32, String> {
    let number = parse_count(text)?;
    if number == 0 { Err("at least 1".to_owned()) } else { Ok(number) }
}

/// US dollars, in millionths.
pub(super) fn parse_dollars(text: &str) -> Result<u64, String> {
    Unit::Dollars.parse_text(text)
}

/// An iteration by its number.
pub fn parse_iteration(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "the number of an iteration, such as 3")
}

/// Slurm, by its commands here or on a login node.
pub fn parse_cluster(text: &str) -> Result<String, &'static str> {
    match text.strip_prefix("slurm:") {
        Some(host) if !host.is_empty() && !host.starts_with('-') => Ok(text.to_owned()),
        None if text == "slurm" => Ok(text.to_owned()),
        _ => Err("slurm, or slurm:HOST"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_slurm_here_or_on_a_host_and_no_host_is_an_option() {
        for (text, is_known) in [
            ("slurm", true),
            ("slurm:login.example", true),
            ("slurm:me@login", true),
            ("slurm:", false),
            ("slurm:-oProxyCommand=id", false),
            ("slurmy", false),
            ("manual", false),
        ] {
            assert_eq!(parse_cluster(text).is_ok(), is_known, "{text}");
        }
    }
}

//! Measures how deep a template is nested before it is parsed, and refuses one that is too deep: on
//! a file of a hundred thousand open blocks the parser would overflow its stack.

/// The deepest nesting of blocks, where every `else if` counts as one, and of parentheses.
const DEPTH_MAX: usize = 64;

/// Refuses what is nested too deep. It counts tags in the raw text, so it may count an escaped one.
pub fn check(text: &str) -> Result<(), String> {
    let mut blocks: Vec<usize> = Vec::new();
    let mut depth = 0;
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        rest = rest[start..].trim_start_matches('{').trim_start_matches('~');
        // Up to the next tag: only the parser knows where this one ends, and text rarely opens more
        // than it closes.
        let inner = rest.split("{{").next().unwrap_or_default();
        match rest.as_bytes().first() {
            Some(b'#') => {
                blocks.push(1);
                depth += 1;
            }
            Some(b'/') => depth -= blocks.pop().unwrap_or_default(),
            _ if inner.trim_start().starts_with("else") || inner.starts_with('^') => {
                if let Some(chain) = blocks.last_mut() {
                    *chain += 1;
                    depth += 1;
                }
            }
            _ => {}
        }
        if depth > DEPTH_MAX || parentheses(inner) > DEPTH_MAX {
            return Err(format!("a template nested over {DEPTH_MAX} deep"));
        }
        rest = &rest[inner.len()..];
    }
    Ok(())
}

fn parentheses(inner: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for letter in inner.bytes() {
        match letter {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_where_it_costs_stack() {
        let nested = |open: &str, count: usize, close: &str| {
            format!("{}{}", open.repeat(count), close.repeat(count))
        };
        let chain = format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{else if a}}".repeat(100_000));
        let deep_call = format!("{{{{#if {}a{}}}}}{{{{/if}}}}", "(".repeat(100), ")".repeat(100));
        let table = [
            (nested("{{#if a}}", 10, "{{/if}}"), true),
            ("{{#if a}}b{{else}}c{{/if}}".repeat(1000), true),
            (nested("{{#if a}}", 100_000, "{{/if}}"), false),
            (nested("{{~#if a}}", 100, ""), false),
            (nested("{{#each a}}", 100_000, ""), false),
            (chain, false),
            (deep_call, false),
            (format!("{{{{eq {{\"a\":{{}}}} {}", "(not ".repeat(100_000)), false),
            ("((((((((((".repeat(100), true),
            ("{{{{{{{{".repeat(10_000), true),
        ];
        for (text, is_fine) in table {
            let shown: String = text.chars().take(40).collect();
            assert_eq!(check(&text).is_ok(), is_fine, "{shown}");
        }
    }
}

//! The file in which Copilot leaves what it used: tokens by model, the whole process together. Its
//! cost is in credits of an account and not in money, so the tokens have no known price.

use crate::agents::json::JsonObject;
use crate::agents::words::start;
use crate::engine::usage::{Tokens, Usage};

/// The longest name of a model kept, in characters.
const MODEL_CHARS: usize = 80;

/// What was used; `None` where the file does not say.
pub(super) fn read(text: &str) -> Option<Usage> {
    let mut sum = Usage::default();
    for (model, metrics) in JsonObject::of(text)?.objects("modelMetrics")? {
        let tokens = metrics.map(|it| tokens(it.object("usage").unwrap_or_default()));
        sum.add(&Usage::unpriced(tokens, start(&model, MODEL_CHARS)));
    }
    Some(sum)
}

/// The tokens of one model. Its input includes those of the cache.
fn tokens(usage: JsonObject<'_>) -> Tokens {
    let cache_read = usage.count("cacheReadTokens");
    let cache_write = usage.count("cacheWriteTokens");
    let cached = cache_read.saturating_add(cache_write);
    let input = usage.count("inputTokens").saturating_sub(cached);
    let output = usage.count("outputTokens");
    Tokens { input, cache_write, cache_read, output, ..Tokens::default() }
}

//! The file in which Copilot leaves what it used: tokens by model, the whole process together. Its
//! cost is in credits of an account and not in money, so the tokens have no known price.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::agents::lenient::{Lenient, NumberField, object, part};
use crate::agents::words::start;
use crate::engine::usage::{Tokens, Usage};

/// The longest name of a model kept, in characters.
const MODEL_CHARS: usize = 80;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct UsageFile {
    model_metrics: Lenient<BTreeMap<String, Lenient<ModelMetrics>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ModelMetrics {
    #[serde(deserialize_with = "part")]
    usage: ModelTokens,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ModelTokens {
    /// Includes those of the cache.
    #[serde(rename = "inputTokens")]
    input: NumberField,
    #[serde(rename = "outputTokens")]
    output: NumberField,
    #[serde(rename = "cacheReadTokens")]
    cache_read: NumberField,
    #[serde(rename = "cacheWriteTokens")]
    cache_write: NumberField,
}

/// What was used; `None` where the file does not say.
pub(super) fn read(text: &str) -> Option<Usage> {
    let mut sum = Usage::default();
    for (model, metrics) in object::<UsageFile>(text)?.model_metrics.0? {
        let Lenient(metrics) = metrics;
        let tokens = metrics.map(|metrics| metrics.usage.tokens());
        sum.add(&Usage::unpriced(tokens, start(&model, MODEL_CHARS)));
    }
    Some(sum)
}

impl ModelTokens {
    fn tokens(&self) -> Tokens {
        let (cache_read, cache_write) = (self.cache_read.count(), self.cache_write.count());
        let cached = cache_read.saturating_add(cache_write);
        let input = self.input.count().saturating_sub(cached);
        Tokens { input, cache_write, cache_read, output: self.output.count(), ..Tokens::default() }
    }
}

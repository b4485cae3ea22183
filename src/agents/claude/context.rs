//! How full the agent's own context was: its fullest message against the window that the client
//! reports for the model at the end of a turn. A client that names no window says nothing of it.

use crate::agents::json::JsonObject;
use crate::engine::usage::Message;

#[derive(Debug, Default)]
pub(super) struct Context {
    /// The model and the tokens of the fullest message, answer included.
    fullest: Option<(String, u64)>,
    percent: Option<u8>,
}

impl Context {
    /// Takes a message of the agent itself; a subagent has a context of its own.
    pub(super) fn message(&mut self, message: &Message) {
        let tokens = message.tokens.total();
        if self.fullest.as_ref().is_none_or(|(_, most)| tokens > *most) {
            self.fullest = Some((message.model.clone(), tokens));
        }
    }

    pub(super) fn result(&mut self, result: JsonObject<'_>) {
        let (Some((model, tokens)), Some(models)) = (&self.fullest, result.objects("modelUsage"))
        else {
            return;
        };
        // "opus[1m]" is the model `opus` with a larger window.
        let is_its = |name: &str| name.split('[').next() == Some(model) || models.len() == 1;
        let windows = models.iter().filter(|(name, _)| is_its(name));
        let windows = windows.filter_map(|(_, used)| Some((*used)?.count("contextWindow")));
        let window = windows.max().filter(|window| *window > 0);
        let percent = window.map(|window| tokens.saturating_mul(100) / window);
        let percent = percent.map(|percent| u8::try_from(percent.min(100)).unwrap_or(100));
        self.percent = self.percent.max(percent);
    }

    /// The tokens of the fullest message.
    pub(super) fn tokens(&self) -> Option<u64> {
        self.fullest.as_ref().map(|(_, tokens)| *tokens)
    }

    /// How full it was at most; `None` where the client did not say.
    pub(super) fn percent(&self) -> Option<u8> {
        self.percent
    }
}

#[cfg(test)]
mod tests {
    use crate::agents::claude::tests::read;

    #[test]
    fn the_fullest_message_of_the_agent_is_measured_by_its_models_window() {
        let says = |model: &str, parent: &str, cached: u64| {
            format!(
                r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"id":"m{cached}","model":"{model}","content":[],"usage":{{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":{cached},"output_tokens":70}}}}}}"#
            )
        };
        let ends = |windows: &str| format!(r#"{{"type":"result","modelUsage":{{{windows}}}}}"#);
        let opus = r#""opus":{"contextWindow":1000}"#;
        let (full, fuller) = (says("opus", "null", 700), says("opus", "null", 770));
        let table = [
            (vec![full.clone(), ends(opus)], Some(80)),
            (vec![fuller.clone(), full.clone(), ends(opus)], Some(87)),
            (vec![full.clone(), ends(opus), fuller.clone(), ends(opus)], Some(87)),
            (vec![full.clone(), says("opus", r#""t""#, 900), ends(opus)], Some(80)),
            (vec![says("opus", "null", 9_000), ends(opus)], Some(100)),
            // Another model's window is not its own, unless there is only one.
            (
                vec![
                    full.clone(),
                    ends(r#""opus[1m]":{"contextWindow":8000},"haiku":{"contextWindow":9}"#),
                ],
                Some(10),
            ),
            (vec![full.clone(), ends(r#""sonnet":{"contextWindow":1600}"#)], Some(50)),
            (vec![full.clone(), ends(r#""a":{"contextWindow":9},"b":{"contextWindow":9}"#)], None),
            // Nothing is said of it.
            (vec![full.clone(), ends(r#""opus":{}"#)], None),
            (vec![full.clone(), ends(r#""opus":{"contextWindow":0}"#)], None),
            (vec![full], None),
            (vec![ends(opus)], None),
        ];
        for (lines, expected) in table {
            let found = read(&lines.join("\n")).0.context_percent;
            assert_eq!(found, expected, "{lines:#?}");
        }
    }
}

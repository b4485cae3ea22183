//! `[on]`: the user's commands for the moments of a loop. A value that cannot be used is refused
//! with a working line.

use super::values::Written;
use super::{KeyText, Reader, Value, in_order};
use crate::engine::record::{LoopMoment, Reaction};
use crate::engine::settings::Layer;

const REACTION: [&str; 2] = ["run", "timeout"];
/// The timeout of a reaction in seconds, unless its table sets one.
const TIMEOUT_S: u64 = 60;
const EXAMPLE: &str = "\"notify-send done\"";

impl Reader<'_> {
    pub(super) fn reactions(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let Some(on) = LoopMoment::ALL.into_iter().find(|on| on.label() == name) else {
            let known = LoopMoment::ALL.map(LoopMoment::label);
            return self.unknown(&key.span(), name, "[on]", &known);
        };
        match value.get_ref().as_array() {
            Some(list) => list.iter().for_each(|it| self.reaction(layer, on, it)),
            None => self.reaction(layer, on, value),
        }
    }

    /// A command, or a table with a command and its timeout.
    fn reaction(&mut self, layer: &mut Layer, on: LoopMoment, value: &Value<'_>) {
        let at = value.span();
        let Some(table) = value.get_ref().as_table() else {
            if let Some(run) = self.read(on.label(), EXAMPLE, value, Written::command) {
                let reaction = Reaction { on, run, timeout_s: TIMEOUT_S };
                layer.reactions.push(self.sourced(&at, reaction));
            }
            return;
        };
        let (mut run, mut timeout_s) = (None, TIMEOUT_S);
        let faults = self.faults.len();
        for (key, value) in in_order(table) {
            match key.get_ref().as_ref() {
                "run" => run = self.read("run", EXAMPLE, value, Written::command),
                "timeout" => {
                    let seconds = self.read("timeout", "\"10m\"", value, Written::some_seconds);
                    timeout_s = seconds.unwrap_or(timeout_s);
                }
                name => self.unknown(&key.span(), name, &format!("[on] {}", on.label()), &REACTION),
            }
        }
        match run {
            Some(run) => {
                layer.reactions.push(self.sourced(&at, Reaction { on, run, timeout_s }));
            }
            None if self.faults.len() > faults => {}
            None => self.fault(&at, format!("{} has no command: run = {EXAMPLE}", on.label())),
        }
    }
}

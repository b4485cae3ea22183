//! `[procedures.NAME]`: the recipe of a procedure, piece by piece, and its own terms. A value that
//! cannot be used is refused with a working line.

use super::terms::names_in;
use super::values::Written;
use super::{Item, KeyText, Reader, Value, in_order};
use crate::engine::record::{Fragment, Phase};
use crate::engine::settings::{Layer, ProcedureSettings};
use crate::parse::fragment::fragment;

const PROCEDURE: [&str; 6] = ["description", "context", "observe", "orient", "decide", "act"];

impl Reader<'_> {
    pub(super) fn procedure(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let place = format!("procedures.{name}");
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let what = "the name of a procedure is one word: [procedures.nightly]";
            return self.fault(&key.span(), what);
        }
        let Some(table) = value.get_ref().as_table() else { return self.no_table(key, &place) };
        let mut procedure = ProcedureSettings::default();
        for item in in_order(table) {
            self.procedure_key(&mut procedure, &place, item);
        }
        layer.procedures.insert(name.to_owned(), self.sourced(&key.span(), procedure));
    }

    fn procedure_key(&mut self, procedure: &mut ProcedureSettings, place: &str, item: Item<'_>) {
        let (key, value) = item;
        let name = key.get_ref().as_ref();
        let phase = Phase::ALL.into_iter().find(|phase| phase.label() == name);
        if let Some(phase) = phase {
            let alone = std::slice::from_ref(value);
            let texts = value.get_ref().as_array().map_or(alone, |list| list);
            for text in texts {
                let fragment = self.fragment(name, text);
                procedure.recipe.0.entry(phase).or_default().extend(fragment);
            }
        } else if name == "description" {
            procedure.description = self.read(name, "\"Fix what is broken\"", value, Written::text);
        } else if !self.term(&mut procedure.terms, "loop", item) {
            let known = [&PROCEDURE[..], &names_in("loop")].concat();
            self.unknown(&key.span(), name, &format!("[{place}]"), &known);
        }
    }

    fn fragment(&mut self, key: &str, value: &Value<'_>) -> Option<Fragment> {
        const EXAMPLE: &str = "\"prompts/look.md\"";
        let text = self.read(key, EXAMPLE, value, Written::text)?;
        let fragment = match fragment(&text, self.folder(), self.is_there) {
            Ok(fragment) => fragment,
            Err(wanted) => {
                self.refuse(key, wanted, value, EXAMPLE);
                return None;
            }
        };
        if let (Fragment::File(file), Some(checkout)) = (&fragment, self.checkout())
            && !file.starts_with(&checkout)
        {
            self.refuse(key, "a file of this checkout", value, EXAMPLE);
            return None;
        }
        Some(fragment)
    }
}

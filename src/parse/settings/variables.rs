//! The two environment variables that are settings. A refusal names a value that works.

use crate::engine::settings::{Key, Layer, Sourced, Value, ValueOrigin};
use crate::parse::amounts;
use crate::parse::spelling::shown;

/// Reads both; `get` returns the text of a variable that is set. An error is one line.
pub fn variables(get: &dyn Fn(&str) -> Option<String>) -> Result<Layer, String> {
    let mut layer = Layer::default();
    let mut set = |key, variable, value| {
        let origin = ValueOrigin::Environment { variable };
        layer.values.insert(key, Sourced { value, origin });
    };
    if let Some(account) = get("CREW_ACCOUNT") {
        set(Key::Account, "CREW_ACCOUNT", Value::Text(account.trim().to_owned()));
    }
    if let Some(cost) = get("CREW_MAX_COST") {
        let dollars = amounts::dollars(cost.trim()).ok_or_else(|| {
            let cost = shown(&cost);
            format!("CREW_MAX_COST takes an amount in US dollars, not `{cost}`: CREW_MAX_COST=5.00")
        })?;
        set(Key::MaxCost, "CREW_MAX_COST", Value::Number(amounts::micros(dollars)));
    }
    Ok(layer)
}

//! Clients as they were recorded, only for tests of the seam: no released build includes them. They
//! show what a new client needs, and that nothing outside its folder has to change.

#[path = "codex_fixture.rs"]
mod codex;
#[path = "gemini_fixture.rs"]
mod gemini;
#[path = "qwen_fixture.rs"]
mod qwen;

pub use self::codex::CODEX;
pub use self::gemini::GEMINI;
pub use self::qwen::QWEN;

use super::HookEvent;
use crate::parse::requests::parse_request;

/// A message to a client that has no commands: `crew loop "task"` starts a loop. crew's own prompts
/// arrive as messages, too.
fn message(prompt: &str) -> HookEvent {
    let prompt = prompt.trim();
    if let Some(request) = parse_request(prompt) {
        return HookEvent::Request(request);
    }
    let is_crews = prompt.lines().next().is_some_and(|line| line.contains(": iteration "));
    match prompt.strip_prefix("crew ").and_then(|rest| rest.split_once(' ')) {
        Some(("loop", _)) if is_crews => HookEvent::NotOurs,
        Some((name @ ("loop" | "resume"), raw)) => {
            HookEvent::Command { name: name.to_owned(), raw: raw.to_owned(), sure: true }
        }
        _ => HookEvent::Prompted,
    }
}

//! `crew demo`: a whole loop through the real hook door, with a scripted agent.

use anyhow::Result;

use crate::exit::Exit;

/// Runs the demo.
pub fn demo() -> Result<Exit> {
    anyhow::bail!("the demo is being built")
}

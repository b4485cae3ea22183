//! The procedures and templates compiled into crew, and how they are filled in. Pure: a template
//! and its values in, text out. A value is never expanded again, and what a person wrote is kept
//! byte for byte.
//!
//! A prompt is made in three steps, so that nothing costly is computed needlessly:
//! [`fragments::Parts::read_recipe`] reads and checks the fragments, [`fragments::Parts::wanted`]
//! names the values they use, [`assembly::build_prompt`] fills them in.

pub mod assembly;
pub mod fragments;
pub mod procedures;
pub mod variables;

//! The procedures and templates compiled into crew, and how they are filled in. Pure: a template
//! and its values in, text out. A value is never expanded again, and what a person wrote is kept
//! byte for byte.
//!
//! A prompt is made in three steps, so that nothing costly is computed needlessly: [`parts::read`]
//! reads and checks the fragments, [`parts::Parts::wanted`] names the values they use,
//! [`assembly::prompt`] fills them in.

pub mod assembly;
pub mod built_in;
pub mod parts;
pub mod procedures;
pub mod source;
mod templates;
pub mod values;
pub mod variables;

//! The procedures and templates compiled into crew, and their filling in. Pure: a template and its values in,
//! text out. Nothing a value holds is ever expanded again, and what a person wrote comes through byte for byte.
//!
//! A prompt is made in three steps, so that nothing costly is looked at in vain: [`parts::read`] reads and
//! checks the fragments, [`parts::Parts::wanted`] names the values they use, [`assembly::prompt`] fills them in.

pub mod assembly;
pub mod built_in;
mod nesting;
pub mod parts;
pub mod procedures;
pub mod source;
mod templates;
pub mod values;
pub mod variables;

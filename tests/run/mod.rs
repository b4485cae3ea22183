//! `crew run` through the built binary.

mod client;
mod moves;

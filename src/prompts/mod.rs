//! The procedures and templates compiled into crew, and their filling in. Pure: a template and its values in,
//! text out. Nothing a value holds is ever expanded again.

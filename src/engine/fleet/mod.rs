//! Fleets: many loops at once. Values in, values out; it starts no loop and knows no machine.

pub mod slots;

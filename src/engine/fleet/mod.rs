//! Fleets: many loops at once. Values in, values out; it starts no loop and knows no machine.
#![cfg_attr(not(test), expect(dead_code, reason = "no verb starts a fleet yet"))]

pub mod overlap;
pub mod slots;
pub mod task;

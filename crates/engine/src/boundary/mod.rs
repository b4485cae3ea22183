//! The rules of a boundary, in the order they are asked: what to look at (`wants`), what the
//! iteration was (`judge`), what to do about it (`decide`). Each is a function of its arguments and
//! does no I/O; what was not looked at is absent, never zero.

pub mod belief;
pub mod decide;
pub mod facts;
pub mod judge;
pub mod limits;
pub mod wants;

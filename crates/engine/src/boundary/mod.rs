//! The rules of a boundary, in the order in which they apply: what to check (`wants`), what the
//! iteration was (`judge`), what to do about it (`decide`). Each is a function of its arguments and
//! does no I/O; a value that was not checked is absent, never zero.

pub mod belief;
pub mod decide;
pub mod facts;
pub mod judge;
pub mod limits;
pub mod wants;
pub mod window;

//! Files and folders, each access bounded in bytes and time. Nothing here interprets a file.

pub mod disk;
pub mod fingerprint;
pub mod protected;
pub mod room;
pub mod tree;
pub mod walk;

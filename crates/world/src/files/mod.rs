//! Files and folders, each access bounded in bytes and time. Nothing here interprets a file.

pub mod disk;
pub mod tree;

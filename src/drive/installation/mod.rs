//! The installation of crew: its plugin and its files for the shell, and what keeps loops from
//! running on this machine or in a cluster.

pub mod doctor;
pub mod install;
pub mod plugin_files;
pub mod shell_files;
pub mod slurm;

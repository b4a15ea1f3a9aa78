//! Settings: defaults that people set once, in files, environment variables or flags.
//!
//! A project's file may have been written by a stranger, so it can only set what
//! [`Key::project`] allows. Everything else in it is reported and has no effect.
//!
//! This crate reads the files that it is told to read. It does not look at the environment or
//! the home folder.

mod file;
mod key;
mod layers;

pub use file::{ConfigError, PROJECT_FILE, Project, read_user_file};
pub use key::{Key, ProjectAccess, Value, parse_size};
pub use layers::{Given, Layers, Origin, Settings};

//! Settings from configuration files, environment variables and flags.
//!
//! A project's file is untrusted: it sets only what [`Key::project`] allows. Everything else in it
//! causes a warning and has no effect.
//!
//! The crate does not look at the environment or the home folder; callers pass in what it needs.

mod file;
mod key;
mod layers;

pub use file::{ConfigError, PROJECT_FILE, ProjectFile, read_user_file};
pub use key::{Key, ProjectAccess, Value, parse_disk_size, parse_size};
pub use layers::{Layers, Origin, Setting, Settings};
